//! The hardened reading: commands are taken apart as a shell would, and the rules see programs and words, not text.
//!
//! Wrappers, variables, `$'…'`, directories before a name, evaluated texts and piped scripts are followed, which closes
//! the gaps of the default reading; quoted data, comments and the bodies of here-documents are not searched, which
//! lifts its overreach. Off by default: the default reading is the observed one.
//!
//! Never: more work than the guard's budget; what needs more is refused by the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::expand::{Expanded, expand};
use super::normalize::{Homes, fold_homes, normalize, strip_escapes};
use super::options::{self, SHELLS, Spec};
use super::payload::{self, Inspection};
use super::scan::{Kind, Scan, mask_prose};
use super::variants::{Budget, WINDOWS_PATH};
use super::words::{Simple, base_name, commands, is_assignment, program_behind, unquote};
use unicode_normalization::UnicodeNormalization;

/// Programs whose operands are text to show or to look for.
const MENTION: [&str; 14] = [
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "man", "apropos", "whatis", "logger",
    "true", ":",
];
/// Sub-commands of git whose operands are messages or things to look for.
const GIT_MENTION: [&str; 6] = ["commit", "tag", "notes", "log", "grep", "show"];
/// Programs whose quoted operands are code in a language that rules know.
const CODE: [&str; 11] = [
    "mysql",
    "mariadb",
    "psql",
    "sqlite3",
    "sqlcmd",
    "duckdb",
    "clickhouse-client",
    "powershell",
    "pwsh",
    "cmd",
    "hermes",
];
/// Further shells, read like `sh`.
const OTHER_SHELLS: [&str; 7] = ["fish", "ash", "mksh", "csh", "tcsh", "yash", "rbash"];
/// Directories whose programs are known by their bare name.
const SYSTEM_DIRS: [&str; 7] = [
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
];
/// Here-documents of one command that are cut out.
const HEREDOCS_MAX: usize = 32;
/// Wrappers around one program that are followed.
const WRAPPERS_MAX: usize = 32;
/// Programs of the current directory that are looked at behind a `chmod`.
const LOCAL_MAX: usize = 8;

/// A command taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reading {
    /// One line per pipeline, programs by their bare names, words as the shell would see them.
    pub lines: Vec<String>,
    /// The texts with quoted prose blanked, for what is a matter of text.
    pub masked: Vec<String>,
    /// What the structure shows.
    pub inspection: Inspection,
    /// True when it needed more than the budget.
    pub over_budget: bool,
}

/// Takes a command apart.
pub(super) fn read(command: &str, homes: &Homes, budget: Budget) -> Reading {
    let mut reading = Reading::default();
    let text: String = strip_escapes(command).nfkc().collect();
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut open = Vec::new();
    if WINDOWS_PATH.is_match(&text) {
        open.push(text.replace('\\', "/"));
    }
    open.push(text);
    let mut seen = BTreeSet::new();
    let mut left = budget.bytes;
    while let Some(text) = open.pop() {
        if !seen.insert(text.clone()) {
            continue;
        }
        let cost = text.len().saturating_mul(3);
        if seen.len() > budget.payloads.saturating_add(2) || left < cost {
            reading.over_budget = true;
            return reading;
        }
        left -= cost;
        let payloads = one_text(&text, homes, budget, &mut reading);
        open.extend(payloads.into_iter().rev());
    }
    reading
}

/// Reads one text and answers the texts that it would run.
fn one_text(text: &str, homes: &Homes, budget: Budget, reading: &mut Reading) -> Vec<String> {
    let (text, bodies) = cut_heredocs(text);
    let scan = Scan::new(&text);
    let found = commands(&scan);
    let raw = payload::inspect(&scan, &found, budget.payloads);
    reading.over_budget |= raw.too_many;
    reading.inspection.found.extend(raw.found);
    reading.masked.push(mask_prose(&normalize(&without_comments(&scan), homes)));
    let mut stages: Vec<Stage> = Vec::new();
    let mut variables = BTreeMap::new();
    let mut payloads = Vec::new();
    let mut bodies = bodies.into_iter();
    let mut ordered: Vec<&Simple> = found.iter().collect();
    ordered.sort_by_key(|simple| simple.start);
    let mut left = budget.bytes;
    for simple in ordered {
        let cost: usize = simple.words.iter().map(|word| cost(&text[word.range.clone()])).sum();
        let deep = simple.heads.len() > WRAPPERS_MAX;
        let Some(now) = left.checked_sub(cost).filter(|_| !deep) else {
            reading.over_budget = true;
            return Vec::new();
        };
        left = now;
        let stage = Stage::read(&scan, simple, &mut variables, &mut bodies, &mut payloads);
        reading.over_budget |= stage.deep;
        stages.push(stage);
    }
    for line in lines(&scan, &stages) {
        let line = fold_homes(&line, homes);
        let scan = Scan::new(&line);
        let again = payload::inspect(&scan, &commands(&scan), budget.payloads);
        reading.inspection.found.extend(again.found.into_iter().filter(|found| *found != "malformed"));
        reading.lines.push(line);
    }
    payloads
}

/// What it takes to expand a word: substitutions in substitutions are looked at several times.
fn cost(word: &str) -> usize {
    let openers = word.bytes().filter(|byte| matches!(byte, b'$' | b'`')).count();
    word.len().saturating_add(word.len().saturating_mul(openers) / 8)
}

/// One simple command as a stage of a pipeline.
struct Stage {
    start: usize,
    end: usize,
    /// The program with its words, as rules see it.
    shown: String,
    /// Lines of the wrappers around it.
    wrappers: Vec<String>,
    /// A program of the current directory.
    local: bool,
    /// More wrappers than are followed.
    deep: bool,
}

impl Stage {
    fn read(
        scan: &Scan,
        simple: &Simple,
        variables: &mut BTreeMap<String, String>,
        bodies: &mut impl Iterator<Item = Body>,
        payloads: &mut Vec<String>,
    ) -> Self {
        let raw = |range: &Range<usize>| &scan.text()[range.clone()];
        let mut words: Vec<Expanded> = Vec::new();
        for word in &simple.words {
            let text = raw(&word.range);
            if words.is_empty() && is_assignment(text) {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                let value = expand(value, variables).plain;
                if !value.contains('$') && !value.contains('`') {
                    variables.insert(name.to_owned(), value);
                }
                continue;
            }
            words.extend(split(expand(text, variables)));
        }
        let mut stage = Self {
            start: simple.start,
            end: simple.end,
            shown: String::new(),
            wrappers: Vec::new(),
            local: false,
            deep: false,
        };
        stage.unwrap(&words, payloads);
        for redirection in &simple.redirections {
            let target = expand(raw(&redirection.target), variables);
            let operator = if redirection.operator == ">|" { ">" } else { redirection.operator.as_str() };
            stage.shown.extend([" ", operator, " ", tame(&target.shown).as_str()]);
            let is_shell = SHELLS.iter().any(|shell| stage.shown.split(' ').next() == Some(shell));
            match operator {
                "<<" | "<<-" => {
                    if let Some(body) = bodies.next() {
                        payloads.extend(body.runs(is_shell));
                    }
                }
                "<<<" if is_shell => payloads.push(target.plain),
                _ => {}
            }
        }
        stage
    }

    /// Follows wrappers to the program that is run, and notes what it is told to run itself.
    fn unwrap(&mut self, words: &[Expanded], payloads: &mut Vec<String>) {
        let mut words = words.to_vec();
        for _ in 0..WRAPPERS_MAX {
            let Some(first) = words.first() else { return };
            let name = known_name(&first.plain);
            let plain: Vec<String> = words.iter().map(|word| word.plain.clone()).collect();
            payloads.extend(carried(&name, &plain[1..]));
            let inner = match name.as_str() {
                "find" => after_exec(&plain),
                _ => extended_wrapper(&name).and_then(|spec| program_behind(&plain, 1, spec)),
            };
            self.local = first.plain.starts_with("./");
            self.shown = show(&name, &words[1..]);
            let Some(inner) = inner.filter(|inner| *inner < words.len()) else { return };
            let head: Vec<String> = words[1..inner].iter().map(|word| tame(&word.shown)).collect();
            let wrapped = known_name(&words[inner].plain);
            self.wrappers.push(match name.as_str() {
                "find" => self.shown.clone(),
                "xargs" => format!("xargs {wrapped}"),
                // Rules about what outlives its terminal look at both.
                "nohup" | "setsid" => format!("{name} {}", show(&wrapped, &words[inner + 1..])),
                _ => format!("{name} {}", head.join(" ")),
            });
            words.drain(..inner);
        }
        self.deep = true;
    }
}

/// A word that an unquoted blank splits is several.
fn split(word: Expanded) -> Vec<Expanded> {
    if !word.shown.contains(char::is_whitespace) {
        return vec![word];
    }
    word.shown
        .split_whitespace()
        .map(|part| Expanded { plain: part.to_owned(), shown: part.to_owned() })
        .collect()
}

/// A program's name as rules know it.
fn known_name(name: &str) -> String {
    let bare = SYSTEM_DIRS.iter().find_map(|dir| name.strip_prefix(dir)).unwrap_or(name);
    let bare = if bare.contains('/') { bare } else { base_name(bare) };
    if OTHER_SHELLS.contains(&bare) { "sh".to_owned() } else { tame(bare) }
}

/// The line of one program.
fn show(name: &str, args: &[Expanded]) -> String {
    let mention = MENTION.contains(&name)
        || (name == "git"
            && git_words(args).first().is_some_and(|word| GIT_MENTION.contains(&word.plain.as_str())));
    let args = if name == "git" { git_words(args) } else { args };
    let mut words = vec![name.to_owned()];
    let mut skip = false;
    for (at, arg) in args.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let text = arg.plain.as_str();
        let sub_command = name == "git" && at == 0;
        words.push(match name {
            _ if mention && !sub_command && !text.starts_with('-') => "_".to_owned(),
            "kill" if matches!(text, "-s" | "-n" | "--signal") => {
                skip = true;
                continue;
            }
            "rm" if text.starts_with("--") && !matches!(text, "--" | "--recursive") => continue,
            "rm" if text.starts_with('/') => clean_path(&arg.shown),
            _ if CODE.contains(&name) => arg.plain.replace(['\n', '\r'], " "),
            _ => tame(&arg.shown),
        });
    }
    words.join(" ")
}

/// The words of git behind its global options.
fn git_words(args: &[Expanded]) -> &[Expanded] {
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.plain.starts_with('-')) {
        let takes = matches!(word.plain.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace");
        at += if takes { 2 } else { 1 };
    }
    args.get(at..).unwrap_or_default()
}

/// A word that is the name of a template is not the file that is made from it.
fn tame(word: &str) -> String {
    let template = [".env.example", ".env.sample", ".env.template", ".env.dist"];
    if template.iter().any(|end| word.ends_with(end)) {
        word.replace(".env.", "env-")
    } else {
        word.to_owned()
    }
}

/// A path without empty, `.` and `..` components and without slash at the end.
fn clean_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The program behind `find -exec`, `-execdir`, `-ok`.
fn after_exec(words: &[String]) -> Option<usize> {
    let at =
        words.iter().position(|word| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))?;
    Some(at + 1)
}

fn extended_wrapper(name: &str) -> Option<&'static Spec> {
    options::wrapper(name).or_else(|| options::OTHER_WRAPPERS.iter().find(|spec| spec.names.contains(&name)))
}

/// Texts that a program is told to run.
fn carried(name: &str, args: &[String]) -> Vec<String> {
    let behind = |flags: &[&str]| {
        args.iter().position(|arg| flags.contains(&arg.as_str())).and_then(|at| args.get(at + 1)).cloned()
    };
    match name {
        "eval" => vec![args.join(" ")],
        "trap" => args.first().cloned().into_iter().collect(),
        "su" | "runuser" | "script" => behind(&["-c", "--command"]).into_iter().collect(),
        "env" => behind(&["-S", "--split-string"]).into_iter().collect(),
        "watch" => {
            vec![args.iter().filter(|arg| !arg.starts_with('-')).cloned().collect::<Vec<_>>().join(" ")]
        }
        _ if SHELLS.contains(&name) => shell_command(args).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The argument of a shell's `-c`.
fn shell_command(args: &[String]) -> Option<String> {
    let at = args.iter().position(|arg| {
        arg.strip_prefix('-').is_some_and(|bundle| !bundle.starts_with('-') && bundle.contains('c'))
    })?;
    args[at + 1..].iter().find(|arg| !arg.starts_with(['-', '+'])).cloned()
}

/// Joins the stages into pipelines, one line each; the stages of a longer one follow by themselves.
fn lines(scan: &Scan, stages: &[Stage]) -> Vec<String> {
    let bytes = scan.text().as_bytes();
    let by_end: BTreeMap<usize, usize> =
        stages.iter().enumerate().map(|(at, stage)| (stage.end, at)).collect();
    let before =
        |at: usize| (0..at).rev().find(|at| !bytes[*at].is_ascii_whitespace()).map_or(0, |last| last + 1);
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    let mut headless: BTreeSet<usize> = BTreeSet::new();
    let mut is_next: BTreeSet<usize> = BTreeSet::new();
    for (at, stage) in stages.iter().enumerate() {
        let mut end = before(stage.start);
        if end > 0 && bytes[end - 1] == b'&' && end > 1 && bytes[end - 2] == b'|' {
            end -= 1;
        }
        let piped = end > 0 && bytes[end - 1] == b'|' && !(end > 1 && matches!(bytes[end - 2], b'|' | b'>'));
        if !piped {
            continue;
        }
        match by_end.get(&before(end - 1)) {
            Some(previous) => {
                next.insert(*previous, at);
                is_next.insert(at);
            }
            None => {
                headless.insert(at);
            }
        }
    }
    let mut lines: Vec<String> = stages.iter().flat_map(|stage| stage.wrappers.iter().cloned()).collect();
    for first in (0..stages.len()).filter(|at| !is_next.contains(at)) {
        let mut line = if headless.contains(&first) { "_ | ".to_owned() } else { String::new() };
        let mut at = first;
        let mut single = Vec::new();
        loop {
            single.push(stages[at].shown.clone());
            line.push_str(&stages[at].shown);
            let Some(following) = next.get(&at) else { break };
            line.push_str(" | ");
            at = *following;
        }
        if background(bytes, stages[at].end) {
            line.push_str(" &");
        }
        if line.starts_with("chmod ") {
            let later = stages[at + 1..].iter().filter(|stage| stage.local).take(LOCAL_MAX);
            line.extend(later.map(|stage| format!("; {}", stage.shown)));
        }
        lines.push(line);
        if single.len() > 1 {
            lines.extend(single);
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

fn background(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(end..).unwrap_or_default();
    let at = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    at.is_some_and(|at| rest[at] == b'&' && rest.get(at + 1) != Some(&b'&'))
}

fn without_comments(scan: &Scan) -> String {
    scan.text().char_indices().filter(|(at, _)| scan.kind(*at) != Kind::Comment).map(|(_, ch)| ch).collect()
}

/// The body of a here-document.
struct Body {
    text: String,
    /// The delimiter was quoted, so that nothing in the body is expanded.
    literal: bool,
}

impl Body {
    /// What of it is run: all of it by a shell, else only the substitutions of an expanded body.
    fn runs(self, by_shell: bool) -> Option<String> {
        if by_shell {
            return Some(self.text);
        }
        let substitutes = !self.literal && (self.text.contains("$(") || self.text.contains('`'));
        substitutes.then(|| format!(": \"{}\"", self.text.replace('"', "\\\"")))
    }
}

/// Takes the bodies of here-documents out of a text, in order.
fn cut_heredocs(text: &str) -> (String, Vec<Body>) {
    let mut text = text.to_owned();
    let mut bodies = Vec::new();
    let mut done = 0;
    while bodies.len() < HEREDOCS_MAX && text[done..].contains("<<") {
        let scan = Scan::new(&text);
        let found = commands(&scan);
        let first = found
            .iter()
            .flat_map(|simple| &simple.redirections)
            .filter(|one| matches!(one.operator.as_str(), "<<" | "<<-") && one.target.start >= done)
            .min_by_key(|one| one.target.start);
        let Some(one) = first else { break };
        let written = &text[one.target.clone()];
        let delimiter = unquote(written);
        let literal = delimiter != written;
        let end = one.target.end;
        let line_end =
            (end..text.len()).find(|at| text.as_bytes()[*at] == b'\n' && scan.kind(*at) == Kind::Plain);
        let Some(begin) = line_end.map(|at| at + 1) else { break };
        let mut at = begin;
        let mut body_end = text.len();
        let mut cut_end = text.len();
        for line in text[begin..].split_inclusive('\n') {
            let bare = line.trim_end_matches('\n');
            let bare = if one.operator == "<<-" { bare.trim_start_matches('\t') } else { bare };
            if bare == delimiter {
                body_end = at;
                cut_end = at + line.len();
                break;
            }
            at += line.len();
        }
        bodies.push(Body { text: text[begin..body_end].to_owned(), literal });
        text.replace_range(begin..cut_end, "");
        done = end;
    }
    (text, bodies)
}

/// True when `sudo` is told to read the password from its input, however the option is written.
pub(super) fn sudo_reads_stdin(reading: &Reading) -> bool {
    reading.lines.iter().flat_map(|line| line.split(" | ")).any(|stage| {
        let mut words = stage.split(' ');
        words.next() == Some("sudo")
            && words.any(|word| {
                word == "--stdin"
                    || word
                        .strip_prefix('-')
                        .is_some_and(|bundle| !bundle.starts_with('-') && bundle.contains('S'))
            })
    })
}

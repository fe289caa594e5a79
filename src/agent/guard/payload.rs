//! Programs that run what an option hands them: read by structure, not by pattern.
//!
//! Interpreters with inline code, shells with `-c`, reading tools with a helper program, and the spellings with braces
//! or globs that can become such an option. What they would run is handed back, so that the rules see it, too.
//!
//! Never: a pattern over the raw text; quoted words are data here.

use regex::Regex;

use super::options::{self, Class, Runner};
use super::scan::{Kind, Scan};
use super::words::{Simple, Word, base_name, unquote};

/// Longest word that is tried as a glob, in bytes.
const GLOB_BYTES_MAX: usize = 256;

/// What the structure of a command shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// Names of the structures found, as `rules.toml` has them.
    pub found: Vec<&'static str>,
    /// Texts that would be run.
    pub payloads: Vec<String>,
    /// True when there are more payloads than allowed; the rest is missing.
    pub too_many: bool,
    /// A `grep` call that its own program would refuse.
    pub malformed_grep: bool,
}

impl Inspection {
    /// True when the structure was found.
    pub fn has(&self, structure: &str) -> bool {
        self.found.contains(&structure)
    }

    fn carry(&mut self, payload: String, max: usize) {
        if self.payloads.len() < max {
            self.payloads.push(payload);
        } else {
            self.too_many = true;
        }
    }

    fn note(&mut self, structure: &'static str) {
        if !self.has(structure) {
            self.found.push(structure);
        }
    }
}

/// Reads every simple command of a scanned text; at most `payloads_max` payloads are handed back.
pub fn inspect(scan: &Scan, commands: &[Simple], payloads_max: usize) -> Inspection {
    let mut seen = Inspection::default();
    for simple in commands {
        for (name, args) in simple.programs() {
            program(scan, simple, (base_name(name), args), payloads_max, &mut seen);
            if seen.too_many {
                return seen;
            }
        }
    }
    seen
}

fn program(
    scan: &Scan,
    simple: &Simple,
    (name, args): (&str, &[Word]),
    payloads_max: usize,
    seen: &mut Inspection,
) {
    let broken = || scan.unclosed_within(simple.start..simple.end);
    let lower = name.to_lowercase();
    if options::GREP.names.contains(&lower.as_str()) {
        seen.malformed_grep |= broken() || lacks_argument(scan, args);
    } else if lower == "find" {
        let targets = ["-delete", "-exec", "-execdir"];
        if args.iter().any(|word| can_become(scan, word, &targets)) {
            seen.note("find_dynamic");
        }
    } else if options::SHELLS.contains(&lower.as_str()) {
        if broken() {
            seen.note("malformed");
        }
        let (runs, payload) = shell_payload(scan, args);
        if runs {
            seen.note("shell_c");
        }
        if let Some(payload) = payload {
            seen.carry(payload, payloads_max);
        }
    } else if let Some(runner) = options::runner(&lower) {
        if broken() {
            seen.note("malformed");
        }
        match runner.class {
            Class::ReadTool => read_tool(scan, args, runner, payloads_max, seen),
            Class::PowerShell => powershell(scan, args, runner, seen),
            Class::Interpreter | Class::Subcommand => interpreter(scan, simple, args, runner, seen),
        }
    }
}

fn text_of(scan: &Scan, word: &Word) -> String {
    unquote(&scan.text()[word.range.clone()])
}

/// True when the last option of a `grep` call wants a value and none follows.
fn lacks_argument(scan: &Scan, args: &[Word]) -> bool {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let word = text_of(scan, word);
        if word == "--" {
            return false;
        }
        let wants = word.len() > 1 && word.starts_with('-') && options::GREP.takes_next(&word);
        if wants && at + 1 >= args.len() {
            return true;
        }
        at += if wants { 2 } else { 1 };
    }
    false
}

/// Whether a shell has `-c`, and what it would run, if the argument is there.
fn shell_payload(scan: &Scan, args: &[Word]) -> (bool, Option<String>) {
    let mut at = 0;
    let mut runs = false;
    while let Some(word) = args.get(at) {
        let word = text_of(scan, word);
        let Some(bundle) = word.strip_prefix(['-', '+']).filter(|bundle| !bundle.is_empty()) else { break };
        if word == "--" {
            at += 1;
            break;
        }
        if !bundle.starts_with('-') {
            if !bundle.chars().all(|ch| options::SHELL_LETTERS.contains(ch)) {
                break;
            }
            runs |= word.starts_with('-') && bundle.contains('c');
        }
        at += if options::SHELL.takes_next(&word.replacen('+', "-", 1)) { 2 } else { 1 };
    }
    (runs, args.get(at).filter(|_| runs).map(|word| text_of(scan, word)))
}

fn interpreter(scan: &Scan, simple: &Simple, args: &[Word], runner: &Runner, seen: &mut Inspection) {
    let mut at = 0;
    let mut script = false;
    while let Some(word) = args.get(at) {
        let word = text_of(scan, word);
        if !word.starts_with('-') || word == "-" || word == "--" {
            if runner.class == Class::Subcommand && runner.runs.contains(&word.as_str()) {
                seen.note("inline_code");
            }
            script = word != "-";
            break;
        }
        match runs_here(&word, runner) {
            Runs::Code => {
                seen.note("inline_code");
                return;
            }
            Runs::Ends => return,
            Runs::Nothing => {}
        }
        at += if runner.spec.takes_next(&word) { 2 } else { 1 };
    }
    if !script && simple.has_heredoc() {
        seen.note("interpreter_heredoc");
    }
}

enum Runs {
    Code,
    /// A module or script follows; what comes behind belongs to it.
    Ends,
    Nothing,
}

fn runs_here(word: &str, runner: &Runner) -> Runs {
    if word.starts_with("--") {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        return if runner.runs.contains(&name) { Runs::Code } else { Runs::Nothing };
    }
    for letter in word.chars().skip(1) {
        if runner.runs.iter().any(|run| run.strip_prefix('-').is_some_and(|run| is_letter(run, letter))) {
            return Runs::Code;
        }
        if runner.ends.contains(letter) {
            return Runs::Ends;
        }
        if runner.spec.short.contains(letter) {
            break;
        }
    }
    Runs::Nothing
}

fn is_letter(text: &str, letter: char) -> bool {
    let mut chars = text.chars();
    chars.next() == Some(letter) && chars.next().is_none()
}

fn powershell(scan: &Scan, args: &[Word], runner: &Runner, seen: &mut Inspection) {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let word = text_of(scan, word).to_lowercase();
        if word.len() < 2 || !word.starts_with('-') {
            return;
        }
        if runner.runs.iter().any(|run| run.starts_with(&word)) {
            seen.note("inline_code");
            return;
        }
        at += if runner.spec.takes_next(&word) { 2 } else { 1 };
    }
}

fn read_tool(scan: &Scan, args: &[Word], runner: &Runner, payloads_max: usize, seen: &mut Inspection) {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        if can_become(scan, word, runner.runs) {
            seen.note("dynamic_flag");
        }
        let text = text_of(scan, word);
        if text == "--" {
            return;
        }
        let next = || args.get(at + 1).map(|word| text_of(scan, word));
        if let Some(program) = named_program(&text, runner, next) {
            seen.note("read_tool");
            seen.carry(program, payloads_max);
        }
        let named = runner.runs.contains(&text.as_str()) && !matches!(text.as_str(), "-H" | "--html");
        at += if named || (text.starts_with('-') && runner.spec.takes_next(&text)) { 2 } else { 1 };
    }
}

/// The helper program that this option names, if it names one.
fn named_program(text: &str, runner: &Runner, next: impl Fn() -> Option<String>) -> Option<String> {
    let program = if text.starts_with("--") {
        match text.split_once('=') {
            Some((name, program)) => runner.runs.contains(&name).then(|| program.to_owned()),
            None if text == "--html" => None,
            None => runner.runs.contains(&text).then(next).flatten(),
        }
    } else {
        let run = runner.runs.iter().find(|run| !run.starts_with("--") && text.starts_with(**run))?;
        if text.len() > run.len() {
            Some(text[run.len()..].to_owned())
        } else if *run == "-H" {
            None
        } else {
            next()
        }
    };
    program.filter(|program| !program.trim().is_empty())
}

/// True when a word with unquoted braces or globs can expand to one of the options.
fn can_become(scan: &Scan, word: &Word, options: &[&str]) -> bool {
    let raw = &scan.text()[word.range.clone()];
    if raw.len() > GLOB_BYTES_MAX || !raw.starts_with(['-', '{', '[', '?']) {
        return false;
    }
    let Some(pattern) = expansion(scan, word.range.start, raw) else { return false };
    Regex::new(&pattern).is_ok_and(|pattern| options.iter().any(|option| pattern.is_match(option)))
}

/// The pattern of what a word can expand to; `None` when nothing in it expands.
fn expansion(scan: &Scan, from: usize, raw: &str) -> Option<String> {
    let mut pattern = String::from("^(?:");
    let mut expands = false;
    let mut braces = 0usize;
    let mut class = false;
    for (at, ch) in raw.char_indices() {
        if scan.kind(from + at) != Kind::Plain {
            if !matches!(ch, '\'' | '"' | '\\') {
                pattern.push_str(&regex::escape(&ch.to_string()));
            }
            continue;
        }
        expands |= matches!(ch, '*' | '?' | '[' | '{');
        match ch {
            ']' if class => {
                class = false;
                pattern.push(']');
            }
            '!' if class && pattern.ends_with('[') => pattern.push('^'),
            '-' if class => pattern.push('-'),
            '[' if !class && raw[at..].contains(']') => {
                class = true;
                pattern.push('[');
            }
            '*' if !class => pattern.push_str(".*"),
            '?' if !class => pattern.push('.'),
            '{' if !class && raw[at..].contains('}') => {
                braces += 1;
                pattern.push_str("(?:");
            }
            ',' if braces > 0 => pattern.push('|'),
            '}' if braces > 0 => {
                braces -= 1;
                pattern.push(')');
            }
            other => pattern.push_str(&regex::escape(&other.to_string())),
        }
    }
    pattern.push_str(&")".repeat(braces));
    pattern.push_str(")$");
    expands.then_some(pattern)
}

/// Texts that `env -S` would split and run.
pub fn split_strings(scan: &Scan, commands: &[Simple]) -> Vec<String> {
    let mut found = Vec::new();
    for simple in commands {
        for (_, args) in simple.programs().filter(|(name, _)| base_name(name) == "env") {
            let mut words = args.iter().map(|word| text_of(scan, word));
            while let Some(word) = words.next() {
                if word == "-S" || word == "--split-string" {
                    found.extend(words.next());
                } else if let Some(text) = word.strip_prefix("-S").or(word.strip_prefix("--split-string=")) {
                    found.push(text.to_owned());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::guard::words::commands;

    fn look(text: &str) -> Inspection {
        let scan = Scan::new(text);
        inspect(&scan, &commands(&scan), 8)
    }

    #[test]
    fn an_operand_ends_the_options_of_an_interpreter() {
        assert!(look("python -W ignore -c 1").has("inline_code"));
        assert!(!look("python x.py -c 1").has("inline_code"));
        assert!(!look("python -m mod -c 1").has("inline_code"));
    }

    #[test]
    fn a_shell_hands_back_what_it_would_run() {
        assert_eq!(look("bash -x -lc 'ls -a' y").payloads, ["ls -a"]);
        assert!(look("bash --rcfile x y.sh -c ls").payloads.is_empty());
    }

    #[test]
    fn the_value_of_another_option_names_no_helper() {
        assert!(look("rg -e --pre foo").payloads.is_empty());
        assert_eq!(look("rg foo --pre=./x").payloads, ["./x"]);
        assert!(look("man -H ls").payloads.is_empty());
    }

    #[test]
    fn more_payloads_than_allowed_are_reported() {
        assert!(!look(&"sh -c x;".repeat(8)).too_many);
        assert!(look(&"sh -c x;".repeat(9)).too_many);
    }

    #[test]
    fn quoted_braces_do_not_expand() {
        assert!(look("find . -del{ete,x}").has("find_dynamic"));
        assert!(!look("find . '-del{ete,x}'").has("find_dynamic"));
    }
}

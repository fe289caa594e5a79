//! The user's own lists: deny rules and the permanent allowlist.
//!
//! Deny globs are tried on every reading of a command and on every program that it runs. The allowlist is tried on
//! the command text alone, and never on a command that could smuggle a second one along.

use regex::Regex;

use super::normalize::{Homes, normalize};
use super::payload;
use super::scan::Scan;
use super::variants::{Budget, unfold};
use super::words::{base_name, commands};

/// A deny rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The rule as the user wrote it.
    pub rule: String,
    /// Its place among the rules that are not blank.
    pub index: usize,
}

/// The first deny rule that matches (Hermes `approvals.deny`).
pub fn denied(command: &str, deny: &[String], homes: &Homes, budget: Budget) -> Option<Denied> {
    let rules: Vec<&String> = deny.iter().filter(|rule| !rule.trim().is_empty()).collect();
    if rules.is_empty() {
        return None;
    }
    let mut texts = unfold(command, homes, budget).variants;
    program_lines(command, homes, budget, &mut texts);
    rules.iter().enumerate().find_map(|(index, rule)| {
        let pattern = glob(rule.trim(), true)?;
        texts
            .iter()
            .any(|text| pattern.is_match(text) || pattern.is_match(text.trim()))
            .then(|| Denied { rule: (*rule).clone(), index })
    })
}

/// Every program with its arguments, by its full and by its base name, into what shells and `env -S` would run.
fn program_lines(command: &str, homes: &Homes, budget: Budget, texts: &mut Vec<String>) {
    let mut left = budget.bytes;
    let mut open = vec![command.to_owned()];
    while let Some(text) = open.pop() {
        let scan = Scan::new(&text);
        let simple = commands(&scan);
        for one in &simple {
            for (at, name) in &one.heads {
                let rest = collapsed(&scan, one.words[*at].range.end, one.end);
                for name in [name.as_str(), base_name(name)] {
                    let line = format!("{name}{rest}");
                    let folded = normalize(&line, homes);
                    let Some(now) = left.checked_sub(line.len() + folded.len()) else { return };
                    left = now;
                    texts.extend([line, folded]);
                }
            }
        }
        let mut payloads = payload::inspect(&scan, &simple, budget.payloads).payloads;
        payloads.extend(payload::split_strings(&scan, &simple));
        for inner in payloads {
            let Some(now) = left.checked_sub(inner.len()) else { return };
            left = now;
            open.push(inner);
        }
    }
}

/// A piece of text with unquoted white space collapsed to single blanks, none at the end.
fn collapsed(scan: &Scan, from: usize, end: usize) -> String {
    let end = end.max(from);
    let mut kept = String::with_capacity(end - from);
    for (at, ch) in scan.text()[from..end].char_indices() {
        if !ch.is_whitespace() || scan.quoted(from + at) {
            kept.push(ch);
        } else if !kept.ends_with(' ') {
            kept.push(' ');
        }
    }
    kept.trim_end().to_owned()
}

/// True when an entry of the allowlist is this command, or a glob that matches all of it.
pub fn allowed(command: &str, allowlist: &[String]) -> bool {
    let command = command.trim();
    if command.is_empty() || is_compound(command) {
        return false;
    }
    allowlist.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()).any(|entry| {
        entry == command
            || (entry.contains(['*', '?', '['])
                && glob(entry, false).is_some_and(|glob| glob.is_match(command)))
    })
}

/// True when a command may hold more than one command (Hermes tools/approval_floors.py:144).
pub fn is_compound(command: &str) -> bool {
    let mut quote: Option<char> = None;
    let mut hidden_control = false;
    let mut chars = command.chars().peekable();
    while let Some(ch) = chars.next() {
        match (quote, ch) {
            (Some(open), _) if ch == open => quote = None,
            (Some('"'), '$' | '`') => return true,
            (Some('"') | None, '\\') => hidden_control |= chars.next().is_some_and(is_control),
            (Some(_), _) => hidden_control |= is_control(ch),
            (None, '\'' | '"') => quote = Some(ch),
            (None, '$') if chars.peek() == Some(&'(') => return true,
            (None, _) if is_control(ch) => return true,
            (None, _) => {}
        }
    }
    quote.is_some() || (hidden_control && hands_text_on(command))
}

fn is_control(ch: char) -> bool {
    matches!(ch, '\n' | '\r' | ';' | '&' | '|' | '<' | '>' | '`')
}

/// True when an option hands its value to another program: `-c`, `-lc`, `-e`, `--command`, `--eval`.
fn hands_text_on(command: &str) -> bool {
    command.split_whitespace().any(|word| {
        let long = word.split_once('=').map_or(word, |(name, _)| name);
        let bundle = word.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
        matches!(long, "--command" | "--eval")
            || bundle.is_some_and(|bundle| {
                bundle.ends_with(['c', 'e']) && bundle.chars().all(|ch| ch.is_ascii_alphabetic())
            })
    })
}

/// A shell glob over a whole text, `*` across slashes and newlines as well.
pub fn glob(glob: &str, any_case: bool) -> Option<Regex> {
    let chars: Vec<char> = glob.chars().collect();
    let mut pattern = String::from(if any_case { "(?is)^" } else { "(?s)^" });
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            '[' => {
                if let Some(end) = class_end(&chars, at) {
                    pattern.push_str(&class(&chars[at + 1..end]));
                    at = end;
                } else {
                    pattern.push_str("\\[");
                }
            }
            ch => pattern.push_str(&regex::escape(&ch.to_string())),
        }
        at += 1;
    }
    pattern.push('$');
    Regex::new(&pattern).ok()
}

/// Where the class that opens at `at` closes; a bracket right behind the opening one belongs to it.
fn class_end(chars: &[char], at: usize) -> Option<usize> {
    let mut from = at + 1;
    if chars.get(from) == Some(&'!') {
        from += 1;
    }
    if chars.get(from) == Some(&']') {
        from += 1;
    }
    (from..chars.len()).find(|end| chars[*end] == ']')
}

fn class(members: &[char]) -> String {
    let (negated, members) = match members.split_first() {
        Some(('!', rest)) => (true, rest),
        _ => (false, members),
    };
    let mut ranges = String::new();
    let mut at = 0;
    while at < members.len() {
        let escape = |ch: char| format!("\\x{{{:X}}}", ch as u32);
        if at + 2 < members.len() && members[at + 1] == '-' {
            if members[at] <= members[at + 2] {
                ranges.extend([escape(members[at]), "-".to_owned(), escape(members[at + 2])]);
            }
            at += 3;
        } else {
            ranges.push_str(&escape(members[at]));
            at += 1;
        }
    }
    match (ranges.is_empty(), negated) {
        // A class whose ranges all run backwards holds nothing.
        (true, false) => "[^\\s\\S]".to_owned(),
        (true, true) => "[\\s\\S]".to_owned(),
        (false, false) => format!("[{ranges}]"),
        (false, true) => format!("[^{ranges}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_covers_the_whole_text() {
        let matches = |pattern: &str, text: &str| glob(pattern, false).unwrap().is_match(text);
        assert!(matches("git [ps]*", "git push\nx") && !matches("git [!p]*", "git push"));
        assert!(matches("[]a]", "]") && matches("a[", "a[") && !matches("[z-a]", "m"));
        assert!(!matches("ls", "ls -a"));
    }

    #[test]
    fn deny_rules_reach_into_env_and_shells() {
        let deny = ["kubectl delete*".to_owned()];
        let hit = |command: &str| {
            denied(command, &deny, &Homes::default(), Budget { bytes: 100_000, payloads: 8 }).is_some()
        };
        assert!(hit("env -S 'kubectl  delete pod'"));
        assert!(hit("bash -c \"sudo /usr/bin/kubectl delete pod\""));
        assert!(!hit("echo kubectl get"));
    }
}

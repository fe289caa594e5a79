//! The readings of one command that the rules search, in a fixed order.
//!
//! A shell sees through quotes, continuations and substitutions that a pattern does not. Each variant undoes one kind
//! of disguise; a rule matches if it matches any of them.
//!
//! Never: more derived text than the budget. A command that needs more is refused by its caller.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use indexmap::IndexSet;
use regex::Regex;

use super::normalize::{Homes, normalize};
use super::payload::{self, Inspection};
use super::scan::{Scan, mask_quoted_newlines, with_lines_at};
use super::words::{Simple, base_name, commands, starts, unquote};
use crate::policy;

/// Everything that one command was unfolded into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfolded {
    /// The readings, first the plain one.
    pub variants: Vec<String>,
    /// What the structure of the command shows.
    pub inspection: Inspection,
    /// Names of the programs that the plain reading runs.
    pub programs: Vec<String>,
    /// True when the readings outgrew the budget and some are missing.
    pub over_budget: bool,
}

pub(super) static WINDOWS_PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[^A-Za-z0-9])[A-Za-z]:\\|(?:^|[\s"'=])\\\\[A-Za-z0-9]"#)
        .expect("the pattern is written correctly")
});

/// Bounds of the guard's own work on one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of all readings together.
    pub bytes: usize,
    /// Texts that shells and other programs would run.
    pub payloads: usize,
}

impl Budget {
    /// The budget that the knobs set.
    pub fn of(knobs: &policy::Guard) -> Self {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self { bytes: size(knobs.derived_chars_max), payloads: size(knobs.payloads_max) }
    }
}

struct Pile {
    texts: IndexSet<String>,
    left: usize,
    over: bool,
}

impl Pile {
    fn add(&mut self, text: String) {
        if self.texts.contains(&text) {
            return;
        }
        match self.left.checked_sub(text.len()) {
            Some(left) => {
                self.left = left;
                self.texts.insert(text);
            }
            None => self.over = true,
        }
    }
}

/// Unfolds a command into its readings (Hermes tools/approval_detection.py:1430).
pub fn unfold(command: &str, homes: &Homes, budget: Budget) -> Unfolded {
    let masked = mask_quoted_newlines(command);
    let plain = blank_grep_patterns(&normalize(&masked, homes));
    let mut pile = Pile { texts: IndexSet::new(), left: budget.bytes, over: false };
    pile.add(plain.clone());
    if WINDOWS_PATH.is_match(command) {
        pile.add(normalize(&masked.replace('\\', "/"), homes));
    }
    let raw_scan = Scan::new(&masked);
    let raw_commands = commands(&raw_scan);
    let inspection = payload::inspect(&raw_scan, &raw_commands, budget.payloads);
    pile.over |= inspection.too_many;
    add_payloads(&inspection.payloads, homes, budget.payloads, &mut pile);
    let lined = with_lines_at(&masked, &starts(&raw_scan));
    // Most commands are plain from the start: what was seen in them is not looked for again.
    let simple = if plain == masked {
        pile.add(lined.clone());
        raw_commands
    } else {
        let scan = Scan::new(&plain);
        pile.add(with_lines_at(&plain, &starts(&scan)));
        commands(&scan)
    };
    pile.add(normalize(&lined, homes));
    add_deobfuscated(&plain, &simple, &mut pile);
    let programs = simple
        .iter()
        .flat_map(|simple| simple.heads.iter().map(|(_, name)| base_name(name).to_owned()))
        .collect();
    Unfolded { variants: pile.texts.into_iter().collect(), inspection, programs, over_budget: pile.over }
}

/// The text with every command start on a line of its own.
fn marked(text: &str) -> String {
    with_lines_at(text, &starts(&Scan::new(text)))
}

fn add_payloads(payloads: &[String], homes: &Homes, payloads_max: usize, pile: &mut Pile) {
    let mut open: Vec<String> = payloads.iter().rev().cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(payload) = open.pop() {
        if pile.over {
            return;
        }
        // A payload inside a payload is found from the outside as well.
        if !seen.insert(payload.clone()) {
            continue;
        }
        pile.over |= seen.len() > payloads_max;
        let masked = mask_quoted_newlines(&payload);
        let plain = normalize(&masked, homes);
        let scan = Scan::new(&masked);
        let inner = payload::inspect(&scan, &commands(&scan), payloads_max);
        pile.over |= inner.too_many;
        pile.add(plain.clone());
        pile.add(marked(&plain));
        pile.add(normalize(&with_lines_at(&masked, &starts(&scan)), homes));
        open.extend(inner.payloads.into_iter().rev());
    }
}

/// Adds the readings with command words undisguised; words inside words go into further ones.
fn add_deobfuscated(text: &str, simple: &[Simple], pile: &mut Pile) {
    let mut words: Vec<(Range<usize>, &str)> = simple
        .iter()
        .flat_map(|simple| {
            simple.heads.iter().map(|(at, name)| (simple.words[*at].range.clone(), name.as_str()))
        })
        .filter(|(range, name)| !name.is_empty() && &text[range.clone()] != *name)
        .collect();
    words.sort_by_key(|(range, _)| range.start);
    while !words.is_empty() && !pile.over {
        let mut undisguised = String::with_capacity(text.len());
        let mut from = 0;
        let mut later = Vec::new();
        for (range, name) in words {
            if range.start < from {
                later.push((range, name));
                continue;
            }
            undisguised.push_str(&text[from..range.start]);
            undisguised.push_str(name);
            from = range.end;
        }
        undisguised.push_str(&text[from..]);
        pile.add(undisguised);
        words = later;
    }
}

/// Blanks the single-quoted patterns of `egrep` and `grep -P`, which are full of characters that look like shell.
fn blank_grep_patterns(text: &str) -> String {
    if !text.contains("grep") {
        return text.to_owned();
    }
    let scan = Scan::new(text);
    let mut blanks: Vec<Range<usize>> = Vec::new();
    for simple in commands(&scan) {
        for (name, args) in simple.programs() {
            let perl = |word: &str| {
                word == "--perl-regexp"
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains('P'))
            };
            let extended = match base_name(name) {
                "egrep" => true,
                "grep" => args.iter().any(|word| perl(&unquote(&text[word.range.clone()]))),
                _ => false,
            };
            let pattern = args.iter().find(|word| text[word.range.clone()].starts_with('\''));
            if let Some(word) = pattern.filter(|_| extended) {
                blanks.push(word.range.clone());
            }
        }
    }
    blanks.sort_by_key(|range| range.start);
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for range in blanks {
        if range.start >= from {
            kept.push_str(&text[from..range.start]);
            kept.push_str("''");
            from = range.end;
        }
    }
    kept.push_str(&text[from..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { bytes: 1_000, payloads: 8 };

    fn variants(command: &str) -> Vec<String> {
        unfold(command, &Homes::default(), BUDGET).variants
    }

    #[test]
    fn the_plain_reading_comes_first_and_nothing_twice() {
        assert_eq!(variants("ls -a"), ["ls -a", "\nls -a"]);
    }

    #[test]
    fn what_a_shell_would_run_is_read_as_well() {
        assert!(variants("bash -c 'sh -c \"r\\m x\"'").contains(&"rm x".to_owned()));
    }

    #[test]
    fn too_many_readings_are_reported() {
        let command = format!("bash -c '{}'", "x".repeat(400));
        assert!(unfold(&command, &Homes::default(), BUDGET).over_budget);
    }
}

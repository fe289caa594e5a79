//! The frozen snapshot: what the system prompt shows of a store.
//!
//! It is rendered when the files are loaded and never changes until the next load, whatever is written meanwhile;
//! this is what keeps the prompt's prefix stable. Called by the store and the prompt. Never: a change of the store.

use super::answer::Target;
use super::entries::{DELIMITER, join, size};
use crate::agent::text::thousands;
use crate::agent::threats::{Finding, Scanner, Scope};

/// What entries that are masked begin with; they are not scanned again.
const MASK: &str = "[BLOCKED:";
/// Width of the rule lines, in characters.
const RULE_CHARS: usize = 46;

/// One entry as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The entry, or what stands in its place.
    pub text: String,
    /// What the scanner saw; empty when the entry is shown as it is.
    pub masked_for: Vec<Finding>,
}

/// A store as the prompt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The store.
    pub target: Target,
    /// The entries.
    pub entries: Vec<Shown>,
    /// Percentage of the limit that the shown text takes.
    pub percent: u64,
    /// Length of the shown text, in characters.
    pub size: u64,
    /// Limit, in characters.
    pub limit: u64,
}

impl Block {
    /// The block of these entries; `None` when there are none.
    pub(super) fn of(target: Target, live: &[String], limit: u64, scanner: Option<&Scanner>) -> Option<Self> {
        if live.is_empty() {
            return None;
        }
        let entries: Vec<Shown> = live.iter().map(|entry| show(target, entry, scanner)).collect();
        let size = size(entries.iter().map(|shown| &shown.text));
        Some(Self { target, entries, percent: percent(size, limit), size, limit })
    }

    /// The text for the system prompt.
    pub fn render(&self) -> String {
        let rule = "═".repeat(RULE_CHARS);
        let title = match self.target {
            Target::Memory => "MEMORY (your personal notes)",
            Target::User => "USER PROFILE (who the user is)",
        };
        let usage =
            format!("{:>3}% — {}/{} chars", self.percent, thousands(self.size), thousands(self.limit));
        let texts: Vec<String> = self.entries.iter().map(|shown| shown.text.clone()).collect();
        debug_assert_eq!(join(&texts), texts.join(DELIMITER));
        format!("{rule}\n{title} [{usage}]\n{rule}\n{}", join(&texts))
    }
}

fn show(target: Target, entry: &str, scanner: Option<&Scanner>) -> Shown {
    let findings = match scanner {
        Some(scanner) if !entry.starts_with(MASK) => scanner.scan(entry, Scope::Strict),
        _ => Vec::new(),
    };
    if findings.is_empty() {
        return Shown { text: entry.to_owned(), masked_for: findings };
    }
    let seen: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let text = format!(
        "{MASK} an entry of {} matches {} and is not shown; it can be removed with the memory tool.]",
        target.file_name(),
        seen.join(", ")
    );
    Shown { text, masked_for: findings }
}

/// Share of the limit in whole percent, at most 100; 0 for a limit of 0. Double precision, as the reference computes
/// it: 29 of 100 is 28.
pub(super) fn percent(size: u64, limit: u64) -> u64 {
    if limit == 0 {
        return 0;
    }
    let share = (size as f64 / limit as f64) * 100.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is never negative, and the cap follows"
    )]
    let whole = share as u64;
    whole.min(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_truncated_in_double_precision() {
        assert_eq!((percent(29, 100), percent(30, 100), percent(101, 100), percent(5, 0)), (28, 30, 100, 0));
    }

    #[test]
    fn a_block_shows_usage_with_separators() {
        let block = Block::of(Target::User, &["a".repeat(1_200)], 2_400, None).unwrap();
        assert!(block.render().contains("[ 50% — 1,200/2,400 chars]"));
    }
}

//! What kind of text changed: a clock, a counter, a path, a memory block, a list of skills, a git status.
//!
//! Looks at the changed runs of two texts, widened to whole words, and at the heading or tag they stand under.
//! Never: a guess from the name of a tool or of a client.

use std::sync::LazyLock;

use regex::Regex;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Kind of a changed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// A clock or a date.
    Clock,
    /// A counter, an id, a hash.
    Counter,
    /// A path or a working directory.
    Path,
    /// A block of remembered facts.
    Memory,
    /// A list of skills.
    Skills,
    /// The state of a git repository.
    Git,
    /// Recalled text put in beside what was said.
    Recall,
    /// A reminder put in by the client.
    Reminder,
    /// White space or spelling of the same characters.
    Spelling,
    /// Cut short or cleared.
    Cut,
    /// Anything else.
    Other,
}

impl TextKind {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Counter => "counter",
            Self::Path => "path",
            Self::Memory => "memory_block",
            Self::Skills => "skills_list",
            Self::Git => "git_status",
            Self::Recall => "recall",
            Self::Reminder => "reminder",
            Self::Spelling => "spelling",
            Self::Cut => "cut",
            Self::Other => "text",
        }
    }
}

/// A run that differs between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Byte in the new text where it begins.
    pub at: usize,
    /// What stood there.
    pub before: String,
    /// What stands there.
    pub after: String,
    /// Its kind.
    pub kind: TextKind,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant that a test compiles")
}

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)
        \d{4}-\d{2}-\d{2} (?:[T\s]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)? (?:\s?Z|[+-]\d{2}:?\d{2})?
        | \d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)? (?:\s?[ap]\.?m\.?)?
        | \d{1,2}[./]\d{1,2}[./]\d{2,4}
        | (?:\d{2,4}年)?\d{1,2}月(?:\d{1,2}日)? | \d{1,2}[時时点](?:\d{1,2}分)? | \d{2,4}년\s?(?:\d{1,2}월\s?)?(?:\d{1,2}일)?
        | \d{1,2}\s?[ap]\.?m\b\.?
        | \b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b
        | \b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?
            |oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.? (?:\s\d{1,2}(?:st|nd|rd|th)?\b)? (?:,?\s\d{4}\b)?
        | \b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b
        | \b(?:this\s)?(?:morning|afternoon|evening|night|noon|midnight)\b
        | \b(?:UTC|GMT|CES?T|E[SD]T|P[SD]T)\b
        | \b(?:yesterday|today|tomorrow)\b
        | \b\d+(?:\.\d+)?\s?(?:ms|s|secs?|seconds?|mins?|minutes?|hours?|days?|h)(?:\sago)?\b",
    )
});

static COUNTER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|[a-z]*[_-]?[0-9a-z_-]*\d[0-9a-z_-]*|\d[\d.,]*|[A-Za-z0-9+/_-]{20,}={0,2}",
    )
});

static PATH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:~|\.{1,2})?/[\w.@~+-]+(?:/[\w.@~+-]*)*|[a-z]:\\[^\s]*"));

static GIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)\bgit\s?status\b|\bbranch(?:es)?\b|^\s?(?:[MADRCU?]{1,2})\s+\S+$|\bcommits?\b|\buntracked\b|\bmodified:|working tree",
    )
});

static HEADING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?:\s*<([a-zA-Z][\w.:-]*)[^>\n]*>|#{1,6}\s+(.+)|([A-Z][A-Z _()-]{3,})(?:\s|$|:)|[═=─-]*\s*([A-Z][A-Z _()-]{3,})\b.*|\*\*(.+)\*\*|([A-Z][\w ]{2,40}):\s*$)",
    )
});

/// The longest text that is compared word by word; longer ones are compared around their first difference.
const COMPARED_MAX: usize = 48 << 10;

/// Changed runs between two texts, in order.
pub fn runs(before: &str, after: &str) -> Vec<Run> {
    let head = common_head(before, after);
    let tail = common_tail(&before[head..], &after[head..]);
    let head = word_start(after, head);
    let old = &before[head.min(before.len())..before.len() - tail];
    let new = &after[head.min(after.len())..after.len() - tail];
    let (old, new) = (clip(old), clip(new));
    let (old_words, new_words) = (words(old), words(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old_words, &new_words);
    let mut found: Vec<Run> = Vec::new();
    let mut last_end = usize::MAX;
    for op in ops {
        let (old_range, new_range) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let start: usize = new_words[..new_range.start].iter().map(|word| word.len()).sum();
        let gone: String = old_words[old_range].concat();
        let come: String = new_words[new_range.clone()].concat();
        // A blank between two changed words belongs to the run.
        if last_end != usize::MAX && start.saturating_sub(last_end) <= 1 && !found.is_empty() {
            let between = &new[last_end..start];
            let run = found.last_mut().expect("checked not empty");
            run.before.push_str(between);
            run.before.push_str(&gone);
            run.after.push_str(between);
            run.after.push_str(&come);
        } else {
            found.push(Run { at: head + start, before: gone, after: come.clone(), kind: TextKind::Other });
        }
        last_end = start + come.len();
    }
    for run in &mut found {
        run.kind = kind_of(run, before, after);
    }
    found
}

/// Bytes that two texts share in front, at a character boundary.
pub fn common_head(a: &str, b: &str) -> usize {
    let mut at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn common_tail(a: &str, b: &str) -> usize {
    let mut at = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(a.len() - at) {
        at -= 1;
    }
    // Whole words only, so that a changed digit shows with its number.
    while at > 0 && a[a.len() - at..].starts_with(|c: char| !c.is_whitespace()) {
        let step = a[a.len() - at..].chars().next().map_or(1, char::len_utf8);
        at -= step;
    }
    at
}

fn word_start(text: &str, mut at: usize) -> usize {
    while at > 0 && !text[..at].ends_with(char::is_whitespace) {
        at -= text[..at].chars().next_back().map_or(1, char::len_utf8);
    }
    at
}

fn clip(text: &str) -> &str {
    let mut end = text.len().min(COMPARED_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

fn without(pattern: &Regex, text: &str) -> String {
    pattern.replace_all(text, "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind_of(run: &Run, before: &str, after: &str) -> TextKind {
    if run.before.split_whitespace().eq(run.after.split_whitespace()) {
        return TextKind::Spelling;
    }
    let heading = heading(after, run.at).or_else(|| heading(before, run.at.min(before.len())));
    let under = heading.unwrap_or_default().to_lowercase();
    let both = format!("{}\n{}", run.before, run.after);
    let lower = both.to_lowercase();
    let one_sided = run.before.trim().is_empty() || run.after.trim().is_empty();
    if lower.contains("<memory-context") || lower.contains("recall") || under.contains("recall") {
        return TextKind::Recall;
    }
    if !one_sided {
        if CLOCK.is_match(&run.before)
            && CLOCK.is_match(&run.after)
            && without(&CLOCK, &run.before) == without(&CLOCK, &run.after)
        {
            return TextKind::Clock;
        }
        if clock_words(run, after) {
            return TextKind::Clock;
        }
    }
    if under.contains("memory") || under.contains("user profile") || both.contains('§') {
        return TextKind::Memory;
    }
    if under.contains("skill") || lower.contains("available-skills") || lower.contains("available_skills") {
        return TextKind::Skills;
    }
    if under.contains("git") || GIT.is_match(&run.before) && GIT.is_match(&run.after) {
        return TextKind::Git;
    }
    if lower.contains("system-reminder") || under.contains("reminder") {
        return TextKind::Reminder;
    }
    if !one_sided {
        if PATH.is_match(&run.before) && without(&PATH, &run.before) == without(&PATH, &run.after) {
            return TextKind::Path;
        }
        if COUNTER.is_match(&run.before) && without(&COUNTER, &run.before) == without(&COUNTER, &run.after) {
            return TextKind::Counter;
        }
    }
    TextKind::Other
}

/// A bare number that changed right behind a word of time.
fn clock_words(run: &Run, after: &str) -> bool {
    let digits = |text: &str| {
        let text = text.trim().trim_end_matches(['.', ',', ';', ')']);
        !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ':' | '-' | '/'))
    };
    let lead = &after[..run.at.min(after.len())];
    let lead = lead.get(lead.len().saturating_sub(40)..).unwrap_or(lead).to_lowercase();
    let named = ["time", "date", "clock", "now", "today", "timestamp", "hour", "uptime"];
    digits(&run.before) && digits(&run.after) && named.iter().any(|word| lead.contains(word))
}

/// How far above a place its heading is looked for, in bytes.
const HEADING_FAR: usize = 4096;

/// The heading or tag that a place of a text stands under.
fn heading(text: &str, at: usize) -> Option<String> {
    let end = text.get(at..)?.find('\n').map_or(text.len(), |found| at + found);
    let mut start = at.saturating_sub(HEADING_FAR);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let found = HEADING.captures_iter(text.get(start..end)?).last()?;
    (1..=6).find_map(|group| found.get(group)).map(|name| name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(before: &str, after: &str) -> Vec<TextKind> {
        runs(before, after).iter().map(|run| run.kind).collect()
    }

    #[test]
    fn clocks_of_many_spellings_are_clocks() {
        for (a, b) in [
            ("Local time is 09:14. You keep", "Local time is 09:15. You keep"),
            ("Now: 2026-05-04T09:14:05Z here", "Now: 2026-05-04T09:15:05Z here"),
            ("Today is Monday, May 4, 2026.", "Today is Tuesday, May 5, 2026."),
            ("epoch 1780000000 end", "epoch 1780000060 end"),
            ("time: 5 PM sharp", "time: 6 PM sharp"),
            ("current time 1714 ok", "current time 1715 ok"),
        ] {
            let found = kinds(a, b);
            assert!(
                !found.is_empty() && found.iter().all(|kind| *kind == TextKind::Clock),
                "{a} / {b}: {found:?}"
            );
        }
    }

    #[test]
    fn ids_paths_memory_and_git_are_told_apart() {
        assert_eq!(kinds("request 8f3a-11 of you", "request 9c2b-12 of you"), [TextKind::Counter]);
        assert_eq!(kinds("cwd /home/a/x now", "cwd /home/a/y now"), [TextKind::Path]);
        assert_eq!(
            kinds("MEMORY\nBerth 4 is closed.", "MEMORY\nBerth 4 is closed.\n§\nWants metric."),
            [TextKind::Memory]
        );
        assert_eq!(kinds("## Skills\n- one\n", "## Skills\n- one\n- two\n"), [TextKind::Skills]);
        assert_eq!(kinds("<git-status>\nM a.rs\n", "<git-status>\nM b.rs\n"), [TextKind::Git]);
        assert_eq!(kinds("You are kind.", "You are terse."), [TextKind::Other]);
    }

    #[test]
    fn two_changes_in_one_text_are_two_runs() {
        let found = kinds("It is 09:14.\n\nMEMORY\nno facts", "It is 09:15.\n\nMEMORY\none fact");
        assert_eq!(found, [TextKind::Clock, TextKind::Memory]);
    }

    #[test]
    fn a_difference_inside_a_wide_character_does_not_split_it() {
        assert_eq!(common_head("字a", "孖a"), 0);
        assert!(!runs("時刻 字", "時刻 孖").is_empty());
    }
}

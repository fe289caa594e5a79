//! What a reply says: visible text, announced steps, fragments, runaway repetition.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::agent::sieve::{Pattern, Sieved};
use crate::policy;

static REASONING: LazyLock<Regex> = LazyLock::new(|| {
    let names = ["think", "thinking", "reasoning", "thought", "reasoning_scratchpad"];
    let blocks: Vec<String> = names.iter().map(|name| format!("<{name}>.*?</{name}>")).collect();
    Regex::new(&format!("(?is){}", blocks.join("|"))).expect("a valid pattern")
});
static OPENED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<(?:think|thinking|reasoning|thought|reasoning_scratchpad)>").expect("a valid pattern")
});
static ANNOUNCED: LazyLock<Sieved<Pattern>> = LazyLock::new(|| {
    let will = "i(?:'|’)?ll";
    let openers = format!(r"let me now|{will} now|i will now|now,? {will}|next[,:] i\b");
    Sieved::patterns([format!(r"(?:{openers})[^.!?\n]{{0,100}}(?:[.:]|…)?\s*$")])
});

/// Characters at the end of an answer in which an announced step is looked for; Hermes
/// agent/turn_final_response.py:56.
const STALL_TAIL_CHARS: usize = 160;

/// The text without reasoning blocks, trimmed.
pub fn visible(text: &str) -> String {
    without_reasoning(text).trim().to_owned()
}

fn without_reasoning(text: &str) -> Cow<'_, str> {
    if text.contains('<') { REASONING.replace_all(text, "") } else { Cow::from(text) }
}

/// True when a reasoning block is in the text.
pub fn has_inline_reasoning(text: &str) -> bool {
    text.contains('<') && OPENED.is_match(text)
}

/// True when a reasoning block was opened and not closed, and nothing visible follows.
pub fn reasoning_left_open(text: &str) -> bool {
    let rest = without_reasoning(text);
    OPENED.find(&rest).is_some_and(|open| rest[..open.start()].trim().is_empty())
}

/// True when an answer ends on an announced next step, so that the model should be told to go on.
pub fn announces_a_step(text: &str, policy: &policy::Turn) -> bool {
    let text = text.trim();
    let length = text.chars().count();
    if length == 0 || length as u64 > policy.stall_chars_max {
        return false;
    }
    let tail: String = text.chars().skip(length.saturating_sub(STALL_TAIL_CHARS)).collect();
    ANNOUNCED.is_match(&tail)
}

/// True when an answer looks like a collapsed fragment: short, a word or two, no sentence end, and not in the
/// user's own script.
pub fn is_fragment(text: &str, user: &str, policy: &policy::Turn) -> bool {
    let text = text.trim();
    let length = text.chars().count() as u64;
    if length == 0 || length > policy.fragment_chars_max || user.trim().is_empty() {
        return false;
    }
    let ends = ['.', '!', '?', '…', '。', '！', '？', ':', '：', ';', '`', ')', '"', '\'', ']', '}'];
    // A leading connector shows that the text goes on from something that is already there.
    let connects = [',', '-', '–', '—', ';', ':', '.'];
    let foreign = |text: &str| text.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    if text.ends_with(ends) || text.starts_with(connects) || (foreign(text) && foreign(user)) {
        return false;
    }
    text.chars().any(char::is_alphabetic)
}

/// True when a text is dominated by one repeated line or word: a model that ran away.
pub fn is_runaway(text: &str) -> bool {
    /// A shorter text is no runaway, whatever it repeats.
    const CHARS_MIN: usize = 2_000;
    if text.len() < CHARS_MIN {
        return false;
    }
    let mut counts = std::collections::BTreeMap::new();
    let pieces: Vec<&str> = if text.contains('\n') {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
    } else {
        text.split_whitespace().collect()
    };
    for piece in &pieces {
        *counts.entry(*piece).or_insert(0usize) += 1;
    }
    counts.values().max().is_some_and(|most| *most >= 20 && most * 10 >= pieces.len() * 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_announced_in_either_apostrophe_and_not_in_the_middle_of_an_answer() {
        let announces = |text: &str| announces_a_step(text, &policy::Turn::default());
        for text in [
            "Let me now read the file.",
            "Done. I'll now run the tests:",
            "Done. I’ll now run the tests…",
            "I WILL NOW build",
            "Now, I'll look",
            "Next: I open the log",
        ] {
            assert!(announces(text), "{text}");
        }
        assert!(!announces("I'll now run the tests. They passed."));
        assert!(!announces("The file is there now"));
    }
}

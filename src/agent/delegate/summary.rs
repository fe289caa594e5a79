//! How much of the children's summaries comes back. Source: Hermes tools/delegate_tool_results.py:160.

use serde_json::Value;

/// Characters that every summary gets, however full the parent is.
const FLOOR: u64 = 2_000;
/// Characters of one token, as the budget counts.
const CHARS_PER_TOKEN: u64 = 4;

/// Characters per summary that the parent's remaining window allows; `None` when nothing is known of it.
///
/// `used` is the size of the parent's last prompt; 0 is unknown, not empty.
pub fn budget(window: &Value, used: u64, output_reserve: u64, summaries: u64) -> Option<u64> {
    let window = window.as_u64().filter(|window| *window > 0)?;
    if used == 0 {
        return None;
    }
    let headroom = window.saturating_sub(used).saturating_sub(output_reserve);
    Some((headroom / 2 / summaries.max(1) * CHARS_PER_TOKEN).max(FLOOR))
}

/// The cap on each summary: the smaller of what the window allows and the setting, where 0 is no cap.
pub fn cap(dynamic: Option<u64>, setting: u64) -> Option<u64> {
    dynamic.into_iter().chain((setting > 0).then_some(setting)).min()
}

/// The two parts that are kept of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed<'a> {
    /// The beginning.
    pub head: &'a str,
    /// The end.
    pub tail: &'a str,
    /// Line of the full text at which what was left out begins, from 1.
    pub resume_line: usize,
}

impl Trimmed<'_> {
    /// The text that comes back: both parts, a note between them, and where the whole is.
    pub fn render(&self, chars: usize, spilled_to: Option<&str>) -> String {
        let (head, tail) = (self.head.chars().count(), self.tail.chars().count());
        let place = spilled_to.map_or_else(
            || "The full text could not be kept.".to_owned(),
            |path| format!("Full text: {path}; go on at line {}.", self.resume_line),
        );
        format!(
            "{}\n\n[... {} characters left out ...]\n\n{}\n\n[This summary was cut: {head} + {tail} of {chars} characters. {place}]",
            self.head,
            chars.saturating_sub(head + tail),
            self.tail
        )
    }
}

/// Cuts a summary to its cap, at line ends where they are near; `None` when it fits.
pub fn trim(text: &str, cap: u64) -> Option<Trimmed<'_>> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    let chars = text.chars().count();
    if chars <= cap {
        return None;
    }
    let head_chars = cap - cap.div_ceil(4);
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let mut head = &text[..at(head_chars)];
    let mut tail = &text[at(chars - (cap - head_chars))..];
    if let Some(end) = head.rfind('\n').filter(|end| head[..*end].chars().count() > head_chars / 2) {
        head = &head[..end];
    }
    if let Some(end) = tail.find('\n').filter(|end| tail[..*end].chars().count() < (cap - head_chars) / 2) {
        tail = &tail[end + 1..];
    }
    Some(Trimmed { head, tail, resume_line: head.matches('\n').count() + 2 })
}

//! Cutting a long text so that head and tail stay and the reader knows what is gone.

use serde_json::Value;

use crate::policy::Prompt;

/// A text that may have been cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The text to send.
    pub text: String,
    /// What was cut; none when everything fits.
    pub cut: Option<Cut>,
}

/// What a cut kept and lost. Counts are characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Kept from the front.
    pub head: usize,
    /// Kept from the end.
    pub tail: usize,
    /// Headings in the part that is gone, at most as many as the policy says and then `...`.
    pub headings: Vec<String>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cutting towards zero is the rule; shares are not negative"
)]
fn share(amount: f64, ratio: f64) -> u64 {
    (amount * ratio) as u64
}

/// Longest context file for a window, in characters (Hermes agent/prompt_builder.py:1166).
///
/// A window that is no positive integer counts as unknown.
pub fn context_cap(window: &Value, knobs: &Prompt) -> u64 {
    if let Some(cap) = knobs.context_file_chars {
        return cap;
    }
    let low = knobs.context_file_chars_min;
    match window.as_u64().filter(|tokens| *tokens > 0) {
        Some(tokens) => {
            share(tokens as f64 * 4.0, knobs.context_file_share).min(knobs.context_file_chars_max).max(low)
        }
        None => low,
    }
}

/// Cuts a text to `cap` characters beside the note about the cut (Hermes agent/prompt_builder.py:1598).
///
/// `path` is where the reader finds the whole text.
pub fn truncate(text: &str, cap: u64, path: &str, knobs: &Prompt) -> Truncated {
    let total = text.chars().count();
    if total as u64 <= cap {
        return Truncated { text: text.to_owned(), cut: None };
    }
    let count = |ratio: f64| usize::try_from(share(cap as f64, ratio)).unwrap_or(usize::MAX).min(total);
    let (head, tail) = (count(knobs.truncate_head), count(knobs.truncate_tail));
    let byte = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let head_end = byte(head);
    let middle_end = byte(total - tail);
    // The reference takes the last `tail` characters with a slice that means everything when the count is 0.
    let (tail_start, tail) = if tail == 0 { (0, total) } else { (middle_end, tail) };
    let headings = headings(text, head_end, middle_end, knobs.truncate_headings_max);
    let mut note = format!("\n\n[... cut: {} of {total} characters shown", head + tail);
    if !path.is_empty() {
        note.extend(["; the whole text is in ", path]);
    }
    if !headings.is_empty() {
        note.extend(["; sections left out: ", &headings.join(" | ")]);
    }
    note.push_str(" ...]\n\n");
    let text = format!("{}{note}{}", &text[..head_end], &text[tail_start..]);
    Truncated { text, cut: Some(Cut { head, tail, headings }) }
}

/// Headings whose line starts in the part that is gone, outside fenced code.
fn headings(text: &str, from: usize, to: usize, max: u64) -> Vec<String> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut fenced = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced || start < from || start >= to {
            continue;
        }
        if let Some(title) = heading(line) {
            if found.len() == max {
                found.push("...".to_owned());
                break;
            }
            found.push(title.to_owned());
        }
    }
    found
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    let title = title.strip_prefix(' ')?;
    let solid = title.chars().next().is_some_and(|c| !c.is_whitespace());
    ((1..=6).contains(&depth) && solid).then_some(title)
}

/// Cuts a text to its first `cap` characters.
pub fn keep_head(text: &str, cap: u64, path: &str) -> Truncated {
    let total = text.chars().count();
    if total as u64 <= cap {
        return Truncated { text: text.to_owned(), cut: None };
    }
    let head = usize::try_from(cap).unwrap_or(usize::MAX);
    let kept: String = text.chars().take(head).collect();
    let text =
        format!("{kept}\n\n[... cut: {head} of {total} characters shown; the whole text is in {path} ...]");
    Truncated { text, cut: Some(Cut { head, tail: 0, headings: Vec::new() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_headings_are_named_up_to_the_limit() {
        let text: String = std::iter::once("x".repeat(100))
            .chain((0..20).map(|n| format!("\n## part {n}\n{}", "y".repeat(20))))
            .chain(std::iter::once("z".repeat(100)))
            .collect();
        let cut = truncate(&text, 100, "p", &Prompt::default()).cut.unwrap();
        assert_eq!(cut.headings.len(), 16);
        assert_eq!((cut.headings[0].as_str(), cut.headings[15].as_str()), ("part 0", "..."));
    }

    #[test]
    fn seven_hashes_and_no_blank_make_no_heading() {
        assert_eq!(heading("####### x"), None);
        assert_eq!(heading("#x"), None);
        assert_eq!(heading("#  x"), None);
        assert_eq!(heading("###### x"), Some("x"));
    }
}

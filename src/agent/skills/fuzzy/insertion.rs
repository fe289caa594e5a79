//! What is done to the texts around a match: escapes corrected before, drift refused and indentation adapted after.

use super::similarity::blocks;
use super::typography::Plain;
use super::{Span, Strategy};
use crate::agent::skills::refusal::Reason;
use crate::agent::text::strip;

/// Corrects texts that were escaped once too often.
pub(super) fn correct_escapes(content: &str, old: &str, new: &str) -> Result<(String, String), Reason> {
    let unchanged = Ok((old.to_owned(), new.to_owned()));
    if content.contains(old) {
        return unchanged;
    }
    let escaped = |quote: char| format!("\\{quote}");
    let kinds: Vec<char> = ['\'', '"']
        .into_iter()
        .filter(|quote| old.contains(&escaped(*quote)) && new.contains(&escaped(*quote)))
        .collect();
    if !kinds.is_empty()
        && kinds.iter().all(|quote| singly_escaped(old, *quote) && singly_escaped(new, *quote))
    {
        let bare = |text: &str| {
            kinds
                .iter()
                .fold(text.to_owned(), |text, quote| text.replace(&escaped(*quote), &quote.to_string()))
        };
        let bare_old = bare(old);
        if content.contains(&bare_old) {
            let further =
                ['\'', '"'].into_iter().any(|quote| !kinds.contains(&quote) && new.contains(&escaped(quote)));
            return if further { Err(Reason::EscapeDrift) } else { Ok((bare_old, bare(new))) };
        }
    }
    let runs = backslash_runs(old);
    if runs.is_empty() || runs.iter().any(|length| length % 2 == 1) {
        return unchanged;
    }
    let halved = old.replace("\\\\", "\\");
    if !content.contains(&halved) {
        return unchanged;
    }
    if new.contains('\\') { Err(Reason::EscapeDrift) } else { Ok((halved, new.to_owned())) }
}

/// True when every such quote has exactly one backslash before it.
fn singly_escaped(text: &str, quote: char) -> bool {
    text.match_indices(quote)
        .all(|(at, _)| text[..at].bytes().rev().take_while(|byte| *byte == b'\\').take(2).count() == 1)
}

/// Lengths of the runs of backslashes, in order.
fn backslash_runs(text: &str) -> Vec<usize> {
    text.split(|character| character != '\\').map(str::len).filter(|length| *length > 0).collect()
}

/// Refuses a match that is not exact if the texts carry escapes that the file does not.
pub(super) fn check_drift(content: &str, spans: &[Span], old: &str, new: &str) -> Result<(), Reason> {
    let regions: Vec<&str> = spans.iter().map(|(start, end)| &content[*start..*end]).collect();
    let quotes = ["\\'", "\\\""].iter().any(|mark| {
        old.contains(mark) && new.contains(mark) && !regions.iter().any(|region| region.contains(mark))
    });
    let written = |text: &str| text.matches("\\n").count();
    let line_breaks = new.contains("\\n")
        && regions.iter().any(|region| region.contains('\n') && written(old) > written(region));
    let (old_runs, new_runs) = (backslash_runs(old), backslash_runs(new));
    let doubled = regions.iter().any(|region| {
        let runs = backslash_runs(region);
        (runs.len() >= 2 || runs.iter().any(|length| *length >= 2))
            && runs.len() == old_runs.len()
            && runs.iter().zip(&old_runs).all(|(file, given)| file * 2 == *given)
            && new_runs != runs
    });
    if quotes || line_breaks || doubled { Err(Reason::EscapeDrift) } else { Ok(()) }
}

/// Puts the new text at every place.
pub(super) fn apply(content: &str, spans: &[Span], old: &str, new: &str, strategy: Strategy) -> String {
    let has = |control: char| spans.iter().any(|(start, end)| content[*start..*end].contains(control));
    let mut new = new.to_owned();
    for (written, control) in [("\\t", '\t'), ("\\r", '\r')] {
        if new.contains(written) && has(control) {
            new = new.replace(written, &control.to_string());
        }
    }
    let mut result = String::with_capacity(content.len() + new.len());
    let mut at = 0;
    for &(start, end) in spans {
        if start < at {
            continue;
        }
        result.push_str(&content[at..start]);
        result.push_str(&fitted(content, (start, end), old, &new, strategy));
        at = end;
    }
    result.push_str(&content[at..]);
    result
}

/// The new text as it is written at one place.
fn fitted(content: &str, (start, end): Span, old: &str, new: &str, strategy: Strategy) -> String {
    if strategy == Strategy::Exact {
        return new.to_owned();
    }
    let region = &content[start..end];
    if strategy == Strategy::UnicodeNormalized
        && let Some(text) = with_typography(region, old, new)
    {
        return text;
    }
    let line_start = content[..start].rfind('\n').map_or(0, |at| at + 1);
    if strip(&content[line_start..start]).is_empty() { reindented(region, old, new) } else { new.to_owned() }
}

/// Applies only the differences between old and new text, so that the file keeps its own quotes and dashes. `None`
/// when the region is not the old text in other typography.
fn with_typography(region: &str, old: &str, new: &str) -> Option<String> {
    let (plain_region, plain_old) = (Plain::of(region), Plain::of(old));
    if plain_region.text != plain_old.text {
        return None;
    }
    let old_characters: Vec<char> = old.chars().collect();
    let new_characters: Vec<char> = new.chars().collect();
    let places = plain_old.starts();
    let mut text = String::with_capacity(new.len());
    let mut at = 0;
    for (from, to, length) in blocks(&old_characters, &new_characters) {
        text.extend(&new_characters[at..to]);
        plain_region.write_original(region, (places[from], places[from + length]), &mut text);
        at = to + length;
    }
    text.extend(&new_characters[at..]);
    Some(text)
}

/// The new text with the old text's indentation exchanged for the file's.
fn reindented(region: &str, old: &str, new: &str) -> String {
    let indent = |text: &str| -> Option<String> {
        let line = text.split('\n').find(|line| !strip(line).is_empty())?;
        Some(line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned())
    };
    let (Some(file), Some(given)) = (indent(region), indent(old)) else { return new.to_owned() };
    if file == given {
        return new.to_owned();
    }
    let lines: Vec<String> = new
        .split('\n')
        .map(|line| {
            if strip(line).is_empty() {
                return line.to_owned();
            }
            match line.strip_prefix(&given) {
                Some(rest) => format!("{file}{rest}"),
                None => format!("{file}{}", line.trim_start_matches([' ', '\t'])),
            }
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_outside_the_old_indentation_get_the_files_alone() {
        assert_eq!(reindented("\tx", "  x", "  a\n    b\n c\n\nd"), "\ta\n\t  b\n\tc\n\n\td");
    }

    #[test]
    fn a_quote_with_two_backslashes_is_not_singly_escaped() {
        assert!(singly_escaped(r"a\'b", '\''));
        assert!(!singly_escaped(r"a\\'b", '\''));
        assert!(!singly_escaped("a'b", '\''));
    }
}

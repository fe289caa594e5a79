//! Replacement of a text that may not be quoted exactly.
//!
//! Nine strategies are tried in order, from exact to similar; the first that finds anything decides, even if it
//! finds too much. Before, doubled escapes are corrected; after, a match that is not exact may be refused because the
//! texts carry escapes that the file does not. Called by patches of skills (Hermes tools/fuzzy_match.py:359-430).
//!
//! Never: a replacement at a place that is one of several, unless all are asked for.

mod insertion;
mod lines;
mod similarity;
mod strategies;
mod typography;

pub use strategies::Strategy;

use super::refusal::Reason;
use crate::agent::text::{chars, strip};

/// A place in the file, in bytes.
type Span = (usize, usize);

/// A text with its replacements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The new text.
    pub content: String,
    /// Number of places.
    pub replacements: usize,
    /// How they were found.
    pub strategy: Strategy,
}

/// Replaces `old` by `new` in a text.
///
/// # Errors
/// `old_text_empty`, `old_text_blank`, `identical`, `ambiguous_match`, `approximate_replace_all`, `escape_drift`,
/// `no_match`.
///
/// ```
/// use hermes_lab::agent::skills::fuzzy::replace;
/// assert_eq!(replace("    a\n    b\n", "a\nb", "c", false).unwrap().content, "    c\n");
/// ```
pub fn replace(content: &str, old: &str, new: &str, all: bool) -> Result<Replaced, Reason> {
    if old.is_empty() {
        return Err(Reason::OldTextEmpty);
    }
    if strip(old).is_empty() {
        return Err(Reason::OldTextBlank);
    }
    let (old, new) = insertion::correct_escapes(content, old, new)?;
    if old == new {
        return Err(Reason::Identical);
    }
    for strategy in Strategy::ALL {
        let spans = strategy.find(content, &old, all);
        if spans.is_empty() {
            continue;
        }
        if spans.len() > 1 && !all {
            return Err(Reason::AmbiguousMatch);
        }
        if spans.len() > 1 && strategy.is_approximate() {
            return Err(Reason::ApproximateReplaceAll);
        }
        if strategy != Strategy::Exact {
            insertion::check_drift(content, &spans, &old, &new)?;
        }
        let content = insertion::apply(content, &spans, &old, &new, strategy);
        return Ok(Replaced { content, replacements: spans.len(), strategy });
    }
    Err(Reason::NoMatch)
}

/// True when an edit was made before and is sent again: the new text stands there and the old one does not.
pub fn already_applied(content: &str, old: &str, new: &str) -> bool {
    chars(strip(new)) >= 8 && content.contains(new) && (old == new || !content.contains(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_blocks_are_not_replaced_all_at_once() {
        let content = "begin\nalpha beta 1\nend\nbegin\nalpha beta 2\nend\n";
        assert_eq!(
            replace(content, "begin\nalpha beta 3\nend", "x", true),
            Err(Reason::ApproximateReplaceAll)
        );
    }

    #[test]
    fn overlapping_places_are_ambiguous_by_lines_and_single_by_text() {
        assert_eq!(replace("aaa", "aa", "b", false).unwrap().content, "ba");
        assert_eq!(replace(" x\n x\n x", "x\nx", "y", false), Err(Reason::AmbiguousMatch));
    }

    #[test]
    fn text_of_many_blank_lines_is_searched_in_linear_time() {
        let content = "\n".repeat(60_000);
        let old = format!("{}x", "\n".repeat(30_000));
        assert_eq!(replace(&content, &old, "y", false), Err(Reason::NoMatch));
    }

    #[test]
    fn doubled_escapes_are_halved_when_that_makes_the_text_occur() {
        assert_eq!(replace(r"C:\dir here", r"C:\\dir", "D", false).unwrap().content, "D here");
        assert_eq!(replace(r"C:\dir here", r"C:\\dir", r"D:\\", false), Err(Reason::EscapeDrift));
        assert_eq!(replace("say 'a'", r"say \'a\'", r"say \'b\'", false).unwrap().content, "say 'b'");
    }
}

//! What a scheduled run's final text says about itself: nothing to deliver, or failed.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Markers that stand in brackets; a text that begins with one is silent.
const BRACKETED: [&str; 3] = ["[SILENT]", "[静默]", "[沉默]"];
/// Markers that count when they are a whole line.
const MARKERS: [&str; 8] = ["[SILENT]", "SILENT", "NO_REPLY", "NO REPLY", "[静默]", "静默", "[沉默]", "沉默"];
/// Longest line that is compared with the markers, in characters.
const LINE_CHARS_MAX: usize = 64;
/// What the first line of a failed run says.
const FAILURE: &str = "[CRON_FAILURE]";

/// True when a successful run's text is not to be delivered (Hermes gateway/response_filters.py:70).
///
/// A marker counts at the very start, as the whole text, or as its first or last line; not within a sentence.
///
/// ```
/// use hermes_lab::agent::cron::silence::is_silent;
/// assert!(is_silent("all quiet\n[silent]"));
/// assert!(!is_silent("the word [SILENT] is the marker"));
/// ```
pub fn is_silent(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    let upper = text.to_uppercase();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    BRACKETED.iter().any(|marker| upper.starts_with(marker))
        || is_marker(text)
        || lines.next().is_some_and(is_marker)
        || lines.next_back().is_some_and(is_marker)
}

fn is_marker(line: &str) -> bool {
    let line = line.trim();
    if line.chars().take(LINE_CHARS_MAX + 1).count() > LINE_CHARS_MAX {
        return false;
    }
    let plain = line.to_uppercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = plain.trim_matches(strips).trim();
    MARKERS.contains(&plain.as_str()) || MARKERS.contains(&bare)
}

/// Punctuation of any script; square brackets belong to the markers.
fn strips(ch: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation,
        OpenPunctuation, OtherPunctuation,
    };
    !matches!(ch, '[' | ']')
        && matches!(
            get_general_category(ch),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

/// The evidence of a run that declares itself failed: `None` when it does not, `Some("")` when it gives none.
///
/// ```
/// use hermes_lab::agent::cron::silence::declared_failure;
/// assert_eq!(declared_failure("[CRON_FAILURE]  \nno network"), Some("no network"));
/// assert_eq!(declared_failure("[CRON_FAILURE] why"), None);
/// ```
pub fn declared_failure(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    (first.trim_end() == FAILURE).then(|| rest.trim())
}

//! Handoff rows: the summaries that earlier compactions left in the history.
//!
//! A handoff stands alone or is merged with a live row. This module writes both shapes, recognises them by flag or by
//! text, and gives back the live text of a merged one. Never decides where a handoff goes.

use serde_json::{Value, json};

use crate::wire::row::part_text;
use crate::wire::{Content, Row};

/// Flag of a row that is, or carries, a handoff.
pub const SUMMARY_FLAG: &str = "_compressed_summary";
/// Flag of a handoff whose stretch held a human request.
pub const HUMAN_FLAG: &str = "_compressed_summary_has_user_turn";
/// Flag of a handoff that micro-compaction made.
pub const MICRO_FLAG: &str = "_micro_compact_marker";

/// First line of every handoff.
pub const PREFIX: &str = "[CONTEXT COMPACTION] Summary of earlier work, for reference. Everything in it has happened; \
                          the request to act on is the newest user message, not this text.";
/// Beginnings by which a handoff is known, older ones included.
const KNOWN_PREFIXES: &[&str] = &["[CONTEXT COMPACTION", "[CONTEXT SUMMARY]"];
/// Last line of every handoff.
pub const END_MARK: &str = "[END OF CONTEXT COMPACTION]";
/// Between the old text of a row and the handoff merged into it.
const DELIMITER: &str = "[EARLIER MESSAGE ENDS, CONTEXT COMPACTION FOLLOWS]";
/// Before the old text of a row that a handoff is merged into.
const OLD_TEXT: &str = "[EARLIER MESSAGE, KEPT FOR REFERENCE]";
/// Added once to a system row of a compacted list.
const SYSTEM_NOTE: &str = "[Earlier turns of this conversation were compacted into a summary. Files and other \
                           lasting state are as they were left.]";

fn begins_known(text: &str) -> bool {
    let text = text.trim_start();
    KNOWN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

fn is_handoff_text(text: &str) -> bool {
    begins_known(text) || text.split_once(DELIMITER).is_some_and(|(_, after)| begins_known(after))
}

/// True for a handoff, by flag or by text (Hermes agent/context_compressor.py:4329).
pub fn is_handoff(row: &Row) -> bool {
    row.flag(SUMMARY_FLAG) || has_handoff_text(row)
}

/// True for a row with a handoff anywhere in it: one that was joined with the row before it is not known by its
/// beginning any more.
pub fn holds_handoff(row: &Row) -> bool {
    is_handoff(row) || row.content.flat().lines().any(begins_known)
}

/// True when the text alone shows a handoff.
pub fn has_handoff_text(row: &Row) -> bool {
    match &row.content {
        Content::Text(text) => is_handoff_text(text),
        Content::Parts(parts) => parts.iter().filter_map(part_text).any(is_handoff_text),
        _ => false,
    }
}

/// The text of a standalone handoff with this body.
pub fn standalone_text(body: &str) -> String {
    format!("{PREFIX}\n\n{}\n\n{END_MARK}", body.trim())
}

/// Merges a handoff into the content of a live row; `leads` puts the handoff before the live text.
pub fn merge(content: &Content, body: &str, leads: bool) -> Content {
    let summary = standalone_text(body);
    match content {
        Content::Parts(parts) => {
            let text = |text: String| json!({"type": "text", "text": text});
            let mut merged = Vec::with_capacity(parts.len() + 2);
            if leads {
                merged.push(text(format!("{summary}\n\n")));
                merged.extend(parts.iter().cloned());
            } else {
                merged.push(text(format!("{OLD_TEXT}\n")));
                merged.extend(parts.iter().cloned());
                merged.push(text(format!("\n\n{DELIMITER}\n{summary}")));
            }
            Content::Parts(merged)
        }
        other => {
            let old = other.flat();
            Content::Text(match (old.trim().is_empty(), leads) {
                (true, _) => summary,
                (false, true) => format!("{summary}\n\n{old}"),
                (false, false) => format!("{OLD_TEXT}\n{old}\n\n{DELIMITER}\n{summary}"),
            })
        }
    }
}

/// The live text that a text holds beside its handoff; `None` when there is none.
fn live_text(text: &str) -> Option<String> {
    let live = if let Some((before, _)) = text.split_once(DELIMITER) {
        before.trim_start().strip_prefix(OLD_TEXT).unwrap_or(before).trim()
    } else if begins_known(text) {
        text.split_once(END_MARK).map_or("", |(_, after)| after.trim())
    } else {
        text
    };
    (!live.is_empty()).then(|| live.to_owned())
}

/// The row without its handoff; `None` when nothing live is in it.
///
/// A row that calls tools is live whatever it says: its results stand behind it.
pub fn unwrap(row: &Row) -> Option<Row> {
    let wordless = || row.has_calls().then(|| Content::Text(String::new()));
    let content = match &row.content {
        Content::Text(text) if has_handoff_text(row) => {
            live_text(text).map(Content::Text).or_else(wordless)?
        }
        Content::Parts(parts) if has_handoff_text(row) => {
            live_parts(parts).map(Content::Parts).or_else(wordless)?
        }
        // A flagged row without our text is a handoff as a whole.
        _ => return None,
    };
    let mut live = row.clone();
    live.content = content;
    for key in [SUMMARY_FLAG, HUMAN_FLAG, MICRO_FLAG, "api_content"] {
        live.extra.remove(key);
    }
    Some(live)
}

/// The handoff and the live row that one row holds together; `None` when it does not hold both.
///
/// The store is told this way what belongs to a person and what to a compaction.
pub fn split(row: &Row) -> Option<(Row, Row)> {
    let live = unwrap(row)?;
    let mut handoff = Row::new(row.role.clone(), standalone_text(&body(row))).with(SUMMARY_FLAG, true);
    for key in [HUMAN_FLAG, MICRO_FLAG, "timestamp"] {
        if let Some(value) = row.extra.get(key) {
            handoff.extra.insert(key.to_owned(), value.clone());
        }
    }
    Some((handoff, live))
}

fn live_parts(parts: &[Value]) -> Option<Vec<Value>> {
    let live: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part_text(part) {
            Some(text) if text.trim() == OLD_TEXT => None,
            Some(text) if is_handoff_text(text) => {
                live_text(text).map(|text| json!({"type": "text", "text": text}))
            }
            _ => Some(part.clone()),
        })
        .collect();
    (!live.is_empty()).then_some(live)
}

/// The summary inside a handoff, without its first and last line.
pub fn body(row: &Row) -> String {
    let text = row.content.flat();
    let text = text.split_once(DELIMITER).map_or(text.as_str(), |(_, after)| after);
    let text = text.split_once(END_MARK).map_or(text, |(before, _)| before).trim();
    if let Some(body) = text.strip_prefix(PREFIX) {
        return body.trim().to_owned();
    }
    if begins_known(text) {
        // An older beginning: its first line is not ours to know, its body starts after it.
        let after = text.split_once(']').map_or("", |(_, after)| after);
        return after.trim_start_matches(':').trim().to_owned();
    }
    text.to_owned()
}

/// True when a handoff says that its stretch held a human request; unknown counts as yes.
pub fn had_human(row: &Row) -> bool {
    row.extra.get(HUMAN_FLAG).and_then(Value::as_bool).unwrap_or(true)
}

/// Puts a note behind the end mark of a handoff.
pub fn append_after_end(content: &Content, note: &str) -> Content {
    match content {
        Content::Parts(parts) => {
            let mut parts = parts.clone();
            parts.push(json!({"type": "text", "text": format!("\n\n{note}")}));
            Content::Parts(parts)
        }
        other => Content::Text(format!("{}\n\n{note}", other.flat())),
    }
}

/// True when the system row already tells of compaction.
pub fn has_system_note(row: &Row) -> bool {
    row.content.flat().contains(SYSTEM_NOTE)
}

/// Tells of compaction in a system row, once.
pub fn add_system_note(row: &mut Row) {
    if has_system_note(row) {
        return;
    }
    row.content = match &row.content {
        Content::Parts(parts) => {
            let mut parts = parts.clone();
            parts.push(json!({"type": "text", "text": format!("\n\n{SYSTEM_NOTE}")}));
            Content::Parts(parts)
        }
        other => Content::Text(format!("{}\n\n{SYSTEM_NOTE}", other.flat())),
    };
    row.extra.remove("api_content");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_row_gives_back_its_live_text_and_its_summary() {
        for leads in [true, false] {
            let row = Row::user(merge(&Content::from("live"), "the body", leads));
            assert!(is_handoff(&row), "{leads}");
            assert_eq!(body(&row), "the body", "{leads}");
            assert_eq!(unwrap(&row).unwrap().content, Content::from("live"), "{leads}");
        }
    }

    #[test]
    fn a_merged_row_is_split_into_its_handoff_and_its_live_row() {
        for leads in [true, false] {
            let row = Row::user(merge(&Content::from("live"), "the body", leads)).with(HUMAN_FLAG, true);
            let (handoff, live) = split(&row).unwrap();
            assert_eq!((body(&handoff).as_str(), unwrap(&handoff)), ("the body", None), "{leads}");
            assert_eq!(live, Row::user("live"), "{leads}");
        }
        assert_eq!(split(&Row::user("live")), None);
        assert_eq!(split(&Row::user(standalone_text("b"))), None);
    }

    #[test]
    fn parts_survive_merging() {
        let parts = vec![json!({"type": "image_url", "image_url": {"url": "x"}})];
        for leads in [true, false] {
            let row = Row::user(merge(&Content::Parts(parts.clone()), "b", leads));
            assert!(is_handoff(&row));
            assert_eq!(unwrap(&row).unwrap().content, Content::Parts(parts.clone()));
        }
    }

    #[test]
    fn a_standalone_handoff_holds_nothing_live() {
        assert_eq!(unwrap(&Row::assistant(standalone_text("b"))), None);
        assert_eq!(unwrap(&Row::user("sum").with(SUMMARY_FLAG, true)), None);
    }

    #[test]
    fn the_system_note_is_added_once() {
        let mut row = Row::new(crate::wire::Role::System, "s");
        add_system_note(&mut row);
        let once = row.clone();
        add_system_note(&mut row);
        assert_eq!(row, once);
    }
}

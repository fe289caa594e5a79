//! Questions about a history that every phase of a compaction asks: who spoke last, what is still open, where a tool
//! group begins and ends.
//!
//! Reads rows, never changes them.

use std::ops::Range;

use serde_json::Value;

use crate::agent::compress::{estimate, handoff};
use crate::wire::row::part_text;
use crate::wire::{Content, Row};

/// Flag of a row that holds only a snapshot of the todo list.
pub const TODO_FLAG: &str = "_todo_snapshot_synthetic";

/// First words of texts that the harness itself writes into user rows.
const SCAFFOLDS: &[&str] = &[
    "[system:",
    "[system note",
    "[context",
    "[out-of-band",
    "[async delegation",
    "[background process",
    "[important: background process",
    "[your active task list",
    "[todo",
    "[continue",
    "[recovery",
    "cronjob response:",
];

/// True when nothing can be read or seen in the content; a picture can be seen.
pub fn is_blank(content: &Content) -> bool {
    match content {
        Content::Absent | Content::Null => true,
        Content::Text(text) => text.trim().is_empty(),
        Content::Parts(parts) => parts.iter().all(|part| {
            !estimate::is_image_part(part) && part_text(part).is_some_and(|text| text.trim().is_empty())
        }),
        Content::Other(_) => false,
    }
}

/// True when the row says something in words.
pub fn has_text(row: &Row) -> bool {
    match &row.content {
        Content::Text(text) => !text.trim().is_empty(),
        Content::Parts(parts) => parts.iter().filter_map(part_text).any(|text| !text.trim().is_empty()),
        _ => false,
    }
}

/// True for a text that the harness writes into user rows, such as a continuation or a background notice.
pub fn is_scaffold_text(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(40).collect::<String>().to_lowercase();
    SCAFFOLDS.iter().any(|scaffold| start.starts_with(scaffold))
}

/// True for a line by which a person asks for something that is meant to last.
pub fn is_standing(line: &str) -> bool {
    /// How people begin such a line.
    const STARTS: [&str; 6] = ["always ", "never ", "from now on", "remember: ", "总是", "永远不要"];
    let line = line.trim().to_lowercase();
    STARTS.iter().any(|start| line.starts_with(start))
}

/// True for a row in which a person asks something (Hermes agent/context_compressor.py:4714).
pub fn is_human(row: &Row) -> bool {
    if !row.is_user() || handoff::is_handoff(row) || row.flag(TODO_FLAG) || is_blank(&row.content) {
        return false;
    }
    let kind = row.extra.get("display_kind").and_then(Value::as_str).unwrap_or("");
    (kind.is_empty() || kind == "steer") && !is_scaffold_text(&row.content.flat())
}

fn is_steer(row: &Row) -> bool {
    row.extra.get("display_kind").and_then(Value::as_str) == Some("steer")
}

/// Index of the newest human row at or after `from`.
pub fn last_human(rows: &[Row], from: usize) -> Option<usize> {
    (from..rows.len()).rev().find(|index| is_human(&rows[*index]))
}

/// Index of the newest assistant row with text at or after `from`, else of the newest one; handoffs do not count.
pub fn last_assistant(rows: &[Row], from: usize) -> Option<usize> {
    let own = |index: &usize| rows[*index].is_assistant() && !handoff::is_handoff(&rows[*index]);
    let newest = (from..rows.len()).rev();
    newest.clone().filter(own).find(|index| has_text(&rows[*index])).or_else(|| newest.clone().find(own))
}

/// Moves an index past tool rows.
pub fn align_forward(rows: &[Row], mut index: usize) -> usize {
    while rows.get(index).is_some_and(Row::is_tool) {
        index += 1;
    }
    index
}

/// Moves an index to the assistant row whose tool group it would cut (Hermes agent/context_compressor.py:4703).
pub fn align_backward(rows: &[Row], index: usize) -> usize {
    if index == 0 || index >= rows.len() {
        return index;
    }
    match rows[..index].iter().rposition(|row| !row.is_tool()) {
        Some(first) if rows[first].is_assistant() && rows[first].has_calls() => first,
        _ => index,
    }
}

/// Index of the newest human row whose request is not answered yet (Hermes agent/context_compressor.py:4825).
pub fn unfinished_request(rows: &[Row]) -> Option<usize> {
    let end = rows.iter().rev().find(|row| !(row.is_assistant() && !row.has_calls() && !has_text(row)));
    if end.is_some_and(|row| row.is_assistant() && !row.has_calls() && has_text(row)) {
        return None;
    }
    // A request is said again in words; a picture alone cannot be.
    (0..rows.len()).rev().find(|index| is_human(&rows[*index]) && has_text(&rows[*index]))
}

/// The tool rows at the end that the model has not read yet (Hermes agent/context_compressor.py:1338).
pub fn pending_round(rows: &[Row]) -> Option<Range<usize>> {
    let stop = rows.iter().rposition(|row| !is_steer(row))? + 1;
    let start = rows[..stop].iter().rposition(|row| !row.is_tool()).map_or(0, |index| index + 1);
    let called = start > 0 && rows[start - 1].is_assistant() && rows[start - 1].has_calls();
    (start < stop && called).then_some(start..stop)
}

/// Wordless user rows right behind the newest request, if the model answered right after them
/// (Hermes agent/context_compressor.py:4439).
pub fn blank_echoes(rows: &[Row]) -> Vec<usize> {
    let Some(request) = last_human(rows, 0) else { return Vec::new() };
    let echoes: Vec<usize> = (request + 1..rows.len())
        .take_while(|index| rows[*index].is_user() && is_blank(&rows[*index].content))
        .collect();
    let next = request + 1 + echoes.len();
    if rows.get(next).is_some_and(Row::is_assistant) { echoes } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ToolCall;

    #[test]
    fn blank_rows_between_request_and_answer_are_echoes() {
        let mut rows = vec![Row::user("ask"), Row::user(" "), Row::user(""), Row::assistant("x")];
        assert_eq!(blank_echoes(&rows), [1, 2]);
        rows.pop();
        assert!(blank_echoes(&rows).is_empty());
    }

    #[test]
    fn a_result_without_its_call_is_no_pending_round() {
        let rows = [Row::user("ask"), Row::result("1", "t", "x")];
        assert_eq!(pending_round(&rows), None);
        let rows = [Row::calls("", vec![ToolCall::new("1", "t", "{}")]), Row::result("1", "t", "x")];
        assert_eq!(pending_round(&rows), Some(1..2));
    }
}

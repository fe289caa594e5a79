//! Repair of a row sequence that a provider would refuse, in four passes.
//!
//! The turn runs it on the live history before every request, the store runs it when a conversation is loaded for the
//! model. Rows that survive keep everything else about them. Never: an insertion of a row, a change of the order.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::wire::{Content, Role, Row, ids};

/// What a repair did. All counts are of rows, except where said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Assistant rows merged into the one before.
    pub merged_assistants: usize,
    /// Provisional answers replaced by the answer after them.
    pub replaced_answers: usize,
    /// Tool rows that answered no call of their run.
    pub dropped_results: usize,
    /// Assistant rows that lost calls which nothing answered.
    pub trimmed_calls: usize,
    /// Those of `trimmed_calls` that had nothing else to say and were dropped.
    pub dropped_assistants: usize,
    /// User rows merged into the one before.
    pub merged_users: usize,
}

impl Report {
    /// All repairs together; an assistant row that lost its calls counts once, dropped or not.
    pub fn repairs(&self) -> usize {
        self.merged_assistants
            + self.replaced_answers
            + self.dropped_results
            + self.trimmed_calls
            + self.merged_users
    }
}

/// A repaired sequence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Repaired {
    /// The rows that are left.
    pub rows: Vec<Row>,
    /// For each of them its index in the input; a merged row has the index of its first part.
    pub origins: Vec<usize>,
    /// What was done.
    pub report: Report,
}

/// Finish reasons that mark an answer as provisional: the next answer replaces it.
const PROVISIONAL: [&str; 2] = ["verification_required", "verify_hook_continue"];

/// Repairs a sequence (`Hermes agent/agent_runtime_helpers.py:766`).
///
/// In this order: neighbouring assistant rows merge; tool rows go that answer no call of the run they stand in; calls
/// go that the tool rows directly after them do not answer; neighbouring user rows of plain text merge.
pub fn repair(rows: Vec<Row>) -> Repaired {
    let mut report = Report::default();
    let rows = rows.into_iter().enumerate().collect();
    let rows = merge_assistants(rows, &mut report);
    let rows = drop_stray_results(rows, &mut report);
    let rows = drop_open_calls(rows, &mut report);
    let rows = merge_users(rows, &mut report);
    let (origins, rows) = rows.into_iter().unzip();
    Repaired { rows, origins, report }
}

type Indexed = (usize, Row);

fn text_of<'a>(row: &'a Row, key: &str) -> Option<&'a str> {
    row.extra.get(key).and_then(Value::as_str)
}

fn truthy(row: &Row, key: &str) -> bool {
    row.extra.get(key).is_some_and(is_true)
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

/// Interim rows of a provider carry state that must be replayed as it is.
fn is_interim(row: &Row) -> bool {
    truthy(row, "codex_reasoning_items")
        || truthy(row, "codex_message_items")
        || text_of(row, "finish_reason") == Some("incomplete")
}

fn merge_assistants(rows: Vec<Indexed>, report: &mut Report) -> Vec<Indexed> {
    let mut kept: Vec<Indexed> = Vec::with_capacity(rows.len());
    for (index, row) in rows {
        let mergeable = row.is_assistant() && !is_interim(&row);
        match kept.last_mut() {
            Some(last) if mergeable && last.1.is_assistant() && !is_interim(&last.1) => {
                if text_of(&last.1, "finish_reason").is_some_and(|reason| PROVISIONAL.contains(&reason)) {
                    *last = (index, row);
                    report.replaced_answers += 1;
                } else {
                    absorb_assistant(&mut last.1, row);
                    report.merged_assistants += 1;
                }
            }
            _ => kept.push((index, row)),
        }
    }
    kept
}

fn absorb_assistant(first: &mut Row, mut second: Row) {
    if let Some(calls) = second.tool_calls.take().filter(|calls| !calls.is_empty()) {
        first.tool_calls.get_or_insert_with(Vec::new).extend(calls);
    }
    match (&first.content, second.content) {
        (Content::Text(a), Content::Text(b)) => {
            let parts = [a.trim(), b.trim()];
            let joined: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let joined = joined.join("\n");
            if *a != joined {
                first.content = Content::Text(joined);
                first.extra.shift_remove("api_content");
            }
        }
        (content, other) if content.is_empty() && !matches!(other, Content::Absent | Content::Null) => {
            first.content = other;
            first.extra.shift_remove("api_content");
        }
        _ => {}
    }
    if !truthy(first, "reasoning_content")
        && let Some(reasoning) = second.extra.shift_remove("reasoning_content")
        && is_true(&reasoning)
    {
        first.extra.insert("reasoning_content".to_owned(), reasoning);
    }
}

fn drop_stray_results(rows: Vec<Indexed>, report: &mut Report) -> Vec<Indexed> {
    // The calls of the open run that nothing has answered yet, each as the set of its spellings.
    let mut open: Vec<BTreeSet<String>> = Vec::new();
    let mut kept = Vec::with_capacity(rows.len());
    for (index, row) in rows {
        match row.role {
            Role::Assistant => {
                open = row.tool_calls.iter().flatten().map(|call| owned(&ids::of_call(call))).collect();
            }
            Role::User => open.clear(),
            Role::Tool => {
                let named = ids::of_result(&row);
                let Some(at) = open.iter().position(|call| named.iter().any(|id| call.contains(*id))) else {
                    report.dropped_results += 1;
                    continue;
                };
                open.swap_remove(at);
            }
            Role::System | Role::Other(_) => {}
        }
        kept.push((index, row));
    }
    kept
}

fn owned(ids: &BTreeSet<&str>) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn drop_open_calls(rows: Vec<Indexed>, report: &mut Report) -> Vec<Indexed> {
    let mut kept: Vec<Indexed> = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while let Some((index, mut row)) = rows.next() {
        let mut run = Vec::new();
        while row.is_assistant() && rows.peek().is_some_and(|(_, next)| next.is_tool()) {
            run.extend(rows.next());
        }
        let answered: BTreeSet<&str> = run.iter().flat_map(|(_, result)| ids::of_result(result)).collect();
        let before = row.tool_calls.as_ref().map_or(0, Vec::len);
        if row.is_assistant()
            && before > 0
            && let Some(calls) = &mut row.tool_calls
        {
            calls.retain(|call| !ids::of_call(call).is_disjoint(&answered));
            if calls.len() < before {
                report.trimmed_calls += 1;
            }
            if calls.is_empty() {
                row.tool_calls = None;
                if is_blank(&row.content) {
                    report.dropped_assistants += 1;
                    kept.extend(run);
                    continue;
                }
            }
        }
        kept.push((index, row));
        kept.extend(run);
    }
    kept
}

fn is_blank(content: &Content) -> bool {
    content.is_empty() || content.text().is_some_and(|text| text.trim().is_empty())
}

/// True for rows that no user row may be merged into: handoffs of the compressor and steer rows.
fn stands_alone(row: &Row) -> bool {
    truthy(row, "_compressed_summary") || text_of(row, "display_kind") == Some("steer")
}

fn merge_users(rows: Vec<Indexed>, report: &mut Report) -> Vec<Indexed> {
    let mut kept: Vec<Indexed> = Vec::with_capacity(rows.len());
    for (index, row) in rows {
        if row.is_user()
            && let Some((_, last)) = kept.last_mut()
            && last.is_user()
            && !stands_alone(last)
            && let (Content::Text(a), Content::Text(b)) = (&mut last.content, &row.content)
        {
            if a.is_empty() {
                a.push_str(b);
            } else if !b.is_empty() {
                a.push_str("\n\n");
                a.push_str(b);
            }
            // The bytes that were sent belong to the unmerged text.
            last.extra.shift_remove("api_content");
            report.merged_users += 1;
            continue;
        }
        kept.push((index, row));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ToolCall;

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "t", "{}")
    }

    #[test]
    fn a_sound_sequence_is_left_as_it_is() {
        let rows = vec![
            Row::user("a"),
            Row::calls("", vec![call("1"), call("2")]),
            Row::result("2", "t", "x"),
            Row::result("1", "t", "y"),
            Row::user("b"),
        ];
        let repaired = repair(rows.clone());
        assert_eq!((repaired.rows, repaired.report.repairs()), (rows, 0));
    }

    #[test]
    fn a_merged_user_row_loses_the_bytes_that_were_sent() {
        let repaired = repair(vec![Row::user("a").with("api_content", "a+"), Row::user("b")]);
        assert_eq!(repaired.rows, [Row::user("a\n\nb")]);
        assert_eq!(repaired.origins, [0]);
    }

    #[test]
    fn a_second_answer_under_another_spelling_is_dropped() {
        let rows = vec![
            Row::calls("", vec![call("c|f")]),
            Row::result("c", "t", "one"),
            Row::result("f", "t", "two"),
        ];
        let repaired = repair(rows);
        assert_eq!((repaired.rows.len(), repaired.report.dropped_results), (2, 1));
    }

    #[test]
    fn nothing_merges_into_a_handoff_row_but_a_handoff_row_merges_into_a_user_row() {
        let handoff = Row::user("s").with("_compressed_summary", true);
        assert_eq!(repair(vec![handoff.clone(), Row::user("a")]).rows.len(), 2);
        assert_eq!(repair(vec![Row::user("a"), handoff]).rows.len(), 1);
    }
}

//! The request copy made acceptable: unknown roles, empty rows, unanswered calls, stray results.
//!
//! Works on a whole conversation that came from elsewhere (a resumed store, a foreign log). Rows that the loop itself
//! appended are well formed already.

use std::collections::BTreeSet;

use crate::wire::{Content, Role, Row, ids};

/// What stands in for an answer that never came.
pub const STUB: &str = "(no result was recorded for this call)";
/// What stands in for an empty row in the middle.
pub const PLACEHOLDER: &str = "(empty)";

/// A copy of the rows that a provider accepts.
pub fn sanitize(rows: &[Row]) -> Vec<Row> {
    let known: Vec<Row> = rows.iter().filter(|row| !matches!(row.role, Role::Other(_))).cloned().collect();
    let mut out: Vec<Row> = Vec::with_capacity(known.len());
    let mut index = 0;
    while index < known.len() {
        let mut row = known[index].clone();
        index += 1;
        if row.is_tool() {
            // Only results directly behind their call are taken, below.
            continue;
        }
        if row.tool_calls.as_ref().is_some_and(Vec::is_empty) {
            row.tool_calls = None;
        }
        clean_calls(&mut row);
        let calls = row.call_list().to_vec();
        out.push(row);
        let mut answered = BTreeSet::new();
        let run_start = out.len();
        while let Some(result) = known.get(index).filter(|row| row.is_tool()) {
            index += 1;
            let place = calls.iter().position(|call| ids::answers(result, call));
            if let Some(place) = place.filter(|place| answered.insert(*place)) {
                let mut result = result.clone();
                if result.name.as_deref().is_some_and(|name| name != calls[place].name) {
                    result.name = Some(calls[place].name.clone());
                }
                out.push(result);
            }
        }
        debug_assert!(out.len() - run_start <= calls.len());
        for (_, call) in calls.iter().enumerate().filter(|(place, _)| !answered.contains(place)) {
            out.push(Row::result(call.id.clone(), call.name.clone(), STUB));
        }
    }
    let last = out.len().saturating_sub(1);
    for (index, row) in out.iter_mut().enumerate() {
        let speaks = matches!(row.role, Role::User | Role::Assistant);
        if index != last && speaks && row.content.is_empty() && !row.has_calls() {
            row.content = Content::from(PLACEHOLDER);
        }
    }
    out
}

/// Names within what providers accept; ids that repeat within a row dropped.
fn clean_calls(row: &mut Row) {
    /// Longest name; every provider's limit.
    const NAME_CHARS_MAX: usize = 64;
    let Some(calls) = &mut row.tool_calls else { return };
    let mut seen = BTreeSet::new();
    calls.retain(|call| call.id.is_empty() || seen.insert(call.id.clone()));
    for call in calls {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if call.name.is_empty() || call.name.len() > NAME_CHARS_MAX || !call.name.chars().all(fits) {
            let name: String =
                call.name.chars().map(|c| if fits(c) { c } else { '_' }).take(NAME_CHARS_MAX).collect();
            call.name = if name.is_empty() { "unknown_tool".to_owned() } else { name };
        }
    }
}

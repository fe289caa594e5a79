//! After a cut: every result has its call and every call its result.
//!
//! Matching is global over the list and knows every spelling of an id (Hermes agent/context_compressor.py:4629). A
//! call that may still be in flight stays. Never reorders rows.

use std::collections::BTreeSet;

use crate::agent::compress::history;
use crate::wire::{Content, Row, ToolCall, ids};

/// Stands in for the content of an assistant row whose calls are all gone.
pub const PLACEHOLDER: &str = "(tool call removed)";

/// What the cleaning took away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Tool rows removed because no call matched.
    pub dropped_results: usize,
    /// Calls removed because no result matched.
    pub dropped_calls: usize,
    /// Indices of the removed rows in the list as it was.
    pub removed_rows: Vec<usize>,
}

fn all_call_ids(rows: &[Row]) -> BTreeSet<&str> {
    rows.iter().filter(|row| row.is_assistant()).flat_map(Row::call_list).flat_map(ids::of_call).collect()
}

/// Number of results whose call is nowhere in the list.
pub fn orphan_results(rows: &[Row]) -> usize {
    let calls = all_call_ids(rows);
    rows.iter().filter(|row| row.is_tool() && is_orphan(&ids::of_result(row), &calls)).count()
}

fn is_orphan(ids: &BTreeSet<&str>, known: &BTreeSet<&str>) -> bool {
    !ids.is_empty() && ids.is_disjoint(known)
}

/// Index of the assistant row whose calls may still be in flight.
fn in_flight(rows: &[Row]) -> Option<usize> {
    rows.iter().rposition(|row| !row.is_tool()).filter(|index| rows[*index].is_assistant())
}

/// Removes results without a call and calls without a result.
pub fn clean(rows: Vec<Row>) -> (Vec<Row>, Cleaned) {
    let mut report = Cleaned::default();
    let calls = all_call_ids(&rows);
    let orphan: Vec<bool> =
        rows.iter().map(|row| row.is_tool() && is_orphan(&ids::of_result(row), &calls)).collect();
    let results: BTreeSet<&str> = rows
        .iter()
        .zip(&orphan)
        .filter(|(row, orphan)| row.is_tool() && !**orphan)
        .flat_map(|(row, _)| ids::of_result(row))
        .collect();
    let spared = in_flight(&rows);
    let keep_calls: Vec<Vec<bool>> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let spare = spared == Some(index) || !row.is_assistant();
            row.call_list().iter().map(|call| spare || !is_orphan(&ids::of_call(call), &results)).collect()
        })
        .collect();
    let mut kept = Vec::with_capacity(rows.len());
    for (index, mut row) in rows.into_iter().enumerate() {
        if orphan[index] {
            report.dropped_results += 1;
            report.removed_rows.push(index);
            continue;
        }
        let lost = keep_calls[index].iter().filter(|keep| !**keep).count();
        if lost > 0 {
            report.dropped_calls += lost;
            drop_calls(&mut row, &keep_calls[index]);
        }
        kept.push(row);
    }
    (kept, report)
}

fn drop_calls(row: &mut Row, keep: &[bool]) {
    let calls = row.tool_calls.take().unwrap_or_default();
    let left: Vec<ToolCall> =
        calls.into_iter().zip(keep).filter(|(_, keep)| **keep).map(|(call, _)| call).collect();
    if !left.is_empty() {
        row.tool_calls = Some(left);
        return;
    }
    if history::is_blank(&row.content) {
        row.content = Content::from(PLACEHOLDER);
        row.extra.remove("api_content");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_cut_in_two_loses_the_result_on_the_far_side() {
        let rows = vec![Row::user("q"), Row::result("a", "t", "x"), Row::assistant("y")];
        assert_eq!(orphan_results(&rows), 1);
        let (kept, report) = clean(rows);
        assert_eq!((kept.len(), report.dropped_results, report.removed_rows), (2, 1, vec![1]));
    }
}

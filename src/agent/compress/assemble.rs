//! Putting a compacted list together: head, summary, tail, and what must be mended afterwards.
//!
//! The role of the summary row is chosen so that a strict chat template accepts the list; it is merged into a tail row
//! when no role would do.

use serde_json::Value;

use crate::agent::compress::estimate::has_image;
use crate::agent::compress::{handoff, history, prune};
use crate::policy::{Compress, SummaryRole};
use crate::wire::{Content, Role, Row};

/// Header of a request that is said again after the summary.
const RESTATED: &str = "[This request is still open; it was made before the summary above.]";

/// Where the summary goes and whose words it seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Role of a standalone summary row.
    pub role: Role,
    /// It joins a row of the tail instead.
    pub merge: bool,
    /// It must come first and as a user turn.
    pub lead: bool,
    /// First row of the tail that a strict template sees.
    pub first_visible: Option<usize>,
}

/// Rows that a strict template sees: neither results nor rows that call tools.
fn is_visible(row: &Row) -> bool {
    !(row.is_tool() || row.is_assistant() && row.has_calls())
}

/// Chooses the place of the summary (Hermes agent/context_compressor.py:5443).
pub fn placement(head: &[Row], tail: &[Row], start: usize, policy: &Compress) -> Placement {
    let last = match head.iter().rfind(|row| is_visible(row)) {
        Some(row) => Some(row.role.clone()),
        None if head.is_empty() => Some(Role::User),
        None => None,
    };
    let first_visible = tail.iter().position(is_visible);
    let first = first_visible.map(|index| tail[index].role.clone());
    let human = head.iter().chain(tail).any(|row| row.is_user() && history::has_text(row));
    let lead = policy.summary_leads_as_user && (start == 0 || last == Some(Role::System) || !human);
    match policy.summary_role {
        SummaryRole::Auto => {}
        SummaryRole::User => return Placement { role: Role::User, merge: false, lead, first_visible },
        SummaryRole::Assistant => {
            return Placement { role: Role::Assistant, merge: false, lead, first_visible };
        }
    }
    let as_user = lead || matches!(last, None | Some(Role::Assistant | Role::Tool));
    let mut role = if as_user { Role::User } else { Role::Assistant };
    let mut merge = false;
    if first.as_ref() == Some(&role) {
        let other = if role == Role::User { Role::Assistant } else { Role::User };
        if last.is_some() && last.as_ref() != Some(&other) && !lead {
            role = other;
        } else {
            merge = true;
        }
    }
    Placement { role, merge, lead, first_visible }
}

/// The parts of a compacted list before it is put together.
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// Rows before the stretch.
    pub head: &'a [Row],
    /// Rows after it.
    pub tail: &'a [Row],
    /// Index of the stretch's first row.
    pub start: usize,
    /// Body of the summary.
    pub body: &'a str,
    /// A person spoke in what the summary covers.
    pub has_human: bool,
}

/// A list put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The rows.
    pub rows: Vec<Row>,
    /// Index of the row that holds the summary.
    pub summary_at: usize,
    /// How it was placed.
    pub placement: Placement,
    /// Rows of the head that are left.
    pub head_rows: usize,
}

fn live(row: &Row) -> Option<Row> {
    if handoff::is_handoff(row) { handoff::unwrap(row) } else { Some(row.clone()) }
}

fn mark(row: &mut Row, has_human: bool) {
    row.extra.insert(handoff::SUMMARY_FLAG.to_owned(), Value::from(true));
    row.extra.insert(handoff::HUMAN_FLAG.to_owned(), Value::from(has_human));
}

/// Puts head, summary and tail together; older handoffs are unwrapped or dropped
/// (Hermes agent/context_compressor.py:5383).
pub fn assemble(parts: &Parts<'_>, policy: &Compress) -> Assembled {
    let mut rows: Vec<Row> = parts.head.iter().filter_map(live).collect();
    for row in rows.iter_mut().filter(|row| row.role == Role::System) {
        handoff::add_system_note(row);
    }
    let mut tail: Vec<Row> = parts.tail.iter().filter_map(live).collect();
    let placement = placement(&rows, &tail, parts.start, policy);
    let head_rows = rows.len();
    let summary_at;
    if placement.merge && !tail.is_empty() {
        let first =
            if placement.lead || tail[0].is_tool() { placement.first_visible.unwrap_or(0) } else { 0 };
        // Differs: never into a result; it may lose its call when pairs are cleaned, and the summary with it.
        let leads = placement.lead && placement.role == Role::User;
        let row = &mut tail[first];
        row.content = handoff::merge(&row.content, parts.body, leads);
        row.extra.remove("api_content");
        mark(row, parts.has_human);
        summary_at = head_rows + first;
    } else {
        let mut row = Row::new(placement.role.clone(), handoff::standalone_text(parts.body));
        mark(&mut row, parts.has_human);
        rows.push(row);
        summary_at = head_rows;
    }
    rows.extend(tail);
    Assembled { rows, summary_at, placement, head_rows }
}

/// Says an unfinished request again when no human row follows the summary (Hermes agent/context_compressor.py:4888).
///
/// `request` is the row as it stood in the history. Answers true when it was said again.
pub fn restate_request(rows: &mut Vec<Row>, request: &Row, summary_at: usize) -> bool {
    let after = (summary_at + 1).min(rows.len());
    if history::last_human(rows, after).is_some() || live_in_summary(rows, summary_at) {
        return false;
    }
    let said = restated(request);
    let last_visible = rows.iter().rposition(is_visible);
    if last_visible.is_some_and(|index| rows[index].is_user()) {
        let Some(summary) = rows.get_mut(summary_at) else { return false };
        summary.content = handoff::append_after_end(&summary.content, &said.content.flat());
    } else {
        rows.push(said);
    }
    drop_original(rows, request);
    true
}

/// True when a live request was merged into the summary row itself.
fn live_in_summary(rows: &[Row], summary_at: usize) -> bool {
    rows.get(summary_at).and_then(handoff::unwrap).is_some_and(|live| history::is_human(&live))
}

fn restated(request: &Row) -> Row {
    let mut row = request.clone();
    row.content = match &request.content {
        Content::Parts(parts) => {
            let mut all = vec![serde_json::json!({"type": "text", "text": format!("{RESTATED}\n\n")})];
            all.extend(parts.iter().cloned());
            Content::Parts(all)
        }
        other => Content::Text(format!("{RESTATED}\n\n{}", other.flat())),
    };
    for key in ["timestamp", "api_content", "_db_persisted"] {
        row.extra.remove(key);
    }
    row
}

fn drop_original(rows: &mut Vec<Row>, request: &Row) {
    let id = |row: &Row| row.extra.get("message_id").filter(|id| !id.is_null()).cloned();
    let Some(wanted) = id(request) else { return };
    let last = rows.len() - 1;
    let mut index = 0;
    rows.retain(|row| {
        let keep = index == last || handoff::is_handoff(row) || id(row).as_ref() != Some(&wanted);
        index += 1;
        keep
    });
}

/// Takes old images out (Hermes agent/context_compressor.py:1574).
pub fn drop_old_images(rows: &mut [Row]) {
    let bears = |row: &Row| has_image(&row.content);
    let newest_user = rows.iter().rposition(|row| row.is_user() && bears(row));
    let newest_tool = rows.iter().rposition(|row| row.is_tool() && bears(row));
    for (index, row) in rows.iter_mut().enumerate() {
        let old = if row.is_tool() {
            newest_tool != Some(index)
        } else {
            newest_user.is_some_and(|user| index < user)
                || (index == 0 && newest_user == Some(0) && newest_tool.is_some())
        };
        if old && let Some(stripped) = prune::without_images(&row.content) {
            row.content = stripped;
            row.extra.remove("api_content");
        }
    }
}

/// Removes the marks of the store, since every row of a new list has to be written again.
pub fn drop_marks(rows: &mut [Row]) {
    for row in rows {
        row.extra.remove("_db_persisted");
        row.extra.remove("_compaction_tail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ToolCall;

    #[test]
    fn an_open_request_is_said_again_behind_the_tail() {
        let request = Row::user("do it").with("timestamp", 1);
        let mut rows = vec![
            request.clone(),
            Row::assistant("s").with(handoff::SUMMARY_FLAG, true),
            Row::calls("", vec![ToolCall::new("a", "t", "{}")]),
            Row::result("a", "t", "x"),
        ];
        // The last row that a template sees is the summary, an assistant row.
        assert!(restate_request(&mut rows, &request, 1));
        assert_eq!(rows.len(), 5);
        assert!(rows[4].content.flat().ends_with("do it") && !rows[4].extra.contains_key("timestamp"));
    }

    #[test]
    fn an_open_request_joins_a_summary_that_is_the_last_user_row() {
        let request = Row::user("do it");
        let mut rows = vec![
            Row::user(handoff::standalone_text("b")).with(handoff::SUMMARY_FLAG, true),
            Row::calls("", vec![ToolCall::new("a", "t", "{}")]),
            Row::result("a", "t", "x"),
        ];
        assert!(restate_request(&mut rows, &request, 0));
        assert_eq!(rows.len(), 3);
        assert!(rows[0].content.flat().ends_with("do it"));
        assert!(!restate_request(&mut rows, &request, 0), "once is enough");
    }

    #[test]
    fn a_summary_is_never_merged_into_a_result() {
        let tail = [Row::result("x", "t", "r"), Row::user("u")];
        let head = [Row::user("a"), Row::assistant("b")];
        let parts = Parts { head: &head, tail: &tail, start: 2, body: "B", has_human: true };
        let list = assemble(&parts, &Compress::default());
        assert_eq!(list.summary_at, 3);
        assert!(list.rows[2].is_tool() && handoff::is_handoff(&list.rows[3]));
    }
}

//! What a compaction carries over besides the rows: the todo list, the human intent, the last visible answer; and the
//! guard against a candidate that grew.
//!
//! Runs between the compaction and its storing (Hermes agent/conversation_compression.py:4089). Never asks a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::agent::compress::estimate::{Sizer, chars};
use crate::agent::compress::{assemble, handoff, history, prune, tool_summary};
use crate::policy::Compress;
use crate::wire::tools::STATUSES;
use crate::wire::{Content, Role, Row};

/// One item of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Todo {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress`, `completed`, `cancelled`.
    pub status: String,
    /// Id of the item it belongs to.
    pub parent: Option<String>,
}

impl Todo {
    /// The items of a `todos` argument; what has no content is left out, a missing id is the place in the list.
    pub fn list(todos: &Value) -> Vec<Self> {
        let text = |item: &Value, key: &str| match &item[key] {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let items = todos.as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        items
            .map(|(index, item)| {
                let or = |text: String, other: String| if text.is_empty() { other } else { text };
                Self {
                    id: or(text(item, "id"), (index + 1).to_string()),
                    content: item.as_str().map_or_else(|| text(item, "content"), str::to_owned),
                    status: or(text(item, "status"), "pending".to_owned()),
                    parent: Some(text(item, "parent")).filter(|id| !id.is_empty()),
                }
            })
            .filter(|item| !item.content.is_empty())
            .collect()
    }

    /// This list with the items of a `todos` argument merged in by their id: fields that are given change an item that
    /// is there, other items are added; what has no id is left out (Hermes tools/todo_tool.py:56).
    pub fn merged(mut list: Vec<Self>, todos: &Value) -> Vec<Self> {
        for item in todos.as_array().into_iter().flatten() {
            let given = |key: &str| item[key].as_str().map(str::trim).filter(|text| !text.is_empty());
            let id = match &item["id"] {
                Value::Number(number) => number.to_string(),
                id => id.as_str().unwrap_or_default().trim().to_owned(),
            };
            if id.is_empty() {
                continue;
            }
            let Some(known) = list.iter_mut().find(|known| known.id == id) else {
                list.extend(Self::list(&Value::from(vec![item.clone()])));
                continue;
            };
            if let Some(content) = given("content") {
                content.clone_into(&mut known.content);
            }
            if let Some(status) =
                given("status").map(str::to_lowercase).filter(|word| STATUSES.contains(&&**word))
            {
                known.status = status;
            }
            if item.get("parent").is_some() {
                known.parent = given("parent").map(str::to_owned);
            }
        }
        list
    }

    /// The list as the newest answer of its tool in a history gives it; a fresh process knows it only from there.
    pub fn of_history(rows: &[Row]) -> Vec<Self> {
        let answers =
            rows.iter().rev().filter(|row| row.is_tool() && row.name.as_deref() == Some("todo_list"));
        let parsed = |row: &Row| serde_json::from_str::<Value>(row.content.text()?).ok();
        answers
            .filter_map(parsed)
            .find(|answer| answer["todos"].is_array())
            .map_or_else(Vec::new, |answer| Self::list(&answer["todos"]))
    }
}

/// One carried line of the todo list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoLine {
    /// Id of the item.
    pub id: String,
    /// Depth below a carried root.
    pub depth: usize,
    /// Its status as a mark.
    pub mark: &'static str,
    /// What is to be done.
    pub content: String,
}

/// First line of a carried todo list.
const TODO_HEADER: &str = "[Todo list, carried over the compaction]";
/// Skills that are named at most.
const SKILLS_MAX: usize = 20;

fn is_active(status: &str) -> bool {
    matches!(status, "pending" | "in_progress")
}

fn mark(status: &str) -> &'static str {
    match status {
        "in_progress" => "[>]",
        "completed" => "[x]",
        "cancelled" => "[~]",
        _ => "[ ]",
    }
}

/// The items worth carrying: what is open, and finished parents of what is open (Hermes tools/todo_tool.py:102).
pub fn todo_lines(items: &[Todo]) -> Vec<TodoLine> {
    let by_id: BTreeMap<&str, &Todo> = items.iter().map(|item| (item.id.as_str(), item)).collect();
    let parent = |item: &Todo| item.parent.as_deref().and_then(|id| by_id.get(id).copied());
    let mut carried: BTreeSet<&str> = BTreeSet::new();
    for item in items.iter().filter(|item| is_active(&item.status)) {
        let mut at = Some(item);
        while let Some(item) = at {
            // Stops at what was reached before, so a ring of parents ends as well.
            if !carried.insert(item.id.as_str()) {
                break;
            }
            at = parent(item);
        }
    }
    let mut lines = Vec::new();
    let mut children: BTreeMap<&str, Vec<&Todo>> = BTreeMap::new();
    let mut roots = Vec::new();
    for item in items.iter().filter(|item| carried.contains(item.id.as_str())) {
        match parent(item).filter(|parent| parent.id != item.id && carried.contains(parent.id.as_str())) {
            Some(parent) => children.entry(parent.id.as_str()).or_default().push(item),
            None => roots.push(item),
        }
    }
    let mut seen = BTreeSet::new();
    let mut open: Vec<(&Todo, usize)> = roots.into_iter().rev().map(|item| (item, 0)).collect();
    while let Some((item, depth)) = open.pop() {
        if !seen.insert(item.id.as_str()) {
            continue;
        }
        lines.push(TodoLine {
            id: item.id.clone(),
            depth,
            mark: mark(&item.status),
            content: item.content.clone(),
        });
        let below = children.get(item.id.as_str()).into_iter().flatten().rev();
        open.extend(below.map(|child| (*child, depth + 1)));
    }
    lines
}

/// The text of a carried list; `None` when nothing is open and no skill was dropped.
pub fn todo_text(items: &[Todo], skills: &[String]) -> Option<String> {
    let lines = todo_lines(items);
    if lines.is_empty() && skills.is_empty() {
        return None;
    }
    let mut text = String::from(TODO_HEADER);
    for line in lines {
        let content = line.content.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(text, "\n{}- {} {}. {content}", "  ".repeat(line.depth), line.mark, line.id);
    }
    for name in skills.iter().collect::<BTreeSet<_>>().into_iter().take(SKILLS_MAX) {
        let _ = write!(
            text,
            "\n- reload skill `{name}` with skill_view before using it ({})",
            tool_summary::SKILL_MARKER
        );
    }
    Some(text)
}

/// A text without the todo lists that were put behind its paragraphs; `None` when there are none. What stands behind a
/// list stays: a summary quotes requests, and a request may have carried one.
fn without_todos(text: &str) -> Option<String> {
    let start = format!("\n\n{TODO_HEADER}");
    let (before, mut rest) = text.split_once(&start)?;
    let mut kept = before.to_owned();
    loop {
        let item = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("- [") || line.starts_with("- reload skill `")
        };
        let lines = rest.split_inclusive('\n').skip(1).take_while(item);
        let first = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let end = first + lines.map(str::len).sum::<usize>();
        // The line end behind the last item belongs to what follows.
        let end = if rest[..end].ends_with('\n') { end - 1 } else { end };
        rest = &rest[end..];
        let Some((between, more)) = rest.split_once(&start) else { break };
        kept.push_str(between);
        rest = more;
    }
    kept.push_str(rest);
    Some(kept)
}

/// Puts the todo list at the end: behind the last row if a person wrote it, else as a row of its own.
pub fn carry_todo(rows: &mut Vec<Row>, items: &[Todo], skills: &[String]) -> bool {
    rows.retain(|row| !row.flag(history::TODO_FLAG));
    for row in rows.iter_mut().filter(|row| row.is_user()) {
        if let Some(text) = row.content.text()
            && let Some(text) = without_todos(text)
        {
            row.content = Content::from(text);
            row.extra.remove("api_content");
        }
    }
    let Some(text) = todo_text(items, skills) else { return false };
    match rows.last_mut().filter(|row| history::is_human(row)) {
        Some(row) => {
            row.content = handoff::append_after_end(&row.content, &text);
            row.extra.remove("api_content");
        }
        None => rows.push(Row::user(text).with(history::TODO_FLAG, true)),
    }
    true
}

/// How the human intent got into a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// A real request was there.
    Present,
    /// The newest request was put in at this index.
    Inserted(usize),
    /// It was merged into the last row.
    Merged,
    /// Nobody had asked anything; a neutral row was put in at this index.
    Placeholder(usize),
    /// As before, merged into the last row.
    PlaceholderMerged,
}

/// Said when no human row is left anywhere.
const CONTINUE: &str = "[Continue] Go on with the work described in the summary.";

/// Makes sure that a candidate holds a human request (Hermes agent/conversation_compression.py:2415).
pub fn anchor_human(rows: &mut Vec<Row>, original: &[Row]) -> Anchor {
    let live =
        |row: &Row| history::is_human(row) || handoff::unwrap(row).is_some_and(|row| history::is_human(&row));
    if rows.iter().any(live) {
        return Anchor::Present;
    }
    let request = history::last_human(original, 0).map(|index| original[index].clone());
    let real = request.is_some();
    let mut row = request.unwrap_or_else(|| Row::user(CONTINUE));
    for key in ["timestamp", "api_content", "_db_persisted"] {
        row.extra.remove(key);
    }
    if real {
        let first = rows.iter().position(|row| matches!(row.role, Role::User | Role::Assistant));
        if let Some(at) = first.filter(|at| rows[*at].is_assistant()) {
            rows.insert(at, row);
            return Anchor::Inserted(at);
        }
    }
    let merges = rows.last().is_some_and(|last| {
        last.is_user() && !handoff::has_handoff_text(last) && !last.flag(handoff::SUMMARY_FLAG)
    });
    if merges && let Some(last) = rows.last_mut() {
        last.content = handoff::append_after_end(&last.content, &row.content.flat());
        last.extra.remove("api_content");
        last.extra.remove(history::TODO_FLAG);
        return if real { Anchor::Merged } else { Anchor::PlaceholderMerged };
    }
    rows.push(row);
    let at = rows.len() - 1;
    if real { Anchor::Inserted(at) } else { Anchor::Placeholder(at) }
}

/// Puts the last visible answer of the model back when a compaction lost it.
pub fn keep_answer(rows: &mut Vec<Row>, original: &[Row]) -> bool {
    let Some(at) = history::last_assistant(original, 0).filter(|at| history::has_text(&original[*at])) else {
        return false;
    };
    let answer = &original[at];
    let there = rows.iter().any(|row| row.is_assistant() && row.content == answer.content)
        || rows
            .iter()
            .any(|row| handoff::is_handoff(row) && row.content.flat().contains(&answer.content.flat()));
    // Only an answer that ended the history is visible to a person as the last word.
    if there || at + 1 != original.len() || answer.has_calls() {
        return false;
    }
    rows.push(answer.clone());
    true
}

/// Why a candidate was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing is left.
    #[error("the compaction left nothing")]
    Empty,
    /// Nothing changed.
    #[error("the compaction changed nothing")]
    Unchanged,
    /// It would have made the transcript larger.
    #[error("the compaction would have grown the transcript from {before} to {after}")]
    Grew {
        /// Size before.
        before: u64,
        /// Size of the candidate after shrinking.
        after: u64,
    },
}

/// What a candidate became on the way to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The rows to store.
    pub rows: Vec<Row>,
    /// How the human intent got in; `None` where nobody looks for it.
    pub anchor: Option<Anchor>,
    /// A todo list was carried over.
    pub todo: bool,
    /// Size before.
    pub before: u64,
    /// Size of the candidate.
    pub after: u64,
}

/// Finishes a candidate: answer, todo list, human intent, growth guard.
///
/// # Errors
/// [`Refusal`]; the caller keeps its history, and a grown candidate is a strike.
pub fn finish(
    original: &[Row],
    mut rows: Vec<Row>,
    todos: &[Todo],
    skills: &[String],
    policy: &Compress,
) -> Result<Candidate, Refusal> {
    if rows.is_empty() {
        return Err(Refusal::Empty);
    }
    if rows == original {
        return Err(Refusal::Unchanged);
    }
    keep_answer(&mut rows, original);
    let todo = policy.carry_todos && carry_todo(&mut rows, todos, skills);
    let anchor = policy.anchor_request.then(|| anchor_human(&mut rows, original));
    let sizer = Sizer::new(policy);
    let before = sizer.list(original);
    let mut after = sizer.list(&rows);
    if policy.growth_guard && after > before {
        shrink(&mut rows, policy);
        after = sizer.list(&rows);
        if after > before {
            return Err(Refusal::Grew { before, after });
        }
    }
    assemble::drop_marks(&mut rows);
    Ok(Candidate { rows, anchor, todo, before, after })
}

/// What was put behind the last answer, to go with the user's next message instead: two rows of one role in a row are
/// sent as one, and the store would hold another text than the one that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Carried {
    /// A request that goes before the message.
    pub request: Option<String>,
    /// A todo list that follows it.
    pub todo: Option<String>,
}

/// Takes the rows off that stand behind the last answer.
pub fn split_end(rows: &mut Vec<Row>) -> Carried {
    let mut carried = Carried::default();
    while let Some(row) = rows.pop_if(|row| row.is_user() && !handoff::is_handoff(row)) {
        let text = row.content.flat();
        let place = if row.flag(history::TODO_FLAG) { &mut carried.todo } else { &mut carried.request };
        *place = Some(text);
    }
    carried
}

impl Carried {
    /// The user's message with all that goes with it.
    pub fn with(self, mut message: Row) -> Row {
        for (text, before) in [(self.request, true), (self.todo, false)] {
            let Some(text) = text else { continue };
            let said = message.content.flat();
            message.content =
                Content::from(if before { format!("{text}\n\n{said}") } else { format!("{said}\n\n{text}") });
            message.extra.remove("api_content");
        }
        message
    }
}

/// Longest summary after a mechanical shrink.
const SHRUNK_SUMMARY: usize = 8_000;

/// Shrinks without a model: older results, the summary, the todo row (Hermes agent/conversation_compression.py:3174).
fn shrink(rows: &mut Vec<Row>, policy: &Compress) {
    let newest = rows.iter().rposition(Row::is_tool);
    for (index, row) in rows.iter_mut().enumerate() {
        let long = row.content.text().is_some_and(|text| chars(text) > policy.prune_min_chars);
        if row.is_tool() && newest != Some(index) && long {
            row.content = Content::from(prune::CLEARED);
        }
        if handoff::is_handoff(row) && handoff::unwrap(row).is_none() {
            let body = handoff::body(row);
            if chars(&body) > SHRUNK_SUMMARY as u64 {
                let body: String = body.chars().take(SHRUNK_SUMMARY).collect();
                row.content = Content::from(handoff::standalone_text(&body));
            }
        }
    }
    rows.retain(|row| !row.flag(history::TODO_FLAG));
}

/// Joins a last row of the user with one before it, a summary as well: behind a summary stands what is live.
pub fn join_last(rows: &mut Vec<Row>) {
    if let [.., before, last] = &mut rows[..]
        && before.is_user()
        && last.is_user()
        && let (Content::Text(text), Content::Text(more)) = (&mut before.content, &last.content)
    {
        text.push_str("\n\n");
        text.push_str(more);
        before.extra.shift_remove("api_content");
        rows.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_row_is_joined_with_a_summary_that_ends_the_history() {
        let mut rows = vec![Row::user("what was done").with("_compressed_summary", true), Row::user("to do")];
        join_last(&mut rows);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].content.text(), Some("what was done\n\nto do"));
        rows.push(Row::assistant("done"));
        join_last(&mut rows);
        assert_eq!(rows.len(), 2);
    }

    fn todo(id: &str, status: &str, parent: Option<&str>) -> Todo {
        Todo {
            id: id.to_owned(),
            content: "task".to_owned(),
            status: status.to_owned(),
            parent: parent.map(str::to_owned),
        }
    }

    #[test]
    fn a_merged_item_keeps_what_the_call_does_not_give() {
        let list = vec![todo("1", "pending", None), todo("2", "pending", Some("1"))];
        let given = serde_json::json!([
            { "id": 2, "status": "Completed" },
            { "id": "1", "status": "soon", "content": "other" },
            { "content": "without an id" },
            { "id": "3", "content": "new" },
        ]);
        let merged = Todo::merged(list, &given);
        let shown: Vec<_> = merged.iter().map(|item| (&*item.id, &*item.content, &*item.status)).collect();
        assert_eq!(shown, [("1", "other", "pending"), ("2", "task", "completed"), ("3", "new", "pending")]);
        assert_eq!(merged[1].parent.as_deref(), Some("1"));
    }

    #[test]
    fn a_ring_of_parents_ends() {
        let items = [todo("1", "pending", Some("2")), todo("2", "pending", Some("1"))];
        assert!(todo_lines(&items).len() <= 2);
    }

    #[test]
    fn a_list_that_a_summary_quotes_is_taken_out_of_it_and_nothing_else_is() {
        let list = todo_text(&[todo("1", "pending", None)], &["pdf".to_owned()]).unwrap();
        let mut rows = vec![Row::user(format!("## Snapshot\nask\n\n{list}\n## Next\n- [x] mine\n\n{list}"))];
        carry_todo(&mut rows, &[], &[]);
        assert_eq!(rows[0].content.text(), Some("## Snapshot\nask\n## Next\n- [x] mine"));
    }

    proptest::proptest! {
        #[test]
        fn taking_a_list_out_gives_the_text_around_it(
            before in "[a-z\\n]{0,20}",
            after in "(\n[a-z].{0,20}|)",
            contents in proptest::collection::vec("[a-z].{0,12}", 1..4),
        ) {
            let items: Vec<Todo> = contents
                .iter()
                .map(|content| Todo { content: content.clone(), ..todo(content, "pending", None) })
                .collect();
            let list = todo_text(&items, &[]).unwrap();
            let text = without_todos(&format!("{before}\n\n{list}{after}"));
            proptest::prop_assert_eq!(text, Some(format!("{before}{after}")));
        }
    }

    #[test]
    fn a_second_carry_replaces_the_first() {
        let mut rows = vec![Row::user("ask")];
        let items = [todo("1", "pending", None)];
        carry_todo(&mut rows, &items, &[]);
        let once = rows.clone();
        carry_todo(&mut rows, &items, &[]);
        assert_eq!(rows, once);
    }

    #[test]
    fn a_candidate_that_grew_is_refused() {
        let original = [Row::user("a"), Row::assistant("b")];
        let grown = vec![Row::user("a".repeat(1_000)), Row::assistant("b")];
        let refusal = finish(&original, grown, &[], &[], &Compress::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::Grew { .. }));
    }
}

//! Which rows a compaction takes: head, tail, cuts, and the place of the summary.

use serde_json::{Value, json};

use super::{Answer, Given};
use crate::agent::compress::window::{Limits, Past};
use crate::agent::compress::{assemble, handoff, history, threshold, window};
use crate::policy::Compress;
use crate::wire::{Role, Row, ToolCall};

fn rows_of_roles(roles: &str) -> Vec<Row> {
    let roles: Vec<char> = roles.chars().collect();
    let mut rows = Vec::new();
    for (index, role) in roles.iter().enumerate() {
        rows.push(match role {
            's' => Row::new(Role::System, "s"),
            'a' => Row::assistant("a"),
            'A' => {
                let results = roles[index + 1..].iter().take_while(|role| **role == 't').count();
                let calls =
                    (1..=results.max(1)).map(|next| ToolCall::new((index + next).to_string(), "t", "{}"));
                Row::calls("", calls.collect())
            }
            't' => Row::result(index.to_string(), "t", "r"),
            _ => Row::user("u"),
        });
    }
    rows
}

pub(super) fn align(given: Given<'_>) -> Answer {
    let rows = rows_of_roles(given.text("roles")?);
    let index = given.index("index");
    Ok(json!({
        "forward": history::align_forward(&rows, index),
        "backward": history::align_backward(&rows, index),
    }))
}

fn limits(given: Given<'_>, budget: &str) -> Limits {
    Limits {
        tail_budget: given.size(budget),
        window: given.size("context_length"),
        may_split_turn: given.value("allow_split_turn").as_bool().unwrap_or(true),
    }
}

pub(super) fn tail_cut(given: Given<'_>) -> Value {
    let policy = given.policy();
    let limits = limits(given, "token_budget");
    let (rows, prices) = (given.rows("messages"), given.sizes("prices"));
    let cut = window::tail_cut(&rows, &prices, given.index("head_end"), limits, &policy);
    let ceiling = threshold::soft_ceiling(limits.tail_budget, limits.window, &policy);
    json!({"cut": cut, "soft_ceiling": ceiling})
}

fn past(given: Given<'_>) -> Past {
    Past { compressions: given.size("compression_count"), has_summary: given.flag("has_previous_summary") }
}

pub(super) fn head_size(given: Given<'_>) -> Value {
    let summaries = given.sizes("summary_rows");
    let rows: Vec<Row> = (0..given.size("n_messages"))
        .map(|index| match index {
            0 if given.flag("has_system") => Row::new(Role::System, "s"),
            index if summaries.contains(&index) => Row::user("sum").with(handoff::SUMMARY_FLAG, true),
            index if index % 2 == 1 => Row::user("u"),
            _ => Row::assistant("a"),
        })
        .collect();
    json!({"protected": window::head_size(&rows, past(given), &given.policy())})
}

pub(super) fn window_of(given: Given<'_>) -> Value {
    let (rows, prices) = (given.rows("messages"), given.sizes("prices"));
    let found =
        window::window(&rows, &prices, past(given), limits(given, "tail_token_budget"), &given.policy());
    json!({"start": found.start, "end": found.end, "has_content": found.has_content()})
}

fn role_word(role: &Role) -> &str {
    role.word()
}

pub(super) fn placement(given: Given<'_>) -> Value {
    let (head, tail) = (given.rows("head"), given.rows("tail"));
    let place = assemble::placement(&head, &tail, given.index("compress_start"), &Compress::default());
    json!({
        "role": role_word(&place.role),
        "merge_into_tail": place.merge,
        "must_lead_as_user": place.lead,
        "first_visible_tail_index": place.first_visible,
    })
}

fn place(index: Option<usize>) -> Value {
    index.map_or_else(|| json!(-1), |index| json!(index))
}

pub(super) fn last_rows(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let head = given.index("head_end");
    json!({
        "last_user": place(history::last_human(&rows, head)),
        "last_assistant": place(history::last_assistant(&rows, head)),
    })
}

pub(super) fn pending(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    json!({
        "unfinished_request": history::unfinished_request(&rows),
        "pending_round": history::pending_round(&rows).map(|round| [round.start, round.end]),
        "blank_echoes": history::blank_echoes(&rows),
    })
}

//! Compactions from end to end: failures of the summary, what is carried over, several passes.

use serde_json::{Map, Value, json};

use super::{Given, tag, tagged};
use crate::agent::compress::carry::{Anchor, Todo};
use crate::agent::compress::failure::{FailureKind, SummaryFailure};
use crate::agent::compress::gate::State;
use crate::agent::compress::{
    Ask, Compressor, ModelFacts, Outcome, SummaryOrigin, SummaryRequest, carry, handoff, pairs, snapshot,
};
use crate::policy::Compress;
use crate::wire::{Role, Row};

pub(super) fn verbatim_users(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let quotes = snapshot::quotes(&rows);
    let places: Vec<Option<usize>> =
        quotes.rows.iter().rev().map(|index| quotes.text.find(rows[*index].content.flat().trim())).collect();
    json!({
        "present": !quotes.text.is_empty(),
        "quoted": quotes.rows,
        "newest_first": places.is_sorted(),
    })
}

pub(super) fn todo_carry(given: Given<'_>) -> Value {
    let items: Vec<Todo> = given
        .items("items")
        .iter()
        .map(|item| {
            let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
            Todo {
                id: text("id").unwrap_or_default(),
                content: text("content").unwrap_or_default(),
                status: text("status").unwrap_or_default(),
                parent: text("parent"),
            }
        })
        .collect();
    let lines: Vec<Value> = carry::todo_lines(&items)
        .iter()
        .map(|line| json!({"id": line.id, "depth": line.depth, "mark": line.mark}))
        .collect();
    json!({"injected": carry::todo_text(&items, &[]).is_some(), "lines": lines})
}

pub(super) fn user_anchor(given: Given<'_>) -> Value {
    let mut rows = tagged(given.rows("compressed"));
    let outcome = match carry::anchor_human(&mut rows, &given.rows("original")) {
        Anchor::Present => "already_present",
        Anchor::Inserted(_) => "inserted",
        Anchor::Merged => "merged",
        Anchor::Placeholder(_) => "placeholder_appended",
        Anchor::PlaceholderMerged => "placeholder_merged",
    };
    let order: Vec<Value> =
        rows.iter().map(|row| if tag(row).is_null() { json!("new") } else { tag(row) }).collect();
    let roles: Vec<&str> = rows.iter().map(|row| row.role.word()).collect();
    json!({"outcome": outcome, "order": order, "roles": roles})
}

fn scripted(step: &Value) -> Result<String, SummaryFailure> {
    if let Some(error) = step.get("error") {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("");
        let status = error.get("status").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let kind = match error.get("kind").and_then(Value::as_str) {
            Some("http") => FailureKind::Http,
            Some("connection") => FailureKind::Connection,
            Some("timeout") => FailureKind::Timeout,
            Some("json" | "json_decode") => FailureKind::NotJson,
            _ => FailureKind::Other,
        };
        return Err(SummaryFailure { kind, status, message: message.to_owned() });
    }
    if step.get("finish").and_then(Value::as_str) == Some("length") {
        return Err(SummaryFailure::new(FailureKind::Truncated, "cut by the output limit"));
    }
    Ok(step.get("reply").and_then(Value::as_str).unwrap_or("").to_owned())
}

pub(super) fn summary_failure(given: Given<'_>) -> Value {
    let mut rows = vec![Row::new(Role::System, "s")];
    for round in 0..12 {
        rows.push(Row::user(format!("ask {round} {}", "q".repeat(400))));
        rows.push(Row::assistant(format!("reply {round} {}", "r".repeat(400))));
    }
    let policy = Compress { tail_budget: Some(300), ..given.policy() };
    let model = ModelFacts {
        window: 200_000,
        distinct_summary_model: given.flag("distinct_summary_model"),
        ..ModelFacts::default()
    };
    let state = State {
        timeout_streak: given.size("prior_timeouts"),
        overload_streak: given.size("prior_overload_aborts"),
        ..State::default()
    };
    let mut compressor = Compressor::new(&policy, model, state);
    let script = given.items("script");
    let mut calls = 0;
    let mut answer = |_: &SummaryRequest| {
        let step = script.get(calls).or(script.last()).unwrap_or(&Value::Null);
        calls += 1;
        scripted(step)
    };
    let now = 1_000_000;
    let outcome = compressor.compress(&rows, Ask { now, ..Ask::default() }, &mut answer);
    let by_rule = matches!(&outcome, Outcome::Compacted { report, .. }
        if report.origin != SummaryOrigin::Model);
    json!({
        "summary_calls": calls,
        "aborted": matches!(outcome, Outcome::Aborted { .. }),
        "history_unchanged": !matches!(outcome, Outcome::Compacted { .. }),
        "used_fallback": by_rule,
        "cooldown_seconds": compressor.state.cooldown_left(now).unwrap_or(0),
        "compression_count": compressor.state.compressions,
        "fell_back_to_main_model": compressor.fell_back_to_main,
    })
}

fn generation(text: &str) -> Option<u64> {
    let (_, after) = text.split_once("ZZ-SUMMARY-BODY")?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

fn shown(row: &Row, input: &[Row]) -> Value {
    let mut object = Map::new();
    let from = tag(row);
    let summary = handoff::is_handoff(row);
    object.insert("role".to_owned(), json!(row.role.word()));
    object.insert("from".to_owned(), from.clone());
    object.insert("summary".to_owned(), json!(summary));
    if summary {
        object.insert("carries_live_text".to_owned(), json!(!from.is_null()));
        object.insert("generation".to_owned(), json!(generation(&row.content.flat())));
    } else if row.is_tool() {
        let before = from.as_u64().and_then(|at| usize::try_from(at).ok()).and_then(|at| input.get(at));
        object.insert(
            "shortened".to_owned(),
            json!(before.is_some_and(|before| before.content != row.content)),
        );
    }
    Value::Object(object)
}

pub(super) fn run(given: Given<'_>) -> Value {
    let state = State {
        compressions: given.size("compression_count"),
        previous_summary: given.value("previous_summary").as_str().map(str::to_owned),
        ..State::default()
    };
    let model = ModelFacts { window: given.size("context_length"), ..ModelFacts::default() };
    let mut compressor = Compressor::new(&given.policy(), model, state);
    let reply = given.value("summary_reply").as_str().unwrap_or("").to_owned();
    let mut rows = given.rows("messages");
    let mut passes = Vec::new();
    let (mut calls, mut carried) = (0_u64, false);
    for pass in 0..given.size("passes") {
        if pass > 0 {
            let place = usize::try_from(pass - 1).unwrap_or(usize::MAX);
            let more = given.items("appended_before_pass").get(place);
            rows.extend(more.and_then(Value::as_array).into_iter().flatten().map(Row::from_json));
        }
        let input = tagged(rows);
        let before = calls;
        let mut answer = |request: &SummaryRequest| {
            calls += 1;
            carried = request.previous.is_some();
            Ok(reply.replace("{n}", &calls.to_string()))
        };
        let ask = Ask { now: 1_000_000, session: "s1", ..Ask::default() };
        let outcome = compressor.compress(&input, ask, &mut answer);
        if before == calls {
            carried = false;
        }
        let (out, orphans, by_rule, unchanged) = match outcome {
            Outcome::Compacted { rows, report } => {
                (rows, report.orphan_results, report.origin != SummaryOrigin::Model, false)
            }
            _ => (input.clone(), pairs::orphan_results(&input), false, true),
        };
        passes.push(json!({
            "unchanged": unchanged,
            "rows": out.iter().map(|row| shown(row, &input)).collect::<Vec<_>>(),
            "compression_count": compressor.state.compressions,
            "used_fallback": by_rule,
            "summary_calls": calls,
            "prompt_carried_previous_summary": carried,
            "system_note_added": out.first().is_some_and(handoff::has_system_note),
            "orphan_results": orphans,
        }));
        rows = out
            .into_iter()
            .map(|mut row| {
                row.extra.remove("_index");
                row
            })
            .collect();
    }
    json!({"passes": passes})
}

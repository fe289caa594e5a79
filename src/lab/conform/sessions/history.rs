//! Vectors about the rows of conversations and who continues whom.

use serde_json::{Map, Value, json};

use super::{append_all, contents, failed, items, number, row_of, session, store, text};
use crate::lab::conform::ReplayError;
use crate::store::archive::Archival;
use crate::store::lineage::is_fork_child;
use crate::store::rotate::Rotation;
use crate::store::{NewSession, Store, StoreError, StoredRow};
use crate::wire::{Content, Row};

pub fn lineage(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    let sessions = items(given, "sessions");
    for one in sessions {
        let source = one.get("source").and_then(Value::as_str).unwrap_or("cli");
        let new = NewSession {
            model_config: one.get("model_config").and_then(Value::as_object),
            session_key: one.get("session_key").and_then(Value::as_str),
            ..NewSession::of(text(one, "id"), source)
        };
        let start = number(one, "started_at");
        store.create_session(&new, start * 1_000).map_err(failed)?;
        let rows =
            (0..number(one, "messages")).map(|k| Row::user("row").with("timestamp", (start + k) as f64));
        store.append(text(one, "id"), &rows.collect::<Vec<_>>(), start * 1_000).map_err(failed)?;
    }
    for one in sessions {
        let id = text(one, "id");
        if let Some(parent) = one.get("parent").and_then(Value::as_str) {
            store.set_parent(id, parent).map_err(failed)?;
        }
        if let Some(at) = one.get("last_activity").and_then(Value::as_i64) {
            store.touch(id, at * 1_000).map_err(failed)?;
        }
        if let Some(reason) = one.get("end_reason").and_then(Value::as_str) {
            let at = one.get("ended_at").and_then(Value::as_i64).unwrap_or(number(one, "started_at") + 50);
            store.end_session(id, reason, at * 1_000).map_err(failed)?;
        }
    }
    let mut answers = Map::new();
    for one in sessions {
        let id = text(one, "id");
        answers.insert(id.to_owned(), lineage_of(&store, id).map_err(failed)?);
    }
    Ok(json!({"by_session": answers}))
}

fn lineage_of(store: &Store, id: &str) -> Result<Value, StoreError> {
    let (root, hop) = store.search_root(id)?;
    let fork = store.session(id)?.is_some_and(|session| is_fork_child(&session));
    Ok(json!({
        "search_root": root, "search_has_compression_hop": hop,
        "conversation_root": store.conversation_root(id)?,
        "compression_chain": store.compression_chain(id)?, "compression_tip": store.compression_tip(id)?,
        "compression_lineage": store.compression_lineage(id)?, "resume_lineage": store.resume_lineage(id)?,
        "resume_target": store.resume_target(id)?, "fork_child": fork,
        "turn_lease_key": store.turn_lease_key(id)?, "left_live_context": store.left_live_context(id)?,
    }))
}

fn flagged(rows: &[StoredRow]) -> Value {
    let flagged = rows
        .iter()
        .map(|row| json!([row.role, row.content.value(), i64::from(row.active), i64::from(row.compacted)]));
    flagged.collect()
}

fn texts<'a>(rows: impl IntoIterator<Item = &'a StoredRow>) -> Value {
    rows.into_iter().map(|row| row.content.value().unwrap_or_default()).collect()
}

pub fn archive(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    store.create_session(&session("s", None), 0).map_err(failed)?;
    let (ids, at) = append_all(&store, "s", items(given, "rows"), 0)?;
    let watermark = match given.get("watermark") {
        Some(Value::Number(index)) => {
            index.as_u64().and_then(|index| ids.get(usize::try_from(index).ok()?)).copied()
        }
        Some(Value::String(_)) => Some(store.watermark("s").map_err(failed)?),
        _ => None,
    };
    let (_, at) = append_all(&store, "s", items(given, "late_rows"), at)?;
    let live = store.live_rows("s").map_err(failed)?;
    let carried: Vec<Row> = items(given, "carried_rows")
        .iter()
        .filter_map(|index| live.get(usize::try_from(index.as_u64()?).ok()?))
        .map(|row| row.clone().into_row())
        .collect();
    // The compacted rows of these vectors are rows of their own, with times of their own.
    let rows: Vec<Row> =
        items(given, "compacted").iter().zip(1..).map(|(row, k)| row_of(row, (at + k) as f64)).collect();
    let now = (at + 100) * 1_000;
    if let Some(holder) = given.get("lock_held_by").and_then(Value::as_str) {
        store.lock_compression("s", holder, 300_000, now).map_err(failed)?;
    }
    let archival = Archival {
        rows: &rows,
        watermark,
        tail_count: usize::try_from(number(given, "tail_count")).unwrap_or(0),
        carried: &carried,
        lock_holder: given.get("commit_as").and_then(Value::as_str),
        ..Archival::default()
    };
    let done = store.archive("s", &archival, now);
    let all = store.all_rows("s").map_err(failed)?;
    let about = store.session("s").map_err(failed)?.unwrap_or_default();
    Ok(match done {
        Err(StoreError::CompressionLeaseLost(_)) => {
            json!({"error": "compression_lease_lost", "rows": flagged(&all)})
        }
        Err(error) => return Err(failed(error)),
        Ok(count) => json!({
            "active_count": count, "rows": flagged(&all), "message_count": about.message_count,
            "live": texts(all.iter().filter(|row| row.active)),
            "display": texts(&store.display_rows("s").map_err(failed)?), "ended": about.ended_at.is_some(),
        }),
    })
}

pub fn archive_generations(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    store.create_session(&session("s", None), 0).map_err(failed)?;
    let (_, mut at) = append_all(&store, "s", items(given, "rows"), 0)?;
    let tail = usize::try_from(number(given, "tail_count")).unwrap_or(0);
    let mut steps = Vec::new();
    for generation in 1..=number(given, "generations") {
        if generation > 1 {
            at = append_all(&store, "s", items(given, "appended_between"), at)?.1;
        }
        at += 1;
        let live = store.live_rows("s").map_err(failed)?;
        let summary = json!({"role": "user", "content": format!("SUMMARY {generation}"), "summary": true});
        let mut rows = vec![row_of(&summary, at as f64)];
        let carried = live.iter().skip(live.len().saturating_sub(tail));
        rows.extend(carried.map(|row| row.clone().into_row()));
        let archival = Archival { rows: &rows, tail_count: tail, ..Archival::default() };
        store.archive("s", &archival, at * 1_000).map_err(failed)?;
        let all = store.all_rows("s").map_err(failed)?;
        steps.push(json!({
            "live": texts(all.iter().filter(|row| row.active)),
            "display": texts(&store.display_rows("s").map_err(failed)?),
            "archived": texts(all.iter().filter(|row| row.is_archived())),
            "superseded": texts(all.iter().filter(|row| !row.active && !row.compacted)),
        }));
    }
    Ok(json!({"steps": steps}))
}

pub fn rewind(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    store.create_session(&session("s", None), 0).map_err(failed)?;
    let (_, at) = append_all(&store, "s", items(given, "rows"), 0)?;
    let own: Option<Vec<Row>> = given
        .get("warm_history")
        .and_then(Value::as_array)
        .map(|rows| rows.iter().map(Row::from_json).collect());
    let done = store.rewind("s", number(given, "ordinal"), own.as_deref(), at * 1_000);
    let all = store.all_rows("s").map_err(failed)?;
    let about = store.session("s").map_err(failed)?.unwrap_or_default();
    let mut answer = json!({
        "live": texts(all.iter().filter(|row| row.active)), "hidden": texts(all.iter().filter(|row| !row.active)),
        "message_count": about.message_count, "rewind_count": about.rewind_count,
    });
    match done {
        Err(StoreError::TargetUnavailable) => answer["error"] = Value::from("target_unavailable"),
        Err(StoreError::HistoryChanged) => answer["error"] = Value::from("history_changed"),
        Err(error) => return Err(failed(error)),
        Ok(rewound) => {
            answer["rewound"] = Value::from(rewound.rows);
            answer["turns_undone"] = Value::from(rewound.turns);
            answer["prefill"] = rewound.request.content.value().unwrap_or_default();
            answer["prefix"] = contents(&rewound.prefix);
        }
    }
    Ok(answer)
}

pub fn rotate(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    let late = items(given, "late_rows");
    let mut watermark = None;
    let mut at = 0;
    if given.get("parent_exists").and_then(Value::as_bool) == Some(true) {
        let parent = NewSession { session_key: Some("key"), cwd: Some("/w"), ..session("p", None) };
        store.create_session(&parent, 0).map_err(failed)?;
        at = append_all(&store, "p", items(given, "rows"), at)?.1;
        if given.get("watermark").is_some_and(|mark| !mark.is_null()) {
            watermark = Some(store.watermark("p").map_err(failed)?);
        }
        at = append_all(&store, "p", late, at)?.1;
        if let Some(reason) = given.get("parent_end_reason").and_then(Value::as_str) {
            store.end_session("p", reason, at * 1_000).map_err(failed)?;
        }
    }
    let newest = store.watermark("p").map_err(failed)?;
    let before = store.live_rows("p").map_err(failed)?;
    if let Some(holder) = given.get("lock_held_by").and_then(Value::as_str) {
        store.lock_compression("p", holder, 300_000, at * 1_000).map_err(failed)?;
    }
    if given.get("lease_expired").and_then(Value::as_bool) == Some(true) {
        at += 301;
    }
    let handoff: Vec<Row> = items(given, "handoff").iter().map(untimed).collect();
    let rotation = Rotation {
        parent: "p",
        child: session("c", None),
        handoff: &handoff,
        lock_holder: given.get("commit_as").and_then(Value::as_str),
        require_lease: given.get("require_lease").and_then(Value::as_bool).unwrap_or(true),
        refresh_lease: false,
        watermark,
        ceiling: given.get("ceiling_minus").and_then(Value::as_i64).map(|less| newest - less),
    };
    let error = match store.rotate(&rotation, at * 1_000) {
        Ok(()) => Value::Null,
        Err(StoreError::CompressionLeaseLost(_)) => Value::from("lease_lost"),
        Err(StoreError::NoSession(_)) => Value::from("parent_missing"),
        Err(StoreError::AlreadyEnded(_)) => Value::from("already_ended"),
        Err(StoreError::EmptyHandoff) => Value::from("empty_handoff"),
        Err(error) => return Err(failed(error)),
    };
    let parent = store.session("p").map_err(failed)?;
    let mut answer = json!({
        "error": error, "parent_end_reason": parent.and_then(|parent| parent.end_reason),
        "child_exists": false,
    });
    if let Some(child) = store.session("c").map_err(failed)? {
        let rows = store.live_rows("c").map_err(failed)?;
        let rows: Value = rows.iter().map(|row| json!([row.role, row.content.value()])).collect();
        let after = store.live_rows("p").map_err(failed)?;
        answer = json!({
            "error": answer["error"], "parent_end_reason": answer["parent_end_reason"], "child_exists": true,
            "child_rows": rows, "child_message_count": child.message_count, "child_parent": child.parent,
            "child_session_key": child.session_key, "child_cwd": child.cwd,
            "parent_rows_untouched": before == after,
        });
    }
    Ok(answer)
}

/// A row without a time of its own.
fn untimed(value: &Value) -> Row {
    let mut row = row_of(value, 0.0);
    row.extra.shift_remove("timestamp");
    row
}

/// The state of a script.
struct Script {
    store: Store,
    at: i64,
    appended: Vec<(i64, f64)>,
    results: Vec<Value>,
}

pub fn script(given: &Value) -> Result<Value, ReplayError> {
    let mut script = Script { store: store()?, at: 1_000, appended: Vec::new(), results: Vec::new() };
    for op in items(given, "ops") {
        script.at += 1;
        script.run(op.as_array().map(Vec::as_slice).unwrap_or_default())?;
    }
    let (store, query) = (script.store, text(given, "query"));
    let model = store.load_for_model(query).map_err(failed)?.rows;
    let display = store.load_for_display(query).map_err(failed)?;
    let model: Value = model
        .iter()
        .map(|row| json!([row.role.word(), row.content.value(), row.extra.get("api_content")]))
        .collect();
    let display: Value = display.iter().map(|row| json!([row.role.word(), row.content.value()])).collect();
    Ok(json!({
        "op_results": script.results, "model_history": model, "display_history": display,
        "count_full": store.resume_count(query, false).map_err(failed)?,
        "count_tip": store.resume_count(query, true).map_err(failed)?,
    }))
}

impl Script {
    fn run(&mut self, op: &[Value]) -> Result<(), ReplayError> {
        let word = |at: usize| op.get(at).and_then(Value::as_str).unwrap_or_default();
        let null = Value::Null;
        let value = |at: usize| op.get(at).unwrap_or(&null);
        let now = self.at * 1_000;
        match word(0) {
            "create" => {
                let options = value(2);
                let new = NewSession {
                    parent: options.get("parent").and_then(Value::as_str),
                    system_prompt: options.get("system_prompt").and_then(Value::as_str),
                    ..session(word(1), options.get("model_config").and_then(Value::as_object))
                };
                self.store.create_session(&new, now).map_err(failed)?;
            }
            "append" => {
                let at = self.at as f64;
                let mut row = row_of(&json!([word(2), value(3)]), at);
                if let Some(sent) = op.get(4).and_then(Value::as_str) {
                    row = row.with("api_content", sent);
                }
                let ids = self.store.append(word(1), &[row], now).map_err(failed)?;
                self.appended.extend(ids.into_iter().map(|id| (id, at)));
            }
            "compact" => self.compact(word(1), value(2), value(3))?,
            "rotate" => {
                let handoff: Vec<Row> = value(3).as_array().into_iter().flatten().map(untimed).collect();
                let rotation = Rotation {
                    parent: word(1),
                    child: session(word(2), None),
                    handoff: &handoff,
                    ..Rotation::default()
                };
                self.store.rotate(&rotation, now).map_err(failed)?;
            }
            "rewind" => {
                self.store.rewind(word(1), value(2).as_i64().unwrap_or(-1), None, now).map_err(failed)?;
            }
            "api_by_id" => {
                let row = value(2).as_u64().and_then(|index| self.appended.get(usize::try_from(index).ok()?));
                let row = row.map_or(i64::MAX, |(id, _)| *id);
                let content = Content::of(Some(value(3)));
                let set = self.store.set_api_content(word(1), row, &content, word(4)).map_err(failed)?;
                self.results.push(Value::from(i64::from(set)));
            }
            "api_latest" => {
                let content = Content::of(Some(value(2)));
                let set = self.store.set_latest_api_content(word(1), &content, word(3)).map_err(failed)?;
                self.results.push(Value::from(i64::from(set)));
            }
            "prompt" => self.store.store_prompt(word(1), value(2).as_str()).map_err(failed)?,
            "count_prompts" => self.results.push(Value::from(self.store.prompt_count().map_err(failed)?)),
            "read_prompt" => {
                let prompt = self.store.read_prompt(word(1)).map_err(failed)?;
                self.results.push(prompt.map_or(Value::Null, Value::from));
            }
            other => return Err(ReplayError::UnknownFunction(format!("sessions.script/{other}"))),
        }
        Ok(())
    }

    fn compact(&self, id: &str, rows: &Value, options: &Value) -> Result<(), ReplayError> {
        let place = |value: &Value, key: &str| -> Option<(i64, f64)> {
            let index = value.get(key).and_then(Value::as_u64)?;
            self.appended.get(usize::try_from(index).ok()?).copied()
        };
        let rows: Vec<Row> = rows
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| match place(row, "same_as_row") {
                Some((_, at)) => row_of(row, at),
                None => untimed(row),
            })
            .collect();
        let archival = Archival {
            rows: &rows,
            watermark: place(options, "watermark_row").map(|(id, _)| id),
            tail_count: usize::try_from(number(options, "tail_count")).unwrap_or(0),
            ..Archival::default()
        };
        self.store.archive(id, &archival, self.at * 1_000).map_err(failed)?;
        Ok(())
    }
}

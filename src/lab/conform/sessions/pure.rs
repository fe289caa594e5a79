//! Vectors about single values and single reads.

use serde_json::{Value, json};

use super::{failed, items, number, session, store, text};
use crate::lab::conform::ReplayError;
use crate::policy;
use crate::store::codec::{self, Cell};
use crate::store::lifecycle::Status;
use crate::store::{StoreError, retry, titles};
use crate::wire::repair::repair;
use crate::wire::{Content, Role, Row};

pub fn title_sanitize(given: &Value) -> Value {
    let limit = policy::Store::default().title_chars_max;
    match titles::clean_title(text(given, "title"), limit) {
        Ok(title) => json!({"title": title}),
        Err(StoreError::TitleTooLong { .. }) => json!({"error": "too_long"}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

pub fn repair_sequence(given: &Value) -> Value {
    let rows = items(given, "messages").iter().map(Row::from_json).collect();
    let repaired = repair(rows);
    let rows: Value = repaired
        .rows
        .iter()
        .zip(&repaired.origins)
        .map(|(row, from)| {
            let calls: Vec<&str> = row.tool_calls.iter().flatten().map(|call| call.id.as_str()).collect();
            json!({"from": from, "role": row.role.word(), "content": row.content.value(), "calls": calls})
        })
        .collect();
    json!({"repairs": repaired.report.repairs(), "rows": rows})
}

pub fn load_view(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    store.create_session(&session("s", None), 0).map_err(failed)?;
    let mut row = Row::new(Role::of(text(given, "role")), Content::of(given.get("content")));
    if let Some(sent) = given.get("api_content").and_then(Value::as_str) {
        row = row.with("api_content", sent);
    }
    let id = store.append("s", &[row], 0).map_err(failed)?.first().copied().unwrap_or(0);
    let stored = store.stored_row(id).map_err(failed)?.ok_or(ReplayError::Missing("a row".to_owned()))?;
    let raw = stored.content.value();
    let row = stored.into_row();
    Ok(json!({
        "conversation_content": row.content.value(), "conversation_api_content": row.extra.get("api_content"),
        "raw_content": raw,
    }))
}

pub fn anchored_view(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    for id in ["s", "other"] {
        store.create_session(&session(id, None), 0).map_err(failed)?;
    }
    let listed = |key: &str, index: i64| items(given, key).iter().any(|item| item.as_i64() == Some(index));
    let mut ids = Vec::new();
    for index in 0..number(given, "rows") {
        let content = if listed("empty_rows", index) { String::new() } else { format!("m{index}") };
        let role = match index % 2 {
            _ if listed("tool_rows", index) => Role::Tool,
            0 => Role::User,
            _ => Role::Assistant,
        };
        ids.extend(store.append("s", &[Row::new(role, content)], index * 1_000).map_err(failed)?);
    }
    let foreign = store.append("other", &[Row::user("x")], 0).map_err(failed)?;
    let anchor = match given.get("anchor") {
        Some(Value::Number(index)) => {
            index.as_u64().and_then(|index| ids.get(usize::try_from(index).ok()?)).copied()
        }
        Some(Value::String(word)) if word == "other" => foreign.first().copied(),
        _ => None,
    };
    let roles: Option<Vec<&str>> = given
        .get("keep_roles")
        .and_then(Value::as_array)
        .map(|roles| roles.iter().filter_map(Value::as_str).collect());
    let side = u64::try_from(number(given, "window")).unwrap_or(0);
    let ends = u64::try_from(number(given, "bookend")).unwrap_or(0);
    let view =
        store.anchored_view("s", anchor.unwrap_or(i64::MAX), side, ends, roles.as_deref()).map_err(failed)?;
    let places = |rows: &[crate::store::StoredRow]| -> Value {
        rows.iter().map(|row| ids.iter().position(|id| *id == row.id)).collect()
    };
    Ok(json!({
        "window": places(&view.rows), "before": view.before, "after": view.after,
        "bookend_start": places(&view.first), "bookend_end": places(&view.last),
    }))
}

pub fn content_codec(given: &Value) -> Value {
    let given = given.get("content");
    let broken = given.and_then(|value| value.get("$lone_surrogate")).is_some();
    // A text of this language cannot hold a lone surrogate; it is replaced where the text is made.
    let content = match given {
        Some(_) if broken => {
            let units: Vec<u16> = std::iter::once(0xD800).chain(" lone".encode_utf16()).collect();
            Content::Text(codec::text_of_utf16(&units))
        }
        other => Content::of(other),
    };
    let cell = codec::encode(&content);
    let structured = matches!(&cell, Cell::Text(text) if text.starts_with(codec::MARKER));
    let stored = match &cell {
        Cell::Text(text) => Some(text.as_ref()),
        _ => None,
    };
    let read = stored.map_or_else(
        || content.clone(),
        |text| codec::decode(rusqlite::types::ValueRef::Text(text.as_bytes())),
    );
    json!({
        "stored_as": if structured { "structured" } else { "scalar" }, "stored_text": stored,
        "round_trips": !broken && read == content,
    })
}

pub fn status(given: &Value) -> Value {
    let word = |key: &str| given.get(key).and_then(Value::as_str);
    let calls = given.get("has_tool_calls").and_then(Value::as_bool).unwrap_or(false);
    json!({"status": Status::of(word("role"), calls, word("finish_reason")).word()})
}

pub fn write_retry(given: &Value) -> Value {
    let millis = |key: &str| {
        let seconds = given.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "vectors give seconds with three digits")]
        let millis = (seconds * 1_000.0).round() as i64;
        millis
    };
    let seconds = |millis: i64| millis as f64 / 1_000.0;
    match retry::next_sleep(&policy::Store::default(), millis("patience_s"), millis("elapsed_s")) {
        None => json!({"retry": false, "jitter_range_s": null, "sleep_if_minimum_drawn_s": null}),
        Some(sleep) => json!({
            "retry": true, "jitter_range_s": [seconds(sleep.low), seconds(sleep.high)],
            "sleep_if_minimum_drawn_s": seconds(sleep.cut(sleep.low)),
        }),
    }
}

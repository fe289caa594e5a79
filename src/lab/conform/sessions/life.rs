//! Vectors about the life of a session: leases, ends, titles, usage.

use serde_json::{Value, json};

use super::{failed, items, session, store, text};
use crate::lab::conform::ReplayError;
use crate::store::titles::TitleSource;
use crate::store::usage::Usage;
use crate::store::{NewSession, Store, StoreError};
use crate::wire::Row;

fn word(op: &Value, at: usize) -> &str {
    op.get(at).and_then(Value::as_str).unwrap_or_default()
}

/// Runs every operation of a vector; answers one result each.
fn each(
    given: &Value,
    mut run: impl FnMut(&Value) -> Result<Value, ReplayError>,
) -> Result<Value, ReplayError> {
    let results: Result<Vec<Value>, ReplayError> = items(given, "ops").iter().map(&mut run).collect();
    Ok(json!({"results": results?}))
}

pub fn lease(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    let mut now = given.get("now").and_then(Value::as_i64).unwrap_or(0) * 1_000;
    store.create_session(&session("s", None), now).map_err(failed)?;
    store.create_session(&session("child", None).child_of("s"), now).map_err(failed)?;
    each(given, |op| {
        let ttl = |at: usize| op.get(at).and_then(Value::as_i64).unwrap_or(300) * 1_000;
        Ok(match word(op, 0) {
            "lock" => store.lock_compression("s", word(op, 1), ttl(2), now).map_err(failed)?.into(),
            "refresh" => store.refresh_compression("s", word(op, 1), ttl(2), now).map_err(failed)?.into(),
            "release" => {
                store.unlock_compression("s", word(op, 1)).map_err(failed)?;
                Value::Null
            }
            "holder" => store.compression_holder("s", now).map_err(failed)?.into(),
            "advance" => {
                let by = op.get(1).and_then(Value::as_f64).unwrap_or(0.0) * 1_000.0;
                #[expect(clippy::cast_possible_truncation, reason = "vectors advance by seconds")]
                let by = by.round() as i64;
                now += by;
                Value::Null
            }
            "turn" => store.lease_turn(word(op, 1), word(op, 2), ttl(3), now).map_err(failed)?.into(),
            "turn_refresh" => {
                store.refresh_turn(word(op, 1), word(op, 2), ttl(3), now).map_err(failed)?.into()
            }
            "turn_release" => {
                store.release_turn(word(op, 1), word(op, 2)).map_err(failed)?;
                Value::Null
            }
            "compress_end" => {
                store.end_session("s", "compression", now).map_err(failed)?;
                Value::Null
            }
            "append" => {
                let holder = op.get(1).and_then(Value::as_str);
                Value::from(match store.append_as("s", &[Row::user("x")], holder, now) {
                    Ok(_) => "ok",
                    Err(StoreError::TurnLeaseLost(_)) => "turn_lease_lost",
                    Err(StoreError::SessionClosed(_)) => "compression_closed",
                    Err(error) => return Err(failed(error)),
                })
            }
            other => return Err(ReplayError::UnknownFunction(format!("sessions.lease/{other}"))),
        })
    })
}

pub fn lifecycle(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    let new = NewSession { session_key: Some("key"), ..NewSession::of("s", "telegram") };
    store.create_session(&new, 0).map_err(failed)?;
    let mut now = 0;
    each(given, |op| {
        now += 1_000;
        Ok(match word(op, 0) {
            "end" => {
                store.end_session("s", word(op, 1), now).map_err(failed)?;
                Value::Null
            }
            "reopen" => {
                store.reopen("s").map_err(failed)?;
                Value::Null
            }
            "reset" => {
                let reason = op.get(1).and_then(Value::as_str).unwrap_or("session_reset");
                store.reset_session("s", reason, now).map_err(failed)?.into()
            }
            "explicit" => store.reopen_explicit("s").map_err(failed)?.into(),
            "state" => {
                let session = store.session("s").map_err(failed)?.unwrap_or_default();
                json!({"ended": session.ended_at.is_some(), "reason": session.end_reason})
            }
            "generation" => store.generation("telegram", "key").map_err(failed)?.into(),
            other => return Err(ReplayError::UnknownFunction(format!("sessions.lifecycle/{other}"))),
        })
    })
}

fn titled(done: Result<bool, StoreError>) -> Result<Value, ReplayError> {
    Ok(match done {
        Ok(set) => Value::from(set),
        Err(StoreError::TitleInUse { .. }) => Value::from("error:in_use"),
        Err(StoreError::TitleTooLong { .. }) => Value::from("error:too_long"),
        Err(error) => return Err(failed(error)),
    })
}

pub fn title_set(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    for id in ["a", "b"] {
        store.create_session(&session(id, None), 1_000).map_err(failed)?;
    }
    let mut now = 1_000;
    each(given, |op| {
        now += 1_000;
        let id = word(op, 1);
        if store.session(id).map_err(failed)?.is_none() && word(op, 0) != "resolve" {
            store.create_session(&session(id, None), now).map_err(failed)?;
        }
        title_op(&store, op, id, now)
    })
}

fn title_op(store: &Store, op: &Value, id: &str, now: i64) -> Result<Value, ReplayError> {
    Ok(match word(op, 0) {
        "auto" => {
            let by = if word(op, 3) == "llm" { TitleSource::Llm } else { TitleSource::Derived };
            titled(store.set_auto_title(id, word(op, 2), by))?
        }
        "user" => titled(store.set_title(id, word(op, 2)))?,
        "get" => {
            let session = store.session(id).map_err(failed)?.unwrap_or_default();
            json!([session.title, session.title.as_ref().and(session.title_source.as_ref())])
        }
        "message" => {
            store.append(id, &[Row::user("x")], now).map_err(failed)?;
            Value::Null
        }
        "end" => {
            store.end_session(id, word(op, 2), now).map_err(failed)?;
            Value::Null
        }
        "child" => {
            store.create_session(&session(word(op, 2), None).child_of(id), now).map_err(failed)?;
            Value::Null
        }
        "archive" => {
            store.set_archived(id, true).map_err(failed)?;
            Value::Null
        }
        "started" => {
            let at = op.get(2).and_then(Value::as_i64).unwrap_or(0);
            store.set_started(id, at * 1_000).map_err(failed)?;
            Value::Null
        }
        "resolve" => store.resolve_title(word(op, 2)).map_err(failed)?.into(),
        other => return Err(ReplayError::UnknownFunction(format!("sessions.title_set/{other}"))),
    })
}

pub fn title_next(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    for (index, title) in items(given, "existing").iter().filter_map(Value::as_str).enumerate() {
        let id = format!("s{index}");
        store.create_session(&session(&id, None), 0).map_err(failed)?;
        store.set_title(&id, title).map_err(failed)?;
    }
    Ok(json!({"title": store.next_title(text(given, "base")).map_err(failed)?}))
}

pub fn usage(given: &Value) -> Result<Value, ReplayError> {
    let store = store()?;
    let new = NewSession { model: given.get("created_model").and_then(Value::as_str), ..session("s", None) };
    store.create_session(&new, 0).map_err(failed)?;
    for op in items(given, "ops") {
        let count = |key: &str| op.get(key).and_then(Value::as_i64).unwrap_or(0);
        let word = |key: &str| op.get(key).and_then(Value::as_str);
        let report = Usage {
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            cache_read_tokens: count("cache_read_tokens"),
            cache_write_tokens: count("cache_write_tokens"),
            reasoning_tokens: count("reasoning_tokens"),
            api_calls: count("api_call_count"),
            estimated_cost_usd: op.get("estimated_cost_usd").and_then(Value::as_f64),
            actual_cost_usd: op.get("actual_cost_usd").and_then(Value::as_f64),
            model: word("model"),
            provider: word("billing_provider"),
            base_url: word("billing_base_url"),
            mode: word("billing_mode"),
            task: word("task").unwrap_or_default(),
            absolute: op.get("absolute").and_then(Value::as_bool).unwrap_or(false),
        };
        store.book_usage("s", &report, 0).map_err(failed)?;
    }
    let booked = store.usage_of("s").map_err(failed)?.unwrap_or_default();
    let by_model: Value = store
        .usage_by_model("s")
        .map_err(failed)?
        .iter()
        .map(|row| {
            json!([row.model, row.provider, row.task, row.api_calls, row.input_tokens, row.output_tokens])
        })
        .collect();
    Ok(json!({
        "model": booked.model, "billing_provider": booked.provider, "input_tokens": booked.input_tokens,
        "output_tokens": booked.output_tokens, "cache_read_tokens": booked.cache_read_tokens,
        "cache_write_tokens": booked.cache_write_tokens, "reasoning_tokens": booked.reasoning_tokens,
        "api_call_count": booked.api_calls, "estimated_cost_usd": booked.estimated_cost_usd,
        "actual_cost_usd": booked.actual_cost_usd, "by_model": by_model,
    }))
}

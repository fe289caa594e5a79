//! Vectors of the session store.

mod history;
mod life;
mod pure;

use serde_json::{Map, Value};

use super::{Fixtures, ReplayError};
use crate::agent::compress::handoff;
use crate::policy;
use crate::store::{NewSession, Store, StoreError};
use crate::wire::{Content, Role, Row};

/// Replays one vector.
///
/// # Errors
/// [`ReplayError::UnknownFunction`], [`ReplayError::Missing`] when the input lacks something or cannot be built.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    match function {
        "lineage" => history::lineage(given),
        "archive" => history::archive(given),
        "archive_generations" => history::archive_generations(given),
        "script" => history::script(given),
        "rotate" => history::rotate(given),
        "rewind" => history::rewind(given),
        "lease" => life::lease(given),
        "lifecycle" => life::lifecycle(given),
        "title_set" => life::title_set(given),
        "title_next" => life::title_next(given),
        "usage" => life::usage(given),
        "title_sanitize" => Ok(pure::title_sanitize(given)),
        "repair_sequence" => Ok(pure::repair_sequence(given)),
        "load_view" => pure::load_view(given),
        "anchored_view" => pure::anchored_view(given),
        "content_codec" => Ok(pure::content_codec(given)),
        "status" => Ok(pure::status(given)),
        "write_retry" => Ok(pure::write_retry(given)),
        _ => Err(ReplayError::UnknownFunction(format!("sessions.{function}"))),
    }
}

/// A store as the runtime has it, whose searches nobody asks for.
fn store() -> Result<Store, ReplayError> {
    let knobs = policy::Store { index_when: policy::IndexWhen::Search, ..policy::Store::default() };
    Ok(Store::open_in_memory(&knobs).map_err(failed)?.with_handoff_split(handoff::split))
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of errors")]
fn failed(error: StoreError) -> ReplayError {
    ReplayError::Missing(error.to_string())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or(0)
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A row of `[role, content]` or of an object with the flag `summary`, at a time in seconds.
fn row_of(value: &Value, at: f64) -> Row {
    let (role, content, summary) = match value.as_array() {
        Some(pair) => (pair.first().and_then(Value::as_str).unwrap_or_default(), pair.get(1), false),
        None => {
            (text(value, "role"), value.get("content"), value.get("summary").is_some_and(|on| on == true))
        }
    };
    let mut row = Row::new(Role::of(role), Content::of(content)).with("timestamp", at);
    if summary {
        row = row.with("_compressed_summary", true);
    }
    row
}

/// Appends rows one by one, each a second later than the one before; answers their keys and the time behind them.
fn append_all(
    store: &Store,
    session: &str,
    rows: &[Value],
    mut at: i64,
) -> Result<(Vec<i64>, i64), ReplayError> {
    let mut ids = Vec::new();
    for row in rows {
        at += 1;
        ids.extend(store.append(session, &[row_of(row, at as f64)], at * 1_000).map_err(failed)?);
    }
    Ok((ids, at))
}

fn session<'a>(id: &'a str, config: Option<&'a Map<String, Value>>) -> NewSession<'a> {
    NewSession { model_config: config, ..NewSession::of(id, "cli") }
}

fn contents(rows: &[Row]) -> Value {
    rows.iter().map(|row| row.content.value().unwrap_or_default()).collect()
}

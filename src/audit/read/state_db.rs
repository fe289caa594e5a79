//! A `state.db` of Hermes, opened for reading only: what was said in each session.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use crate::audit::judge::Auditor;
use crate::audit::prompt::Shape;
use crate::audit::read::compose::body;
use crate::audit::read::{Format, Reading, Sink};
use crate::audit::record::Record;

/// First bytes of a database file.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// Sessions that are looked at.
const SESSIONS_MAX: u32 = 100_000;

/// Reads every session's messages.
///
/// # Errors
/// When the file is no such database.
pub fn read(source: &str, path: &Path, auditor: &mut Auditor) -> rusqlite::Result<Reading> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    let mut reading =
        Reading { source: source.to_owned(), format: Some(Format::StateDb), ..Reading::default() };
    let mut sessions = database.prepare("SELECT id, model FROM sessions ORDER BY started_at, id LIMIT ?1")?;
    let found: Vec<(String, Option<String>)> = sessions
        .query_map([SESSIONS_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let active = has_column(&database, "active")?;
    let condition = if active { " AND active = 1" } else { "" };
    let mut messages = database.prepare(&format!(
        "SELECT role, content, tool_call_id, tool_calls FROM messages WHERE session_id = ?1{condition} ORDER BY id"
    ))?;
    for (line, (session, model)) in found.into_iter().enumerate() {
        let rows: Vec<Value> = messages
            .query_map([&session], |row| {
                let content: rusqlite::types::Value = row.get(1)?;
                Ok(message(&row.get::<_, String>(0)?, &content, row.get(2)?, row.get(3)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        reading.pieces += 1;
        if rows.is_empty() {
            reading.other += 1;
            continue;
        }
        let record = Record {
            line: line as u64 + 1,
            shape: Some(Shape::Chat),
            said_only: true,
            conversation: Some(session),
            own_body: body(model.as_deref(), None, None, &Value::Array(rows)),
            ..Record::default()
        };
        Sink { auditor, reading: &mut reading }.put(&record, &[]);
    }
    Ok(reading)
}

fn has_column(database: &Connection, name: &str) -> rusqlite::Result<bool> {
    database.query_row("SELECT count(*) FROM pragma_table_info('messages') WHERE name = ?1", [name], |row| {
        Ok(row.get::<_, i64>(0)? > 0)
    })
}

fn message(
    role: &str,
    content: &rusqlite::types::Value,
    answers: Option<String>,
    calls: Option<String>,
) -> Value {
    let content = match content {
        rusqlite::types::Value::Text(text) => Value::from(text.as_str()),
        rusqlite::types::Value::Blob(bytes) => Value::from(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::Null,
    };
    let mut object = Map::new();
    object.insert("role".to_owned(), role.into());
    object.insert("content".to_owned(), content);
    if let Some(id) = answers {
        object.insert("tool_call_id".to_owned(), id.into());
    }
    if let Some(calls) = calls.and_then(|calls| serde_json::from_str::<Value>(&calls).ok())
        && calls.is_array()
    {
        object.insert("tool_calls".to_owned(), calls);
    }
    json!(object)
}

//! Between a conversation row and the columns of `messages`.
//!
//! Private keys of a row that have a column: `_compressed_summary`; `api_content`, `display_kind`, `display_metadata`,
//! `timestamp`, `finish_reason`, `token_count`, `message_id`, `observed`, `message_uid` and the reasoning fields. A row
//! that is read carries `_db_persisted` and `_row_id`. Never: a change of what a row says, except where reading cleans
//! it.

use std::sync::LazyLock;

use regex::Regex;
use rusqlite::types::ValueRef;
use rusqlite::{Row as SqlRow, params};
use serde_json::{Map, Value};

use super::{Seconds, Store, StoreError, codec, whole};
use crate::wire::{Content, Role, Row, ToolCall, python};

/// Keys of a row without a leading `_` that belong to the store and the renderer. They must not reach a provider.
pub const LOCAL_KEYS: [&str; 8] = [
    "api_content",
    "display_kind",
    "display_metadata",
    "timestamp",
    "token_count",
    "message_id",
    "message_uid",
    "observed",
];

/// A row as the table holds it, flags included.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRow {
    /// Key of the row; the only order there is.
    pub id: i64,
    /// Session that owns it.
    pub session: String,
    /// Who speaks.
    pub role: String,
    /// What is said.
    pub content: Content,
    /// The call that a tool row answers.
    pub tool_call_id: Option<String>,
    /// Calls as they are stored: JSON text.
    pub tool_calls: Option<String>,
    /// Name of the tool.
    pub tool_name: Option<String>,
    /// When it was said.
    pub timestamp: Seconds,
    /// The model sees it.
    pub active: bool,
    /// Summarised away: not live, but shown to people and found by searches.
    pub compacted: bool,
    /// A handoff of the compressor.
    pub compressed_summary: bool,
    /// What kind of bookkeeping it is to the renderer.
    pub display_kind: Option<String>,
    /// The bytes that were sent when they differed from the content.
    pub api_content: Option<String>,
    /// Why the model stopped.
    pub finish_reason: Option<String>,
    message_uid: Option<String>,
    more: More,
}

/// Columns that only a conversation row needs.
#[derive(Debug, Clone, PartialEq, Default)]
struct More {
    token_count: Option<i64>,
    reasoning: [Option<String>; 5],
    message_id: Option<String>,
    observed: bool,
    display_metadata: Option<String>,
}

/// Columns of a [`StoredRow`], in its order.
pub(super) const COLUMNS: &str = "id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, \
    active, compacted, _compressed_summary, display_kind, api_content, finish_reason, message_uid, token_count, \
    reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, \
    platform_message_id, observed, display_metadata";

/// The fields of assistant rows that hold what the model thought; the last three are JSON.
const REASONING: [&str; 5] =
    ["reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items"];

impl StoredRow {
    pub(super) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            role: row.get(2)?,
            content: codec::decode(row.get_ref(3)?),
            tool_call_id: row.get(4)?,
            tool_calls: row.get(5)?,
            tool_name: row.get(6)?,
            timestamp: row.get(7)?,
            active: row.get(8)?,
            compacted: row.get(9)?,
            compressed_summary: row.get(10)?,
            display_kind: row.get(11)?,
            api_content: row.get(12)?,
            finish_reason: row.get(13)?,
            message_uid: row.get(14)?,
            more: More {
                token_count: row.get(15)?,
                reasoning: [row.get(16)?, row.get(17)?, row.get(18)?, row.get(19)?, row.get(20)?],
                message_id: row.get(21)?,
                observed: row.get(22)?,
                display_metadata: row.get(23)?,
            },
        })
    }

    /// Summarised away, so searches of the same conversation may show it.
    pub fn is_archived(&self) -> bool {
        !self.active && self.compacted
    }

    /// The name that every copy of the message shares.
    pub fn uid(&self) -> String {
        self.message_uid.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// The calls; empty when there are none or the cell is no list of calls.
    pub fn calls(&self) -> Vec<ToolCall> {
        let calls = self.tool_calls.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let calls = calls.as_ref().and_then(Value::as_array);
        calls.map(|calls| calls.iter().filter_map(ToolCall::from_json).collect()).unwrap_or_default()
    }

    /// The row as a conversation holds it (`Hermes hermes_state_messages.py:1560`): text of user and assistant rows
    /// without injected context and trimmed; `api_content` as it is, an empty one absent.
    pub fn into_row(self) -> Row {
        self.unpacked(true)
    }

    /// The same without what only the store and the renderer know: all that a request is made of.
    pub fn into_sent(self) -> Row {
        self.unpacked(false)
    }

    fn unpacked(self, whole: bool) -> Row {
        let role = Role::of(&self.role);
        let assistant = role == Role::Assistant;
        let calls = self.tool_calls.as_deref().map(|_| self.calls());
        let content = match self.content {
            Content::Text(text) if assistant || role == Role::User => Content::Text(without_context(&text)),
            other => other,
        };
        let mut extra = Map::new();
        let mut put = |key: &str, value: Value| extra.insert(key.to_owned(), value);
        if let Some(text) = self.api_content.filter(|text| !text.is_empty()) {
            put("api_content", Value::from(text));
        }
        if whole {
            put("_db_persisted", Value::from(true));
            put("_row_id", Value::from(self.id));
            if self.compressed_summary {
                put("_compressed_summary", Value::from(true));
            }
            let uid = self.message_uid.unwrap_or_else(|| self.id.to_string());
            put("message_uid", Value::from(uid));
            if let Some(kind) = self.display_kind.filter(|kind| !kind.is_empty()) {
                put("display_kind", Value::from(kind));
            }
            if let Some(value) = self.more.display_metadata.and_then(|text| serde_json::from_str(&text).ok())
            {
                put("display_metadata", value);
            }
            put("timestamp", Value::from(self.timestamp));
            if let Some(id) = self.more.message_id {
                put("message_id", Value::from(id));
            }
            if self.more.observed {
                put("observed", Value::from(true));
            }
            if let Some(count) = self.more.token_count {
                put("token_count", Value::from(count));
            }
            if let Some(reason) = self.finish_reason.filter(|_| assistant) {
                put("finish_reason", Value::from(reason));
            }
        }
        if assistant {
            for (index, (key, value)) in REASONING.into_iter().zip(self.more.reasoning).enumerate() {
                let value = match value {
                    Some(text) if index < 2 => Some(Value::from(text)),
                    Some(text) => serde_json::from_str(&text).ok(),
                    None => None,
                };
                if let Some(value) = value {
                    put(key, value);
                }
            }
        }
        Row { role, content, tool_calls: calls, tool_call_id: self.tool_call_id, name: self.tool_name, extra }
    }
}

/// Text without the blocks of recalled memory that a turn injected, trimmed.
pub fn without_context(text: &str) -> String {
    static BLOCKS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            r"(?is)<\s*memory-context\s*>.*?</\s*memory-context\s*>",
            r"(?i)\[System note:\s*The following is recalled memory context,\s*NOT new user input\.\s*Treat as [^\]]*\]\s*",
            r"(?i)</?\s*memory-context\s*>",
        ]
        .map(|pattern| Regex::new(pattern).expect("a constant pattern compiles"))
    });
    if !text.contains("emory") && !text.contains("EMORY") {
        return text.trim().to_owned();
    }
    let cleaned =
        BLOCKS.iter().fold(text.to_owned(), |text, block| block.replace_all(&text, "").into_owned());
    cleaned.trim().to_owned()
}

fn text_of<'a>(row: &'a Row, key: &str) -> Option<&'a str> {
    row.extra.get(key).and_then(Value::as_str)
}

fn flag_of(row: &Row, key: &str) -> bool {
    match row.extra.get(key) {
        Some(Value::Bool(on)) => *on,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        _ => false,
    }
}

/// A structured field as JSON text; text is kept as it is.
fn json_of(row: &Row, key: &str) -> Option<String> {
    match row.extra.get(key)? {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(python::json(other)),
    }
}

/// The time that a row names, if it is one to believe.
pub(super) fn timestamp_of(row: &Row, max: u64) -> Option<Seconds> {
    let at = row.extra.get("timestamp")?.as_f64()?;
    (0.0..=max as f64).contains(&at).then_some(at)
}

impl Store {
    /// Inserts rows as live ones and answers their keys; the counters of the session are the caller's business.
    ///
    /// A row without a believable time gets `now`, each a little later than the one before.
    pub(super) fn insert_rows(
        &self,
        session: &str,
        rows: &[Row],
        now: Seconds,
    ) -> Result<Vec<i64>, StoreError> {
        const SQL: &str = "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, \
            timestamp, finish_reason, token_count, reasoning, reasoning_content, reasoning_details, \
            codex_reasoning_items, codex_message_items, platform_message_id, observed, _compressed_summary, \
            api_content, display_kind, display_metadata, message_uid) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
        let mut statement = self.connection.prepare_cached(SQL)?;
        let mut inserted = Vec::with_capacity(rows.len());
        let mut clock = now;
        for row in rows {
            let at = timestamp_of(row, self.knobs.timestamp_max_s).unwrap_or(clock);
            let thinks = row.is_assistant();
            let thought = |key: &str| if thinks { json_of(row, key) } else { None };
            let id = statement.insert(params![
                session,
                row.role.word(),
                codec::encode(&row.content),
                row.tool_call_id,
                codec::encode_calls(row.tool_calls.as_deref()),
                row.name.as_deref().or_else(|| text_of(row, "tool_name")),
                at,
                text_of(row, "finish_reason"),
                row.extra.get("token_count").and_then(Value::as_i64),
                thought(REASONING[0]),
                thought(REASONING[1]),
                thought(REASONING[2]),
                thought(REASONING[3]),
                thought(REASONING[4]),
                text_of(row, "platform_message_id").or_else(|| text_of(row, "message_id")),
                flag_of(row, "observed"),
                flag_of(row, "_compressed_summary"),
                text_of(row, "api_content"),
                text_of(row, "display_kind"),
                json_of(row, "display_metadata"),
                text_of(row, "message_uid"),
            ])?;
            inserted.push(id);
            clock = clock.max(at) + 1e-6;
        }
        Ok(inserted)
    }

    /// Puts a row of another store in place, key and flags included; counters are not touched.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also when the key is taken.
    pub fn import_row(
        &self,
        id: i64,
        session: &str,
        row: &Row,
        active: bool,
        compacted: bool,
    ) -> Result<(), StoreError> {
        self.write(|_| {
            // The next key is what the table counts from.
            let counted = "INSERT OR REPLACE INTO sqlite_sequence(rowid, name, seq) VALUES \
                ((SELECT rowid FROM sqlite_sequence WHERE name = 'messages'), 'messages', ?1)";
            self.execute(counted, [id - 1])?;
            self.insert_rows(session, std::slice::from_ref(row), 0.0)?;
            let flags = "UPDATE messages SET active = ?2, compacted = ?3 WHERE id = ?1";
            self.execute(flags, params![id, active, compacted]).map(|_| ())
        })
    }

    /// Copies rows as live ones behind all others, into `session`; every other column stays byte for byte.
    pub(super) fn clone_rows(&self, session: &str, ids: &[i64]) -> Result<usize, StoreError> {
        const SQL: &str = "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, \
            timestamp, finish_reason, token_count, reasoning, reasoning_content, reasoning_details, \
            codex_reasoning_items, codex_message_items, platform_message_id, observed, _compressed_summary, \
            api_content, display_kind, display_metadata, message_uid) \
            SELECT ?1, role, content, tool_call_id, tool_calls, tool_name, \
            timestamp, finish_reason, token_count, reasoning, reasoning_content, reasoning_details, \
            codex_reasoning_items, codex_message_items, platform_message_id, observed, _compressed_summary, \
            api_content, display_kind, display_metadata, COALESCE(message_uid, CAST(id AS TEXT)) \
            FROM messages WHERE id = ?2";
        let mut statement = self.connection.prepare_cached(SQL)?;
        for id in ids {
            statement.execute(params![session, id])?;
        }
        Ok(ids.len())
    }

    /// All rows of a session with these flags, in order.
    pub(super) fn stored_rows(&self, session: &str, flags: Flags) -> Result<Vec<StoredRow>, StoreError> {
        self.all(&rows_sql(flags), [session], StoredRow::read)
    }

    /// One row by its key.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn stored_row(&self, id: i64) -> Result<Option<StoredRow>, StoreError> {
        self.one(&format!("SELECT {COLUMNS} FROM messages WHERE id = ?1"), [id], StoredRow::read)
    }

    /// Every row of a session, whatever its flags, in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn all_rows(&self, session: &str) -> Result<Vec<StoredRow>, StoreError> {
        self.stored_rows(session, Flags::Any)
    }

    /// The live rows of a session, in order.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn live_rows(&self, session: &str) -> Result<Vec<StoredRow>, StoreError> {
        self.stored_rows(session, Flags::Live)
    }

    /// Sets rows and tool calls of a session to those of its live rows.
    pub(super) fn recount(&self, session: &str) -> Result<(), StoreError> {
        let calls = self.all(LIVE_CALLS, [session], |row| Ok(calls_in(row.get_ref(0)?)))?;
        let (rows, calls) = (calls.len(), calls.iter().sum::<usize>());
        self.execute(
            "UPDATE sessions SET message_count = ?2, tool_call_count = ?3 WHERE id = ?1",
            params![session, whole(rows), whole(calls)],
        )?;
        Ok(())
    }
}

/// The calls of the live rows; the order only makes the index of live rows the best one.
const LIVE_CALLS: &str = "SELECT tool_calls FROM messages WHERE session_id = ?1 AND active = 1 ORDER BY id";

fn rows_sql(flags: Flags) -> String {
    format!("SELECT {COLUMNS} FROM messages WHERE session_id = ?1{} ORDER BY id", flags.sql())
}

/// Number of calls in a cell.
fn calls_in(cell: ValueRef<'_>) -> usize {
    let text = cell.as_str_or_null().ok().flatten().unwrap_or_default();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(calls)) => calls.len(),
        _ => 0,
    }
}

/// Which rows of a session are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    /// Those that the model sees.
    Live,
    /// Those that people see: live and summarised away.
    Shown,
    /// All.
    Any,
}

impl Flags {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Live => " AND active = 1",
            Self::Shown => " AND (active = 1 OR compacted = 1)",
            Self::Any => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_rows_are_found_without_a_look_at_the_archived() {
        let store = Store::open_in_memory(&crate::policy::Store::default()).unwrap();
        for sql in [&rows_sql(Flags::Live), LIVE_CALLS, super::super::archive::ARCHIVE_LIVE] {
            let plan = store.all(&format!("EXPLAIN QUERY PLAN {sql}"), ["s"], |row| row.get::<_, String>(3));
            let plan = plan.unwrap();
            assert!(plan.iter().any(|step| step.contains("messages_live")), "{sql}: {plan:?}");
        }
    }

    #[test]
    fn injected_memory_is_cut_out_and_the_rest_trimmed() {
        let text = " hi <memory-context>\n[System note: x]\nsecret</Memory-Context> there \n";
        assert_eq!(without_context(text), "hi  there");
        assert_eq!(without_context("\u{a0}plain\n"), "plain");
    }
}

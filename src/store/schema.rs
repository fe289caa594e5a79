//! Tables, triggers and full-text indexes of `state.db`, and a ready-made image of them.
//!
//! Opening a store in memory copies the image instead of running the statements: a scenario opens many. Full-text
//! tables keep no text of their own; they read it through views and are kept current by triggers on `messages`.
//! Never: a statement that changes rows of a conversation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, MAIN_DB};

use super::{StoreError, tokenizer};
use crate::policy::{self, Index, IndexWhen};

/// Tables of conversations (`Hermes hermes_state_common.py:372-632`). Columns that the lab does not use are left out.
const TABLES: &str = "
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, parent_session_id TEXT REFERENCES sessions(id),
    model TEXT, model_config TEXT, system_prompt_hash TEXT, tool_names TEXT, profile_name TEXT,
    session_key TEXT, chat_id TEXT, thread_id TEXT, user_id TEXT, cwd TEXT, git_branch TEXT, git_repo_root TEXT,
    started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER NOT NULL DEFAULT 0, tool_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0, api_call_count INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL, actual_cost_usd REAL,
    billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT,
    title TEXT, title_source TEXT, last_activity_at REAL, rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0, auto_archived INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0, hidden INTEGER NOT NULL DEFAULT 0, last_read_at REAL,
    compression_failure_cooldown_until REAL, compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
    compression_ineffective_count INTEGER NOT NULL DEFAULT 0,
    compression_recovery_deadline REAL, compression_overload_streak INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
    finish_reason TEXT, token_count INTEGER, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
    codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
    observed INTEGER NOT NULL DEFAULT 0, _compressed_summary INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT, display_kind TEXT, display_metadata TEXT, message_uid TEXT
);
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL, model TEXT NOT NULL, billing_provider TEXT NOT NULL,
    billing_base_url TEXT NOT NULL, billing_mode TEXT NOT NULL, task TEXT NOT NULL,
    api_call_count INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    estimated_cost_usd REAL NOT NULL, actual_cost_usd REAL, first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
) WITHOUT ROWID;
CREATE TABLE compression_locks (
    session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE session_turn_leases (
    conversation_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE conversation_generations (
    source TEXT NOT NULL, session_key TEXT NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (source, session_key)
) WITHOUT ROWID;
";

/// What the statements of the store find rows by.
const ROW_INDEXES: &str = "
CREATE INDEX IF NOT EXISTS sessions_parent ON sessions(parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS sessions_prompt ON sessions(system_prompt_hash) WHERE system_prompt_hash IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS sessions_title ON sessions(title) WHERE title IS NOT NULL;
CREATE INDEX IF NOT EXISTS messages_session ON messages(session_id, id);
CREATE INDEX IF NOT EXISTS messages_live ON messages(session_id, id) WHERE active = 1;
CREATE INDEX IF NOT EXISTS messages_time ON messages(session_id, timestamp, id);
";

/// What one full-text index is made of.
struct Shape {
    table: &'static str,
    tokenize: &'static str,
    columns: &'static [&'static str],
    /// Condition on a message `{m}` for being in the index at all.
    member: &'static str,
    /// Prefix of the two `state_meta` keys of a pending rebuild.
    rebuild: &'static str,
}

/// Condition on a session for being in the trigram index.
const TRIGRAM_SESSION: &str = "source NOT IN ('cron', 'subagent') AND json_extract(CASE WHEN \
    json_valid(model_config) THEN model_config ELSE '{}' END, '$._delegate_from') IS NULL";

fn shape(index: Index) -> Shape {
    match index {
        Index::Unicode61 => Shape {
            table: "messages_fts",
            tokenize: "unicode61",
            columns: &["content", "tool_name", "tool_calls"],
            member: "1",
            rebuild: "fts_rebuild",
        },
        Index::Trigram => Shape {
            table: "messages_fts_trigram",
            tokenize: "trigram",
            columns: &["content", "tool_name"],
            member: "{m}.role <> 'tool' AND EXISTS (SELECT 1 FROM sessions WHERE id = {m}.session_id AND {session})",
            rebuild: "fts_rebuild",
        },
        Index::CjkBigram => Shape {
            table: "messages_fts_cjk",
            tokenize: "cjk_unicode61",
            columns: &["content", "tool_name", "tool_calls"],
            member: "{m}.role <> 'tool'",
            rebuild: "fts_cjk_rebuild",
        },
    }
}

/// Name of the table of an index.
pub fn table_of(index: Index) -> &'static str {
    shape(index).table
}

impl Shape {
    fn member_of(&self, row: &str) -> String {
        self.member.replace("{m}", row).replace("{session}", TRIGRAM_SESSION)
    }

    /// The indexed values of a row, in the order of the columns.
    fn values_of(&self, row: &str, tool_chars: u64) -> Vec<String> {
        let bounded = self.table == "messages_fts";
        let value = |column: &&str| match *column {
            "content" if bounded => format!(
                "CASE WHEN {row}.role = 'tool' THEN substr({row}.content, 1, {tool_chars}) ELSE {row}.content END"
            ),
            column => format!("{row}.{column}"),
        };
        self.columns.iter().map(value).collect()
    }

    /// Whether the index has reached a row: while a rebuild is pending only rows at or below its progress or above
    /// its mark are in; an index that is caught up by searches holds the rows up to its mark.
    fn reached(&self, row: &str, when: IndexWhen) -> String {
        let meta = |key: &str| {
            format!("COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = '{key}'), -1)")
        };
        match when {
            IndexWhen::Search => format!("{row}.id <= {}", meta(&mark_of(self.table))),
            IndexWhen::Append | IndexWhen::Auto => {
                let prefix = self.rebuild;
                let (mark, progress) =
                    (meta(&format!("{prefix}_high_water")), meta(&format!("{prefix}_progress")));
                format!("({row}.id > {mark} OR {row}.id <= {progress})")
            }
        }
    }

    fn sql(&self, when: IndexWhen, tool_chars: u64) -> String {
        let (table, columns) = (self.table, self.columns.join(", "));
        let values = |row: &str| self.values_of(row, tool_chars).join(", ");
        let named: Vec<String> = self
            .values_of("m", tool_chars)
            .iter()
            .zip(self.columns)
            .map(|(value, column)| format!("{value} AS {column}"))
            .collect();
        let mut sql = format!(
            "CREATE VIEW {table}_src AS SELECT m.id AS id, {named} FROM messages AS m WHERE {member};
             CREATE VIRTUAL TABLE {table} USING fts5({columns}, content='{table}_src', content_rowid='id',
                 tokenize='{tokenize}');",
            named = named.join(", "),
            member = self.member_of("m"),
            tokenize = self.tokenize,
        );
        if when == IndexWhen::Append {
            let trigger = format!(
                "CREATE TRIGGER {table}_insert AFTER INSERT ON messages WHEN {member} AND {reached} BEGIN
                     INSERT INTO {table}(rowid, {columns}) VALUES (new.id, {new}); END;",
                member = self.member_of("new"),
                reached = self.reached("new", when),
                new = values("new"),
            );
            sql.push_str(&trigger);
        }
        let rest = format!(
            "CREATE TRIGGER {table}_delete AFTER DELETE ON messages WHEN {old_member} AND {reached} BEGIN
                 INSERT INTO {table}({table}, rowid, {columns}) VALUES ('delete', old.id, {old}); END;
             CREATE TRIGGER {table}_update AFTER UPDATE OF content, tool_name, tool_calls, role ON messages
                 WHEN (old.content IS NOT new.content OR old.tool_name IS NOT new.tool_name
                     OR old.tool_calls IS NOT new.tool_calls OR old.role IS NOT new.role) AND {reached} BEGIN
                 INSERT INTO {table}({table}, rowid, {columns}) SELECT 'delete', old.id, {old} WHERE {old_member};
                 INSERT INTO {table}(rowid, {columns}) SELECT new.id, {new} WHERE {new_member}; END;",
            old_member = self.member_of("old"),
            new_member = self.member_of("new"),
            reached = self.reached("old", when),
            old = values("old"),
            new = values("new"),
        );
        sql.push_str(&rest);
        sql
    }
}

/// First half of the keys in `state_meta` that hold the last row of an index, where searches catch up.
const INDEXED_TO: &str = "indexed_to:";

fn mark_of(table: &str) -> String {
    format!("{INDEXED_TO}{table}")
}

/// Key in `state_meta` of the last row that is in an index, where searches catch up.
pub fn indexed_to(index: Index) -> String {
    mark_of(table_of(index))
}

/// The statement that sets the marks of all indexes to nothing.
fn unmarked_sql(knobs: &policy::Store) -> String {
    let one =
        |index: &Index| format!("INSERT OR REPLACE INTO state_meta VALUES ('{}', '0');", indexed_to(*index));
    knobs.indexes.iter().map(one).collect()
}

/// The statement that indexes the rows with `?1 < id <= ?2` which an index lacks.
pub fn catch_up_sql(index: Index) -> String {
    let shape = shape(index);
    let (table, columns) = (shape.table, shape.columns.join(", "));
    format!(
        "INSERT INTO {table}(rowid, {columns}) SELECT id, {columns} FROM {table}_src WHERE id > ?1 AND id <= ?2 \
         ORDER BY id"
    )
}

/// Names of the triggers of an index.
pub fn triggers_of(index: Index) -> [String; 3] {
    ["insert", "delete", "update"].map(|event| format!("{}_{event}", table_of(index)))
}

/// Creates everything in an empty database.
///
/// # Errors
/// When SQLite refuses a statement.
pub fn create(connection: &Connection, knobs: &policy::Store) -> Result<(), StoreError> {
    let mut sql = String::from("BEGIN;");
    sql.push_str(TABLES);
    sql.push_str(ROW_INDEXES);
    sql.push_str(&indexes_sql(knobs));
    if knobs.index_when == IndexWhen::Search {
        sql.push_str(&unmarked_sql(knobs));
    }
    // The layout version tells a later reader which rows the indexes hold.
    let _ = write!(
        sql,
        "INSERT INTO schema_version VALUES ({});
         INSERT INTO state_meta VALUES ('fts_storage_version', '3'); COMMIT;",
        knobs.schema_version
    );
    connection.execute_batch(&sql)?;
    Ok(())
}

/// The statements that create the indexes of a store.
fn indexes_sql(knobs: &policy::Store) -> String {
    knobs.indexes.iter().map(|index| shape(*index).sql(knobs.index_when, knobs.index_tool_chars)).collect()
}

/// Creates the indexes, and their marks at 0, in a store that has none; searches catch up.
///
/// # Errors
/// When SQLite refuses a statement.
pub fn create_indexes(connection: &Connection, knobs: &policy::Store) -> Result<(), StoreError> {
    connection.execute_batch(&indexes_sql(knobs))?;
    connection.execute_batch(&unmarked_sql(knobs))?;
    Ok(())
}

/// Turns the knobs to the indexes that an existing file has.
///
/// # Errors
/// When SQLite refuses a statement.
pub fn adopt(connection: &Connection, knobs: &mut policy::Store) -> Result<(), StoreError> {
    let has = |name: &str| -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM sqlite_master WHERE name = ?1";
        Ok(connection.query_row(sql, [name], |row| row.get::<_, i64>(0))? > 0)
    };
    let lazy = format!("SELECT count(*) FROM state_meta WHERE key GLOB '{INDEXED_TO}*'");
    let lazy = connection.query_row(&lazy, [], |row| row.get::<_, i64>(0))? > 0;
    let mut kept = Vec::new();
    for index in [Index::Unicode61, Index::Trigram, Index::CjkBigram] {
        if has(table_of(index))? {
            kept.push(index);
        }
    }
    if kept.is_empty() {
        knobs.index_when = IndexWhen::Search;
    } else {
        knobs.index_when = if lazy { IndexWhen::Search } else { IndexWhen::Append };
        knobs.indexes = kept;
    }
    // A file may have been made before one of them was known.
    connection.execute_batch(ROW_INDEXES)?;
    Ok(())
}

/// All that a database is made by: two of one make are the same byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Make {
    indexes: Vec<Index>,
    index_when: IndexWhen,
    index_tool_chars: u64,
    schema_version: u64,
    page_bytes: u64,
}

impl Make {
    /// The make that a policy asks for.
    pub fn of(knobs: &policy::Store) -> Self {
        Self {
            indexes: knobs.indexes.clone(),
            index_when: knobs.index_when,
            index_tool_chars: knobs.index_tool_chars,
            schema_version: knobs.schema_version,
            page_bytes: knobs.page_bytes,
        }
    }
}

/// A database in memory with everything created.
///
/// # Errors
/// When SQLite refuses a statement.
pub fn open_image(knobs: &policy::Store) -> Result<Connection, StoreError> {
    let image = image(knobs)?;
    let mut connection = Connection::open_in_memory()?;
    if knobs.indexes.contains(&Index::CjkBigram) {
        tokenizer::register(&connection)?;
    }
    connection.deserialize_read_exact(MAIN_DB, &image[..], image.len(), false)?;
    // Nobody else can open it: no transaction has to ask for it, or to see what another did.
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    // What is written stays in the cache: behind it is memory as well.
    connection.pragma_update(None, "cache_spill", false)?;
    Ok(connection)
}

fn image(knobs: &policy::Store) -> Result<Arc<Vec<u8>>, StoreError> {
    static IMAGES: Mutex<BTreeMap<Make, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let make = Make::of(knobs);
    // A thread that panicked while holding the lock left at worst one image less.
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(image) = images.get(&make) {
        return Ok(Arc::clone(image));
    }
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!("PRAGMA page_size = {}", knobs.page_bytes))?;
    tokenizer::register(&connection)?;
    create(&connection, knobs)?;
    let image = Arc::new(connection.serialize(MAIN_DB)?.to_vec());
    images.insert(make, Arc::clone(&image));
    Ok(image)
}

//! Opening a store, and the one way to write to it.

use std::cell::Cell;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Params, Row as SqlRow};

use super::pool::Pooled;
use super::{StoreError, schema, tokenizer, whole};
use crate::policy::{self, Index, IndexWhen};
use crate::wire::Row;
use crate::world::faults::{Faults, Place, WriteFault};

/// Splits a row that carries both a handoff and live text into the two; `None` for any other row.
///
/// The compressor knows the marks of such rows; whoever opens the store hands its function over.
pub type HandoffSplit = fn(&Row) -> Option<(Row, Row)>;

/// Prepared statements that are kept; more than the store has.
const STATEMENTS: usize = 192;

/// Page size of a temporary store: rows are a few hundred bytes to some kilobytes.
const TEMPORARY_PAGE_BYTES: i64 = 4_096;
/// What a temporary store keeps in memory of its file. At each commit SQLite walks over the changed pages of such a file,
/// which it writes out only when they are a quarter of the cache: a large one makes a long run slow.
const TEMPORARY_CACHE_KIB: i64 = 2_048;

/// One session store.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Pooled,
    pub(super) knobs: policy::Store,
    pub(super) split: HandoffSplit,
    in_memory: bool,
    writes: Cell<u64>,
    depth: Cell<u32>,
    faults: Faults,
}

impl Store {
    /// An empty store in memory.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] when SQLite lacks something that the store needs.
    pub fn open_in_memory(knobs: &policy::Store) -> Result<Self, StoreError> {
        let knobs = resolved(knobs, IndexWhen::Search);
        Self::over(Pooled::in_memory(&knobs)?, &knobs, true)
    }

    /// An empty store in a file without a name, which goes with the connection: memory holds no more than a cache of it,
    /// however long the run is.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] when SQLite lacks something that the store needs, or no file can be made.
    pub fn open_temporary(knobs: &policy::Store) -> Result<Self, StoreError> {
        let knobs = resolved(knobs, IndexWhen::Search);
        // An empty path asks SQLite for a file that it removes itself.
        let connection = Connection::open("")?;
        tokenizer::register(&connection)?;
        connection.pragma_update(None, "page_size", TEMPORARY_PAGE_BYTES)?;
        connection.pragma_update(None, "cache_size", -TEMPORARY_CACHE_KIB)?;
        // Nobody reads the file after a crash; taking back a failed write needs the journal all the same.
        connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        schema::create(&connection, &knobs)?;
        Self::over(Pooled::once(connection), &knobs, true)
    }

    /// The store of a file, which is made when it is missing. Only its owner may read it, where the platform knows
    /// owners.
    ///
    /// # Errors
    /// [`StoreError::File`] when the file cannot be made, [`StoreError::Sqlite`] when it is no database.
    pub fn open_file(path: &Path, knobs: &policy::Store) -> Result<Self, StoreError> {
        make_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(std::time::Duration::from_millis(knobs.busy_timeout_ms))?;
        tokenizer::register(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let sound = !knobs.wal_needs_sound_build || wal_is_sound(rusqlite::version_number());
        if knobs.wal && sound {
            // A file system without shared memory answers with the old mode; that is no error.
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
            connection.pragma_update_and_check(
                None,
                "journal_size_limit",
                whole(knobs.wal_bytes_max),
                |_| Ok(()),
            )?;
        }
        let known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sessions'";
        let mut knobs = resolved(knobs, IndexWhen::Append);
        if connection.query_row(known, [], |_| Ok(())).optional()?.is_none() {
            schema::create(&connection, &knobs)?;
        } else {
            // A file keeps the indexes that it was made with.
            schema::adopt(&connection, &mut knobs)?;
        }
        Self::over(Pooled::once(connection), &knobs, false)
    }

    fn over(connection: Pooled, knobs: &policy::Store, in_memory: bool) -> Result<Self, StoreError> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // The plan of a statement must not hang on what is bound to it; nor is it made again for each value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Self {
            connection,
            knobs: knobs.clone(),
            split: |_| None,
            in_memory,
            writes: Cell::new(0),
            depth: Cell::new(0),
            faults: Faults::default(),
        })
    }

    /// Puts the store under a schedule of faults.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// What the schedule of faults says to one more transaction.
    fn meet_fault(&self) -> Result<(), StoreError> {
        let refused = |code, message: &str| {
            let error = rusqlite::ffi::Error::new(code);
            StoreError::Sqlite(rusqlite::Error::SqliteFailure(error, Some(message.to_owned())))
        };
        self.faults.before_write(Place::Store, "state.db").map_err(|fault| match fault {
            WriteFault::Dead => StoreError::ProcessGone,
            WriteFault::Busy => refused(rusqlite::ffi::SQLITE_BUSY, "database is locked"),
            WriteFault::Full => refused(rusqlite::ffi::SQLITE_FULL, "database or disk is full"),
        })
    }

    /// Tells the store how rows that carry a handoff beside live text are split.
    #[must_use]
    pub fn with_handoff_split(mut self, split: HandoffSplit) -> Self {
        self.split = split;
        self
    }

    /// The knobs that the store was opened with; the moment of indexing is settled.
    pub fn knobs(&self) -> &policy::Store {
        &self.knobs
    }

    /// Runs several changes as one transaction: all of them happen or none.
    ///
    /// # Errors
    /// The first error of `changes`, or that of the commit.
    pub fn batch<T, E: From<StoreError>>(
        &self,
        mut changes: impl FnMut(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transaction(&mut |store: &Self| changes(store))
    }

    /// One write: begin, run, commit; everything is taken back when `run` fails.
    ///
    /// A damaged full-text index never fails a write: its triggers are dropped, the index is marked stale in the same
    /// transaction and the write is repeated (`Hermes hermes_state_fts.py:354`).
    pub(super) fn write<T>(
        &self,
        mut run: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.transaction(&mut |store: &Self| run(&store.connection)) {
            Err(error) if error.is_corruption() => self.transaction(&mut |store: &Self| {
                store.drop_indexing()?;
                run(&store.connection)
            }),
            other => other,
        }
    }

    fn transaction<T, E: From<StoreError>>(
        &self,
        run: &mut dyn FnMut(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let nested = self.depth.get() > 0 || self.connection.is_transaction();
        let (begin, commit, rollback) = if nested {
            ("SAVEPOINT inner", "RELEASE inner", "ROLLBACK TO inner")
        } else {
            ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
        };
        if self.depth.get() == 0 {
            self.meet_fault()?;
        }
        self.execute(begin, [])?;
        self.depth.set(self.depth.get() + 1);
        let done = run(self).and_then(|done| Ok(self.execute(commit, []).map(|_| done)?));
        self.depth.set(self.depth.get() - 1);
        if done.is_ok() {
            if self.depth.get() == 0 {
                self.after_write();
            }
        } else {
            // The first failure says more than that of the rollback could.
            let _ = self.execute(rollback, []);
            if nested {
                let _ = self.execute(commit, []);
            }
        }
        done
    }

    /// Housekeeping behind a write that is safe already; it may fail without harm.
    fn after_write(&self) {
        let writes = self.writes.get() + 1;
        self.writes.set(writes);
        let due = |every: u64| every > 0 && writes.is_multiple_of(every);
        if due(self.knobs.checkpoint_writes) && !self.in_memory {
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
        if due(self.knobs.merge_writes) && self.knobs.index_when == IndexWhen::Append {
            for index in &self.knobs.indexes {
                let _ = self.merge(*index);
            }
        }
    }

    /// Merges the segments of one index a little; results do not change.
    fn merge(&self, index: Index) -> Result<(), StoreError> {
        let table = schema::table_of(index);
        let sql = format!("INSERT INTO {table}({table}, rank) VALUES ('merge', ?1)");
        for _ in 0..self.knobs.merge_commands {
            let before = self.connection.total_changes();
            self.execute(&sql, [whole(self.knobs.merge_pages)])?;
            // FTS5 writes nothing but the command itself when there is nothing left to merge.
            if self.connection.total_changes() - before < 2 {
                break;
            }
        }
        Ok(())
    }

    /// Detaches the full-text indexes and marks them stale; searches scan from now on.
    pub(super) fn drop_indexing(&self) -> Result<(), StoreError> {
        for index in [Index::Unicode61, Index::Trigram, Index::CjkBigram] {
            for trigger in schema::triggers_of(index) {
                self.connection.execute_batch(&format!("DROP TRIGGER IF EXISTS {trigger}"))?;
            }
        }
        self.execute("INSERT OR REPLACE INTO state_meta VALUES ('fts_stale', '1')", [])?;
        Ok(())
    }

    /// Runs one cached statement; answers how many rows it changed.
    pub(super) fn execute(&self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    /// The first row of a cached query.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    /// All rows of a cached query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(values, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A value of the table of small facts.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.one("SELECT value FROM state_meta WHERE key = ?1", [key], |row| row.get(0))
    }

    /// Sets a value of the table of small facts.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.write(|_| {
            self.execute("INSERT OR REPLACE INTO state_meta VALUES (?1, ?2)", [key, value]).map(|_| ())
        })
    }
}

/// True for SQLite builds without the fault that a checkpoint may meet when the log is reset
/// (`Hermes hermes_state_wal.py:131`).
pub fn wal_is_sound(version: i32) -> bool {
    !(3_007_000..=3_051_002).contains(&version) || matches!(version, 3_044_006 | 3_050_007)
}

/// The knobs with the moment of indexing settled.
fn resolved(knobs: &policy::Store, auto: IndexWhen) -> policy::Store {
    let index_when = if knobs.index_when == IndexWhen::Auto { auto } else { knobs.index_when };
    policy::Store { index_when, ..knobs.clone() }
}

#[cfg(unix)]
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let failed = |error: &std::io::Error| StoreError::File {
        path: path.display().to_string(),
        message: error.to_string(),
    };
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed(&error))?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(|error| failed(&error))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewSession;

    #[test]
    fn a_temporary_store_holds_more_than_its_cache_and_finds_it_again() {
        let store = Store::open_temporary(&policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("s", "cli"), 0).unwrap();
        let long = "a line of output that says what was done ".repeat(200);
        // Forty megabytes, of which two fit.
        for n in 0..5_000 {
            store.append("s", &[Row::user(format!("{n} {long}"))], n).unwrap();
        }
        assert_eq!(store.live_rows("s").unwrap().len(), 5_000);
    }

    #[test]
    fn a_failed_batch_leaves_nothing_behind() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        let failed: Result<(), StoreError> = store.batch(|store| {
            store.create_session(&NewSession::of("a", "cli"), 0)?;
            store.append("a", &[Row::user("x")], 0)?;
            Err(StoreError::EmptyHandoff)
        });
        assert!(failed.is_err());
        assert!(store.session("a").unwrap().is_none());
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        assert_eq!(store.append("a", &[Row::user("x")], 0).unwrap(), [1]);
    }

    #[test]
    fn a_file_keeps_its_rows_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let store = Store::open_file(&path, &policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.append("a", &[Row::user("kept")], 0).unwrap();
        drop(store);
        let store = Store::open_file(&path, &policy::Store::default()).unwrap();
        assert_eq!(store.load_for_model("a").unwrap().rows[0].content.text(), Some("kept"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.symlink_metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_lacks_an_index_of_rows_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        let made = || Store::open_file(&path, &policy::Store::default()).unwrap();
        let plan = |store: &Store| {
            let sql =
                "EXPLAIN QUERY PLAN SELECT id FROM messages WHERE session_id = ?1 AND active = 1 ORDER BY id";
            store.all(sql, ["s"], |row| row.get::<_, String>(3)).unwrap().join("; ")
        };
        let store = made();
        store.connection.execute_batch("DROP INDEX messages_live").unwrap();
        assert!(!plan(&store).contains("messages_live"));
        drop(store);
        assert!(plan(&made()).contains("messages_live"));
    }

    #[test]
    fn a_file_keeps_the_indexes_that_it_was_made_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let words = policy::Store { indexes: vec![Index::Unicode61], ..policy::Store::default() };
        drop(Store::open_file(&path, &words).unwrap());
        let lazy = policy::Store { index_when: IndexWhen::Search, ..policy::Store::default() };
        let store = Store::open_file(&path, &lazy).unwrap();
        assert_eq!((&store.knobs.indexes, store.knobs.index_when), (&words.indexes, IndexWhen::Append));
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.append("a", &[Row::user("heron")], 0).unwrap();
        let knobs = policy::Search::default();
        let found = store.search(&crate::store::search::SearchQuery::of("heron", &knobs), &knobs).unwrap();
        assert_eq!(found.hits.len(), 1);
    }

    #[test]
    fn builds_with_the_checkpoint_fault_are_known() {
        assert!(wal_is_sound(3_051_003) && wal_is_sound(3_050_007) && wal_is_sound(3_006_000));
        assert!(!wal_is_sound(3_051_002) && !wal_is_sound(3_050_006));
    }
}

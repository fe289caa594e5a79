//! Why the store refused.

/// A refusal of the session store. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite said no.
    #[error("the session store: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A file could not be prepared.
    #[error("the session store `{path}`: {message}")]
    File {
        /// The file as it was named.
        path: String,
        /// What went wrong.
        message: String,
    },
    /// The process that wanted to write is gone.
    #[error("the process is gone")]
    ProcessGone,
    /// There is no such session.
    #[error("session `{0}` does not exist")]
    NoSession(String),
    /// The session was ended by a compaction; its rows are final.
    #[error("session `{0}` was closed by a compaction")]
    SessionClosed(String),
    /// The writer named a turn lease that it does not hold.
    #[error("the turn lease of session `{0}` belongs to another")]
    TurnLeaseLost(String),
    /// The writer named a compression lock that it does not hold.
    #[error("the compression lock of session `{0}` is not held")]
    CompressionLeaseLost(String),
    /// Another writer is compressing the session.
    #[error("session `{0}` is being compressed by another writer")]
    CompressionInProgress(String),
    /// Another compaction won.
    #[error("session `{0}` was compacted by another meanwhile")]
    Overtaken(String),
    /// A rotation of a session that has ended for good.
    #[error("session `{0}` has ended already")]
    AlreadyEnded(String),
    /// A rotation without rows for the child.
    #[error("a handoff needs at least one row")]
    EmptyHandoff,
    /// A title over the limit.
    #[error("a title has at most {limit} characters, found {found}")]
    TitleTooLong {
        /// Characters found.
        found: u64,
        /// Characters allowed.
        limit: u64,
    },
    /// A title that another session holds.
    #[error("title `{title}` is in use by session `{holder}`")]
    TitleInUse {
        /// The title.
        title: String,
        /// Who holds it.
        holder: String,
    },
    /// A rewind to a turn that is not there.
    #[error("the turn to rewind to is not in the live history")]
    TargetUnavailable,
    /// A rewind by somebody whose view of the history is out of date.
    #[error("the history changed before the rewind")]
    HistoryChanged,
    /// A resume that would load too much.
    #[error("{rows} rows to resume, the limit is {limit}")]
    ResumeTooLarge {
        /// Rows found; counting stops one above the limit.
        rows: u64,
        /// Rows allowed.
        limit: u64,
    },
}

impl StoreError {
    /// True when trying again may help: another connection holds the database.
    pub fn is_lock(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
        ))
    }

    /// True when a full-text index is damaged.
    pub(crate) fn is_corruption(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
        ))
    }
}

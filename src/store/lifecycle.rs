//! How sessions end, and how an end is taken back.

use rusqlite::params;

use super::{Seconds, Store, StoreError, seconds};
use crate::world::Millis;

/// Reasons of a reset: the peer starts afresh (`Hermes hermes_state_common.py:170`).
pub const RESET: [&str; 6] =
    ["session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired"];
/// The reason of a person who asked for a new session.
pub const NEW_SESSION: &str = "new_session";
/// The reason of a session whose rows went into a summary.
pub const COMPRESSION: &str = "compression";
/// Accidents after which a session may be taken up again.
pub const RECOVERABLE: [&str; 4] =
    ["agent_close", "ws_orphan_reap", "superseded_by_resume", "startup_orphan_reap"];
/// Other clean-up that says nothing about the conversation.
const CLEAN_UP: [&str; 4] = ["tui_shutdown", "ws_disconnect", "idle_timeout", "lru_evict"];

/// True for a deliberate boundary between conversations.
pub fn is_boundary(reason: &str) -> bool {
    reason == NEW_SESSION || RESET.contains(&reason)
}

/// True for an end that some automatic clean-up wrote.
pub fn is_automatic(reason: &str) -> bool {
    RECOVERABLE.contains(&reason) || CLEAN_UP.contains(&reason)
}

/// True when the rows of a session that ended so are in nobody's live context.
pub fn left_live_context(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason == COMPRESSION || is_boundary(reason))
}

/// Where a conversation stands, told by its last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing is open.
    Complete,
    /// Something waits for an answer.
    Interrupted,
    /// The last answer failed.
    Error,
}

impl Status {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }

    /// The status of a conversation with this last row.
    pub fn of(role: Option<&str>, has_calls: bool, finish_reason: Option<&str>) -> Self {
        match (role, finish_reason) {
            (_, Some("error" | "content_filter")) => Self::Error,
            (Some("user" | "tool"), _) => Self::Interrupted,
            (Some("assistant"), _) if has_calls => Self::Interrupted,
            _ => Self::Complete,
        }
    }
}

impl Store {
    /// Ends a session; the first reason wins. True when this one was written.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn end_session(&self, id: &str, reason: &str, now: Millis) -> Result<bool, StoreError> {
        self.write(|_| {
            let sql = "UPDATE sessions SET ended_at = ?2, end_reason = ?3 WHERE id = ?1 AND ended_at IS NULL";
            let written = self.execute(sql, params![id, seconds(now), reason])? > 0;
            if written {
                self.bump_generation(id, reason)?;
            }
            Ok(written)
        })
    }

    /// Takes the end of a session back.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn reopen(&self, id: &str) -> Result<(), StoreError> {
        self.write(|_| self.clear_end(id))
    }

    pub(super) fn clear_end(&self, id: &str) -> Result<(), StoreError> {
        self.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?1", [id])?;
        Ok(())
    }

    /// Ends a session for a reset: over a live row or a recoverable accident, never over another end. True when it
    /// was written.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn reset_session(&self, id: &str, reason: &str, now: Millis) -> Result<bool, StoreError> {
        self.write(|_| {
            let Some(session) = self.session(id)? else { return Ok(false) };
            let over = session.end_reason.as_deref();
            if session.ended_at.is_some() && !over.is_some_and(|over| RECOVERABLE.contains(&over)) {
                return Ok(false);
            }
            let sql = "UPDATE sessions SET ended_at = ?2, end_reason = ?3 WHERE id = ?1";
            self.execute(sql, params![id, seconds(now), reason])?;
            self.bump_generation(id, reason)?;
            Ok(true)
        })
    }

    /// Takes back an explicit close that a host knows to be out of date, unless the conversation goes on elsewhere;
    /// answers the reason that was cleared (`Hermes hermes_state_compression.py:111`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn reopen_explicit(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.write(|_| {
            let Some(session) = self.session(id)?.filter(|session| session.ended_at.is_some()) else {
                return Ok(None);
            };
            let Some(reason) = session.end_reason else { return Ok(None) };
            if is_automatic(&reason) || reason == COMPRESSION || is_boundary(&reason) {
                return Ok(None);
            }
            if self.children(id)?.iter().any(super::lineage::is_no_fork) {
                return Ok(None);
            }
            self.clear_end(id)?;
            Ok(Some(reason))
        })
    }

    /// How often the peer of this source and routing key started afresh; `None` for never.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn generation(&self, source: &str, session_key: &str) -> Result<Option<i64>, StoreError> {
        self.one(
            "SELECT generation FROM conversation_generations WHERE source = ?1 AND session_key = ?2",
            [source, session_key],
            |row| row.get(0),
        )
    }

    /// Counts a reset of the peer, in the transaction that writes it.
    fn bump_generation(&self, id: &str, reason: &str) -> Result<(), StoreError> {
        if RESET.contains(&reason) {
            self.execute(
                "INSERT INTO conversation_generations
                     SELECT trim(source), trim(session_key), 1 FROM sessions
                     WHERE id = ?1 AND trim(source) <> '' AND trim(COALESCE(session_key, '')) <> ''
                     ON CONFLICT DO UPDATE SET generation = generation + 1",
                [id],
            )?;
        }
        Ok(())
    }

    /// When something last happened in a session: its stamp or its newest row, whichever is later, else its start.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn activity(&self, id: &str) -> Result<Option<Seconds>, StoreError> {
        let latest = self.one(
            "SELECT last_activity_at, started_at,
                 (SELECT max(timestamp) FROM messages WHERE session_id = sessions.id)
             FROM sessions WHERE id = ?1",
            [id],
            |row| {
                let stamp: Option<Seconds> = row.get(0)?;
                let newest: Option<Seconds> = row.get(2)?;
                let later = match (stamp, newest) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    (a, b) => a.or(b),
                };
                later.map_or_else(|| row.get(1), Ok)
            },
        )?;
        Ok(latest)
    }
}

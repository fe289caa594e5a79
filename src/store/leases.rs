//! Two leases: the compression lock keeps two compactions of a session apart, the turn lease two turns of a
//! conversation.
//!
//! A holder is a name. The lab has no processes that could die, so only the clock makes a lease stale.

use rusqlite::params;

use super::{Seconds, Store, StoreError, seconds};
use crate::world::Millis;

impl Store {
    /// Takes the compression lock of a session for `ttl` milliseconds; true when it is held afterwards. Free, its own,
    /// or expired (strictly) is taken.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn lock_compression(
        &self,
        session: &str,
        holder: &str,
        ttl: Millis,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let now = seconds(now);
        self.write(|_| {
            self.execute(
                "DELETE FROM compression_locks WHERE session_id = ?1 AND expires_at < ?2",
                params![session, now],
            )?;
            self.execute(
                "INSERT OR IGNORE INTO compression_locks VALUES (?1, ?2, ?3, ?4)",
                params![session, holder, now, now + seconds(ttl)],
            )?;
            let sql = "SELECT holder = ?2 FROM compression_locks WHERE session_id = ?1";
            Ok(self.one(sql, [session, holder], |row| row.get(0))?.unwrap_or(false))
        })
    }

    /// Extends the compression lock of its holder, an expired one too; false when another has it or nobody.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn refresh_compression(
        &self,
        session: &str,
        holder: &str,
        ttl: Millis,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.write(|_| {
            let sql = "UPDATE compression_locks SET expires_at = ?3 WHERE session_id = ?1 AND holder = ?2";
            Ok(self.execute(sql, params![session, holder, seconds(now) + seconds(ttl)])? > 0)
        })
    }

    /// Gives the compression lock back if it is the holder's.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn unlock_compression(&self, session: &str, holder: &str) -> Result<(), StoreError> {
        self.write(|_| {
            let sql = "DELETE FROM compression_locks WHERE session_id = ?1 AND holder = ?2";
            self.execute(sql, [session, holder]).map(|_| ())
        })
    }

    /// Who holds the compression lock; at its deadline it still counts.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn compression_holder(&self, session: &str, now: Millis) -> Result<Option<String>, StoreError> {
        let sql = "SELECT holder FROM compression_locks WHERE session_id = ?1 AND expires_at >= ?2";
        self.one(sql, params![session, seconds(now)], |row| row.get(0))
    }

    /// Takes the turn lease of a conversation for `ttl` milliseconds; all its segments share one. True when it is held
    /// afterwards. At its deadline it is free.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn lease_turn(
        &self,
        session: &str,
        holder: &str,
        ttl: Millis,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let (now, ttl) = (seconds(now), seconds(ttl.max(100)));
        self.write(|_| {
            self.execute(
                "DELETE FROM session_turn_leases WHERE expires_at < ?1",
                [now - self.knobs.turn_sweep_s as Seconds],
            )?;
            let key = self.turn_lease_key(session)?;
            self.execute(
                "DELETE FROM session_turn_leases WHERE conversation_id = ?1 AND expires_at <= ?2",
                params![key, now],
            )?;
            self.execute(
                "INSERT OR IGNORE INTO session_turn_leases VALUES (?1, ?2, ?3, ?4)",
                params![key, holder, now, now + ttl],
            )?;
            let sql = "SELECT holder = ?2 FROM session_turn_leases WHERE conversation_id = ?1";
            Ok(self.one(sql, params![key, holder], |row| row.get(0))?.unwrap_or(false))
        })
    }

    /// Extends the turn lease of its holder; false when it is another's or nobody's.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn refresh_turn(
        &self,
        session: &str,
        holder: &str,
        ttl: Millis,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.write(|_| {
            let key = self.turn_lease_key(session)?;
            let expires = seconds(now) + seconds(ttl.max(100));
            let sql =
                "UPDATE session_turn_leases SET expires_at = ?3 WHERE conversation_id = ?1 AND holder = ?2";
            Ok(self.execute(sql, params![key, holder, expires])? > 0)
        })
    }

    /// Gives the turn lease back if it is the holder's.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn release_turn(&self, session: &str, holder: &str) -> Result<(), StoreError> {
        self.write(|_| {
            let key = self.turn_lease_key(session)?;
            let sql = "DELETE FROM session_turn_leases WHERE conversation_id = ?1 AND holder = ?2";
            self.execute(sql, params![key, holder]).map(|_| ())
        })
    }

    /// True when somebody holds an unexpired turn lease of the conversation.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn turn_is_leased(&self, session: &str, now: Millis) -> Result<bool, StoreError> {
        let key = self.turn_lease_key(session)?;
        let sql = "SELECT 1 FROM session_turn_leases WHERE conversation_id = ?1 AND expires_at > ?2";
        Ok(self.one(sql, params![key, seconds(now)], |_| Ok(()))?.is_some())
    }
}

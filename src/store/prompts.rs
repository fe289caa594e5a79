//! System prompts, each stored once under its SHA-256.

use std::fmt::Write as _;

use rusqlite::params;
use sha2::{Digest as _, Sha256};

use super::{Store, StoreError};

/// The key of a prompt: SHA-256 of its text, in hex.
pub fn hash_of(prompt: &str) -> String {
    Sha256::digest(prompt.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl Store {
    /// Stores a prompt unless it is there; answers its key.
    pub(super) fn put_prompt(&self, prompt: &str) -> Result<String, StoreError> {
        let hash = hash_of(prompt);
        self.execute("INSERT OR IGNORE INTO system_prompts VALUES (?1, ?2)", [hash.as_str(), prompt])?;
        Ok(hash)
    }

    /// Removes prompts that no session refers to.
    pub(super) fn sweep_prompts(&self) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM system_prompts WHERE hash NOT IN
                 (SELECT system_prompt_hash FROM sessions WHERE system_prompt_hash IS NOT NULL)",
            [],
        )?;
        Ok(())
    }

    /// Sets or clears the system prompt of a session.
    ///
    /// # Errors
    /// [`StoreError::NoSession`] when there is no such session.
    pub fn store_prompt(&self, session: &str, prompt: Option<&str>) -> Result<(), StoreError> {
        self.write(|_| {
            let hash = prompt.map(|prompt| self.put_prompt(prompt)).transpose()?;
            let sql = "UPDATE sessions SET system_prompt_hash = ?2 WHERE id = ?1";
            if self.execute(sql, params![session, hash])? == 0 {
                return Err(StoreError::NoSession(session.to_owned()));
            }
            self.sweep_prompts()
        })
    }

    /// The system prompt of a session, byte for byte.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn read_prompt(&self, session: &str) -> Result<Option<String>, StoreError> {
        self.one(
            "SELECT prompt FROM system_prompts WHERE hash =
                 (SELECT system_prompt_hash FROM sessions WHERE id = ?1)",
            [session],
            |row| row.get(0),
        )
    }

    /// How many prompts are stored.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn prompt_count(&self) -> Result<u64, StoreError> {
        let count = self.one("SELECT count(*) FROM system_prompts", [], |row| row.get::<_, i64>(0))?;
        Ok(count.map_or(0, i64::unsigned_abs))
    }
}

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

    /// Removes a prompt that a session has given up, unless another refers to it.
    pub(super) fn release_prompt(&self, hash: &str) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM system_prompts WHERE hash = ?1
                 AND NOT EXISTS (SELECT 1 FROM sessions WHERE system_prompt_hash = ?1)",
            [hash],
        )?;
        Ok(())
    }

    /// Sets or clears the system prompt of a session.
    ///
    /// # Errors
    /// [`StoreError::NoSession`] when there is no such session.
    pub fn store_prompt(&self, session: &str, prompt: Option<&str>) -> Result<(), StoreError> {
        self.write(|_| {
            let held = "SELECT system_prompt_hash FROM sessions WHERE id = ?1";
            let Some(before) = self.one(held, [session], |row| row.get::<_, Option<String>>(0))? else {
                return Err(StoreError::NoSession(session.to_owned()));
            };
            let hash = prompt.map(|prompt| self.put_prompt(prompt)).transpose()?;
            if before == hash {
                return Ok(());
            }
            let sql = "UPDATE sessions SET system_prompt_hash = ?2 WHERE id = ?1";
            self.execute(sql, params![session, hash])?;
            before.map_or(Ok(()), |before| self.release_prompt(&before))
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

#[cfg(test)]
mod tests {
    use crate::policy;
    use crate::store::{NewSession, Store};

    #[test]
    fn a_prompt_stays_as_long_as_a_session_refers_to_it() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        let with = |id, prompt| NewSession { system_prompt: Some(prompt), ..NewSession::of(id, "cli") };
        store.create_session(&with("a", "one"), 0).unwrap();
        store.create_session(&with("b", "one"), 0).unwrap();
        // A session that is there keeps the prompt that it has.
        store.create_session(&with("b", "two"), 0).unwrap();
        assert_eq!((store.prompt_count().unwrap(), store.read_prompt("b").unwrap()), (1, Some("one".into())));
        store.store_prompt("a", Some("three")).unwrap();
        assert_eq!(store.prompt_count().unwrap(), 2);
        store.store_prompt("b", None).unwrap();
        assert_eq!((store.prompt_count().unwrap(), store.read_prompt("b").unwrap()), (1, None));
        store.store_prompt("a", Some("three")).unwrap();
        assert_eq!(store.read_prompt("a").unwrap(), Some("three".into()));
        assert!(store.store_prompt("c", Some("four")).is_err());
        assert_eq!(store.prompt_count().unwrap(), 1);
    }
}

//! Lists of sessions for people.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::lineage::is_reset_child;
use super::record::{COLUMNS, Flags};
use super::{Session, Store, StoreError, StoredRow, whole};

impl Store {
    /// Sessions that people may see, latest stamp or start first: not put away, not hidden, no delegate's, none of these
    /// sources (`Hermes hermes_state_sessions.py:1193`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn latest_sessions(&self, most: u64, without: &[String]) -> Result<Vec<String>, StoreError> {
        let marks = vec!["?"; without.len()].join(", ");
        let sql = format!(
            "SELECT id FROM sessions WHERE archived = 0 AND hidden = 0 AND source NOT IN ({marks})
                 AND json_extract(CASE WHEN json_valid(model_config) THEN model_config ELSE '{{}}' END,
                     '$._delegate_from') IS NULL
             ORDER BY COALESCE(last_activity_at, started_at) DESC, id DESC LIMIT ?"
        );
        let mut values: Vec<Value> = without.iter().map(|source| Value::from(source.clone())).collect();
        values.push(Value::from(whole(most)));
        self.all(&sql, params_from_iter(values), |row| row.get(0))
    }

    /// True for a session that is a conversation of its own to people: it has no parent, or is a branch or fresh start.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn is_listed(&self, session: &Session) -> Result<bool, StoreError> {
        let Some(parent) = session.parent.as_deref() else { return Ok(true) };
        if session.has_mark("_branched_from") || session.has_mark("_reset_from") {
            return Ok(true);
        }
        let Some(parent) = self.session(parent)? else { return Ok(false) };
        let branched =
            parent.ended_by("branched") && parent.ended_at.is_some_and(|ended| session.started_at >= ended);
        Ok(branched || is_reset_child(session, &parent))
    }

    /// The text of the first row of a session that a person wrote.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn first_request(&self, session: &str) -> Result<Option<String>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM messages WHERE session_id = ?1 AND role = 'user'{} ORDER BY id LIMIT 20",
            Flags::Any.sql()
        );
        let rows = self.all(&sql, [session], StoredRow::read)?;
        let mut texts =
            rows.into_iter().map(StoredRow::into_row).filter(|row| self.is_human(row)).map(|row| {
                (self.split)(&row).map_or_else(|| row.content.flat(), |(_, live)| live.content.flat())
            });
        Ok(texts.find(|text| !text.trim().is_empty()))
    }
}

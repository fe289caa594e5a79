//! Appending to a conversation.

use rusqlite::{Connection, params};

use super::{Seconds, Store, StoreError, codec, seconds, whole};
use crate::wire::{Content, Row};
use crate::world::Millis;

impl Store {
    /// Appends rows in one transaction; answers their keys (`Hermes hermes_state_messages.py:389`).
    ///
    /// An append does not look at the compression lock: what arrives during a slow summary survives it.
    ///
    /// # Errors
    /// [`StoreError::SessionClosed`] when a compaction ended the session.
    pub fn append(&self, session: &str, rows: &[Row], now: Millis) -> Result<Vec<i64>, StoreError> {
        self.append_as(session, rows, None, now)
    }

    /// The same for a writer that names the turn lease it holds; an expired one of its own is renewed on the spot.
    ///
    /// # Errors
    /// As [`Store::append`]; [`StoreError::TurnLeaseLost`] when the lease is another's or gone.
    pub fn append_as(
        &self,
        session: &str,
        rows: &[Row],
        holder: Option<&str>,
        now: Millis,
    ) -> Result<Vec<i64>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let now = seconds(now);
        self.write(|_: &Connection| {
            if let Some(holder) = holder {
                self.check_turn_lease(session, holder, now)?;
            }
            // One statement says whether the session is there and open, and counts.
            let counted = "UPDATE sessions SET message_count = message_count + ?2, \
                tool_call_count = tool_call_count + ?3 \
                WHERE id = ?1 AND NOT (end_reason IS 'compression' AND ended_at IS NOT NULL)";
            let calls: usize = rows.iter().map(|row| row.tool_calls.as_ref().map_or(0, Vec::len)).sum();
            if self.execute(counted, params![session, whole(rows.len()), whole(calls)])? == 0 {
                let known = self.one("SELECT 1 FROM sessions WHERE id = ?1", [session], |_| Ok(()))?;
                return Err(match known {
                    Some(()) => StoreError::SessionClosed(session.to_owned()),
                    None => StoreError::NoSession(session.to_owned()),
                });
            }
            self.insert_rows(session, rows, now)
        })
    }

    fn check_turn_lease(&self, session: &str, holder: &str, now: Seconds) -> Result<(), StoreError> {
        let key = self.turn_lease_key(session)?;
        let lease = self.one(
            "SELECT holder, expires_at FROM session_turn_leases WHERE conversation_id = ?1",
            [key.as_str()],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, Seconds>(1)?)),
        )?;
        match lease {
            Some((owner, expires)) if owner == holder => {
                if expires <= now {
                    let sql = "UPDATE session_turn_leases SET expires_at = ?2 WHERE conversation_id = ?1";
                    self.execute(sql, params![key, now + self.knobs.turn_ttl_s as Seconds])?;
                }
                Ok(())
            }
            _ => Err(StoreError::TurnLeaseLost(session.to_owned())),
        }
    }

    /// Records the bytes that were sent for one row, if it is a live user row that still says `content`. True when it
    /// was (`Hermes hermes_state_messages.py:1101`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_api_content(
        &self,
        session: &str,
        row: i64,
        content: &Content,
        sent: &str,
    ) -> Result<bool, StoreError> {
        self.write(|_| {
            let sql = "UPDATE messages SET api_content = ?4 WHERE id = ?2 AND session_id = ?1 \
                AND role = 'user' AND active = 1 AND content IS ?3";
            Ok(self.execute(sql, params![session, row, codec::encode(content), sent])? > 0)
        })
    }

    /// The same for the newest live user row. Only safe when that row is the one that was sent: an older turn may say
    /// the same.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_latest_api_content(
        &self,
        session: &str,
        content: &Content,
        sent: &str,
    ) -> Result<bool, StoreError> {
        self.write(|_| {
            let sql = "UPDATE messages SET api_content = ?3 WHERE id = (SELECT id FROM messages \
                WHERE session_id = ?1 AND role = 'user' AND active = 1 ORDER BY id DESC LIMIT 1) \
                AND content IS ?2";
            Ok(self.execute(sql, params![session, codec::encode(content), sent])? > 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;
    use crate::store::NewSession;
    use crate::wire::ToolCall;

    #[test]
    fn counters_follow_rows_and_calls() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        let call = || ToolCall::new("1", "t", "{}");
        store.append("a", &[Row::user("x"), Row::calls("", vec![call(), call()])], 0).unwrap();
        let session = store.session("a").unwrap().unwrap();
        assert_eq!((session.message_count, session.tool_call_count), (2, 2));
    }

    #[test]
    fn rows_for_a_session_that_is_not_there_are_refused() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        assert!(matches!(store.append("a", &[Row::user("x")], 0), Err(StoreError::NoSession(_))));
        assert_eq!(store.all_rows("a").unwrap(), []);
    }
}

//! Loading a conversation: for the model, and for people.

use std::collections::BTreeMap;

use rusqlite::params_from_iter;
use serde_json::Value;

use super::record::{COLUMNS, Flags};
use super::{Seconds, Store, StoreError, StoredRow, instant};
use crate::wire::Row;
use crate::wire::repair::{Repaired, repair};
use crate::world::Millis;

impl Store {
    /// The live rows of a session as the model sees them, repaired (`Hermes hermes_state_messages.py:1655`). Every row
    /// carries `_db_persisted` and `_row_id`.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn load_for_model(&self, session: &str) -> Result<Repaired, StoreError> {
        let rows = self.live_rows(session)?.into_iter().map(StoredRow::into_row).collect();
        Ok(repair(rows))
    }

    /// The conversation as people see it: every segment that the session continues, with what was summarised away, each
    /// message once.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn load_for_display(&self, session: &str) -> Result<Vec<Row>, StoreError> {
        let lineage = self.resume_lineage(session)?;
        let marks = vec!["?"; lineage.len()].join(", ");
        let rows = self.all(
            &format!(
                "SELECT {COLUMNS} FROM messages WHERE session_id IN ({marks}){} ORDER BY id",
                Flags::Shown.sql()
            ),
            params_from_iter(&lineage),
            StoredRow::read,
        )?;
        let rows = self.once_each(rows).into_iter().map(StoredRow::into_row);
        Ok(self.without_repeats(rows))
    }

    /// The rows of one session as people see them, each message once, in the order of their first copies.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn display_rows(&self, session: &str) -> Result<Vec<StoredRow>, StoreError> {
        Ok(self.once_each(self.stored_rows(session, Flags::Shown)?))
    }

    /// Of all copies of a message the live one stays, else the newest, at the place of the first
    /// (`Hermes hermes_state_messages.py:1184`). `rows` are in the order of their keys.
    fn once_each(&self, rows: Vec<StoredRow>) -> Vec<StoredRow> {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut kept: Vec<StoredRow> = Vec::with_capacity(rows.len());
        for row in rows {
            match places.get(&self.identity(&row)) {
                None => {
                    places.insert(self.identity(&row), kept.len());
                    kept.push(row);
                }
                Some(&at) if (row.active, row.id) > (kept[at].active, kept[at].id) => kept[at] = row,
                Some(_) => {}
            }
        }
        kept
    }

    /// What makes two rows copies of one message: role, text (of a row that carries a handoff its live part), time,
    /// call ids and tool.
    fn identity(&self, row: &StoredRow) -> String {
        let split = if row.role == "user" { (self.split)(&row.clone().into_row()) } else { None };
        let content = split.map_or_else(|| row.content.clone(), |(_, live)| live.content);
        format!(
            "{}\u{1}{content:?}\u{1}{}\u{1}{:?}\u{1}{:?}\u{1}{:?}",
            row.role, row.timestamp, row.tool_call_id, row.tool_calls, row.tool_name
        )
    }

    /// The rows without requests that repeat one which nothing answered yet: a rotation may store a request in the
    /// parent and again in the child, there beside the handoff; then the child's row stays.
    fn without_repeats(&self, rows: impl Iterator<Item = Row>) -> Vec<Row> {
        let mut shown: Vec<Option<Row>> = Vec::new();
        // Requests since the last answer: what they say, their place, and whether they stand beside a handoff.
        let mut open: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        for row in rows {
            let answers = row.is_assistant()
                && (!row.content.is_empty()
                    || row.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()));
            if answers {
                open.clear();
            } else if row.is_user() {
                let (said, beside) = match (self.split)(&row) {
                    Some((_, live)) => (live.content, true),
                    None => (row.content.clone(), false),
                };
                let key = format!("{said:?}");
                match open.get(&key) {
                    Some(&(at, known_beside)) if beside || known_beside || said.text().is_some() => {
                        if !beside {
                            continue;
                        }
                        shown[at] = None;
                    }
                    _ => {}
                }
                if !said.is_empty() {
                    open.insert(key, (shown.len(), beside));
                }
            }
            shown.push(Some(row));
        }
        shown.into_iter().flatten().collect()
    }

    /// How many rows a resume loads: of the whole lineage as people see it, or only the live ones of the session.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn resume_count(&self, session: &str, tip_only: bool) -> Result<u64, StoreError> {
        let (lineage, flags) = if tip_only {
            (vec![session.to_owned()], Flags::Live)
        } else {
            (self.resume_lineage(session)?, Flags::Shown)
        };
        let marks = vec!["?"; lineage.len()].join(", ");
        let sql = format!("SELECT count(*) FROM messages WHERE session_id IN ({marks}){}", flags.sql());
        let count = self.one(&sql, params_from_iter(&lineage), |row| row.get::<_, i64>(0))?;
        Ok(count.map_or(0, i64::unsigned_abs))
    }

    /// When the newest live row of a session was written; `None` when it has none.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn last_written(&self, session: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT max(timestamp) FROM messages WHERE session_id = ?1 AND active = 1";
        let newest = self.one(sql, [session], |row| row.get::<_, Option<Seconds>>(0))?.flatten();
        Ok(newest.map(instant))
    }

    /// Refuses a resume that would load more rows than the knob allows.
    ///
    /// # Errors
    /// [`StoreError::ResumeTooLarge`].
    pub fn check_resume(&self, session: &str, tip_only: bool) -> Result<u64, StoreError> {
        let limit = self.knobs.resume_rows_max;
        let rows = self.resume_count(session, tip_only)?;
        if limit > 0 && rows > limit {
            return Err(StoreError::ResumeTooLarge { rows, limit });
        }
        Ok(rows)
    }

    /// True for a row that a person wrote: no handoff, no bookkeeping of the renderer except a steer.
    pub(super) fn is_human(&self, row: &Row) -> bool {
        let kind = row.extra.get("display_kind").and_then(Value::as_str).unwrap_or_default();
        let handoff = row.extra.get("_compressed_summary").and_then(Value::as_bool).unwrap_or(false);
        row.is_user() && (matches!(kind, "" | "steer") && !handoff || (self.split)(row).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;
    use crate::store::NewSession;

    #[test]
    fn a_resume_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
        let knobs = policy::Store { resume_rows_max: 2, ..policy::Store::default() };
        let store = Store::open_in_memory(&knobs).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.append("a", &[Row::user("1"), Row::assistant("2")], 0).unwrap();
        assert_eq!(store.check_resume("a", true).unwrap(), 2);
        store.append("a", &[Row::user("3")], 0).unwrap();
        assert!(matches!(
            store.check_resume("a", false),
            Err(StoreError::ResumeTooLarge { rows: 3, limit: 2 })
        ));
    }
}

//! Taking back turns: the rows stay on disk, hidden from model, people and searches.

use rusqlite::params;
use serde_json::Value;

use super::{Seconds, Store, StoreError, seconds};
use crate::wire::Row;
use crate::world::Millis;

/// What a rewind did.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewound {
    /// Rows that were taken back.
    pub rows: usize,
    /// Human turns that were undone.
    pub turns: usize,
    /// The request that was taken back, for the prompt line.
    pub request: Row,
    /// The history that is left: the caller's own view where one was given, else the stored one.
    pub prefix: Vec<Row>,
}

impl Store {
    /// Takes back a human turn and all behind it. `turn` counts human turns of the repaired live history: 0 is the
    /// oldest, −1 the newest, anything below the oldest is the oldest (`Hermes hermes_state_rewind.py:45`).
    ///
    /// # Errors
    /// [`StoreError::TargetUnavailable`] when there is no such turn, [`StoreError::HistoryChanged`] when the caller's
    /// view has other turns or another text there, [`StoreError::TurnLeaseLost`] and
    /// [`StoreError::CompressionInProgress`] while another works on the session.
    pub fn rewind(
        &self,
        session: &str,
        turn: i64,
        own_view: Option<&[Row]>,
        now: Millis,
    ) -> Result<Rewound, StoreError> {
        let at = seconds(now);
        self.write(|_| {
            self.check_undisturbed(session, at)?;
            let history = self.load_for_model(session)?.rows;
            let turns = self.human_turns(&history);
            let newest = i64::try_from(turns.len()).unwrap_or(i64::MAX);
            let ordinal = if turn < 0 { (newest + turn).max(0) } else { turn };
            let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX);
            let target = *turns.get(ordinal).ok_or(StoreError::TargetUnavailable)?;
            let split = (self.split)(&history[target]);
            let (handoff, request) = match split {
                Some((handoff, live)) => (Some(handoff), live),
                None => (None, history[target].clone()),
            };
            let mut prefix = history[..target].to_vec();
            if let Some(view) = own_view {
                let own = self.human_turns(view);
                let place = *own.get(ordinal).ok_or(StoreError::HistoryChanged)?;
                let said = (self.split)(&view[place]).map_or_else(|| view[place].clone(), |(_, live)| live);
                if own.len() != turns.len() || plain(&said) != plain(&request) {
                    return Err(StoreError::HistoryChanged);
                }
                prefix = view[..place].to_vec();
            }
            let id = history[target].extra.get("_row_id").and_then(Value::as_i64);
            let id = id.ok_or(StoreError::TargetUnavailable)?;
            let hide = "UPDATE messages SET active = 0 WHERE session_id = ?1 AND id >= ?2 AND active = 1";
            let rows = self.execute(hide, params![session, id])?;
            if let Some(handoff) = handoff {
                let mut kept = handoff.with("display_kind", "hidden");
                kept.extra.shift_remove("_db_persisted");
                let ids = self.insert_rows(session, std::slice::from_ref(&kept), at)?;
                kept.extra.insert("_db_persisted".to_owned(), Value::from(true));
                kept.extra.insert("_row_id".to_owned(), ids.first().copied().into());
                prefix.push(kept);
            }
            self.execute("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?1", [session])?;
            self.recount(session)?;
            Ok(Rewound { rows, turns: turns.len() - ordinal, request, prefix })
        })
    }

    fn human_turns(&self, rows: &[Row]) -> Vec<usize> {
        rows.iter().enumerate().filter(|(_, row)| self.is_human(row)).map(|(index, _)| index).collect()
    }

    /// Refuses while another holds a lease; expired ones are swept, so that a late writer is fenced off too.
    fn check_undisturbed(&self, session: &str, now: Seconds) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM compression_locks WHERE session_id = ?1 AND expires_at <= ?2",
            params![session, now],
        )?;
        if self.one("SELECT 1 FROM compression_locks WHERE session_id = ?1", [session], |_| Ok(()))?.is_some()
        {
            return Err(StoreError::CompressionInProgress(session.to_owned()));
        }
        let key = self.turn_lease_key(session)?;
        self.execute(
            "DELETE FROM session_turn_leases WHERE conversation_id = ?1 AND expires_at <= ?2",
            params![key, now],
        )?;
        let sql = "SELECT 1 FROM session_turn_leases WHERE conversation_id = ?1";
        if self.one(sql, [key.as_str()], |_| Ok(()))?.is_some() {
            return Err(StoreError::TurnLeaseLost(session.to_owned()));
        }
        Ok(())
    }
}

/// Content as the store would answer it, for comparing a row in memory with one on disk.
fn plain(row: &Row) -> Option<Value> {
    match row.content.text() {
        Some(text) => Some(Value::from(super::record::without_context(text))),
        None => row.content.value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;
    use crate::store::NewSession;

    #[test]
    fn a_merged_turn_is_taken_back_from_its_first_row() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.append("a", &[Row::user("1"), Row::user("2"), Row::assistant("3")], 0).unwrap();
        let rewound = store.rewind("a", -1, None, 1).unwrap();
        assert_eq!(
            (rewound.rows, rewound.turns, rewound.request.content.flat()),
            (3, 1, "1\n\n2".to_owned())
        );
    }

    #[test]
    fn a_turn_is_not_taken_back_while_another_holds_a_lease() {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        store.append("a", &[Row::user("1")], 0).unwrap();
        store.lease_turn("a", "x", 1_000, 0).unwrap();
        assert!(matches!(store.rewind("a", -1, None, 500), Err(StoreError::TurnLeaseLost(_))));
        assert_eq!(store.rewind("a", -1, None, 1_000).unwrap().rows, 1);
    }
}

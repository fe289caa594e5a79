//! In-place compaction: the live rows of a session are replaced under the same session id.
//!
//! What was summarised stays on disk, is shown to people and found by searches; what was carried over unchanged is
//! superseded by its copy; what arrived while the summary was made survives it, byte for byte.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rusqlite::params;
use serde_json::{Map, Value};

use super::codec::{self, Cell};
use super::record::{Flags, timestamp_of};
use super::{Seconds, Store, StoreError, StoredRow, seconds};
use crate::wire::{Content, Row};
use crate::world::Millis;

/// One in-place compaction.
#[derive(Debug, Clone, Default)]
pub struct Archival<'a> {
    /// The rows that are live afterwards: summary and carried tail.
    pub rows: &'a [Row],
    /// Highest live key when the compaction began; rows above it arrived meanwhile. Without one everything is archived.
    pub watermark: Option<i64>,
    /// How many of `rows` at their end are unchanged copies.
    pub tail_count: usize,
    /// Copies whose originals are to be found one by one, in place of or beside the tail.
    pub carried: &'a [Row],
    /// Keys of exactly those rows that were summarised; every other live row is cloned.
    pub covered: Option<&'a [i64]>,
    /// The compression lock that the caller holds.
    pub lock_holder: Option<&'a str>,
    /// Settings to merge in the same transaction; null removes a key.
    pub config_patch: Option<&'a Map<String, Value>>,
}

impl Store {
    /// The highest key of a live row; 0 when there is none. Taken when a compaction begins.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn watermark(&self, session: &str) -> Result<i64, StoreError> {
        let sql = "SELECT COALESCE(max(id), 0) FROM messages WHERE session_id = ?1 AND active = 1";
        Ok(self.one(sql, [session], |row| row.get(0))?.unwrap_or(0))
    }

    /// The keys of the live rows that a caller holds, for [`Archival::covered`]; `None` when a row that was loaded
    /// from the store cannot be named without doubt, so that the watermark has to decide.
    ///
    /// # Errors
    /// [`StoreError::Overtaken`] when the newest row that the caller holds is no longer live: another compaction won.
    pub fn name_rows(&self, session: &str, held: &[Row]) -> Result<Option<Vec<i64>>, StoreError> {
        let live: BTreeMap<i64, StoredRow> =
            self.live_rows(session)?.into_iter().map(|row| (row.id, row)).collect();
        let mut names = Vec::new();
        let mut doubt = false;
        for row in held.iter().filter(|row| row.extra.contains_key("_db_persisted")) {
            match row_id(row) {
                Some(id) if live.contains_key(&id) => names.push(id),
                _ => doubt = true,
            }
        }
        let newest = held.iter().filter_map(row_id).max();
        if newest.is_some_and(|newest| !live.contains_key(&newest)) {
            return Err(StoreError::Overtaken(session.to_owned()));
        }
        Ok((!doubt).then_some(names))
    }

    /// Deletes what compactions archived; only a harness that throws history away calls it. Answers how many rows.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn delete_archived(&self, session: &str) -> Result<usize, StoreError> {
        self.write(|_| {
            self.execute(
                "DELETE FROM messages WHERE session_id = ?1 AND active = 0 AND compacted = 1",
                [session],
            )
        })
    }

    /// Archives the live rows of a session and puts others in their place; answers the number of live rows
    /// (`Hermes hermes_state_messages.py:984`).
    ///
    /// # Errors
    /// [`StoreError::CompressionLeaseLost`] when a holder is named that does not hold an unexpired lock,
    /// [`StoreError::NoSession`] when the session is gone; nothing is changed then.
    pub fn archive(&self, session: &str, archival: &Archival<'_>, now: Millis) -> Result<usize, StoreError> {
        let now = seconds(now);
        self.write(|_| {
            if let Some(holder) = archival.lock_holder {
                self.check_lock(session, holder, now)?;
            }
            if self.session(session)?.is_none() {
                return Err(StoreError::NoSession(session.to_owned()));
            }
            if let Some(patch) = archival.config_patch {
                self.patch_config(session, patch)?;
            }
            let live = self.stored_rows(session, Flags::Live)?;
            let late = late_rows(&live, archival);
            let superseded = superseded_rows(&live, &late, archival);
            let rows = with_times(archival.rows, &live, self.knobs.timestamp_max_s);
            let hide = "UPDATE messages SET active = 0, compacted = 0 WHERE id = ?1";
            for id in &superseded {
                self.execute(hide, [id])?;
            }
            self.execute(ARCHIVE_LIVE, [session])?;
            let inserted = self.insert_rows(session, &rows, now)?;
            let cloned = self.clone_rows(session, &late)?;
            self.recount(session)?;
            Ok(inserted.len() + cloned)
        })
    }

    pub(super) fn check_lock(&self, session: &str, holder: &str, now: Seconds) -> Result<(), StoreError> {
        let sql = "SELECT 1 FROM compression_locks WHERE session_id = ?1 AND holder = ?2 AND expires_at > ?3";
        match self.one(sql, params![session, holder, now], |_| Ok(()))? {
            Some(()) => Ok(()),
            None => Err(StoreError::CompressionLeaseLost(session.to_owned())),
        }
    }
}

pub(super) const ARCHIVE_LIVE: &str =
    "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?1 AND active = 1";

fn row_id(row: &Row) -> Option<i64> {
    row.extra.get("_row_id").and_then(Value::as_i64)
}

/// Live rows that the compaction did not see, in order.
fn late_rows(live: &[StoredRow], archival: &Archival<'_>) -> Vec<i64> {
    let ids = live.iter().map(|row| row.id);
    match (archival.covered, archival.watermark) {
        (Some(covered), _) => {
            let covered: BTreeSet<i64> = covered.iter().copied().collect();
            ids.filter(|id| !covered.contains(id)).collect()
        }
        (None, Some(mark)) => ids.filter(|id| *id > mark).collect(),
        (None, None) => Vec::new(),
    }
}

fn superseded_rows(live: &[StoredRow], late: &[i64], archival: &Archival<'_>) -> BTreeSet<i64> {
    let late: BTreeSet<i64> = late.iter().copied().collect();
    let seen = live.iter().rev().map(|row| row.id).filter(|id| !late.contains(id));
    let mut superseded: BTreeSet<i64> = seen.take(archival.tail_count).collect();
    if !archival.carried.is_empty() {
        let originals = Originals::of(live);
        superseded.extend(archival.carried.iter().filter_map(|row| originals.original_of(row)));
    }
    superseded.extend(late);
    superseded
}

/// What two copies of one message have in common, besides its time: role, content cell, calls, call that is answered.
type Saying<'a> = (&'a str, (u8, Cow<'a, str>), Option<Cow<'a, str>>, Option<&'a str>);

/// A content cell as its kind and its text, which can be put in order.
fn cell_of(content: &Content) -> (u8, Cow<'_, str>) {
    match codec::encode(content) {
        Cell::Null => (0, Cow::Borrowed("")),
        Cell::Text(text) => (1, text),
        Cell::Integer(number) => (2, Cow::Owned(number.to_string())),
        Cell::Real(number) => (3, Cow::Owned(number.to_string())),
    }
}

fn saying_of(row: &Row) -> Saying<'_> {
    let calls = codec::encode_calls(row.tool_calls.as_deref()).map(Cow::Owned);
    (row.role.word(), cell_of(&row.content), calls, row.tool_call_id.as_deref())
}

fn saying_of_stored(row: &StoredRow) -> Saying<'_> {
    let calls = row.tool_calls.as_deref().map(Cow::Borrowed);
    (&row.role, cell_of(&row.content), calls, row.tool_call_id.as_deref())
}

/// Live rows by key and by time.
struct Originals<'a> {
    by_id: BTreeMap<i64, &'a StoredRow>,
    by_time: BTreeMap<u64, Vec<&'a StoredRow>>,
}

impl<'a> Originals<'a> {
    fn of(live: &'a [StoredRow]) -> Self {
        let mut by_time: BTreeMap<u64, Vec<&StoredRow>> = BTreeMap::new();
        for row in live {
            by_time.entry(row.timestamp.to_bits()).or_default().push(row);
        }
        Self { by_id: live.iter().map(|row| (row.id, row)).collect(), by_time }
    }

    /// The row that a carried row is a copy of: by its key if it still says the same, else the only one that says the
    /// same at the same time.
    fn original_of(&self, carried: &Row) -> Option<i64> {
        let saying = saying_of(carried);
        // A loaded row is trimmed; its original need not be.
        let says_the_same =
            |row: &StoredRow| saying_of_stored(row) == saying || saying_of(&row.clone().into_row()) == saying;
        if let Some(row) = row_id(carried).and_then(|id| self.by_id.get(&id)).filter(|row| says_the_same(row))
        {
            return Some(row.id);
        }
        let at = carried.extra.get("timestamp").and_then(Value::as_f64)?;
        let mut twins = self.by_time.get(&at.to_bits())?.iter().filter(|row| says_the_same(row));
        let first = twins.next()?;
        twins.next().is_none().then_some(first.id)
    }
}

/// New rows without a time take that of a live row that says the same, first come first served: the display view then
/// knows both as one message.
pub(super) fn with_times(rows: &[Row], live: &[StoredRow], max: u64) -> Vec<Row> {
    let mut times: BTreeMap<Saying<'_>, VecDeque<Seconds>> = BTreeMap::new();
    if rows.iter().any(|row| timestamp_of(row, max).is_none()) {
        for row in live {
            times.entry(saying_of_stored(row)).or_default().push_back(row.timestamp);
        }
    }
    rows.iter()
        .map(|row| {
            let timed = timestamp_of(row, max).is_some();
            let twins = if timed { None } else { times.get_mut(&saying_of(row)) };
            match twins.and_then(VecDeque::pop_front) {
                Some(at) => row.clone().with("timestamp", at),
                None => row.clone(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;
    use crate::store::NewSession;

    fn store_with(texts: &[&str]) -> Store {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        for text in texts {
            store.append("a", &[Row::user(*text)], 1_000).unwrap();
        }
        store
    }

    fn live(store: &Store) -> Vec<String> {
        store.live_rows("a").unwrap().into_iter().map(|row| row.content.flat()).collect()
    }

    #[test]
    fn exactly_the_covered_rows_are_summarised_even_below_the_watermark() {
        let store = store_with(&["1", "2", "3"]);
        let rows = [Row::user("sum")];
        let archival =
            Archival { rows: &rows, covered: Some(&[1, 3]), watermark: Some(3), ..Archival::default() };
        assert_eq!(store.archive("a", &archival, 2_000).unwrap(), 2);
        assert_eq!(live(&store), ["sum", "2"]);
    }

    #[test]
    fn a_holder_of_rows_that_another_compaction_took_must_give_up() {
        let store = store_with(&["1", "2"]);
        let held = store.load_for_model("a").unwrap().rows;
        assert_eq!(store.name_rows("a", &held).unwrap().map(|names| names.len()), Some(1));
        let rows = [Row::user("sum")];
        store.archive("a", &Archival { rows: &rows, ..Archival::default() }, 2_000).unwrap();
        assert!(matches!(store.name_rows("a", &held), Err(StoreError::Overtaken(_))));
    }
}

//! Rotation, the older way to compact: the session is closed and a child goes on with the handoff.

use rusqlite::params;

use super::archive::with_times;
use super::lifecycle::{COMPRESSION, is_automatic};
use super::record::Flags;
use super::{NewSession, Store, StoreError, seconds};
use crate::wire::Row;
use crate::world::Millis;

/// One rotation.
#[derive(Debug, Clone, Default)]
pub struct Rotation<'a> {
    /// The session that is closed.
    pub parent: &'a str,
    /// The session that goes on; id, source, model, settings and prompt are taken from here.
    pub child: NewSession<'a>,
    /// First rows of the child.
    pub handoff: &'a [Row],
    /// The compression lock that the caller holds.
    pub lock_holder: Option<&'a str>,
    /// False lets a caller rotate without a lock.
    pub require_lease: bool,
    /// Extend the lock in the same transaction before it is looked at.
    pub refresh_lease: bool,
    /// Highest live key of the parent when the compaction began; later rows are cloned into the child.
    pub watermark: Option<i64>,
    /// Highest key that is cloned; above are rows that the handoff holds already.
    pub ceiling: Option<i64>,
}

impl Store {
    /// Closes the parent and publishes its child, in one transaction (`Hermes hermes_state_compression.py:274`).
    ///
    /// Rows of the parent stay live in the parent. A parent that some automatic clean-up ended counts as not ended.
    ///
    /// # Errors
    /// [`StoreError::CompressionLeaseLost`], [`StoreError::NoSession`] for a missing parent,
    /// [`StoreError::AlreadyEnded`], [`StoreError::EmptyHandoff`]; the parent is untouched then.
    pub fn rotate(&self, rotation: &Rotation<'_>, now: Millis) -> Result<(), StoreError> {
        let parent_id = rotation.parent;
        self.write(|_| {
            self.check_rotation(rotation, now)?;
            let parent =
                self.session(parent_id)?.ok_or_else(|| StoreError::NoSession(parent_id.to_owned()))?;
            if parent.ended_at.is_some() {
                if !parent.end_reason.as_deref().is_some_and(is_automatic) {
                    return Err(StoreError::AlreadyEnded(parent_id.to_owned()));
                }
                self.clear_end(parent_id)?;
            }
            if rotation.handoff.is_empty() {
                return Err(StoreError::EmptyHandoff);
            }
            let live = self.stored_rows(parent_id, Flags::Live)?;
            let child = rotation.child.clone().child_of(parent_id);
            self.create_session(&child, now)?;
            self.execute(
                "UPDATE sessions SET session_key = p.session_key, chat_id = p.chat_id, thread_id = p.thread_id,
                     user_id = p.user_id, tool_names = COALESCE(p.tool_names, sessions.tool_names),
                     cwd = COALESCE(sessions.cwd, p.cwd), pinned = p.pinned, archived = p.archived,
                     auto_archived = p.auto_archived
                 FROM sessions AS p WHERE sessions.id = ?1 AND p.id = ?2",
                [child.id, parent_id],
            )?;
            let handoff = with_times(rotation.handoff, &live, self.knobs.timestamp_max_s);
            self.insert_rows(child.id, &handoff, seconds(now))?;
            if let Some(mark) = rotation.watermark {
                let ceiling = rotation.ceiling.unwrap_or(i64::MAX);
                let ids = live.iter().map(|row| row.id);
                let late: Vec<i64> = ids.filter(|id| *id > mark && *id <= ceiling).collect();
                self.clone_rows(child.id, &late)?;
            }
            self.recount(child.id)?;
            let end = "UPDATE sessions SET ended_at = ?2, end_reason = ?3 WHERE id = ?1";
            self.execute(end, params![parent_id, seconds(now), COMPRESSION]).map(|_| ())
        })
    }

    fn check_rotation(&self, rotation: &Rotation<'_>, now: Millis) -> Result<(), StoreError> {
        let lost = || StoreError::CompressionLeaseLost(rotation.parent.to_owned());
        if let Some(holder) = rotation.lock_holder.filter(|_| rotation.refresh_lease) {
            let expires = seconds(now) + self.knobs.lock_ttl_s as f64;
            let sql = "UPDATE compression_locks SET expires_at = ?3 WHERE session_id = ?1 AND holder = ?2";
            self.execute(sql, params![rotation.parent, holder, expires])?;
        }
        if rotation.require_lease {
            let holder = rotation.lock_holder.ok_or_else(lost)?;
            self.check_lock(rotation.parent, holder, seconds(now))?;
        }
        Ok(())
    }
}

//! What of a compressor outlives its process: pauses, strikes and streaks, kept with the session.
//!
//! Written by whoever compacts, read when a session is opened again.

use rusqlite::params;
use serde_json::{Map, Value};

use super::{Seconds, Store, StoreError};

/// Key of the session's settings under which the mark of the proactive prune stands (Hermes
/// agent/context_compressor.py:324).
const RUNWAY: &str = "_proactive_prune_rearm_tokens";
/// The same for the next try of a benched summary model (Hermes agent/context_compressor_prellm.py:17).
const PROBE: &str = "_fallback_probe_at";

/// The part of a compressor's state that a session keeps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompressorNotes {
    /// End of the pause after a failed summary.
    pub cooldown_until: Option<Seconds>,
    /// What the failed summary said.
    pub error: Option<String>,
    /// Summaries by rule in a row.
    pub fallback_streak: i64,
    /// Compactions in a row that did not help.
    pub strikes: i64,
    /// End of the breaker's window.
    pub recovery_deadline: Option<Seconds>,
    /// Overloads in a row.
    pub overload_streak: i64,
    /// Size at which the next proactive prune may run, in the run's unit; 0 for any.
    pub prune_runway: u64,
    /// Next try of a benched summary model.
    pub probe_at: Option<Seconds>,
}

impl Store {
    /// What a session keeps of its compressor; nothing of a session that is not there.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn compressor_notes(&self, id: &str) -> Result<CompressorNotes, StoreError> {
        let Some(session) = self.session(id)? else { return Ok(CompressorNotes::default()) };
        let notes = self.one(
            "SELECT compression_failure_cooldown_until, compression_failure_error, compression_fallback_streak,
                 compression_ineffective_count, compression_recovery_deadline, compression_overload_streak
             FROM sessions WHERE id = ?1",
            [id],
            |row| {
                Ok(CompressorNotes {
                    cooldown_until: row.get(0)?,
                    error: row.get(1)?,
                    fallback_streak: row.get(2)?,
                    strikes: row.get(3)?,
                    recovery_deadline: row.get(4)?,
                    overload_streak: row.get(5)?,
                    prune_runway: session.model_config.get(RUNWAY).and_then(Value::as_u64).unwrap_or(0),
                    probe_at: session.model_config.get(PROBE).and_then(Value::as_f64),
                })
            },
        )?;
        Ok(notes.unwrap_or_default())
    }

    /// Keeps them.
    ///
    /// # Errors
    /// [`StoreError::NoSession`].
    pub fn keep_compressor_notes(&self, id: &str, notes: &CompressorNotes) -> Result<(), StoreError> {
        let runway = Some(notes.prune_runway).filter(|runway| *runway > 0).map_or(Value::Null, Value::from);
        let probe = notes.probe_at.map_or(Value::Null, Value::from);
        let settings = Map::from_iter([(RUNWAY.to_owned(), runway), (PROBE.to_owned(), probe)]);
        self.write(|_| {
            self.patch_config(id, &settings)?;
            self.execute(
                "UPDATE sessions SET compression_failure_cooldown_until = ?2, compression_failure_error = ?3,
                     compression_fallback_streak = ?4, compression_ineffective_count = ?5,
                     compression_recovery_deadline = ?6, compression_overload_streak = ?7
                 WHERE id = ?1",
                params![
                    id,
                    notes.cooldown_until,
                    notes.error,
                    notes.fallback_streak,
                    notes.strikes,
                    notes.recovery_deadline,
                    notes.overload_streak,
                ],
            )?;
            Ok(())
        })
    }
}

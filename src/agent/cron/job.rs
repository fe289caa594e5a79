//! One job as it is stored: a record whose unknown fields survive.
//!
//! People and older releases edit the file, so every field may be missing or of another type. Reading is tolerant;
//! what cannot be read counts as absent.

use serde_json::{Map, Value, json};

use super::moment::Moment;
use super::schedule::Schedule;
use crate::world::{Millis, clock::SECOND};

/// A job record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// Every field, in stored order.
    pub fields: Map<String, Value>,
}

impl Job {
    /// A field as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    /// Sets a field.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.fields.insert(key.to_owned(), value.into());
    }

    /// Sets a field to nothing, if the record has it.
    pub fn clear(&mut self, key: &str) {
        if let Some(value) = self.fields.get_mut(key) {
            *value = Value::Null;
        }
    }

    /// The immutable name; empty when there is none.
    pub fn id(&self) -> &str {
        self.text("id").unwrap_or_default()
    }

    /// The schedule, if it can be used.
    pub fn schedule(&self) -> Option<Schedule> {
        Schedule::read(self.fields.get("schedule")?)
    }

    /// The kind that the schedule names, usable or not.
    pub fn kind(&self) -> Option<&str> {
        self.fields.get("schedule")?.get("kind")?.as_str()
    }

    /// True for intervals and cron expressions.
    pub fn is_recurring(&self) -> bool {
        matches!(self.kind(), Some("interval" | "cron"))
    }

    /// True for one-shots.
    pub fn is_once(&self) -> bool {
        self.kind() == Some("once")
    }

    /// The stored instant of a field.
    pub fn moment(&self, key: &str) -> Option<Moment> {
        Moment::parse(self.text(key)?)
    }

    /// The flag that switches the job on; on when it is missing.
    pub fn is_enabled(&self) -> bool {
        match self.fields.get("enabled") {
            None | Some(Value::Bool(true) | Value::Array(_) | Value::Object(_)) => true,
            Some(Value::Bool(false) | Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        }
    }

    /// True when the record is marked as paused.
    pub fn is_pause_marked(&self) -> bool {
        self.text("state") == Some("paused") || self.fields.get("paused_at").is_some_and(|at| !at.is_null())
    }

    /// True when the job may run (Hermes cron/jobs.py:531).
    pub fn is_runnable(&self) -> bool {
        self.is_enabled() && !self.is_pause_marked()
    }

    /// True when the job is over.
    pub fn is_terminal(&self) -> bool {
        matches!(self.text("state"), Some("completed" | "error"))
    }

    /// True for an error that the next scan mends: the schedule goes on.
    pub fn is_recoverable_error(&self) -> bool {
        self.text("state") == Some("error") && self.is_recurring()
    }

    /// True when nothing brings the job back by itself.
    pub fn is_over(&self) -> bool {
        self.is_terminal() && !self.is_recoverable_error()
    }

    /// The state that people are shown.
    pub fn shown_state(&self) -> &str {
        let state = self.text("state").filter(|state| !state.is_empty());
        match state {
            Some(state @ ("completed" | "error")) => state,
            _ if self.is_enabled() => state.filter(|state| *state != "paused").unwrap_or("scheduled"),
            _ if self.is_pause_marked() => "paused",
            state => state.unwrap_or("paused"),
        }
    }

    /// Most runs; `None` without limit.
    pub fn times(&self) -> Option<i64> {
        self.fields.get("repeat")?.get("times")?.as_i64().filter(|times| *times > 0)
    }

    /// Runs counted so far.
    pub fn completed(&self) -> i64 {
        self.fields
            .get("repeat")
            .and_then(|repeat| repeat.get("completed"))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    /// Sets limit and count.
    pub fn set_repeat(&mut self, times: Option<i64>, completed: i64) {
        self.set("repeat", json!({ "times": times, "completed": completed }));
    }

    /// True when every run that is allowed was counted.
    pub fn is_spent(&self) -> bool {
        self.times().is_some_and(|times| self.completed() >= times)
    }

    /// A claim's owner and instant; `None` when it is missing or malformed.
    pub fn claim(&self, key: &str) -> Option<(&str, Moment)> {
        let claim = self.fields.get(key)?;
        Some((claim.get("by")?.as_str()?, Moment::parse(claim.get("at")?.as_str()?)?))
    }

    /// True when a claim is younger than `ttl_seconds`; one from the future is not.
    pub fn has_live_claim(&self, key: &str, now: Millis, ttl_seconds: i64) -> bool {
        self.claim(key).is_some_and(|(_, at)| {
            let age = now.saturating_sub(at.millis());
            age >= 0 && age < ttl_seconds.saturating_mul(SECOND)
        })
    }

    /// A manual run: due because a person said so, not because of the schedule.
    pub fn is_manual_run(&self) -> bool {
        self.text("manual_run_at").is_some_and(|manual| Some(manual) == self.text("next_run_at"))
    }

    /// Ends the job; the record stays.
    pub fn complete(&mut self) {
        self.set("state", "completed");
        self.set("enabled", false);
        self.set("next_run_at", Value::Null);
    }

    /// Brings a paused or failed job back.
    pub fn enable(&mut self) {
        self.set("enabled", true);
        self.set("state", "scheduled");
        self.clear("paused_at");
        self.clear("paused_reason");
    }
}

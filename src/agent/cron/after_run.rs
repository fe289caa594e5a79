//! What a run leaves behind: status, streak, count, and when the job runs next.
//!
//! Two kinds of failure are not the job's fault and move it: a model that could not be reached, and a provider that
//! named a wait.

use serde_json::{Value, json};

use super::expression::Expression;
use super::job::Job;
use super::moment::{self, Moment};
use super::next_run::{occurrence, period_seconds};
use super::schedule::Schedule;
use super::{CronError, Scheduler, store};
use crate::world::{Files, Millis, clock::SECOND};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The agent or script did its work.
    pub success: bool,
    /// Why it did not.
    pub error: Option<String>,
    /// Why the text did not reach its reader.
    pub delivery_error: Option<String>,
    /// A status of its own, in place of `ok` and `error`.
    pub status: Option<String>,
    /// It failed on the network before the model was called once.
    pub model_unreachable: bool,
    /// It was a retry after such a failure.
    pub is_retry: bool,
    /// Seconds that the provider asked to wait.
    pub quota_wait_seconds: Option<u64>,
    /// Only if this holder owns the claim.
    pub holder: Option<String>,
}

impl Scheduler {
    /// Records a run (Hermes cron/jobs.py:2362); false when the job is gone or somebody else's claim has taken over.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn mark(
        &mut self,
        files: &mut dyn Files,
        id: &str,
        outcome: &Outcome,
        now: Millis,
    ) -> Result<bool, CronError> {
        let mut finished = None;
        let marked = store::change(files, |jobs| {
            let Some(job) = jobs.iter_mut().find(|job| job.id() == id) else { return false };
            if let Some(holder) = &outcome.holder
                && job.claim("fire_claim").map(|(by, _)| by) != Some(holder)
            {
                return false;
            }
            let slot = job.fields.get("fire_claim").and_then(|claim| claim.get("slot"));
            finished = slot.and_then(Value::as_str).and_then(Moment::parse);
            self.record(job, outcome, now);
            true
        })?;
        if let Some(slot) = finished {
            self.record_finished(id, slot.millis());
        }
        Ok(marked)
    }

    fn record(&self, job: &mut Job, outcome: &Outcome, now: Millis) {
        let undelivered = outcome.delivery_error.as_deref().is_some_and(|error| !error.trim().is_empty());
        let status = match &outcome.status {
            Some(status) => status.as_str(),
            None if !outcome.success => "error",
            None if undelivered => "delivery_failed",
            None => "ok",
        };
        let at = self.show(now);
        let error = if outcome.success { None } else { outcome.error.as_deref().or(Some("unknown error")) };
        let streak = if outcome.success {
            0
        } else {
            job.fields.get("failure_streak").and_then(Value::as_u64).unwrap_or(0).saturating_add(1)
        };
        job.set("last_run_at", at.as_str());
        job.set("last_status", status);
        job.set("last_error", json!(error));
        job.set("last_delivery_error", json!(outcome.delivery_error));
        job.set("failure_streak", streak);
        if let Some(error) = error {
            job.set("last_failure", json!({ "at": at, "error": error }));
        }
        let was_manual = job.fields.get("manual_run_at").is_some_and(|manual| !manual.is_null());
        let was_recovery = job.fields.get("quota_hold_until").is_some_and(|until| !until.is_null());
        for key in [
            "fire_claim",
            "run_claim",
            "pending_slot",
            "manual_run_at",
            "manual_run_prompt",
            "quota_hold_until",
        ] {
            job.clear(key);
        }
        // A one-shot was counted before it ran; a retry belongs to the run that was counted.
        let counted = outcome.is_retry || (job.is_once() && job.times().is_some());
        if !counted {
            job.set_repeat(job.times(), job.completed() + 1);
        }
        if job.is_spent() {
            job.clear("unreachable_retry");
            job.complete();
            return;
        }
        self.plan(job, outcome, was_manual || was_recovery, now);
    }

    /// Decides when the job runs next.
    fn plan(&self, job: &mut Job, outcome: &Outcome, out_of_turn: bool, now: Millis) {
        let attempt = job
            .fields
            .get("unreachable_retry")
            .and_then(|retry| retry.get("attempt"))
            .and_then(Value::as_u64)
            .unwrap_or(0);
        job.clear("unreachable_retry");
        let last = job.is_once().then(|| self.show(now));
        let natural = job.schedule().and_then(|schedule| {
            super::next_run(&schedule, now, &self.zone, last.as_deref(), &self.knobs).ok().flatten()
        });
        let Some(natural) = natural else {
            if job.is_recurring() {
                job.set("state", "error");
                job.set("next_run_at", Value::Null);
                if job.fields.get("last_error").is_none_or(Value::is_null) {
                    job.set("last_error", "the schedule has no next run");
                }
            } else {
                job.complete();
            }
            return;
        };
        let mut next = natural;
        if job.is_recurring() {
            if let Some(retry) = self.retry(outcome, attempt, natural, now) {
                next = retry;
                job.set(
                    "unreachable_retry",
                    json!({ "attempt": attempt + 1, "retry_at": retry.to_string() }),
                );
            } else if let Some(held) = self.hold(job, outcome, natural, out_of_turn, now) {
                next = held;
                job.set("quota_hold_until", held.to_string());
            }
        }
        job.set("next_run_at", next.to_string());
        if job.is_runnable() {
            job.set("state", "scheduled");
        }
    }

    /// The next try after a model that could not be reached, if it comes before the natural run.
    fn retry(&self, outcome: &Outcome, attempt: u64, natural: Moment, now: Millis) -> Option<Moment> {
        if outcome.success || !outcome.model_unreachable || !self.knobs.retry_unreachable {
            return None;
        }
        let delays = &self.knobs.retry_delays_seconds;
        let delay = delays.get(usize::try_from(attempt).ok()?)?;
        let at = now.saturating_add(delay.cast_signed().saturating_mul(SECOND));
        (natural.millis() > at).then(|| Moment::at(at, &self.zone))
    }

    /// Where a provider's wait moves the job, if it does.
    fn hold(
        &self,
        job: &Job,
        outcome: &Outcome,
        natural: Moment,
        out_of_turn: bool,
        now: Millis,
    ) -> Option<Moment> {
        let wait = outcome.quota_wait_seconds?.saturating_add(self.knobs.quota_margin_seconds);
        let until = now.saturating_add(wait.cast_signed().saturating_mul(SECOND));
        let schedule = job.schedule()?;
        let Schedule::Cron { expr } = &schedule else {
            return (natural.millis() < until).then(|| Moment::at(until, &self.zone));
        };
        if natural.millis() < until {
            let expression = Expression::parse(expr).ok()?;
            return occurrence(&expression, moment::timestamp(until), &self.zone).ok();
        }
        let period = period_seconds(&schedule, now, &self.zone)?.saturating_mul(SECOND);
        let sparse = natural.millis().saturating_sub(until) >= period / 2;
        (sparse && !out_of_turn).then(|| Moment::at(until, &self.zone))
    }
}

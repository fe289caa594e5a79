//! What people do to a job: pause, resume, trigger, remove, arm again, change.
//!
//! Every edit drops a slot that was handed out and not claimed: it belongs to the job as it was.

use serde_json::{Map, Value};

use super::duration::parse_repeat;
use super::job::Job;
use super::moment::Moment;
use super::schedule::Schedule;
use super::{CronError, Scheduler, next_run, store};
use crate::world::{Files, Millis, clock::SECOND};

/// New values of a job's fields, as the configuration writes them.
pub type Changes = Map<String, Value>;

/// Fields that no change reaches.
const FIXED: [&str; 3] = ["id", "schedule", "repeat"];

impl Scheduler {
    /// Stops a job from running until it is resumed.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn pause(
        &self,
        files: &mut dyn Files,
        wanted: &str,
        reason: Option<&str>,
        now: Millis,
    ) -> Result<bool, CronError> {
        edit(files, wanted, |job| {
            job.set("enabled", false);
            job.set("state", "paused");
            job.set("paused_at", self.show(now));
            if let Some(reason) = reason {
                job.set("paused_reason", reason);
            }
            Ok(())
        })
    }

    /// Lets a paused job run again. A slot that passed meanwhile stays due; a future one is computed anew.
    ///
    /// # Errors
    /// [`CronError::OneShotPast`] for a one-shot beyond its grace; as the schedule; as the store.
    pub fn resume(&self, files: &mut dyn Files, wanted: &str, now: Millis) -> Result<bool, CronError> {
        edit(files, wanted, |job| {
            if job.is_once() {
                let due = job.moment("next_run_at").or_else(|| match job.schedule() {
                    Some(Schedule::Once { run_at }) => Some(run_at),
                    _ => None,
                });
                if due.is_none_or(|due| self.is_past(due, now)) {
                    return Err(CronError::OneShotPast);
                }
                if let Some(due) = due {
                    job.set("next_run_at", due.to_string());
                }
            } else if job.moment("next_run_at").is_none_or(|next| next.millis() > now)
                && let Some(schedule) = job.schedule()
                && let Some(next) = next_run(&schedule, now, &self.zone, None, &self.knobs)?
            {
                job.set("next_run_at", next.to_string());
            }
            job.enable();
            Ok(())
        })
    }

    /// Makes a job due now.
    ///
    /// # Errors
    /// [`CronError::Terminal`] when it is over; as the store.
    pub fn trigger(&self, files: &mut dyn Files, wanted: &str, now: Millis) -> Result<bool, CronError> {
        edit(files, wanted, |job| {
            if job.is_over() {
                return Err(CronError::Terminal);
            }
            job.enable();
            job.set("next_run_at", self.show(now));
            job.set("manual_run_at", self.show(now));
            Ok(())
        })
    }

    /// Removes a job; false when there is none.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn remove(&self, files: &mut dyn Files, wanted: &str) -> Result<bool, CronError> {
        store::change(files, |jobs| {
            let Some(at) = find(jobs, wanted) else { return false };
            jobs.remove(at);
            true
        })
    }

    /// Arms a one-shot for another time; its count starts anew.
    ///
    /// # Errors
    /// [`CronError::RearmRecurring`], [`CronError::LiveClaim`], [`CronError::OneShotPast`],
    /// [`CronError::Timestamp`]; as the store.
    pub fn rearm(
        &self,
        files: &mut dyn Files,
        wanted: &str,
        run_at: &str,
        now: Millis,
    ) -> Result<bool, CronError> {
        edit(files, wanted, |job| {
            if !job.is_once() {
                return Err(CronError::RearmRecurring);
            }
            let fired = job.has_live_claim("fire_claim", now, self.knobs.fire_claim_seconds.cast_signed());
            if fired || job.has_live_claim("run_claim", now, self.run_claim_seconds()) {
                return Err(CronError::LiveClaim);
            }
            let run_at = Moment::parse(run_at.trim()).ok_or(CronError::Timestamp)?.or_in(&self.zone);
            if self.is_past(run_at, now) {
                return Err(CronError::OneShotPast);
            }
            job.set("schedule", Schedule::Once { run_at }.to_value());
            job.set_repeat(Some(job.times().unwrap_or(1)), 0);
            job.set("next_run_at", run_at.to_string());
            for key in ["run_claim", "fire_claim", "manual_run_at"] {
                job.clear(key);
            }
            job.enable();
            Ok(())
        })
    }

    /// Changes fields. A new schedule computes the next run, unless the job is paused, and sets or lifts the limit of
    /// runs when its kind changes.
    ///
    /// # Errors
    /// As [`Scheduler::create`] for the fields that are given.
    pub fn update(
        &self,
        files: &mut dyn Files,
        wanted: &str,
        changes: &Changes,
        now: Millis,
    ) -> Result<bool, CronError> {
        edit(files, wanted, |job| {
            for (key, value) in changes.iter().filter(|(key, _)| !FIXED.contains(&key.as_str())) {
                job.set(key, value.clone());
            }
            if changes.keys().any(|key| matches!(key.as_str(), "prompt" | "script" | "skills" | "no_agent")) {
                let skills: Vec<String> = names(job.fields.get("skills"));
                let script = job.text("script").map(str::trim).filter(|script| !script.is_empty());
                let no_agent = job.fields.get("no_agent").and_then(Value::as_bool).unwrap_or(false);
                let prompt = job.text("prompt").unwrap_or_default().trim();
                self.check_payload(prompt, script, &skills, no_agent)?;
            }
            if let Some(text) = changes.get("schedule").and_then(Value::as_str) {
                self.reschedule(job, text, now)?;
            }
            if let Some(repeat) = changes.get("repeat") {
                job.set_repeat(parse_repeat(repeat)?, job.completed());
            }
            Ok(())
        })
    }

    fn reschedule(&self, job: &mut Job, text: &str, now: Millis) -> Result<(), CronError> {
        let schedule = Schedule::parse(text, now, &self.zone)?;
        if self.knobs.refuse_zero_interval && schedule == (Schedule::Interval { minutes: 0 }) {
            return Err(CronError::ZeroInterval);
        }
        let next = next_run(&schedule, now, &self.zone, None, &self.knobs)?;
        let once = matches!(schedule, Schedule::Once { .. });
        if once && next.is_none() {
            return Err(CronError::OneShotPast);
        }
        if once != job.is_once() {
            job.set_repeat(once.then_some(1), 0);
        }
        job.set("schedule", schedule.to_value());
        for key in ["quota_hold_until", "unreachable_retry", "manual_run_at"] {
            job.clear(key);
        }
        if job.is_runnable() {
            job.set("state", "scheduled");
            job.set("next_run_at", next.map_or(Value::Null, |next| Value::from(next.to_string())));
        }
        Ok(())
    }

    fn is_past(&self, run_at: Moment, now: Millis) -> bool {
        let grace = self.knobs.one_shot_grace_seconds.cast_signed().saturating_mul(SECOND);
        now.saturating_sub(run_at.millis()) > grace
    }
}

/// Applies an edit to the job of that id, or else of that name in any case; false when there is none.
fn edit(
    files: &mut dyn Files,
    wanted: &str,
    change: impl FnOnce(&mut Job) -> Result<(), CronError>,
) -> Result<bool, CronError> {
    store::change(files, |jobs| {
        let Some(at) = find(jobs, wanted) else { return Ok(false) };
        let before = jobs[at].clone();
        let changed = change(&mut jobs[at]);
        match changed {
            Ok(()) => {
                jobs[at].clear("pending_slot");
                Ok(true)
            }
            Err(error) => {
                jobs[at] = before;
                Err(error)
            }
        }
    })?
}

fn find(jobs: &[Job], wanted: &str) -> Option<usize> {
    let lower = wanted.to_lowercase();
    let named = |job: &Job| job.text("name").is_some_and(|name| name.to_lowercase() == lower);
    jobs.iter().position(|job| job.id() == wanted).or_else(|| jobs.iter().position(named))
}

fn names(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

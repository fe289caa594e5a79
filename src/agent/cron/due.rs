//! The scan: which jobs are due, and what the stored records need to be right again.
//!
//! Each job is looked at by itself, in a fixed order of questions; repairs are stored at the end. The scan stamps what
//! it hands out, so that a crash between scan and run is noticed by the next scan.

use jiff::civil::DateTime;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::expression::Expression;
use super::job::Job;
use super::moment::Moment;
use super::next_run::{Lateness, grace_seconds, next_run, period_seconds};
use super::schedule::Schedule;
use super::{CronError, Scheduler, store};
use crate::world::{Files, Millis, clock::DAY, clock::SECOND};

/// A job that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// The record as the scan left it.
    pub job: Job,
    /// The instant that it is due for, as it was stored.
    pub scheduled_at: String,
    /// How late it is; `None` for one-shots and manual runs.
    pub lateness: Option<Lateness>,
}

/// The outcome of one scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    /// Due jobs in stored order.
    pub due: Vec<Due>,
    /// What was given up, as (job, reason).
    pub diagnostics: Vec<(String, &'static str)>,
}

/// What becomes of one record.
enum Found {
    Skip,
    Due(Box<Due>),
    Remove(&'static str),
}

impl Scheduler {
    /// Scans for due jobs and stores repairs and stamps (Hermes cron/jobs.py:2877).
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn due(&self, files: &mut dyn Files, now: Millis) -> Result<Scan, CronError> {
        store::change(files, |jobs| self.scan(jobs, now))
    }

    /// One tick: scans, moves every recurring due job on, and hands out what is to run (Hermes
    /// cron/scheduler_tick.py). A recurring job that could not be moved on is left for the next tick.
    ///
    /// # Errors
    /// When the jobs cannot be read or the scan's stamps cannot be written.
    pub fn tick(&self, files: &mut dyn Files, now: Millis) -> Result<Scan, CronError> {
        let mut scan = self.due(files, now)?;
        scan.due.retain(|due| !self.running.contains(due.job.id()));
        if self.knobs.advance_before_run {
            let ids: Vec<String> = scan.due.iter().map(|due| due.job.id().to_owned()).collect();
            let stored = store::change(files, |jobs| {
                for job in jobs.iter_mut().filter(|job| ids.iter().any(|id| id == job.id())) {
                    self.move_on(job, now);
                }
            });
            if stored.is_err() {
                scan.due.retain(|due| !due.job.is_recurring());
            }
        }
        Ok(scan)
    }

    fn scan(&self, jobs: &mut Vec<Job>, now: Millis) -> Scan {
        let mut scan = Scan::default();
        for job in jobs.iter_mut() {
            repair(job);
        }
        jobs.retain(|job| !self.is_stale(job, now));
        jobs.retain_mut(|job| match self.look_at(job, now) {
            Found::Skip => true,
            Found::Due(due) => {
                scan.due.push(*due);
                true
            }
            Found::Remove(reason) => {
                scan.diagnostics.push((job.id().to_owned(), reason));
                if job.text("last_run_at").is_some() {
                    job.complete();
                    return true;
                }
                false
            }
        });
        scan
    }

    /// A completed one-shot that nobody needs to see any more.
    fn is_stale(&self, job: &Job, now: Millis) -> bool {
        let days = self.knobs.completed_retention_days.cast_signed();
        days > 0
            && job.is_once()
            && job.text("state") == Some("completed")
            && job
                .moment("last_run_at")
                .is_some_and(|last| now.saturating_sub(last.millis()) > days.saturating_mul(DAY))
    }

    fn look_at(&self, job: &mut Job, now: Millis) -> Found {
        if job.is_over() || !job.is_enabled() {
            return Found::Skip;
        }
        if job.is_pause_marked() {
            job.set("enabled", false);
            job.set("state", "paused");
            return Found::Skip;
        }
        if job.is_once() && job.has_live_claim("run_claim", now, self.run_claim_seconds()) {
            return Found::Skip;
        }
        let restored = self.put_back_slot(job, now);
        if job.text("next_run_at").is_none() && !self.fill_next_run(job, now) {
            return Found::Skip;
        }
        let Some(mut scheduled) = job.moment("next_run_at") else { return Found::Skip };
        let mut scheduled_at = job.text("next_run_at").unwrap_or_default().to_owned();
        let manual = job.is_manual_run();
        let finished =
            self.finished.get(job.id()).is_some_and(|instants| instants.contains(&scheduled.millis()));
        if (!manual && finished) || self.changed_zone(job, scheduled, now) {
            self.set_next(job, now);
            return Found::Skip;
        }
        self.rearm_stuck(job, now);
        let Some(next) = job.moment("next_run_at") else { return Found::Skip };
        if next.millis() > now {
            return Found::Skip;
        }
        if self.knobs.rearm_unclaimed_only {
            (scheduled, scheduled_at) = (next, job.text("next_run_at").unwrap_or_default().to_owned());
        }
        if !manual && !is_expected(job, next, self) {
            self.set_next(job, now);
            return Found::Skip;
        }
        if job.is_once() {
            return self.one_shot(job, next, scheduled_at, now);
        }
        if !job.is_recurring() || manual {
            return Found::Due(Box::new(Due { job: job.clone(), scheduled_at, lateness: None }));
        }
        self.recurring(job, scheduled, scheduled_at, restored, now)
    }

    fn recurring(
        &self,
        job: &mut Job,
        scheduled: Moment,
        scheduled_at: String,
        restored: bool,
        now: Millis,
    ) -> Found {
        let grace = grace_seconds(job.schedule().as_ref(), now, &self.zone, &self.knobs);
        let late_millis = now.saturating_sub(scheduled.millis()).max(0);
        if late_millis > grace.saturating_mul(SECOND) {
            self.set_next(job, now);
            if !self.knobs.catch_up_missed {
                return Found::Skip;
            }
        }
        let late_seconds = late_millis as f64 / SECOND as f64;
        let lateness = Lateness::of(late_seconds, grace, &self.knobs);
        let at = self.show(now);
        job.set(
            "last_dispatch",
            json!({
                "scheduled_at": scheduled_at, "dispatched_at": at,
                "lateness_seconds": late_seconds, "kind": lateness.word(),
            }),
        );
        let mut slot = json!({ "scheduled_at": scheduled_at, "at": at, "by": self.machine });
        if restored {
            slot["restored"] = Value::Bool(true);
        }
        job.set("pending_slot", slot);
        Found::Due(Box::new(Due { job: job.clone(), scheduled_at, lateness: Some(lateness) }))
    }

    fn one_shot(&self, job: &mut Job, next: Moment, scheduled_at: String, now: Millis) -> Found {
        let grace = self.knobs.one_shot_grace_seconds.cast_signed().saturating_mul(SECOND);
        if now.saturating_sub(next.millis()) > grace {
            let claimed = job.fields.get("run_claim").is_some_and(|claim| !claim.is_null());
            return if claimed { Found::Skip } else { Found::Remove("too late to run") };
        }
        if job.is_spent() {
            let here = self.running.contains(job.id());
            return if here { Found::Skip } else { Found::Remove("dispatched, never finished") };
        }
        job.set("run_claim", json!({ "at": self.show(now), "by": self.machine }));
        Found::Due(Box::new(Due { job: job.clone(), scheduled_at, lateness: None }))
    }

    /// Puts a slot back that was handed out and never claimed; once. True when it did.
    fn put_back_slot(&self, job: &mut Job, now: Millis) -> bool {
        let Some(slot) = job.fields.get("pending_slot").filter(|slot| slot.is_object()).cloned() else {
            return false;
        };
        let scheduled = slot["scheduled_at"].as_str().map(str::to_owned);
        let instant = scheduled.as_deref().and_then(Moment::parse);
        let (Some(scheduled), Some(instant)) = (scheduled, instant) else { return false };
        let own = slot["by"].as_str() == Some(&self.machine);
        let age = slot["at"].as_str().and_then(Moment::parse).map(|at| now.saturating_sub(at.millis()));
        let gone = if own {
            !self.running.contains(job.id())
        } else {
            age.is_none_or(|age| age >= self.knobs.pending_slot_seconds.cast_signed().saturating_mul(SECOND))
        };
        let claimed = job.has_live_claim("fire_claim", now, self.knobs.fire_claim_seconds.cast_signed());
        let passed_on = job.moment("next_run_at").is_none_or(|next| next.millis() > instant.millis());
        if !gone || claimed || !passed_on || slot["restored"] == true || !job.is_recurring() {
            return false;
        }
        job.set("next_run_at", scheduled);
        job.set("pending_slot", Value::Null);
        true
    }

    /// Computes a next run that is missing; false when there is none.
    fn fill_next_run(&self, job: &mut Job, now: Millis) -> bool {
        let Some(schedule) = job.schedule() else { return false };
        let last = if job.is_once() { job.text("last_run_at") } else { None };
        let Ok(Some(next)) = next_run(&schedule, now, &self.zone, last, &self.knobs) else { return false };
        job.set("next_run_at", next.to_string());
        if job.is_recoverable_error() {
            job.set("state", "scheduled");
        }
        true
    }

    /// A cron job stored under another offset whose wall time is still to come.
    fn changed_zone(&self, job: &Job, stored: Moment, now: Millis) -> bool {
        let here = Moment::at(now, &self.zone);
        let offset = stored.offset.unwrap_or(jiff::tz::Offset::UTC);
        job.kind() == Some("cron") && Some(offset) != here.offset && stored.wall > here.wall
    }

    /// A recurring job that failed and was parked further away than its schedule wants.
    fn rearm_stuck(&self, job: &mut Job, now: Millis) {
        let held = job.moment("quota_hold_until").is_some_and(|until| until.millis() > now);
        let claimed = job.has_live_claim("fire_claim", now, self.knobs.fire_claim_seconds.cast_signed())
            || (self.knobs.rearm_unclaimed_only
                && job.has_live_claim("pending_slot", now, self.knobs.pending_slot_seconds.cast_signed()));
        if !job.is_recurring()
            || job.text("last_status") != Some("error")
            || self.running.contains(job.id())
            || held
            || claimed
        {
            return;
        }
        let Some(schedule) = job.schedule() else { return };
        let Some(period) = period_seconds(&schedule, now, &self.zone) else { return };
        let patience = period + grace_seconds(Some(&schedule), now, &self.zone, &self.knobs);
        let (Some(last), Some(next)) = (job.moment("last_run_at"), job.moment("next_run_at")) else { return };
        if now.saturating_sub(last.millis()) <= patience.saturating_mul(SECOND) {
            return;
        }
        let wanted = match schedule {
            Schedule::Interval { .. } => Some(Moment::at(now, &self.zone)),
            Schedule::Cron { .. } | Schedule::Once { .. } => self.next_from_now(job, now),
        };
        if let Some(wanted) = wanted.filter(|wanted| next.millis() > wanted.millis()) {
            job.set("next_run_at", wanted.to_string());
        }
    }

    /// Stores the run after the present one, or none.
    fn set_next(&self, job: &mut Job, now: Millis) {
        let next = self.next_from_now(job, now);
        job.set("next_run_at", next.map_or(Value::Null, |next| Value::from(next.to_string())));
    }
}

/// True when the instant is one that the schedule, a retry or a recovery put there.
fn is_expected(job: &Job, next: Moment, scheduler: &Scheduler) -> bool {
    let Some(Schedule::Cron { expr }) = job.schedule() else { return true };
    let Ok(expression) = Expression::parse(&expr) else { return true };
    let to_the_second = |wall: DateTime| expression.is_at(wall) && wall.subsec_nanosecond() == 0;
    let planned = job.fields.get("unreachable_retry").is_some_and(Value::is_object)
        || job.moment("quota_hold_until").is_some_and(|until| until.millis() == next.millis());
    planned || to_the_second(Moment::of(next.instant(), &scheduler.zone).wall) || to_the_second(next.wall)
}

/// Gives a record an id and drops times that are none.
fn repair(job: &mut Job) {
    if job.id().is_empty() {
        let legacy = job.text("job_id").filter(|id| !id.is_empty()).map(str::to_owned);
        let id = legacy.unwrap_or_else(|| short_digest(&Value::Object(job.fields.clone()).to_string()));
        job.set("id", id);
    }
    for key in ["next_run_at", "last_run_at"] {
        let unusable = job
            .fields
            .get(key)
            .is_some_and(|value| !value.is_null() && value.as_str().and_then(Moment::parse).is_none());
        if unusable {
            job.set(key, Value::Null);
        }
    }
}

/// Twelve hexadecimal digits that stand for a text.
pub(super) fn short_digest(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(text.as_bytes());
    let digits = digest.iter().take(6).flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(HEX[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::cron::{FireClaim, NewJob, Outcome};
    use crate::policy;
    use crate::world::{MemFiles, clock::MINUTE};

    const NOW: Millis = 1_790_763_330_000;

    fn hourly(knobs: &policy::Cron) -> (Scheduler, MemFiles, String) {
        let scheduler = Scheduler::new(knobs, "host:1").unwrap();
        let mut files = MemFiles::new();
        let new =
            NewJob { prompt: Some("look".to_owned()), schedule: "every 1h".to_owned(), ..NewJob::default() };
        let job = scheduler.create(&mut files, &new, NOW).unwrap();
        (scheduler, files, job.id().to_owned())
    }

    fn due_at(scheduler: &Scheduler, files: &mut MemFiles, minutes: i64) -> usize {
        scheduler.tick(files, NOW + minutes * MINUTE).unwrap().due.len()
    }

    #[test]
    fn a_claimed_occurrence_is_handed_out_once() {
        let (scheduler, mut files, id) = hourly(&policy::Cron::default());
        assert_eq!(due_at(&scheduler, &mut files, 60), 1);
        let claim = scheduler.claim_fire(&mut files, &id, FireClaim::default(), NOW + 60 * MINUTE).unwrap();
        assert!(claim.is_some());
        assert_eq!(due_at(&scheduler, &mut files, 61), 0);
    }

    #[test]
    fn without_moving_on_first_the_same_occurrence_is_handed_out_again() {
        let knobs = policy::Cron { advance_before_run: false, ..policy::Cron::default() };
        let (scheduler, mut files, _) = hourly(&knobs);
        assert_eq!(due_at(&scheduler, &mut files, 60), 1);
        assert_eq!(due_at(&scheduler, &mut files, 61), 1);
    }

    #[test]
    fn a_slot_that_nobody_claimed_is_put_back_once() {
        let (scheduler, mut files, _) = hourly(&policy::Cron::default());
        let due: Vec<usize> = (60..64).map(|minute| due_at(&scheduler, &mut files, minute)).collect();
        assert_eq!(due, [1, 1, 0, 0]);
    }

    #[test]
    fn the_second_process_finds_the_claim_taken_and_cannot_finish() {
        let (mut scheduler, mut files, id) = hourly(&policy::Cron::default());
        let at = NOW + 60 * MINUTE;
        let claim = |holder| FireClaim { holder: Some(holder), ..FireClaim::default() };
        assert!(scheduler.claim_fire(&mut files, &id, claim("a"), at).unwrap().is_some());
        assert!(scheduler.claim_fire(&mut files, &id, claim("b"), at).unwrap().is_none());
        scheduler.record_dead_owner("a");
        assert!(scheduler.claim_fire(&mut files, &id, claim("b"), at).unwrap().is_some());
        let late = Outcome { success: true, holder: Some("a".to_owned()), ..Outcome::default() };
        assert!(!scheduler.mark(&mut files, &id, &late, at).unwrap());
    }

    /// What three schedulers are handed when they wake at one moment, a while after the last run failed.
    fn handed_out_after_a_failure(knobs: &policy::Cron) -> Vec<String> {
        let (mut scheduler, mut files, id) = hourly(knobs);
        let failed = Outcome { error: Some("no answer".to_owned()), ..Outcome::default() };
        scheduler.mark(&mut files, &id, &failed, NOW).unwrap();
        let (second, third) =
            (Scheduler::new(knobs, "host:2").unwrap(), Scheduler::new(knobs, "host:3").unwrap());
        let mut handed_out = Vec::new();
        for scheduler in [&scheduler, &second, &third] {
            let scan = scheduler.tick(&mut files, NOW + 180 * MINUTE).unwrap();
            handed_out.extend(scan.due.into_iter().map(|due| due.scheduled_at));
        }
        handed_out
    }

    #[test]
    fn a_failed_job_is_re_armed_behind_the_back_of_the_scheduler_that_holds_it() {
        // As the real agent does it: the third is known by the instant of the second, which has yet to come.
        let twice = handed_out_after_a_failure(&policy::Cron::default());
        assert_eq!((twice.len(), &twice[1]), (3, &twice[2]), "{twice:?}");
        let mended = policy::Cron { rearm_unclaimed_only: true, ..policy::Cron::default() };
        assert_eq!(handed_out_after_a_failure(&mended).len(), 1);
    }

    #[test]
    fn a_malformed_record_does_not_stop_the_scan() {
        let (scheduler, mut files, _) = hourly(&policy::Cron::default());
        let mut jobs = scheduler.jobs(&files).unwrap();
        jobs.insert(
            0,
            Job {
                fields: serde_json::from_str(r#"{"schedule": 3, "next_run_at": [], "repeat": "x"}"#).unwrap(),
            },
        );
        store::save(&mut files, &jobs).unwrap();
        assert_eq!(due_at(&scheduler, &mut files, 60), 1);
        assert_eq!(scheduler.jobs(&files).unwrap()[0].id().len(), 12);
    }
}

//! Claims: who runs what, so that no occurrence runs twice.
//!
//! A fire claim is a lease on one run of a job; its owner renews it. A one-shot is counted before it runs. Recurring
//! jobs are moved on when they are claimed, whatever was done before.

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::job::Job;
use super::moment::Moment;
use super::{CronError, Scheduler, store};
use crate::world::{Files, Millis, clock::SECOND};

/// How a run is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FireClaim<'a> {
    /// Who claims; this process when missing.
    pub holder: Option<&'a str>,
    /// Also a paused job, which is resumed by it.
    pub force: bool,
    /// Because a person said so, not for a slot.
    pub manual: bool,
}

/// A claim that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The slot that this run is for, in UTC; `None` when it is for none.
    pub scheduled_instant: Option<String>,
}

impl Scheduler {
    /// Claims one run of a job (Hermes cron/jobs.py:2736); `None` when the job is missing, over, not runnable, or
    /// claimed by somebody who is alive.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn claim_fire(
        &self,
        files: &mut dyn Files,
        id: &str,
        claim: FireClaim,
        now: Millis,
    ) -> Result<Option<Claimed>, CronError> {
        store::change(files, |jobs| {
            let job = jobs.iter_mut().find(|job| job.id() == id)?;
            if job.is_over() || !(job.is_runnable() || claim.force) {
                return None;
            }
            let ttl = self.knobs.fire_claim_seconds.cast_signed();
            let owner_dead = job.claim("fire_claim").is_some_and(|(by, _)| self.dead_owners.contains(by));
            if job.has_live_claim("fire_claim", now, ttl) && !owner_dead {
                return None;
            }
            if !job.is_runnable() {
                job.enable();
            }
            let slot = self.slot_of(job, claim, now);
            let utc = slot.map(|slot| Moment::of(slot.instant(), &TimeZone::UTC).to_string());
            let holder = claim.holder.unwrap_or(&self.machine);
            job.set("fire_claim", json!({ "at": self.show(now), "by": holder, "slot": utc }));
            job.clear("pending_slot");
            self.move_on(job, now);
            Some(Claimed { scheduled_instant: utc })
        })
    }

    /// The slot that a claim is for: none for a manual run, none long before the slot.
    fn slot_of(&self, job: &Job, claim: FireClaim, now: Millis) -> Option<Moment> {
        let early = self.knobs.early_claim_seconds.cast_signed().saturating_mul(SECOND);
        let slot = job.moment("next_run_at").filter(|_| !claim.manual && !job.is_manual_run())?;
        (slot.millis().saturating_sub(now) < early).then_some(slot)
    }

    /// Renews a claim; false when somebody else holds it or nobody does.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn heartbeat(
        &self,
        files: &mut dyn Files,
        id: &str,
        holder: &str,
        now: Millis,
    ) -> Result<bool, CronError> {
        let at = self.show(now);
        store::change(files, |jobs| {
            let Some(job) = jobs.iter_mut().find(|job| job.id() == id) else { return false };
            let Some(claim) = job.fields.get_mut("fire_claim").and_then(Value::as_object_mut) else {
                return false;
            };
            if claim.get("by").and_then(Value::as_str) != Some(holder) {
                return false;
            }
            claim.insert("at".to_owned(), Value::from(at));
            true
        })
    }

    /// Counts a one-shot before it runs (Hermes cron/jobs.py:2585); false when it must not run. Recurring jobs always
    /// may. A one-shot that used up its runs is removed, or completed when a run is on record.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn dispatch(&self, files: &mut dyn Files, id: &str) -> Result<bool, CronError> {
        store::change(files, |jobs| {
            let Some(at) = jobs.iter().position(|job| job.id() == id) else { return false };
            let job = &mut jobs[at];
            if !job.is_once() {
                return true;
            }
            if !job.is_spent() {
                if job.times().is_some() {
                    job.set_repeat(job.times(), job.completed() + 1);
                }
                return true;
            }
            if job.text("last_run_at").is_some() {
                job.complete();
            } else {
                jobs.remove(at);
            }
            false
        })
    }

    /// Moves a recurring job to its next run; false for one-shots and when nothing changed.
    ///
    /// # Errors
    /// When the jobs cannot be read or written.
    pub fn advance(&self, files: &mut dyn Files, id: &str, now: Millis) -> Result<bool, CronError> {
        store::change(files, |jobs| {
            jobs.iter_mut().find(|job| job.id() == id).is_some_and(|job| self.move_on(job, now))
        })
    }

    pub(super) fn move_on(&self, job: &mut Job, now: Millis) -> bool {
        if !job.is_recurring() {
            return false;
        }
        let Some(next) = self.next_from_now(job, now).map(|next| next.to_string()) else { return false };
        let changed = job.text("next_run_at") != Some(&next);
        job.set("next_run_at", next);
        changed
    }
}

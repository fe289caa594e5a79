//! Scheduled agent runs: schedules, the scan for due jobs, claims, what follows a run.
//!
//! A [`Scheduler`] works on `cron/jobs.json` in the agent's home and is told the time with every call. An occurrence
//! runs at most once: recurring jobs are moved on before they run, one-shots are counted before they run, and a claim
//! with a lease keeps a second process away.
//!
//! Never: an ambient clock or zone; a malformed record that stops the scan.
//!
//! The real agent's gateway ticks every minute, claims what is due and runs each job in a fresh agent. Differs: a tick is
//! an act of a scenario, which can keep ticking for a while; processes that wake at one moment scan one after another
//! before any of them runs, and the jobs of a tick run one after another where the real ones run side by side. A zero
//! interval is accepted as there, unless `cron.refuse_zero_interval` is on. A run is not watched while it is idle:
//! `cron.idle_seconds` is how long its claim holds. No process of a run dies while it holds a claim, so nobody calls
//! [`Scheduler::record_dead_owner`] there.

mod after_run;
mod claims;
mod create;
mod due;
pub mod duration;
mod edit;
mod expression;
mod job;
pub mod lifecycle_guard;
mod moment;
mod next_run;
pub mod run;
mod schedule;
pub mod silence;
pub mod store;

pub use after_run::Outcome;
pub use claims::{Claimed, FireClaim};
pub use create::NewJob;
pub use due::{Due, Scan};
pub use edit::Changes;
pub use expression::Expression;
pub use job::Job;
pub use moment::Moment;
pub use next_run::{Lateness, grace_seconds, next_run, occurrence, period_seconds};
pub use schedule::Schedule;

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;

use crate::policy;
use crate::world::{FileError, Files, Millis};

/// Occurrences of one job that are remembered as completed.
const FINISHED_KEPT: usize = 64;

/// Why the scheduler said no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// No duration.
    #[error("a duration is a number and a unit, such as `30m`, `2 hours`, `1d`")]
    Duration,
    /// No number of runs.
    #[error("a number of runs is an integer, `once` or `forever`")]
    Repeat,
    /// A value of a type that says nothing.
    #[error("the value has the wrong type")]
    Type,
    /// No schedule at all.
    #[error("a schedule is `every 30m`, `in 2h`, `weekdays at 9am`, a cron expression or an ISO time")]
    Schedule,
    /// A cron expression that cannot be read.
    #[error("the cron expression cannot be read")]
    CronExpression,
    /// A time that does not exist.
    #[error("the time cannot be read")]
    Timestamp,
    /// An expression that never comes true.
    #[error("the schedule has no occurrence")]
    NoOccurrence,
    /// An interval of nothing.
    #[error("an interval needs at least one minute")]
    ZeroInterval,
    /// Nothing to do.
    #[error("a job needs a prompt, a script or a skill")]
    EmptyPayload,
    /// A job without agent and without script.
    #[error("a job without agent needs a script")]
    ScriptMissing,
    /// A reason for a pause that was not asked for.
    #[error("a reason for a pause needs a pause")]
    PausedReason,
    /// A job that would stop the program which runs it.
    #[error("a scheduled job must not stop or restart the agent's gateway")]
    LifecycleGuard,
    /// A one-shot whose time is over.
    #[error("the time of the one-shot is over")]
    OneShotPast,
    /// A job that is over.
    #[error("the job is over")]
    Terminal,
    /// Only one-shots can be armed again.
    #[error("only a one-shot can be armed again")]
    RearmRecurring,
    /// A run of the job is under way.
    #[error("a run of the job is under way")]
    LiveClaim,
    /// No such zone.
    #[error("there is no time zone `{0}`")]
    Zone(String),
    /// The file of jobs is not what it should be.
    #[error("cron/jobs.json cannot be read: {0}")]
    Unreadable(String),
    /// The file of jobs cannot be reached.
    #[error(transparent)]
    Store(#[from] FileError),
}

impl CronError {
    /// The error as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Repeat => "repeat",
            Self::Type => "type",
            Self::Schedule => "schedule",
            Self::CronExpression => "cron_expression",
            Self::Timestamp => "timestamp",
            Self::NoOccurrence => "no_occurrence",
            Self::ZeroInterval => "zero_interval",
            Self::EmptyPayload => "empty_payload",
            Self::ScriptMissing => "no_agent_script",
            Self::PausedReason => "paused_reason",
            Self::LifecycleGuard => "lifecycle_guard",
            Self::OneShotPast => "one_shot_past",
            Self::Terminal => "terminal",
            Self::RearmRecurring => "rearm_recurring",
            Self::LiveClaim => "live_claim",
            Self::Zone(_) => "timezone",
            Self::Unreadable(_) | Self::Store(_) => "store",
        }
    }
}

/// One process that scans, claims and finishes.
#[derive(Debug, Clone)]
pub struct Scheduler {
    knobs: policy::Cron,
    zone: TimeZone,
    machine: String,
    running: BTreeSet<String>,
    finished: BTreeMap<String, BTreeSet<Millis>>,
    dead_owners: BTreeSet<String>,
}

impl Scheduler {
    /// A scheduler; `machine` names this process in claims and slots.
    ///
    /// # Errors
    /// [`CronError::Zone`] when the configured zone is unknown.
    pub fn new(knobs: &policy::Cron, machine: &str) -> Result<Self, CronError> {
        let zone = TimeZone::get(&knobs.timezone).map_err(|_| CronError::Zone(knobs.timezone.clone()))?;
        Ok(Self {
            knobs: knobs.clone(),
            zone,
            machine: machine.to_owned(),
            running: BTreeSet::new(),
            finished: BTreeMap::new(),
            dead_owners: BTreeSet::new(),
        })
    }

    /// The zone of the wall clock.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Notes that a job's run is under way in this process, or over.
    pub fn set_running(&mut self, id: &str, running: bool) {
        if running {
            self.running.insert(id.to_owned());
        } else {
            self.running.remove(id);
        }
    }

    /// Notes that the occurrence of a job at an instant was completed; the oldest are forgotten.
    pub fn record_finished(&mut self, id: &str, instant: Millis) {
        let instants = self.finished.entry(id.to_owned()).or_default();
        instants.insert(instant);
        while instants.len() > FINISHED_KEPT {
            instants.pop_first();
        }
    }

    /// Notes that the owner of a claim is known to be dead; its claims count no longer.
    pub fn record_dead_owner(&mut self, owner: &str) {
        self.dead_owners.insert(owner.to_owned());
    }

    /// Every stored job.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn jobs(&self, files: &dyn Files) -> Result<Vec<Job>, CronError> {
        store::load(files)
    }

    fn show(&self, now: Millis) -> String {
        Moment::at(now, &self.zone).to_string()
    }

    /// The run after the present one.
    fn next_from_now(&self, job: &Job, now: Millis) -> Option<Moment> {
        next_run(&job.schedule()?, now, &self.zone, None, &self.knobs).ok().flatten()
    }

    fn run_claim_seconds(&self) -> i64 {
        let idle = self.knobs.idle_seconds.saturating_mul(self.knobs.run_claim_idle_limits);
        idle.max(self.knobs.run_claim_seconds_min).cast_signed()
    }
}

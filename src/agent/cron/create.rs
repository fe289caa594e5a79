//! New jobs: what is refused, and what a record begins with.

use serde_json::{Map, Value, json};

use super::due::short_digest;
use super::duration::parse_repeat;
use super::job::Job;
use super::schedule::Schedule;
use super::{CronError, Scheduler, lifecycle_guard, next_run, store};
use crate::world::{Files, Millis};

/// What a job is to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewJob {
    /// What the agent is told.
    pub prompt: Option<String>,
    /// When, as a person writes it.
    pub schedule: String,
    /// A name; made from the payload when missing.
    pub name: Option<String>,
    /// Skills to load.
    pub skills: Vec<String>,
    /// A script to run first, or instead of the agent.
    pub script: Option<String>,
    /// Only the script, no agent.
    pub no_agent: bool,
    /// How often, as the configuration writes it.
    pub repeat: Value,
    /// Where the text goes; to the origin or the local store when missing.
    pub deliver: Option<String>,
    /// The conversation that the job was created in.
    pub origin: Option<Value>,
    /// Created, but not running yet.
    pub paused: bool,
    /// Why it is paused.
    pub paused_reason: Option<String>,
    /// Further fields of the record: model, provider, toolsets, work directory.
    pub more: Map<String, Value>,
}

impl Scheduler {
    /// Creates a job (Hermes cron/jobs.py:1813).
    ///
    /// # Errors
    /// Everything that the job lacks, or that its schedule says wrongly; when the jobs cannot be read or written.
    pub fn create(&self, files: &mut dyn Files, new: &NewJob, now: Millis) -> Result<Job, CronError> {
        let schedule = Schedule::parse(&new.schedule, now, &self.zone)?;
        if self.knobs.refuse_zero_interval && schedule == (Schedule::Interval { minutes: 0 }) {
            return Err(CronError::ZeroInterval);
        }
        let times = match (&schedule, parse_repeat(&new.repeat)?) {
            (Schedule::Once { .. }, None) => Some(1),
            (_, times) => times,
        };
        let prompt = new.prompt.as_deref().unwrap_or_default().trim();
        let script = new.script.as_deref().map(str::trim).filter(|script| !script.is_empty());
        let skills = unique(&new.skills);
        self.check_payload(prompt, script, &skills, new.no_agent)?;
        if new.paused_reason.is_some() && !new.paused {
            return Err(CronError::PausedReason);
        }
        let next = next_run(&schedule, now, &self.zone, None, &self.knobs)?;
        if next.is_none() && matches!(schedule, Schedule::Once { .. }) {
            return Err(CronError::OneShotPast);
        }
        let mut jobs = store::load(files)?;
        let name = new.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let made = [prompt, skills.first().map_or("", String::as_str), script.unwrap_or_default()];
        let made = made.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let kept = usize::try_from(self.knobs.name_chars_max).unwrap_or(usize::MAX);
        let made: String = made.chars().take(kept).collect();
        let mut job = Job::default();
        job.set("id", self.fresh_id(&jobs, &made, now));
        job.set("name", name.map_or_else(|| made.trim().to_owned(), str::to_owned));
        job.set("prompt", prompt);
        job.set("skills", json!(skills));
        job.set("script", json!(script));
        job.set("no_agent", new.no_agent);
        job.set("schedule", schedule.to_value());
        job.set_repeat(times, 0);
        job.set("enabled", !new.paused);
        job.set("state", if new.paused { "paused" } else { "scheduled" });
        job.set("paused_at", if new.paused { Value::from(self.show(now)) } else { Value::Null });
        job.set("paused_reason", json!(new.paused_reason));
        job.set("created_at", self.show(now));
        let next = next.filter(|_| !new.paused).map(|next| next.to_string());
        job.set("next_run_at", json!(next));
        job.set("last_run_at", Value::Null);
        let deliver = if new.origin.is_some() { "origin" } else { "local" };
        job.set("deliver", new.deliver.as_deref().unwrap_or(deliver));
        job.set("origin", json!(new.origin));
        for (key, value) in &new.more {
            job.fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
        jobs.push(job.clone());
        store::save(files, &jobs)?;
        Ok(job)
    }

    pub(super) fn check_payload(
        &self,
        prompt: &str,
        script: Option<&str>,
        skills: &[String],
        no_agent: bool,
    ) -> Result<(), CronError> {
        if prompt.is_empty() && script.is_none() && skills.is_empty() {
            return Err(CronError::EmptyPayload);
        }
        if no_agent && script.is_none() {
            return Err(CronError::ScriptMissing);
        }
        let blocked = [prompt, script.unwrap_or_default()].into_iter().any(lifecycle_guard::blocks);
        if self.knobs.lifecycle_guard && blocked { Err(CronError::LifecycleGuard) } else { Ok(()) }
    }

    /// Twelve hexadecimal digits that no job has: the same story gives the same ids.
    fn fresh_id(&self, jobs: &[Job], name: &str, now: Millis) -> String {
        let mut salt = jobs.len();
        loop {
            let id = short_digest(&format!("{}\n{name}\n{now}\n{salt}", self.machine));
            if jobs.iter().all(|job| job.id() != id) {
                return id;
            }
            salt += 1;
        }
    }
}

fn unique(names: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        if !kept.iter().any(|known| known == name) {
            kept.push(name.to_owned());
        }
    }
    kept
}

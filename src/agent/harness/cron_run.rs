//! Scheduled runs: the tick, the fresh agent that runs a due job, and the tool that schedules.
//!
//! Every scheduler of a tick scans before any of them runs, as processes that wake at the same moment do. Whoever
//! claims an occurrence runs it.

use serde_json::{Map, Value, json};

use crate::agent::cron::{self, CronError, Due, FireClaim, Job, NewJob, Outcome, Scheduler, silence, store};
use crate::agent::turn::TurnReport;
use crate::ledger::{CronFired, CronJob, Lane, Name, SessionStarted, What};
use crate::model::Model;
use crate::scenario::JobSpec;
use crate::store::NewSession;
use crate::store::retry::WriteKind;
use crate::wire::Row;
use crate::wire::tools::SPECS;
use crate::world::Millis;
use crate::world::clock::{MINUTE, SECOND};
use crate::world::faults::is_unreachable;

use super::dispatch::ToolResult;
use super::host::Run;
use super::session::Permits;
use super::{Harness, HarnessError, Origin, Session};

impl From<CronError> for HarnessError {
    fn from(error: CronError) -> Self {
        Self::Script(error.to_string())
    }
}

impl<M: Model> Run<'_, M> {
    pub(super) fn cronjob_manage(&mut self, arguments: &Value) -> ToolResult {
        let action = arguments["action"].as_str().unwrap_or("list").trim().to_lowercase();
        let done = self.harness.manage_job(&action, arguments);
        let named = || arguments["name"].as_str().or(arguments["id"].as_str()).unwrap_or_default().to_owned();
        let (job, refusal) = match &done {
            Ok((job, _)) => (job.clone(), String::new()),
            Err(error) => (named(), error.word().to_owned()),
        };
        let event = CronJob {
            job: job.as_str().into(),
            action: action.as_str().into(),
            lane: self.session.lane,
            ok: done.is_ok(),
            refusal: refusal.as_str().into(),
        };
        self.event(What::CronJob(event));
        match done {
            Ok((_, answer)) => ToolResult::done(answer.to_string()),
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

/// A job as the model sees it.
fn shown(job: &Job) -> Value {
    json!({
        "id": job.id(), "name": job.text("name"), "state": job.shown_state(),
        "next_run_at": job.text("next_run_at"), "last_status": job.text("last_status"),
    })
}

pub(super) fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl<M: Model> Harness<M> {
    /// The scheduler of the process with this number.
    fn scheduler(&mut self, process: usize) -> Result<&mut Scheduler, CronError> {
        while self.schedulers.len() <= process {
            let machine = format!("lab:{}", self.schedulers.len() + 1);
            self.schedulers.push(Scheduler::new(&self.policy.cron, &machine)?);
        }
        Ok(&mut self.schedulers[process])
    }

    /// Adds a job, as the user does on the command line.
    ///
    /// # Errors
    /// When the schedule cannot be read or the job is refused.
    pub fn add_job(&mut self, job: &JobSpec) -> Result<(), HarnessError> {
        let JobSpec { name, schedule, prompt, skills, deliver } = job;
        let arguments = json!({
            "name": name, "schedule": schedule, "prompt": prompt, "skills": skills, "deliver": deliver,
        });
        self.manage_job("create", &arguments)?;
        Ok(())
    }

    /// Carries out an action on jobs; answers the job's name and what the caller is told.
    fn manage_job(&mut self, action: &str, arguments: &Value) -> Result<(String, Value), CronError> {
        let now = self.clock.now();
        let scheduler = self.scheduler(0)?.clone();
        let text = |key: &str| arguments[key].as_str();
        let wanted = text("id").or(text("job_id")).or(text("name")).unwrap_or_default();
        let home = &mut *self.home;
        let found = match action {
            "list" => {
                let jobs = scheduler.jobs(home)?;
                return Ok((String::new(), json!({ "jobs": jobs.iter().map(shown).collect::<Vec<_>>() })));
            }
            "create" => {
                let new = NewJob {
                    prompt: text("prompt").map(str::to_owned),
                    schedule: text("schedule").unwrap_or_default().to_owned(),
                    name: text("name").map(str::to_owned),
                    skills: names(&arguments["skills"]),
                    repeat: arguments["repeat"].clone(),
                    deliver: text("deliver").map(str::to_owned),
                    ..NewJob::default()
                };
                let job = scheduler.create(home, &new, now)?;
                return Ok((job.text("name").unwrap_or_default().to_owned(), json!({ "job": shown(&job) })));
            }
            "pause" => scheduler.pause(home, wanted, text("reason"), now)?,
            "resume" => scheduler.resume(home, wanted, now)?,
            "run" | "trigger" => scheduler.trigger(home, wanted, now)?,
            "remove" | "delete" => scheduler.remove(home, wanted)?,
            "update" => {
                let kept = |key: &str| !matches!(key, "action" | "id" | "job_id" | "name");
                let changes: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
                let changes = changes.into_iter().filter(|(key, _)| kept(key)).collect();
                scheduler.update(home, wanted, &changes, now)?
            }
            _ => return Err(CronError::Type),
        };
        Ok((wanted.to_owned(), json!({ "success": found, "found": found })))
    }

    /// Lets the schedulers tick for so long, one tick every `cron.tick_seconds`; 0 is a single tick.
    ///
    /// # Errors
    /// As [`Harness::tick`].
    pub fn tick_for(&mut self, schedulers: u64, minutes: u64) -> Result<(), HarnessError> {
        let step = Millis::try_from(self.policy.cron.tick_seconds).unwrap_or(Millis::MAX / SECOND) * SECOND;
        let end = Millis::try_from(minutes).unwrap_or(Millis::MAX / MINUTE).saturating_mul(MINUTE);
        let end = self.clock.now().saturating_add(end);
        self.tick(schedulers)?;
        while self.clock.now().saturating_add(step) <= end && !self.is_killed() {
            self.wait(step)?;
            self.tick(schedulers)?;
        }
        Ok(())
    }

    /// One tick of this many schedulers at once: all scan, then each runs what it claims.
    ///
    /// # Errors
    /// When the home fails, or the script has no answer for a run.
    pub fn tick(&mut self, schedulers: u64) -> Result<(), HarnessError> {
        // The process that has the scheduler looks after the skills, too.
        self.poll_curator()?;
        let now = self.clock.now();
        let mut handed_out = Vec::new();
        for process in 0..usize::try_from(schedulers).unwrap_or(usize::MAX) {
            let scheduler = self.scheduler(process)?.clone();
            let scan = scheduler.tick(&mut *self.home, now)?;
            handed_out.extend(scan.due.into_iter().map(|due| (process, due)));
        }
        handed_out.into_iter().try_for_each(|(process, due)| self.fire(process, &due))
    }

    /// Claims an occurrence and runs it.
    fn fire(&mut self, process: usize, due: &Due) -> Result<(), HarnessError> {
        let now = self.clock.now();
        let id = due.job.id().to_owned();
        let scheduler = self.scheduler(process)?.clone();
        let may = scheduler.dispatch(&mut *self.home, &id)?;
        let claim =
            if may { scheduler.claim_fire(&mut *self.home, &id, FireClaim::default(), now)? } else { None };
        let fired = CronFired {
            job: id.as_str().into(),
            occurrence: cron::Moment::parse(&due.scheduled_at).map_or(now, |moment| moment.millis()),
            claimed: claim.is_some(),
            outcome: if claim.is_some() { "ran".into() } else { "skipped".into() },
        };
        let world = self.world.clone();
        self.event(&world, What::CronFired(fired));
        if claim.is_none() {
            return Ok(());
        }
        self.scheduler(process)?.set_running(&id, true);
        let outcome = self.run_job(&due.job);
        self.scheduler(process)?.set_running(&id, false);
        let now = self.clock.now();
        let mut scheduler = self.scheduler(process)?.clone();
        scheduler.mark(&mut *self.home, &id, &outcome?, now)?;
        self.schedulers[process] = scheduler;
        Ok(())
    }

    /// True for the text of a scheduled run that says there is nothing to deliver.
    pub(super) fn is_silent(&self, session: &Session, report: &TurnReport, answer: &str) -> bool {
        let succeeded = report.completed && !report.failed;
        session.origin == Origin::Cron && cron::run::is_silent(answer, succeeded, &self.policy.cron)
    }

    /// Runs a job in an agent of its own, without memory, and keeps its text.
    fn run_job(&mut self, job: &Job) -> Result<Outcome, HarnessError> {
        self.cron_runs += 1;
        let now = self.clock.now();
        let name: Name = format!("cron_{}_{}", job.id(), self.cron_runs).into();
        self.stored(WriteKind::Transcript, |store| {
            store.create_session(&NewSession::of(&name, "cron"), now)
        })?;
        let started =
            SessionStarted { why: "cron".into(), parent: self.world.clone(), depth: 0, persisted: true };
        self.event(&name, What::SessionStarted(started));
        let memory = self.fresh_memory();
        let mut session = Session::new(name.clone(), Lane::Cron, &self.policy, memory, now);
        session.origin = Origin::Cron;
        session.skip_review = self.policy.cron.skip_background_review;
        // Only a named chat is a platform; the other words mean the run's own file.
        session.deliver_to = job.text("deliver").filter(|to| to.contains(':')).map(str::to_owned);
        let denied = cron::run::denied(&Value::Null, &self.policy.cron);
        let refused: Vec<String> = SPECS
            .iter()
            .filter(|spec| denied.iter().any(|set| set == spec.toolset))
            .map(|spec| spec.name.to_owned())
            .collect();
        session.keep_tools(|tool| !refused.iter().any(|refused| refused == tool));
        session.permits = Permits::without(refused);
        Run { harness: self, session: &mut session }.build_prompt("first")?;
        let mut text = String::new();
        for skill in job.fields.get("skills").map(names).unwrap_or_default() {
            if let Ok(view) = self.library().take_up(&mut *self.home, now, &skill) {
                text.push_str(&format!("[Skill {skill}]\n{}\n\n", view.text));
            }
        }
        text.push_str(job.text("prompt").unwrap_or_default());
        let report = self.whole_turn(&mut session, Row::user(cron::run::prompt(&text)))?;
        let now = self.clock.now();
        let answer = report.answer.unwrap_or_default();
        let declared = silence::declared_failure(&answer).map(str::to_owned);
        let success = report.completed && !report.failed && declared.is_none();
        let at = cron::Moment::at(now, self.scheduler(0)?.zone());
        store::save_output(&mut *self.home, job.id(), &at, &answer, self.policy.cron.outputs_kept)?;
        // A rotation gave the run another session.
        let last = session.name.clone();
        self.stored(WriteKind::Ordinary, |store| store.end_session(&last, "cron_complete", now))?;
        let error = (!success).then(|| declared.unwrap_or_else(|| "the run gave no answer".to_owned()));
        // No request came through, and what stood in the way was the network.
        let unreachable = report.fault.as_deref().is_some_and(is_unreachable);
        let model_unreachable = report.failed && unreachable && session.input_used == 0;
        let delivery_error = report.delivery_error;
        Ok(Outcome { success, error, delivery_error, model_unreachable, ..Outcome::default() })
    }
}

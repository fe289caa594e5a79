//! The curator at work: ageing, the agent that merges narrow skills, and what the ledger hears of both.

use std::collections::BTreeSet;

use crate::agent::cron::{Job, store};
use crate::agent::curator::{self, Begun, Consolidation, JobSkills, RunOptions, RunReport};
use crate::agent::memory::MemoryStore;
use crate::agent::skills::{Library, Lifecycle, Origin as WriterOrigin, State, Usage, Writer};
use crate::ledger::{CuratorRan, Lane, Name, SessionStarted, SkillChanged, What};
use crate::model::Model;
use crate::wire::Row;
use crate::wire::tools::{SPECS, ToolSpec};
use crate::world::{Millis, clock};

use super::cron_run::names;
use super::host::Run;
use super::maintaining::Before;
use super::session::Permits;
use super::{Harness, HarnessError, Origin, Session};

/// What stands before a pass of the curator.
struct Eve {
    /// When it began: a run with a model takes its time.
    at: Millis,
    usage: Usage,
    candidates: Vec<String>,
    scheduled: BTreeSet<String>,
    skills: Vec<(String, Before)>,
}

impl<M: Model> Harness<M> {
    /// One run of the curator, whatever its gates say.
    ///
    /// # Errors
    /// When the script has no answer for the agent that merges.
    pub fn curate(&mut self) -> Result<(), HarnessError> {
        let (library, now) = (self.library(), self.clock.now());
        let eve = self.eve(&library);
        let mut jobs = self.job_skills();
        let knobs = &self.policy.curator;
        let begun = curator::begin(&library, knobs, &mut *self.home, now, RunOptions::default(), &jobs);
        self.aged(&eve, &begun);
        let candidates = begun.to_consolidate().map(<[String]>::to_vec);
        let merged = candidates.map(|names| self.consolidate(&names)).transpose();
        // A model that does not answer leaves the ageing as it stands.
        let outcome = merged.as_ref().ok().and_then(Option::as_ref);
        let report = begun.finish(&library, &mut *self.home, self.clock.now(), &mut jobs, outcome);
        self.let_jobs_follow(&report)?;
        self.curated(&library, &eve, &report);
        merged.map(|_| ())
    }

    /// Asks the curator's gates, as a process does when it starts and at each tick of its scheduler; a run that is due
    /// takes place.
    ///
    /// # Errors
    /// As [`Harness::curate`].
    pub(super) fn poll_curator(&mut self) -> Result<(), HarnessError> {
        if !self.policy.curator.at_start {
            return Ok(());
        }
        let (library, now) = (self.library(), self.clock.now());
        // Neither of the two asks how long nobody has been at work; Hermes gateway/run.py:4616.
        let idle = Some(f64::INFINITY);
        if !curator::take(&library, &self.policy.curator, &mut *self.home, now, idle) {
            return Ok(());
        }
        let done = self.curate();
        curator::release(&library, &mut *self.home);
        done
    }

    /// Runs the agent that merges narrow skills: skill tools only, no memory, no files of the project, no nudges.
    fn consolidate(&mut self, candidates: &[String]) -> Result<Consolidation, HarnessError> {
        self.consolidations += 1;
        let name: Name = format!("curator-{}", self.consolidations).into();
        let now = self.clock.now();
        let started =
            SessionStarted { why: "curator".into(), parent: self.world.clone(), depth: 0, persisted: false };
        self.event(&name, What::SessionStarted(started));
        let memory = MemoryStore::new(&self.policy.memory, &self.policy.threats);
        let mut session = Session::new(name, Lane::Curator, &self.policy, memory, now);
        session.origin = Origin::Curator;
        session.writer = Writer::new(WriterOrigin::BackgroundReview);
        session.persisted = false;
        session.skip_review = true;
        session.iterations_max = Some(self.policy.curator.consolidation_iterations_max);
        let (own, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) =
            SPECS.iter().partition(|spec| spec.toolset == "skills");
        session.keep_tools(|tool| own.iter().any(|spec| spec.name == tool));
        session.agent.counts_iterations = false;
        session.permits = Permits::without(others.iter().map(|spec| spec.name.to_owned()));
        Run { harness: self, session: &mut session }.build_prompt("first")?;
        let report = self.run_loop(&mut session, Row::user(curator::instruction(candidates)))?;
        let calls = session.agent.transcript.rows().iter().flat_map(|row| row.tool_calls.iter().flatten());
        let call = |call: &crate::wire::ToolCall| curator::ToolCall {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        let calls = calls.map(call).collect();
        Ok(Consolidation { final_text: report.answer.unwrap_or_default(), calls })
    }

    /// What stands before a run.
    fn eve(&self, library: &Library) -> Eve {
        let now = self.clock.now();
        let names: Vec<String> = library.catalogue(&*self.home).into_iter().map(|entry| entry.name).collect();
        Eve {
            at: now,
            usage: Usage::load(&*self.home, library.root()),
            candidates: curator::candidates(library, &self.policy.curator, &*self.home),
            scheduled: curator::referenced(&self.job_skills()),
            skills: names.into_iter().map(|name| (name.clone(), self.known(&name, now))).collect(),
        }
    }

    /// The skills that each job names, in the order of the jobs.
    fn job_skills(&self) -> Vec<JobSkills> {
        let jobs = store::load(&*self.home).unwrap_or_default();
        let skills = |job: &Job| JobSkills {
            skills: job.fields.get("skills").map(names),
            skill: job.text("skill").map(str::to_owned),
        };
        jobs.iter().map(skills).collect()
    }

    /// Jobs that named a merged skill name its heir.
    fn let_jobs_follow(&mut self, report: &RunReport) -> Result<(), HarnessError> {
        if report.rewrites.is_empty() || !self.policy.curator.jobs_follow {
            return Ok(());
        }
        store::change(&mut *self.home, |jobs| {
            for rewrite in &report.rewrites {
                if let Some(job) = jobs.get_mut(rewrite.job) {
                    job.set("skills", rewrite.after.clone());
                    job.set("skill", rewrite.after.first().cloned());
                }
            }
        })?;
        Ok(())
    }

    /// Records what the ageing changed.
    fn aged(&mut self, eve: &Eve, begun: &Begun) {
        let world = self.world.clone();
        for (name, action) in moves(begun.pass()) {
            let Some((_, known)) = eve.skills.iter().find(|(other, _)| *other == name) else { continue };
            let changed = SkillChanged {
                skill: name.as_str().into(),
                action: action.into(),
                origin: "curator".into(),
                created_by: known.created_by.as_str().into(),
                ok: true,
                refusal: world.clone(),
                read_before: false,
                existed: true,
                uses: known.uses,
                age_days: known.age_days,
            };
            self.event(&world, What::SkillChanged(changed));
        }
    }

    /// Records a whole run.
    fn curated(&mut self, library: &Library, eve: &Eve, report: &RunReport) {
        let before = |name: &String| eve.skills.iter().any(|(known, _)| known == name);
        let skipped = eve.skills.iter().map(|(name, _)| name).filter(|name| !eve.candidates.contains(name));
        let moved = moves(&report.pass);
        let named = |action: &'static str| {
            listed(moved.iter().filter(move |(_, done)| *done == action).map(|(name, _)| name))
        };
        let present: Vec<Name> =
            library.catalogue(&*self.home).into_iter().map(|entry| entry.name.into()).collect();
        let after = |name: &String| present.iter().any(|known| **known == **name);
        let scheduled = curator::referenced(&self.job_skills());
        let merged = &report.classification.consolidated;
        let ran = CuratorRan {
            checked: report.counts.checked,
            stale: named("stale"),
            archived: named("archive"),
            reactivated: named("reactivate"),
            skipped: listed(skipped),
            overdue: Self::overdue(&eve.usage, &present, &eve.scheduled, eve.at),
            merged: merged.iter().map(|(from, into)| format!("{from} → {into}").into()).collect(),
            given_up: listed(report.classification.pruned.iter()),
            scheduled: listed(scheduled.iter().filter(|name| before(name) || after(name))),
            present,
            refused: listed(report.pass.refused.iter()),
        };
        self.event(&self.world.clone(), What::CuratorRan(ran));
    }

    /// Managed skills that are past the published archive age and still there.
    fn overdue(usage: &Usage, present: &[Name], scheduled: &BTreeSet<String>, now: Millis) -> Vec<Name> {
        let days = i64::try_from(crate::policy::Curator::default().archive_after_days).unwrap_or(i64::MAX);
        present
            .iter()
            .filter(|name| {
                let Some(record) = usage.get(name) else { return false };
                let anchor = record.last_activity().or_else(|| record.instant("created_at")).unwrap_or(now);
                record.is_managed()
                    && !record.is_pinned()
                    && !scheduled.contains(&***name)
                    && record.state() != State::Archived.word()
                    && now - anchor >= days.saturating_mul(clock::DAY)
            })
            .cloned()
            .collect()
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> Vec<Name> {
    names.map(|name| name.as_str().into()).collect()
}

/// The skills that a pass moved, each with the word for how.
fn moves(pass: &curator::Pass) -> Vec<(String, &'static str)> {
    let archived = pass.archived.iter().map(|name| (name.clone(), "archive"));
    let others = pass.events.iter().filter_map(|(name, event)| match event {
        Lifecycle::Stale => Some((name.clone(), "stale")),
        Lifecycle::Restored => Some((name.clone(), "reactivate")),
        _ => None,
    });
    archived.chain(others).collect()
}

//! One run: snapshot, ageing, bookkeeping, then consolidation if it is on, and a report.
//!
//! The bookkeeping comes before the model is asked, so that a crash of the second phase still counts as a run. The two
//! phases are two calls, [`begin`] and [`Begun::finish`]: between them the caller asks the model, if
//! [`Begun::to_consolidate`] names somebody to ask about. Never: an error that reaches the user's turn.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::classify::{Classification, ToolCall, classify_removals};
use super::state::CuratorState;
use super::transitions::{Counts, Pass, candidates, dry_counts, run_transitions};
use super::{backup, jobs};
use crate::agent::skills::{Library, Owners};
use crate::agent::stamp;
use crate::policy;
use crate::world::files::join;
use crate::world::{Files, Millis, clock};

/// What a consolidating agent did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consolidation {
    /// Its last text.
    pub final_text: String,
    /// Its tool calls, in order.
    pub calls: Vec<ToolCall>,
}

/// How a run is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// Nothing is changed.
    pub dry_run: bool,
    /// Whether to consolidate; `None` leaves it to the knob.
    pub consolidate: Option<bool>,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// The figures of the ageing.
    pub counts: Counts,
    /// The ageing with its consequences.
    pub pass: Pass,
    /// Id of the snapshot, if one was taken.
    pub snapshot: Option<String>,
    /// True when the consolidating agent was asked.
    pub consolidated: bool,
    /// What became of removed skills.
    pub classification: Classification,
    /// How job references changed.
    pub rewrites: Vec<jobs::Rewrite>,
    /// What the user was told, in order.
    pub summaries: Vec<String>,
    /// Directory of the report from the home.
    pub report_dir: String,
}

/// A run between its two phases: the ageing is done and on record, the model was not asked yet.
#[derive(Debug)]
pub struct Begun {
    started: Millis,
    options: RunOptions,
    consolidates: bool,
    before: BTreeSet<String>,
    aged: BTreeSet<String>,
    candidates: Vec<String>,
    pass: Pass,
    snapshot: Option<String>,
    summaries: Vec<String>,
}

impl Begun {
    /// What the ageing did.
    pub fn pass(&self) -> &Pass {
        &self.pass
    }

    /// The skills that an agent should look at for merging; `None` when nobody is to be asked.
    pub fn to_consolidate(&self) -> Option<&[String]> {
        (self.consolidates && !self.candidates.is_empty()).then_some(&*self.candidates)
    }
}

/// The first phase, without asking the gates (Hermes agent/curator.py:915-1002).
pub fn begin(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    options: RunOptions,
    job_list: &[jobs::JobSkills],
) -> Begun {
    let consolidates = options.consolidate.unwrap_or(knobs.consolidate);
    let before = local_names(library, files);
    let mut summaries = Vec::new();
    let mut snapshot = None;
    let mut pass = Pass::default();
    if options.dry_run {
        pass.counts = dry_counts(library, knobs, files);
    } else {
        if consolidates && knobs.backup_enabled {
            // Best effort: a snapshot that fails does not stop the ageing.
            snapshot =
                backup::snapshot(library, files, now, "before consolidation", &show_jobs(job_list)).ok();
        }
        let protect: BTreeSet<String> = snapshot.iter().cloned().collect();
        backup::prune(library, files, knobs.backup_keep, &protect);
        pass = run_transitions(library, knobs, files, now, &jobs::referenced(job_list));
        let summary = summary(&pass.counts);
        let mut state = CuratorState::load(files, library.root());
        let runs = state.run_count() + 1;
        state.set("last_run_summary", summary.as_str());
        state.set("last_run_at", stamp::show(now));
        state.set("run_count", runs);
        let _ = state.save(files, library.root());
        summaries.push(summary);
    }
    let aged = local_names(library, files);
    let candidates = consolidation_candidates(library, knobs, files);
    Begun { started: now, options, consolidates, before, aged, candidates, pass, snapshot, summaries }
}

impl Begun {
    /// The second phase: what the consolidating agent did, if one was asked, is classified, jobs follow it, and the
    /// report is written.
    pub fn finish(
        self,
        library: &Library,
        files: &mut dyn Files,
        now: Millis,
        job_list: &mut [jobs::JobSkills],
        outcome: Option<&Consolidation>,
    ) -> RunReport {
        let Self { started, options, consolidates, before, aged, pass, snapshot, mut summaries, .. } = self;
        let mut classification = Classification::default();
        let mut rewrites = Vec::new();
        if let Some(done) = outcome {
            let after = local_names(library, files);
            classification = classify_removals(&aged, &after, &done.calls, &done.final_text);
            if !options.dry_run {
                let pruned = classification.pruned.iter().cloned().collect();
                rewrites = jobs::rewrite(job_list, &classification.consolidated, &pruned);
            }
        }
        if consolidates || options.dry_run {
            summaries.push(format!(
                "{}; {} merged, {} given up",
                summary(&pass.counts),
                classification.consolidated.len(),
                classification.pruned.len()
            ));
        }
        let mut report = RunReport {
            counts: pass.counts,
            pass,
            snapshot,
            consolidated: outcome.is_some(),
            classification,
            rewrites,
            summaries,
            report_dir: String::new(),
        };
        let after = local_names(library, files);
        let seconds = (now - started).max(0) / clock::SECOND;
        report.report_dir =
            write_report(files, (started, seconds), options, &report, (&before, &after), outcome);
        let mut state = CuratorState::load(files, library.root());
        state.set("last_report_path", report.report_dir.as_str());
        state.set("last_run_duration_seconds", seconds);
        if let Some(last) = report.summaries.last() {
            state.set("last_run_summary", last.as_str());
        }
        let _ = state.save(files, library.root());
        report
    }
}

fn local_names(library: &Library, files: &dyn Files) -> BTreeSet<String> {
    library.local(files).iter().map(|dir| library.usage_name(files, dir)).collect()
}

/// The skills that a consolidation may touch: the agent's own, without bundled ones.
fn consolidation_candidates(library: &Library, knobs: &policy::Curator, files: &dyn Files) -> Vec<String> {
    let owners = Owners::load(files, library.root());
    candidates(library, knobs, files).into_iter().filter(|name| !owners.is_bundled(name)).collect()
}

fn summary(counts: &Counts) -> String {
    format!(
        "{} checked, {} stale, {} archived, {} reactivated",
        counts.checked, counts.marked_stale, counts.archived, counts.reactivated
    )
}

fn show_jobs(job_list: &[jobs::JobSkills]) -> Value {
    let rows = job_list.iter().map(|job| json!({"skills": job.skills, "skill": job.skill}));
    Value::Array(rows.collect())
}

/// Writes the report and answers its directory. What the disk refuses is lost; the run itself stands.
fn write_report(
    files: &mut dyn Files,
    (started, seconds): (Millis, Millis),
    options: RunOptions,
    report: &RunReport,
    (before, after): (&BTreeSet<String>, &BTreeSet<String>),
    outcome: Option<&Consolidation>,
) -> String {
    let base =
        stamp::format(started, "logs/curator/%Y%m%d-%H%M%S").unwrap_or_else(|| "logs/curator/run".to_owned());
    let mut dir = base.clone();
    let mut count = 1;
    while files.exists(&dir) {
        count += 1;
        dir = format!("{base}-{count}");
    }
    let counts = report.counts;
    let machine = json!({
        "started_at": stamp::show(started),
        "duration_seconds": seconds,
        "dry_run": options.dry_run,
        "skills_before": before.len(),
        "skills_after": after.len(),
        "transitions": {
            "checked": counts.checked, "marked_stale": counts.marked_stale, "archived": counts.archived,
            "reactivated": counts.reactivated, "seeded": counts.seeded,
        },
        "archived": report.pass.archived,
        "consolidated": report.classification.consolidated,
        "pruned": report.classification.pruned,
        "added": report.classification.added,
        "tool_calls": outcome.map_or(0, |outcome| outcome.calls.len()),
        "final_text": outcome.map_or("", |outcome| outcome.final_text.as_str()),
    });
    let mut text = format!("# Curator run of {}\n\n{}\n", stamp::show(started), summary(&counts));
    let mut section = |title: &str, names: Vec<String>| {
        if !names.is_empty() {
            text.extend(["\n## ", title, "\n\n"]);
            text.extend(names.iter().flat_map(|name| ["- ", name, "\n"]));
        }
    };
    section("Archived", report.pass.archived.clone());
    let merged = report.classification.consolidated.iter().map(|(from, into)| format!("{from} → {into}"));
    section("Merged", merged.collect());
    section("Given up", report.classification.pruned.clone());
    section("Added", report.classification.added.clone());
    let _ = files.write(&join(&dir, "run.json"), machine.to_string().as_bytes());
    let _ = files.write(&join(&dir, "REPORT.md"), text.as_bytes());
    if !report.rewrites.is_empty() {
        let rows: Vec<Value> = report
            .rewrites
            .iter()
            .map(|row| {
                json!({"job": row.job, "before": row.before, "after": row.after, "mapped": row.mapped, "dropped": row.dropped})
            })
            .collect();
        let _ = files.write(&join(&dir, "cron_rewrites.json"), Value::Array(rows).to_string().as_bytes());
    }
    dir
}

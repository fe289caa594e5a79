//! The search for what nobody thought of: drawn policies, worlds, acts and faults, and a law that fails.
//!
//! A seed gives a [`draft::Draft`], which is written as a scenario file, loaded, played and judged. What fails is
//! shrunk to a few acts; the file that is left is all that anybody needs to see it again. Seeds are spread over
//! threads by place and put back in order, so any number of threads gives the same answer.
//!
//! Never: a run that no file replays, a finding that no law makes except that the lab itself broke.

pub mod draft;
pub mod generate;
pub mod prove;
pub mod shrink;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::lab::breaks::Break;
use crate::lab::play::{Plan, play};
use crate::lab::runs::each_on;
use crate::laws;
use crate::ledger::{Ledger, What, first_difference};
use crate::scenario;
use draft::Draft;

/// The version of the JSON shape.
pub const SCHEMA: u64 = 1;

/// Most findings that are shrunk and told; each is of another check.
const FINDINGS_MAX: usize = 12;

/// A fault that every search must find, and the check that finds it: the whole conversation is stored again and again.
const CANARY: (&str, &str, &str) = ("turn.store_everything", "true", "L4.stored-once");

/// How a search is made.
#[derive(Debug, Clone)]
pub struct Search {
    /// The first seed.
    pub first: u64,
    /// How many seeds; they follow the first.
    pub seeds: u64,
    /// Play every seed twice and compare.
    pub twice: bool,
    /// Threads.
    pub threads: NonZeroUsize,
    /// Knobs that are turned in every run: a fault that the search is to find.
    pub hidden: Vec<(String, String)>,
}

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Requests that were sent.
    pub requests: u64,
    /// Ledger events.
    pub events: u64,
    /// Faults that took effect, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Subjects that the checks looked at.
    pub examined: BTreeMap<&'static str, u64>,
    /// What does not hold: the first finding of every check that fails, in the order of checks.
    pub failures: Vec<Failure>,
}

impl Outcome {
    /// The first thing that does not hold.
    pub fn failure(&self) -> Option<&Failure> {
        self.failures.first()
    }

    /// How this check fails, if it does.
    pub fn failure_of(&self, check: &str) -> Option<&Failure> {
        self.failures.iter().find(|failure| failure.check == check)
    }
}

/// What does not hold in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The check that fails; `lab.plays`, `lab.no-panic` and `lab.deterministic` are the lab's own.
    pub check: String,
    /// What was seen.
    pub evidence: String,
}

impl Failure {
    /// True for the same thing in another run. The lab's own failures differ in what they say, and a script that
    /// lost a reply fails as well: names and numbers apart, they must say the same.
    pub fn is_like(&self, other: &Self) -> bool {
        let gist = |text: &str| -> String {
            let outside = text.split('`').step_by(2).flat_map(str::chars);
            outside.filter(|c| !c.is_ascii_digit()).collect()
        };
        self.check == other.check
            && (!self.check.starts_with("lab.") || gist(&self.evidence) == gist(&other.evidence))
    }
}

/// A failure that was shrunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The seed that showed it.
    pub seed: u64,
    /// The check and its evidence, in the shrunk run.
    #[serde(flatten)]
    pub failure: Failure,
    /// How many seeds of this search failed the same check first.
    pub seeds: u64,
    /// Acts of the run as it was drawn.
    pub acts_before: usize,
    /// Acts that are left.
    pub acts: usize,
    /// The scenario file that replays it.
    pub scenario: String,
}

/// What a search showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of the shape.
    pub schema: u64,
    /// The first seed.
    pub first: u64,
    /// Seeds that were played.
    pub seeds: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Ledger events that were judged.
    pub events: u64,
    /// Faults that took effect, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Subjects that each check looked at.
    pub examined: BTreeMap<&'static str, u64>,
    /// True when the canary was found.
    pub canary: bool,
    /// What was found, in the order of seeds.
    pub found: Vec<Found>,
}

impl Report {
    /// True when nothing was found and the canary was.
    pub fn holds(&self) -> bool {
        self.canary && self.found.is_empty()
    }
}

/// The knobs that a break turns, as they stand in a drawn run.
pub fn hidden(found: &Break) -> Vec<(String, String)> {
    knobs_of(&[&found.with, &found.turn])
}

fn knobs_of(tables: &[&toml::Table]) -> Vec<(String, String)> {
    let mut knobs = Vec::new();
    for table in tables {
        for (key, value) in *table {
            match value {
                toml::Value::Table(inner) => {
                    knobs.extend(
                        inner.iter().map(|(knob, value)| (format!("{key}.{knob}"), value.to_string())),
                    );
                }
                value => knobs.push((key.clone(), value.to_string())),
            }
        }
    }
    knobs
}

/// The run of a seed, with these knobs turned on top.
pub fn draft_of(seed: u64, hidden: &[(String, String)]) -> Draft {
    let mut draft = generate::draw(seed);
    let kept = |(knob, _): &(String, String)| !hidden.iter().any(|(other, _)| other == knob);
    draft.base.retain(kept);
    draft.knobs.retain(kept);
    draft.knobs.extend(hidden.iter().cloned());
    draft
}

/// Plays and judges a scenario file.
pub fn run_text(text: &str, twice: bool) -> Outcome {
    let failed = |check: &str, evidence: String| Outcome {
        failures: vec![Failure { check: check.to_owned(), evidence }],
        ..Outcome::default()
    };
    let scenario = match scenario::load("drawn.toml", text) {
        Ok(scenario) => scenario,
        Err(faults) => {
            return failed(
                "lab.loads",
                faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            );
        }
    };
    let once = || catch_unwind(AssertUnwindSafe(|| play(&scenario, &Plan::default())));
    let ledger = match once() {
        Ok(Ok(ledger)) => ledger,
        Ok(Err(error)) => return failed("lab.plays", error.to_string()),
        Err(panic) => return failed("lab.no-panic", panic_text(&panic)),
    };
    if twice
        && let Ok(Ok(again)) = once()
        && let Some(difference) = first_difference(&ledger, &again)
    {
        return failed("lab.deterministic", format!("line {} of the ledger differs", difference.line));
    }
    judge(&ledger)
}

fn panic_text(panic: &Box<dyn std::any::Any + Send>) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

fn judge(ledger: &Ledger) -> Outcome {
    let verdict = laws::judge(ledger);
    let mut outcome = Outcome { events: ledger.events.len() as u64, ..Outcome::default() };
    for event in &ledger.events {
        match &event.what {
            What::Request(_) => outcome.requests += 1,
            What::Fault(fault) => *outcome.faults.entry(fault.kind.to_string()).or_insert(0) += 1,
            _ => {}
        }
    }
    outcome.examined = verdict.results.iter().map(|result| (result.check, result.examined)).collect();
    for finding in verdict.findings() {
        if outcome.failure_of(finding.check).is_none() {
            outcome.failures.push(Failure {
                check: finding.check.to_owned(),
                evidence: format!("event {}, {}: {}", finding.event, finding.place, finding.evidence),
            });
        }
    }
    outcome
}

/// Searches `search.seeds` seeds; stops early, at the same place on any number of threads, never: `go_on` is for a
/// caller that has only so much time, and is asked before each seed.
pub fn search(search: &Search, go_on: &(dyn Fn() -> bool + Sync)) -> Report {
    let mut report = Report {
        schema: SCHEMA,
        first: search.first,
        seeds: 0,
        requests: 0,
        events: 0,
        faults: BTreeMap::new(),
        examined: BTreeMap::new(),
        canary: canary(search.first),
        found: Vec::new(),
    };
    let mut failing: Vec<(u64, Failure)> = Vec::new();
    for tally in spread(search, go_on) {
        report.seeds += tally.seeds;
        report.requests += tally.requests;
        report.events += tally.events;
        for (kind, count) in tally.faults {
            *report.faults.entry(kind).or_insert(0) += count;
        }
        for (check, count) in tally.examined {
            *report.examined.entry(check).or_insert(0) += count;
        }
        failing.extend(tally.failing);
    }
    failing.sort_by_key(|(seed, _)| *seed);
    let mut first: Vec<(u64, Failure, u64)> = Vec::new();
    for (seed, failure) in failing {
        match first.iter_mut().find(|(_, known, _)| known.check == failure.check) {
            Some((_, _, seeds)) => *seeds += 1,
            None => first.push((seed, failure, 1)),
        }
    }
    first.truncate(FINDINGS_MAX);
    let shrunk = each_on(&first, search.threads, |(seed, failure, seeds)| {
        let draft = draft_of(*seed, &search.hidden);
        let acts_before = draft.steps.len();
        let (draft, failure) = shrink::shrink(draft, failure.clone(), search.twice);
        let about = format!("Found by seed {seed}: {} fails. {}", failure.check, failure.evidence);
        Found {
            seed: *seed,
            seeds: *seeds,
            acts_before,
            acts: draft.steps.len(),
            scenario: draft.to_toml(&file_stem(&failure.check, *seed), &about),
            failure,
        }
    });
    report.found = shrunk;
    report
}

/// Name of the file of a finding, without its ending.
pub fn file_stem(check: &str, seed: u64) -> String {
    format!("{}-{seed}", check.replace('.', "-").to_lowercase())
}

/// True when the search finds a fault that is there for certain.
fn canary(seed: u64) -> bool {
    let hidden = [(CANARY.0.to_owned(), CANARY.1.to_owned())];
    (seed..seed.saturating_add(20)).any(|seed| {
        run_text(&draft_of(seed, &hidden).to_toml("canary", ""), false).failure_of(CANARY.2).is_some()
    })
}

/// What one thread saw: sums, and the failures one by one.
#[derive(Default)]
struct Tally {
    seeds: u64,
    requests: u64,
    events: u64,
    faults: BTreeMap<String, u64>,
    examined: BTreeMap<&'static str, u64>,
    failing: Vec<(u64, Failure)>,
}

impl Tally {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.requests += outcome.requests;
        self.events += outcome.events;
        for (kind, count) in outcome.faults {
            *self.faults.entry(kind).or_insert(0) += count;
        }
        for (check, count) in outcome.examined {
            *self.examined.entry(check).or_insert(0) += count;
        }
        self.failing.extend(outcome.failures.into_iter().map(|failure| (seed, failure)));
    }
}

/// Whichever thread is free takes the next seed. Sums do not depend on who added them up.
fn spread(search: &Search, go_on: &(dyn Fn() -> bool + Sync)) -> Vec<Tally> {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..search.threads.get())
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Tally::default();
                    while go_on() {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= search.seeds {
                            break;
                        }
                        let seed = search.first.saturating_add(at);
                        let text = draft_of(seed, &search.hidden).to_toml("drawn", "");
                        mine.add(seed, run_text(&text, search.twice));
                    }
                    mine
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a panic of a run is caught")).collect()
    })
}

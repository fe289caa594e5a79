//! Five laws: pure functions from a ledger to findings.
//!
//! A law knows nothing of how the ledger came about. It is made of named checks; each reports how many subjects it
//! examined, so that a check that looked at nothing is seen to be vacuous. A finding says which check, where, on what
//! evidence, what it cost and what would mend it.
//!
//! Never: a look at anything but the ledger, a clock, a random number.

mod autonomy;
mod glance;
mod history;
mod prefix;
mod residency;
mod writeback;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ledger::rebuild::{Rebuild, Rebuilt};
use crate::ledger::{Event, Lane, Ledger, Name};

/// The version of the JSON shapes of findings and verdicts.
pub const SCHEMA: u64 = 1;

/// One named check of a law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// `L1.prefix-extends`, …
    pub id: &'static str,
    /// What it demands, in one sentence.
    pub says: &'static str,
    /// What usually mends a violation.
    pub mend: &'static str,
}

impl Check {
    /// The law: `L1` to `L5`.
    pub fn law(&self) -> &'static str {
        &self.id[..2]
    }
}

/// What each law says, in order.
pub const LAWS: [(&str, &str); 5] = [
    ("L1", "cache-first invariance: inside a session every request extends the one before it byte for byte"),
    (
        "L2",
        "bounded residency: what is always resident has a hard cap, what is unbounded is loaded on demand",
    ),
    (
        "L3",
        "out-of-band, knowledge-only write-back: learning happens after delivery and writes only knowledge",
    ),
    (
        "L4",
        "structure-preserving history, verbatim recall: no call without its result, nothing lost silently",
    ),
    ("L5", "bounded autonomy, provenance-scoped maintenance: automation maintains only what it signed"),
];

/// Every check, in the order of the laws.
pub fn checks() -> Vec<Check> {
    [prefix::CHECKS, residency::CHECKS, writeback::CHECKS, history::CHECKS, autonomy::CHECKS].concat()
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check that fails.
    pub check: &'static str,
    /// Number of the event in the ledger.
    pub event: u64,
    /// The session; empty for the world at large.
    pub session: String,
    /// Where in the event: a segment, a byte, a name.
    pub place: String,
    /// What was seen.
    pub evidence: String,
    /// What was paid for it, in the ledger's unit; 0 where nothing is paid.
    pub cost: u64,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The check.
    pub check: &'static str,
    /// Subjects looked at; 0 makes the result vacuous.
    pub examined: u64,
    /// Violations.
    pub findings: Vec<Finding>,
}

/// What all checks found in one ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verdict {
    /// One entry per check, in the order of [`checks`].
    pub results: Vec<CheckResult>,
}

impl Verdict {
    /// Every finding, in the order of the checks.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.results.iter().flat_map(|result| &result.findings)
    }

    /// True when nothing was found.
    pub fn holds(&self) -> bool {
        self.findings().next().is_none()
    }

    /// Checks with findings.
    pub fn caught_by(&self) -> Vec<&'static str> {
        self.results.iter().filter(|result| !result.findings.is_empty()).map(|result| result.check).collect()
    }

    /// Subjects that a check looked at.
    pub fn examined(&self, check: &str) -> u64 {
        self.results.iter().find(|result| result.check == check).map_or(0, |result| result.examined)
    }
}

/// Collects what the checks see.
#[derive(Debug, Default)]
struct Bench {
    examined: BTreeMap<&'static str, u64>,
    findings: BTreeMap<&'static str, Vec<Finding>>,
    /// Findings that nobody was told of yet.
    fresh: Vec<Finding>,
}

/// Most findings that one check reports; more of the same say nothing new.
const FINDINGS_MAX: usize = 100;

impl Bench {
    fn examine(&mut self, check: &'static str) {
        *self.examined.entry(check).or_insert(0) += 1;
    }

    fn find(&mut self, finding: Finding) {
        let list = self.findings.entry(finding.check).or_default();
        if list.len() < FINDINGS_MAX {
            self.fresh.push(finding.clone());
            list.push(finding);
        }
    }

    /// Counts a subject and reports it when `wrong` says what is wrong with it.
    fn subject(&mut self, check: &'static str, at: &Event, wrong: Option<(String, String)>) {
        self.examine(check);
        if let Some((place, evidence)) = wrong {
            self.find(finding(check, at, place, evidence));
        }
    }
}

fn finding(check: &'static str, at: &Event, place: String, evidence: String) -> Finding {
    Finding { check, event: at.n, session: at.session.to_string(), place, evidence, cost: 0 }
}

/// What a request did to its conversation, worked out once for all laws.
#[derive(Clone, Copy)]
struct Scene<'a> {
    rebuild: &'a Rebuild,
    seen: Option<&'a Rebuilt>,
}

/// Judges events as they come; what it says at the end is what [`judge`] says of the whole ledger.
#[derive(Debug, Default)]
pub struct Judge {
    bench: Bench,
    rebuild: Rebuild,
    prefix: prefix::State,
    residency: residency::State,
    writeback: writeback::State,
    history: history::State,
    autonomy: autonomy::State,
}

impl Judge {
    /// Takes in the next event; answers with what is wrong with it.
    pub fn take(&mut self, event: &Event) -> Vec<Finding> {
        let seen = self.rebuild.apply(event);
        let scene = Scene { rebuild: &self.rebuild, seen: seen.as_ref() };
        self.prefix.take(event, &scene, &mut self.bench);
        self.residency.take(event, &mut self.bench);
        self.writeback.take(event, &scene, &mut self.bench);
        self.history.take(event, &scene, &mut self.bench);
        self.autonomy.take(event, &mut self.bench);
        std::mem::take(&mut self.bench.fresh)
    }

    /// Forgets the requests of a conversation that will be written in full if it goes on.
    pub fn forget(&mut self, session: &Name, lane: Lane) {
        self.rebuild.forget(session, lane);
        self.history.forget(session, lane);
    }

    /// What was found so far.
    pub fn verdict(&self) -> Verdict {
        let results = checks().into_iter().map(|check| CheckResult {
            check: check.id,
            examined: self.bench.examined.get(check.id).copied().unwrap_or(0),
            findings: self.bench.findings.get(check.id).cloned().unwrap_or_default(),
        });
        let verdict = Verdict { results: results.collect() };
        let told = verdict.findings().count();
        let found: usize = self.bench.findings.values().map(Vec::len).sum();
        assert_eq!(told, found, "a finding of an unlisted check: {:?}", self.bench.findings.keys());
        verdict
    }
}

/// Judges a ledger by all five laws.
pub fn judge(ledger: &Ledger) -> Verdict {
    let mut judge = Judge::default();
    for event in &ledger.events {
        judge.take(event);
    }
    judge.verdict()
}

/// A text cut to what fits in a line of a report.
fn excerpt(text: &str) -> String {
    /// Characters of evidence that a person reads.
    const CHARS_MAX: usize = 160;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX - 1).chain(['…']).collect()
}

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

use crate::ledger::Ledger;

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
            list.push(finding);
        }
    }

    /// Counts a subject and reports it when `wrong` says what is wrong with it.
    fn subject(&mut self, check: &'static str, at: &crate::ledger::Event, wrong: Option<(String, String)>) {
        self.examine(check);
        if let Some((place, evidence)) = wrong {
            self.find(finding(check, at, place, evidence));
        }
    }
}

fn finding(check: &'static str, at: &crate::ledger::Event, place: String, evidence: String) -> Finding {
    Finding { check, event: at.n, session: at.session.to_string(), place, evidence, cost: 0 }
}

/// Judges a ledger by all five laws.
pub fn judge(ledger: &Ledger) -> Verdict {
    let mut bench = Bench::default();
    prefix::judge(ledger, &mut bench);
    residency::judge(ledger, &mut bench);
    writeback::judge(ledger, &mut bench);
    history::judge(ledger, &mut bench);
    autonomy::judge(ledger, &mut bench);
    let results = checks()
        .into_iter()
        .map(|check| CheckResult {
            check: check.id,
            examined: bench.examined.get(check.id).copied().unwrap_or(0),
            findings: bench.findings.remove(check.id).unwrap_or_default(),
        })
        .collect();
    assert!(bench.findings.is_empty(), "a finding of an unlisted check: {:?}", bench.findings.keys());
    Verdict { results }
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

//! Whether each request extends the one before it, and what the provider really read.

use serde::Serialize;

use crate::audit::summary::{round, summarise};
use crate::audit::{Audit, Judged};
use crate::laws;
use crate::live::suites::Run;

/// What a law found in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LawBroken {
    /// The run.
    pub run: String,
    /// The check.
    pub check: String,
    /// What was seen.
    pub evidence: String,
}

/// Stability of the prefix over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefix {
    /// Runs that were finished, and so judged.
    pub runs: usize,
    /// Requests that the audit looked at.
    pub requests: usize,
    /// Pairs of a request and the one that it follows.
    pub pairs: usize,
    /// Pairs whose later request extends the earlier one.
    pub extend: usize,
    /// Breaks that a compaction explains.
    pub planned: usize,
    /// Breaks that nothing explains, in words.
    pub unplanned: Vec<String>,
    /// Share of the prompts that the provider says it read.
    pub read_share: f64,
    /// Share that could have been read.
    pub reachable_share: f64,
    /// What the laws found.
    pub laws: Vec<LawBroken>,
}

impl Prefix {
    pub(super) fn of(runs: &[Run], audit: &Audit) -> Self {
        let pairs: Vec<_> = audit.requests.iter().filter(|judged| judged.base.is_some()).collect();
        let broken = pairs.iter().filter(|judged| judged.broken);
        let (planned, unplanned): (Vec<&Judged>, Vec<&Judged>) =
            broken.copied().partition(|judged| judged.planned);
        let laws = runs.iter().flat_map(|run| {
            let verdict = laws::judge(&run.played.ledger);
            let broken = verdict.findings().map(|finding| LawBroken {
                run: run.name.clone(),
                check: finding.check.to_owned(),
                evidence: finding.evidence.clone(),
            });
            broken.collect::<Vec<_>>()
        });
        let summary = summarise(audit);
        Self {
            runs: runs.len(),
            requests: audit.count(),
            pairs: pairs.len(),
            extend: pairs.iter().filter(|judged| !judged.broken).count(),
            planned: planned.len(),
            unplanned: unplanned
                .iter()
                .map(|judged| {
                    let name = audit.name(judged.conversation);
                    format!(
                        "request {} of {name}: {} at {}",
                        judged.line,
                        judged.cause.word(),
                        judged.pointer
                    )
                })
                .collect(),
            read_share: round(summary.hit_rate()),
            reachable_share: round(summary.hit_rate_reachable()),
            laws: laws.collect(),
        }
    }

    /// True when something was judged, and nothing broke that was not to.
    pub fn holds(&self) -> bool {
        self.runs > 0 && self.pairs > 0 && self.unplanned.is_empty() && self.laws.is_empty()
    }
}

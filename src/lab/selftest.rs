//! The lab checks itself: every shipped scenario holds, every break is caught, every check looked at something, every
//! run is deterministic.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lab::breaks::{SHIPPED, shipped_scenario};
use crate::lab::play::{Plan, PlayError, play, play_to_end};
use crate::lab::{breaks, expect, matrix, runs};
use crate::laws;
use crate::ledger::first_difference;
use crate::scenario::shipped;

/// One step of the self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was looked at.
    pub name: String,
    /// What it says when it holds.
    pub says: String,
    /// Whether it holds.
    pub holds: bool,
    /// What does not hold.
    pub details: Vec<String>,
}

/// The whole self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelfTest {
    /// Version of the shape.
    pub schema: u64,
    /// The steps.
    pub steps: Vec<Step>,
}

impl SelfTest {
    /// True when every step holds.
    pub fn holds(&self) -> bool {
        self.steps.iter().all(|step| step.holds)
    }
}

fn step(name: &str, says: String, details: Vec<String>) -> Step {
    Step { name: name.to_owned(), says, holds: details.is_empty(), details }
}

/// Runs the self-test.
///
/// # Errors
/// When a shipped scenario cannot be played.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn run() -> Result<SelfTest, PlayError> {
    let mut examined: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut findings, mut expectations, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for (name, _) in shipped() {
        let scenario = shipped_scenario(name).expect("a shipped scenario");
        let played = play_to_end(&scenario, &Plan::default())?;
        let ledger = &played.ledger;
        let again = play(&scenario, &Plan::default())?;
        if let Some(difference) = first_difference(ledger, &again) {
            differences.push(format!("{name}: line {} of the ledger differs", difference.line));
        }
        let verdict = laws::judge(ledger);
        for result in &verdict.results {
            *examined.entry(result.check).or_insert(0) += result.examined;
        }
        findings.extend(verdict.findings().map(|finding| {
            format!("{name}: {} at event {}: {}", finding.check, finding.event, finding.evidence)
        }));
        let wrong = expect::judge(&scenario, &played).into_iter().filter(|judged| !judged.holds);
        expectations.extend(wrong.map(|judged| {
            format!("{name}: {} expected {}, found {}", judged.name, judged.expected, judged.found)
        }));
    }
    let vacuous: Vec<String> = laws::checks()
        .iter()
        .filter(|check| examined.get(check.id).copied().unwrap_or(0) == 0)
        .map(|check| format!("{} looked at nothing in any scenario", check.id))
        .collect();
    let shown = breaks::show_all(&runs::shipped())?;
    let claims = shown
        .iter()
        .filter(|shown| !shown.holds)
        .map(|shown| format!("{}: caught by {:?}, figures {:?}", shown.id, shown.caught_by, shown.figures))
        .collect();
    let problems = matrix::build()?.problems();
    let looked = laws::checks().len();
    Ok(SelfTest {
        schema: laws::SCHEMA,
        steps: vec![
            step("laws", format!("{} scenarios break no law", shipped().len()), findings),
            step("expectations", "every scenario ends as it says".to_owned(), expectations),
            step("determinism", "every scenario gives the same bytes twice".to_owned(), differences),
            step("vacuity", format!("{looked} checks all looked at something"), vacuous),
            step("claims", format!("{} breaks degrade as they claim", SHIPPED.len()), claims),
            step("matrix", "every break is caught by its law, every check can fail".to_owned(), problems),
        ],
    })
}

//! Every expectation of the suites is made to fail once, by what its scenario names for it.
//!
//! A tamper changes the scenario's text (the model acts otherwise, the world answers otherwise) or turns knobs. An
//! expectation that nothing makes fail says nothing.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::lab::expect;
use crate::lab::play::{Plan, play_to_end};
use crate::policy::Overlay;
use crate::scenario::{self, Scenario, TamperSpec};

/// What one tamper did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The scenario.
    pub scenario: String,
    /// What was done.
    pub tamper: String,
    /// Expectations that it must make fail.
    pub fails: Vec<String>,
    /// Why it proves nothing; none when every one of them failed.
    pub problem: Option<String>,
}

/// Carries out every tamper of every scenario of the suites, and names expectations that none of them reaches.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn prove() -> Vec<Proof> {
    let mut proofs = Vec::new();
    for (name, text) in scenario::suite() {
        let scenario = super::task(name).expect("a shipped scenario");
        let mut reached = BTreeSet::new();
        for tamper in &scenario.tampers {
            reached.extend(tamper.fails.iter().cloned());
            proofs.push(Proof {
                scenario: scenario.name.clone(),
                tamper: tamper.name.clone(),
                fails: tamper.fails.clone(),
                problem: carry_out(&scenario, text, tamper).err(),
            });
        }
        for expect in scenario.expects.iter().filter(|expect| !reached.contains(&expect.title())) {
            proofs.push(Proof {
                scenario: scenario.name.clone(),
                tamper: "none".to_owned(),
                fails: vec![expect.title()],
                problem: Some("nothing makes it fail".to_owned()),
            });
        }
    }
    proofs
}

/// Carries out one tamper of a scenario whose file has this text.
///
/// # Errors
/// Why it proves nothing.
pub fn carry_out(scenario: &Scenario, text: &str, tamper: &TamperSpec) -> Result<(), String> {
    let mut plan = Plan::default();
    plan.above.push(Overlay::from_table(&tamper.turn));
    let tampered = match (&tamper.find, &tamper.put) {
        (Some(find), Some(put)) => {
            // The tampers themselves stand at the end of the file and stay as they are.
            let end = text.find("\n[[tamper]]").unwrap_or(text.len());
            let (world, tampers) = text.split_at(end);
            if !world.contains(find.as_str()) {
                return Err(format!("`{find}` does not occur"));
            }
            let changed = world.replace(find.as_str(), put) + tampers;
            let load = scenario::load(&scenario.name, &changed);
            load.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?
        }
        _ => scenario.clone(),
    };
    let played = play_to_end(&tampered, &plan).map_err(|error| format!("cannot be played: {error}"))?;
    let judged = expect::judge(&tampered, &played);
    let held: Vec<&str> = tamper
        .fails
        .iter()
        .filter(|name| judged.iter().any(|judged| judged.name == **name && judged.holds))
        .map(String::as_str)
        .collect();
    if held.is_empty() { Ok(()) } else { Err(format!("still holds: {}", held.join(", "))) }
}

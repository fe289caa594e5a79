//! The proof that the search sees: a break is hidden in drawn runs, and the check that its file promises finds it.
//!
//! A seed proves a break when a promised check fails in its broken run and holds in the intact run of the same seed.
//! Any other check that fails proves nothing.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::{draft_of, knobs_of, run_text};
use crate::lab::breaks::Break;
use crate::lab::runs::each_on;

/// Breaks that a search has to find: the faults of the harness that were known before there was a search.
pub const PROVED: [&str; 20] = [
    "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12", "D13", "D14", "D15", "D16",
    "D17", "D18", "D19", "D20",
];

/// What was found of one break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The break.
    pub id: String,
    /// One line for lists.
    pub title: String,
    /// Checks that its file promises.
    pub promised: Vec<String>,
    /// The first seed that proves it.
    pub seed: Option<u64>,
    /// The promised checks that failed there, and only in the broken run.
    pub caught_by: Vec<String>,
    /// Seeds that were played, the proving one included.
    pub seeds: u64,
    /// Requests of their broken runs.
    pub requests: u64,
}

/// Promised checks that this seed fails when the break is hidden in it, and only then; with the requests of the run.
pub fn caught_by(found: &Break, seed: u64) -> (Vec<String>, u64) {
    let run = |knobs: &[(String, String)]| run_text(&draft_of(seed, knobs).to_toml("drawn", ""), false);
    let both = knobs_of(&[&found.with]);
    let broken = run(&knobs_of(&[&found.with, &found.turn]));
    let mut caught: Vec<String> =
        found.caught_by.iter().filter(|check| broken.failure_of(check).is_some()).cloned().collect();
    if !caught.is_empty() {
        let intact = run(&both);
        caught.retain(|check| intact.failure_of(check).is_none());
    }
    (caught, broken.requests)
}

/// Looks for each break in at most `seeds` seeds from `first` on.
pub fn prove(breaks: &[Break], first: u64, seeds: u64, threads: NonZeroUsize) -> Vec<Proof> {
    each_on(breaks, threads, |found| {
        let mut proof = Proof {
            id: found.id.clone(),
            title: found.title.clone(),
            promised: found.caught_by.clone(),
            seed: None,
            caught_by: Vec::new(),
            seeds: 0,
            requests: 0,
        };
        for seed in first..first.saturating_add(seeds) {
            let (caught, requests) = caught_by(found, seed);
            proof.seeds += 1;
            proof.requests += requests;
            if !caught.is_empty() {
                (proof.seed, proof.caught_by) = (Some(seed), caught);
                break;
            }
        }
        proof
    })
}

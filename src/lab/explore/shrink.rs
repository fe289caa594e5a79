//! Takes away from a failing draft whatever the failure does not need.
//!
//! Greedy and in a fixed order: acts first, in ever smaller pieces, then faults, knobs, things and rules, then what
//! is inside the turns; from the start again as long as something could go. What counts is that the same check still
//! fails.

use super::draft::{Draft, Move};
use super::{Failure, run_text};

/// Runs that one shrink may cost.
const RUNS_MAX: usize = 1_500;

struct Shrinker {
    best: Draft,
    failure: Failure,
    twice: bool,
    runs: usize,
}

/// The smallest draft found that fails the same check, and how it fails.
pub fn shrink(draft: Draft, failure: Failure, twice: bool) -> (Draft, Failure) {
    let mut shrinker = Shrinker { best: draft, failure, twice, runs: 0 };
    loop {
        let before = shrinker.best.weight();
        shrinker.pass();
        if shrinker.best.weight() >= before || shrinker.runs >= RUNS_MAX {
            return (shrinker.best, shrinker.failure);
        }
    }
}

impl Shrinker {
    /// Keeps a candidate that fails the same check.
    fn try_out(&mut self, candidate: Draft) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        self.runs += 1;
        let outcome = run_text(&candidate.to_toml("drawn", ""), self.twice);
        let Some(failure) = outcome.failures.into_iter().find(|failure| failure.is_like(&self.failure))
        else {
            return false;
        };
        self.failure = failure;
        self.best = candidate;
        true
    }

    fn pass(&mut self) {
        self.pieces(|draft| draft.steps.len(), |draft, from, to| drop(draft.steps.drain(from..to)));
        self.pieces(
            |draft| draft.steps.iter().map(|step| step.faults.len()).sum(),
            |draft, from, to| {
                let mut place = 0;
                for step in &mut draft.steps {
                    step.faults.retain(|_| {
                        place += 1;
                        !(from..to).contains(&(place - 1))
                    });
                }
            },
        );
        self.pieces(|draft| draft.knobs.len(), |draft, from, to| drop(draft.knobs.drain(from..to)));
        self.pieces(|draft| draft.things.len(), |draft, from, to| drop(draft.things.drain(from..to)));
        self.pieces(|draft| draft.rules.len(), |draft, from, to| drop(draft.rules.drain(from..to)));
        for place in 0..self.best.steps.len() {
            self.turn(place);
        }
    }

    /// Removes pieces of a list, large ones first.
    fn pieces(&mut self, len: impl Fn(&Draft) -> usize, remove: impl Fn(&mut Draft, usize, usize)) {
        let mut size = len(&self.best);
        while size > 0 {
            let mut from = 0;
            while from < len(&self.best) {
                let to = (from + size).min(len(&self.best));
                let mut candidate = self.best.clone();
                remove(&mut candidate, from, to);
                if !self.try_out(candidate) {
                    from = to;
                }
            }
            size /= 2;
        }
    }

    /// What is inside one turn: rounds, single calls, what stands beside, words.
    fn turn(&mut self, place: usize) {
        let rounds = |draft: &Draft| match draft.steps.get(place).map(|step| &step.act) {
            Some(Move::Turn { rounds, .. }) => rounds.len(),
            _ => 0,
        };
        self.pieces(rounds, |draft, from, to| {
            if let Move::Turn { rounds, .. } = &mut draft.steps[place].act {
                rounds.drain(from..to);
            }
        });
        for round in 0..rounds(&self.best) {
            let calls = |draft: &Draft| match &draft.steps[place].act {
                Move::Turn { rounds, .. } => rounds.get(round).map_or(0, Vec::len).saturating_sub(1),
                Move::Other(_) => 0,
            };
            // One call stays: a reply without words and calls is none.
            self.pieces(calls, |draft, from, to| {
                if let Move::Turn { rounds, .. } = &mut draft.steps[place].act {
                    rounds[round].drain(from..to);
                }
            });
        }
        let mut candidate = self.best.clone();
        if let Move::Turn { session, say, beside, answer, .. } = &mut candidate.steps[place].act {
            let words = (say.clone(), answer.clone());
            "Go on.".clone_into(say);
            "Done.".clone_into(answer);
            session.take();
            beside.clear();
            let changed = (say.as_str(), answer.as_str()) != (words.0.as_str(), words.1.as_str());
            if changed {
                self.try_out(candidate);
            }
        }
    }
}

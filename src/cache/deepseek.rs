//! DeepSeek from 2026 on: prefixes are matched in whole units.
//!
//! A unit ends where a request's input ended, where its answer ended, where two requests were seen to part, and at
//! fixed intervals of long texts. A prompt that shares less than a whole unit reads nothing of it.

use std::collections::BTreeMap;

use crate::cache::known::{self, Known};
use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal};
use crate::wire::Chain;
use crate::world::Millis;

/// Constants of the unit cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Fixed interval of units, in tokens; none when absent.
    pub interval: Option<u64>,
    /// Time without use after which a unit is gone, in milliseconds; never when absent.
    pub idle: Option<Millis>,
    /// Time until a unit can be matched, in milliseconds.
    pub settle: Millis,
    /// Shortest hit, in tokens.
    pub tokens_min: u64,
}

/// The unit cache.
#[derive(Debug, Clone, Default)]
pub struct Units {
    rules: Rules,
    spaces: Spaces,
    known: BTreeMap<Space, Known>,
    /// Ends of units, and from when on each can be matched.
    ends: BTreeMap<(Space, Chain), Millis>,
}

impl Units {
    /// An empty cache with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }
}

impl PrefixCache for Units {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let Some(end) = request.chains.last().copied() else { return Ok(Outcome::default()) };
        let space = self.spaces.number(&[request.model, request.org], std::iter::empty());
        let known = self.known.entry(space).or_default();
        let found = known.find(request, at, self.rules.idle);
        let parting = found.readable;
        let matched = parting.and_then(|parting| {
            let whole = |position: &usize| {
                self.ends.get(&(space, request.chains[*position])).is_some_and(|ready| *ready <= at)
            };
            (0..=parting).rev().find(whole)
        });
        let mut read = request.size_to(matched);
        if let Some(interval) = self.rules.interval.filter(|interval| *interval > 0) {
            read = read.max(request.size_to(parting) / interval * interval);
        }
        if read < self.rules.tokens_min {
            read = 0;
        }
        let ready = at.saturating_add(self.rules.settle);
        match request.output {
            Some(output) => {
                let mut chains = request.chains.to_vec();
                chains.push(output.chain);
                known.note_chains(&chains, found.stored, at, ready);
                self.ends.entry((space, output.chain)).or_insert(ready);
            }
            None => known.note(request, found.stored, at, ready),
        }
        self.ends.entry((space, end)).or_insert(ready);
        if let Some(parting) = parting {
            self.ends.entry((space, request.chains[parting])).or_insert(ready);
        }
        Ok(Outcome::read_of(read, request.total()))
    }

    fn forget(&mut self, at: Millis) {
        known::forget(&mut self.known, &mut self.ends, at, self.rules.idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn an_interval_makes_units_inside_a_text() {
        let mut units = Units::new(Rules { interval: Some(256), ..Rules::default() });
        assert_eq!(prompt("a:1000 b:400").read(&mut units, 0), 0);
        assert_eq!(prompt("a:1000 c:500").read(&mut units, 1), 768);
        assert_eq!(prompt("a:1000 d:600").read(&mut units, 2), 1_000, "where the two parted is a unit, too");
    }

    #[test]
    fn a_unit_has_to_settle_and_dies_of_idleness() {
        let mut units = Units::new(Rules { settle: 10, idle: Some(100), ..Rules::default() });
        assert_eq!(prompt("a:100").read(&mut units, 0), 0);
        assert_eq!(prompt("a:100 b:5").read(&mut units, 9), 0);
        assert_eq!(prompt("a:100 c:5").read(&mut units, 19), 100);
        assert_eq!(prompt("a:100 d:5").read(&mut units, 119), 100);
        assert_eq!(prompt("a:100 e:5").read(&mut units, 220), 0);
    }
}

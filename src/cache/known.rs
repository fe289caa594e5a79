//! Which prefixes have been sent, when they were last used, and how much of a new prompt is among them.
//!
//! A prefix is used whenever a longer one is. So known prefixes of one prompt are a leading run, live ones are a
//! leading run of those, and both ends are found by bisection. A growing prompt costs its new part and a logarithm.
//!
//! Prefixes are grouped in branches: a branch begins where a prompt first departs from what was known. A branch
//! keeps its uses as pairs (furthest position, instant) of which only those that still say something stay.

use std::collections::BTreeMap;

use crate::cache::Observed;
use crate::cache::space::Space;
use crate::wire::Chain;
use crate::world::Millis;

#[derive(Debug, Clone, Copy)]
struct Place {
    branch: usize,
    /// When it can be read.
    visible: Millis,
}

#[derive(Debug, Clone)]
struct Branch {
    /// The branch that it grew from, and the last position shared with it.
    parent: Option<(usize, usize)>,
    tip: usize,
    /// Positions fall, instants rise: a later use of more makes an earlier use of less redundant.
    uses: Vec<(usize, Millis)>,
}

/// Known prefixes of one space.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    places: BTreeMap<Chain, Place>,
    branches: Vec<Branch>,
}

/// How much of a prompt is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    /// Last position that can be read.
    pub(super) readable: Option<usize>,
    /// Last position that is stored, readable yet or not.
    pub(super) stored: Option<usize>,
}

impl Known {
    /// How much of this prompt is known at `at`; what was not used for longer than `idle` is gone.
    pub(super) fn find(&self, request: &Observed<'_>, at: Millis, idle: Option<Millis>) -> Match {
        let stored = last(request.chains.len(), |position| self.live(request, position, at, idle));
        let upto = stored.map_or(0, |position| position + 1);
        let readable = last(upto, |position| {
            self.places.get(&request.chains[position]).is_some_and(|place| place.visible <= at)
        });
        Match { readable, stored }
    }

    fn live(&self, request: &Observed<'_>, position: usize, at: Millis, idle: Option<Millis>) -> bool {
        let Some(place) = self.places.get(&request.chains[position]) else { return false };
        let uses = &self.branches[place.branch].uses;
        let reaching = uses.partition_point(|(furthest, _)| *furthest >= position);
        let Some((_, used)) = reaching.checked_sub(1).map(|index| uses[index]) else { return false };
        idle.is_none_or(|idle| at.saturating_sub(used) <= idle)
    }

    /// Gives up branches that were not used for longer than `idle`.
    fn forget(&mut self, at: Millis, idle: Option<Millis>) {
        let Some(idle) = idle else { return };
        let branches = &mut self.branches;
        let dead =
            |branch: &Branch| branch.uses.last().is_none_or(|(_, used)| at.saturating_sub(*used) > idle);
        self.places.retain(|_, place| !dead(&branches[place.branch]));
        if self.places.is_empty() {
            branches.clear();
        } else {
            branches.iter_mut().filter(|branch| dead(branch)).for_each(|branch| branch.uses = Vec::new());
        }
    }

    /// Notes that this prompt was sent at `at`; what is new can be read from `visible` on.
    pub(super) fn note(
        &mut self,
        request: &Observed<'_>,
        stored: Option<usize>,
        at: Millis,
        visible: Millis,
    ) {
        self.note_chains(request.chains, stored, at, visible);
    }

    /// The same for a sequence of digests.
    pub(super) fn note_chains(
        &mut self,
        chains: &[Chain],
        stored: Option<usize>,
        at: Millis,
        visible: Millis,
    ) {
        let Some(tip) = chains.len().checked_sub(1) else { return };
        let onto = stored.map(|position| (self.places[&chains[position]].branch, position));
        let branch = match onto {
            Some((branch, position)) if position == tip || self.branches[branch].tip == position => branch,
            _ => {
                self.branches.push(Branch { parent: onto, tip, uses: Vec::new() });
                self.branches.len() - 1
            }
        };
        let new = stored.map_or(0, |position| position + 1);
        for chain in &chains[new..] {
            self.places.insert(*chain, Place { branch, visible });
        }
        self.branches[branch].tip = self.branches[branch].tip.max(tip);
        let mut next = Some((branch, tip));
        while let Some((branch, furthest)) = next {
            let branch = &mut self.branches[branch];
            while branch.uses.last().is_some_and(|(earlier, _)| *earlier <= furthest) {
                branch.uses.pop();
            }
            branch.uses.push((furthest, at));
            next = branch.parent;
        }
    }
}

/// Gives up what was not used for longer than `idle`, and what is known of the ends of such prompts.
pub(super) fn forget<T>(
    known: &mut BTreeMap<Space, Known>,
    ends: &mut BTreeMap<(Space, Chain), T>,
    at: Millis,
    idle: Option<Millis>,
) {
    for known in known.values_mut() {
        known.forget(at, idle);
    }
    ends.retain(|(space, end), _| known.get(space).is_some_and(|known| known.places.contains_key(end)));
}

/// The last position of a leading run, by bisection.
fn last(len: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Level, Segment};

    fn chains(labels: &str) -> Vec<Chain> {
        let mut chain = Chain::EMPTY;
        let mut next = |label: char| {
            chain = chain.then(&Segment::new(Level::Messages, label.to_string()));
            chain
        };
        labels.chars().map(&mut next).collect()
    }

    fn send(known: &mut Known, labels: &str, at: Millis, idle: Millis) -> Option<usize> {
        let chains = chains(labels);
        let request = Observed { chains: &chains, ..Observed::default() };
        let found = known.find(&request, at, Some(idle));
        known.note(&request, found.stored, at, at);
        found.readable
    }

    #[test]
    fn using_a_long_prefix_keeps_the_shorter_ones_and_no_longer_one() {
        let mut known = Known::default();
        assert_eq!(send(&mut known, "abcdef", 0, 10), None);
        assert_eq!(send(&mut known, "abcd", 8, 10), Some(3));
        assert_eq!(send(&mut known, "abcdef", 16, 10), Some(3), "e and f were not used for longer than 10");
        assert_eq!(send(&mut known, "abcx", 26, 10), Some(2), "abcd was used at 16 on the way to abcdef");
        assert_eq!(send(&mut known, "abcx", 37, 10), None);
    }

    #[test]
    fn what_grew_from_a_branch_keeps_that_branch_alive_up_to_the_fork() {
        let mut known = Known::default();
        send(&mut known, "abc", 0, 10);
        send(&mut known, "abX", 5, 10);
        send(&mut known, "abXY", 14, 10);
        send(&mut known, "abXYZ", 23, 10);
        assert_eq!(send(&mut known, "abc", 30, 10), Some(1));
    }
}

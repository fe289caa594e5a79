//! OpenAI from GPT-5.6 on: boundaries at message ends, written for a fee, read exactly.
//!
//! In implicit mode a request writes one boundary at the end of its latest eligible message, and looks up that one,
//! earlier eligible ends and the end of the initial instructions. Marked blocks are boundaries in either mode.
//! Eligible are user messages, the last response of a group of tools, and the last of the initial instructions.

use std::collections::BTreeMap;

use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal, Speaker, Ttl};
use crate::policy;
use crate::wire::{Chain, Level};
use crate::world::{Millis, clock};

/// Shortest prefix, in tokens.
pub(super) const TOKENS_MIN: u64 = 1_024;

/// Settings that belong to the key.
const KEYED: &[&str] = &[
    "context_management",
    "effort",
    "parallel_tool_calls",
    "reasoning.effort",
    "response_format",
    "text.format",
    "text.verbosity",
    "text_format",
    "verbosity",
];

/// Rules of the boundary cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Shortest prefix that is cached, in tokens.
    pub tokens_min: u64,
    /// Life of a boundary without use, in milliseconds.
    pub lifetime: Millis,
    /// Only marked blocks are boundaries, unless a request says otherwise.
    pub explicit: bool,
    /// Boundaries written by a request.
    pub writes_max: usize,
    /// Earlier eligible ends that are looked up.
    pub earlier_ends: usize,
    /// First markers that are looked up.
    pub markers_first: usize,
    /// Latest markers that are looked up.
    pub markers_latest: usize,
    /// A boundary inside the part that was read leaves an entry.
    pub entry_inside_hit: bool,
}

impl Rules {
    /// The rules as the knobs have them.
    pub fn of(knobs: &policy::Cache) -> Self {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let lifetime = Millis::try_from(knobs.openai_lifetime).unwrap_or(Millis::MAX / clock::SECOND);
        Self {
            tokens_min: knobs.tokens_min.unwrap_or(TOKENS_MIN),
            lifetime: lifetime * clock::SECOND,
            explicit: knobs.openai_explicit,
            writes_max: count(knobs.openai_writes_max),
            earlier_ends: count(knobs.openai_earlier_ends),
            markers_first: count(knobs.openai_markers_first),
            markers_latest: count(knobs.openai_markers_latest),
            entry_inside_hit: knobs.entry_inside_hit,
        }
    }
}

/// The boundary cache.
#[derive(Debug, Clone)]
pub struct Boundaries {
    rules: Rules,
    spaces: Spaces,
    used: BTreeMap<(Space, Chain), Millis>,
}

impl Boundaries {
    /// An empty cache with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, spaces: Spaces::default(), used: BTreeMap::new() }
    }
}

impl PrefixCache for Boundaries {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let rules = &self.rules;
        // A marker with another provider's lifetime is none of ours.
        let own_marks = request.marks.iter().filter(|(_, ttl)| *ttl == Ttl::Minutes30);
        let marks: Vec<usize> = own_marks.map(|(position, _)| *position).collect();
        let explicit = request.explicit.unwrap_or(rules.explicit);
        let own = if explicit { None } else { ends(request).next() };
        let mut lookups = looked_up(rules, &marks);
        if !explicit {
            lookups.extend(ends(request).take(rules.earlier_ends.saturating_add(1)));
            lookups.extend(instructions_end(request));
        }
        let params = request.params.iter().filter(|(name, value)| KEYED.contains(name) && *value != "null");
        let space = self.spaces.number(&[request.model, request.org, request.key], params);
        let key = |position: usize| (space, request.chains[position]);
        let live = |position: &usize| {
            self.used.get(&key(*position)).is_some_and(|used| at.saturating_sub(*used) <= rules.lifetime)
        };
        lookups.sort_unstable();
        let hit = lookups.into_iter().rev().find(live);
        // The own boundary takes one slot; the latest markers take the others.
        let slots = rules.writes_max.saturating_sub(usize::from(own.is_some()));
        let mut writes = marks[marks.len().saturating_sub(slots)..].to_vec();
        writes.extend(own);
        writes.retain(|position| request.sizes[*position] >= rules.tokens_min);
        writes.retain(|position| {
            rules.entry_inside_hit || hit.is_none_or(|hit| *position > hit) || live(position)
        });
        let read = request.size_to(hit);
        let upto = writes.iter().map(|position| request.sizes[*position]).max().unwrap_or(0).max(read);
        for position in writes.into_iter().chain(hit) {
            self.used.insert(key(position), at);
        }
        let mut outcome = Outcome { read, uncached: request.total() - upto, ..Outcome::default() };
        outcome.write(Ttl::Minutes30, upto - read);
        Ok(outcome)
    }

    fn forget(&mut self, at: Millis) {
        let lifetime = self.rules.lifetime;
        self.used.retain(|_, used| at.saturating_sub(*used) <= lifetime);
    }
}

fn looked_up(rules: &Rules, marks: &[usize]) -> Vec<usize> {
    let first = rules.markers_first.min(marks.len());
    let latest = marks.len().saturating_sub(rules.markers_latest).max(first);
    marks[..first].iter().chain(&marks[latest..]).copied().collect()
}

/// The last position of the instructions that a prompt begins with.
fn instructions_end(request: &Observed<'_>) -> Option<usize> {
    let instructs = |position: &usize| {
        let facts = request.facts_of(*position);
        facts.level != Level::Messages || facts.speaker == Speaker::Developer
    };
    let end = (0..request.chains.len()).take_while(instructs).last()?;
    (request.facts_of(end).level != Level::Tools).then_some(end)
}

/// Eligible message ends, the latest first.
fn ends<'a>(request: &'a Observed<'_>) -> impl Iterator<Item = usize> + 'a {
    let instructions = instructions_end(request);
    (0..request.chains.len()).rev().filter(move |&position| {
        let facts = request.facts_of(position);
        match facts.speaker {
            _ if facts.level != Level::Messages => Some(position) == instructions,
            Speaker::User => true,
            Speaker::Developer => Some(position) == instructions,
            Speaker::Assistant => false,
            Speaker::Tool => {
                let next = position + 1;
                next == request.chains.len() || request.facts_of(next).speaker != Speaker::Tool
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn more_markers_than_slots_write_the_latest_ones() {
        let mut cache = Boundaries::new(Rules { tokens_min: 1, ..Rules::of(&policy::Cache::default()) });
        let marked = "a:10*30m b:10*30m c:10*30m d:10*30m q:5";
        assert_eq!(prompt(marked).send(&mut cache, 0).unwrap().write_30m, 45);
        assert_eq!(
            prompt("a:10*30m x:5").read(&mut cache, 1),
            0,
            "three slots remain beside the implicit one"
        );
        assert_eq!(prompt("a:10 b:10*30m x:5").read(&mut cache, 2), 20);
    }

    #[test]
    fn markers_of_another_provider_are_no_boundaries() {
        let mut cache = Boundaries::new(Rules { tokens_min: 1, ..Rules::of(&policy::Cache::default()) });
        prompt("a:10*5m b:10").read(&mut cache, 0);
        assert_eq!(prompt("a:10*5m c:10").read(&mut cache, 1), 0);
    }
}

//! Anthropic Messages: explicit markers, five minutes or one hour, looked back over 20 positions.
//!
//! Source: the provider's page on prompt caching, August 2026. An entry is the digest of everything up to a marker;
//! reading starts at each marker and walks back; the longest hit counts; every use restarts the entry's lifetime,
//! counted from the start of the request.

use std::collections::BTreeMap;

use crate::cache::{Observed, Outcome, PrefixCache, Refusal, Ttl};
use crate::wire::Chain;
use crate::world::{Millis, clock};

/// Rules of the explicit cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Markers that a request may carry.
    pub breakpoints_max: usize,
    /// Positions that a marker looks at, its own included.
    pub lookback: usize,
    /// Shortest prefix that is cached, in tokens.
    pub tokens_min: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { breakpoints_max: 4, lookback: 20, tokens_min: 1_024 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    ttl: Ttl,
    used: Millis,
}

/// The explicit cache of one workspace.
#[derive(Debug, Clone, Default)]
pub struct Explicit {
    rules: Rules,
    entries: BTreeMap<(String, Chain), Entry>,
}

impl Explicit {
    /// An empty cache with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, entries: BTreeMap::new() }
    }

    fn live(&mut self, at: Millis, key: &(String, Chain)) -> bool {
        self.entries.get(key).is_some_and(|entry| at - entry.used <= lifetime(entry.ttl))
    }
}

fn lifetime(ttl: Ttl) -> Millis {
    match ttl {
        Ttl::Minutes5 => 5 * clock::MINUTE,
        Ttl::Hour1 => clock::HOUR,
    }
}

impl PrefixCache for Explicit {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        if request.marks.len() > self.rules.breakpoints_max {
            return Err(Refusal::TooManyBreakpoints);
        }
        if request.marks.windows(2).any(|pair| pair[0].1 < pair[1].1) {
            return Err(Refusal::TtlOrder);
        }
        let total = request.sizes.last().copied().unwrap_or(0);
        let key = |position: usize| (request.model.to_owned(), request.chains[position]);
        let mut hit = None;
        for &(mark, _) in request.marks.iter().rev() {
            let lowest = (mark + 1).saturating_sub(self.rules.lookback);
            let found = (lowest..=mark).rev().find(|&position| self.live(at, &key(position)));
            hit = hit.max(found);
        }
        let read = hit.map_or(0, |position| request.sizes[position]);
        if let Some(entry) = hit.and_then(|position| self.entries.get_mut(&key(position))) {
            entry.used = at;
        }
        let mut outcome = Outcome { read, ..Outcome::default() };
        let mut upto = read;
        for &(mark, ttl) in request.marks {
            let size = request.sizes[mark];
            if size < self.rules.tokens_min {
                continue;
            }
            if size > upto {
                match ttl {
                    Ttl::Minutes5 => outcome.write_5m += size - upto,
                    Ttl::Hour1 => outcome.write_1h += size - upto,
                }
                upto = size;
            }
            let entry = self.entries.entry(key(mark)).or_insert(Entry { ttl, used: at });
            entry.used = at;
        }
        outcome.uncached = total - upto;
        Ok(outcome)
    }
}

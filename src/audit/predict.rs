//! What a request should have read: a walk over explicit markers.
//!
//! One entry a marker: the hash of everything up to it. A lookup begins at each marker and walks back over a limited
//! number of positions; the longest entry wins. A read restarts the clock of what it read. Keys contain the model,
//! and for messages the parameters too.
//!
//! Never: a guess about tokens. It answers in segments.

use indexmap::IndexMap;
use std::hash::BuildHasherDefault;

use crate::audit::prompt::{Kind, PassThrough, Prompt};
use crate::cache::Ttl;
use crate::wire::Level;
use crate::world::Millis;

/// The rules of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Positions that a marker looks at, its own included.
    pub lookback: usize,
    /// Markers that a request may carry.
    pub marks_max: usize,
    /// A run of calls or of results counts as one position.
    pub collapse_tool_runs: bool,
}

impl Default for Rules {
    /// Provider documentation of 2026-08: 20 positions, 4 markers, every block one position.
    fn default() -> Self {
        Self { lookback: 20, marks_max: 4, collapse_tool_runs: false }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    used: Option<Millis>,
    ready: Option<Millis>,
    ttl: Ttl,
    by: usize,
}

/// Why a request is refused as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Illegal {
    /// More markers than allowed; how many.
    Overflow(usize),
    /// A marker where none may sit; on which segment.
    Target(usize),
    /// A longer lifetime behind a shorter one; on which segment.
    Order(usize),
}

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Leading segments that are read.
    pub hit: usize,
    /// Longest stored prefix that could not be read, and why.
    pub missed: Option<(usize, Missed)>,
}

/// Why a stored prefix could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Its lifetime was over; for how many milliseconds it had been idle.
    Expired(Millis),
    /// The request that writes it had not answered yet.
    NotReady,
    /// No marker looks back that far; how many positions it would take.
    Lookback(usize),
    /// No marker stands behind it.
    NoMarker,
}

/// The entries of one account.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    rules: Rules,
    entries: IndexMap<u128, Entry, BuildHasherDefault<PassThrough>>,
}

/// Entries kept at most; the oldest half goes when there are more.
const KEPT_MAX: usize = 1 << 16;

fn lifetime(ttl: Ttl) -> Millis {
    match ttl {
        Ttl::Minutes5 => 300_000,
        Ttl::Minutes30 => 1_800_000,
        Ttl::Hour1 => 3_600_000,
    }
}

impl Entries {
    /// No entries yet.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Why the provider would refuse these markers.
    pub fn illegal(&self, prompt: &Prompt) -> Option<Illegal> {
        if prompt.marks.len() > self.rules.marks_max {
            return Some(Illegal::Overflow(prompt.marks.len()));
        }
        if let Some((at, _)) = prompt.marks.iter().find(|(at, _)| prompt.segs[*at].unmarkable) {
            return Some(Illegal::Target(*at));
        }
        let wrong = prompt.marks.windows(2).find(|pair| pair[0].1 < pair[1].1);
        wrong.map(|pair| Illegal::Order(pair[1].0))
    }

    /// Looks a request up and stores what it writes. `ready` is the moment from which its entries can be read.
    pub fn observe(&mut self, by: usize, prompt: &Prompt, at: Option<Millis>, ready: Option<Millis>) -> Walk {
        let positions = self.positions(prompt);
        let mut walk = Walk::default();
        for &(mark, _) in &prompt.marks {
            let lowest = positions[mark].saturating_sub(self.rules.lookback - 1);
            let mut place = mark + 1;
            while place > 0 && positions[place - 1] >= lowest {
                if self.live(prompt.keys[place - 1], at) {
                    walk.hit = walk.hit.max(place);
                    break;
                }
                place -= 1;
            }
        }
        walk.missed = self.missed(prompt, at, &positions, walk.hit);
        self.store(by, prompt, at, ready, walk.hit);
        walk
    }

    /// Where an entry of a given length would be found if a marker stood in reach of it.
    pub fn positions(&self, prompt: &Prompt) -> Vec<usize> {
        let mut found = Vec::with_capacity(prompt.segs.len());
        let mut position = 0;
        for (at, seg) in prompt.segs.iter().enumerate() {
            let run = at > 0
                && self.rules.collapse_tool_runs
                && matches!(seg.kind, Kind::Call | Kind::Answer)
                && prompt.segs[at - 1].kind == seg.kind
                && prompt.segs[at - 1].level == Level::Messages;
            if at > 0 && !run {
                position += 1;
            }
            found.push(position);
        }
        found
    }

    fn live(&self, key: u128, at: Option<Millis>) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.fresh(at) && entry.is_ready(at))
    }

    /// The longest stored prefix beyond what was read.
    fn missed(
        &self,
        prompt: &Prompt,
        at: Option<Millis>,
        positions: &[usize],
        hit: usize,
    ) -> Option<(usize, Missed)> {
        let last = prompt.marks.last().map_or(0, |(mark, _)| mark + 1);
        let (place, entry) = (hit + 1..=prompt.segs.len())
            .rev()
            .find_map(|place| Some((place, self.entries.get(&prompt.keys[place - 1])?)))?;
        let why = if !entry.is_ready(at) {
            Missed::NotReady
        } else if !entry.fresh(at) {
            Missed::Expired(at? - entry.used?)
        } else if place > last {
            Missed::NoMarker
        } else {
            // The nearest marker at or behind it would have had to look this far.
            let mark = prompt.marks.iter().map(|(mark, _)| *mark).find(|mark| mark + 1 >= place)?;
            Missed::Lookback(positions[mark] - positions[place - 1] + 1)
        };
        Some((place, why))
    }

    fn store(&mut self, by: usize, prompt: &Prompt, at: Option<Millis>, ready: Option<Millis>, hit: usize) {
        if let Some(entry) = hit.checked_sub(1).and_then(|last| self.entries.get_mut(&prompt.keys[last])) {
            entry.used = at;
        }
        for &(mark, ttl) in &prompt.marks {
            let fresh = Entry { used: at, ready, ttl, by };
            let entry = self.entries.entry(prompt.keys[mark]).or_insert(fresh);
            if entry.fresh(at) && entry.is_ready(at) && entry.by != by {
                entry.used = at;
            } else if !entry.fresh(at) {
                *entry = fresh;
            } else if !entry.is_ready(at) && ready < entry.ready {
                entry.ready = ready;
            }
        }
        if self.entries.len() > KEPT_MAX {
            self.entries.drain(..KEPT_MAX / 2);
        }
    }
}

impl Entry {
    fn fresh(&self, at: Option<Millis>) -> bool {
        match (self.used, at) {
            (Some(used), Some(at)) => at - used <= lifetime(self.ttl),
            _ => true,
        }
    }

    fn is_ready(&self, at: Option<Millis>) -> bool {
        match (self.ready, at) {
            (Some(ready), Some(at)) => ready <= at,
            _ => true,
        }
    }
}

//! What a request should have read: the cache room's markers, walked over the segments of a log.
//!
//! Segments stand for tokens (each is one), since a log tells sizes only now and then; so what the cache answers is a
//! number of leading segments. A request without a time happens at the newest time seen.
//!
//! Never: rules of a cache. They are [`Explicit`]'s.

use crate::audit::prompt::{self, Prompt};
use crate::cache::anthropic::{Explicit, ExtraMarks};
use crate::cache::minimum::Minimum;
use crate::cache::{Facts, Kind, Observed, PrefixCache as _, Ttl};
use crate::policy::{EntriesAt, LifetimeFrom, RenewedWith, VisibleFrom};
use crate::wire::Chain;
use crate::world::Millis;

pub use crate::cache::anthropic::{Missed, Rules};

/// The rules that an audit assumes: those of the first-party API, every block one position.
pub fn rules() -> Rules {
    Rules {
        // A request that went through was accepted, whatever its markers.
        extra_marks: ExtraMarks::LastCount,
        collapse_tool_runs: false,
        tool_list_one_position: false,
        // Sizes are counted in segments here.
        tokens_min: Minimum::Fixed(0),
        entries_at: EntriesAt::Markers,
        visible_from: VisibleFrom::ResponseEnd,
        renewed_with: RenewedWith::Entry,
        lifetime_from: LifetimeFrom::RequestStart,
        entry_inside_hit: true,
        strips_prior_thinking: false,
        ..Rules::default()
    }
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
    /// Length of the longest stored prefix that could not be read, and why.
    pub missed: Option<(usize, Missed)>,
}

/// The entries of one account.
#[derive(Debug, Clone)]
pub struct Entries {
    cache: Explicit,
    now: Millis,
    chains: Vec<Chain>,
    facts: Vec<Facts>,
    /// 1, 2, 3, …: the size of each prefix in segments.
    sizes: Vec<u64>,
}

/// Entries kept at most; the older half goes when there are more.
const KEPT_MAX: usize = 1 << 16;

impl Entries {
    /// No entries yet.
    pub fn new(rules: Rules) -> Self {
        let cache = Explicit::new(rules).with_entries_max(KEPT_MAX);
        Self { cache, now: 0, chains: Vec::new(), facts: Vec::new(), sizes: Vec::new() }
    }

    /// Why the provider would refuse these markers.
    pub fn illegal(&self, prompt: &Prompt) -> Option<Illegal> {
        if prompt.marks.len() > self.cache.rules().breakpoints_max {
            return Some(Illegal::Overflow(prompt.marks.len()));
        }
        if let Some((at, _)) = prompt.marks.iter().find(|(at, _)| prompt.segs[*at].unmarkable) {
            return Some(Illegal::Target(*at));
        }
        let wrong = prompt.marks.windows(2).find(|pair| pair[0].1 < pair[1].1);
        wrong.map(|pair| Illegal::Order(pair[1].0))
    }

    /// Looks a request up and stores what it writes. `ready` is the moment from which its entries can be read.
    pub fn observe(&mut self, prompt: &Prompt, at: Option<Millis>, ready: Option<Millis>) -> Walk {
        let at = at.unwrap_or(self.now);
        self.now = self.now.max(at);
        self.chains.clear();
        self.chains.extend(prompt.keys.iter().copied().map(Chain::of_number));
        let known = self.sizes.len();
        self.sizes.extend((known..prompt.keys.len()).map(|at| at as u64 + 1));
        self.facts.clear();
        if self.cache.rules().collapse_tool_runs {
            self.facts.extend(prompt.segs.iter().map(|seg| Facts {
                level: seg.level,
                kind: match seg.kind {
                    prompt::Kind::Call => Kind::ToolUse,
                    prompt::Kind::Answer => Kind::ToolResult,
                    _ => Kind::Text,
                },
                ..Facts::default()
            }));
        }
        let marks: &[(usize, Ttl)] = &prompt.marks;
        let request = Observed {
            chains: &self.chains,
            sizes: &self.sizes[..prompt.keys.len()],
            marks,
            facts: &self.facts,
            duration: ready.map(|ready| ready.saturating_sub(at)),
            ..Observed::default()
        };
        let missed = self.cache.explain(at, &request).map(|(position, why)| (position + 1, why));
        let read = self.cache.observe(at, &request).map_or(0, |outcome| outcome.read);
        Walk { hit: usize::try_from(read).unwrap_or(usize::MAX), missed }
    }
}

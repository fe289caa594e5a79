//! Automatic caches: no markers, hits in whole steps, no fee for writing.
//!
//! Covers OpenAI up to GPT-5.5, Gemini's implicit cache, DeepSeek until 2026, Qwen's implicit cache, Moonshot,
//! MiniMax's passive cache, Mistral and xAI; they differ in constants alone. Providers call all of them best effort;
//! here they keep their word.

use std::collections::BTreeMap;

use crate::cache::known::{self, Known};
use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal};
use crate::wire::Chain;
use crate::world::Millis;

/// Constants of an automatic cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Shortest hit, in tokens.
    pub tokens_min: u64,
    /// Hits are rounded down to a multiple of this, in tokens.
    pub granule: u64,
    /// Time without use after which a prefix is gone, in milliseconds; never when absent.
    pub idle: Option<Millis>,
    /// Time until a write can be read, in milliseconds.
    pub settle: Millis,
    /// Requests without a key neither read nor write.
    pub requires_key: bool,
    /// Requests with different keys do not share.
    pub by_key: bool,
    /// An identical prompt is read whole, not rounded.
    pub full_resend: bool,
    /// Settings that belong to the key.
    pub keyed_params: &'static [&'static str],
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            tokens_min: 0,
            granule: 1,
            idle: None,
            settle: 0,
            requires_key: false,
            by_key: true,
            full_resend: false,
            keyed_params: &[],
        }
    }
}

/// An automatic cache.
#[derive(Debug, Clone, Default)]
pub struct Automatic {
    rules: Rules,
    spaces: Spaces,
    known: BTreeMap<Space, Known>,
    /// Where whole prompts ended, and when last.
    ends: BTreeMap<(Space, Chain), Millis>,
}

impl Automatic {
    /// An empty cache with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }
}

impl PrefixCache for Automatic {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let rules = &self.rules;
        let total = request.total();
        let Some(end) = request.chains.last().copied() else { return Ok(Outcome::default()) };
        if rules.requires_key && request.key.is_empty() {
            return Ok(Outcome::read_of(0, total));
        }
        let key = if rules.by_key { request.key } else { "" };
        let params = request.params.iter().filter(|(name, _)| rules.keyed_params.contains(name));
        let space = self.spaces.number(&[request.model, request.org, key], params);
        let known = self.known.entry(space).or_default();
        let found = known.find(request, at, rules.idle);
        known.note(request, found.stored, at, at.saturating_add(rules.settle));
        let common = request.size_to(found.readable);
        let mut read = common / rules.granule.max(1) * rules.granule.max(1);
        if rules.full_resend {
            let seen = self.ends.insert((space, end), at);
            if seen.is_some() && common == total {
                read = total;
            }
        }
        if read < rules.tokens_min {
            read = 0;
        }
        Ok(Outcome::read_of(read, total))
    }

    fn forget(&mut self, at: Millis) {
        known::forget(&mut self.known, &mut self.ends, at, self.rules.idle);
    }
}

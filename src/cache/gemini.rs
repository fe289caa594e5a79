//! Gemini's named cache objects: the last marker of a request says which prefix is kept under a name.
//!
//! Creating an object costs its tokens at the input price and shows here as a one-hour write; later requests that
//! begin with it read it. An object lives from its creation, use does not prolong it. Keeping it is charged by the
//! hour, which [`crate::cache::prices`] knows as storage.

use std::collections::BTreeMap;

use crate::cache::minimum::Minimum;
use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal, Ttl};
use crate::wire::Chain;
use crate::world::Millis;

/// The objects of one project.
#[derive(Debug, Clone)]
pub struct Objects {
    tokens_min: Minimum,
    life: Millis,
    spaces: Spaces,
    created: BTreeMap<(Space, Chain), Millis>,
}

impl Objects {
    /// No objects yet; each is to live `life` milliseconds.
    pub fn new(tokens_min: Minimum, life: Millis) -> Self {
        Self { tokens_min, life, spaces: Spaces::default(), created: BTreeMap::new() }
    }
}

impl PrefixCache for Objects {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let total = request.total();
        let Some(&(position, _)) = request.marks.last() else { return Ok(Outcome::read_of(0, total)) };
        let size = request.sizes[position];
        if size < self.tokens_min.of(request.model) {
            return Ok(Outcome::read_of(0, total));
        }
        let space = self.spaces.number(&[request.model, request.org], std::iter::empty());
        let key = (space, request.chains[position]);
        if self.created.get(&key).is_some_and(|created| at.saturating_sub(*created) <= self.life) {
            return Ok(Outcome::read_of(size, total));
        }
        self.created.insert(key, at);
        let mut outcome = Outcome { uncached: total - size, ..Outcome::default() };
        outcome.write(Ttl::Hour1, size);
        Ok(outcome)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn an_object_lives_from_its_creation_and_use_does_not_prolong_it() {
        let mut objects = Objects::new(Minimum::Fixed(1_000), 3_600_000);
        let created = prompt("doc:5000*1h q:10").send(&mut objects, 0).unwrap();
        assert_eq!((created.write_1h, created.uncached), (5_000, 10));
        assert_eq!(prompt("doc:5000*1h r:20").read(&mut objects, 3_000_000), 5_000);
        assert_eq!(prompt("doc:5000*1h s:20").read(&mut objects, 3_600_000), 5_000);
        assert_eq!(prompt("doc:5000*1h t:20").read(&mut objects, 3_600_001), 0);
        assert_eq!(
            prompt("doc:5000 t:20").read(&mut objects, 3_600_002),
            0,
            "without a name nothing is read"
        );
        assert_eq!(prompt("doc:999*1h").send(&mut objects, 0).unwrap().uncached, 999, "too short to be kept");
    }
}

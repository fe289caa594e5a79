//! Why a prefix that is stored is not read.
//!
//! Asked by the audit before it lets the cache take a request in. Never: a change of an entry.

use super::{Explicit, Prompt, placed};
use crate::cache::Observed;
use crate::world::Millis;

/// Why a stored prefix cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Its lifetime is over; for how many milliseconds it has been idle.
    Expired(Millis),
    /// The request that writes it has not answered yet.
    NotReady,
    /// No marker looks back that far; how many positions it would take.
    Lookback(usize),
    /// No marker stands on it or behind it.
    NoMarker,
}

impl Explicit {
    /// The longest stored prefix beyond what a request would read, as its last position, and why it is not read.
    ///
    /// Nothing for a request that would be refused. Costs a look for each position that is not read.
    pub fn explain(&mut self, at: Millis, request: &Observed<'_>) -> Option<(usize, Missed)> {
        let marks = placed(&self.rules, request).ok()?;
        let spaces = self.spaces_of(request);
        let prompt = Prompt::new(&self.rules, request, spaces);
        let from = self.hit(at, &prompt, &marks).map_or(0, |(position, _)| position + 1);
        let stored = |position: usize| Some((position, *self.entries.get(&prompt.key(position))?));
        let (position, entry) = (from..request.chains.len()).rev().find_map(stored)?;
        let idle = at.saturating_sub(entry.used);
        let why = if entry.visible > at {
            Missed::NotReady
        } else if idle > self.rules.lifetime(entry.ttl) {
            Missed::Expired(idle)
        } else {
            // The nearest marker on it or behind it would have had to look this far.
            match marks.iter().find(|(mark, _)| *mark >= position) {
                Some(&(mark, _)) => Missed::Lookback(self.positions_between(&prompt, mark, position)),
                None => Missed::NoMarker,
            }
        };
        Some((position, why))
    }

    /// Positions from a marker back to another position, both included.
    fn positions_between(&self, prompt: &Prompt<'_>, mark: usize, position: usize) -> usize {
        let (mut at, mut seen) = (mark, 1);
        while let Some(before) = (at > position).then(|| prompt.before(at)).flatten() {
            seen += prompt.steps(&self.rules, at, before);
            at = before;
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;
    use crate::cache::PrefixCache as _;
    use crate::cache::minimum::Minimum;
    use crate::cache::testing::prompt;

    #[test]
    fn what_is_stored_and_not_read_has_a_reason() {
        let fresh = || Explicit::new(Rules { tokens_min: Minimum::Fixed(0), ..Rules::default() });
        let more: Vec<String> = (0..20).map(|piece| format!("p{piece}:1")).collect();
        for (later, at, why) in [
            ("a:50*5m b:1".to_owned(), 300_001, Some((0, Missed::Expired(300_001)))),
            (format!("a:50 {}*5m", more.join(" ")), 1, Some((0, Missed::Lookback(21)))),
            ("a:50 b:1".to_owned(), 1, Some((0, Missed::NoMarker))),
            ("a:50*5m b:1".to_owned(), 1, None),
            ("x:50*5m".to_owned(), 1, None),
        ] {
            let mut cache = fresh();
            prompt("a:50*5m").read(&mut cache, 0);
            let later = prompt(&later);
            assert_eq!(cache.explain(at, &later.observed()), why);
        }
        let mut cache = fresh();
        let first = prompt("a:50*5m");
        let slow = Observed { first_token: Some(10), ..first.observed() };
        cache.observe(0, &slow).unwrap();
        assert_eq!(cache.explain(9, &first.observed()), Some((0, Missed::NotReady)));
        assert_eq!(cache.explain(10, &first.observed()), None);
    }
}

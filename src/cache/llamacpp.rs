//! llama.cpp server: each slot keeps the tokens of its last prompt and answer.
//!
//! A request goes to the free slot that shares the largest part of it, if that is above a floor, else to the one that
//! was idle longest; whatever that slot shares is kept. The last token is always computed. Off, as by default here:
//! the host prompt cache, chunk reuse and context checkpoints.

use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal};
use crate::wire::Chain;
use crate::world::Millis;

#[derive(Debug, Clone, Default)]
struct Slot {
    space: Space,
    /// Running digest after each position that it holds.
    chains: Vec<Chain>,
    /// When its last answer ended; none when it was never used.
    released: Option<Millis>,
}

impl Slot {
    /// Positions shared with a prompt, by bisection: digests agree on a leading run.
    fn shared(&self, space: Space, chains: &[Chain]) -> usize {
        if self.space != space {
            return 0;
        }
        let (mut low, mut high) = (0, self.chains.len().min(chains.len()));
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.chains[middle] == chains[middle] {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The slots of one server.
#[derive(Debug, Clone)]
pub struct Slots {
    similarity: f64,
    all: Vec<Slot>,
    spaces: Spaces,
}

impl Slots {
    /// So many empty slots; `similarity` is the share of a prompt that must agree before a slot is claimed by it.
    pub fn new(slots: u64, similarity: f64) -> Self {
        let slots = usize::try_from(slots).unwrap_or(1).clamp(1, 1 << 20);
        Self { similarity, all: vec![Slot::default(); slots], spaces: Spaces::default() }
    }
}

impl PrefixCache for Slots {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let total = request.total();
        let space = self.spaces.number(&[request.model, request.key], std::iter::empty());
        let idle = |slot: &Slot| slot.released.is_none_or(|released| released <= at);
        // When all are busy the request waits for the first one to end.
        let soonest = self.all.iter().filter_map(|slot| slot.released).min();
        let any_idle = self.all.iter().any(idle);
        let open = |slot: &Slot| if any_idle { idle(slot) } else { slot.released == soonest };
        let mut best: Option<(u64, usize)> = None;
        let mut oldest: Option<usize> = None;
        for (index, slot) in self.all.iter().enumerate().filter(|(_, slot)| open(slot)) {
            let shared = request.size_to(slot.shared(space, request.chains).checked_sub(1));
            if best.is_none_or(|(most, _)| shared > most) {
                best = Some((shared, index));
            }
            if oldest.is_none_or(|oldest| slot.released < self.all[oldest].released) {
                oldest = Some(index);
            }
        }
        let alike = best.filter(|(shared, _)| *shared as f64 > self.similarity * total as f64);
        let Some(index) = alike.map(|(_, index)| index).or(oldest) else {
            return Ok(Outcome::read_of(0, total));
        };
        let slot = &mut self.all[index];
        let shared = slot.shared(space, request.chains);
        slot.space = space;
        slot.chains.truncate(shared);
        slot.chains.extend_from_slice(&request.chains[shared..]);
        slot.chains.extend(request.output.map(|output| output.chain));
        slot.released = Some(request.end(at).max(slot.released.unwrap_or(Millis::MIN)));
        let read = request.size_to(shared.checked_sub(1)).min(total.saturating_sub(1));
        Ok(Outcome::read_of(read, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn a_slot_claimed_by_age_still_keeps_what_it_shares() {
        let mut slots = Slots::new(1, 0.1);
        assert_eq!(prompt("s:50 a:950").read(&mut slots, 0), 0);
        assert_eq!(prompt("s:50 b:1950").read(&mut slots, 1), 50);
        assert_eq!(prompt("s:50 a:950").read(&mut slots, 2), 50, "the other text has overwritten it");
    }

    #[test]
    fn a_busy_slot_is_not_taken_while_another_is_idle() {
        let mut slots = Slots::new(2, 0.1);
        prompt("a:100").lasting(1_000).read(&mut slots, 0);
        assert_eq!(prompt("a:100 b:10").lasting(1_000).read(&mut slots, 10), 0);
        assert_eq!(prompt("a:100 c:10").read(&mut slots, 2_000), 100);
    }
}

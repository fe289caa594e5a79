//! Engines' caches of one capacity, block by block: who leaves when room is wanted.
//!
//! Counts of use begin anew when a block has left. The clairvoyant policy knows the future and gives up the block
//! whose next visit is furthest (Belady, 1966); no policy that stores every block can read more blocks.

use std::collections::BTreeSet;

use super::distances::Rates;
use super::trace::Blocks;

/// A policy of eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Policy {
    /// Least recently used.
    Lru,
    /// Least often used, then least recently.
    Lfu,
    /// First in, first out.
    Fifo,
    /// Least often used, then furthest from the head of the prompt.
    LengthAware,
}

impl Policy {
    /// Every policy, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Lru, Self::Lfu, Self::LengthAware, Self::Fifo];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::Fifo => "fifo",
            Self::LengthAware => "length-aware",
        }
    }
}

/// Who leaves first has the smallest.
type Rank = (u64, u64, u64);

/// What is known of a resident block.
#[derive(Debug, Clone, Copy, Default)]
struct Resident {
    there: bool,
    rank: Rank,
    uses: u64,
    since: u64,
}

/// A cache of so many blocks under a policy.
#[derive(Debug, Clone)]
pub struct Engine {
    policy: Policy,
    capacity: u64,
    blocks: Vec<Resident>,
    ranks: BTreeSet<(Rank, u32)>,
    now: u64,
}

impl Engine {
    /// An empty cache.
    pub fn new(policy: Policy, capacity: u64) -> Self {
        Self { policy, capacity, blocks: Vec::new(), ranks: BTreeSet::new(), now: 0 }
    }

    /// Whether a block is there.
    pub fn holds(&self, block: u32) -> bool {
        self.blocks.get(block as usize).is_some_and(|resident| resident.there)
    }

    /// Visits a block that stands at `position` of its request; true when it was there.
    pub fn visit(&mut self, block: u32, position: u64) -> bool {
        self.now += 1;
        if self.blocks.len() <= block as usize {
            self.blocks.resize(block as usize + 1, Resident::default());
        }
        let mut resident = self.blocks[block as usize];
        let hit = resident.there;
        if hit {
            if self.policy == Policy::Fifo {
                return true;
            }
            self.ranks.remove(&(resident.rank, block));
        } else {
            if self.capacity == 0 {
                return false;
            }
            if self.ranks.len() as u64 >= self.capacity
                && let Some((_, gone)) = self.ranks.pop_first()
            {
                self.blocks[gone as usize] = Resident::default();
            }
            resident = Resident { there: true, since: self.now, ..Resident::default() };
        }
        resident.uses += 1;
        resident.rank = match self.policy {
            Policy::Lru => (self.now, 0, 0),
            Policy::Lfu => (resident.uses, self.now, 0),
            Policy::Fifo => (resident.since, 0, 0),
            Policy::LengthAware => (resident.uses, u64::MAX - position, self.now),
        };
        self.ranks.insert((resident.rank, block));
        self.blocks[block as usize] = resident;
        hit
    }
}

/// Rates of a policy at one capacity.
pub fn rates(trace: &Blocks, policy: Policy, capacity: u64, reverse: bool) -> Rates {
    let mut engine = Engine::new(policy, capacity);
    let (mut hits, mut runs, mut tokens_read, mut shares) = (0_u64, 0_u64, 0_u64, 0.0);
    let mut there = Vec::new();
    for (blocks, tokens) in trace.requests() {
        there.clear();
        if reverse {
            there.extend(blocks.iter().map(|block| engine.holds(*block)));
            for (position, &block) in blocks.iter().enumerate().rev() {
                engine.visit(block, position as u64);
            }
        } else {
            let visits = blocks.iter().enumerate();
            there.extend(visits.map(|(position, &block)| engine.visit(block, position as u64)));
        }
        hits += there.iter().filter(|hit| **hit).count() as u64;
        let run = there.iter().take_while(|hit| **hit).count() as u64;
        runs += run;
        tokens_read += (run * trace.block_tokens).min(tokens);
        shares += if blocks.is_empty() { 0.0 } else { run as f64 / blocks.len() as f64 };
    }
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Rates {
        block: share(hits, trace.visits.len() as u64),
        prefix: share(runs, trace.visits.len() as u64),
        token: share(tokens_read, trace.tokens_total()),
        request_mean: if trace.ends.is_empty() { 0.0 } else { shares / trace.ends.len() as f64 },
    }
}

/// The block ratio that no policy can exceed at this capacity.
pub fn clairvoyant(trace: &Blocks, capacity: u64) -> f64 {
    let total = trace.visits.len();
    if total == 0 {
        return 0.0;
    }
    // The next visit of the same block, by visit; what is never visited again comes after everything.
    let mut next = vec![usize::MAX; total];
    let mut upcoming = vec![usize::MAX; trace.distinct];
    for (index, &block) in trace.visits.iter().enumerate().rev() {
        next[index] = std::mem::replace(&mut upcoming[block as usize], index);
    }
    let mut resident: BTreeSet<(usize, u32)> = BTreeSet::new();
    let mut due = vec![None; trace.distinct];
    let mut hits = 0_u64;
    for (index, &block) in trace.visits.iter().enumerate() {
        if let Some(due) = due[block as usize].take() {
            resident.remove(&(due, block));
            hits += 1;
        } else if resident.len() as u64 >= capacity
            && let Some((_, gone)) = resident.pop_last()
        {
            due[gone as usize] = None;
        }
        if capacity > 0 {
            // Blocks that never come back are told apart by their number alone; any of them may go.
            resident.insert((next[index], block));
            due[block as usize] = Some(next[index]);
        }
    }
    hits as f64 / total as f64
}

#[cfg(test)]
mod tests {
    use super::super::distances::Sweep;
    use super::*;

    fn trace(requests: &[&[u32]]) -> Blocks {
        let mut trace = Blocks { block_tokens: 10, ..Blocks::default() };
        for request in requests {
            trace.visits.extend_from_slice(request);
            trace.ends.push(trace.visits.len());
            trace.tokens.push(request.len() as u64 * 10);
        }
        trace.distinct = trace.visits.iter().max().map_or(0, |max| *max as usize + 1);
        trace
    }

    fn some_trace() -> Blocks {
        let requests: Vec<Vec<u32>> = (0..60_u32)
            .map(|round| (0..=(round * 7) % 11).map(|at| at + (round * round) % 5 * 11).collect())
            .collect();
        trace(&requests.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn one_pass_agrees_with_a_cache_of_every_capacity() {
        let trace = some_trace();
        for reverse in [false, true] {
            let sweep = Sweep::of(&trace, reverse);
            for capacity in 0..60 {
                let (one, other) =
                    (sweep.rates(Some(capacity)), rates(&trace, Policy::Lru, capacity, reverse));
                let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
                assert!(
                    close(one.block, other.block)
                        && close(one.prefix, other.prefix)
                        && close(one.token, other.token)
                        && close(one.request_mean, other.request_mean),
                    "capacity {capacity}: {one:?}, {other:?}"
                );
            }
        }
    }

    #[test]
    fn no_policy_reads_more_blocks_than_the_clairvoyant_one() {
        let trace = some_trace();
        for capacity in [0, 1, 5, 17, 40, 100] {
            let bound = clairvoyant(&trace, capacity);
            for policy in Policy::ALL {
                let rate = rates(&trace, policy, capacity, false).block;
                assert!(rate <= bound + 1e-12, "{policy:?} at {capacity}: {rate} above {bound}");
            }
        }
        assert!(clairvoyant(&trace, 17) > rates(&trace, Policy::Lru, 17, false).block);
    }
}

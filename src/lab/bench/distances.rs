//! Least recently used at every capacity in one pass.
//!
//! A block is still there when fewer different blocks than the capacity were visited since its last visit: its stack
//! distance. Counting distances once answers for all capacities (Mattson and others, 1970). Distances are counted
//! with a Fenwick tree over the order of last visits, which is compacted when it has grown to twice the number of
//! blocks seen: memory is proportional to different blocks, time to visits times a logarithm.

use super::trace::Blocks;

/// What a cache read of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Resident blocks of all visited blocks.
    pub block: f64,
    /// Blocks in leading runs of resident blocks, of all visited blocks.
    pub prefix: f64,
    /// Tokens in leading runs, of all tokens.
    pub token: f64,
    /// Mean over requests of the leading run's share of blocks.
    pub request_mean: f64,
}

/// Visits since the last one of the same block, counted as different blocks.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// Fenwick tree over moments: 1 where a block was last visited.
    tree: Vec<u32>,
    /// Moment of each block's last visit, from 1; 0 for none.
    moment: Vec<u32>,
    /// Block that was last visited at each moment.
    at_moment: Vec<u32>,
    now: u32,
    seen: u32,
}

/// Moments that a fresh tree has room for.
const MOMENTS_MIN: usize = 1_024;

impl Stack {
    /// Distance of a block without visiting it.
    pub fn peek(&self, block: u32) -> Option<u32> {
        let last = self.moment.get(block as usize).copied().filter(|last| *last > 0)?;
        Some(self.seen - self.sum(last))
    }

    /// Visits a block; answers its distance, or `None` at the first visit.
    pub fn visit(&mut self, block: u32) -> Option<u32> {
        if self.moment.len() <= block as usize {
            self.moment.resize(block as usize + 1, 0);
        }
        if self.now as usize + 1 >= self.tree.len() {
            self.compact();
        }
        let last = self.moment[block as usize];
        let distance = if last == 0 {
            self.seen += 1;
            None
        } else {
            let upto_last = self.sum(last);
            self.add(last, u32::MAX);
            Some(self.seen - upto_last)
        };
        self.now += 1;
        self.moment[block as usize] = self.now;
        self.at_moment[self.now as usize] = block;
        self.add(self.now, 1);
        distance
    }

    /// Blocks last visited at this moment or before.
    fn sum(&self, mut moment: u32) -> u32 {
        let mut sum = 0_u32;
        while moment > 0 {
            sum = sum.wrapping_add(self.tree[moment as usize]);
            moment &= moment - 1;
        }
        sum
    }

    fn add(&mut self, mut moment: u32, by: u32) {
        while (moment as usize) < self.tree.len() {
            self.tree[moment as usize] = self.tree[moment as usize].wrapping_add(by);
            moment += moment & moment.wrapping_neg();
        }
    }

    /// Closes the gaps that repeated visits left, in a tree with room for as many moments again.
    fn compact(&mut self) {
        let live: Vec<u32> = (1..=self.now)
            .filter_map(|moment| {
                let block = self.at_moment[moment as usize];
                (self.moment[block as usize] == moment).then_some(block)
            })
            .collect();
        let room = (2 * live.len()).max(MOMENTS_MIN) + 2;
        self.tree.clear();
        self.tree.resize(room, 0);
        self.at_moment.clear();
        self.at_moment.resize(room, 0);
        self.now = 0;
        for block in live {
            self.now += 1;
            self.moment[block as usize] = self.now;
            self.at_moment[self.now as usize] = block;
            self.add(self.now, 1);
        }
    }
}

/// Histograms of distances: what a cache of any capacity would read.
#[derive(Debug, Clone, Default)]
pub struct Sweep {
    /// By distance: visits.
    visits: Vec<u64>,
    /// By largest distance of the leading run so far: visits, tokens, shares of requests.
    leading: Vec<(u64, u64, f64)>,
    visits_total: u64,
    tokens_total: u64,
    requests: u64,
}

impl Sweep {
    /// Passes once over a trace; `reverse` looks all blocks of a request up and then visits them last to first, so
    /// that tails leave before heads.
    pub fn of(trace: &Blocks, reverse: bool) -> Self {
        let mut sweep = Self { visits_total: trace.visits.len() as u64, ..Self::default() };
        sweep.visits.resize(trace.distinct + 1, 0);
        sweep.leading.resize(trace.distinct + 1, (0, 0, 0.0));
        let mut stack = Stack::default();
        let mut distances = Vec::new();
        for (blocks, tokens) in trace.requests() {
            distances.clear();
            if reverse {
                distances.extend(blocks.iter().map(|&block| stack.peek(block)));
                for &block in blocks.iter().rev() {
                    stack.visit(block);
                }
            } else {
                distances.extend(blocks.iter().map(|&block| stack.visit(block)));
            }
            sweep.request(&distances, tokens, trace.block_tokens);
        }
        sweep
    }

    fn request(&mut self, distances: &[Option<u32>], tokens: u64, block_tokens: u64) {
        self.tokens_total += tokens;
        self.requests += 1;
        let mut furthest = Some(0);
        for (index, distance) in distances.iter().enumerate() {
            if let Some(distance) = distance {
                self.visits[*distance as usize] += 1;
            }
            furthest = furthest.zip(*distance).map(|(furthest, distance)| furthest.max(distance));
            if let Some(furthest) = furthest {
                let start = index as u64 * block_tokens;
                let covered = (start + block_tokens).min(tokens).saturating_sub(start);
                let entry = &mut self.leading[furthest as usize];
                *entry = (entry.0 + 1, entry.1 + covered, entry.2 + 1.0 / distances.len() as f64);
            }
        }
    }

    /// Rates of a cache of so many blocks; unlimited when absent.
    pub fn rates(&self, capacity: Option<u64>) -> Rates {
        let upto = capacity.and_then(|capacity| usize::try_from(capacity).ok()).unwrap_or(usize::MAX);
        let upto = upto.min(self.visits.len());
        let hits: u64 = self.visits[..upto].iter().sum();
        let (mut run, mut tokens, mut shares) = (0, 0, 0.0);
        for entry in &self.leading[..upto] {
            (run, tokens, shares) = (run + entry.0, tokens + entry.1, shares + entry.2);
        }
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Rates {
            block: share(hits, self.visits_total),
            prefix: share(run, self.visits_total),
            token: share(tokens, self.tokens_total),
            request_mean: if self.requests == 0 { 0.0 } else { shares / self.requests as f64 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_the_different_blocks_in_between() {
        let mut stack = Stack::default();
        let found: Vec<Option<u32>> =
            [1, 2, 3, 2, 2, 1, 9, 3].into_iter().map(|block| stack.visit(block)).collect();
        assert_eq!(found, [None, None, None, Some(1), Some(0), Some(2), None, Some(3)]);
    }

    #[test]
    fn compaction_changes_no_distance() {
        let mut stack = Stack::default();
        for round in 0..5_000_u32 {
            let expected = (round >= 7).then_some(6);
            assert_eq!(stack.visit(round % 7), expected, "round {round}");
        }
    }
}

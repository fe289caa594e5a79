//! Seeded randomness in named streams.
//!
//! Each consumer draws from a stream of its own, keyed by seed and name, so adding a consumer shifts no other.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

/// The source of all randomness of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Streams of the run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed of the run.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// The stream called `name`; the same name always starts at the same place.
    ///
    /// ```
    /// use hermes_lab::world::Streams;
    /// let streams = Streams::new(7);
    /// let (mut a, mut b) = (streams.named("review"), streams.named("review"));
    /// assert_eq!(a.below(1_000), b.below(1_000));
    /// ```
    pub fn named(self, name: &str) -> Stream {
        let mut hasher = Sha256::new();
        hasher.update(self.seed.to_le_bytes());
        hasher.update(name.as_bytes());
        Stream { rng: ChaCha8Rng::from_seed(hasher.finalize().into()) }
    }
}

/// One named stream of random numbers. It yields integers only: probabilities are ratios.
#[derive(Debug, Clone)]
pub struct Stream {
    rng: ChaCha8Rng,
}

impl Stream {
    /// A number from 0 to `bound - 1`.
    ///
    /// # Panics
    /// If `bound` is 0: there is no such number.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below zero");
        // The bias of the modulo is under 2^-32 for every bound that the lab uses.
        self.rng.next_u64() % bound
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `share` of `whole` draws.
    pub fn chance(&mut self, share: u64, whole: u64) -> bool {
        self.below(whole) < share
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len() as u64);
        &items[usize::try_from(at).expect("an index below a length fits")]
    }
}

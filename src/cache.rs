//! Providers' prefix caches: what a request reads, what it writes, what it pays for.
//!
//! A cache model observes requests at virtual instants and answers with tokens. The parts of an answer always add up
//! to the prompt. A request is given by positions: running digests, summed sizes, markers; no model needs the text.
//!
//! Never: a look at the clock, a guess about tokens (sizes are given), a rule without a source.

pub mod anthropic;

use crate::wire::Chain;
use crate::world::Millis;

/// Lifetime of a cache entry as a marker asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ttl {
    /// Five minutes.
    Minutes5,
    /// One hour.
    Hour1,
}

impl Ttl {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Minutes5 => "5m",
            Self::Hour1 => "1h",
        }
    }
}

/// One request as a cache sees it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Running digest after each segment.
    pub chains: &'a [Chain],
    /// Sizes summed up to and including each segment, in tokens or in the run's unit.
    pub sizes: &'a [u64],
    /// Markers: position and lifetime, in order of position.
    pub marks: &'a [(usize, Ttl)],
    /// Entries belong to one model.
    pub model: &'a str,
}

/// What a request reads, writes and pays in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Read from the cache.
    pub read: u64,
    /// Written with the five-minute lifetime.
    pub write_5m: u64,
    /// Written with the one-hour lifetime.
    pub write_1h: u64,
    /// Neither.
    pub uncached: u64,
}

/// Why a provider refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// More markers than allowed.
    #[error("too_many_breakpoints")]
    TooManyBreakpoints,
    /// A longer lifetime after a shorter one.
    #[error("ttl_order")]
    TtlOrder,
}

/// A prefix cache.
pub trait PrefixCache {
    /// Takes in one request at its start.
    ///
    /// # Errors
    /// The refusal that the provider would give; a refused request leaves no trace.
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal>;
}

/// Names of the cache models and what each stands for.
pub const MODELS: &[(&str, &str)] = &[("anthropic", "Anthropic Messages, explicit markers")];

/// The cache that a policy asks for.
pub fn for_policy(_: &crate::policy::Policy) -> Box<dyn PrefixCache> {
    Box::new(anthropic::Explicit::new(anthropic::Rules::default()))
}

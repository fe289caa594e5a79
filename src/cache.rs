//! Providers' prefix caches: what a request reads, what it writes, what it pays for.
//!
//! A cache model observes requests at virtual instants and answers with tokens; the parts of an answer always add up
//! to the prompt. A request is given by positions: running digests, summed sizes, markers. No model needs the text,
//! and none but the engines pays for more than the new part of a growing prompt.
//!
//! | file | rules |
//! | --- | --- |
//! | `anthropic` | markers, their walk back, lifetimes, invalidation by level |
//! | `platforms` | the same on Bedrock, Vertex, OpenRouter, Qwen, MiniMax |
//! | `automatic` | hits in steps: OpenAI up to 5.5, Gemini, DeepSeek 2024, Qwen, Moonshot, MiniMax, Mistral, xAI |
//! | `openai` | boundaries from GPT-5.6 on |
//! | `deepseek`, `gemini` | whole units; named objects |
//! | `vllm`, `sglang`, `llamacpp` | engines that one runs oneself |
//! | `tokens`, `usage`, `prices` | counting tokens, reading usage reports, money |
//!
//! Never: a look at the clock, a guess about tokens (sizes are given), a rule without a source.

pub mod anthropic;
pub mod automatic;
pub mod deepseek;
pub mod gemini;
mod known;
pub mod llamacpp;
pub mod minimum;
pub mod openai;
mod pages;
pub mod platforms;
pub mod prices;
mod select;
pub mod sglang;
mod space;
#[cfg(test)]
mod testing;
pub mod tokens;
pub mod usage;
pub mod vllm;

use crate::wire::{Chain, Level};
use crate::world::Millis;

pub use select::{GEMINI_MIN, MODELS, for_policy, model};

/// Lifetime of a cache entry as a marker asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ttl {
    /// Five minutes.
    Minutes5,
    /// Thirty minutes.
    Minutes30,
    /// One hour.
    Hour1,
}

impl Ttl {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Minutes5 => "5m",
            Self::Minutes30 => "30m",
            Self::Hour1 => "1h",
        }
    }

    /// The lifetime that a word on the wire stands for.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Minutes5, Self::Minutes30, Self::Hour1].into_iter().find(|ttl| ttl.word() == word)
    }
}

/// What a position of a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Text, images, documents.
    #[default]
    Text,
    /// Tool calls.
    ToolUse,
    /// Tool results.
    ToolResult,
    /// Results of the provider's own tools.
    ServerResult,
    /// Thinking.
    Thinking,
}

/// Who speaks at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speaker {
    /// The user.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// Whoever wrote the instructions.
    Developer,
}

/// What a cache may have to know about a position, beside its bytes and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Part of the prompt.
    pub level: Level,
    /// What it holds.
    pub kind: Kind,
    /// Who speaks.
    pub speaker: Speaker,
    /// Whether it can carry a marker.
    pub markable: bool,
    /// Content blocks in it; a position is a whole message where the runtime counts messages.
    pub blocks: u32,
}

impl Default for Facts {
    fn default() -> Self {
        Self { level: Level::Messages, kind: Kind::Text, speaker: Speaker::User, markable: true, blocks: 1 }
    }
}

/// The answer to a request, as far as a cache keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Size in tokens.
    pub tokens: u64,
    /// Running digest with the answer behind the prompt.
    pub chain: Chain,
}

/// One request as a cache sees it. What is left at its default is unknown or not set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observed<'a> {
    /// Running digest after each position.
    pub chains: &'a [Chain],
    /// Sizes summed up to and including each position, in tokens or in the run's unit.
    pub sizes: &'a [u64],
    /// Markers: position and lifetime, in order of position.
    pub marks: &'a [(usize, Ttl)],
    /// Lifetime of the automatic marker at the end of the prompt.
    pub auto: Option<Ttl>,
    /// Facts about each position; empty when all are plain text of the messages.
    pub facts: &'a [Facts],
    /// Entries belong to one model.
    pub model: &'a str,
    /// Organisation that asks.
    pub org: &'a str,
    /// Workspace that asks.
    pub workspace: &'a str,
    /// Cache key, routing key or salt.
    pub key: &'a str,
    /// Settings beside the content, as name and value, sorted by name.
    pub params: &'a [(&'a str, &'a str)],
    /// This request asks for boundaries at marked blocks alone (OpenAI from GPT-5.6 on).
    pub explicit: Option<bool>,
    /// Time from the start to the first token, in milliseconds.
    pub first_token: Option<Millis>,
    /// Time from the start to the end of the answer, in milliseconds.
    pub duration: Option<Millis>,
    /// The answer, when it is known beforehand.
    pub output: Option<Output>,
}

impl Observed<'_> {
    /// Size of the whole prompt.
    pub fn total(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(0)
    }

    /// Size up to and including a position; 0 for none.
    pub fn size_to(&self, position: Option<usize>) -> u64 {
        position.map_or(0, |position| self.sizes[position])
    }

    /// Facts about a position.
    pub fn facts_of(&self, position: usize) -> Facts {
        self.facts.get(position).copied().unwrap_or_default()
    }

    /// When its answer has ended.
    pub fn end(&self, at: Millis) -> Millis {
        at.saturating_add(self.duration.or(self.first_token).unwrap_or(0))
    }
}

/// What a request reads, writes and pays in full, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Read from the cache.
    pub read: u64,
    /// Written with the five-minute lifetime.
    pub write_5m: u64,
    /// Written with the thirty-minute lifetime.
    pub write_30m: u64,
    /// Written with the one-hour lifetime.
    pub write_1h: u64,
    /// Neither.
    pub uncached: u64,
}

impl Outcome {
    /// A prompt of which so much is read and the rest is paid in full, written without a fee.
    pub fn read_of(read: u64, total: u64) -> Self {
        debug_assert!(read <= total, "a request cannot read more than it sends");
        Self { read, uncached: total - read, ..Self::default() }
    }

    /// All parts together: the prompt.
    pub fn prompt(&self) -> u64 {
        self.read + self.written() + self.uncached
    }

    /// Written tokens of every lifetime.
    pub fn written(&self) -> u64 {
        self.write_5m + self.write_30m + self.write_1h
    }

    fn write(&mut self, ttl: Ttl, tokens: u64) {
        match ttl {
            Ttl::Minutes5 => self.write_5m += tokens,
            Ttl::Minutes30 => self.write_30m += tokens,
            Ttl::Hour1 => self.write_1h += tokens,
        }
    }
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
    /// The automatic marker finds all slots taken.
    #[error("auto_no_slot")]
    AutoNoSlot,
    /// The automatic marker falls on a block marked with another lifetime.
    #[error("auto_ttl_conflict")]
    AutoTtlConflict,
    /// The endpoint knows no automatic marker.
    #[error("auto_unsupported")]
    AutoUnsupported,
    /// A marker on something that cannot carry one.
    #[error("unsupported_marker")]
    UnsupportedMarker,
}

/// A prefix cache.
pub trait PrefixCache {
    /// Takes in one request at its start; instants never run backwards.
    ///
    /// # Errors
    /// The refusal that the provider would give; a refused request leaves no trace.
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal>;

    /// Gives up what no request from `at` on can read. Answers stay the same; a run of months needs no more room than
    /// its last hours. Models whose room is bounded do nothing.
    fn forget(&mut self, _at: Millis) {}
}

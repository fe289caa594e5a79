//! Context compression: a middle stretch of the conversation is replaced by one summary row.
//!
//! It is the only planned break of the prompt prefix. [`run::Compressor`] is what a session holds; the other modules
//! are its phases, each usable alone:
//!
//! - `threshold`, `estimate`: how large is too large, and how large something is;
//! - `gate`: may a compaction run now, and what is remembered between compactions;
//! - `prune`, `tool_summary`: shortening old tool output without a model;
//! - `window`, `history`, `handoff`: which rows are summarised;
//! - `summary`, `snapshot`, `fallback`, `failure`, `redact`: the summary itself;
//! - `assemble`, `pairs`, `carry`: the new list;
//! - `micro`: absorbing single exchanges.
//!
//! Never: time, randomness or a model other than what the caller hands in.
//!
//! The real agent compacts when the next prompt passes a threshold: old tool output becomes one-liners, the middle becomes
//! a summary, the tail stays, and the new history takes the old one's place in the store under a lease. Differs: a summary
//! is never merged into a tool result; a review never compacts; a scripted summary comes in one piece, so that its two time
//! limits, of waiting without progress and in all, are one. Unread by the runtime, kept for the vectors: the estimates of
//! the turn's start (`gate::preflight_due`, `gate::made_progress`, `gate::another_pass`), since every request is weighed
//! anyway, and the changes of model that no act makes (`run::Compressor::switch_model`, `learn_summary_window`,
//! `adopt_window`).

pub mod assemble;
pub mod carry;
pub mod estimate;
pub mod failure;
pub mod fallback;
pub mod gate;
pub mod handoff;
pub mod history;
pub mod micro;
pub mod pairs;
pub mod prune;
pub mod redact;
pub mod run;
pub mod snapshot;
pub mod summary;
pub mod threshold;
pub mod tool_summary;
pub mod window;

pub use failure::{FailureKind, SummaryFailure};
pub use gate::{State, Verdict};
pub use run::{Ask, Compressor, ModelFacts, NoOp, Outcome, Report, Summariser, SummaryOrigin};
pub use summary::{SummaryModel, SummaryRequest};

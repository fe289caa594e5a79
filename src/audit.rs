//! Why did the prompt cache miss? One verdict a request, for anybody's log.
//!
//! Readers turn a log into [`Record`]s; the [`Auditor`] keeps conversations, compares each request with the one that
//! it follows, predicts what should have been read, and holds that against the bill. Everything streams.
//!
//! Never: text printed, a file opened, a verdict "stable" where the log does not show the bytes.

pub mod case;
pub mod compare;
mod conversations;
pub mod history;
pub mod json;
pub(crate) mod judge;
pub mod predict;
pub mod prompt;
pub mod read;
pub mod record;
pub mod summary;
pub mod text_kind;
mod threads;
pub mod usage;
pub mod words;

pub use judge::{Audit, Auditor, BodyFault, Options};
pub use record::{Judged, Record};
pub use words::{Cause, Evidence, Place, Verdict};

/// Version of the JSON answer.
pub const SCHEMA: &str = "hermes-lab.audit/1";

//! The ledger: one append-only list of typed events, whatever is being watched.
//!
//! The simulated runtime, a real agent at the mock provider and a recorded log all end up here, and nothing else is
//! ever judged. A ledger is JSON Lines: a header with the format's version, then one event a line, stable byte for
//! byte. Its digest is the SHA-256 of those bytes.
//!
//! A request is written against an earlier one: how many leading segments it keeps and which it adds. That is
//! lossless, and its size grows with the history, not with history times requests. The running digest in each
//! request lets a reader prove that it rebuilt the same bytes.
//!
//! Never: a judgement, a float, a random order, anything that differs between two runs of the same scenario.

mod diff;
mod event;
mod jsonl;
mod lane;
pub mod rebuild;
mod recorder;

pub use diff::{FirstDifference, first_difference};
pub use event::*;
pub use jsonl::{FORMAT, Header, LedgerError, read};
pub use lane::Lane;
pub use recorder::{Conversation, PromptView, Recorder, RequestFacts};

use sha2::{Digest as _, Sha256};

/// A header and its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// What was run, and how.
    pub header: Header,
    /// What happened, in order.
    pub events: Vec<Event>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(header: Header) -> Self {
        Self { header, events: Vec::new() }
    }

    /// SHA-256 over the bytes of the JSON Lines form, in hexadecimal.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for line in self.lines() {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        hex(&hasher.finalize())
    }

    /// The lines of the JSON Lines form, header first, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        std::iter::once(jsonl::line_of(&self.header)).chain(self.events.iter().map(jsonl::line_of))
    }

    /// The whole JSON Lines form.
    pub fn to_jsonl(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

//! The session store: SQLite with sessions, messages, full-text indexes and lineage.
//!
//! A [`Store`] is one `state.db`, in memory or on a file. Conversation rows are [`crate::wire::Row`]; what has a column
//! is kept, other private keys of a row end with the process, as in the real agent. Every change is one transaction.
//! Time comes in as an argument; the ids and results of the same calls are the same on every machine.
//!
//! Never: an ambient clock, a call of a model, a decision about what a conversation should say.
//!
//! The real agent keeps the same tables and shares them between processes under leases. Differs: one process writes at a
//! time, so the runtime takes no lease; leases, titles and rewinds are held against observed outcomes.

pub mod append;
pub mod archive;
pub mod bigram;
pub mod codec;
pub mod compressor;
mod connection;
mod error;
pub mod leases;
pub mod lifecycle;
pub mod lineage;
mod listing;
mod pool;
pub mod prompts;
pub mod record;
pub mod resume;
pub mod retry;
pub mod rewind;
pub mod rotate;
pub mod schema;
pub mod search;
pub mod session;
pub mod titles;
mod tokenizer;
pub mod usage;

pub use connection::{HandoffSplit, Store};
pub use error::StoreError;
pub use record::{LOCAL_KEYS, StoredRow};
pub use session::{NewSession, Session};

/// Seconds since the Unix epoch, as the tables hold them.
pub type Seconds = f64;

/// A length or limit as SQLite counts.
fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// The seconds of a table cell as milliseconds; what is beyond them is their limit.
#[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest whole millisecond")]
pub fn instant(at: Seconds) -> crate::world::Millis {
    (at * 1_000.0).round() as crate::world::Millis
}

/// Milliseconds as the seconds of a table cell.
pub fn seconds(now: crate::world::Millis) -> Seconds {
    now as f64 / 1_000.0
}

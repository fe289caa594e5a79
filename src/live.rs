//! Scenarios played with a real provider, within a budget.
//!
//! The runtime, the tools and the users are the scenario's; only the answers are real. Nothing is sent before it is known
//! that the budget covers the worst that the request can cost, and whatever was answered is kept, so that a run which
//! stopped goes on where it was and pays for nothing twice.
//!
//! | file | is |
//! | --- | --- |
//! | `provider` | whom one can ask: address, path, key, shape |
//! | `shape` | requests and answers in the three protocols |
//! | `outside` | time and network: the one seam to the real world |
//! | `journal` | what was answered: a cassette that `serve` and `audit` read |
//! | `money` | the budget, and what was spent of it |
//! | `line` | one request: looked up, paid for, sent, tried again, kept |
//! | `model` | the line as a [`Model`](crate::model::Model) |
//! | `suites` | what is played and measured |
//! | `interval` | differences of pairs, with an interval |
//! | `report` | results for people |
//!
//! The cache model of the lab sees every request at the instant when it was really sent, so what it predicts can be
//! held against the bill. The ledger of a live run keeps the lab's own count; the bill stands in the journal.
//!
//! Never: a key in a file, a report or an error; a request that might exceed the budget.

pub mod interval;
mod journal;
mod line;
mod model;
mod money;
mod outside;
mod provider;
mod report;
mod shape;
pub mod suites;

pub use line::{Asked, Stop};
pub use outside::Key;
pub use provider::Provider;
pub use suites::{Outcome, Suite, run};

use std::path::PathBuf;
use std::time::Duration;

use crate::cache::prices::Price;
use crate::policy::CacheModel;
use crate::serve::upstream::Authority;
use crate::units::Usd;

/// How a live run is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is measured.
    pub suite: Suite,
    /// Whom to ask.
    pub provider: Provider,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// Where the provider is.
    pub base_url: hyper::Uri,
    /// Authorities that are trusted beside the public ones.
    pub upstream_ca: Vec<Authority>,
    /// What opens its door.
    pub key: Key,
    /// More than this is never spent, earlier parts of the same run included.
    pub budget: Usd,
    /// What the model costs.
    pub price: Price,
    /// Directory of journal, accounts and results.
    pub out: PathBuf,
    /// How often everything is played, with seeds from 0.
    pub seeds: u64,
    /// An earlier run in the same directory goes on.
    pub resume: bool,
    /// Longest answer, in tokens.
    pub max_tokens: u64,
    /// Time for one answer.
    pub timeout: Duration,
    /// Which cache model predicts; without it the provider's own.
    pub cache_model: Option<CacheModel>,
    /// Name and text of the scenario that is played instead of the suite's own.
    pub scenario: Option<(String, String)>,
    /// Thousandths of a prompt by which prediction and bill may differ.
    pub tolerance: u64,
}

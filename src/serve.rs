//! The mock provider: an HTTP server that real agents can be pointed at.
//!
//! It speaks OpenAI Chat Completions, OpenAI Responses and Anthropic Messages, streaming and plain. The script of a
//! scenario says what the model answers, the cache model of a provider says what a request reads and writes, and every
//! request becomes events of a ledger, judged by the laws while it grows.
//!
//! | file | is |
//! | --- | --- |
//! | `server` | the thread with the sockets: connections, limits, shutdown |
//! | `route` | paths, methods and headers |
//! | `desk` | one request from bytes to answer |
//! | `clean` | histories that were in order before |
//! | `counter` | tokens, and the cache model |
//! | `learning` | turns, reviews and tools, as far as requests show them |
//! | `cassette`, `normal`, `replay` | recorded traffic and its playing back |
//! | `record`, `upstream` | the proxy that writes a cassette; how it reaches a provider |
//! | `translate` | the command tool under the name that an agent knows |
//! | `sink` | events judged, digested, written |
//! | `report` | what a run has to say |
//! | `book` | bytes that arrived as ledger events |
//! | `refuse` | what a provider refuses, in its own shape |
//! | `chat`, `messages`, `responses` | replies in the three protocols |
//! | `scheduled` | faults that the scenario schedules for the provider |
//! | `clock` | real or virtual time |
//!
//! Everything runs on one thread: requests are judged in the order in which they arrived, and nothing is locked.
//!
//! ```no_run
//! use hermes_lab::lab::breaks::shipped_scenario;
//! use hermes_lab::serve::{Options, Server};
//!
//! let scenario = shipped_scenario("seed").unwrap();
//! let running = Server::start(&scenario, Options::default()).unwrap();
//! println!("http://{}/v1", running.address());
//! let outcome = running.stop();
//! assert!(outcome.verdict.holds());
//! ```
//!
//! Never: a key or an authorisation header in a ledger, a report or a log.

mod activity;
mod body;
mod book;
pub mod cassette;
mod chat;
mod clean;
mod clock;
pub(crate) mod counter;
mod desk;
mod learning;
mod messages;
pub(crate) mod normal;
mod options;
mod record;
mod refuse;
mod render;
mod replay;
pub mod report;
mod responses;
mod route;
mod scheduled;
mod server;
mod shown;
mod sink;
mod spoken;
mod translate;
pub mod upstream;

pub use activity::Activity;
pub use clock::ClockKind;
pub use desk::Outcome;
pub use options::{Options, Teller};
pub use record::{RecordOptions, Recorded};
pub use server::{EndSignal, Running, Server, StartError};

/// Name of the model on the card when none is given.
pub const MOCK_MODEL: &str = "mock-model";

//! Real agents: a scenario's user turns are played on one that runs outside the lab, with the mock provider behind it.
//!
//! A [`Driver`] file says how an agent is started and spoken to. [`drive`] starts the mock provider, makes a fresh home
//! and an empty working folder, starts the agent in a clean environment, plays the turns, waits until its background
//! work has gone quiet, and judges the ledger. What changed in the working folder while nobody waited for an answer is
//! evidence from outside: it becomes effects of the ledger, whatever the agent says of itself.
//!
//! | file | is |
//! | --- | --- |
//! | `driver` | the file format of drivers |
//! | `agent` | an agent that is spoken to, whichever way |
//! | `acp` | agents that speak the Agent Client Protocol |
//! | `once` | agents that are one process a turn |
//! | `place` | home, working folder, placeholders |
//! | `play` | the turns, and what is seen beside them |
//!
//! Called by the command line. Never: a judgement of its own; the laws judge.

mod acp;
mod agent;
mod driver;
mod once;
mod place;
mod play;
pub mod report;

pub use agent::AgentError;
pub use driver::{Driver, SHIPPED, Way, load, shipped};
pub use play::{DriveError, Driven, Left, Plan, TurnSeen, drive, risky_calls};

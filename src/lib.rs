//! A deterministic laboratory for self-learning agent harnesses.
//!
//! Long-running agents learn: they write facts into a bounded memory, write skills after a task, compress long
//! conversations, search old ones, delegate, run on a timer. Each of these mechanisms can silently break another.
//! This crate runs a whole harness with the model's part played by a script, writes down everything that happened,
//! and judges it.
//!
//! # Two ideas
//!
//! **One ledger.** Whatever is watched (the simulated runtime, a real agent at the mock provider, a recorded log) is
//! turned into the same append-only list of typed events ([`ledger`]). Nothing else is ever judged.
//!
//! **A break is an overlay plus a claim.** Every knob of the runtime lives in one typed [`policy::Policy`]. A break
//! turns some of them and claims which checks must now fail and which figures must move. The runtime never asks
//! whether a break is on; it reads its policy.
//!
//! # How a scenario becomes a verdict
//!
//! ```text
//! scenarios/*.toml ──▶ scenario ──▶ lab::play ──▶ agent::harness ──▶ ledger ──▶ laws ──▶ report ──▶ cli
//!                       policy ─────────┘            │  ▲
//!                       breaks/*.toml ──┘   request  ▼  │ reply
//!                                                  model
//! ```
//!
//! ```
//! use hermes_lab::lab::breaks::shipped_scenario;
//! use hermes_lab::lab::play::{Plan, play};
//! use hermes_lab::laws;
//!
//! let seed = shipped_scenario("seed").unwrap();
//! let ledger = play(&seed, &Plan::default()).unwrap();
//! assert!(laws::judge(&ledger).holds());
//! ```
//!
//! # The rooms, top to bottom
//!
//! Arrows point downwards only; a test keeps it so.
//!
//! | room | is | may not know |
//! | --- | --- | --- |
//! | [`cli`] | one file per subcommand: parses, calls, prints, exits | behaviour |
//! | `live` | scenarios played with a real provider, within a budget; a feature of the build | the provider's key |
//! | [`drive`] | real agents outside the lab: started, spoken to, watched, ended | how an agent works |
//! | [`serve`] | the mock provider that real agents are pointed at | how an agent works |
//! | [`report`] | results as text, tables, pages | how a result came about |
//! | [`audit`] | logs of real agents: recognised, read, every cache miss explained | the runtime |
//! | [`lab`] | experiments: play, breaks, matrix, self-test, suites, conformance, search, crashes, lives, sweeps | printing |
//! | [`laws`] | five laws, one file each: ledger in, findings out | anything but the ledger |
//! | [`agent`] | the runtime under test, one module per mechanism | whether a break is on |
//! | [`model`] | who answers: a script with rules, a reader of its prompt | the harness |
//! | [`store`] | SQLite: sessions, messages, three full-text indexes, lineage | decisions |
//! | [`cache`] | providers' prefix caches | text |
//! | [`scenario`] | scripted worlds: format, loading, checking | running |
//! | [`ledger`] | events, JSON Lines, digest, rebuilding requests | judgement |
//! | [`wire`] | conversation rows, segments, running digests | behaviour |
//! | [`policy`] | every knob, its default, source and law; overlays, presets | the runtime |
//! | [`world`] | virtual clock, seeded streams, files, terminal | everything |
//!
//! # Where to add what
//!
//! - a scenario: a file in `scenarios/`, and its line in [`scenario::shipped`];
//! - a break: a file in `breaks/`, and its line in [`lab::breaks::SHIPPED`];
//! - a driver of a real agent: a file in `drivers/`, and its line in [`drive::SHIPPED`];
//! - a check: an entry in the `CHECKS` of its law's file, and a break that trips it;
//! - a knob: one line in `policy/sections/<mechanism>.rs`;
//! - a figure: one line in [`lab::figures::FIGURES`];
//! - a task of the regression set: a file in `scenarios/suite/` with its tampers, and its line in [`scenario::suite`];
//! - something that goes wrong: a field of [`scenario::FaultSpec`] and of [`world::faults::Armed`], and a draw in
//!   [`lab::explore::generate`];
//! - a question to a default: a line in [`lab::sweep::shipped::QUESTIONS`].
//!
//! # Determinism
//!
//! Time, randomness, files and commands are reached only through [`world`], answers only through [`model`]. Clippy
//! refuses the rest. Randomness is ChaCha in named streams, so that one more consumer shifts no other. Whatever
//! reaches a ledger is an integer or a text, kept in ordered maps. One thread and eight give the same bytes.
//!
//! # Errors
//!
//! Bad input is a [`diag::Diagnostic`] with file, line, column and the nearest valid name, and exit code 2. A law, a
//! claim or a baseline that does not hold is data, and exit code 1. A broken invariant of our own panics.

pub mod agent;
pub mod audit;
pub mod cache;
pub mod cli;
pub mod diag;
pub mod drive;
pub mod lab;
pub mod laws;
pub mod ledger;
#[cfg(feature = "live")]
pub mod live;
pub mod model;
pub mod policy;
pub mod report;
pub mod scenario;
pub mod serve;
pub mod store;
pub mod units;
pub mod wire;
pub mod world;

//! One integration binary; one module per subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its input fails")]

mod answers;
mod audit;
mod bench;
mod beside;
mod books;
mod cache_cases;
mod cli;
mod costs;
mod crash;
mod determinism;
mod drive;
mod explore;
mod guard_hardened;
mod hardened_threats;
mod lab;
mod laws;
mod limits;
mod live;
mod mechanism_cases;
mod months;
mod props;
mod readme;
#[cfg(feature = "real-clients")]
mod real;
mod runtime;
mod serve;
mod suite;
mod support;
mod tidy;
mod tokens;
mod traces;
mod vectors;
mod wiring;

//! The runtime under test: every mechanism of the harness, each in a module of its own.
//!
//! A mechanism takes the part of the policy that it needs, explicitly, and reaches time, files and randomness only
//! through `world`. Never: a question such as "is this break on?"; the knobs are all a mechanism knows.

pub mod breakpoints;
pub mod compress;
pub mod cron;
pub mod curator;
pub mod delegate;
pub mod guard;
pub mod harness;
pub mod memory;
pub mod prompt;
pub mod review;
pub mod search;
pub mod sieve;
pub mod skills;
pub mod stamp;
pub mod text;
pub mod threats;
pub mod tools;
pub mod transcript;
pub mod turn;
pub mod yaml;

//! The runtime under test: every mechanism of the harness, each in a module of its own.
//!
//! A mechanism takes the part of the policy that it needs, explicitly, and reaches time, files and randomness only
//! through `world`. Never: a question such as "is this break on?"; the knobs are all a mechanism knows.

pub mod cron;
pub mod guard;
pub mod transcript;
pub mod turn;

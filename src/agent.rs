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

use crate::policy::Policy;

/// Compiles the patterns that nearly every run asks for, as the first one would; no outcome changes. A command that is
/// about to play calls it on a thread of its own.
pub fn warm_up() {
    let policy = Policy::default();
    let _ = guard::classify("rm -rf ./dist", &guard::normalize::Homes::default(), &policy.guard);
    let _ = compress::redact::secrets("a sentence");
    let _ = turn::text::visible("a sentence");
    let _ = turn::text::announces_a_step("a sentence", &policy.turn);
    let _ = threats::Scanner::new(&policy.threats).scan("a sentence", threats::Scope::Strict);
}

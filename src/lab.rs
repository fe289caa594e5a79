//! Experiments: everything that runs the runtime and says something about it.

pub mod bench;
pub mod breaks;
pub mod conform;
pub mod expect;
pub mod figures;
pub mod matrix;
pub mod play;
pub mod runs;
pub mod selftest;
pub mod suite;

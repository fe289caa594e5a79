//! Experiments: everything that runs the runtime and says something about it.

pub mod bench;
pub mod breaks;
pub mod conform;
pub mod crash;
pub mod expect;
pub mod explore;
pub mod figures;
pub mod life;
pub mod matrix;
pub mod play;
pub mod runs;
pub mod selftest;
pub mod suite;
pub mod sweep;

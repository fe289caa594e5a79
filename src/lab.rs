//! Experiments: everything that runs the runtime and says something about it.

pub mod conform;

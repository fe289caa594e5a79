//! Benches: how much of a workload a cache reads, and what that is worth.
//!
//! | file | asks |
//! | --- | --- |
//! | `trace` | which recorded trace is this, and is it sound |
//! | `distances`, `policies` | hit rates of an engine's cache at any capacity |
//! | `sessions`, `rounds` | agent sessions in blocks, rounds with the provider's own figures |
//! | `replay`, `published` | a trace put through caches; do we reach what others printed |

pub mod account;
pub mod compare;
pub mod conversation;
pub mod distances;
pub mod ledgers;
pub mod policies;
pub mod published;
pub mod replay;
pub mod rounds;
pub mod sessions;
pub mod tables;
pub mod trace;

//! The curator: keeps the library of skills small by ageing, archiving and, if asked for, merging.
//!
//! It runs beside the user's turns, at most once per interval. Ageing needs no model. It maintains only what the agent
//! made, spares what is pinned or scheduled, and deletes nothing; a purge is the user's own command.
//!
//! The runtime asks [`take`] when a session is opened and `curator.at_start` is on; an act of a scenario runs it whatever
//! the gates say. Both go through [`begin`] and [`Begun::finish`], with an agent of its own between them that merges
//! narrow skills where `curator.consolidate` is on. [`purge()`], [`rollback`] and [`prune_idle`] are the user's own
//! commands: nothing in a run calls them, the vectors do.
//!
//! The real agent does the same. Differs: a snapshot is a plain tree.

mod backup;
mod classify;
mod config;
mod gate;
mod instruction;
mod jobs;
mod purge;
mod run;
mod state;
mod transitions;

pub use backup::{expired as expired_snapshots, prune as prune_snapshots, rollback, snapshot};
pub use classify::{Classification, ToolCall, classify_removals};
pub use config::{backup_keep, with_settings};
pub use gate::{Gate, claim, gate, release, take};
pub use instruction::instruction;
pub use jobs::{JobSkills, Rewrite, referenced, rewrite};
pub use purge::{CommandError, archive, prune_idle, purge, restore};
pub use run::{Begun, Consolidation, RunOptions, RunReport, begin};
pub use state::{CuratorState, path as state_path};
pub use transitions::{Counts, Pass, candidates, run_transitions, states};

//! The curator: keeps the library of skills small by ageing, archiving and, if asked for, merging.
//!
//! It runs beside the user's turns, at most once per interval. Ageing needs no model. It maintains only what the agent
//! made, spares what is pinned or scheduled, and deletes nothing; a purge is the user's own command.
//!
//! The runtime polls [`maybe_run`] when a session is opened and `curator.at_start` is on; scenarios call
//! [`run_transitions`] for a bare pass. [`purge()`], [`rollback`] and [`prune_idle`] are the user's own commands: nothing
//! in a run calls them, the vectors do.
//!
//! The real agent does the same and asks a model to merge narrow skills when that is switched on. Differs: a snapshot is a
//! plain tree; the runtime hands in no [`Consolidator`], so merging is checked by vectors alone.

mod backup;
mod classify;
mod config;
mod gate;
mod jobs;
mod purge;
mod run;
mod state;
mod transitions;

pub use backup::{expired as expired_snapshots, prune as prune_snapshots, rollback, snapshot};
pub use classify::{Classification, ToolCall, classify_removals};
pub use config::{backup_keep, with_settings};
pub use gate::{Gate, claim, gate, release};
pub use jobs::{JobSkills, Rewrite, referenced, rewrite};
pub use purge::{CommandError, archive, prune_idle, purge, restore};
pub use run::{Consolidation, Consolidator, RunOptions, RunReport, maybe_run, run};
pub use state::{CuratorState, path as state_path};
pub use transitions::{Counts, Pass, candidates, run_transitions, states};

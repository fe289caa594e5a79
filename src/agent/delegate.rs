//! Delegation: who may spawn, what a child gets, what comes back.
//!
//! Pure rules over requests and results; the harness runs the children. Sources: Hermes tools/delegate_tool*.py.
//!
//! The real agent runs children on threads of their own, feels their pulse every half minute, and gives up one that is
//! silent for too long. Differs: children run one after another when the turn is over, in virtual time, so a pulse has
//! nothing to find; [`Heartbeat`], [`trace()`] and the readers of a user's configuration ([`with_settings`],
//! [`concurrency`], [`child_timeout`], [`compression_cap`]) are held against observed outcomes and not called by a run,
//! whose knobs are typed already. Children of one turn are bounded only where `delegate.spawns_per_turn_max` says so.

mod admission;
mod brief;
mod deliver;
mod entry;
mod heartbeat;
mod schema;
mod settings;
mod summary;
mod toolsets;
mod trace;

pub use admission::{Call, Refusal, Task, admit};
pub use brief::Brief;
pub use deliver::{completion_units, runs_in_background};
pub use entry::{Ended, Entry, SchemaOutcome, entry};
pub use heartbeat::{Beat, Heartbeat, TICK};
pub use schema::{Checked, candidate, check};
pub use settings::{child_timeout, compression_cap, concurrency, with_settings};
pub use summary::{Trimmed, budget, cap, trim};
pub use toolsets::{Asked, BLOCKED, Catalogue, ChildTools, DEFAULT_TOOLSETS, Toolset, child_tools};
pub use trace::{Traced, argument_summary, is_error, trace};

use crate::cache::Ttl;
use crate::policy;

/// What a child may become. It follows depth, whatever the call says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It works.
    Leaf,
    /// It may delegate in turn.
    Orchestrator,
}

impl Role {
    /// The role of a child at this depth.
    pub fn at(depth: u64, policy: &policy::Delegate) -> Self {
        if policy.orchestrator_enabled && depth < policy.max_spawn_depth {
            Self::Orchestrator
        } else {
            Self::Leaf
        }
    }

    /// The word in the prompt.
    pub fn word(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Orchestrator => "orchestrator",
        }
    }
}

/// The cache tier of a child: an hour is too long for a conversation that ends soon.
pub fn child_ttl(inherited: Ttl) -> Ttl {
    match inherited {
        Ttl::Hour1 => Ttl::Minutes5,
        other => other,
    }
}

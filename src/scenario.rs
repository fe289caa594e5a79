//! Scripted worlds: what there is at the start, what happens, and what the model says.
//!
//! A scenario is a TOML file. [`load`] turns it into a [`Scenario`] or into every fault that can be found in one go,
//! each with line and column. Nothing here runs anything.

mod acts;
mod expect;
pub mod fault;
mod load;
mod reply;

pub use acts::*;
pub use expect::{ArmSpec, ExpectSpec, TamperSpec, Texts};
pub use fault::FaultSpec;
pub use load::{FORMAT, load};
pub use reply::{CallSpec, ReplySpec};

use crate::policy::Overlay;
use crate::world::Millis;

/// A loaded scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name, also the file's stem.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What it shows, for readers.
    pub about: String,
    /// When the world begins, in milliseconds since the Unix epoch.
    pub start: Millis,
    /// Seed of the run unless the command line gives another.
    pub seed: u64,
    /// Knobs that this scenario turns.
    pub policy: Overlay,
    /// Skills that are there at the start.
    pub skills: Vec<SkillSpec>,
    /// Memory entries that are there at the start.
    pub memories: Vec<MemorySpec>,
    /// Files of the workspace at the start.
    pub files: Vec<FileSpec>,
    /// Commands that the terminal knows besides its own.
    pub commands: Vec<CommandSpec>,
    /// Scheduled jobs at the start.
    pub jobs: Vec<JobSpec>,
    /// What the model does when a request shows something.
    pub rules: Vec<RuleSpec>,
    /// What happens, in order.
    pub acts: Vec<Act>,
    /// What goes wrong, and in which act.
    pub faults: Vec<FaultSpec>,
    /// What must hold afterwards.
    pub expects: Vec<ExpectSpec>,
    /// Tools of an agent outside the lab that calls may name beside the runtime's own.
    pub tools: Vec<String>,
    /// How expectations are made to fail.
    pub tampers: Vec<TamperSpec>,
    /// Ways in which it is played side by side.
    pub arms: Vec<ArmSpec>,
    /// SHA-256 of the file's text.
    pub digest: String,
}

/// Name and text of every scenario that ships with the lab.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    &[
        ("seed", include_str!("../scenarios/seed.toml")),
        ("workshop", include_str!("../scenarios/workshop.toml")),
        ("long-chat", include_str!("../scenarios/long-chat.toml")),
        ("reopen", include_str!("../scenarios/reopen.toml")),
        ("grown", include_str!("../scenarios/grown.toml")),
        ("errands", include_str!("../scenarios/errands.toml")),
        ("schedule", include_str!("../scenarios/schedule.toml")),
        ("runaway", include_str!("../scenarios/runaway.toml")),
        ("swarm", include_str!("../scenarios/swarm.toml")),
        ("merging", include_str!("../scenarios/merging.toml")),
        ("real-loop", include_str!("../scenarios/real-loop.toml")),
        ("real-shell", include_str!("../scenarios/real-shell.toml")),
        ("real-resume", include_str!("../scenarios/real-resume.toml")),
        ("real-delegation", include_str!("../scenarios/real-delegation.toml")),
        ("real-compaction", include_str!("../scenarios/real-compaction.toml")),
    ]
}

/// Name and text of every scenario that is made for real models; `{seed}` in a text stands for the seed of a run.
pub fn live() -> &'static [(&'static str, &'static str)] {
    &[
        ("live-conversation", include_str!("../scenarios/live/live-conversation.toml")),
        ("live-compaction", include_str!("../scenarios/live/live-compaction.toml")),
        ("live-learning", include_str!("../scenarios/live/live-learning.toml")),
    ]
}

/// Name and text of every scenario of the regression suite, in the order of its report.
pub fn suite() -> &'static [(&'static str, &'static str)] {
    &[
        ("recovery", include_str!("../scenarios/suite/recovery.toml")),
        ("recovery-open", include_str!("../scenarios/suite/recovery-open.toml")),
        ("cold-start", include_str!("../scenarios/suite/cold-start.toml")),
        ("recall", include_str!("../scenarios/suite/recall.toml")),
        ("skill-hit", include_str!("../scenarios/suite/skill-hit.toml")),
        ("isolation", include_str!("../scenarios/suite/isolation.toml")),
        ("output-control", include_str!("../scenarios/suite/output-control.toml")),
        ("diagnosis", include_str!("../scenarios/suite/diagnosis.toml")),
        ("unknown-write", include_str!("../scenarios/suite/unknown-write.toml")),
        ("undelivered", include_str!("../scenarios/suite/undelivered.toml")),
        ("schedules", include_str!("../scenarios/suite/schedules.toml")),
    ]
}

/// Name and text of the scenarios about learning from end to end.
pub fn learning() -> &'static [(&'static str, &'static str)] {
    &[
        ("learning", include_str!("../scenarios/suite/learning.toml")),
        ("wrong-skill", include_str!("../scenarios/suite/wrong-skill.toml")),
        ("poisoned-skill", include_str!("../scenarios/suite/poisoned-skill.toml")),
    ]
}

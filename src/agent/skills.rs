//! Skills: directories of procedures that the agent loads on demand, and may write itself.
//!
//! A skill is a directory with a SKILL.md, below `skills/` of the home or in a foreign directory. Who wrote it and how
//! it is used is kept in `.usage.json`; what a background review may touch follows from that. The tools call
//! [`Library::manage`], [`Library::view`] and [`Library::catalogue`]; the curator calls [`Library::archive`] and
//! [`Library::restore`].
//!
//! Never: a write outside a skill directory, a review's delete that loses content, a change of a running prompt.
//!
//! The real agent installs skills from a hub and ships some of its own. Differs: both are known only by their lists of
//! owners; one rule of its linter is left out (`lint`); a name with a newline at its end is taken as there, unless
//! `skills.trailing_newline_in_names` is off.

mod archive;
mod batch;
mod frontmatter;
pub mod fuzzy;
mod guard;
pub mod ledger;
mod lint;
mod manage;
mod operation;
mod owners;
mod paths;
mod refusal;
mod tree;
mod usage;
mod view;

pub use archive::MoveError;
pub use frontmatter::{
    catalogue_line, name as frontmatter_name, parse as parse_frontmatter, validate as validate_content,
};
pub use guard::{Origin, Writer};
pub use lint::{Facts, Finding, lint};
pub use manage::{Applied, Done};
pub use operation::{Action, Operation, Request};
pub use owners::{Owners, Provenance, suppressed};
pub use paths::{
    EXCLUDED_DIRS, SUPPORT_DIRS, is_excluded, validate_category, validate_file_path, validate_name,
};
pub use refusal::{Reason, Refusal};
pub use tree::SkillDir;
pub use usage::{Lifecycle, Record, State, Usage};
pub use view::{CatalogueEntry, View};

use crate::agent::threats::Scanner;
use crate::policy::Policy;

/// Path of the skills directory below the home.
pub const ROOT: &str = "skills";

/// The skills of a home. It holds no state of its own: every call reads the files.
#[derive(Debug, Clone)]
pub struct Library {
    knobs: crate::policy::Skills,
    root: String,
    external: Vec<String>,
    prune_builtins: bool,
    scanner: Option<Scanner>,
}

impl Library {
    /// The library of a home; `external` are foreign directories, as paths from the home.
    pub fn new(policy: &Policy, external: &[String]) -> Self {
        Self {
            knobs: policy.skills.clone(),
            root: ROOT.to_owned(),
            external: external.to_vec(),
            prune_builtins: policy.curator.prune_builtins,
            scanner: policy.skills.guard_agent_created.then(|| Scanner::new(&policy.threats)),
        }
    }

    /// Path of the skills directory from the home.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// True when bundled skills are aged like the agent's own.
    pub fn prunes_builtins(&self) -> bool {
        self.prune_builtins
    }

    /// True for a skill that automation never archives.
    pub fn is_protected(&self, name: &str) -> bool {
        self.knobs.protected.iter().any(|protected| protected == name)
    }

    /// True for a skill that nobody deletes.
    pub fn is_essential(&self, name: &str) -> bool {
        self.knobs.essential.iter().any(|essential| essential == name)
    }
}

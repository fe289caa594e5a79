//! What a background review may not touch: provenance first, then read before write.
//!
//! Called by every operation before its effect. Never: a rule for the user's own turn.

use std::collections::BTreeSet;

use super::refusal::{Reason, Refusal};
use super::tree::SkillDir;
use super::{Library, Owners, Usage};
use crate::policy::ReviewPolicy;
use crate::world::Files;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user's own turn.
    Foreground,
    /// A background review, or the curator's consolidation.
    BackgroundReview,
}

/// One writer: where the writes come from, and which files it has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Where the writes come from.
    pub origin: Origin,
    read: BTreeSet<String>,
}

impl Writer {
    /// A writer that has read nothing yet. Make a new one for each review.
    pub fn new(origin: Origin) -> Self {
        Self { origin, read: BTreeSet::new() }
    }

    /// Notes that a whole file was loaded; a partial read must not be noted. The path is from the home.
    pub fn mark_read(&mut self, files: &dyn Files, path: &str) {
        self.read.extend(files.resolve(path));
    }

    /// True when this writer is a review.
    pub fn is_review(&self) -> bool {
        self.origin == Origin::BackgroundReview
    }

    /// True when the file was loaded whole.
    pub fn has_read(&self, files: &dyn Files, path: &str) -> bool {
        files.resolve(path).is_some_and(|path| self.read.contains(&path))
    }
}

impl Library {
    /// Refuses a review's change of a skill that is not the agent's.
    ///
    /// # Errors
    /// `bg_pinned`, `bg_external`, `bg_protected`, `bg_hub`, `bg_bundled`, `bg_not_managed`, `bg_unverifiable`.
    pub fn check_provenance(
        &self,
        files: &dyn Files,
        writer: &Writer,
        name: &str,
        dir: &SkillDir,
    ) -> Result<(), Refusal> {
        if !writer.is_review() {
            return Ok(());
        }
        let usage = Usage::load(files, &self.root);
        let owners = Owners::load(files, &self.root);
        let own_name = self.usage_name(files, dir);
        let record = usage.get(name).or_else(|| usage.get(&own_name));
        let either = |test: &dyn Fn(&str) -> bool| test(name) || test(&own_name);
        let reason = if !usage.is_readable() {
            Reason::BgUnverifiable
        } else if record.is_some_and(super::Record::is_pinned) {
            Reason::BgPinned
        } else if dir.external {
            Reason::BgExternal
        } else if either(&|name| self.is_protected(name)) {
            Reason::BgProtected
        } else if either(&|name| owners.is_hub(name)) {
            Reason::BgHub
        } else if either(&|name| owners.is_bundled(name)) {
            Reason::BgBundled
        } else if !record.map_or(self.knobs.missing_record_managed, super::Record::is_managed) {
            Reason::BgNotManaged
        } else {
            return Ok(());
        };
        Err(Refusal::new(reason, format!("a review must not change `{name}`")))
    }

    /// The guard of changes other than deletes, where the policy has one.
    pub(super) fn check_content_provenance(
        &self,
        files: &dyn Files,
        writer: &Writer,
        name: &str,
        dir: &SkillDir,
    ) -> Result<(), Refusal> {
        match self.knobs.review_policy {
            ReviewPolicy::ManagedOnly => self.check_provenance(files, writer, name, dir),
            ReviewPolicy::ContentOpen => Ok(()),
        }
    }

    /// Refuses a review's change of an existing file that it has not loaded (Hermes
    /// tools/skill_manager_guards.py:211-221).
    pub(super) fn check_read(&self, files: &dyn Files, writer: &Writer, path: &str) -> Result<(), Refusal> {
        let free = !writer.is_review() || !self.knobs.read_before_write || !files.exists(path);
        if free || writer.has_read(files, path) {
            return Ok(());
        }
        Err(Refusal::new(Reason::BgReadFirst, "load this file with skill_view first, then try once more"))
    }
}

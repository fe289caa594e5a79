//! Archiving, restoring and adopting: the moves of a skill through its life that delete nothing.
//!
//! Called by a review's delete, by the curator and by the user's commands.

use serde_json::Value;

use super::owners::suppress;
use super::tree::SkillDir;
use super::{Library, Lifecycle, Owners, Provenance, State, Usage};
use crate::agent::stamp;
use crate::world::files::{file_name, join, parent};
use crate::world::{EntryKind, Files, Millis};

/// Why a skill is not archived, restored or adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// It lives in a foreign directory.
    #[error("external")]
    External,
    /// Automation never touches it.
    #[error("protected")]
    Protected,
    /// A hub owns it.
    #[error("hub")]
    Hub,
    /// The distribution owns it.
    #[error("bundled")]
    Bundled,
    /// It does not exist.
    #[error("not_found")]
    NotFound,
    /// Nothing was ever archived.
    #[error("no_archive")]
    NoArchive,
    /// It is not in the archive.
    #[error("not_archived")]
    NotArchived,
    /// Something stands where it would go.
    #[error("occupied")]
    Occupied,
    /// The disk said no.
    #[error("move_failed")]
    Failed,
}

impl Library {
    /// True for a skill that the curator may maintain, whoever made it.
    pub fn is_eligible(&self, files: &dyn Files, owners: &Owners, name: &str) -> bool {
        !self.is_external_only(files, name)
            && !self.is_protected(name)
            && !owners.is_hub(name)
            && (self.prune_builtins || !owners.is_bundled(name))
    }

    /// Where a skill comes from.
    pub fn provenance(&self, files: &dyn Files, owners: &Owners, name: &str) -> Provenance {
        if owners.is_hub(name) {
            Provenance::Hub
        } else if owners.is_bundled(name) {
            Provenance::Bundled
        } else if self.is_external_only(files, name) {
            Provenance::External
        } else {
            Provenance::Agent
        }
    }

    /// Gives a skill into the agent's care by the user's will.
    ///
    /// # Errors
    /// Protected, hub, bundled, external and missing skills are refused.
    pub fn adopt(&self, files: &mut dyn Files, now: Millis, name: &str) -> Result<(), MoveError> {
        let owners = Owners::load(files, &self.root);
        let refused = if self.is_protected(name) {
            Some(MoveError::Protected)
        } else if owners.is_hub(name) {
            Some(MoveError::Hub)
        } else if owners.is_bundled(name) {
            Some(MoveError::Bundled)
        } else if self.is_external_only(files, name) {
            Some(MoveError::External)
        } else if self.find_by_usage_name(files, name).is_none() {
            Some(MoveError::NotFound)
        } else {
            None
        };
        if let Some(error) = refused {
            return Err(error);
        }
        let mut usage = Usage::load(files, &self.root);
        usage.adopt(name, now);
        usage.save(files, &self.root).map_err(|_| MoveError::Failed)
    }

    /// Moves a skill into the archive (Hermes tools/skill_usage.py:617). Pins are not looked at here.
    ///
    /// # Errors
    /// External, ineligible and missing skills are refused.
    pub fn archive(
        &self,
        files: &mut dyn Files,
        now: Millis,
        name: &str,
    ) -> Result<Option<Lifecycle>, MoveError> {
        let owners = Owners::load(files, &self.root);
        if self.is_external_only(files, name) {
            return Err(MoveError::External);
        }
        if self.is_protected(name) {
            return Err(MoveError::Protected);
        }
        if owners.is_hub(name) {
            return Err(MoveError::Hub);
        }
        if owners.is_bundled(name) && !self.prune_builtins {
            return Err(MoveError::Bundled);
        }
        let dir = self.find_by_usage_name(files, name).ok_or(MoveError::NotFound)?;
        self.move_to_archive(files, now, name, &dir)?;
        if owners.is_bundled(name) {
            suppress(files, &self.root, name, true);
        }
        let mut usage = Usage::load(files, &self.root);
        let event = usage.set_state(name, State::Archived, now);
        usage.save(files, &self.root).map_err(|_| MoveError::Failed)?;
        Ok(event)
    }

    fn move_to_archive(
        &self,
        files: &mut dyn Files,
        now: Millis,
        name: &str,
        dir: &SkillDir,
    ) -> Result<(), MoveError> {
        let archive = self.archive_dir();
        // A name from a front matter may be anything; only its last component can name a directory.
        let plain = file_name(name);
        let plain = if matches!(plain, "" | "." | "..") { dir.dir_name() } else { plain };
        let mut target = join(&archive, plain);
        if files.exists(&target) {
            target = join(&archive, &format!("{}-{}", dir.dir_name(), stamp::compact(now)));
        }
        files.rename(&dir.path, &target).map_err(|_| MoveError::Failed)?;
        files.touch(&target, now);
        self.prune_empty(files, parent(&dir.path));
        Ok(())
    }

    /// Brings a skill back from the archive to the top level (Hermes tools/skill_usage.py:647-671). The clock of
    /// inactivity goes on, as in the reference: unless the skill is used first, the next pass archives it again.
    ///
    /// # Errors
    /// Hub and bundled names, a missing archive or source, an occupied target.
    pub fn restore(
        &self,
        files: &mut dyn Files,
        now: Millis,
        name: &str,
    ) -> Result<Option<Lifecycle>, MoveError> {
        let owners = Owners::load(files, &self.root);
        if owners.is_hub(name) {
            return Err(MoveError::Hub);
        }
        if owners.is_bundled(name) && !self.prune_builtins {
            return Err(MoveError::Bundled);
        }
        if !files.is_dir(&self.archive_dir()) {
            return Err(MoveError::NoArchive);
        }
        let source = self.archived(files, name).ok_or(MoveError::NotArchived)?;
        let target = join(&self.root, name);
        if files.exists(&target) {
            return Err(MoveError::Occupied);
        }
        files.rename(&source, &target).map_err(|_| MoveError::Failed)?;
        suppress(files, &self.root, name, false);
        let mut usage = Usage::load(files, &self.root);
        let event = usage.set_state(name, State::Active, now);
        usage.save(files, &self.root).map_err(|_| MoveError::Failed)?;
        Ok(event)
    }

    /// The archived directory that a name means: named exactly so, else the newest with a time behind the name,
    /// else one that gives itself the name.
    fn archived(&self, files: &dyn Files, name: &str) -> Option<String> {
        let mut dirs = Vec::new();
        let mut open = vec![self.archive_dir()];
        while let Some(dir) = open.pop() {
            for (child, kind) in files.list(&dir) {
                if kind == EntryKind::Dir {
                    dirs.push(join(&dir, &child));
                    open.push(join(&dir, &child));
                }
            }
        }
        dirs.sort();
        if let Some(exact) = dirs.iter().find(|dir| file_name(dir) == name) {
            return Some(exact.clone());
        }
        let stamped = |dir: &&String| {
            let rest = file_name(dir).strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(|rest| rest.len() == 14 && rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if let Some(newest) = dirs.iter().filter(stamped).max_by(|a, b| file_name(a).cmp(file_name(b))) {
            return Some(newest.clone());
        }
        dirs.into_iter().find(|dir| {
            let text = files.read_text(&join(dir, "SKILL.md")).unwrap_or_default();
            super::frontmatter::name(&text).as_deref() == Some(name)
        })
    }

    /// Path of the archive.
    pub fn archive_dir(&self) -> String {
        join(&self.root, ".archive")
    }

    /// Removes a category directory that has become empty.
    pub(super) fn prune_empty(&self, files: &mut dyn Files, dir: &str) {
        if dir != self.root && dir.starts_with(&format!("{}/", self.root)) && files.list(dir).is_empty() {
            // An empty directory that stays is no harm.
            let _ = files.remove_dir(dir);
        }
    }

    /// Deletes an archived directory for good, with a note and a copy of its SKILL.md in the audit log. False when the
    /// disk refuses.
    pub fn purge_archived(&self, files: &mut dyn Files, now: Millis, dir: &str) -> bool {
        let before = files.read(&join(dir, "SKILL.md")).ok();
        if files.remove_dir(dir).is_err() {
            return false;
        }
        let change = super::ledger::Change {
            action: "purge",
            name: file_name(dir),
            path: dir,
            origin: "foreground",
            before,
            after: None,
        };
        super::ledger::note(files, &self.root, now, &self.knobs, change);
        true
    }

    /// When an archived directory was archived: the newer of the record's time (if it still says archived) and the
    /// directory's own.
    pub fn archived_at(&self, files: &dyn Files, usage: &Usage, dir: &str) -> Millis {
        let record = usage.get(file_name(dir)).filter(|record| record.state() == State::Archived.word());
        let noted = record.and_then(|record| {
            record.fields().get("archived_at").and_then(Value::as_str).and_then(stamp::parse)
        });
        let touched = files.meta(dir).map_or(0, |meta| meta.modified);
        noted.map_or(touched, |noted| noted.max(touched))
    }
}

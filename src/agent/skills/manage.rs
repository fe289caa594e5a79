//! The operations of `skill_manage`, one at a time.
//!
//! Each checks everything before its one write, so that a refusal leaves nothing behind. Called by the tool and by
//! batches. Never: a delete by a review that loses content.

use super::archive::MoveError;
use super::frontmatter;
use super::fuzzy;
use super::guard::Writer;
use super::ledger;
use super::lint::{Facts, Finding, lint};
use super::operation::{Action, Operation, Request};
use super::paths::{SUPPORT_DIRS, validate_category, validate_file_path, validate_name};
use super::refusal::{Reason, Refusal};
use super::tree::SkillDir;
use super::{Library, Lifecycle, Usage};
use crate::agent::text::{chars, head, strip};
use crate::agent::threats::Scope;
use crate::world::files::{file_name, join, parent};
use crate::world::{EntryKind, Files, Millis};

/// How much of a file a failed patch shows.
const PREVIEW_CHARS: usize = 500;

/// What one operation did.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// What was asked for.
    pub action: Action,
    /// The skill, as named in the call.
    pub name: String,
    /// The changed file, from the home; the skill's directory for deletes.
    pub path: String,
    /// The skill was archived instead of deleted.
    pub archived: bool,
    /// How a replaced text was found, and how often.
    pub replaced: Option<(fuzzy::Strategy, usize)>,
    /// What the lint says; it never blocks.
    pub findings: Vec<Finding>,
    /// What happened in the life of the skill.
    pub event: Option<Lifecycle>,
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Option<Vec<u8>>,
}

/// The answer of a successful call.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// The call waits for the user.
    Staged,
    /// One operation.
    Single(Applied),
    /// All operations of a batch.
    Batch(Vec<Applied>),
}

impl Library {
    /// Carries out a call of the tool. The catalogue in a running session's prompt does not change by it.
    ///
    /// # Errors
    /// The refusal of the operation, or of the batch as a whole.
    pub fn manage(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &Writer,
        request: &Request,
    ) -> Result<Done, Refusal> {
        match request {
            Request::Single(operation) => self.single(files, now, writer, operation),
            Request::Batch { name, operations } => {
                self.batch(files, now, writer, name, operations.as_deref().unwrap_or_default())
            }
        }
    }

    pub(super) fn single(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &Writer,
        op: &Operation,
    ) -> Result<Done, Refusal> {
        if op.action == Some(Action::Delete)
            && let Some(dir) = self.find(files, &op.name)
        {
            self.check_provenance(files, writer, &op.name, &dir)?;
        }
        if self.knobs.approval {
            return Ok(Done::Staged);
        }
        op.check_shape()?;
        let applied = self.run(files, now, writer, op)?;
        self.note(files, now, writer, &applied);
        Ok(Done::Single(applied))
    }

    /// Runs one operation whose shape is right, and keeps the usage record.
    pub(super) fn run(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &Writer,
        op: &Operation,
    ) -> Result<Applied, Refusal> {
        let name = &op.name;
        validate_name(if op.action == Some(Action::Create) { name } else { file_name(name) }, &self.knobs)?;
        let mut applied = match &op.action {
            Some(Action::Create) => self.create(files, op)?,
            Some(Action::Edit) => self.rewrite(files, writer, op)?,
            Some(Action::Patch) if op.is_rewrite() => self.rewrite(files, writer, op)?,
            Some(Action::Patch) => self.patch(files, writer, op)?,
            Some(Action::WriteFile) => self.write_file(files, writer, op)?,
            Some(Action::RemoveFile) => self.remove_file(files, writer, op)?,
            Some(Action::Delete) => return self.delete(files, now, writer, op),
            Some(Action::Unknown(_)) | None => {
                return Err(Refusal::new(Reason::UnknownAction, "unknown action"));
            }
        };
        let mut usage = Usage::load(files, &self.root);
        applied.event = Some(match applied.action {
            Action::Create => usage.created(name, if writer.is_review() { "agent" } else { "learn" }, now),
            _ => usage.patched(name, now),
        });
        // The file is written; a counter that cannot be kept does not undo it.
        let _ = usage.save(files, &self.root);
        Ok(applied)
    }

    pub(super) fn note(&self, files: &mut dyn Files, now: Millis, writer: &Writer, applied: &Applied) {
        let origin = if writer.is_review() { "background_review" } else { "foreground" };
        let change = ledger::Change {
            action: applied.action.word(),
            name: &applied.name,
            path: &applied.path,
            origin,
            before: applied.before.clone(),
            after: applied.after.clone(),
        };
        ledger::note(files, &self.root, now, &self.knobs, change);
    }

    fn locate(&self, files: &dyn Files, name: &str) -> Result<SkillDir, Refusal> {
        self.find(files, name)
            .ok_or_else(|| Refusal::new(Reason::SkillNotFound, format!("no skill `{name}`")))
    }

    /// Checks the length of a text that is to be written.
    ///
    /// # Errors
    /// `content_too_large`.
    pub fn check_size(&self, text: &str) -> Result<(), Refusal> {
        if chars(text) <= self.knobs.content_chars_max {
            return Ok(());
        }
        Err(Refusal::new(Reason::ContentTooLarge, "the text is too long; move parts into support files"))
    }

    fn write(&self, files: &mut dyn Files, path: &str, text: &str) -> Result<(), Refusal> {
        if let Some(finding) =
            self.scanner.as_ref().and_then(|scanner| scanner.scan(text, Scope::Context).first().copied())
        {
            return Err(Refusal::new(
                Reason::ScanBlocked,
                format!("the text looks like an attack: {finding}"),
            ));
        }
        files
            .write(path, text.as_bytes())
            .map_err(|error| Refusal::new(Reason::WriteFailed, format!("cannot be written: {error}")))
    }

    fn create(&self, files: &mut dyn Files, op: &Operation) -> Result<Applied, Refusal> {
        let content = op.content.as_deref().unwrap_or_default();
        let category = validate_category(op.category.as_ref(), &self.knobs)?;
        frontmatter::validate(content, true, &self.knobs)?;
        self.check_size(content)?;
        if let Some(dir) = self.find(files, &op.name) {
            return Err(Refusal::new(Reason::AlreadyExists, format!("`{}` exists already", dir.path)));
        }
        let dir = join(&join(&self.root, category.as_deref().unwrap_or_default()), &op.name);
        if files.exists(&dir) && !(files.is_dir(&dir) && files.list(&dir).is_empty()) {
            return Err(Refusal::new(Reason::TargetOccupied, format!("`{dir}` is not empty")));
        }
        let path = join(&dir, "SKILL.md");
        self.write(files, &path, content)?;
        let mut applied = applied(op, &path, None, content);
        applied.findings = lint(content, Some(&Facts::of(files, &dir)), &self.knobs);
        Ok(applied)
    }

    fn rewrite(&self, files: &mut dyn Files, writer: &Writer, op: &Operation) -> Result<Applied, Refusal> {
        let content = op.content.as_deref().unwrap_or_default();
        frontmatter::validate(content, false, &self.knobs)?;
        self.check_size(content)?;
        let dir = self.locate(files, &op.name)?;
        self.check_content_provenance(files, writer, &op.name, &dir)?;
        let path = dir.skill_file();
        self.check_read(files, writer, &path)?;
        let before = files.read(&path).ok();
        self.write(files, &path, content)?;
        Ok(applied(op, &path, before, content))
    }

    fn patch(&self, files: &mut dyn Files, writer: &Writer, op: &Operation) -> Result<Applied, Refusal> {
        let dir = self.locate(files, &op.name)?;
        self.check_content_provenance(files, writer, &op.name, &dir)?;
        let path = match op.file_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => contained(files, &dir, &validate_file_path(path)?)?,
            None => dir.skill_file(),
        };
        if !files.is_file(&path) && files.resolve(&path).is_none() {
            return Err(self.no_file(files, &dir, &path));
        }
        self.check_read(files, writer, &path)?;
        let text = files.read_text(&path).map_err(|error| {
            Refusal::new(Reason::FileNotFound, format!("cannot be read as text: {error}"))
        })?;
        let (old, new) =
            (op.old_string.as_deref().unwrap_or_default(), op.new_string.as_deref().unwrap_or_default());
        let replaced = fuzzy::replace(&text, old, new, op.replace_all).map_err(|reason| {
            let mut refusal = Refusal::new(reason, format!("`{path}` was not changed"));
            refusal.preview = (reason == Reason::NoMatch).then(|| head(&text, PREVIEW_CHARS).to_owned());
            refusal
        })?;
        self.check_size(&replaced.content)?;
        let is_skill_file = path == dir.skill_file();
        if is_skill_file && let Err(broken) = frontmatter::validate(&replaced.content, false, &self.knobs) {
            return Err(Refusal::new(
                Reason::PatchBreaksStructure,
                format!("the result would be broken: {broken}"),
            ));
        }
        self.write(files, &path, &replaced.content)?;
        let mut applied = applied(op, &path, Some(text.clone().into_bytes()), &replaced.content);
        applied.replaced = Some((replaced.strategy, replaced.replacements));
        if is_skill_file {
            let facts = Facts::of(files, &dir.path);
            let old: Vec<Finding> = lint(&text, Some(&facts), &self.knobs);
            applied.findings = lint(&replaced.content, Some(&facts), &self.knobs);
            applied.findings.retain(|finding| !old.contains(finding));
        }
        Ok(applied)
    }

    fn write_file(&self, files: &mut dyn Files, writer: &Writer, op: &Operation) -> Result<Applied, Refusal> {
        let relative = validate_file_path(op.file_path.as_deref().unwrap_or_default())?;
        let content = op.file_content.as_deref().unwrap_or_default();
        if content.len() as u64 > self.knobs.file_bytes_max {
            return Err(Refusal::new(Reason::FileTooLargeBytes, "the file is too large"));
        }
        self.check_size(content)?;
        let dir = self.locate(files, &op.name)?;
        self.check_content_provenance(files, writer, &op.name, &dir)?;
        let path = contained(files, &dir, &relative)?;
        self.check_read(files, writer, &path)?;
        let before = files.read(&path).ok();
        self.write(files, &path, content)?;
        let mut applied = applied(op, &path, before, content);
        if relative.starts_with("references/") {
            let text = files.read_text(&dir.skill_file()).unwrap_or_default();
            applied.findings = lint(&text, Some(&Facts::of(files, &dir.path)), &self.knobs);
            applied.findings.retain(|finding| finding.is_about_files());
        }
        Ok(applied)
    }

    fn remove_file(
        &self,
        files: &mut dyn Files,
        writer: &Writer,
        op: &Operation,
    ) -> Result<Applied, Refusal> {
        let relative = validate_file_path(op.file_path.as_deref().unwrap_or_default())?;
        let dir = self.locate(files, &op.name)?;
        self.check_content_provenance(files, writer, &op.name, &dir)?;
        let path = contained(files, &dir, &relative)?;
        if !files.exists(&path) || files.is_dir(&path) {
            return Err(self.no_file(files, &dir, &path));
        }
        self.check_read(files, writer, &path)?;
        let before = files.read(&path).ok();
        files
            .remove_file(&path)
            .map_err(|error| Refusal::new(Reason::WriteFailed, format!("cannot be removed: {error}")))?;
        let above = parent(&path);
        if above != dir.path && files.list(above).is_empty() {
            // An empty directory that stays is no harm.
            let _ = files.remove_dir(above);
        }
        let mut applied = applied(op, &path, before, "");
        applied.after = None;
        Ok(applied)
    }

    fn delete(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &Writer,
        op: &Operation,
    ) -> Result<Applied, Refusal> {
        let dir = self.locate(files, &op.name)?;
        let absorbed = op.absorbed_into.as_deref().map(strip).unwrap_or_default();
        if writer.is_review() && self.knobs.review_delete_absorbs && absorbed.is_empty() {
            return Err(Refusal::new(Reason::BgNoAbsorption, "name the skill that takes the content over"));
        }
        if self.is_essential(&op.name) || self.is_essential(dir.dir_name()) {
            return Err(Refusal::new(Reason::Essential, "this skill is never deleted"));
        }
        let own_name = self.usage_name(files, &dir);
        let mut usage = Usage::load(files, &self.root);
        let record = usage.get(&op.name).or_else(|| usage.get(&own_name));
        if record.is_some_and(super::Record::is_pinned) {
            return Err(Refusal::new(Reason::Pinned, "the skill is pinned"));
        }
        if !absorbed.is_empty() {
            let same = |target: SkillDir| target.path == dir.path;
            if absorbed == op.name || self.find(files, absorbed).is_none_or(same) {
                return Err(Refusal::new(
                    Reason::AbsorbedTargetInvalid,
                    format!("`{absorbed}` cannot take over"),
                ));
            }
        }
        let is_root = dir.path == self.root || self.external.contains(&dir.path);
        if is_root || files.meta(&dir.path).is_none_or(|meta| meta.kind != EntryKind::Dir) {
            return Err(Refusal::new(Reason::UnsafeDeleteTarget, "not a skill directory below a root"));
        }
        let mut applied = applied(op, &dir.path, files.read(&dir.skill_file()).ok(), "");
        applied.after = None;
        if writer.is_review() && self.knobs.review_delete_archives {
            applied.event = self.archive(files, now, &own_name).map_err(refused_move)?;
            applied.archived = true;
            return Ok(applied);
        }
        files
            .remove_dir(&dir.path)
            .map_err(|error| Refusal::new(Reason::WriteFailed, format!("cannot be deleted: {error}")))?;
        self.prune_empty(files, parent(&dir.path));
        usage.forget(&op.name);
        let _ = usage.save(files, &self.root);
        Ok(applied)
    }

    fn no_file(&self, files: &dyn Files, dir: &SkillDir, path: &str) -> Refusal {
        let mut refusal = Refusal::new(Reason::FileNotFound, format!("`{path}` does not exist"));
        refusal.available_files = Some(self.support_files(files, dir));
        refusal
    }

    /// The support files of a skill, relative to it, sorted.
    pub fn support_files(&self, files: &dyn Files, dir: &SkillDir) -> Vec<String> {
        let prefix = format!("{}/", dir.path);
        SUPPORT_DIRS
            .iter()
            .flat_map(|support| files.walk(&join(&dir.path, support)))
            .filter_map(|path| path.strip_prefix(&prefix).map(str::to_owned))
            .collect()
    }
}

/// The path of a file of a skill, if links do not lead it elsewhere.
pub(super) fn contained(files: &dyn Files, dir: &SkillDir, relative: &str) -> Result<String, Refusal> {
    let path = join(&dir.path, relative);
    let mut known = path.as_str();
    while !files.exists(known) && known.len() > dir.path.len() {
        known = parent(known);
    }
    let inside = match (files.resolve(&dir.path), files.resolve(known)) {
        (Some(dir), Some(real)) => real == dir || real.starts_with(&format!("{dir}/")),
        _ => false,
    };
    if inside { Ok(path) } else { Err(Refusal::new(Reason::PathEscape, "the path leaves the skill")) }
}

fn applied(op: &Operation, path: &str, before: Option<Vec<u8>>, after: &str) -> Applied {
    Applied {
        action: op.action.clone().unwrap_or(Action::Patch),
        name: op.name.clone(),
        path: path.to_owned(),
        archived: false,
        replaced: None,
        findings: Vec::new(),
        event: None,
        before,
        after: Some(after.as_bytes().to_vec()),
    }
}

fn refused_move(error: MoveError) -> Refusal {
    let reason = match error {
        MoveError::External => Reason::BgExternal,
        MoveError::Protected => Reason::BgProtected,
        MoveError::Hub => Reason::BgHub,
        MoveError::Bundled => Reason::BgBundled,
        MoveError::NotFound => Reason::SkillNotFound,
        _ => Reason::WriteFailed,
    };
    Refusal::new(reason, format!("cannot be archived: {error}"))
}

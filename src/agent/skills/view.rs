//! Reading skills: the list, the catalogue of the prompt, one skill or one of its files.
//!
//! A view counts as a use and marks the file as read by its reader. Called by `skills_list`, `skill_view` and the
//! prompt. Never: a change of a skill.

use serde_json::Value;

use super::frontmatter;
use super::guard::{Origin, Writer};
use super::manage::contained;
use super::refusal::{Reason, Refusal};
use super::tree::SkillDir;
use super::{Library, Lifecycle, Usage};
use crate::agent::yaml;
use crate::world::files::join;
use crate::world::{Files, Millis, normalize};

/// One line of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name that the skill gives itself, else its directory's.
    pub name: String,
    /// Directories between the root and the skill; empty at the top.
    pub category: String,
    /// The description, cut to a line.
    pub description: String,
    /// True when it was cut.
    pub truncated: bool,
    /// Path of the directory from the home.
    pub path: String,
    /// True in a foreign directory.
    pub external: bool,
}

/// What a view shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The skill's directory.
    pub dir: SkillDir,
    /// Path of the shown file from the home.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The skill's support files, relative to it.
    pub support_files: Vec<String>,
}

impl Library {
    /// Every skill as the catalogue shows it, sorted by category and name.
    pub fn catalogue(&self, files: &dyn Files) -> Vec<CatalogueEntry> {
        let mut entries: Vec<CatalogueEntry> =
            self.all(files).into_iter().map(|dir| self.catalogue_entry(files, &dir)).collect();
        entries.sort_by(|a, b| (&a.category, &a.name, &a.path).cmp(&(&b.category, &b.name, &b.path)));
        entries
    }

    fn catalogue_entry(&self, files: &dyn Files, dir: &SkillDir) -> CatalogueEntry {
        let text = files.read_text(&dir.skill_file()).unwrap_or_default();
        let (fields, _) = frontmatter::parse(&text);
        let description = fields.get("description").unwrap_or(&Value::Null);
        let (description, truncated) =
            frontmatter::catalogue_line(description, self.knobs.catalogue_chars_max);
        let name = fields.get("name").filter(|name| !name.is_null()).map(yaml::show);
        CatalogueEntry {
            name: frontmatter::name(&text).or(name).unwrap_or_else(|| dir.dir_name().to_owned()),
            category: dir.category().to_owned(),
            description,
            truncated,
            path: dir.path.clone(),
            external: dir.external,
        }
    }

    /// Loads SKILL.md or another file of a skill and marks it as read, without counting.
    ///
    /// # Errors
    /// `skill_not_found`, `path_traversal`, `path_escape`, `file_not_found`.
    pub fn load(
        &self,
        files: &dyn Files,
        writer: &mut Writer,
        name: &str,
        file_path: Option<&str>,
    ) -> Result<View, Refusal> {
        let Some(dir) = self.find(files, name) else {
            return Err(Refusal::new(Reason::SkillNotFound, format!("no skill `{name}`")));
        };
        let path = match file_path.filter(|path| !path.is_empty()) {
            None => dir.skill_file(),
            Some(path) => {
                let Some(clean) = normalize(path).filter(|_| !path.starts_with('/')) else {
                    return Err(Refusal::new(Reason::PathTraversal, "the path must not climb"));
                };
                contained(files, &dir, &clean)?
            }
        };
        let support_files = self.support_files(files, &dir);
        let text = files.read_text(&path).map_err(|error| {
            let mut refusal = Refusal::new(Reason::FileNotFound, error.to_string());
            refusal.available_files = Some(support_files.clone());
            refusal
        })?;
        writer.mark_read(files, &path);
        Ok(View { dir, path, text, support_files })
    }

    /// `skill_view`: as [`Library::load`], and counted as a view and a use (Hermes tools/skills_tool.py:714-720).
    ///
    /// # Errors
    /// As [`Library::load`].
    pub fn view(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &mut Writer,
        name: &str,
        file_path: Option<&str>,
    ) -> Result<(View, Lifecycle), Refusal> {
        let view = self.load(files, writer, name, file_path)?;
        let event = self.count(files, &view, |usage, name| {
            usage.viewed(name, now);
            usage.used(name, now)
        });
        Ok((view, event))
    }

    /// A skill that the user or a job names: as [`Library::load`], and counted as a use alone (Hermes
    /// cron/scheduler_prompt.py:238).
    ///
    /// # Errors
    /// As [`Library::load`].
    pub fn take_up(&self, files: &mut dyn Files, now: Millis, name: &str) -> Result<View, Refusal> {
        let view = self.load(files, &mut Writer::new(Origin::Foreground), name, None)?;
        self.count(files, &view, |usage, name| usage.used(name, now));
        Ok(view)
    }

    fn count(
        &self,
        files: &mut dyn Files,
        view: &View,
        change: impl FnOnce(&mut Usage, &str) -> Lifecycle,
    ) -> Lifecycle {
        let own_name = self.usage_name(files, &view.dir);
        let mut usage = Usage::load(files, &self.root);
        let event = change(&mut usage, &own_name);
        // The text is shown; a counter that cannot be kept is no reason to refuse it.
        let _ = usage.save(files, &self.root);
        event
    }

    /// The path of a skill directory's SKILL.md by the name of a call, for readers outside this room.
    pub fn skill_file(&self, files: &dyn Files, name: &str) -> Option<String> {
        self.find(files, name).map(|dir| join(&dir.path, "SKILL.md"))
    }
}

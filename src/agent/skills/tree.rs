//! Discovery: which directories are skills, and which one a text means.

use super::Library;
use super::frontmatter;
use super::paths::{SUPPORT_DIRS, is_excluded_dir};
use crate::world::files::{file_name, join, parent};
use crate::world::{EntryKind, Files};

/// A directory with a SKILL.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDir {
    /// Path from the home.
    pub path: String,
    /// The root below which it lies.
    pub root: String,
    /// True in a foreign directory.
    pub external: bool,
}

impl SkillDir {
    /// Name of the directory.
    pub fn dir_name(&self) -> &str {
        file_name(&self.path)
    }

    /// Path of SKILL.md.
    pub fn skill_file(&self) -> String {
        join(&self.path, "SKILL.md")
    }

    /// The directories between the root and the skill; empty when there are none.
    pub fn category(&self) -> &str {
        let below = self.path.strip_prefix(&self.root).unwrap_or_default().trim_start_matches('/');
        parent(below)
    }
}

impl Library {
    /// Every skill below one root, sorted by path.
    pub fn discover(&self, files: &dyn Files, root: &str, external: bool) -> Vec<SkillDir> {
        let mut found = Vec::new();
        let mut open = vec![(root.to_owned(), false)];
        while let Some((dir, in_skill)) = open.pop() {
            let entries = files.list(&dir);
            let here = entries.iter().any(|(name, kind)| name == "SKILL.md" && *kind != EntryKind::Dir);
            if here {
                found.push(SkillDir { path: dir.clone(), root: root.to_owned(), external });
            }
            for (name, kind) in entries {
                // A support directory belongs to the skill that holds it, however deep it is.
                let hidden = is_excluded_dir(&name) || (here && SUPPORT_DIRS.contains(&name.as_str()));
                if kind == EntryKind::Dir && !hidden {
                    open.push((join(&dir, &name), in_skill || here));
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// The skills of the home.
    pub fn local(&self, files: &dyn Files) -> Vec<SkillDir> {
        self.discover(files, &self.root, false)
    }

    /// The skills of the home, then those of the foreign directories.
    pub fn all(&self, files: &dyn Files) -> Vec<SkillDir> {
        let mut all = self.local(files);
        for dir in &self.external {
            all.extend(self.discover(files, dir, true));
        }
        all
    }

    /// The name by which usage, curator and archive know a skill.
    pub fn usage_name(&self, files: &dyn Files, dir: &SkillDir) -> String {
        let text = files.read_text(&dir.skill_file()).unwrap_or_default();
        frontmatter::name(&text).unwrap_or_else(|| dir.dir_name().to_owned())
    }

    /// The skill that a tool call means (Hermes tools/skill_manager_tool.py:240-293): by directory name, by path
    /// below the root, or by the one front matter that gives itself this name.
    pub fn find(&self, files: &dyn Files, text: &str) -> Option<SkillDir> {
        if text.is_empty() {
            return None;
        }
        let all = self.all(files);
        let wanted = join(&self.root, text);
        let direct =
            all.iter().find(|dir| dir.dir_name() == text || (text.contains('/') && dir.path == wanted));
        if let Some(dir) = direct {
            return Some(dir.clone());
        }
        let mut named = all.into_iter().filter(|dir| {
            let content = files.read_text(&dir.skill_file()).unwrap_or_default();
            frontmatter::name(&content).as_deref() == Some(text)
        });
        let only = named.next()?;
        if named.next().is_some() { None } else { Some(only) }
    }

    /// The local skill of a usage name.
    pub fn find_by_usage_name(&self, files: &dyn Files, name: &str) -> Option<SkillDir> {
        self.local(files).into_iter().find(|dir| self.usage_name(files, dir) == name)
    }

    /// True when a usage name exists only in a foreign directory.
    pub fn is_external_only(&self, files: &dyn Files, name: &str) -> bool {
        self.find_by_usage_name(files, name).is_none()
            && self
                .external
                .iter()
                .flat_map(|dir| self.discover(files, dir, true))
                .any(|dir| self.usage_name(files, &dir) == name)
    }
}

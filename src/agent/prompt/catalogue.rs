//! The skills catalogue: one line per skill, in every prompt.
//!
//! No entry is ever dropped and there is no limit on their number; retiring skills is somebody else's work. The text
//! depends on the files and the offer alone, so it is the same whenever it is built from the same.

mod find;
mod offer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::policy::Prompt;
use crate::world::Files;

pub use find::{Entry, shown_description};
pub use offer::{Offer, can_read_skills};

/// A tree of skills. Trees of a lower rank number hide names in those of a higher one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Directory.
    pub path: String,
    /// 0 trusted project, 1 own home, 2 create folder, 3 external folders.
    pub rank: u8,
}

impl Root {
    /// The tree of the agent's home.
    pub fn home(path: &str) -> Self {
        Self { path: path.to_owned(), rank: 1 }
    }
}

/// Rows of one category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// Name and shown description of each.
    Full(Vec<(String, String)>),
    /// Names alone, for a demoted category.
    Names(Vec<String>),
}

/// One category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// Path of the category.
    pub name: String,
    /// What its DESCRIPTION.md says; may be empty.
    pub description: String,
    /// Its skills.
    pub rows: Rows,
}

/// The catalogue of an offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// Categories by code point.
    pub categories: Vec<Category>,
    /// Names that cannot be told apart even by path.
    pub ambiguous: Vec<String>,
}

/// Where the list begins.
const START: &str = "<available_skills>";
/// Where the list ends.
const END: &str = "</available_skills>";
const INTRO: &str = "Skills are instructions for recurring tasks. Look through this list before you start; when a \
                     line fits the task, load it with skill_view and follow it.";
/// Category of skills that plugins bring.
pub const PLUGIN: &str = "plugin";

/// Builds the catalogue (Hermes agent/prompt_builder.py:1428). `plugins` are names and descriptions from plugins.
pub fn build(
    files: &dyn Files,
    roots: &[Root],
    plugins: &[(String, String)],
    offer: &Offer<'_>,
    knobs: &Prompt,
) -> Catalogue {
    let mut entries: Vec<Entry> = Vec::new();
    let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
    let mut roots: Vec<&Root> = roots.iter().collect();
    roots.sort_by_key(|root| root.rank);
    for (number, root) in roots.iter().enumerate() {
        let scan = find::scan(files, root, number, knobs);
        entries.extend(scan.entries.into_iter().filter(|entry| offer.offers(entry, &knobs.operating_system)));
        for (category, description) in scan.descriptions {
            descriptions.entry(category).or_insert(description);
        }
    }
    let (mut rows, ambiguous) = find::tell_apart(entries);
    rows.extend(plugins.iter().map(|(name, description)| find::plugin(name, description)));
    let mut by_category: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for row in rows {
        let category = by_category.entry(row.category).or_default();
        category.entry(row.name).or_insert(row.shown);
    }
    let categories = by_category
        .into_iter()
        .map(|(name, skills)| {
            let top = name.split('/').next().unwrap_or("");
            let rows = if offer.demoted.iter().any(|demoted| demoted == top) {
                Rows::Names(skills.into_keys().collect())
            } else {
                Rows::Full(skills.into_iter().collect())
            };
            let description = descriptions.get(&name).cloned().unwrap_or_default();
            Category { name, description, rows }
        })
        .collect();
    Catalogue { categories, ambiguous }
}

impl Catalogue {
    /// True when there is nothing to list.
    pub fn is_empty(&self) -> bool {
        self.categories.is_empty() && self.ambiguous.is_empty()
    }

    /// Every listed name, sorted.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for category in &self.categories {
            match &category.rows {
                Rows::Full(rows) => names.extend(rows.iter().map(|(name, _)| name.clone())),
                Rows::Names(rows) => names.extend(rows.iter().cloned()),
            }
        }
        names
    }

    /// The text for the prompt; empty when there is nothing to list.
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut out = format!("{INTRO}\n\n{START}\n");
        for category in &self.categories {
            match &category.rows {
                Rows::Names(names) => {
                    let _ = writeln!(out, "  {} [names only]: {}", category.name, names.join(", "));
                }
                Rows::Full(rows) => {
                    let space = if category.description.is_empty() { "" } else { " " };
                    let _ = writeln!(out, "  {}:{space}{}", category.name, category.description);
                    for (name, description) in rows {
                        let colon = if description.is_empty() { "" } else { ": " };
                        let _ = writeln!(out, "    - {name}{colon}{description}");
                    }
                }
            }
        }
        out.push_str(END);
        if !self.ambiguous.is_empty() {
            let _ = write!(
                out,
                "\n\nNot listed because several skills share name and place: {}.",
                self.ambiguous.join(", ")
            );
        }
        out
    }
}

/// The names in the catalogue of a prompt; `None` when the prompt has no catalogue.
pub fn names_in(prompt: &str) -> Option<BTreeSet<String>> {
    let (_, after) = prompt.split_once(START)?;
    let (list, _) = after.split_once(END)?;
    let mut names = BTreeSet::new();
    for line in list.lines() {
        if let Some(row) = line.strip_prefix("    - ") {
            names.insert(row.split_once(": ").map_or(row, |(name, _)| name).trim_end().to_owned());
        } else if let Some((_, row)) = line.split_once(" [names only]: ") {
            names.extend(row.split(", ").map(str::to_owned));
        }
    }
    Some(names)
}

/// Catalogues that were built, least recently used first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogueCache {
    kept: Vec<(String, String)>,
}

impl CatalogueCache {
    /// The text for a key, built only when it is not kept.
    ///
    /// The key must hold everything that the text depends on: roots, file signatures, offer.
    pub fn get(&mut self, key: &str, knobs: &Prompt, build: impl FnOnce() -> String) -> String {
        if let Some(at) = self.kept.iter().position(|(known, _)| known == key) {
            let kept = self.kept.remove(at);
            self.kept.push(kept.clone());
            return kept.1;
        }
        let text = build();
        self.kept.push((key.to_owned(), text.clone()));
        let max = usize::try_from(knobs.catalogue_cache_max).unwrap_or(usize::MAX);
        let gone = self.kept.len().saturating_sub(max);
        self.kept.drain(..gone);
        text
    }

    /// Forgets everything; after a successful write of a skill.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// A key from the state of the trees and an offer.
    pub fn key(files: &dyn Files, roots: &[Root], offer: &Offer<'_>) -> String {
        let mut key = format!("{offer:?}");
        for root in roots {
            let _ = write!(key, "\n{}:{}", root.rank, root.path);
            for path in files.walk(&root.path) {
                if let Some(meta) = files.meta(&path).filter(|_| path.strip_suffix(".md").is_some()) {
                    let _ = write!(key, "\n{path} {} {}", meta.len, meta.modified);
                }
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    fn tree() -> MemFiles {
        let mut files = MemFiles::new();
        files.write("skills/a/one/SKILL.md", b"---\nname: one\ndescription: 'it: works'\n---\n").unwrap();
        files.write("skills/b/two/SKILL.md", b"---\nname: two\n---\n").unwrap();
        files
    }

    #[test]
    fn names_are_read_back_from_the_text() {
        let offer = Offer { demoted: &["b".to_owned()], ..Offer::default() };
        let built = build(&tree(), &[Root::home("skills")], &[], &offer, &Prompt::default());
        assert_eq!(names_in(&format!("x\n{}\ny", built.text())), Some(built.names()));
        assert_eq!(names_in("nothing"), None);
    }

    #[test]
    fn a_better_root_hides_a_name_of_a_worse_one() {
        let mut files = tree();
        files.write("project/c/one/SKILL.md", b"---\nname: one\ndescription: mine\n---\n").unwrap();
        let roots = [Root::home("skills"), Root { path: "project".to_owned(), rank: 0 }];
        let text = build(&files, &roots, &[], &Offer::default(), &Prompt::default()).text();
        assert!(text.contains("    - one: [project] mine\n") && !text.contains("it: works"), "{text}");
    }

    #[test]
    fn the_cache_keeps_what_was_used_last() {
        let knobs = Prompt { catalogue_cache_max: 1, ..Prompt::default() };
        let mut cache = CatalogueCache::default();
        cache.get("a", &knobs, || "1".to_owned());
        cache.get("b", &knobs, || "2".to_owned());
        assert_eq!(cache.get("a", &knobs, || "3".to_owned()), "3");
        assert_eq!(cache.get("a", &knobs, || panic!("kept")), "3");
    }
}

//! Finding skills in a tree, reading their front matter, telling equal names apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::agent::prompt::catalogue::{PLUGIN, Root};
use crate::agent::prompt::front_matter;
use crate::agent::skills::{EXCLUDED_DIRS, SUPPORT_DIRS, catalogue_line};
use crate::policy::Prompt;
use crate::world::files::{file_name, join, parent};
use crate::world::{EntryKind, Files};

/// One skill that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Name of its directory.
    pub folder: String,
    /// Its category.
    pub category: String,
    /// Its description as it is shown.
    pub shown: String,
    /// Its front matter.
    pub fields: Map<String, Value>,
    /// Directory relative to its root.
    pub place: String,
    rank: u8,
    root: usize,
    digest: Vec<u8>,
}

/// A tree that was read.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub entries: Vec<Entry>,
    pub descriptions: Vec<(String, String)>,
}

/// A description as a catalogue line shows it, and whether it was cut (Hermes agent/skill_utils.py:822).
pub fn shown_description(description: Option<&Value>, limit: u64) -> (String, bool) {
    catalogue_line(description.unwrap_or(&Value::Null), limit)
}

/// Every skill below a root, by path.
pub(super) fn scan(files: &dyn Files, root: &Root, number: usize, knobs: &Prompt) -> Scanned {
    let mut scanned = Scanned::default();
    let mut open = vec![(String::new(), root.path.clone())];
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    while let Some((place, real)) = open.pop() {
        if !seen.insert(files.resolve(&real).unwrap_or_else(|| real.clone())) {
            continue;
        }
        let listing = files.list(&real);
        let is_skill = listing.iter().any(|(name, kind)| name == "SKILL.md" && *kind != EntryKind::Dir);
        for (name, kind) in &listing {
            let path = join(&real, name);
            let target = if *kind == EntryKind::Link { files.resolve(&path) } else { None };
            let is_dir = *kind == EntryKind::Dir || target.as_deref().is_some_and(|to| files.is_dir(to));
            let pruned =
                EXCLUDED_DIRS.contains(&name.as_str()) || (is_skill && SUPPORT_DIRS.contains(&name.as_str()));
            if is_dir && !pruned {
                open.push((join(&place, name), target.unwrap_or(path)));
            } else if !is_dir && (name == "SKILL.md" || name == "DESCRIPTION.md") {
                places.push((join(&place, name), path));
            }
        }
    }
    places.sort();
    for (place, path) in places {
        let text = files.read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if file_name(&place) == "DESCRIPTION.md" {
            let fields = text.map(|text| front_matter::fields(&text)).unwrap_or_default();
            let description = front_matter::plain(fields.get("description"));
            if !description.is_empty() {
                let category = parent(&place);
                let category = if category.is_empty() { "general" } else { category };
                scanned.descriptions.push((category.to_owned(), description));
            }
        } else {
            let text = text.unwrap_or_default();
            scanned.entries.push(entry(parent(&place), &text, root, number, knobs));
        }
    }
    scanned
}

fn entry(place: &str, text: &str, root: &Root, number: usize, knobs: &Prompt) -> Entry {
    let fields = front_matter::fields(text);
    let folder = if place.is_empty() { file_name(&root.path) } else { file_name(place) };
    let category = match (place, parent(place)) {
        ("", _) => "general",
        (place, "") => place,
        (_, above) => above,
    };
    let name = match fields.get("name") {
        None | Some(Value::Null) => String::new(),
        Some(value) => front_matter::plain(Some(value)),
    };
    let (mut shown, _) = shown_description(fields.get("description"), knobs.description_chars_max);
    if root.rank == 0 {
        let separator = if shown.is_empty() { "" } else { " " };
        shown.insert_str(0, separator);
        shown.insert_str(0, "[project]");
    }
    Entry {
        name: if name.is_empty() { folder.to_owned() } else { name },
        folder: folder.to_owned(),
        category: category.to_owned(),
        shown,
        fields,
        place: place.to_owned(),
        rank: root.rank,
        root: number,
        digest: Sha256::digest(text.as_bytes()).to_vec(),
    }
}

/// A skill that a plugin brings.
pub(super) fn plugin(name: &str, description: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        folder: name.to_owned(),
        category: PLUGIN.to_owned(),
        shown: description.to_owned(),
        fields: Map::new(),
        place: name.to_owned(),
        rank: u8::MAX,
        root: usize::MAX,
        digest: Vec::new(),
    }
}

/// Decides between skills of one name (Hermes agent/skill_utils.py:384); the second value names what cannot be told
/// apart.
pub(super) fn tell_apart(entries: Vec<Entry>) -> (Vec<Entry>, Vec<String>) {
    let mut by_name: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        by_name.entry(entry.name.clone()).or_default().push(entry);
    }
    let (mut kept, mut ambiguous) = (Vec::new(), Vec::new());
    for (name, mut same) in by_name {
        let best = same.iter().map(|entry| entry.rank).min().unwrap_or(0);
        same.retain(|entry| entry.rank == best);
        if same.len() == 1 {
            kept.extend(same);
            continue;
        }
        if let Some(one) = shallowest_copy(&same) {
            kept.push(one);
            continue;
        }
        let mut places: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for entry in same {
            places.entry(entry.place.clone()).or_default().push(entry);
        }
        for (place, mut there) in places {
            match there.pop() {
                Some(entry) if there.is_empty() && !place.is_empty() => {
                    kept.push(Entry { name: place, ..entry });
                }
                _ => {
                    ambiguous.push(name.clone());
                    break;
                }
            }
        }
    }
    (kept, ambiguous)
}

/// The shallowest of copies that are the same file under one root; `None` when they are not, or depths tie.
fn shallowest_copy(same: &[Entry]) -> Option<Entry> {
    let first = same.first()?;
    if same.iter().any(|entry| entry.root != first.root || entry.digest != first.digest) {
        return None;
    }
    let depth = |entry: &Entry| entry.place.matches('/').count();
    let least = same.iter().map(depth).min()?;
    let mut shallow = same.iter().filter(|entry| depth(entry) == least);
    let one = shallow.next()?;
    shallow.next().is_none().then(|| one.clone())
}

//! Who owns a skill: a hub, the distribution, a foreign directory, or the home itself.
//!
//! Read afresh before each decision, because other programs write these files. Called by guards and the curator.

use std::collections::BTreeSet;

use serde_json::Value;

use super::frontmatter;
use crate::world::{Files, normalize};

/// Names that are not the agent's to maintain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owners {
    hub: BTreeSet<String>,
    bundled: BTreeSet<String>,
}

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// Installed from a hub.
    Hub,
    /// Part of the distribution.
    Bundled,
    /// In a foreign directory.
    External,
    /// Anything else, made by hand or by the agent.
    Agent,
}

impl Provenance {
    /// The label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Bundled => "bundled",
            Self::External => "external",
            Self::Agent => "agent",
        }
    }
}

impl Owners {
    /// Reads the hub's lock, the manifest of the distribution and the suppression list.
    pub fn load(files: &dyn Files, root: &str) -> Self {
        let mut owners = Self::default();
        let lock = files.read_text(&format!("{root}/.hub/lock.json")).unwrap_or_default();
        let lock: Value = serde_json::from_str(&lock).unwrap_or_default();
        for (name, entry) in lock.get("installed").and_then(Value::as_object).into_iter().flatten() {
            owners.hub.insert(name.clone());
            // Also the name that the installed skill gives itself, if it lies inside the tree.
            let path = entry.get("install_path").and_then(Value::as_str).and_then(normalize);
            if let Some(path) = path.filter(|path| !path.is_empty()) {
                let path = path.strip_prefix(&format!("{root}/")).unwrap_or(&path);
                let text = files.read_text(&format!("{root}/{path}/SKILL.md")).unwrap_or_default();
                owners.hub.extend(frontmatter::name(&text));
            }
        }
        let manifest = files.read_text(&format!("{root}/.bundled_manifest")).unwrap_or_default();
        owners.bundled.extend(
            manifest.lines().map(|line| line.split(':').next().unwrap_or_default().trim().to_owned()),
        );
        owners.bundled.extend(suppressed(files, root));
        owners.bundled.remove("");
        owners
    }

    /// True for a name that a hub installed.
    pub fn is_hub(&self, name: &str) -> bool {
        self.hub.contains(name)
    }

    /// True for a name of the distribution.
    pub fn is_bundled(&self, name: &str) -> bool {
        self.bundled.contains(name)
    }
}

/// Path of the list of bundled skills that were archived and must not come back by themselves.
fn suppression_path(root: &str) -> String {
    format!("{root}/.curator_suppressed")
}

/// The suppressed names.
pub fn suppressed(files: &dyn Files, root: &str) -> BTreeSet<String> {
    let text = files.read_text(&suppression_path(root)).unwrap_or_default();
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Adds a name to the suppression list, or takes it off. A disk that refuses changes nothing.
pub(super) fn suppress(files: &mut dyn Files, root: &str, name: &str, add: bool) {
    let mut names = suppressed(files, root);
    let changed = if add { names.insert(name.to_owned()) } else { names.remove(name) };
    if changed {
        let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
        // The archive itself has happened; a list that cannot be written must not undo it.
        let _ = files.write(&suppression_path(root), text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn comments_and_hashes_are_no_names() {
        let mut files = MemFiles::new();
        files.write("s/.bundled_manifest", b"a:123\nb\n").unwrap();
        files.write("s/.curator_suppressed", b"# list\nc # why\n").unwrap();
        let owners = Owners::load(&files, "s");
        assert!(owners.is_bundled("a") && owners.is_bundled("b") && owners.is_bundled("c"));
        assert!(!owners.is_bundled("# list"));
    }
}

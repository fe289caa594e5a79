//! A coding workspace: whether there is one, and the look at it that is taken once.
//!
//! The look is replayed on every rebuild of a session, so that a moving repository does not move the prompt
//! (Hermes agent/system_prompt.py:660).

use crate::agent::prompt::context_files::repository_root;
use crate::world::Files;
use crate::world::files::join;

/// Files that make a directory a coding workspace.
const MARKERS: &[&str] = &[
    "AGENTS.md",
    "CLAUDE.md",
    ".cursorrules",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "Makefile",
    "CMakeLists.txt",
    "pom.xml",
    "build.gradle",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "deno.json",
    "tsconfig.json",
];

/// What a prompt says about a coding workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workspace<'a> {
    /// How to work in a repository.
    pub brief: Option<&'a str>,
    /// The look at it.
    pub snapshot: Option<&'a str>,
    /// What follows the brief.
    pub trailer: Option<&'a str>,
}

/// True when a directory lies in a repository or holds a project's files.
pub fn is_workspace(files: &dyn Files, directory: &str) -> bool {
    repository_root(files, directory).is_some()
        || MARKERS.iter().any(|marker| files.is_file(&join(directory, marker)))
}

/// A look at a workspace: its root and what lies there.
pub fn look(files: &dyn Files, directory: &str) -> String {
    let root = repository_root(files, directory).unwrap_or_else(|| directory.to_owned());
    let shown = if root.is_empty() { "/" } else { &root };
    let listing = files.list(&root);
    let names: Vec<&str> = listing
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !name.starts_with('.'))
        .take(40)
        .collect();
    format!("# Workspace\nRoot: {shown}\nEntries: {}", names.join(", "))
}

/// The look that one session keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptLook {
    kept: Option<(String, Option<String>)>,
}

impl KeptLook {
    /// The look at a directory, taken once per directory; `None` outside a workspace.
    pub fn of(&mut self, files: &dyn Files, directory: &str) -> Option<&str> {
        if self.kept.as_ref().is_none_or(|(known, _)| known != directory) {
            let text = is_workspace(files, directory).then(|| look(files, directory));
            self.kept = Some((directory.to_owned(), text));
        }
        self.kept.as_ref().and_then(|(_, text)| text.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn a_moving_repository_does_not_change_the_look() {
        let mut files = MemFiles::new();
        files.create_dir(".git").unwrap();
        let mut kept = KeptLook::default();
        let first = kept.of(&files, "").map(str::to_owned);
        files.write("new.rs", b"").unwrap();
        assert_eq!(kept.of(&files, "").map(str::to_owned), first);
        assert!(first.is_some());
    }
}

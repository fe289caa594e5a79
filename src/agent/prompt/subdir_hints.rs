//! Hint files of sub-directories, appended to tool results (Hermes agent/subdirectory_hints.py).
//!
//! Never part of the prompt, so the prefix stays as it is. A directory is looked at once, a text is given once.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::agent::prompt::context_files::{self, Scan};
use crate::agent::prompt::{shell_words, truncate};
use crate::policy::Prompt;
use crate::world::files::{file_name, join, parent};
use crate::world::{Files, normalize};

const NAMES: &[&str] =
    &["AGENTS.override.md", "AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];
const PATH_ARGUMENTS: &[&str] = &["path", "file_path", "workdir"];
const EXCLUDED: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "bower_components",
    "vendor",
    ".venv",
    "venv",
    "env",
    "site-packages",
    "__pycache__",
    "build",
    "dist",
    "out",
    "target",
    ".next",
    ".nuxt",
    ".cache",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".idea",
    ".vscode",
    "coverage",
];

/// One hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Path relative to the working directory.
    pub label: String,
    /// The text to append, heading included.
    pub text: String,
    /// Categories that the scanner objected to; the text is a placeholder then.
    pub objections: Vec<String>,
    /// The text was cut.
    pub cut: bool,
}

/// What one session has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubdirHints {
    /// Absolute place of the tree's root.
    mount: String,
    directory: String,
    enabled: bool,
    directories: BTreeSet<String>,
    texts: BTreeSet<Vec<u8>>,
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text.trim().as_bytes()).to_vec()
}

fn read(files: &dyn Files, path: &str) -> Option<String> {
    if files.is_dir(path) {
        return None;
    }
    let bytes = files.read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then_some(text)
}

impl SubdirHints {
    /// Starts in a working directory, whose own files count as given.
    ///
    /// `enabled` is false when context files are skipped or the working directory is a home directory.
    pub fn new(files: &dyn Files, directory: &str, enabled: bool, knobs: &Prompt) -> Self {
        let own = NAMES.iter().filter_map(|name| read(files, &join(directory, name)));
        Self {
            mount: String::new(),
            directory: directory.to_owned(),
            enabled: enabled && knobs.subdir_hints,
            texts: own.map(|text| digest(&text)).collect(),
            directories: BTreeSet::from([directory.to_owned()]),
        }
    }

    /// Says where the root of the tree lies for the tools; an absolute path that leads elsewhere gives no hint.
    #[must_use]
    pub fn mounted_at(mut self, place: &str) -> Self {
        place.clone_into(&mut self.mount);
        self
    }

    /// Hints for the directories that a tool call touched, each once.
    pub fn after_call(
        &mut self,
        files: &dyn Files,
        tool: &str,
        arguments: &Value,
        scan: &Scan<'_>,
        knobs: &Prompt,
    ) -> Vec<Hint> {
        if !self.enabled {
            return Vec::new();
        }
        let mut touched = BTreeSet::new();
        for path in paths(tool, arguments) {
            self.touch(files, &path, knobs, &mut touched);
        }
        touched.into_iter().filter_map(|dir| self.load(files, &dir, scan, knobs)).collect()
    }

    /// Collects the directory of a path and those above it, up to the first that was seen.
    fn touch(&self, files: &dyn Files, path: &str, knobs: &Prompt, into: &mut BTreeSet<String>) {
        if path.trim().is_empty() || path.starts_with('~') {
            return;
        }
        let whole = if path.starts_with('/') {
            let inside = path.strip_prefix(self.mount.as_str()).unwrap_or_default();
            inside.strip_prefix('/').and_then(normalize)
        } else {
            normalize(&join(&self.directory, path))
        };
        let Some(whole) = whole else { return };
        let mut at =
            if has_suffix(&whole) || files.is_file(&whole) { parent(&whole).to_owned() } else { whole };
        for _ in 0..knobs.hint_levels {
            if self.directories.contains(&at) {
                return;
            }
            if self.is_inside(files, &at) {
                into.insert(at.clone());
            }
            if at.is_empty() {
                return;
            }
            at = parent(&at).to_owned();
        }
    }

    fn is_inside(&self, files: &dyn Files, dir: &str) -> bool {
        if !files.is_dir(dir) {
            return false;
        }
        let below = |dir: &str| {
            if self.directory.is_empty() {
                Some(dir.to_owned())
            } else {
                dir.strip_prefix(&self.directory)?.strip_prefix('/').map(str::to_owned)
            }
        };
        let Some(shown) = below(dir) else { return false };
        // A link that leaves the working directory is refused.
        let real = files.resolve(dir).and_then(|real| below(&real));
        real.is_some() && !shown.split('/').any(|part| EXCLUDED.contains(&part))
    }

    fn load(&mut self, files: &dyn Files, dir: &str, scan: &Scan<'_>, knobs: &Prompt) -> Option<Hint> {
        if !self.directories.insert(dir.to_owned()) {
            return None;
        }
        let (name, text) = NAMES.iter().find_map(|name| Some((*name, read(files, &join(dir, name))?)))?;
        if !self.texts.insert(digest(&text)) && knobs.hint_digests {
            return None;
        }
        let label = context_files::label(&self.directory, dir, name);
        let objections = scan(&text);
        let (text, cut) = if objections.is_empty() {
            let done = if knobs.hint_keeps_tail {
                truncate::truncate(text.trim(), knobs.hint_chars_max, &label, knobs)
            } else {
                truncate::keep_head(text.trim(), knobs.hint_chars_max, &label)
            };
            (done.text, done.cut.is_some())
        } else {
            (context_files::placeholder(&label, &objections), false)
        };
        Some(Hint { text: format!("[Context of this directory: {label}]\n{text}"), label, objections, cut })
    }
}

fn has_suffix(path: &str) -> bool {
    let name = file_name(path).trim_start_matches('.');
    name.rsplit_once('.').is_some_and(|(_, suffix)| !suffix.is_empty())
}

/// Paths that a call names.
fn paths(tool: &str, arguments: &Value) -> Vec<String> {
    let mut found: Vec<String> = PATH_ARGUMENTS
        .iter()
        .filter_map(|key| arguments.get(key).and_then(Value::as_str))
        .map(|path| path.trim().to_owned())
        .collect();
    let command = arguments.get("command").and_then(Value::as_str);
    if let Some(command) = command.filter(|_| tool == "terminal") {
        found.extend(shell_words::changed_directories(command));
        let words = shell_words::split(command)
            .unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect());
        found.extend(words.into_iter().filter(|word| {
            let foreign = ["-", "http://", "https://", "git@"];
            word.contains(['/', '.']) && !foreign.iter().any(|start| word.starts_with(start))
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn an_absolute_path_counts_below_the_mount_alone() {
        let mut files = MemFiles::new();
        files.write("etc/AGENTS.md", b"x").unwrap();
        let knobs = Prompt::default();
        for (path, hints) in [("/etc/a.txt", 0), ("/work/etc/a.txt", 1), ("/works/etc/a.txt", 0)] {
            let mut seen = SubdirHints::new(&files, "", true, &knobs).mounted_at("/work");
            let call = serde_json::json!({ "path": path });
            let given = seen.after_call(&files, "read_file", &call, &|_| Vec::new(), &knobs);
            assert_eq!(given.len(), hints, "{path}");
        }
    }

    #[test]
    fn an_older_revision_gives_a_text_again() {
        let mut files = MemFiles::new();
        files.write("a/AGENTS.md", b"x").unwrap();
        files.write("b/AGENTS.md", b"x").unwrap();
        let call = serde_json::json!({"command": "cat a/f.txt b/f.txt"});
        for (hint_digests, hints) in [(true, 1), (false, 2)] {
            let knobs = Prompt { hint_digests, ..Prompt::default() };
            let mut seen = SubdirHints::new(&files, "", true, &knobs);
            let given = seen.after_call(&files, "terminal", &call, &|_| Vec::new(), &knobs);
            assert_eq!(given.len(), hints);
        }
    }
}

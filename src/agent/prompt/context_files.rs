//! Context files of a project (Hermes agent/prompt_builder.py:1775).
//!
//! Only one kind is used, the first that has a file with something in it. Every text is scanned; one that the scanner
//! objects to is replaced by a placeholder and the others stay.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::agent::prompt::front_matter;
use crate::agent::prompt::truncate::{self, Truncated};
use crate::policy::Prompt;
use crate::world::files::{join, parent};
use crate::world::{EntryKind, Files};

/// A scanner of texts: the categories that it objects to.
pub type Scan<'a> = dyn Fn(&str) -> Vec<String> + 'a;

/// A kind of context file, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextKind {
    /// The harness's own file.
    Hermes,
    /// The chain of AGENTS files.
    Agents,
    /// CLAUDE file.
    Claude,
    /// Cursor rules.
    Cursor,
}

const HERMES: &[&str] = &[".hermes.md", "HERMES.md"];
const AGENTS: &[&str] = &["AGENTS.override.md", "AGENTS.md", "agents.md"];
const CLAUDE: &[&str] = &["CLAUDE.md", "claude.md"];

/// One file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its kind.
    pub kind: ContextKind,
    /// Path relative to the working directory.
    pub label: String,
    /// Its text, without a byte order mark.
    pub text: String,
}

impl FoundFile {
    /// True when nothing is in it.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// One section of the prompt's project context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Path relative to the working directory.
    pub label: String,
    /// The section, heading included.
    pub text: String,
    /// Categories that the scanner objected to; the text is a placeholder then.
    pub objections: Vec<String>,
    /// The section was cut.
    pub cut: bool,
}

/// The project context of a working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectContext {
    /// The text for the prompt; empty when there is none.
    pub text: String,
    /// Its sections.
    pub sections: Vec<Section>,
    /// Every file that was looked at, of all kinds.
    pub found: Vec<FoundFile>,
    /// The merged text was cut.
    pub cut: bool,
}

/// The nearest directory from `from` up that holds `.git`; `None` outside a repository.
pub fn repository_root(files: &dyn Files, from: &str) -> Option<String> {
    ancestors(from).into_iter().find(|dir| files.exists(&join(dir, ".git")))
}

/// A directory and everything above it, nearest first.
fn ancestors(from: &str) -> Vec<String> {
    let mut all = vec![from.to_owned()];
    let mut at = from;
    while !at.is_empty() {
        at = parent(at);
        all.push(at.to_owned());
    }
    all
}

fn read(files: &dyn Files, path: &str) -> Option<String> {
    if files.is_dir(path) {
        return None;
    }
    let bytes = files.read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Path of `dir/name` as seen from `base`.
pub fn label(base: &str, dir: &str, name: &str) -> String {
    let base: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    let dir: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    let shared = base.iter().zip(&dir).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", base.len() - shared);
    up.chain(dir[shared..].iter().copied()).chain([name]).collect::<Vec<_>>().join("/")
}

struct Search<'a> {
    files: &'a dyn Files,
    directory: &'a str,
    found: Vec<FoundFile>,
}

impl Search<'_> {
    /// Looks for the first file with something in it; true when there is one.
    fn first_of(&mut self, kind: ContextKind, dir: &str, names: &[&str]) -> bool {
        for name in names {
            let Some(text) = read(self.files, &join(dir, name)) else { continue };
            // The harness's own file is known by its name, wherever it was found.
            let label = if kind == ContextKind::Hermes {
                (*name).to_owned()
            } else {
                label(self.directory, dir, name)
            };
            let file = FoundFile { kind, label, text };
            let solid = !file.is_blank();
            self.found.push(file);
            if solid {
                return true;
            }
        }
        false
    }

    fn cursor(&mut self) {
        let directory = self.directory.to_owned();
        self.first_of(ContextKind::Cursor, &directory, &[".cursorrules"]);
        let rules = join(&directory, ".cursor/rules");
        for (name, kind) in self.files.list(&rules) {
            if kind != EntryKind::Dir && name.strip_suffix(".mdc").is_some() {
                self.first_of(ContextKind::Cursor, &rules, &[&name]);
            }
        }
    }
}

/// Every context file that is looked at from a working directory.
pub fn discover(files: &dyn Files, directory: &str) -> Vec<FoundFile> {
    let root = repository_root(files, directory);
    let mut path = vec![directory.to_owned()];
    if let Some(root) = &root {
        path = ancestors(directory);
        let end = path.iter().position(|dir| dir == root).map_or(path.len(), |at| at + 1);
        path.truncate(end);
    }
    let mut search = Search { files, directory, found: Vec::new() };
    for dir in &path {
        if search.first_of(ContextKind::Hermes, dir, HERMES) {
            break;
        }
    }
    for dir in path.iter().rev() {
        search.first_of(ContextKind::Agents, dir, AGENTS);
    }
    search.first_of(ContextKind::Claude, directory, CLAUDE);
    search.cursor();
    search.found
}

/// The project context for a prompt. `window` is the model's window in tokens, null when unknown.
pub fn project_context(
    files: &dyn Files,
    directory: &str,
    window: &Value,
    scan: &Scan<'_>,
    knobs: &Prompt,
) -> ProjectContext {
    let found = discover(files, directory);
    let cap = truncate::context_cap(window, knobs);
    let Some(kind) = found.iter().filter(|file| !file.is_blank()).map(|file| file.kind).min() else {
        return ProjectContext { found, ..ProjectContext::default() };
    };
    let mut seen = BTreeSet::new();
    let mut sections = Vec::new();
    for file in found.iter().filter(|file| file.kind == kind && !file.is_blank()) {
        let text =
            if kind == ContextKind::Hermes { front_matter::without(&file.text) } else { file.text.clone() };
        let text = text.trim().to_owned();
        if !seen.contains(&text) {
            sections.push(section(&file.label, &text, cap, scan, knobs));
            seen.insert(text);
        }
    }
    let joined = sections.iter().map(|section| section.text.as_str()).collect::<Vec<_>>().join("\n\n");
    let merged = if sections.len() > 1 {
        let path = sections.iter().map(|section| section.label.as_str()).collect::<Vec<_>>().join(", ");
        truncate::truncate(&joined, cap, &path, knobs)
    } else {
        Truncated { text: joined, cut: None }
    };
    ProjectContext { text: merged.text, cut: merged.cut.is_some(), sections, found }
}

/// What stands in for a text that the scanner objects to.
pub fn placeholder(label: &str, objections: &[String]) -> String {
    format!("[{label} was not loaded: the scanner objects to it ({})]", objections.join(", "))
}

fn section(label: &str, text: &str, cap: u64, scan: &Scan<'_>, knobs: &Prompt) -> Section {
    let objections = scan(text);
    let text = if objections.is_empty() { text.to_owned() } else { placeholder(label, &objections) };
    let whole = format!("## {label}\n\n{text}");
    let done = truncate::truncate(&whole, cap, label, knobs);
    Section { label: label.to_owned(), text: done.text, objections, cut: done.cut.is_some() }
}

/// The text of the agent's own SOUL file, or `None` when it is blank or missing (Hermes agent/prompt_builder.py:1648).
///
/// A file that a profile distribution owns is blocked when the scanner objects; the user's own file loads all the
/// same, and the objections are returned to be logged.
pub fn soul(
    files: &dyn Files,
    path: &str,
    distributed: bool,
    window: &Value,
    scan: &Scan<'_>,
    knobs: &Prompt,
) -> (Option<String>, Vec<String>) {
    let Some(text) = read(files, path).filter(|text| !text.trim().is_empty()) else {
        return (None, Vec::new());
    };
    let objections = scan(&text);
    if distributed && !objections.is_empty() {
        return (Some(placeholder(path, &objections)), objections);
    }
    let cap = truncate::context_cap(window, knobs);
    (Some(truncate::truncate(text.trim(), cap, path, knobs).text), objections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn a_label_climbs_and_descends() {
        assert_eq!(label("a/b", "", "x"), "../../x");
        assert_eq!(label("a/b", "a/c", "x"), "../c/x");
        assert_eq!(label("", "", "x"), "x");
    }

    #[test]
    fn the_same_text_appears_once_in_a_chain() {
        let mut files = MemFiles::new();
        files.create_dir(".git").unwrap();
        files.write("AGENTS.md", b"same").unwrap();
        files.write("a/AGENTS.md", b"same").unwrap();
        let context = project_context(&files, "a", &Value::Null, &|_| Vec::new(), &Prompt::default());
        assert_eq!(context.sections.len(), 1);
        assert_eq!(context.found.len(), 2);
    }

    #[test]
    fn a_distributed_soul_is_blocked_and_an_own_one_is_not() {
        let mut files = MemFiles::new();
        files.write("SOUL.md", b"bad").unwrap();
        let scan = |_: &str| vec!["x".to_owned()];
        let knobs = Prompt::default();
        let (own, _) = soul(&files, "SOUL.md", false, &Value::Null, &scan, &knobs);
        assert_eq!(own.as_deref(), Some("bad"));
        let (other, _) = soul(&files, "SOUL.md", true, &Value::Null, &scan, &knobs);
        assert!(other.unwrap().contains("not loaded"));
    }
}

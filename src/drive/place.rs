//! Home, working folder and placeholders of one driven agent.

use std::path::{Path, PathBuf};

use crate::scenario::Scenario;
use crate::wire::Chain;
use crate::world::{DirFiles, FileError, Files as _};

use super::driver::Driver;

/// Where an agent lives during a drive.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) home: PathBuf,
    pub(super) work: PathBuf,
    values: Vec<(&'static str, String)>,
}

impl Place {
    /// A fresh home and working folder below `root`.
    pub(super) fn make(
        root: &Path,
        driver: &Driver,
        scenario: &Scenario,
        install: &Path,
        host: &str,
        window: u64,
    ) -> Result<Self, FileError> {
        let (home, work) = (root.join("home"), root.join("work"));
        let text = |path: &Path| path.display().to_string();
        let values = vec![
            ("{home}", text(&home)),
            ("{work}", text(&work)),
            ("{install}", text(install)),
            ("{host}", host.to_owned()),
            ("{model}", driver.model.clone()),
            ("{window}", window.to_string()),
        ];
        let place = Self { home, work, values };
        let (mut home, mut work) = (DirFiles::open(&place.home)?, DirFiles::open(&place.work)?);
        for file in &driver.files {
            let bytes = place.fill(&file.text);
            match file.path.strip_prefix("{work}/") {
                Some(path) => work.write(path, bytes.as_bytes())?,
                None => home.write(&file.path, bytes.as_bytes())?,
            }
        }
        for file in &scenario.files {
            let times = usize::try_from(file.times).unwrap_or(1);
            work.write(&file.path, file.text.repeat(times).as_bytes())?;
        }
        if let Some(places) = &driver.places {
            for skill in &scenario.skills {
                let text = format!(
                    "---\nname: {}\ndescription: {}\n---\n\n{}\n",
                    skill.name,
                    serde_json::Value::from(skill.description.as_str()),
                    skill.body
                );
                home.write(&places.skill.replace("{name}", &skill.name), text.as_bytes())?;
            }
            for (target, path) in [("memory", &places.memory), ("user", &places.user)] {
                let entries: Vec<&str> = scenario
                    .memories
                    .iter()
                    .filter(|entry| entry.target == target)
                    .map(|entry| entry.text.as_str())
                    .collect();
                if !entries.is_empty() {
                    home.write(path, entries.join("\n§\n").as_bytes())?;
                }
            }
        }
        Ok(place)
    }

    /// A text with its places filled in.
    pub(super) fn fill(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// A command with its places filled in, those of the turn included.
    pub(super) fn command(&self, words: &[String], prompt: &str, session: &str) -> Vec<String> {
        let filled = words.iter().map(|word| self.fill(word));
        // The prompt comes last, so that nothing in it is taken for a place.
        filled.map(|word| word.replace("{session}", session).replace("{prompt}", prompt)).collect()
    }

    /// Every file of the working folder with a digest of its content, sorted.
    pub(super) fn files(&self) -> Vec<(String, Chain)> {
        let Ok(work) = DirFiles::open(&self.work) else { return Vec::new() };
        let digest = |path: &String| {
            let bytes = work.read(path).unwrap_or_default();
            Chain::of_bytes(&bytes)
        };
        let mut files: Vec<(String, Chain)> =
            work.walk("").into_iter().map(|path| (path.clone(), digest(&path))).collect();
        files.sort();
        files
    }
}

/// Paths that are new, gone or other than before, each with what happened to it.
pub(super) fn changes(before: &[(String, Chain)], after: &[(String, Chain)]) -> Vec<(String, &'static str)> {
    let find = |list: &[(String, Chain)], path: &String| {
        list.binary_search_by(|(known, _)| known.cmp(path)).ok().map(|at| list[at].1)
    };
    let written = after
        .iter()
        .filter(|(path, digest)| find(before, path) != Some(*digest))
        .map(|(path, _)| (path.clone(), "file_written"));
    let removed = before
        .iter()
        .filter(|(path, _)| find(after, path).is_none())
        .map(|(path, _)| (path.clone(), "file_removed"));
    written.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_changed_and_removed_files_are_told_apart() {
        let of = |list: &[(&str, &str)]| -> Vec<(String, Chain)> {
            list.iter().map(|(path, text)| ((*path).to_owned(), Chain::of_bytes(text.as_bytes()))).collect()
        };
        let before = of(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let after = of(&[("a", "1"), ("b", "2"), ("d", "1")]);
        let changed = changes(&before, &after);
        let expected = [("b", "file_written"), ("d", "file_written"), ("c", "file_removed")];
        assert_eq!(changed, expected.map(|(path, what)| (path.to_owned(), what)));
    }
}

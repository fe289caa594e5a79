//! A home directory: paths relative to one root, in memory or on disk.
//!
//! Paths are texts with forward slashes, relative to the root, without `.`, `..` or a leading slash; [`normalize`]
//! makes one. Listings are sorted. Writes are atomic: a reader sees the old or the new content.

use std::collections::BTreeMap;

use crate::world::Millis;

/// Why a file operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// Something is there that must not be.
    #[error("`{0}` exists already")]
    Exists(String),
    /// A file where a directory is needed, or the other way round.
    #[error("`{0}` is of the wrong kind")]
    WrongKind(String),
    /// The path leaves the root.
    #[error("`{0}` leaves the directory")]
    Escapes(String),
    /// The disk said no; also what a scheduled fault answers.
    #[error("`{path}`: {message}")]
    Io {
        /// The path that was asked for.
        path: String,
        /// What went wrong.
        message: String,
    },
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link that was not followed.
    Link,
}

/// Facts about one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMeta {
    /// File, directory or link.
    pub kind: EntryKind,
    /// Length in bytes; 0 for directories.
    pub len: u64,
    /// Last change, in milliseconds since the Unix epoch.
    pub modified: Millis,
}

/// A tree of files under one root.
pub trait Files {
    /// The whole content of a file.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when there is none, [`FileError::WrongKind`] for a directory.
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError>;

    /// Replaces or creates a file in one step; missing parent directories are made; a link is followed.
    ///
    /// # Errors
    /// [`FileError::WrongKind`] when a directory is in the way, [`FileError::Io`] when the disk refuses.
    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), FileError>;

    /// Removes one file or link.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when there is none.
    fn remove_file(&mut self, path: &str) -> Result<(), FileError>;

    /// Removes a directory with all that is in it.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when there is none.
    fn remove_dir(&mut self, path: &str) -> Result<(), FileError>;

    /// Makes a directory and its parents; one that exists is fine.
    ///
    /// # Errors
    /// [`FileError::WrongKind`] when a file is in the way.
    fn create_dir(&mut self, path: &str) -> Result<(), FileError>;

    /// Moves a file or a whole directory.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when the source is missing, [`FileError::Exists`] when the target is there.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError>;

    /// Facts about a path, links not followed; `None` when nothing is there.
    fn meta(&self, path: &str) -> Option<FileMeta>;

    /// The names in a directory, sorted by code point; empty when there is no such directory.
    fn list(&self, path: &str) -> Vec<(String, EntryKind)>;

    /// Sets the time of last change.
    fn touch(&mut self, path: &str, at: Millis);

    /// The path with links resolved, or `None` when it leaves the root or does not exist.
    fn resolve(&self, path: &str) -> Option<String>;

    /// True when something is there.
    fn exists(&self, path: &str) -> bool {
        self.meta(path).is_some()
    }

    /// True when a directory is there.
    fn is_dir(&self, path: &str) -> bool {
        self.meta(path).is_some_and(|meta| meta.kind == EntryKind::Dir)
    }

    /// True when a regular file is there.
    fn is_file(&self, path: &str) -> bool {
        self.meta(path).is_some_and(|meta| meta.kind == EntryKind::File)
    }

    /// The content as text; bytes that are not UTF-8 are an error.
    ///
    /// # Errors
    /// As [`Files::read`]; [`FileError::Io`] when the bytes are not UTF-8.
    fn read_text(&self, path: &str) -> Result<String, FileError> {
        String::from_utf8(self.read(path)?)
            .map_err(|_| FileError::Io { path: path.to_owned(), message: "not UTF-8".to_owned() })
    }

    /// Every file below `path`, depth first in sorted order, as paths from the root. Links are listed, not followed.
    fn walk(&self, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(dir) = open.pop() {
            let mut below = Vec::new();
            for (name, kind) in self.list(&dir) {
                let full = join(&dir, &name);
                match kind {
                    EntryKind::Dir => below.push(full),
                    EntryKind::File | EntryKind::Link => found.push(full),
                }
            }
            open.extend(below.into_iter().rev());
        }
        found.sort();
        found
    }
}

/// Joins two relative paths; an empty side vanishes.
pub fn join(dir: &str, name: &str) -> String {
    match (dir.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => dir.to_owned(),
        _ => format!("{dir}/{name}"),
    }
}

/// The directory part of a path; empty at the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// The last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// A clean relative path: dots and empty components resolved; `None` when it climbs above the root.
///
/// ```
/// use hermes_lab::world::normalize;
/// assert_eq!(normalize("a/./b/../c"), Some("a/c".to_owned()));
/// assert_eq!(normalize("../x"), None);
/// ```
pub fn normalize(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[derive(Debug, Clone)]
enum Node {
    File { bytes: Vec<u8>, modified: Millis },
    Dir { modified: Millis },
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct MemFiles {
    nodes: BTreeMap<String, Node>,
    now: Millis,
}

impl MemFiles {
    /// An empty root.
    pub fn new() -> Self {
        Self::default()
    }

    /// The instant that later writes are stamped with.
    pub fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a String, &'a Node)> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.nodes
            .range(prefix.clone()..)
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .filter(|(name, _)| !name.is_empty())
    }

    fn make_parents(&mut self, path: &str) -> Result<(), FileError> {
        let dir = parent(path);
        if dir.is_empty() { Ok(()) } else { self.create_dir(dir) }
    }
}

impl Files for MemFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match self.nodes.get(path) {
            Some(Node::File { bytes, .. }) => Ok(bytes.clone()),
            Some(Node::Dir { .. }) => Err(FileError::WrongKind(path.to_owned())),
            None => Err(FileError::NotFound(path.to_owned())),
        }
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        if path.is_empty() || matches!(self.nodes.get(path), Some(Node::Dir { .. })) {
            return Err(FileError::WrongKind(path.to_owned()));
        }
        self.make_parents(path)?;
        let node = Node::File { bytes: bytes.to_vec(), modified: self.now };
        self.nodes.insert(path.to_owned(), node);
        Ok(())
    }

    fn remove_file(&mut self, path: &str) -> Result<(), FileError> {
        match self.nodes.get(path) {
            Some(Node::File { .. }) => {
                self.nodes.remove(path);
                Ok(())
            }
            Some(Node::Dir { .. }) => Err(FileError::WrongKind(path.to_owned())),
            None => Err(FileError::NotFound(path.to_owned())),
        }
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), FileError> {
        if !matches!(self.nodes.get(path), Some(Node::Dir { .. })) {
            return Err(FileError::NotFound(path.to_owned()));
        }
        let doomed: Vec<String> = self.below(path).map(|(name, _)| name.clone()).collect();
        for name in doomed {
            self.nodes.remove(&name);
        }
        self.nodes.remove(path);
        Ok(())
    }

    fn create_dir(&mut self, path: &str) -> Result<(), FileError> {
        let mut at = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = join(&at, part);
            match self.nodes.get(&at) {
                Some(Node::File { .. }) => return Err(FileError::WrongKind(at)),
                Some(Node::Dir { .. }) => {}
                None => {
                    let node = Node::Dir { modified: self.now };
                    self.nodes.insert(at.clone(), node);
                }
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        if self.nodes.contains_key(to) {
            return Err(FileError::Exists(to.to_owned()));
        }
        let node = self.nodes.get(from).cloned().ok_or_else(|| FileError::NotFound(from.to_owned()))?;
        self.make_parents(to)?;
        let moved: Vec<String> = self.below(from).map(|(name, _)| name.clone()).collect();
        self.nodes.remove(from);
        self.nodes.insert(to.to_owned(), node);
        for name in moved {
            if let Some(node) = self.nodes.remove(&name) {
                self.nodes.insert(format!("{to}{}", &name[from.len()..]), node);
            }
        }
        Ok(())
    }

    fn meta(&self, path: &str) -> Option<FileMeta> {
        if path.is_empty() {
            return Some(FileMeta { kind: EntryKind::Dir, len: 0, modified: 0 });
        }
        Some(match self.nodes.get(path)? {
            Node::File { bytes, modified } => {
                FileMeta { kind: EntryKind::File, len: bytes.len() as u64, modified: *modified }
            }
            Node::Dir { modified } => FileMeta { kind: EntryKind::Dir, len: 0, modified: *modified },
        })
    }

    fn list(&self, path: &str) -> Vec<(String, EntryKind)> {
        let skip = if path.is_empty() { 0 } else { path.len() + 1 };
        self.below(path)
            .filter(|(name, _)| !name[skip..].contains('/'))
            .map(|(name, node)| {
                let kind = if matches!(node, Node::Dir { .. }) { EntryKind::Dir } else { EntryKind::File };
                (name[skip..].to_owned(), kind)
            })
            .collect()
    }

    fn touch(&mut self, path: &str, at: Millis) {
        if let Some(Node::File { modified, .. } | Node::Dir { modified }) = self.nodes.get_mut(path) {
            *modified = at;
        }
    }

    fn resolve(&self, path: &str) -> Option<String> {
        normalize(path).filter(|clean| self.exists(clean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_directory_takes_its_files_along() {
        let mut files = MemFiles::new();
        files.write("a/b/c.txt", b"x").unwrap();
        files.write("ab.txt", b"y").unwrap();
        files.rename("a", "z").unwrap();
        assert_eq!(files.walk(""), ["ab.txt", "z/b/c.txt"]);
    }

    #[test]
    fn listings_show_one_level_sorted() {
        let mut files = MemFiles::new();
        files.write("d/b", b"").unwrap();
        files.write("d/a/x", b"").unwrap();
        let names: Vec<String> = files.list("d").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}

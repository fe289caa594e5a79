//! Files of a real directory. The one place of the library that touches the disk for a home.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the seam behind which the disk lies"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::world::{EntryKind, FileError, FileMeta, Files, Millis, normalize};

/// The tree under a real directory.
#[derive(Debug)]
pub struct DirFiles {
    root: PathBuf,
    writes: u64,
}

impl DirFiles {
    /// Files under `root`, which is made if it is missing.
    ///
    /// # Errors
    /// [`FileError::Io`] when the directory cannot be made or resolved.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        let failed = |error: &std::io::Error| FileError::Io {
            path: root.display().to_string(),
            message: error.to_string(),
        };
        fs::create_dir_all(root).map_err(|error| failed(&error))?;
        let root = root.canonicalize().map_err(|error| failed(&error))?;
        Ok(Self { root, writes: 0 })
    }

    /// The real place of a relative path.
    pub fn real(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

fn error_of(path: &str, error: &std::io::Error) -> FileError {
    match error.kind() {
        std::io::ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
        std::io::ErrorKind::AlreadyExists => FileError::Exists(path.to_owned()),
        _ => FileError::Io { path: path.to_owned(), message: error.to_string() },
    }
}

impl Files for DirFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        fs::read(self.real(path)).map_err(|error| error_of(path, &error))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let real = self.real(path);
        let target = real.canonicalize().unwrap_or(real);
        let dir = target.parent().unwrap_or(&self.root).to_path_buf();
        fs::create_dir_all(&dir).map_err(|error| error_of(path, &error))?;
        self.writes += 1;
        let temporary = dir.join(format!(".tmp_{}_{}", std::process::id(), self.writes));
        let written = (|| {
            let mut file = fs::File::create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &target)
        })();
        written.map_err(|error| {
            // The half-written copy must not stay behind; its removal cannot say more than the first failure.
            let _ = fs::remove_file(&temporary);
            error_of(path, &error)
        })
    }

    fn remove_file(&mut self, path: &str) -> Result<(), FileError> {
        fs::remove_file(self.real(path)).map_err(|error| error_of(path, &error))
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), FileError> {
        fs::remove_dir_all(self.real(path)).map_err(|error| error_of(path, &error))
    }

    fn create_dir(&mut self, path: &str) -> Result<(), FileError> {
        fs::create_dir_all(self.real(path)).map_err(|error| error_of(path, &error))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let target = self.real(to);
        if target.exists() {
            return Err(FileError::Exists(to.to_owned()));
        }
        if let Some(dir) = target.parent() {
            fs::create_dir_all(dir).map_err(|error| error_of(to, &error))?;
        }
        fs::rename(self.real(from), target).map_err(|error| error_of(from, &error))
    }

    fn meta(&self, path: &str) -> Option<FileMeta> {
        let meta = fs::symlink_metadata(self.real(path)).ok()?;
        let kind = match meta.file_type() {
            kind if kind.is_dir() => EntryKind::Dir,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::File,
        };
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |at| Millis::try_from(at.as_millis()).unwrap_or(Millis::MAX));
        Some(FileMeta { kind, len: if kind == EntryKind::Dir { 0 } else { meta.len() }, modified })
    }

    fn list(&self, path: &str) -> Vec<(String, EntryKind)> {
        let Ok(entries) = fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut found: Vec<(String, EntryKind)> = entries
            .flatten()
            .filter_map(|entry| {
                let kind = entry.file_type().ok()?;
                let kind = match kind {
                    kind if kind.is_dir() => EntryKind::Dir,
                    kind if kind.is_symlink() => EntryKind::Link,
                    _ => EntryKind::File,
                };
                Some((entry.file_name().into_string().ok()?, kind))
            })
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    fn touch(&mut self, path: &str, at: Millis) {
        if let (Ok(file), Ok(at)) = (fs::File::open(self.real(path)), u64::try_from(at)) {
            // A file system without times is no reason to stop.
            let _ = file.set_modified(UNIX_EPOCH + Duration::from_millis(at));
        }
    }

    fn resolve(&self, path: &str) -> Option<String> {
        let real = self.real(&normalize(path)?).canonicalize().ok()?;
        let below = real.strip_prefix(&self.root).ok()?;
        Some(below.to_str()?.to_owned())
    }
}

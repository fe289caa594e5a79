//! Snapshots of the skills tree before a model may change it, and the way back.
//!
//! Differs: a snapshot keeps the tree as plain files below its directory instead of a compressed archive; what is
//! kept, left out, counted and restored is the same. Called by a run and by the user's commands.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agent::skills::{Library, ledger};
use crate::agent::stamp;
use crate::world::files::join;
use crate::world::{EntryKind, FileError, Files, Millis, normalize};

/// Directories that no snapshot holds, at any depth.
const LEFT_OUT: [&str; 16] = [
    ".curator_backups",
    ".hub",
    ".locks",
    ".git",
    ".archive",
    ledger::DIR,
    "__pycache__",
    ".venv",
    "venv",
    "node_modules",
    "site-packages",
    ".tox",
    ".nox",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
];
/// Begin of names of directories that a failed rollback left for the user.
const UNRESTORED: &str = ".rollback-unrestored-";
/// Begin of names of directories that a crash may leave.
const STAGING: &str = ".rollback-staging-";

/// Path of the snapshots.
pub fn dir(library: &Library) -> String {
    join(library.root(), ".curator_backups")
}

/// The files that a snapshot of a tree holds.
fn kept_files(files: &dyn Files, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(at) = open.pop() {
        for (name, kind) in files.list(&at) {
            let path = join(&at, &name);
            match kind {
                EntryKind::Dir if !LEFT_OUT.contains(&name.as_str()) => open.push(path),
                EntryKind::File => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// True for a name that a snapshot has: `YYYY-MM-DDTHH-MM-SSZ`, with two digits behind it after a collision.
fn is_id(name: &str) -> bool {
    let shape = "0000-00-00T00-00-00Z";
    let fits = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text
                .bytes()
                .zip(shape.bytes())
                .all(|(byte, want)| if want == b'0' { byte.is_ascii_digit() } else { byte == want })
    };
    fits(name, shape)
        || name.split_at_checked(shape.len()).is_some_and(|(id, rest)| fits(id, shape) && fits(rest, "-00"))
}

/// Takes a snapshot and answers its id. `jobs` is a copy of the job list.
///
/// # Errors
/// When the disk refuses; a half-written snapshot is removed.
pub fn snapshot(
    library: &Library,
    files: &mut dyn Files,
    now: Millis,
    reason: &str,
    jobs: &Value,
) -> Result<String, FileError> {
    let base = stamp::format(now, "%Y-%m-%dT%H-%M-%SZ").unwrap_or_default();
    let mut id = base.clone();
    let mut count = 0;
    while files.exists(&join(&dir(library), &id)) {
        count += 1;
        id = format!("{base}-{count:02}");
    }
    let target = join(&dir(library), &id);
    let sources = kept_files(files, library.root());
    let written = (|| {
        for path in &sources {
            let bytes = files.read(path)?;
            let below = path.strip_prefix(library.root()).unwrap_or(path).trim_start_matches('/');
            files.write(&join(&target, &format!("tree/{below}")), &bytes)?;
        }
        let manifest = json!({"id": id, "at": stamp::show(now), "reason": reason, "files": sources.len()});
        files.write(&join(&target, "manifest.json"), manifest.to_string().as_bytes())?;
        files.write(&join(&target, "jobs.json"), jobs.to_string().as_bytes())
    })();
    if written.is_err() {
        let _ = files.remove_dir(&target);
    }
    written.map(|()| id)
}

/// Which snapshots go: all but the newest `keep` and the protected ones. Other names are never touched.
pub fn expired(ids: &[String], keep: u64, protect: &BTreeSet<String>) -> Vec<String> {
    let mut snapshots: Vec<&String> = ids.iter().filter(|id| is_id(id)).collect();
    snapshots.sort();
    snapshots.reverse();
    let keep = usize::try_from(keep.max(1)).unwrap_or(usize::MAX);
    let mut gone: Vec<String> =
        snapshots.into_iter().skip(keep).filter(|id| !protect.contains(*id)).cloned().collect();
    gone.sort();
    gone
}

/// Removes expired snapshots and what crashes left, and answers the removed snapshots.
pub fn prune(library: &Library, files: &mut dyn Files, keep: u64, protect: &BTreeSet<String>) -> Vec<String> {
    let names: Vec<String> = files.list(&dir(library)).into_iter().map(|(name, _)| name).collect();
    for stale in names.iter().filter(|name| name.starts_with(STAGING)) {
        let _ = files.remove_dir(&join(&dir(library), stale));
    }
    let gone = expired(&names, keep, protect);
    for id in &gone {
        let _ = files.remove_dir(&join(&dir(library), id));
    }
    gone
}

/// Puts the tree back as a snapshot has it. The present state is kept in a snapshot of its own first; on failure
/// everything is put back. What snapshots leave out stays as it is. Answers the id of the snapshot of the present and
/// the job list of the restored one.
///
/// # Errors
/// [`FileError::NotFound`] for an unknown id, [`FileError::Escapes`] for a path that climbs, or the disk's refusal.
pub fn rollback(
    library: &Library,
    files: &mut dyn Files,
    now: Millis,
    id: &str,
) -> Result<(String, Value), FileError> {
    let source = join(&dir(library), id);
    let tree = join(&source, "tree");
    if !is_id(id) || !files.is_dir(&source) {
        return Err(FileError::NotFound(source));
    }
    let jobs = files.read_text(&join(&source, "jobs.json")).unwrap_or_default();
    let mut wanted = Vec::new();
    for path in files.walk(&tree) {
        let below = path.strip_prefix(&tree).unwrap_or_default().trim_start_matches('/').to_owned();
        if normalize(&below).as_ref() != Some(&below) {
            return Err(FileError::Escapes(below));
        }
        wanted.push((join(library.root(), &below), files.read(&path)?));
    }
    let present = snapshot(library, files, now, "before rollback", &Value::Null)?;
    let before: Vec<(String, Vec<u8>)> = kept_files(files, library.root())
        .into_iter()
        .filter_map(|path| files.read(&path).ok().map(|bytes| (path, bytes)))
        .collect();
    if let Err(error) = exchange(files, &before, &wanted) {
        if exchange(files, &wanted, &before).is_err() {
            let left = join(&dir(library), &format!("{UNRESTORED}{}", stamp::compact(now)));
            let _ = files.create_dir(&left);
        }
        return Err(error);
    }
    Ok((present, serde_json::from_str(&jobs).unwrap_or_default()))
}

fn exchange(
    files: &mut dyn Files,
    old: &[(String, Vec<u8>)],
    new: &[(String, Vec<u8>)],
) -> Result<(), FileError> {
    let stays: BTreeSet<&String> = new.iter().map(|(path, _)| path).collect();
    for (path, _) in old {
        if !stays.contains(path) && files.exists(path) {
            files.remove_file(path)?;
            let above = crate::world::files::parent(path);
            if files.list(above).is_empty() {
                files.remove_dir(above)?;
            }
        }
    }
    for (path, bytes) in new {
        files.write(path, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::world::MemFiles;

    #[test]
    fn a_rollback_brings_the_tree_back_and_keeps_the_present() {
        let library = Library::new(&Policy::default(), &[]);
        let mut files = MemFiles::new();
        files.write("skills/a/SKILL.md", b"old").unwrap();
        files.write("skills/.archive/z/SKILL.md", b"z").unwrap();
        let id = snapshot(&library, &mut files, 0, "test", &json!([1])).unwrap();
        files.write("skills/a/SKILL.md", b"new").unwrap();
        files.write("skills/b/SKILL.md", b"b").unwrap();
        let (present, jobs) = rollback(&library, &mut files, 0, &id).unwrap();
        assert_eq!((present.as_str(), jobs), ("1970-01-01T00-00-00Z-01", json!([1])));
        assert_eq!(files.read_text("skills/a/SKILL.md").unwrap(), "old");
        assert!(!files.exists("skills/b") && files.exists("skills/.archive/z/SKILL.md"));
        assert_eq!(
            rollback(&library, &mut files, 0, "../a").unwrap_err(),
            FileError::NotFound("skills/.curator_backups/../a".to_owned())
        );
    }
}

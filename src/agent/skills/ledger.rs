//! The audit log of changes to skills: one row per change, with copies of the content before and after.
//!
//! Copies are stored by digest. The log is bounded; the oldest rows go first, young ones stay. Called after every
//! mutation. Never: a failure that blocks the mutation itself.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::agent::stamp;
use crate::policy;
use crate::world::clock::SECOND;
use crate::world::files::join;
use crate::world::{Files, Millis};

/// Directory of the log below the skills directory; curator snapshots leave it out.
pub const DIR: &str = ".ledger";

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// When, ISO 8601.
    pub at: String,
    /// What was done.
    pub action: String,
    /// The skill, as it was named in the call.
    pub name: String,
    /// Path of the file from the home; empty for whole skills.
    pub path: String,
    /// Who did it.
    pub origin: String,
    /// Digest of the content before, if there was one.
    pub before: Option<String>,
    /// Digest of the content after, if there is one.
    pub after: Option<String>,
}

/// A change that is about to be noted.
pub(super) struct Change<'a> {
    pub action: &'a str,
    pub name: &'a str,
    pub path: &'a str,
    pub origin: &'a str,
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
}

/// The rows, oldest first; a line that cannot be read is left out.
pub fn rows(files: &dyn Files, root: &str) -> Vec<Row> {
    let text = files.read_text(&log_path(root)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The copy with this digest.
pub fn copy(files: &dyn Files, root: &str, digest: &str) -> Option<Vec<u8>> {
    files.read(&copy_path(root, digest)).ok()
}

fn log_path(root: &str) -> String {
    join(root, &format!("{DIR}/log.jsonl"))
}

fn copy_path(root: &str, digest: &str) -> String {
    join(root, &format!("{DIR}/copies/{digest}"))
}

/// Appends a row. What the disk refuses is lost, not reported: the change itself stands.
pub(super) fn note(
    files: &mut dyn Files,
    root: &str,
    now: Millis,
    knobs: &policy::Skills,
    change: Change<'_>,
) {
    let mut keep = |bytes: Option<Vec<u8>>| -> Option<String> {
        let bytes = bytes?;
        let digest = hex(&Sha256::digest(&bytes));
        let path = copy_path(root, &digest);
        if !files.exists(&path) {
            let _ = files.write(&path, &bytes);
        }
        Some(digest)
    };
    let row = Row {
        at: stamp::show(now),
        action: change.action.to_owned(),
        name: change.name.to_owned(),
        path: change.path.to_owned(),
        origin: change.origin.to_owned(),
        before: keep(change.before),
        after: keep(change.after),
    };
    let mut rows = rows(files, root);
    rows.push(row);
    prune(files, root, now, knobs, &mut rows);
    let text: String =
        rows.iter().filter_map(|row| serde_json::to_string(row).ok()).map(|line| line + "\n").collect();
    let _ = files.write(&log_path(root), text.as_bytes());
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

/// Drops the oldest rows, and copies that no row names any more, until the log fits.
fn prune(files: &mut dyn Files, root: &str, now: Millis, knobs: &policy::Skills, rows: &mut Vec<Row>) {
    let young = now - SECOND * i64::try_from(knobs.ledger_young_seconds).unwrap_or(i64::MAX / SECOND);
    let copies = join(root, &format!("{DIR}/copies"));
    let mut size: u64 = files
        .list(&copies)
        .iter()
        .filter_map(|(name, _)| files.meta(&join(&copies, name)))
        .map(|meta| meta.len)
        .sum();
    let mut dropped = 0;
    while size > knobs.ledger_bytes_max && dropped < rows.len() {
        if stamp::parse(&rows[dropped].at).is_some_and(|at| at > young) {
            break;
        }
        for digest in [rows[dropped].before.clone(), rows[dropped].after.clone()].into_iter().flatten() {
            let named = rows[dropped + 1..]
                .iter()
                .any(|row| row.before.as_ref() == Some(&digest) || row.after.as_ref() == Some(&digest));
            let path = copy_path(root, &digest);
            if !named && let Some(meta) = files.meta(&path) {
                size = size.saturating_sub(meta.len);
                let _ = files.remove_file(&path);
            }
        }
        dropped += 1;
    }
    rows.drain(..dropped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;
    use crate::world::clock::HOUR;

    #[test]
    fn old_rows_go_when_the_log_is_full_and_young_ones_stay() {
        let mut files = MemFiles::new();
        let knobs = policy::Skills { ledger_bytes_max: 10, ..Default::default() };
        let mut write = |now, text: &str| {
            let change = Change {
                action: "patch",
                name: "a",
                path: "skills/a/SKILL.md",
                origin: "foreground",
                before: None,
                after: Some(text.as_bytes().to_vec()),
            };
            note(&mut files, "skills", now, &knobs, change);
            rows(&files, "skills").len()
        };
        assert_eq!(write(0, "12345678"), 1);
        assert_eq!(write(HOUR / 2, "abcdefgh"), 2);
        assert_eq!(write(3 * HOUR, "ABCDEFGH"), 1);
    }
}

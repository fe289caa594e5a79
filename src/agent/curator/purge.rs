//! What the user does by hand: archive, prune, purge.
//!
//! Only a purge deletes, only what has been archived long enough, and only when asked.

use crate::agent::skills::{Library, Lifecycle, MoveError, Record, State, Usage};
use crate::policy;
use crate::world::clock::DAY;
use crate::world::files::{file_name, join};
use crate::world::{EntryKind, Files, Millis};

/// Why a command does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The skill is pinned.
    #[error("the skill is pinned")]
    Pinned,
    /// The age must be at least one day.
    #[error("no age was given from which something goes")]
    NoAge,
    /// The move was refused.
    #[error("{0}")]
    Move(#[from] MoveError),
}

/// Archives a skill by the user's will; pinned ones are refused.
///
/// # Errors
/// `Pinned`, or why the move was refused.
pub fn archive(
    library: &Library,
    files: &mut dyn Files,
    now: Millis,
    name: &str,
) -> Result<Option<Lifecycle>, CommandError> {
    let usage = Usage::load(files, library.root());
    if usage.get(name).is_some_and(Record::is_pinned) {
        return Err(CommandError::Pinned);
    }
    Ok(library.archive(files, now, name)?)
}

/// Brings a skill back from the archive.
///
/// # Errors
/// Why the move was refused.
pub fn restore(
    library: &Library,
    files: &mut dyn Files,
    now: Millis,
    name: &str,
) -> Result<Option<Lifecycle>, CommandError> {
    Ok(library.restore(files, now, name)?)
}

/// Archives every candidate that is neither pinned nor archived and has been idle for `days`; answers the names.
///
/// # Errors
/// `NoAge` for less than one day.
pub fn prune_idle(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    days: i64,
) -> Result<Vec<String>, CommandError> {
    if days < 1 {
        return Err(CommandError::NoAge);
    }
    let usage = Usage::load(files, library.root());
    let idle = |record: &Record| {
        let since = record.last_activity().or_else(|| record.instant("created_at")).unwrap_or(now);
        now.saturating_sub(since).div_euclid(DAY) >= days
    };
    let names: Vec<String> = super::candidates(library, knobs, files)
        .into_iter()
        .filter(|name| {
            usage.get(name).is_some_and(|record| {
                !record.is_pinned() && record.state() != State::Archived.word() && idle(record)
            })
        })
        .collect();
    Ok(names.into_iter().filter(|name| library.archive(files, now, name).is_ok()).collect())
}

/// Deletes what was archived more than `days` ago (Hermes hermes_cli/curator.py:419-480); without `days` the
/// configured age counts. Answers the names, also of a dry run, which deletes nothing.
///
/// # Errors
/// `NoAge` when the age is zero or less.
pub fn purge(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    days: Option<i64>,
    dry_run: bool,
) -> Result<Vec<String>, CommandError> {
    let days = days.unwrap_or(knobs.archive_ttl_days);
    if days <= 0 {
        return Err(CommandError::NoAge);
    }
    let usage = Usage::load(files, library.root());
    let archive = library.archive_dir();
    let old: Vec<String> = files
        .list(&archive)
        .into_iter()
        .filter(|(_, kind)| *kind == EntryKind::Dir)
        .map(|(name, _)| join(&archive, &name))
        .filter(|dir| now.saturating_sub(library.archived_at(files, &usage, dir)) > days.saturating_mul(DAY))
        .collect();
    let mut gone = Vec::new();
    for dir in old {
        if dry_run || library.purge_archived(files, now, &dir) {
            gone.push(file_name(&dir).to_owned());
        }
    }
    Ok(gone)
}

//! Whether a run is due, and the claim that keeps two runs apart.
//!
//! Called by whoever polls. The first sight of a home never runs: it starts the clock.

use super::state::CuratorState;
use crate::agent::skills::Library;
use crate::agent::stamp;
use crate::policy;
use crate::world::clock::{HOUR, SECOND};
use crate::world::files::join;
use crate::world::{Files, Millis};

/// Why a run does or does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It is due.
    Due,
    /// The curator is switched off.
    Disabled,
    /// The user paused it.
    Paused,
    /// The home was seen for the first time, or its clock was damaged; the clock starts now.
    Seeded,
    /// The interval has not passed.
    TooSoon,
    /// Somebody is working.
    NotIdle,
}

/// Decides whether a run is due (Hermes agent/curator.py:160-180). `idle_seconds` is `None` where nobody measures it,
/// and infinite where the caller says that nobody is working.
pub fn gate(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    idle_seconds: Option<f64>,
) -> Gate {
    if !knobs.enabled {
        return Gate::Disabled;
    }
    let mut state = CuratorState::load(files, library.root());
    if state.is_paused() {
        return Gate::Paused;
    }
    let Some(last) = state.last_run_at() else {
        state.set("last_run_at", stamp::show(now));
        state.set("last_run_summary", "first seen; the first run comes after one interval");
        // A state that cannot be written is seeded again at the next poll.
        let _ = state.save(files, library.root());
        return Gate::Seeded;
    };
    let interval = HOUR.saturating_mul(i64::try_from(knobs.interval_hours).unwrap_or(i64::MAX));
    if now.saturating_sub(last) < interval {
        return Gate::TooSoon;
    }
    if idle_seconds.is_some_and(|idle| idle < knobs.min_idle_hours * 3_600.0) {
        return Gate::NotIdle;
    }
    Gate::Due
}

/// Asks the gates and claims the run that is due; the caller [`release`]s it when the run is over. False when none is
/// due, or somebody else is at it.
pub fn take(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    idle_seconds: Option<f64>,
) -> bool {
    gate(library, knobs, files, now, idle_seconds) == Gate::Due && claim(library, knobs, files, now)
}

fn claim_path(root: &str) -> String {
    join(root, ".locks/curator-run")
}

/// Claims a run. False when somebody else holds a claim that is not abandoned; a claim that cannot be written at all
/// does not stop a run.
pub fn claim(library: &Library, knobs: &policy::Curator, files: &mut dyn Files, now: Millis) -> bool {
    let path = claim_path(library.root());
    let held = files.read_text(&path).ok().and_then(|text| text.trim().parse::<Millis>().ok());
    let held = held.or_else(|| files.meta(&path).map(|meta| meta.modified));
    let patience = SECOND.saturating_mul(i64::try_from(knobs.claim_seconds).unwrap_or(i64::MAX));
    if held.is_some_and(|at| now.saturating_sub(at) <= patience) {
        return false;
    }
    // Where the directory cannot be made, nobody can hold a claim either.
    let _ = files.write(&path, now.to_string().as_bytes());
    true
}

/// Gives a claim back.
pub fn release(library: &Library, files: &mut dyn Files) {
    // Nothing to give back is as good.
    let _ = files.remove_file(&claim_path(library.root()));
}

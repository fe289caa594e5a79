//! The ageing of skills: active, stale, archived, and back. No model takes part, and nothing is deleted.
//!
//! Called by a run and by scenarios directly. Never: a skill that the agent did not make (unless the knob says so), a
//! pinned one, one that a scheduled job names.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::skills::{Library, Lifecycle, Owners, Record, State, Usage};
use crate::agent::stamp;
use crate::policy;
use crate::world::clock::DAY;
use crate::world::{Files, Millis};

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Skills that were looked at.
    pub checked: u64,
    /// Skills that became stale.
    pub marked_stale: u64,
    /// Skills that were archived.
    pub archived: u64,
    /// Stale skills that became active.
    pub reactivated: u64,
    /// Skills whose clock was started.
    pub seeded: u64,
}

/// A pass with its consequences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pass {
    /// The figures.
    pub counts: Counts,
    /// The archived names.
    pub archived: Vec<String>,
    /// Names that could not be archived; the next pass tries again.
    pub refused: Vec<String>,
    /// What happened to which skill.
    pub events: Vec<(String, Lifecycle)>,
}

/// The names that a pass looks at, sorted (Hermes tools/skill_usage.py:695).
pub fn candidates(library: &Library, knobs: &policy::Curator, files: &dyn Files) -> Vec<String> {
    let owners = Owners::load(files, library.root());
    let usage = Usage::load(files, library.root());
    let names: BTreeSet<String> =
        library.local(files).iter().map(|dir| library.usage_name(files, dir)).collect();
    names
        .into_iter()
        .filter(|name| {
            let bundled = owners.is_bundled(name);
            let eligible = !library.is_protected(name)
                && !owners.is_hub(name)
                && (library.prunes_builtins() || !bundled);
            let record = usage.get(name);
            let managed = record.is_some_and(Record::is_managed) || !knobs.respect_provenance;
            eligible && (bundled || managed || record.is_some_and(Record::is_pinned))
        })
        .collect()
}

/// Ages every candidate once (Hermes agent/curator.py:209-259). `scheduled` are the names that jobs use.
pub fn run_transitions(
    library: &Library,
    knobs: &policy::Curator,
    files: &mut dyn Files,
    now: Millis,
    scheduled: &BTreeSet<String>,
) -> Pass {
    let names = candidates(library, knobs, files);
    let owners = Owners::load(files, library.root());
    let mut usage = Usage::load(files, library.root());
    let mut pass = Pass::default();
    let mut doomed = Vec::new();
    for name in names {
        let step = step(knobs, &mut usage, now, &name, owners.is_bundled(&name), scheduled.contains(&name));
        pass.counts.checked += 1;
        match step {
            Step::Kept => {}
            Step::Seeded => pass.counts.seeded += 1,
            Step::Archive => doomed.push(name),
            Step::Stale => {
                pass.counts.marked_stale += 1;
                pass.events.push((name, Lifecycle::Stale));
            }
            Step::Reactivated => pass.counts.reactivated += 1,
        }
    }
    // What cannot be noted will be found again by the next pass.
    let _ = usage.save(files, library.root());
    for name in doomed {
        match library.archive(files, now, &name) {
            Ok(event) => {
                pass.counts.archived += 1;
                pass.events.extend(event.map(|event| (name.clone(), event)));
                pass.archived.push(name);
            }
            Err(_) => pass.refused.push(name),
        }
    }
    pass
}

enum Step {
    Kept,
    Seeded,
    Archive,
    Stale,
    Reactivated,
}

fn step(
    knobs: &policy::Curator,
    usage: &mut Usage,
    now: Millis,
    name: &str,
    bundled: bool,
    scheduled: bool,
) -> Step {
    let Some(record) = usage.get(name).cloned() else {
        if scheduled {
            return Step::Kept;
        }
        usage.put(name, anchored(Record::fresh(now), now));
        return Step::Seeded;
    };
    if record.is_pinned() || scheduled {
        return Step::Kept;
    }
    let unused = record.count("use_count") == 0;
    let activity = record.last_activity();
    if bundled && unused && activity.is_none() && record.instant("first_seen_at").is_none() {
        let mut record = anchored(record, now);
        if record.state() == State::Stale.word() {
            record.set("state", State::Active.word());
        }
        usage.put(name, record);
        return Step::Seeded;
    }
    let anchor = activity.or_else(|| record.instant("created_at")).unwrap_or(now);
    let before = |days: u64| now.saturating_sub(DAY.saturating_mul(i64::try_from(days).unwrap_or(i64::MAX)));
    let (stale, archive) = (before(knobs.stale_after_days), before(knobs.archive_after_days));
    let state = record.state();
    let fresh = anchor > stale;
    let in_grace = knobs.grace_for_unused && unused && fresh;
    if !in_grace && anchor <= archive && state != State::Archived.word() {
        return Step::Archive;
    }
    if !in_grace && !fresh && state == State::Active.word() {
        usage.set_state(name, State::Stale, now);
        return Step::Stale;
    }
    if fresh && state == State::Stale.word() {
        usage.set_state(name, State::Active, now);
        return Step::Reactivated;
    }
    Step::Kept
}

/// A record whose clock starts now.
fn anchored(mut record: Record, now: Millis) -> Record {
    record.set("created_at", stamp::show(now));
    record.set("first_seen_at", stamp::show(now));
    record
}

/// Names by category of the outcome, for the report of a dry run: what a pass would look at.
pub(super) fn dry_counts(library: &Library, knobs: &policy::Curator, files: &dyn Files) -> Counts {
    Counts { checked: candidates(library, knobs, files).len() as u64, ..Counts::default() }
}

/// The state of every record, by name.
pub fn states(files: &dyn Files, library: &Library) -> BTreeMap<String, String> {
    let usage = Usage::load(files, library.root());
    usage.iter().map(|(name, record)| (name.clone(), record.state().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::world::MemFiles;

    /// A home with a user's skill that was last used 40 days ago, and one of the agent's that nobody used.
    fn home(now: Millis) -> MemFiles {
        let mut files = MemFiles::new();
        let mut usage = Usage::default();
        for (name, by) in [("mine", "learn"), ("theirs", "agent")] {
            let text = format!("---\nname: {name}\ndescription: d\n---\nbody\n");
            files.write(&format!("skills/{name}/SKILL.md"), text.as_bytes()).unwrap();
            usage.created(name, by, now - 40 * DAY);
        }
        usage.save(&mut files, "skills").unwrap();
        files
    }

    #[test]
    fn without_provenance_the_users_skills_are_aged_too() {
        let (now, mut policy) = (100 * DAY, Policy::default());
        for (respect, archived) in [(true, vec!["theirs"]), (false, vec!["mine", "theirs"])] {
            policy.curator.respect_provenance = respect;
            let library = Library::new(&policy, &[]);
            let pass = run_transitions(&library, &policy.curator, &mut home(now), now, &BTreeSet::new());
            assert_eq!(pass.archived, archived);
        }
    }

    #[test]
    fn without_grace_a_young_unused_skill_can_be_archived() {
        let (now, mut policy) = (100 * DAY, Policy::default());
        policy.curator.stale_after_days = 60;
        for (grace, archived) in [(true, 0), (false, 1)] {
            policy.curator.grace_for_unused = grace;
            let library = Library::new(&policy, &[]);
            let pass = run_transitions(&library, &policy.curator, &mut home(now), now, &BTreeSet::new());
            assert_eq!(pass.counts.archived, archived);
        }
    }
}

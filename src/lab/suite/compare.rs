//! Two records of a suite side by side: what moved, and whether it is a regression.
//!
//! A verdict that held and no longer does, a task that has gone, a new finding, more repeated actions or unknown
//! outcomes are regressions; so is a count of tokens or a cost that grew by more than [`TOLERANCE_MILLE`] thousandths.
//! That a digest moved is told and is none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Suite, TaskRun};

/// How far tokens and cost may grow, in thousandths of their earlier value.
pub const TOLERANCE_MILLE: u64 = 20;

/// Something that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The task.
    pub task: String,
    /// What moved.
    pub what: String,
    /// As it was.
    pub before: String,
    /// As it is.
    pub after: String,
    /// True for a regression.
    pub worse: bool,
}

/// Everything that moved between two records, regressions first.
pub fn compare(before: &Suite, after: &Suite) -> Vec<Moved> {
    let by_name = |suite: &Suite| -> BTreeMap<String, TaskRun> {
        suite.tasks.iter().map(|task| (task.task.clone(), task.clone())).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut moves = Vec::new();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let mut note = |what: &str, before: String, after: String, worse: bool| {
            moves.push(Moved { task: name.clone(), what: what.to_owned(), before, after, worse });
        };
        match (old.get(name), new.get(name)) {
            (Some(_), None) => note("task", "played".to_owned(), "gone".to_owned(), true),
            (None, Some(task)) => note("task", "none".to_owned(), state(task.holds), !task.holds),
            (Some(old), Some(new)) => task(old, new, &mut note),
            (None, None) => {}
        }
    }
    // Regressions first; the order within is that of the tasks.
    moves.sort_by_key(|moved| !moved.worse);
    moves
}

fn state(holds: bool) -> String {
    if holds { "holds".to_owned() } else { "fails".to_owned() }
}

fn task(old: &TaskRun, new: &TaskRun, note: &mut dyn FnMut(&str, String, String, bool)) {
    if old.error != new.error {
        let shown = |error: &Option<String>| error.clone().unwrap_or_else(|| "played".to_owned());
        note("played", shown(&old.error), shown(&new.error), new.error.is_some());
    }
    let verdicts = |task: &TaskRun| -> BTreeMap<String, bool> {
        task.verdicts.iter().map(|judged| (judged.name.clone(), judged.holds)).collect()
    };
    let (was, is) = (verdicts(old), verdicts(new));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    for name in names {
        match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) if was == is => {}
            // A task that could not be played has no verdicts; that was told already.
            (Some(_), None) if new.error.is_some() => {}
            (Some(was), None) => note(name, state(*was), "gone".to_owned(), true),
            (was, Some(is)) => {
                note(name, was.map_or_else(|| "none".to_owned(), |was| state(*was)), state(*is), !is);
            }
            (None, None) => {}
        }
    }
    let checks = |task: &TaskRun| -> BTreeSet<String> {
        task.findings.iter().map(|found| found.check.clone()).collect()
    };
    for check in checks(new).difference(&checks(old)) {
        note(check, "holds".to_owned(), "fails".to_owned(), true);
    }
    for check in checks(old).difference(&checks(new)) {
        note(check, "fails".to_owned(), "holds".to_owned(), false);
    }
    let counts = [
        ("repeated actions", old.repeated_actions, new.repeated_actions, Some(0)),
        ("unknown outcomes", old.unknown_outcomes, new.unknown_outcomes, Some(0)),
        ("refusals", old.refusals, new.refusals, None),
        ("prompt tokens", old.all_tokens().prompt(), new.all_tokens().prompt(), Some(TOLERANCE_MILLE)),
        ("output tokens", old.all_tokens().output, new.all_tokens().output, Some(TOLERANCE_MILLE)),
        ("tokens read from the cache", old.all_tokens().read, new.all_tokens().read, None),
        (
            "cost in millionths of a dollar",
            old.cost_microdollars.unwrap_or(0),
            new.cost_microdollars.unwrap_or(0),
            Some(TOLERANCE_MILLE),
        ),
    ];
    if new.error.is_none() && old.error.is_none() {
        for (what, was, is, tolerance) in counts {
            if was != is {
                let worse = tolerance.is_some_and(|mille| is * 1_000 > was * (1_000 + mille));
                note(what, was.to_string(), is.to_string(), worse);
            }
        }
    }
    for (what, was, is) in [
        ("policy", &old.policy_digest, &new.policy_digest),
        ("scenario", &old.scenario_digest, &new.scenario_digest),
    ] {
        if was != is {
            let short = |digest: &String| digest.chars().take(12).collect::<String>();
            note(what, short(was), short(is), false);
        }
    }
}

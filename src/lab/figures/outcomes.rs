//! Figures about what came of it: triggers, deliveries, waits, occurrences.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::count;
use crate::ledger::{Lane, Ledger, What};

/// Sessions of this name say which skill each of their turns must load; `none` for no skill. What follows a `#` tells
/// sessions of one skill apart.
const EXPECTATION: &str = "load:";

/// For every turn of a `load:NAME` session: the skill that it should load, and those that it loaded.
fn triggers(ledger: &Ledger) -> Vec<(&str, BTreeSet<&str>)> {
    let mut open: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut turns = Vec::new();
    for event in &ledger.events {
        let Some(wanted) = event.session.strip_prefix(EXPECTATION) else { continue };
        let wanted = wanted.split('#').next().unwrap_or(wanted);
        match &event.what {
            What::SkillViewed(viewed) if viewed.lane == Lane::Main => {
                open.entry(wanted).or_default().insert(&viewed.skill);
            }
            What::TurnEnded(_) => turns.push((wanted, open.remove(wanted).unwrap_or_default())),
            _ => {}
        }
    }
    turns
}

fn per_mille(part: usize, all: usize) -> Value {
    json!((part * 1_000).checked_div(all).unwrap_or(0))
}

pub(super) fn trigger_prompts(ledger: &Ledger) -> Value {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (wanted, _) in triggers(ledger) {
        *counts.entry(wanted).or_insert(0) += 1;
    }
    json!(counts)
}

pub(super) fn missed_trigger_rate(ledger: &Ledger) -> Value {
    let turns: Vec<_> = triggers(ledger).into_iter().filter(|(wanted, _)| *wanted != "none").collect();
    per_mille(turns.iter().filter(|(wanted, loaded)| !loaded.contains(wanted)).count(), turns.len())
}

pub(super) fn false_trigger_rate(ledger: &Ledger) -> Value {
    let turns: Vec<_> = triggers(ledger).into_iter().filter(|(wanted, _)| *wanted == "none").collect();
    per_mille(turns.iter().filter(|(_, loaded)| !loaded.is_empty()).count(), turns.len())
}

pub(super) fn undelivered(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::DeliveryFailed(_)))
}

pub(super) fn tool_failures(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::ToolRan(ran) if !ran.ok && ran.lane == Lane::Main))
}

pub(super) fn occurrences_repeated(ledger: &Ledger) -> Value {
    let mut seen = BTreeSet::new();
    let again = ledger.events.iter().filter(|event| {
        matches!(&event.what, What::CronFired(run)
            if &*run.outcome == "ran" && !seen.insert((run.job.clone(), run.occurrence)))
    });
    json!(again.count())
}

pub(super) fn jobs_by_runs(ledger: &Ledger) -> Value {
    count(
        ledger,
        |what| matches!(what, What::CronJob(job) if job.lane == Lane::Cron && job.ok && &*job.action == "create"),
    )
}

/// Longest wait between a reply and the end of a tool that it called, in whole seconds.
pub(super) fn slowest_tool_seconds(ledger: &Ledger) -> Value {
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    let mut slowest = 0;
    for event in &ledger.events {
        if let What::ToolRan(_) = &event.what {
            let began = last.get(&*event.session).copied().unwrap_or(event.at);
            slowest = slowest.max((event.at - began) / crate::world::clock::SECOND);
        }
        // The effect of a command is recorded when it is over, too.
        if !matches!(&event.what, What::Effect(_)) {
            last.insert(&event.session, event.at);
        }
    }
    json!(slowest)
}

/// Longest tool result that a request carries, in characters.
pub(super) fn longest_result_chars(ledger: &Ledger) -> Value {
    let segments = ledger.events.iter().flat_map(|event| match &event.what {
        What::Request(request) if request.lane == Lane::Main => request.added.as_slice(),
        _ => &[],
    });
    let results = segments.filter(|segment| segment.text.contains("\"role\":\"tool\""));
    json!(results.map(|segment| segment.text.chars().count()).max().unwrap_or(0))
}

/// Characters by which children's summaries let their parents' contexts grow.
pub(super) fn returned_chars(ledger: &Ledger) -> Value {
    let chars = ledger.events.iter().map(|event| match &event.what {
        What::Delegation(asked) => asked.returned_chars,
        _ => 0,
    });
    json!(chars.sum::<u64>())
}

pub(super) fn search_answers(ledger: &Ledger) -> Value {
    let mut answers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in &ledger.events {
        if let What::Searched(search) = &event.what {
            answers.insert(&search.query, search.hits.iter().map(|(session, _, _)| &**session).collect());
        }
    }
    json!(answers)
}

pub(super) fn searches_verbatim(ledger: &Ledger) -> Value {
    let searches: Vec<bool> = ledger
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Searched(search) => Some(search.verbatim),
            _ => None,
        })
        .collect();
    if searches.is_empty() { Value::Null } else { json!(searches.iter().all(|verbatim| *verbatim)) }
}

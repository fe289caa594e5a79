//! The process dies after every single event of a scenario, and another takes its place.
//!
//! Each such run is compared with the undisturbed one: what had been accepted before the crash is there at the end,
//! none of it twice, the prompt that was stored is sent again byte for byte, and every law holds. The gaps of the real
//! mechanism that [`CLOSED`] names are closed, unless the caller leaves them open to see them.
//!
//! A crash takes work away and so moves the places of later compactions. What a summary keeps of the user's wishes
//! must not depend on the place where a scenario's author expected it: summaries of these runs do what their
//! instruction asks, and repeat every lasting wish that the scenario's user has.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use serde::Serialize;

use crate::agent::compress::history::is_standing;
use crate::lab::explore::generate::CLOSED;
use crate::lab::play::{Plan, PlayError, play};
use crate::lab::runs::each_on;
use crate::laws;
use crate::ledger::{Lane, Ledger, What};
use crate::policy::Overlay;
use crate::scenario::{Act, ReplySpec, Scenario};
use crate::wire::Chain;

/// The version of the JSON shape.
pub const SCHEMA: u64 = 1;

/// What is wrong with the run that died after one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The event after which the process died.
    pub event: u64,
    /// Kind of that event.
    pub kind: &'static str,
    /// What does not hold: a check of the laws, or `lost`, `doubled`, `prompt`, `plays`.
    pub what: String,
    /// What was seen.
    pub evidence: String,
}

/// What the crashes of one scenario showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Crashes {
    /// Version of the shape.
    pub schema: u64,
    /// The scenario.
    pub scenario: String,
    /// Events of the undisturbed run; the process died once after each.
    pub events: u64,
    /// Rows that had been accepted before the crashes, all runs together.
    pub rows: u64,
    /// Memory entries that had been accepted before the crashes, all runs together.
    pub entries: u64,
    /// Sessions that were taken up again.
    pub resumed: u64,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

/// Overlay that closes the known gaps.
pub fn closed() -> Overlay {
    let knobs = CLOSED.iter().map(|(knob, value)| {
        let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(*value));
        ((*knob).to_owned(), value)
    });
    Overlay { knobs: knobs.collect() }
}

/// Kills the scenario after each of its events; `step` leaves events out: 1 for every single one.
///
/// # Errors
/// When the undisturbed run cannot be played.
pub fn crash_every_step(
    scenario: &Scenario,
    plan: &Plan,
    step: u64,
    threads: NonZeroUsize,
) -> Result<Crashes, PlayError> {
    let scenario = &with_dutiful_summaries(scenario);
    let whole = play(scenario, plan)?;
    let places: Vec<u64> = whole
        .events
        .iter()
        .map(|event| event.n)
        .filter(|n| n.is_multiple_of(step.max(1)) || *n == 1)
        .collect();
    let runs = each_on(&places, threads, |event| one(scenario, plan, &whole, *event));
    let mut crashes = Crashes {
        schema: SCHEMA,
        scenario: scenario.name.clone(),
        events: places.len() as u64,
        rows: 0,
        entries: 0,
        resumed: 0,
        problems: Vec::new(),
    };
    for run in runs {
        crashes.rows += run.rows;
        crashes.entries += run.entries;
        crashes.resumed += run.resumed;
        crashes.problems.extend(run.problems);
    }
    Ok(crashes)
}

/// The scenario with every wish that is meant to last repeated in every summary.
fn with_dutiful_summaries(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    let mut wishes = String::new();
    for act in &scenario.acts {
        let Act::Turn(turn) = act else { continue };
        for line in turn.say.lines().chain(turn.say_each.iter().flat_map(|say| say.lines())) {
            if is_standing(line) && !wishes.contains(line.trim()) {
                wishes.push_str(&format!("\n{}", line.trim()));
            }
        }
    }
    let dutiful = |reply: &mut ReplySpec| {
        if let Some(say) = &mut reply.say {
            say.push_str(&wishes);
        }
    };
    let rules = scenario.rules.iter_mut().filter(|rule| rule.lane == Lane::Summary.word());
    rules.filter_map(|rule| rule.reply.as_mut()).for_each(dutiful);
    for act in &mut scenario.acts {
        if let Act::Turn(turn) = act {
            turn.summary.iter_mut().for_each(dutiful);
        }
    }
    scenario
}

#[derive(Default)]
struct Run {
    rows: u64,
    entries: u64,
    resumed: u64,
    problems: Vec<Problem>,
}

fn one(scenario: &Scenario, plan: &Plan, whole: &Ledger, at: u64) -> Run {
    let mut run = Run::default();
    let kind = whole.events[usize::try_from(at - 1).expect("an event of the ledger")].what.kind();
    let mut problem = |what: &str, evidence: String| {
        run.problems.push(Problem { event: at, kind, what: what.to_owned(), evidence });
    };
    let ledger = match play(scenario, &Plan { crash_at: Some(at), ..plan.clone() }) {
        Ok(ledger) => ledger,
        Err(error) => {
            problem("plays", error.to_string());
            return run;
        }
    };
    // The event at which the process died was still written; what follows it belongs to the next process.
    let before = &ledger.events[..usize::try_from(at).unwrap_or(0).min(ledger.events.len())];
    if before.iter().zip(&whole.events).any(|(a, b)| a != b) {
        problem("plays", "the run parts from the undisturbed one before the crash".to_owned());
    }
    for finding in laws::judge(&ledger).findings() {
        problem(finding.check, format!("event {}, {}: {}", finding.event, finding.place, finding.evidence));
    }
    let (held, held_whole) = (rows_held(&ledger), rows_held(whole));
    let mut accepted = 0;
    for event in before {
        let What::Stored(stored) = &event.what else { continue };
        accepted += 1;
        let key = (event.session.to_string(), stored.digest);
        let (count, whole) = (held.get(&key).copied(), held_whole.get(&key).copied().unwrap_or(0));
        match count {
            None => problem("lost", format!("row {} of {} is not in the store", stored.row, event.session)),
            Some(count) if count > whole.max(1) => {
                problem("doubled", format!("row {} of {} stands {count} times", stored.row, event.session));
            }
            Some(_) => {}
        }
    }
    let mut prompts: BTreeSet<&str> = BTreeSet::new();
    let mut resumed = 0;
    for event in &ledger.events {
        match &event.what {
            What::Request(_) => {
                prompts.insert(&event.session);
            }
            What::Resumed(found) => {
                resumed += 1;
                // A session that has sent a request had its prompt stored.
                if prompts.contains(&*event.session) && !found.prompt_kept {
                    problem("prompt", format!("session {} was given a new prompt", event.session));
                }
            }
            _ => {}
        }
    }
    let kept = memory_at_end(whole);
    let now = memory_at_end(&ledger);
    let mut entries = 0;
    for event in before {
        if let What::MemoryWrite(write) = &event.what
            && write.ok
            && &*write.action == "add"
        {
            let entry = (write.target.to_string(), write.content.trim().to_owned());
            entries += 1;
            if kept.contains(&entry) && !now.contains(&entry) {
                problem("lost", format!("the entry `{}` is not in memory", entry.1));
            }
        }
    }
    (run.rows, run.entries, run.resumed) = (accepted, entries, resumed);
    run
}

/// How often each row stands in the store at the end, hidden copies left out unless nothing else is there.
fn rows_held(ledger: &Ledger) -> BTreeMap<(String, Chain), u64> {
    let mut held = BTreeMap::new();
    for event in &ledger.events {
        let What::StoreState(state) = &event.what else { continue };
        for digest in state.live.iter().chain(&state.kept) {
            *held.entry((event.session.to_string(), *digest)).or_insert(0) += 1;
        }
        for digest in &state.hidden {
            held.entry((event.session.to_string(), *digest)).or_insert(0);
        }
    }
    held
}

fn memory_at_end(ledger: &Ledger) -> BTreeSet<(String, String)> {
    let mut last: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in &ledger.events {
        if let What::MemoryState(state) = &event.what {
            let entries = state.entries.iter().map(|entry| entry.trim().to_owned()).collect();
            last.insert(state.target.to_string(), entries);
        }
    }
    last.into_iter()
        .flat_map(|(target, entries)| entries.into_iter().map(move |entry| (target.clone(), entry)))
        .collect()
}

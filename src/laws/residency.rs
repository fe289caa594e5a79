//! L2, bounded residency.
//!
//! What rides in every prompt has a hard cap; what has none is loaded on demand and has something that reclaims it.

use std::collections::BTreeMap;

use crate::ledger::{Event, Name, What};
use crate::policy::Policy;
use crate::wire::Level;

use super::glance::glance;
use super::{Bench, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "L2.memory-cap",
        says: "a memory store stays within its cap",
        mend: "refuse the write, show the entries, let the model replace one",
    },
    Check {
        id: "L2.catalogue-lines-short",
        says: "a line of the skills catalogue shows a short description; bodies are loaded on demand",
        mend: "cut descriptions where the catalogue is built",
    },
    Check {
        id: "L2.results-bounded",
        says: "no tool result rides in the history beyond its cap; longer ones are put aside",
        mend: "put the full text in a file and keep a reference",
    },
    Check {
        id: "L2.compaction-shrinks",
        says: "a committed compaction makes the history smaller",
        mend: "refuse a compaction that grows the history, and count it against the trigger",
    },
    Check {
        id: "L2.head-decays",
        says: "from the second compaction on, no head of the first hour is carried along",
        mend: "protect the first rows only until they are in a summary",
    },
    Check {
        id: "L2.stale-retired",
        says: "a curator pass leaves no managed skill behind that is past its time",
        mend: "archive by age of last use, reversibly",
    },
];

/// Characters of frame around one memory block: two rules, a title, line ends.
const FRAME_CHARS: u64 = 200;

/// What this law remembers between events.
#[derive(Debug)]
pub(super) struct State {
    description_max: u64,
    result_max: u64,
    compactions: BTreeMap<Name, u64>,
    /// The disk refused a write since the last pass of the curator.
    disk_full: bool,
}

impl Default for State {
    fn default() -> Self {
        let defaults = Policy::default();
        Self {
            description_max: defaults.prompt.description_chars_max,
            result_max: defaults.turn.result_chars_max,
            compactions: BTreeMap::new(),
            disk_full: false,
        }
    }
}

impl State {
    pub(super) fn take(&mut self, event: &Event, bench: &mut Bench) {
        let (description_max, result_max) = (self.description_max, self.result_max);
        match &event.what {
            What::MemoryState(state) => {
                let wrong = (state.chars > state.chars_max).then(|| {
                    (state.target.to_string(), format!("{} of {} characters", state.chars, state.chars_max))
                });
                bench.subject("L2.memory-cap", event, wrong);
            }
            What::Catalogue(catalogue) if catalogue.lines > 0 => {
                let longest = catalogue.description_chars_max;
                let wrong = (longest > description_max).then(|| {
                    (
                        "catalogue".to_owned(),
                        format!("a description of {longest} characters, {description_max} allowed"),
                    )
                });
                bench.subject("L2.catalogue-lines-short", event, wrong);
            }
            What::Request(request) => {
                for segment in request.added.iter().filter(|segment| segment.level == Level::Messages) {
                    let long = segment.text.len() as u64 > result_max
                        && glance(&segment.text).is_some_and(|seen| !seen.answers.is_empty())
                        && !segment.text.contains("\"name\":\"read_file\"")
                        && segment.text.chars().count() as u64 > result_max + FRAME_CHARS;
                    let wrong = long.then(|| {
                        let chars = segment.text.chars().count();
                        (
                            format!("request {}", request.id),
                            format!("{chars} characters, {result_max} allowed"),
                        )
                    });
                    bench.subject("L2.results-bounded", event, wrong);
                }
            }
            What::Compaction(compaction) if compaction.committed => {
                let wrong = (compaction.size_after >= compaction.size_before).then(|| {
                    let (before, after) = (compaction.size_before, compaction.size_after);
                    ("history".to_owned(), format!("{before} before, {after} after"))
                });
                bench.subject("L2.compaction-shrinks", event, wrong);
                if &*compaction.mode == "micro" || &*compaction.mode == "prune" {
                    return;
                }
                let times = self.compactions.entry(event.session.clone()).or_insert(0u64);
                *times += 1;
                if *times > 1 {
                    let rows = compaction.head_rows;
                    let wrong = (rows > 0)
                        .then(|| ("head".to_owned(), format!("{rows} rows of head in compaction {times}")));
                    bench.subject("L2.head-decays", event, wrong);
                }
            }
            What::Fault(fault) if &*fault.kind == "disk_full" => self.disk_full = true,
            What::CuratorRan(ran) => {
                // What a full disk refuses to move, the next pass moves.
                let full = std::mem::take(&mut self.disk_full);
                let left: Vec<&str> = ran
                    .overdue
                    .iter()
                    .filter(|name| !(full && ran.refused.contains(name)))
                    .map(|name| &**name)
                    .collect();
                let wrong = (!left.is_empty())
                    .then(|| ("library".to_owned(), format!("still there: {}", left.join(", "))));
                bench.subject("L2.stale-retired", event, wrong);
            }
            _ => {}
        }
    }
}

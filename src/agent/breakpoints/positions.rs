//! Where the markers of a growing conversation go, without looking at the whole of it.
//!
//! Markers depend on the tools, the system prompt and the last few messages alone. So the plan is made over a tail of
//! the conversation, which is lengthened until it holds every message that can carry a marker. Called for each
//! request of the runtime.

use serde_json::{Value, json};

use crate::agent::breakpoints::plan::{Mark, plan_for};
use crate::agent::breakpoints::{Route, Scaffolds, Tier, ttl};
use crate::agent::transcript::{PREFILL, Transcript};
use crate::cache::Ttl;
use crate::policy::Breakpoints;
use crate::wire::{Level, Row};

/// Rows of the first tail; four marked messages and what lies between them.
const TAIL_ROWS: usize = 12;

/// Positions in the whole prompt that carry markers, in order, each with its lifetime.
pub fn positions(
    transcript: &Transcript,
    system: &str,
    static_prefix: Option<&str>,
    route: &Route,
    knobs: &Breakpoints,
) -> Vec<(usize, Ttl)> {
    let tier = ttl::resolve(&Value::from(knobs.ttl.as_str()), "cli", &route.provider, &route.model);
    let tools = transcript.prefix().iter().filter(|segment| segment.level == Level::Tools).count();
    let rows = transcript.rows();
    let mut length = TAIL_ROWS;
    loop {
        let mut start = rows.len().saturating_sub(length);
        // A tail that begins inside a tool round would hide which call a result belongs to.
        while start > 0 && rows[start].is_tool() {
            start -= 1;
        }
        let sent: Vec<usize> = (start..rows.len()).filter(|&row| !rows[row].flag(PREFILL)).collect();
        let mut messages = vec![json!({ "role": "system", "content": system })];
        messages.extend(sent.iter().map(|&row| outline(&rows[row])));
        let table = vec![json!({ "name": "t" }); usize::from(tools > 0)];
        let mut scaffolds = Scaffolds::new(knobs);
        let marks = plan_for(&messages, &table, route, tier, static_prefix, &mut scaffolds, knobs).marks();
        let on_rows =
            marks.iter().filter(|mark| matches!(mark, Mark::Message { message, .. } if *message > 0));
        let on_rows = on_rows.count();
        if start > 0 && on_rows > 0 && on_rows < 2 {
            length *= 2;
            continue;
        }
        let placed = marks.iter().filter_map(|mark| place(*mark, transcript, tools, &sent));
        let mut found: Vec<(usize, Ttl)> = placed.collect();
        found.sort_unstable();
        found.dedup_by_key(|(position, _)| *position);
        return found;
    }
}

fn place(mark: Mark, transcript: &Transcript, tools: usize, sent: &[usize]) -> Option<(usize, Ttl)> {
    let lifetime = |tier: Tier| if tier == Tier::OneHour { Ttl::Hour1 } else { Ttl::Minutes5 };
    match mark {
        Mark::Tool { tier, .. } => Some((tools.checked_sub(1)?, lifetime(tier))),
        Mark::Message { message: 0, part, tier } => {
            let last = transcript.prefix().len().checked_sub(1)?;
            // The first of two parts is the static prefix, which has a segment of its own.
            let first_part = part == Some(0) && transcript.prefix().len() - tools > 1;
            Some((if first_part { tools } else { last }, lifetime(tier)))
        }
        Mark::Message { message, tier, .. } => {
            Some((transcript.segment_of_row(sent[message - 1])?, lifetime(tier)))
        }
    }
}

/// What the plan looks at in a message; its words do not matter.
fn outline(row: &Row) -> Value {
    let content = if row.content.is_empty() { "" } else { "x" };
    let mut message = json!({ "role": row.role.word(), "content": content });
    if row.has_calls() {
        message["tool_calls"] = json!([{}]);
    }
    message
}

//! Where the markers of a growing conversation go, without looking at the whole of it.
//!
//! Markers depend on the tools, the system prompt and the last few messages alone. So the plan is made over a tail of
//! the conversation, which is lengthened until it holds every message that can carry a marker. Called for each
//! request of the runtime.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::breakpoints::plan::{Mark, plan_for};
use crate::agent::breakpoints::{Route, Scaffolds, Tier, ttl};
use crate::agent::transcript::{PREFILL, Transcript};
use crate::cache::Ttl;
use crate::policy::Breakpoints;
use crate::wire::{Level, Role, Row};

/// Rows of the first tail; four marked messages and what lies between them.
const TAIL_ROWS: usize = 12;

/// Plans that are kept for one route; conversations have few shapes, but a long life may meet many.
const PLANS_MAX: usize = 1_024;

/// Places the markers of requests under one policy.
///
/// Markers do not depend on words, only on who speaks in the tail, so that a plan serves every request of its shape.
#[derive(Debug, Clone, Default)]
pub struct Placer {
    routes: Vec<(Route, BTreeMap<Shape, Vec<Mark>>)>,
}

/// All that a plan depends on besides route and policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    system: System,
    tools: bool,
    tail: Vec<Outline>,
}

impl Placer {
    /// Positions in the whole prompt that carry markers, in order, each with its lifetime.
    pub fn positions(
        &mut self,
        transcript: &Transcript,
        system: &str,
        static_prefix: Option<&str>,
        route: &Route,
        knobs: &Breakpoints,
    ) -> Vec<(usize, Ttl)> {
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
            let tail = sent.iter().map(|&row| Outline::of(&rows[row])).collect();
            let shape = Shape { system: System::of(system, static_prefix), tools: tools > 0, tail };
            let marks = self.plan(shape, route, knobs);
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

    fn plan(&mut self, shape: Shape, route: &Route, knobs: &Breakpoints) -> &[Mark] {
        let known = self.routes.iter().position(|(known, _)| known == route);
        let at = known.unwrap_or_else(|| {
            self.routes.push((route.clone(), BTreeMap::new()));
            self.routes.len() - 1
        });
        let plans = &mut self.routes[at].1;
        if plans.len() == PLANS_MAX {
            plans.clear();
        }
        plans.entry(shape).or_insert_with_key(|shape| shape.plan(route, knobs))
    }
}

impl Shape {
    fn plan(&self, route: &Route, knobs: &Breakpoints) -> Vec<Mark> {
        let source = if route.source.is_empty() { "cli" } else { &route.source };
        let tier = ttl::resolve(&Value::from(knobs.ttl.as_str()), source, &route.provider, &route.model);
        let (system, static_prefix) = self.system.texts();
        let mut messages = vec![json!({ "role": "system", "content": system })];
        messages.extend(self.tail.iter().map(Outline::message));
        let table = vec![json!({ "name": "t" }); usize::from(self.tools)];
        let mut scaffolds = Scaffolds::new(knobs);
        plan_for(messages, table, route, tier, static_prefix, &mut scaffolds, knobs).marks()
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

/// What the plan looks at in the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum System {
    /// No text.
    Empty,
    /// The static prefix and nothing else worth a part.
    Static,
    /// The static prefix, and text behind it.
    StaticAndRest,
    /// Text that does not begin with a static prefix.
    Text,
}

impl System {
    fn of(system: &str, static_prefix: Option<&str>) -> Self {
        let prefix = static_prefix.filter(|prefix| !prefix.is_empty());
        match prefix.and_then(|prefix| system.strip_prefix(prefix)) {
            Some(rest) if rest.trim().is_empty() => Self::Static,
            Some(_) => Self::StaticAndRest,
            None if system.is_empty() => Self::Empty,
            None => Self::Text,
        }
    }

    /// The shortest system prompt of the kind, with its static prefix.
    fn texts(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Empty => ("", None),
            Self::Static => ("s", Some("s")),
            Self::StaticAndRest => ("sx", Some("s")),
            Self::Text => ("x", None),
        }
    }
}

/// What the plan looks at in a message; its words do not matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Outline {
    role: Role,
    empty: bool,
    calls: bool,
}

impl Outline {
    fn of(row: &Row) -> Self {
        Self { role: row.role.clone(), empty: row.content.is_empty(), calls: row.has_calls() }
    }

    fn message(&self) -> Value {
        let content = if self.empty { "" } else { "x" };
        let mut message = json!({ "role": self.role.word(), "content": content });
        if self.calls {
            message["tool_calls"] = json!([{}]);
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::MarkerLayout;
    use crate::wire::{Segment, ToolCall};

    #[test]
    fn a_plan_that_is_used_again_is_the_plan_that_would_be_made() {
        let route = Route {
            provider: "anthropic".to_owned(),
            api_mode: "anthropic_messages".to_owned(),
            model: "claude-sonnet-4-6".to_owned(),
            ..Route::default()
        };
        for layout in [MarkerLayout::Auto, MarkerLayout::SystemAndThree, MarkerLayout::DirectNative] {
            let knobs = Breakpoints { layout, ..Breakpoints::default() };
            let mut kept = Placer::default();
            let mut transcript = Transcript::default();
            transcript.set_prefix(&[Segment::new(Level::Tools, "{}")], &["stable", "rest"], |text| {
                text.len() as u64
            });
            for step in 0..60 {
                let row = match step % 7 {
                    0 => Row::user("Go on."),
                    1 | 3 => {
                        Row::calls("", vec![ToolCall::new("a", "t", "{}"), ToolCall::new("b", "t", "{}")])
                    }
                    2 | 4 => Row::result("a", "t", "done"),
                    5 => Row::assistant("").with(PREFILL, step % 2 == 0),
                    _ => Row::assistant("Done."),
                };
                transcript.push(row, |text| text.len() as u64);
                let ask = |placer: &mut Placer| {
                    placer.positions(&transcript, "stablerest", Some("stable"), &route, &knobs)
                };
                assert_eq!(ask(&mut kept), ask(&mut Placer::default()), "{layout:?} {step}");
            }
        }
    }
}

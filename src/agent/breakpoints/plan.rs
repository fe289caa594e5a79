//! Where the markers of one request go.
//!
//! Works on copies of messages and tools as they go over the wire. All markers of a request share one tier, and there
//! are never more than the policy allows.

use serde_json::{Value, json};

use crate::agent::breakpoints::policy::{self, Caching, Route};
use crate::agent::breakpoints::scaffold::Scaffolds;
use crate::agent::breakpoints::strip::{self, MARKER};
use crate::agent::breakpoints::ttl::Tier;
use crate::policy::{Breakpoints, MarkerLayout};

/// A layout that was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No markers.
    None,
    /// The whole system prompt.
    SystemOnly,
    /// The whole system prompt and the last messages.
    SystemAndThree,
    /// The static prefix if there is one, the system prompt, the last messages.
    StaticPrefix,
    /// The static prefix, the last tool, the ends of the last transactions.
    DirectNative,
}

impl Layout {
    /// The layout for a route that caches as `caching` says; `tools` tells whether there is any tool.
    pub fn of(route: &Route, caching: Caching, tools: bool, knobs: &Breakpoints) -> Self {
        match knobs.layout {
            MarkerLayout::None => Self::None,
            _ if !caching.cache => Self::None,
            MarkerLayout::SystemOnly => Self::SystemOnly,
            MarkerLayout::StaticPrefix => Self::StaticPrefix,
            MarkerLayout::DirectNative => Self::DirectNative,
            MarkerLayout::Auto if knobs.tool_markers && tools && policy::takes_tool_markers(route) => {
                Self::DirectNative
            }
            MarkerLayout::Auto if knobs.static_prefix => Self::StaticPrefix,
            MarkerLayout::Auto | MarkerLayout::SystemAndThree => Self::SystemAndThree,
        }
    }
}

/// How a request is to be marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanInputs<'a> {
    /// The layout.
    pub layout: Layout,
    /// The tier of all markers.
    pub tier: Tier,
    /// Anthropic's own message format.
    pub native: bool,
    /// The part of the system prompt that stays the same between sessions.
    pub static_prefix: Option<&'a str>,
    /// Parts of tool messages may carry markers.
    pub tool_part_markers: bool,
}

/// Place of one marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// On a message; `part` is none at its top level.
    Message {
        /// Index of the message.
        message: usize,
        /// Index of the part.
        part: Option<usize>,
        /// Its tier.
        tier: Tier,
    },
    /// On a tool.
    Tool {
        /// Index of the tool.
        tool: usize,
        /// Its tier.
        tier: Tier,
    },
}

/// A marked copy of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Planned {
    /// The messages.
    pub messages: Vec<Value>,
    /// The tools.
    pub tools: Vec<Value>,
}

impl Planned {
    /// Every marker, messages first.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (message, value) in self.messages.iter().enumerate() {
            if let Some(marker) = value.get(MARKER) {
                marks.push(Mark::Message { message, part: None, tier: Tier::of_marker(marker) });
            }
            let parts = value.get("content").and_then(Value::as_array);
            for (part, value) in parts.into_iter().flatten().enumerate() {
                if let Some(marker) = value.get(MARKER) {
                    marks.push(Mark::Message { message, part: Some(part), tier: Tier::of_marker(marker) });
                }
            }
        }
        for (tool, value) in self.tools.iter().enumerate() {
            if let Some(marker) = value.get(MARKER) {
                marks.push(Mark::Tool { tool, tier: Tier::of_marker(marker) });
            }
        }
        marks
    }
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

fn is_empty(content: Option<&Value>) -> bool {
    match content {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        // An empty list is not empty here: it has no place for a marker and gets none.
        Some(_) => false,
    }
}

fn has_calls(message: &Value) -> bool {
    message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

struct Marker<'a> {
    inputs: PlanInputs<'a>,
    scaffolds: &'a mut Scaffolds,
    uses_scaffolds: bool,
}

impl Marker<'_> {
    fn part(&self, text: &str, marked: bool) -> Value {
        let mut part = json!({"type": "text", "text": text});
        if marked {
            part[MARKER] = self.inputs.tier.marker();
        }
        part
    }

    /// Whether a message can carry a marker (Hermes agent/prompt_caching.py:87).
    fn can_carry(&self, message: &Value) -> bool {
        if self.inputs.native {
            return true;
        }
        if role(message) == "tool" && !self.inputs.tool_part_markers {
            return false;
        }
        match message.get("content") {
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(parts)) => parts.last().is_some_and(Value::is_object),
            _ => false,
        }
    }

    /// Marks one message, as far as it can be (Hermes agent/prompt_caching.py:42).
    fn mark(&mut self, message: &mut Value) {
        let (native, marker) = (self.inputs.native, self.inputs.tier.marker());
        let kind = role(message).to_owned();
        if !native && kind == "tool" && !self.inputs.tool_part_markers {
            return;
        }
        if is_empty(message.get("content")) || (native && kind == "tool") {
            let takes = native || !matches!(kind.as_str(), "tool" | "assistant");
            if let Some(object) = message.as_object_mut().filter(|_| takes) {
                object.insert(MARKER.to_owned(), marker);
            }
            return;
        }
        match message.get_mut("content") {
            Some(Value::String(text)) => {
                let text = std::mem::take(text);
                let split =
                    if kind == "user" && self.uses_scaffolds { self.scaffolds.find(&text) } else { None };
                message["content"] = match split {
                    Some(at) => json!([self.part(&text[..at], true), self.part(&text[at..], false)]),
                    None => json!([self.part(&text, true)]),
                };
            }
            Some(Value::Array(parts)) => {
                if let Some(last) = parts.last_mut().and_then(Value::as_object_mut) {
                    last.insert(MARKER.to_owned(), marker);
                }
            }
            _ => {}
        }
    }

    /// Marks the system message; answers how many markers were used.
    fn mark_system(&mut self, message: &mut Value, direct: bool) -> usize {
        let prefix = self.inputs.static_prefix.filter(|prefix| !prefix.is_empty());
        let text = message.get("content").and_then(Value::as_str);
        if let (Some(prefix), Some(text)) = (prefix, text)
            && let Some(rest) = text.strip_prefix(prefix)
        {
            if rest.trim().is_empty() {
                message["content"] = json!([self.part(text, true)]);
                return 1;
            }
            message["content"] = json!([self.part(prefix, true), self.part(rest, !direct)]);
            return if direct { 1 } else { 2 };
        }
        if direct {
            return 0;
        }
        self.mark(message);
        1
    }
}

/// Ends of completed transactions: last results of tool runs, and messages that are no open turn.
fn ends(messages: &[Value]) -> Vec<usize> {
    let mut found = Vec::new();
    let n = messages.len();
    let mut at = 0;
    while at < n {
        let message = &messages[at];
        let run_end = |mut index: usize| {
            while index < n && role(&messages[index]) == "tool" {
                index += 1;
            }
            index
        };
        match role(message) {
            "system" => at += 1,
            "assistant" if has_calls(message) => {
                let end = run_end(at + 1);
                if end > at + 1 {
                    found.push(end - 1);
                }
                at = end;
            }
            "tool" => at = run_end(at),
            kind => {
                let open = (kind == "user" && at + 1 < n)
                    || (kind == "assistant" && is_empty(message.get("content")));
                if !open {
                    found.push(at);
                }
                at += 1;
            }
        }
    }
    found
}

/// Marks a copy of a request (Hermes agent/prompt_caching.py:298).
pub fn plan(
    messages: Vec<Value>,
    tools: Vec<Value>,
    inputs: PlanInputs<'_>,
    scaffolds: &mut Scaffolds,
    knobs: &Breakpoints,
) -> Planned {
    let mut planned = Planned { messages, tools };
    if knobs.undo_decoration {
        strip::strip(&mut planned.messages, scaffolds);
        planned.tools.iter_mut().for_each(strip::unmark);
    }
    if inputs.layout == Layout::None {
        return planned;
    }
    let limit = usize::try_from(knobs.markers_max).unwrap_or(usize::MAX);
    let direct = inputs.layout == Layout::DirectNative;
    let inputs = match inputs.layout {
        Layout::SystemOnly | Layout::SystemAndThree => PlanInputs { static_prefix: None, ..inputs },
        _ => inputs,
    };
    let mut marker = Marker { inputs, scaffolds, uses_scaffolds: knobs.scaffolds };
    let mut used = 0;
    if limit > 0
        && let Some(system) = planned.messages.first_mut().filter(|message| role(message) == "system")
    {
        used = marker.mark_system(system, direct);
    }
    if direct {
        if used < limit
            && let Some(tool) = planned.tools.last_mut().and_then(Value::as_object_mut)
        {
            tool.insert(MARKER.to_owned(), inputs.tier.marker());
            used += 1;
        }
        let found = ends(&planned.messages);
        for at in found.into_iter().rev().take(2.min(limit.saturating_sub(used))) {
            marker.mark(&mut planned.messages[at]);
        }
    } else if inputs.layout != Layout::SystemOnly {
        let carriers: Vec<usize> = (0..planned.messages.len())
            .rev()
            .filter(|at| {
                let message = &planned.messages[*at];
                role(message) != "system" && marker.can_carry(message)
            })
            .take(limit.saturating_sub(used))
            .collect();
        for at in carriers {
            marker.mark(&mut planned.messages[at]);
        }
    }
    if knobs.scaffolds {
        split_scaffolds(&mut planned.messages, &mut marker);
    }
    planned
}

/// Sends every user message that begins with a registered text as two parts, marked or not.
fn split_scaffolds(messages: &mut [Value], marker: &mut Marker<'_>) {
    if marker.scaffolds.is_empty() {
        return;
    }
    for message in messages.iter_mut().filter(|message| role(message) == "user") {
        let Some(text) = message.get("content").and_then(Value::as_str) else { continue };
        if let Some(at) = marker.scaffolds.find(text) {
            message["content"] = json!([marker.part(&text[..at], false), marker.part(&text[at..], false)]);
        }
    }
}

/// Plans for a route: decides whether, how and where, then marks.
///
/// `tier` is none when the operator switched caching off.
pub fn plan_for(
    messages: Vec<Value>,
    tools: Vec<Value>,
    route: &Route,
    tier: Option<Tier>,
    static_prefix: Option<&str>,
    scaffolds: &mut Scaffolds,
    knobs: &Breakpoints,
) -> Planned {
    let caching = if tier.is_some() { policy::caching(route, knobs) } else { Caching::default() };
    let inputs = PlanInputs {
        layout: Layout::of(route, caching, !tools.is_empty(), knobs),
        tier: tier.unwrap_or_default(),
        native: caching.native,
        static_prefix,
        tool_part_markers: policy::takes_tool_part_markers(route),
    };
    plan(messages, tools, inputs, scaffolds, knobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_that_the_route_cannot_take_marks_nothing() {
        let knobs = Breakpoints { layout: MarkerLayout::SystemAndThree, ..Breakpoints::default() };
        let route = Route::default();
        let mut scaffolds = Scaffolds::new(&knobs);
        let messages = vec![json!({"role": "user", "content": "x"})];
        let planned =
            plan_for(messages, Vec::new(), &route, Some(Tier::FiveMinutes), None, &mut scaffolds, &knobs);
        assert!(planned.marks().is_empty());
    }

    #[test]
    fn four_markers_are_the_most() {
        let knobs = Breakpoints::default();
        let route = Route {
            provider: "anthropic".to_owned(),
            api_mode: "anthropic_messages".to_owned(),
            base_url: "https://api.anthropic.com".to_owned(),
            ..Route::default()
        };
        let mut messages = vec![json!({"role": "system", "content": "static and more"})];
        for _ in 0..10 {
            messages.push(json!({"role": "user", "content": "q"}));
            messages.push(json!({"role": "assistant", "content": "a"}));
        }
        let tools = vec![json!({"name": "t"})];
        for layout in [
            MarkerLayout::Auto,
            MarkerLayout::SystemOnly,
            MarkerLayout::SystemAndThree,
            MarkerLayout::StaticPrefix,
            MarkerLayout::DirectNative,
        ] {
            let knobs = Breakpoints { layout, ..knobs.clone() };
            let mut scaffolds = Scaffolds::new(&knobs);
            let planned = plan_for(
                messages.clone(),
                tools.clone(),
                &route,
                Some(Tier::OneHour),
                Some("static"),
                &mut scaffolds,
                &knobs,
            );
            let expected = if layout == MarkerLayout::SystemOnly { 1 } else { 4 };
            assert_eq!(planned.marks().len(), expected, "{layout:?}");
        }
    }
}

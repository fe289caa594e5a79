//! Adapter for the vectors of cache markers. Translates words; behaves in no way of its own.

use serde_json::{Map, Value, json};

use crate::agent::breakpoints::plan::{Layout, Mark, PlanInputs, Planned, plan};
use crate::agent::breakpoints::policy::{self, Route};
use crate::agent::breakpoints::strip::MARKER;
use crate::agent::breakpoints::{Scaffolds, Tier, anthropic, strip, ttl};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::{Breakpoints, preset};

type Answer = Result<Value, ReplayError>;

/// Answers one vector.
///
/// # Errors
/// An unknown function, or an input that lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Answer {
    match function {
        "plan" => Ok(plan_request(given)),
        "legacy_plan" => Ok(legacy_plan(given)),
        "registry" => Ok(registry(given)),
        "strip" => {
            let mut messages = list(given, "messages");
            strip::strip(&mut messages, &mut scaffolds(given));
            Ok(json!({"messages": messages}))
        }
        "policy" => policy_of(given),
        "effective_ttl" => Ok(
            json!({"ttl": ttl::effective(text(given, "ttl"), text(given, "provider"), text(given, "model"))}),
        ),
        "auto_ttl" => Ok(json!({"ttl": ttl::auto(text(given, "source")).word()})),
        "ttl_disables" => Ok(json!({"disabled": ttl::disables(given.get("value").unwrap_or(&Value::Null))})),
        "anthropic_wire" => Ok(anthropic_wire(given)),
        other => Err(ReplayError::UnknownFunction(format!("breakpoints.{other}"))),
    }
}

fn text<'a>(given: &'a Value, key: &str) -> &'a str {
    given.get(key).and_then(Value::as_str).unwrap_or("")
}

fn flag(given: &Value, key: &str, missing: bool) -> bool {
    given.get(key).and_then(Value::as_bool).unwrap_or(missing)
}

fn list(given: &Value, key: &str) -> Vec<Value> {
    given.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Texts may be written as `{s, n, tail}`: a text repeated, and something behind it.
fn long_text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let times = value.get("n").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    text(value, "s").repeat(times) + text(value, "tail")
}

fn scaffolds(given: &Value) -> Scaffolds {
    let mut scaffolds = Scaffolds::new(&Breakpoints::default());
    for text in list(given, "scaffolds") {
        scaffolds.register(&long_text(&text));
    }
    scaffolds
}

fn shown(planned: &Planned) -> Map<String, Value> {
    let marks: Vec<Value> = planned
        .marks()
        .iter()
        .map(|mark| match mark {
            Mark::Message { message, part, tier } => {
                json!({"message": message, "part": part, "ttl": tier.word()})
            }
            Mark::Tool { tool, tier } => json!({"tool": tool, "ttl": tier.word()}),
        })
        .collect();
    let mut parts = Map::new();
    for (index, message) in planned.messages.iter().enumerate() {
        if let Some(Value::Array(content)) = message.get("content") {
            let lengths: Vec<Option<usize>> = content
                .iter()
                .map(|part| part.get("text").and_then(Value::as_str).map(|text| text.chars().count()))
                .collect();
            parts.insert(index.to_string(), json!(lengths));
        }
    }
    let mut answer = Map::new();
    answer.insert("marks".to_owned(), Value::Array(marks));
    answer.insert("parts".to_owned(), Value::Object(parts));
    answer
}

fn inputs(given: &Value, native: bool) -> PlanInputs<'_> {
    let tools = !list(given, "tools").is_empty();
    let layout =
        if flag(given, "tool_cache", false) && tools { Layout::DirectNative } else { Layout::StaticPrefix };
    PlanInputs {
        layout,
        tier: Tier::of(text(given, "ttl")),
        native,
        static_prefix: given.get("static_prefix").and_then(Value::as_str),
        tool_part_markers: flag(given, "tool_part_markers", true),
    }
}

fn plan_request(given: &Value) -> Value {
    let knobs = Breakpoints::default();
    let mut scaffolds = scaffolds(given);
    let inputs = inputs(given, flag(given, "native", false));
    let (messages, tools) = (list(given, "messages"), list(given, "tools"));
    let mut planned = plan(messages.clone(), tools, inputs, &mut scaffolds, &knobs);
    for _ in 1..given.get("repeat").and_then(Value::as_u64).unwrap_or(1) {
        planned = plan(planned.messages, planned.tools, inputs, &mut scaffolds, &knobs);
    }
    let mut answer = shown(&planned);
    let mut undone = planned.messages;
    strip::strip(&mut undone, &mut scaffolds);
    answer.insert("strip_restores".to_owned(), json!(undone == messages));
    Value::Object(answer)
}

fn older() -> Breakpoints {
    let policy = preset::policy("hermes-0.19").and_then(Result::ok).unwrap_or_default();
    policy.breakpoints
}

fn legacy_plan(given: &Value) -> Value {
    let knobs = older();
    let inputs = PlanInputs { layout: Layout::SystemAndThree, ..inputs(given, flag(given, "native", false)) };
    let mut scaffolds = Scaffolds::new(&knobs);
    let mut planned = plan(list(given, "messages"), Vec::new(), inputs, &mut scaffolds, &knobs);
    for _ in 1..given.get("repeat").and_then(Value::as_u64).unwrap_or(1) {
        planned = plan(planned.messages, Vec::new(), inputs, &mut scaffolds, &knobs);
    }
    Value::Object(shown(&planned))
}

fn registry(given: &Value) -> Value {
    let mut scaffolds = Scaffolds::new(&Breakpoints::default());
    for text in list(given, "register") {
        scaffolds.register(&long_text(&text));
    }
    let size = scaffolds.len();
    let found: Vec<Option<usize>> = list(given, "find")
        .iter()
        .map(|value| {
            let text = long_text(value);
            scaffolds.find(&text).map(|bytes| text[..bytes].chars().count())
        })
        .collect();
    json!({"found_lengths": found, "size": size})
}

fn route(given: &Value) -> Route {
    Route {
        source: text(given, "source").to_owned(),
        provider: text(given, "provider").to_owned(),
        base_url: text(given, "base_url").to_owned(),
        api_mode: text(given, "api_mode").to_owned(),
        model: text(given, "model").to_owned(),
        disabled: flag(given, "disabled", false),
        declares: given.get("declares").and_then(Value::as_bool),
        aggregator: None,
    }
}

fn policy_of(given: &Value) -> Answer {
    let knobs = match text(given, "rev") {
        "older" => older(),
        "current" | "pinned" => Breakpoints::default(),
        _ => return Err(ReplayError::Missing("rev".to_owned())),
    };
    let route = route(given);
    let caching = policy::caching(&route, &knobs);
    Ok(json!({
        "cache": caching.cache,
        "native": caching.native,
        "tool_cache": policy::takes_tool_markers(&route),
        "tool_part_markers": policy::takes_tool_part_markers(&route),
    }))
}

fn anthropic_wire(given: &Value) -> Value {
    let knobs = Breakpoints::default();
    let mut scaffolds = Scaffolds::new(&knobs);
    let planned =
        plan(list(given, "messages"), list(given, "tools"), inputs(given, true), &mut scaffolds, &knobs);
    let request = anthropic::convert(&planned.messages);
    let blocks = request.system.as_ref().and_then(Value::as_array);
    let marked: Option<Vec<usize>> = blocks.map(|blocks| {
        let marked = blocks.iter().enumerate().filter(|(_, block)| block.get(MARKER).is_some());
        marked.map(|(index, _)| index).collect()
    });
    let roles: Vec<&Value> = request.messages.iter().map(|message| &message["role"]).collect();
    let marks: Vec<Value> = anthropic::marks(&request.messages)
        .into_iter()
        .map(|(message, block, kind)| json!([message, block, kind]))
        .collect();
    json!({
        "system": marked,
        "system_blocks": blocks.map(Vec::len),
        "roles": roles,
        "marks": marks,
    })
}

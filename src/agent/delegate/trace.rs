//! What a child did, as its parent is told: which tools, how much, whether they failed; never the texts themselves.
//!
//! Sources: Hermes tools/delegate_tool_child_run.py:520, tools/delegate_tool_results.py:31.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::wire::Row;

/// Arguments that say where a tool acted; Hermes tools/delegate_tool_results.py.
const TARGETS: [&str; 10] =
    ["path", "file_path", "cwd", "src", "dst", "url", "urls", "endpoint", "paths", "directory"];
/// Characters of one target.
const TARGET_CHARS: usize = 1_024;
/// Entries of a list of targets.
const TARGET_ENTRIES: usize = 16;
/// Words that a status says of a failure.
const FAILURES: [&str; 4] = ["error", "failed", "failure", "timeout"];
/// How the first line of a failure begins.
const OPENERS: [&str; 4] = ["error:", "failed:", "traceback ", "exception:"];

/// One call of a child.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The tool.
    pub tool: String,
    /// Characters of the arguments.
    pub args_chars: usize,
    /// Names of the arguments, sorted.
    pub argument_keys: Vec<String>,
    /// Where it acted, without secrets.
    pub targets: BTreeMap<String, Value>,
    /// Characters of the result and whether it is an error; `None` while unanswered.
    pub result: Option<(usize, bool)>,
}

impl Traced {
    /// As the parent sees it.
    pub fn to_json(&self) -> Value {
        let mut value = json!({ "tool": self.tool, "args_bytes": self.args_chars });
        if !self.argument_keys.is_empty() {
            value["argument_keys"] = json!(self.argument_keys);
        }
        if !self.targets.is_empty() {
            value["targets"] = json!(self.targets);
        }
        if let Some((chars, failed)) = self.result {
            value["result_bytes"] = json!(chars);
            value["status"] = json!(if failed { "error" } else { "ok" });
        }
        value
    }
}

/// True when a tool result says that it failed: by its fields, or by its first line.
pub fn is_error(content: &str) -> bool {
    if let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(content) {
        let says = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Array(list) => !list.is_empty(),
            Value::Object(table) => !table.is_empty(),
            Value::Bool(true) => true,
        };
        let status = fields.get("status").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        return fields.get("error").is_some_and(says) || FAILURES.contains(&status.trim());
    }
    let first = content.trim().lines().next().unwrap_or_default().trim().to_lowercase();
    OPENERS.iter().any(|opener| first.starts_with(opener))
}

/// The names of a call's arguments, sorted, and where they point, without credentials, queries and fragments.
pub fn argument_summary(arguments: &str) -> (Vec<String>, BTreeMap<String, Value>) {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(arguments) else {
        return (Vec::new(), BTreeMap::new());
    };
    let mut keys: Vec<String> = fields.keys().cloned().collect();
    keys.sort();
    let mut targets = BTreeMap::new();
    for (key, value) in &fields {
        let key = key.to_lowercase();
        if !TARGETS.contains(&key.as_str()) {
            continue;
        }
        let target = match value {
            Value::String(text) if !text.is_empty() => Some(json!(safe(text))),
            Value::Array(list) => {
                let entries: Vec<String> =
                    list.iter().filter_map(Value::as_str).take(TARGET_ENTRIES).map(safe).collect();
                (!entries.is_empty()).then(|| json!(entries))
            }
            _ => None,
        };
        if let Some(target) = target {
            targets.insert(key, target);
        }
    }
    (keys, targets)
}

/// A path or address without what may be secret.
fn safe(text: &str) -> String {
    let text = match text.split_once("://") {
        Some((scheme, rest)) => {
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => text.to_owned(),
    };
    text.chars().take(TARGET_CHARS).collect()
}

/// The calls of a conversation with their results, paired by id, without a usable id with the latest call.
pub fn trace(rows: &[Row]) -> Vec<Traced> {
    let mut traced: Vec<Traced> = Vec::new();
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        for call in row.call_list() {
            let (argument_keys, targets) = argument_summary(&call.arguments);
            by_id.insert(&call.id, traced.len());
            traced.push(Traced {
                tool: call.name.clone(),
                args_chars: call.arguments.chars().count(),
                argument_keys,
                targets,
                result: None,
            });
        }
        if row.is_tool() {
            let text = row.content.flat();
            let place = row.tool_call_id.as_deref().and_then(|id| by_id.get(id).copied());
            if let Some(call) = place.or(traced.len().checked_sub(1)).and_then(|at| traced.get_mut(at)) {
                call.result = Some((text.chars().count(), is_error(&text)));
            }
        }
    }
    traced
}

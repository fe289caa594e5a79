//! Bodies put together from the parts that a log holds apart; and ShareGPT data, which has histories only.

use serde_json::{Map, Value, json};

use crate::audit::prompt::Shape;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;

/// A body of these parts; `None` without messages.
pub(super) fn body(
    model: Option<&str>,
    system: Option<&Value>,
    tools: Option<&Value>,
    messages: &Value,
) -> Option<Vec<u8>> {
    if !messages.is_array() && !messages.is_string() {
        return None;
    }
    let mut object = Map::new();
    if let Some(model) = model {
        object.insert("model".to_owned(), model.into());
    }
    if let Some(tools) = tools.filter(|tools| tools.is_array()) {
        object.insert("tools".to_owned(), tools.clone());
    }
    if let Some(system) = system.filter(|system| !system.is_null()) {
        object.insert("system".to_owned(), system.clone());
    }
    let messages = match messages {
        Value::String(text) => json!([{"role": "user", "content": text}]),
        other => other.clone(),
    };
    object.insert("messages".to_owned(), messages);
    serde_json::to_vec(&Value::Object(object)).ok()
}

/// A text that holds JSON, as JSON.
pub(super) fn inner(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}

pub(super) struct ShareGpt;

impl Reader for ShareGpt {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            sink.skip(line, "not JSON");
            return;
        };
        let Some(said) = value.get("conversations").or_else(|| value.get("items")).and_then(Value::as_array)
        else {
            sink.skip(line, "no conversation");
            return;
        };
        let messages: Vec<Value> = said.iter().map(message).collect();
        let record = Record {
            line,
            shape: Some(Shape::Chat),
            said_only: true,
            conversation: Some(
                value.get("id").and_then(Value::as_str).map_or_else(|| format!("line {line}"), str::to_owned),
            ),
            own_body: body(None, None, None, &Value::Array(messages)),
            ..Record::default()
        };
        sink.put(&record, &[]);
    }
}

fn message(turn: &Value) -> Value {
    let word = |names: [&str; 2]| {
        names.iter().find_map(|name| turn.get(*name).and_then(Value::as_str)).unwrap_or_default()
    };
    let role = match word(["from", "role"]) {
        "gpt" | "assistant" | "model" | "function_call" => "assistant",
        "system" => "system",
        // Data of this kind has no ids, so results are simply told.
        _ => "user",
    };
    json!({"role": role, "content": word(["value", "content"])})
}

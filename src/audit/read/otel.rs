//! OpenTelemetry spans with `gen_ai` attributes: OTLP JSON, or one span an object with flat attributes.

use serde_json::{Map, Value};

use crate::audit::read::compose::{body, inner};
use crate::audit::read::wrapped::time_of;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;
use crate::audit::usage::Usage;

pub(super) struct Otel;

impl Reader for Otel {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            sink.skip(line, "not JSON");
            return;
        };
        spans(line, &value, sink, 0);
    }
}

/// Every span under resources and scopes.
fn spans(line: u64, value: &Value, sink: &mut Sink<'_>, depth: usize) {
    let lists = [
        "resourceSpans",
        "resource_spans",
        "scopeSpans",
        "scope_spans",
        "instrumentationLibrarySpans",
        "spans",
    ];
    let mut nested = false;
    for list in lists {
        if let Some(items) = value.get(list).and_then(Value::as_array)
            && depth < 4
        {
            nested = true;
            for item in items {
                spans(line, item, sink, depth + 1);
            }
        }
    }
    if !nested {
        match span(line, value) {
            Some(record) => sink.put(&record, &[]),
            None => sink.other(),
        }
    }
}

fn attributes(value: &Value) -> Map<String, Value> {
    match value.get("attributes") {
        Some(Value::Object(object)) => object.clone(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| {
                let key = item.get("key")?.as_str()?.to_owned();
                let value = item.get("value")?.as_object()?.values().next()?.clone();
                // OTLP writes whole numbers as texts.
                let number = value.as_str().and_then(|text| text.parse::<u64>().ok());
                Some((
                    key,
                    number.filter(|_| item.pointer("/value/intValue").is_some()).map_or(value, Value::from),
                ))
            })
            .collect(),
        _ => Map::new(),
    }
}

fn span(line: u64, value: &Value) -> Option<Record> {
    let found = attributes(value);
    let get = |names: &[&str]| names.iter().find_map(|name| found.get(*name));
    let count = |names: &[&str]| get(names).and_then(Value::as_u64).map(|count| count.min(1_000_000_000));
    let word = |names: &[&str]| get(names).and_then(Value::as_str).map(str::to_owned);
    let messages =
        get(&["gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.value"]).map(inner);
    let model = word(&["gen_ai.request.model", "gen_ai.response.model", "llm.model_name"]);
    let input = count(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
    if messages.is_none() && input.is_none() {
        return None;
    }
    let read =
        count(&["gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"]).unwrap_or(0);
    let written =
        count(&["gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"])
            .unwrap_or(0);
    let usage = input.map(|input| Usage {
        // The conventions count cached tokens inside the input.
        fresh: input.saturating_sub(read).saturating_sub(written),
        read,
        write_5m: written,
        write_1h: 0,
        write_30m: 0,
        output: count(&["gen_ai.usage.output_tokens"]).unwrap_or(0),
    });
    let system = get(&["gen_ai.system_instructions"]).map(inner);
    let tools = get(&["gen_ai.tool.definitions", "gen_ai.request.tools"]).map(inner);
    let messages = messages.unwrap_or_default();
    let messages = messages.get("messages").cloned().unwrap_or(messages);
    let time = |names: [&str; 3]| {
        names.iter().find_map(|name| match value.get(*name)? {
            Value::String(text) => time_of(text),
            Value::Number(number) => time_of(&number.to_string()),
            _ => None,
        })
    };
    Some(Record {
        line,
        at: time(["startTimeUnixNano", "start_time", "startTime"]),
        done_at: time(["endTimeUnixNano", "end_time", "endTime"]),
        conversation: word(&["gen_ai.conversation.id", "session.id"])
            .or_else(|| value.get("traceId").or_else(|| value.get("trace_id"))?.as_str().map(str::to_owned)),
        route: word(&["server.address", "gen_ai.provider.name", "gen_ai.system"]),
        own_body: body(model.as_deref(), system.as_ref(), tools.as_ref(), &messages),
        model,
        usage,
        failed: found.contains_key("error.type"),
        ..Record::default()
    })
}

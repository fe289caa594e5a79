//! Logs of a LiteLLM gateway and exports of Langfuse.

use serde_json::Value;

use crate::audit::read::compose::{body, inner};
use crate::audit::read::wrapped::time_of;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;
use crate::audit::usage::{self, Usage};
use crate::world::Millis;

pub(super) struct LiteLlm;

impl Reader for LiteLlm {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            sink.skip(line, "not JSON");
            return;
        };
        let model = text(&value, &["model"]);
        let sent = [
            "/proxy_server_request/body",
            "/proxy_server_request",
            "/additional_args/complete_input_dict",
            "/raw_request_body",
        ]
        .iter()
        .find_map(|path| value.pointer(path).map(inner))
        .map(|sent| sent.get("body").map_or(sent.clone(), inner))
        .filter(|sent| sent.get("messages").is_some() || sent.get("input").is_some());
        let own_body = if let Some(sent) = sent {
            serde_json::to_vec(&sent).ok()
        } else {
            let messages = value.get("messages").map(inner).unwrap_or_default();
            let tools = ["/model_parameters/tools", "/optional_params/tools", "/tools"]
                .iter()
                .find_map(|path| value.pointer(path));
            body(model.as_deref(), None, tools, &messages)
        };
        let response = value.get("response").map(inner).unwrap_or_default();
        let metadata = value.get("metadata").map(inner).unwrap_or_default();
        let usage = response
            .get("usage")
            .and_then(usage::read)
            .or_else(|| metadata.get("usage_object").and_then(usage::read))
            .or_else(|| usage::read(&value));
        let conversation = text(&value, &["session_id", "litellm_session_id", "trace_id"])
            .or_else(|| text(&metadata, &["session_id", "trace_id", "conversation_id"]));
        let status = text(&value, &["status"]);
        let record = Record {
            line,
            at: instant(&value, &["startTime", "start_time"]),
            done_at: instant(&value, &["endTime", "end_time"]),
            conversation,
            route: text(&value, &["api_base", "custom_llm_provider", "model_id"]),
            model,
            own_body,
            usage,
            failed: status.is_some_and(|status| status.contains("fail")),
            ..Record::default()
        };
        sink.put(&record, &[]);
    }
}

pub(super) struct Langfuse;

impl Reader for Langfuse {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            sink.skip(line, "not JSON");
            return;
        };
        if text(&value, &["type"]).is_some_and(|kind| !kind.eq_ignore_ascii_case("generation")) {
            sink.other();
            return;
        }
        let input = value.get("input").map(inner).unwrap_or_default();
        let model = text(&value, &["model", "providedModelName"]);
        let messages = input.get("messages").unwrap_or(&input);
        let tools = input.get("tools").or_else(|| value.pointer("/modelParameters/tools"));
        let record = Record {
            line,
            at: instant(&value, &["startTime", "start_time"]),
            done_at: instant(&value, &["endTime", "end_time"]),
            conversation: text(&value, &["sessionId", "session_id", "traceId", "trace_id"]),
            own_body: body(model.as_deref(), input.get("system"), tools, &inner(messages)),
            model,
            usage: value.get("usageDetails").or_else(|| value.get("usage_details")).and_then(details),
            failed: text(&value, &["level"]).as_deref() == Some("ERROR"),
            ..Record::default()
        };
        sink.put(&record, &[]);
    }
}

/// Langfuse counts cached tokens beside the input.
fn details(value: &Value) -> Option<Usage> {
    let count = |names: &[&str]| {
        names.iter().find_map(|name| value.get(*name).and_then(Value::as_u64)).unwrap_or(0).min(1_000_000_000)
    };
    let usage = Usage {
        fresh: count(&["input", "prompt_tokens"]),
        read: count(&["cache_read_input_tokens", "input_cached_tokens", "input_cache_read", "cached_tokens"]),
        write_5m: count(&["cache_creation_input_tokens", "input_cache_creation"]),
        write_1h: 0,
        write_30m: 0,
        output: count(&["output", "completion_tokens"]),
    };
    (usage.prompt() > 0).then_some(usage)
}

fn text(value: &Value, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| value.get(*name).and_then(Value::as_str))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn instant(value: &Value, names: &[&str]) -> Option<Millis> {
    names.iter().find_map(|name| match value.get(*name)? {
        Value::String(text) => time_of(text),
        Value::Number(number) => time_of(&number.to_string()),
        _ => None,
    })
}

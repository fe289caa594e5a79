//! Replies as Anthropic Messages.

use serde_json::{Value, json};

use crate::cache::usage::Parts;
use crate::model::Finish;
use crate::serve::spoken::{Spoken, event, pieces};

/// The whole answer at once.
pub(super) fn plain(spoken: &Spoken) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &spoken.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": signature(spoken)}));
    }
    if !spoken.text.is_empty() {
        content.push(json!({"type": "text", "text": spoken.text}));
    }
    for call in &spoken.calls {
        // A plain answer cannot hold arguments that are no JSON; a stream can.
        let input = serde_json::from_str::<Value>(&call.arguments)
            .unwrap_or_else(|_| json!({"__malformed__": call.arguments}));
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    json!({
        "id": id(spoken), "type": "message", "role": "assistant", "model": spoken.model, "content": content,
        "stop_reason": stop(spoken.finish), "stop_sequence": null, "usage": usage(&spoken.usage),
    })
}

/// The events of a stream, in order, with the number of the text's bytes that each brings.
pub(super) fn stream(spoken: &Spoken) -> Vec<(String, usize)> {
    let named = |value: Value| event(value["type"].as_str(), &value);
    let mut events = Vec::new();
    let mut start = usage(&spoken.usage);
    start["output_tokens"] = 1.into();
    events.push((
        named(json!({"type": "message_start", "message": {
            "id": id(spoken), "type": "message", "role": "assistant", "model": spoken.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": start,
        }})),
        0,
    ));
    events.push((named(json!({"type": "ping"})), 0));
    let mut index = 0;
    let mut block = |begin: Value, kind: &str, field: &str, text: &str, last: Option<Value>| {
        events
            .push((named(json!({"type": "content_block_start", "index": index, "content_block": begin})), 0));
        for piece in pieces(text) {
            let delta = json!({"type": "content_block_delta", "index": index,
                "delta": {"type": kind, field: piece}});
            events.push((named(delta), if kind == "thinking_delta" { 0 } else { piece.len() }));
        }
        if let Some(delta) = last {
            events.push((named(json!({"type": "content_block_delta", "index": index, "delta": delta})), 0));
        }
        events.push((named(json!({"type": "content_block_stop", "index": index})), 0));
        index += 1;
    };
    if let Some(reasoning) = &spoken.reasoning {
        let signed = json!({"type": "signature_delta", "signature": signature(spoken)});
        let begin = json!({"type": "thinking", "thinking": "", "signature": ""});
        block(begin, "thinking_delta", "thinking", reasoning, Some(signed));
    }
    if !spoken.text.is_empty() {
        block(json!({"type": "text", "text": ""}), "text_delta", "text", &spoken.text, None);
    }
    for call in &spoken.calls {
        let begin = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        block(begin, "input_json_delta", "partial_json", &call.arguments, None);
    }
    let delta = json!({"type": "message_delta",
        "delta": {"stop_reason": stop(spoken.finish), "stop_sequence": null}, "usage": usage(&spoken.usage)});
    events.push((named(delta), 0));
    events.push((named(json!({"type": "message_stop"})), 0));
    events
}

fn id(spoken: &Spoken) -> String {
    format!("msg_{}", spoken.place)
}

fn signature(spoken: &Spoken) -> String {
    format!("sig_{}", spoken.place)
}

fn stop(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
    }
}

fn usage(parts: &Parts) -> Value {
    json!({
        "input_tokens": parts.fresh,
        "cache_creation_input_tokens": parts.written(),
        "cache_read_input_tokens": parts.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": parts.write_5m + parts.write_30m,
            "ephemeral_1h_input_tokens": parts.write_1h,
        },
        "output_tokens": parts.output,
        "service_tier": "standard",
    })
}

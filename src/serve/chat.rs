//! Replies as OpenAI Chat Completions.

use serde_json::{Map, Value, json};

use crate::cache::usage::Parts;
use crate::serve::spoken::{Spoken, event, pieces};
use crate::wire::ToolCall;

/// The whole answer at once.
pub(super) fn plain(spoken: &Spoken, extra: &Map<String, Value>) -> Value {
    let mut message = json!({"role": "assistant", "content": content(spoken), "refusal": null});
    if !spoken.calls.is_empty() {
        message["tool_calls"] = spoken.calls.iter().map(call).collect();
    }
    if let Some(reasoning) = &spoken.reasoning {
        message["reasoning_content"] = reasoning.as_str().into();
    }
    json!({
        "id": id(spoken), "object": "chat.completion", "created": spoken.created, "model": spoken.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": spoken.finish.word()}],
        "usage": usage(&spoken.usage, extra),
    })
}

/// The events of a stream, in order, with the number of the text's bytes that each brings.
pub(super) fn stream(spoken: &Spoken, with_usage: bool, extra: &Map<String, Value>) -> Vec<(String, usize)> {
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id(spoken), "object": "chat.completion.chunk", "created": spoken.created,
            "model": spoken.model, "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        event(None, &chunk)
    };
    let delta = |delta: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), None)
    };
    let mut events = vec![(delta(json!({"role": "assistant", "content": ""})), 0)];
    for piece in pieces(spoken.reasoning.as_deref().unwrap_or_default()) {
        events.push((delta(json!({"reasoning_content": piece})), 0));
    }
    for piece in pieces(&spoken.text) {
        events.push((delta(json!({"content": piece})), piece.len()));
    }
    for (index, one) in spoken.calls.iter().enumerate() {
        let begin = json!({"index": index, "id": one.id, "type": "function",
            "function": {"name": one.name, "arguments": ""}});
        events.push((delta(json!({"tool_calls": [begin]})), 0));
        for piece in pieces(&one.arguments) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            events.push((delta(json!({"tool_calls": [more]})), piece.len()));
        }
    }
    let end = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": spoken.finish.word()}]);
    events.push((chunk(end, None), 0));
    if with_usage {
        events.push((chunk(json!([]), Some(usage(&spoken.usage, extra))), 0));
    }
    events.push(("data: [DONE]\n\n".to_owned(), 0));
    events
}

fn id(spoken: &Spoken) -> String {
    format!("chatcmpl-{}", spoken.place)
}

fn content(spoken: &Spoken) -> Value {
    if spoken.text.is_empty() && !spoken.calls.is_empty() { Value::Null } else { spoken.text.as_str().into() }
}

fn call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

fn usage(parts: &Parts, extra: &Map<String, Value>) -> Value {
    let prompt = parts.prompt();
    let mut usage = json!({
        "prompt_tokens": prompt, "completion_tokens": parts.output, "total_tokens": prompt + parts.output,
        "prompt_tokens_details": {"cached_tokens": parts.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    });
    if parts.written() > 0 {
        usage["prompt_tokens_details"]["cache_write_tokens"] = parts.written().into();
    }
    for (name, value) in extra {
        usage[name] = value.clone();
    }
    usage
}

//! Replies as OpenAI Responses.

use serde_json::{Value, json};

use crate::cache::usage::Parts;
use crate::model::Finish;
use crate::serve::spoken::{Spoken, event, pieces};
use crate::wire::ToolCall;

/// The whole answer at once.
pub(super) fn plain(spoken: &Spoken) -> Value {
    let items: Vec<Value> = items(spoken).into_iter().map(Item::done).collect();
    whole(spoken, &items, true)
}

/// The events of a stream, in order, with the number of the text's bytes that each brings.
pub(super) fn stream(spoken: &Spoken) -> Vec<(String, usize)> {
    let mut out = Events { events: Vec::new() };
    let begun = whole(spoken, &[], false);
    out.push(json!({"type": "response.created", "response": begun}), 0);
    out.push(json!({"type": "response.in_progress", "response": begun}), 0);
    let mut done = Vec::new();
    for (index, item) in items(spoken).into_iter().enumerate() {
        out.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": item.begun()}),
            0,
        );
        match &item {
            Item::Message { id, text } => message(&mut out, index, id, text),
            Item::Call { id, call } => {
                for piece in pieces(&call.arguments) {
                    let delta = json!({"type": "response.function_call_arguments.delta", "item_id": id,
                        "output_index": index, "delta": piece});
                    out.push(delta, piece.len());
                }
                let end = json!({"type": "response.function_call_arguments.done", "item_id": id,
                    "output_index": index, "name": call.name, "arguments": call.arguments});
                out.push(end, 0);
            }
            Item::Reasoning { id, text } => {
                let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
                let with = |kind: &str, name: &str, value: Value| {
                    let mut event = at.clone();
                    event["type"] = format!("response.reasoning_summary_{kind}").into();
                    event[name] = value;
                    event
                };
                out.push(with("part.added", "part", json!({"type": "summary_text", "text": ""})), 0);
                for piece in pieces(text) {
                    out.push(with("text.delta", "delta", piece.into()), 0);
                }
                out.push(with("text.done", "text", Value::from(*text)), 0);
                out.push(with("part.done", "part", json!({"type": "summary_text", "text": text})), 0);
            }
        }
        let whole = item.done();
        out.push(json!({"type": "response.output_item.done", "output_index": index, "item": whole}), 0);
        done.push(whole);
    }
    let kind = if spoken.finish == Finish::Length { "response.incomplete" } else { "response.completed" };
    out.push(json!({"type": kind, "response": whole(spoken, &done, true)}), 0);
    out.events
}

fn message(out: &mut Events, index: usize, id: &str, text: &str) {
    let at = json!({"item_id": id, "output_index": index, "content_index": 0});
    let with = |kind: &str, name: &str, value: Value| {
        let mut event = at.clone();
        event["type"] = format!("response.{kind}").into();
        event[name] = value;
        event
    };
    out.push(with("content_part.added", "part", part("")), 0);
    for piece in pieces(text) {
        let mut delta = with("output_text.delta", "delta", piece.into());
        delta["logprobs"] = json!([]);
        out.push(delta, piece.len());
    }
    let mut end = with("output_text.done", "text", text.into());
    end["logprobs"] = json!([]);
    out.push(end, 0);
    out.push(with("content_part.done", "part", part(text)), 0);
}

struct Events {
    events: Vec<(String, usize)>,
}

impl Events {
    fn push(&mut self, mut value: Value, brings: usize) {
        value["sequence_number"] = self.events.len().into();
        self.events.push((event(value["type"].as_str(), &value), brings));
    }
}

enum Item<'a> {
    Reasoning { id: String, text: &'a str },
    Message { id: String, text: &'a str },
    Call { id: String, call: &'a ToolCall },
}

impl Item<'_> {
    fn begun(&self) -> Value {
        match self {
            Self::Reasoning { id, .. } => json!({"id": id, "type": "reasoning", "summary": []}),
            Self::Message { id, .. } => json!({"id": id, "type": "message", "status": "in_progress",
                "role": "assistant", "content": []}),
            Self::Call { id, call } => json!({"id": id, "type": "function_call", "status": "in_progress",
                "call_id": call.id, "name": call.name, "arguments": ""}),
        }
    }

    fn done(self) -> Value {
        match self {
            Self::Reasoning { id, text } => json!({"id": id, "type": "reasoning",
                "summary": [{"type": "summary_text", "text": text}]}),
            Self::Message { id, text } => json!({"id": id, "type": "message", "status": "completed",
                "role": "assistant", "content": [part(text)]}),
            Self::Call { id, call } => json!({"id": id, "type": "function_call", "status": "completed",
                "call_id": call.id, "name": call.name, "arguments": call.arguments}),
        }
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn items(spoken: &Spoken) -> Vec<Item<'_>> {
    let place = &spoken.place;
    let mut items = Vec::new();
    if let Some(text) = &spoken.reasoning {
        items.push(Item::Reasoning { id: format!("rs_{place}"), text });
    }
    if !spoken.text.is_empty() || spoken.calls.is_empty() {
        items.push(Item::Message { id: format!("msg_{place}"), text: &spoken.text });
    }
    for (nth, call) in spoken.calls.iter().enumerate() {
        items.push(Item::Call { id: format!("fc_{place}-c{nth}"), call });
    }
    items
}

fn whole(spoken: &Spoken, output: &[Value], complete: bool) -> Value {
    let cut = spoken.finish == Finish::Length;
    let status = match (complete, cut) {
        (false, _) => "in_progress",
        (true, true) => "incomplete",
        (true, false) => "completed",
    };
    json!({
        "id": format!("resp_{}", spoken.place), "object": "response", "created_at": spoken.created,
        "status": status, "error": null,
        "incomplete_details": if complete && cut { json!({"reason": "max_output_tokens"}) } else { Value::Null },
        "instructions": null, "model": spoken.model, "output": output, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        "previous_response_id": null,
        "usage": if complete { usage(&spoken.usage) } else { Value::Null },
    })
}

fn usage(parts: &Parts) -> Value {
    let prompt = parts.prompt();
    let mut usage = json!({
        "input_tokens": prompt, "input_tokens_details": {"cached_tokens": parts.read},
        "output_tokens": parts.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + parts.output,
    });
    if parts.written() > 0 {
        usage["input_tokens_details"]["cache_write_tokens"] = parts.written().into();
    }
    usage
}

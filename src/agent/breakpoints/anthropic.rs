//! A marked request on Anthropic's own wire (Hermes agent/anthropic_message_convert.py:329).
//!
//! The system prompt leaves the list, results become blocks of user messages, and every marker ends up on a block
//! that can carry it. Never adds a marker.

use serde_json::{Map, Value, json};

use crate::agent::breakpoints::strip::MARKER;

/// The converted request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnthropicRequest {
    /// The system prompt: absent, a text, or blocks if any part is marked.
    pub system: Option<Value>,
    /// The messages.
    pub messages: Vec<Value>,
}

const EMPTY_USER: &str = "(empty message)";
const EMPTY_ASSISTANT: &str = "(empty)";
const EMPTY_RESULT: &str = "(no output)";

fn text_of(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text").and_then(Value::as_str))
}

fn is_text(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str).unwrap_or("text") == "text"
}

fn is_cacheable(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("");
    matches!(kind, "text" | "image" | "document" | "tool_use" | "tool_result")
}

fn image(part: &Value) -> Option<Value> {
    let url = part.get("image_url")?;
    let url = url.as_str().or_else(|| url.get("url").and_then(Value::as_str))?;
    let source = match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media, data)) => json!({"type": "base64", "media_type": media, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    Some(json!({"type": "image", "source": source}))
}

/// One block of a part, its marker kept.
fn block(part: &Value) -> Option<Value> {
    let mut block = match part {
        Value::String(text) => json!({"type": "text", "text": text}),
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("image_url" | "input_image") => image(part)?,
            Some("text" | "input_text") | None => json!({"type": "text", "text": text_of(part)?}),
            Some(_) => part.clone(),
        },
        _ => return None,
    };
    if let Some(marker) = part.get(MARKER) {
        block[MARKER] = marker.clone();
    }
    Some(block)
}

/// The blocks of a content, without blank texts; their markers move to the last block that can carry one.
fn blocks(content: Option<&Value>) -> Vec<Value> {
    let mut lost = None;
    let all: Vec<Value> = match content {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(parts)) => parts.iter().filter_map(block).collect(),
        _ => Vec::new(),
    };
    let mut kept = Vec::with_capacity(all.len());
    for block in all {
        if is_text(&block) && text_of(&block).is_none_or(|text| text.trim().is_empty()) {
            if let Some(marker) = block.get(MARKER) {
                lost = Some(marker.clone());
            }
        } else {
            kept.push(block);
        }
    }
    if let Some(marker) = lost {
        put_marker(&mut kept, marker);
    }
    kept
}

/// Marks the last block that can carry a marker; a marker that is there stays.
fn put_marker(blocks: &mut [Value], marker: Value) {
    let last = blocks.iter_mut().rev().find(|block| is_cacheable(block));
    if let Some(object) = last.and_then(Value::as_object_mut) {
        object.entry(MARKER).or_insert(marker);
    }
}

fn result_content(content: Option<&Value>) -> (Value, Option<Value>) {
    match content {
        Some(Value::String(text)) if !text.is_empty() => (Value::from(text.as_str()), None),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            let mut inner: Vec<Value> = parts.iter().filter_map(block).collect();
            let mut marker = None;
            for block in &mut inner {
                if let Some(found) = block.as_object_mut().and_then(|block| block.shift_remove(MARKER)) {
                    marker = Some(found);
                }
            }
            (Value::Array(inner), marker)
        }
        Some(other) if !other.is_null() && !other.is_string() && !other.is_array() => {
            (Value::from(other.to_string()), None)
        }
        _ => (Value::from(EMPTY_RESULT), None),
    }
}

fn assistant(message: &Value) -> Value {
    let mut all = blocks(message.get("content"));
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function");
        let arguments = function.and_then(|function| function.get("arguments"));
        let input = match arguments {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
            Some(Value::Object(object)) => Value::Object(object.clone()),
            _ => json!({}),
        };
        let name = function.and_then(|function| function.get("name")).cloned().unwrap_or(Value::Null);
        let id = call.get("id").cloned().unwrap_or(Value::Null);
        all.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    if let Some(marker) = message.get(MARKER) {
        put_marker(&mut all, marker.clone());
    }
    if all.is_empty() {
        all.push(json!({"type": "text", "text": EMPTY_ASSISTANT}));
    }
    json!({"role": "assistant", "content": all})
}

fn tool_result(message: &Value) -> Value {
    let (content, inner) = result_content(message.get("content"));
    let id = message.get("tool_call_id").cloned().unwrap_or(Value::Null);
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    if let Some(marker) = message.get(MARKER).cloned().or(inner) {
        block[MARKER] = marker;
    }
    json!({"role": "user", "content": [block]})
}

fn user(message: &Value) -> Value {
    let mut all = blocks(message.get("content"));
    if all.is_empty() {
        all.push(json!({"type": "text", "text": EMPTY_USER}));
    }
    json!({"role": "user", "content": all})
}

fn system(message: &Value) -> Value {
    let content = message.get("content");
    let marked = content
        .and_then(Value::as_array)
        .is_some_and(|parts| parts.iter().any(|part| part.get(MARKER).is_some()));
    if marked {
        let parts = content.and_then(Value::as_array).into_iter().flatten();
        return Value::Array(parts.filter_map(block).collect());
    }
    let text: String = match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(text_of).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    Value::from(text)
}

/// Converts marked messages; neighbours of one role become one message.
pub fn convert(messages: &[Value]) -> AnthropicRequest {
    let mut request = AnthropicRequest::default();
    for message in messages {
        let converted = match message.get("role").and_then(Value::as_str) {
            Some("system") => {
                request.system = Some(system(message));
                continue;
            }
            Some("assistant") => assistant(message),
            Some("tool") => tool_result(message),
            Some("user") => user(message),
            _ => continue,
        };
        append(&mut request.messages, converted);
    }
    request
}

fn append(messages: &mut Vec<Value>, mut next: Value) {
    if let Some(last) = messages.last_mut()
        && last["role"] == next["role"]
        && let (Some(Value::Array(into)), Some(Value::Array(from))) =
            (last.get_mut("content"), next.get_mut("content"))
    {
        into.append(from);
        return;
    }
    messages.push(next);
}

/// Markers in a converted request, as `(message, block, type of the block)`.
pub fn marks(messages: &[Value]) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = message.get("content").and_then(Value::as_array);
        for (place, block) in blocks.into_iter().flatten().enumerate() {
            if block.get(MARKER).is_some() {
                let kind = block.get("type").and_then(Value::as_str).unwrap_or("").to_owned();
                found.push((at, place, kind));
            }
        }
    }
    found
}

/// A tool in Anthropic's shape, its marker kept.
pub fn tool(definition: &Value) -> Value {
    let function = definition.get("function").unwrap_or(definition);
    let mut object = Map::new();
    let field = |key: &str| function.get(key).cloned();
    object.insert("name".to_owned(), field("name").unwrap_or(Value::Null));
    if let Some(description) = field("description") {
        object.insert("description".to_owned(), description);
    }
    let schema = field("parameters").or_else(|| field("input_schema"));
    object.insert("input_schema".to_owned(), schema.unwrap_or_else(|| json!({"type": "object"})));
    if let Some(marker) = definition.get(MARKER) {
        object.insert(MARKER.to_owned(), marker.clone());
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_of_a_blank_text_moves_to_the_block_before_it() {
        let marker = json!({"type": "ephemeral"});
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": " ", MARKER: marker}]);
        let kept = blocks(Some(&parts));
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0][MARKER], marker);
    }

    #[test]
    fn a_thinking_block_never_carries_the_marker() {
        let message = json!({"role": "assistant", MARKER: {"type": "ephemeral"}, "content": [
            {"type": "text", "text": "a"}, {"type": "thinking", "thinking": "t"}]});
        let request = convert(&[message]);
        assert_eq!(marks(&request.messages), [(0, 0, "text".to_owned())]);
    }
}

//! Taking markers off a request, so that it can be planned anew (Hermes agent/prompt_caching.py:191).
//!
//! Works on messages as they go over the wire. Never touches a message that carries neither a marker nor parts.

use serde_json::Value;

use crate::agent::breakpoints::scaffold::Scaffolds;

/// The key of a marker.
pub const MARKER: &str = "cache_control";

/// Takes the marker off a tool or another object.
pub fn unmark(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        object.shift_remove(MARKER);
    }
}

/// The text of a part that holds nothing else.
fn plain_text(part: &Value) -> Option<&str> {
    let object = part.as_object()?;
    if object.keys().any(|key| key != "type" && key != "text") {
        return None;
    }
    if object.get("type").is_some_and(|kind| kind.as_str() != Some("text")) {
        return None;
    }
    object.get("text")?.as_str()
}

/// Takes markers off one message and turns parts that planning made back into a text.
pub fn strip_message(message: &mut Value, scaffolds: &mut Scaffolds) {
    unmark(message);
    let role = message.get("role").and_then(Value::as_str).unwrap_or("").to_owned();
    let Some(Value::Array(parts)) = message.get_mut("content") else { return };
    let marked: Vec<bool> = parts.iter().map(|part| part.get(MARKER).is_some()).collect();
    parts.iter_mut().for_each(unmark);
    let texts: Option<Vec<&str>> = parts.iter().map(plain_text).collect();
    let Some(texts) = texts else { return };
    let joins = match (role.as_str(), texts.as_slice()) {
        (_, [_]) | ("system", [_, _]) => true,
        ("user", [first, _]) => {
            let joined = texts.concat();
            marked == [true, false] || scaffolds.find(&joined) == Some(first.len())
        }
        _ => false,
    };
    if joins {
        let joined = texts.concat();
        message["content"] = Value::from(joined);
    }
}

/// Takes all markers off messages.
pub fn strip(messages: &mut [Value], scaffolds: &mut Scaffolds) {
    for message in messages {
        let decorated = message.get(MARKER).is_some() || message.get("content").is_some_and(Value::is_array);
        if decorated {
            strip_message(message, scaffolds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Breakpoints;
    use serde_json::json;

    #[test]
    fn a_part_that_is_no_plain_text_keeps_the_list() {
        let mut scaffolds = Scaffolds::new(&Breakpoints::default());
        let mut messages =
            [json!({"role": "user", "content": ["plain"]}), json!({"role": "user", "content": []})];
        let before = messages.clone();
        strip(&mut messages, &mut scaffolds);
        assert_eq!(messages, before);
    }
}

//! The form of a request body in which two recordings are compared.
//!
//! Cache markers move from request to request and are no content: they are taken out, and with them the difference
//! between a string and a lone text block. What a client writes for its own bookkeeping (`metadata`) is taken out too.
//! Everything else counts: the model, the tools, the system prompt, every message, every parameter.

use serde_json::{Map, Value};

use crate::ledger::hex;
use sha2::{Digest as _, Sha256};

/// Fields of the whole body that are the client's own bookkeeping.
const BOOKKEEPING: [&str; 1] = ["metadata"];

/// The body in its normal form; `None` when it is no JSON object.
pub(crate) fn normal(body: &[u8]) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(body).ok()?;
    let object = value.as_object_mut()?;
    for name in BOOKKEEPING {
        object.shift_remove(name);
    }
    unmark(object);
    for name in ["system", "tools", "messages", "input"] {
        for element in object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(element) = element.as_object_mut() {
                unmark(element);
                content(element);
            }
        }
    }
    if let Some(system) = object.get_mut("system") {
        fold(system);
    }
    Some(value)
}

/// SHA-256 of a normal form, in hexadecimal.
pub(crate) fn key(normal: &Value) -> String {
    hex(&Sha256::digest(normal.to_string().as_bytes()))
}

fn unmark(object: &mut Map<String, Value>) {
    object.shift_remove("cache_control");
}

/// Takes markers out of the parts of a content, and of results inside it.
fn content(element: &mut Map<String, Value>) {
    let Some(content_of) = element.get_mut("content") else { return };
    for part in content_of.as_array_mut().into_iter().flatten() {
        let Some(part) = part.as_object_mut() else { continue };
        unmark(part);
        if part.get("type").is_some_and(|kind| kind == "tool_result") {
            content(part);
        }
    }
    fold(content_of);
}

/// A lone text block as a string.
fn fold(content: &mut Value) {
    let Some([Value::Object(only)]) = content.as_array().map(Vec::as_slice) else { return };
    let plain = only.len() == 2 && only.get("type").is_some_and(|kind| kind == "text");
    if let Some(Value::String(text)) = only.get("text").filter(|_| plain) {
        *content = Value::String(text.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(body: &str) -> String {
        key(&normal(body.as_bytes()).unwrap())
    }

    #[test]
    fn markers_and_bookkeeping_do_not_count_and_everything_else_does() {
        let plain = r#"{"model":"m","system":"s","messages":[{"role":"user","content":"x"}]}"#;
        let marked = r#"{"model":"m","metadata":{"user_id":"u"},"cache_control":{"type":"ephemeral"},
            "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
            "messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}"#;
        assert_eq!(key_of(plain), key_of(marked));
        for other in [
            r#"{"model":"n","system":"s","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"model":"m","system":"s.","messages":[{"role":"user","content":"x"}]}"#,
            r#"{"model":"m","system":"s","messages":[{"role":"user","content":"x"}],"stream":true}"#,
        ] {
            assert_ne!(key_of(plain), key_of(other));
        }
        // The same name deeper down is somebody's data.
        let data = r#"{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n",
            "input":{"cache_control":1}}]}]}"#;
        assert!(normal(data.as_bytes()).unwrap().to_string().contains("cache_control"));
        assert!(normal(b"[]").is_none() && normal(b"{").is_none());
    }
}

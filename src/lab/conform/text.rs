//! Long texts in vectors are written short; this writes them out.

use serde_json::Value;

/// Writes out every shortened text in a value: `{"parts": [text | {"s": text, "n": times}]}` and
/// `{"$repeat": [text, times]}`.
///
/// The outermost object is never a shortened text: it names the inputs, one of which may be called `parts`.
pub fn expand(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), written_out(value))).collect())
        }
        other => written_out(other),
    }
}

fn written_out(value: &Value) -> Value {
    match value {
        Value::Object(object) => shortened(object).map_or_else(|| expand(value), Value::from),
        Value::Array(items) => Value::Array(items.iter().map(written_out).collect()),
        other => other.clone(),
    }
}

fn shortened(object: &serde_json::Map<String, Value>) -> Option<String> {
    if object.len() != 1 {
        return None;
    }
    if let Some(Value::Array(pair)) = object.get("$repeat") {
        return Some(pair.first()?.as_str()?.repeat(usize::try_from(pair.get(1)?.as_u64()?).ok()?));
    }
    let Some(Value::Array(parts)) = object.get("parts") else { return None };
    parts
        .iter()
        .map(|part| match part {
            Value::String(text) => Some(text.clone()),
            Value::Object(part) => {
                let times = usize::try_from(part.get("n")?.as_u64()?).ok()?;
                Some(part.get("s")?.as_str()?.repeat(times))
            }
            _ => None,
        })
        .collect()
}

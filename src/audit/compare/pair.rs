//! One segment before and after: the same meaning in other bytes, or really something else.

use serde_json::Value;

use crate::audit::prompt::text_of;
use crate::audit::text_kind::{self, Run, TextKind};
use crate::audit::words::Cause;

/// What became of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub cause: Cause,
    pub kind: TextKind,
    pub what: String,
    /// First differing byte of the text.
    pub byte: u64,
    /// Field that differs, as a pointer inside the segment.
    pub path: String,
}

/// Fields that carry reasoning back to a model.
const REASONING: &[&str] =
    &["reasoning", "reasoning_content", "reasoning_details", "thinking", "encrypted_content"];

/// Fields that stand or fall with the serialiser, not with what was said.
const DRESS: &[&str] = &["name", "refusal", "annotations", "audio", "function_call", "type", "status", "id"];

/// Judges a pair of segments of the messages or the system prompt. `answers` says that it is a result of a call.
pub(super) fn judge(before: &Value, after: &Value, answers: bool) -> Vec<Edit> {
    let texts = (text_of(before).unwrap_or_default(), text_of(after).unwrap_or_default());
    let byte = text_kind::common_head(&texts.0, &texts.1) as u64;
    let edit =
        |cause, kind, what: &str, path: String| Edit { cause, kind, what: what.to_owned(), byte, path };
    if let Some(path) = order_path(before, after) {
        return vec![edit(Cause::JsonKeyOrder, TextKind::Spelling, "the same keys in another order", path)];
    }
    if !said_otherwise(&texts.0, &texts.1) && plain(before, &[]) == plain(after, &[]) {
        let what = "the same content, written in another form";
        return vec![edit(Cause::RepresentationDrift, TextKind::Spelling, what, String::new())];
    }
    if reasons(before) != reasons(after) && plain(before, REASONING) == plain(after, REASONING) {
        let what = if reasons(after) == 0 { "its reasoning is gone" } else { "its reasoning changed" };
        return vec![edit(Cause::ReasoningDropped, TextKind::Other, what, String::new())];
    }
    let path = changed_path(before, after).unwrap_or_default();
    if images(before) != images(after) {
        return vec![edit(Cause::HistoryRewritten, TextKind::Cut, "an image came or went", path)];
    }
    if answers {
        let what = cut_words(&texts.0, &texts.1).unwrap_or("a tool result changed");
        return vec![edit(Cause::HistoryRewritten, TextKind::Cut, what, path)];
    }
    if texts.0.is_empty() || texts.1.is_empty() {
        return vec![edit(Cause::HistoryRewritten, TextKind::Other, "an earlier message changed", path)];
    }
    of_runs(&text_kind::runs(&texts.0, &texts.1), &path)
}

/// True when two plain texts have other words: then nothing can make them equal, and nothing need be normalised.
fn said_otherwise(before: &str, after: &str) -> bool {
    let json = |text: &str| text.trim_start().starts_with(['{', '[']);
    !before.is_empty()
        && !after.is_empty()
        && !json(before)
        && !json(after)
        && !before.split_whitespace().eq(after.split_whitespace())
}

/// One edit a cause among the runs.
pub(super) fn of_runs(runs: &[Run], path: &str) -> Vec<Edit> {
    let mut found: Vec<Edit> = Vec::new();
    for run in runs {
        let cause = match run.kind {
            TextKind::Clock => Cause::VolatileTime,
            TextKind::Counter => Cause::VolatileId,
            TextKind::Memory => Cause::MemoryLiveRead,
            TextKind::Recall => Cause::RecallInjection,
            TextKind::Spelling => Cause::RepresentationDrift,
            _ => Cause::HistoryRewritten,
        };
        if found.iter().all(|edit| edit.cause != cause) {
            let byte = run.at + text_kind::common_head(&run.before, &run.after);
            let what = match run.kind {
                TextKind::Clock => "a clock or date changed",
                TextKind::Counter => "a counter or id changed",
                TextKind::Memory => "a block of remembered facts changed",
                TextKind::Recall => "recalled text came, went or changed",
                TextKind::Spelling => "only white space changed",
                TextKind::Path => "a path changed",
                TextKind::Git => "a git status changed",
                TextKind::Skills => "a list of skills changed",
                TextKind::Reminder => "a reminder came, went or changed",
                TextKind::Cut | TextKind::Other => "text changed",
            };
            found.push(Edit {
                cause,
                kind: run.kind,
                what: what.to_owned(),
                byte: byte as u64,
                path: path.to_owned(),
            });
        }
    }
    found
}

fn cut_words(before: &str, after: &str) -> Option<&'static str> {
    let shared = text_kind::common_head(before, after);
    if after.len() >= before.len() {
        return None;
    }
    Some(if shared * 2 >= after.len() && shared > 0 {
        "a tool result was cut short"
    } else {
        "a tool result was cleared"
    })
}

fn reasons(value: &Value) -> usize {
    match value {
        Value::Object(object) => REASONING.iter().filter(|name| object.contains_key(**name)).count(),
        _ => 0,
    }
}

fn images(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let own = object
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| matches!(kind, "image" | "image_url" | "input_image"));
            usize::from(own) + object.values().map(images).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(images).sum(),
        _ => 0,
    }
}

/// A value in the one form that says only what was said: texts as strings, JSON inside strings as JSON, without
/// empty fields and the named ones.
fn plain(value: &Value, without: &[&str]) -> Value {
    match value {
        Value::String(text) => match inner_json(text) {
            Some(inner) => plain(&inner, &[]),
            None => Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        },
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| plain(item, without)).collect();
            match items.as_slice() {
                [only] if only.is_string() => only.clone(),
                _ => Value::Array(items),
            }
        }
        Value::Object(object) => {
            let text_block = object
                .get("type")
                .and_then(Value::as_str)
                .is_none_or(|kind| matches!(kind, "text" | "input_text" | "output_text"));
            if let Some(text) = object.get("text").filter(|text| text.is_string() && text_block) {
                return plain(text, &[]);
            }
            let kept = object.iter().filter(|(name, inner)| {
                let name = name.as_str();
                let empty = inner.is_null()
                    || inner.as_str() == Some("")
                    || inner.as_array().is_some_and(Vec::is_empty)
                    || inner.as_bool() == Some(false);
                let dress = DRESS.contains(&name) && object.contains_key("role");
                !empty && !dress && !without.contains(&name)
            });
            Value::Object(kept.map(|(name, inner)| (name.clone(), plain(inner, &[]))).collect())
        }
        other => other.clone(),
    }
}

fn inner_json(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    (trimmed.starts_with('{') && trimmed.ends_with('}') || trimmed.starts_with('[') && trimmed.ends_with(']'))
        .then(|| serde_json::from_str(trimmed).ok())
        .flatten()
}

/// Where two values differ in the order of keys and in nothing else: the outermost such object.
pub fn order_path(before: &Value, after: &Value) -> Option<String> {
    if before == after {
        return reordered(before, after);
    }
    // A JSON text inside a field, such as the arguments of a call.
    inner_order(before, after)
}

fn reordered(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            if a.keys().ne(b.keys()) {
                return Some(String::new());
            }
            a.iter()
                .find_map(|(key, inner)| Some(format!("/{}{}", escape(key), reordered(inner, b.get(key)?)?)))
        }
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| Some(format!("/{index}{}", reordered(a, b)?))),
        _ => None,
    }
}

fn inner_order(before: &Value, after: &Value) -> Option<String> {
    let path = changed_path(before, after)?;
    let (a, b) = (before.pointer(&path)?.as_str()?, after.pointer(&path)?.as_str()?);
    let (a, b) = (inner_json(a)?, inner_json(b)?);
    let inner = (a == b).then(|| reordered(&a, &b)).flatten()?;
    // Everything else must be equal, else more than the order changed.
    let mut patched = before.clone();
    *patched.pointer_mut(&path)? = after.pointer(&path)?.clone();
    (patched == *after).then(|| format!("{path}{inner}"))
}

/// Where two values first differ.
pub fn changed_path(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let missing = a
                .keys()
                .find(|key| !b.contains_key(*key))
                .or_else(|| b.keys().find(|key| !a.contains_key(*key)));
            let inner = a.iter().find_map(|(key, value)| {
                Some(format!("/{}{}", escape(key), changed_path(value, b.get(key)?)?))
            });
            inner.or_else(|| missing.map(|key| format!("/{}", escape(key))))
        }
        (Value::Array(a), Value::Array(b)) => {
            let inner = a
                .iter()
                .zip(b)
                .enumerate()
                .find_map(|(index, (a, b))| Some(format!("/{index}{}", changed_path(a, b)?)));
            inner.or_else(|| (a.len() != b.len()).then(|| format!("/{}", a.len().min(b.len()))))
        }
        (a, b) => (a != b).then(String::new),
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn causes(before: &Value, after: &Value) -> Vec<Cause> {
        judge(before, after, false).into_iter().map(|edit| edit.cause).collect()
    }

    #[test]
    fn the_same_meaning_in_other_bytes_is_drift_or_key_order() {
        let text = json!({"role": "user", "content": "hi"});
        let block = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]});
        assert_eq!(causes(&text, &block), [Cause::RepresentationDrift]);
        let named = json!({"role": "tool", "tool_call_id": "a", "name": "x", "content": "ok"});
        let bare = json!({"role": "tool", "tool_call_id": "a", "content": "ok"});
        assert_eq!(causes(&named, &bare), [Cause::RepresentationDrift]);
        let call = |arguments: &str| json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": arguments}}]});
        assert_eq!(causes(&call("{\"a\": 1}"), &call("{\"a\":1}")), [Cause::RepresentationDrift]);
        assert_eq!(causes(&call("{\"a\":1,\"b\":2}"), &call("{\"b\":2,\"a\":1}")), [Cause::JsonKeyOrder]);
        assert_eq!(
            order_path(&json!({"f": {"p": {"a": 1, "b": 2}}}), &json!({"f": {"p": {"b": 2, "a": 1}}})),
            Some("/f/p".to_owned())
        );
    }

    #[test]
    fn lost_reasoning_is_told_from_a_rewritten_message() {
        let thought = json!({"role": "assistant", "content": "yes", "reasoning_content": "because"});
        let bare = json!({"role": "assistant", "content": "yes"});
        assert_eq!(causes(&thought, &bare), [Cause::ReasoningDropped]);
        assert_eq!(causes(&json!({"role": "assistant", "content": "no"}), &bare), [Cause::HistoryRewritten]);
    }
}

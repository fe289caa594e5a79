//! The output contract of a task. Source: Hermes tools/delegation_output_schema.py:60.

use serde_json::Value;

/// Errors that are told at most; Hermes tools/delegation_output_schema.py.
const ERRORS_MAX: usize = 10;

/// True when the value is a valid JSON Schema.
pub fn is_schema(schema: &Value) -> bool {
    jsonschema::meta::is_valid(schema) && jsonschema::validator_for(schema).is_ok()
}

/// An answer held against its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// True when it fits.
    pub valid: bool,
    /// Where it does not (`$.a[0]`; `<text>` when nothing could be read), with the reason.
    pub errors: Vec<(String, String)>,
}

/// The part of an answer that is held against the schema: without fences, the outermost object or list.
///
/// The earliest opener first, the first one that parses; the stripped text when none does.
pub fn candidate(text: &str) -> &str {
    let text = without_fence(text.trim());
    if serde_json::from_str::<Value>(text).is_ok() {
        return text;
    }
    let mut spans: Vec<(usize, usize)> = [('{', '}'), ('[', ']')]
        .into_iter()
        .filter_map(|(open, close)| Some((text.find(open)?, text.rfind(close)?)))
        .filter(|(open, close)| open < close)
        .collect();
    spans.sort_unstable();
    spans
        .into_iter()
        .map(|(open, close)| &text[open..=close])
        .find(|part| serde_json::from_str::<Value>(part).is_ok())
        .unwrap_or(text)
}

fn without_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    // The first line may name a language.
    inner.split_once('\n').map_or(inner, |(_, body)| body).trim()
}

/// Holds an answer against a schema.
pub fn check(text: &str, schema: &Value) -> Checked {
    let whole = |why: &str| Checked { valid: false, errors: vec![("<text>".to_owned(), why.to_owned())] };
    let Ok(answer) = serde_json::from_str::<Value>(candidate(text)) else {
        return whole("the answer is not JSON");
    };
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return whole("the schema is not valid");
    };
    let errors: Vec<(String, String)> = validator
        .iter_errors(&answer)
        .take(ERRORS_MAX)
        .map(|error| (path(error.instance_path().as_str()), error.to_string()))
        .collect();
    Checked { valid: errors.is_empty(), errors }
}

/// A JSON pointer as people write it: `/a/0` is `$.a[0]`.
fn path(pointer: &str) -> String {
    let mut path = String::from("$");
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.bytes().all(|byte| byte.is_ascii_digit()) && !step.is_empty() {
            path.push_str(&format!("[{step}]"));
        } else {
            path.push_str(&format!(".{step}"));
        }
    }
    path
}

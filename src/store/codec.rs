//! How values become table cells: message content, tool calls, times.
//!
//! Text and numbers are stored as they are; lists and objects as a marker and JSON, so that a cell never needs a second
//! column to say what it holds. Called for every row that is written or read. Never: a loss of anything that JSON can
//! say.

use std::borrow::Cow;
use std::fmt::Write as _;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde_json::Value;

use crate::wire::{Content, ToolCall};

/// What stands in front of JSON in a content cell (`Hermes hermes_state_messages.py:137`).
pub const MARKER: &str = "\0json:";

/// A content cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// Text, or the marker and JSON.
    Text(Cow<'a, str>),
    /// A whole number; a switch is 0 or 1.
    Integer(i64),
    /// Any other number.
    Real(f64),
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
        }))
    }
}

/// The cell of a content.
///
/// ```
/// use hermes_lab::store::codec::{Cell, encode};
/// use hermes_lab::wire::Content;
/// let content = Content::Parts(vec!["你".into()]);
/// assert_eq!(encode(&content), Cell::Text("\0json:[\"\\u4f60\"]".into()));
/// ```
pub fn encode(content: &Content) -> Cell<'_> {
    match content {
        Content::Absent | Content::Null | Content::Other(Value::Null) => Cell::Null,
        Content::Text(text) if text.starts_with(MARKER) => marked(&Value::from(text.as_str())),
        Content::Text(text) => Cell::Text(Cow::Borrowed(text)),
        Content::Parts(parts) => marked(&Value::Array(parts.clone())),
        Content::Other(Value::Bool(on)) => Cell::Integer(i64::from(*on)),
        Content::Other(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Cell::Integer(number),
            (None, Some(number)) => Cell::Real(number),
            (None, None) => Cell::Text(Cow::Owned(number.to_string())),
        },
        Content::Other(other) => marked(other),
    }
}

fn marked(value: &Value) -> Cell<'static> {
    let mut text = MARKER.to_owned();
    write_json(&mut text, value);
    Cell::Text(Cow::Owned(text))
}

/// The content of a cell. A marker without valid JSON behind it is text.
pub fn decode(cell: ValueRef<'_>) -> Content {
    match cell {
        ValueRef::Null => Content::Null,
        ValueRef::Integer(number) => Content::Other(Value::from(number)),
        ValueRef::Real(number) => Content::Other(Value::from(number)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            match text.strip_prefix(MARKER).map(serde_json::from_str::<Value>) {
                Some(Ok(value)) => Content::of(Some(&value)),
                _ => Content::Text(text.into_owned()),
            }
        }
    }
}

/// Text of UTF-16 units, every lone surrogate replaced; a cell cannot hold one.
pub fn text_of_utf16(units: &[u16]) -> String {
    String::from_utf16_lossy(units)
}

/// The cell of tool calls: JSON with ASCII escapes; `None` for no calls.
pub fn encode_calls(calls: Option<&[ToolCall]>) -> Option<String> {
    let calls = calls.filter(|calls| !calls.is_empty())?;
    let mut text = String::with_capacity(128 * calls.len());
    text.push('[');
    for (index, call) in calls.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        write_json(&mut text, &call.to_json());
    }
    text.push(']');
    Some(text)
}

/// JSON with ASCII escapes and a blank behind commas and colons.
pub fn ascii_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(&mut text, value);
    text
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(on) => out.push_str(if *on { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, item)) in object.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_text(out, key);
                out.push_str(": ");
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &serde_json::Number) {
    let text = number.to_string();
    match text.split_once('e') {
        // Python writes a sign and at least two digits in an exponent.
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent
                .strip_prefix('-')
                .map_or(('+', exponent.trim_start_matches('+')), |rest| ('-', rest));
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            // Writing to a string cannot fail.
            let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
        }
        None => out.push_str(&text),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            ' '..='~' => continue,
            _ => "",
        };
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        if escape.is_empty() {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_as_python_writes_it() {
        let value = json!({"a": [1, 2.5, 1e20, null], "ü\u{1F600}\u{7f}": "q\"\\\n"});
        assert_eq!(
            ascii_json(&value),
            r#"{"a": [1, 2.5, 1e+20, null], "\u00fc\ud83d\ude00\u007f": "q\"\\\n"}"#
        );
    }

    #[test]
    fn a_marker_without_json_stays_text() {
        let text = "\0json:{oops";
        assert_eq!(decode(ValueRef::Text(text.as_bytes())), Content::Text(text.to_owned()));
    }
}

//! How values become table cells: message content, tool calls, times.
//!
//! Text and numbers are stored as they are; lists and objects as a marker and JSON, so that a cell never needs a second
//! column to say what it holds. Called for every row that is written or read. Never: a loss of anything that JSON can
//! say.

use std::borrow::Cow;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde_json::Value;

use crate::wire::{Content, ToolCall, python};

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
    python::write_json(&mut text, value);
    Cell::Text(Cow::Owned(text))
}

/// The content of a cell. A marker without valid JSON behind it is text.
pub fn decode(cell: ValueRef<'_>) -> Content {
    match cell {
        ValueRef::Null => Content::Null,
        ValueRef::Integer(number) => Content::Other(Value::from(number)),
        ValueRef::Real(number) => Content::Other(Value::from(number)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            // Nearly always the whole is sound, which is quicker to see than where it is not.
            let text =
                std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
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
        python::write_json(&mut text, &call.to_json());
    }
    text.push(']');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_without_json_stays_text() {
        let text = "\0json:{oops";
        assert_eq!(decode(ValueRef::Text(text.as_bytes())), Content::Text(text.to_owned()));
    }
}

//! Text of a JSON value as Python's `repr` writes it.
//!
//! Sizes of calls and rows are priced on this text, so every place that compares sizes must use it. Never shown to
//! anybody.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_general_category::{GeneralCategory, get_general_category};

/// The `repr` of a value.
///
/// ```
/// use hermes_lab::agent::compress::repr;
/// let value = serde_json::json!({"a": [null, true, "it's"]});
/// assert_eq!(repr::of(&value), r#"{'a': [None, True, "it's"]}"#);
/// ```
pub fn of(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(out, item);
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
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing into a `String` cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    !matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::Surrogate
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_quotes_in_a_text_escape_the_single_one() {
        assert_eq!(of(&Value::from("a'b\"c")), r#"'a\'b"c'"#);
    }

    #[test]
    fn unprintable_code_points_are_escaped_and_printable_ones_stay() {
        assert_eq!(of(&Value::from("\u{7}\u{a0}\u{200b}\u{e0001}é你")), r"'\x07\xa0\u200b\U000e0001é你'");
    }
}

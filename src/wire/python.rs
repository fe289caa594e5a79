//! Nested values as Python writes them: `json.dumps` with ASCII escapes, and `repr`.
//!
//! The real agent stores lists as the one and prices rows by the length of the other, so both must come out to the
//! letter. Called by the store's codec and by the compressor's estimates. Never shown to anybody.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use unicode_general_category::{GeneralCategory, get_general_category};

/// How the leaves are written; brackets, commas and colons are the same in both.
#[derive(Clone, Copy)]
struct Dialect {
    null: &'static str,
    yes: &'static str,
    no: &'static str,
    text: fn(&mut String, &str),
}

const JSON: Dialect = Dialect { null: "null", yes: "true", no: "false", text: json_text };
const REPR: Dialect = Dialect { null: "None", yes: "True", no: "False", text: repr_text };

/// JSON with ASCII escapes and a blank behind commas and colons.
///
/// ```
/// use hermes_lab::wire::python;
/// assert_eq!(python::json(&serde_json::json!({"ü": [1, null]})), r#"{"\u00fc": [1, null]}"#);
/// ```
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, JSON);
    text
}

/// The same, behind what `out` holds already.
pub fn write_json(out: &mut String, value: &Value) {
    write(out, value, JSON);
}

/// The `repr` of a value.
///
/// ```
/// use hermes_lab::wire::python;
/// let value = serde_json::json!({"a": [null, true, "it's"]});
/// assert_eq!(python::repr(&value), r#"{'a': [None, True, "it's"]}"#);
/// ```
pub fn repr(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, REPR);
    text
}

fn write(out: &mut String, value: &Value, dialect: Dialect) {
    match value {
        Value::Null => out.push_str(dialect.null),
        Value::Bool(true) => out.push_str(dialect.yes),
        Value::Bool(false) => out.push_str(dialect.no),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => (dialect.text)(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(out, item, dialect);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, item)) in object.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                (dialect.text)(out, key);
                out.push_str(": ");
                write(out, item, dialect);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
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

fn json_text(out: &mut String, text: &str) {
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

fn repr_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if c != '\\' && c != quote && is_printable(c) {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == '\\' || c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push_str(&text[plain..]);
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
    fn json_is_written_as_python_writes_it() {
        let value = serde_json::json!({"a": [1, 2.5, 1e20, null], "ü\u{1F600}\u{7f}": "q\"\\\n"});
        assert_eq!(json(&value), r#"{"a": [1, 2.5, 1e+20, null], "\u00fc\ud83d\ude00\u007f": "q\"\\\n"}"#);
    }

    #[test]
    fn numbers_are_the_same_in_both() {
        for number in [1e20, 1e-7, 2.5, 100.0] {
            let value = Value::from(number);
            assert_eq!(json(&value), repr(&value));
        }
        assert_eq!(repr(&Value::from(1e20)), "1e+20");
    }

    #[test]
    fn both_quotes_in_a_text_escape_the_single_one() {
        assert_eq!(repr(&Value::from("a'b\"c")), r#"'a\'b"c'"#);
    }

    #[test]
    fn unprintable_code_points_are_escaped_and_printable_ones_stay() {
        assert_eq!(repr(&Value::from("\u{7}\u{a0}\u{200b}\u{e0001}é你")), r"'\x07\xa0\u200b\U000e0001é你'");
    }
}

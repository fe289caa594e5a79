//! Results as people read them: text tables, timelines, pages.
//!
//! A report turns a finished result into text and decides nothing. The same result is also given as JSON by the
//! command line. Numbers carry their unit in the column's head.

pub mod ablation;
pub mod audit;
pub mod audit_html;
pub mod bench;
pub mod breaks;
pub mod conform;
pub mod crash;
pub mod explore;
pub mod learning;
pub mod life;
pub mod matrix;
pub mod plot;
pub mod run;
pub mod selftest;
pub mod suite;
pub mod suite_html;
pub mod sweep;
pub mod table;
pub mod timeline;

use serde_json::Value;

/// A figure's value as a person reads it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(object) => {
            object.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A count with thousands separated by commas.
///
/// ```
/// assert_eq!(hermes_lab::report::grouped(1234567), "1,234,567");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

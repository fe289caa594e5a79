//! Front matter of skills, category descriptions and the harness's own context file.
//!
//! Reads what it can, as the catalogue needs it; never refuses a text.

use serde_json::{Map, Value};

use crate::agent::skills::parse_frontmatter;
use crate::agent::yaml;

/// The fields of the front matter; empty when there is none.
pub fn fields(text: &str) -> Map<String, Value> {
    parse_frontmatter(text).0
}

/// The text without its front matter.
pub fn without(text: &str) -> String {
    parse_frontmatter(text).1
}

/// The words of a field that is a text or a list.
pub fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(word)) => vec![word.trim().to_owned()],
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| yaml::show(item).trim().to_owned())
            .filter(|word| !word.is_empty())
            .collect(),
        _ => Vec::new(),
    }
}

/// A field as text, without outer blanks and then without outer quotes; empty for what counts as nothing.
pub fn plain(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null | Value::Bool(false)) => return String::new(),
        Some(Value::Array(items)) if items.is_empty() => return String::new(),
        Some(Value::Object(fields)) if fields.is_empty() => return String::new(),
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => return String::new(),
        Some(other) => yaml::show(other),
    };
    text.trim().trim_matches(['\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_nothing_is_an_empty_text() {
        for nothing in [serde_json::json!(null), false.into(), 0.into(), serde_json::json!([])] {
            assert_eq!(plain(Some(&nothing)), "", "{nothing}");
        }
        assert_eq!(plain(Some(&" 'x' ".into())), "x");
    }

    #[test]
    fn a_word_and_a_list_of_words_are_read_alike() {
        assert_eq!(words(Some(&"linux".into())), words(Some(&serde_json::json!(["linux"]))));
    }
}

//! Front matter of skills, category descriptions and the harness's own context file.
//!
//! Broken front matter is read line by line, as the agent does for its catalogue. Never refuses a text.

use serde_json::{Map, Value};

use crate::agent::yaml;

/// The text of the front matter and what follows it; `None` when there is none.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---")?;
    let (first, rest) = rest.split_once('\n')?;
    if !first.trim().is_empty() {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The fields of the front matter; empty when there is none.
pub fn fields(text: &str) -> Map<String, Value> {
    let Some((front, _)) = split(text) else { return Map::new() };
    match yaml::parse(front) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => Map::new(),
        Err(_) => front
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim().to_owned(), Value::from(value.trim())))
            .collect(),
    }
}

/// The text without its front matter.
pub fn without(text: &str) -> &str {
    split(text).map_or(text, |(_, body)| body)
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
    fn a_text_that_only_begins_with_dashes_has_no_front_matter() {
        assert_eq!(split("---x\na: 1\n---\n"), None);
        assert_eq!(split("---\na: 1\n"), None);
        assert_eq!(split("---\na: 1\n---\nb"), Some(("a: 1\n", "b")));
        assert_eq!(without("---\na: 1\n---"), "");
    }
}

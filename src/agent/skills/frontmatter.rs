//! The front matter of SKILL.md: a strict check for what is written, a lax reading for what is found.
//!
//! Called on every write and by discovery. Never: a reading that fails; a damaged file still shows up.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::refusal::{Reason, Refusal};
use crate::agent::text::{chars, head, strip};
use crate::agent::yaml;
use crate::policy;

/// How much of a file is looked at for its name.
const NAME_SEARCH_CHARS: usize = 4_000;

/// Line that closes the front matter; blank lines behind it belong to it.
static CLOSING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\n---[\s\x1c-\x1f]*\n").expect("a fixed pattern"));

/// YAML text and body of a content that starts with three dashes; `None` when the front matter does not end.
fn cut(content: &str) -> Option<(&str, &str)> {
    let rest = content.get(3..)?;
    let closing = CLOSING.find(rest)?;
    Some((&rest[..closing.start()], &rest[closing.end()..]))
}

/// Checks a SKILL.md that is to be written; `new` also applies the rules for new skills.
///
/// # Errors
/// The first rule that is broken, in the order of the reference (Hermes tools/skill_manager_tool.py:146-179).
pub fn validate(content: &str, new: bool, knobs: &policy::Skills) -> Result<(), Refusal> {
    let refuse = |reason: Reason, message: &str| Err(Refusal::new(reason, message));
    if strip(content).is_empty() {
        return refuse(Reason::ContentEmpty, "the content is blank");
    }
    let content = content.trim_start_matches('\u{FEFF}');
    if !content.starts_with("---") {
        return refuse(Reason::FrontmatterMissing, "SKILL.md must start with `---`");
    }
    let Some((text, body)) = cut(content) else {
        return refuse(Reason::FrontmatterUnclosed, "the front matter needs a closing `---` line");
    };
    let parsed = match yaml::parse(text) {
        Ok(value) => value,
        Err(error) => return refuse(Reason::FrontmatterYaml, &error.to_string()),
    };
    let Value::Object(fields) = parsed else {
        return refuse(Reason::FrontmatterNotMapping, "the front matter must be a mapping");
    };
    if !fields.contains_key("name") {
        return refuse(Reason::NameFieldMissing, "the front matter needs `name`");
    }
    let Some(description) = fields.get("description").map(yaml::show) else {
        return refuse(Reason::DescriptionFieldMissing, "the front matter needs `description`");
    };
    if chars(&description) > knobs.description_chars_max {
        return refuse(Reason::DescriptionTooLong, "the description is too long");
    }
    if new && knobs.checks_catalogue_budget && chars(unquoted(&description)) > knobs.catalogue_chars_max {
        return refuse(Reason::DescriptionOverPromptBudget, "the description does not fit a catalogue line");
    }
    if strip(body).is_empty() {
        return refuse(Reason::BodyEmpty, "there is nothing behind the front matter");
    }
    Ok(())
}

/// Fields and body of a SKILL.md, whatever its state (Hermes agent/skill_utils.py:66-87).
pub fn parse(content: &str) -> (Map<String, Value>, String) {
    let content = content.strip_prefix('\u{FEFF}').unwrap_or(content);
    let whole = || (Map::new(), content.to_owned());
    if !content.starts_with("---") {
        return whole();
    }
    let Some((text, body)) = cut(content) else { return whole() };
    let fields = match yaml::parse(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => Map::new(),
        Err(_) => strip(text)
            .split('\n')
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (strip(key).to_owned(), Value::from(strip(value))))
            .collect(),
    };
    (fields, body.to_owned())
}

/// The name that a SKILL.md gives itself, read line by line; `None` when it gives none.
pub fn name(content: &str) -> Option<String> {
    let start = head(content, NAME_SEARCH_CHARS);
    let mut inside = false;
    for line in start.lines() {
        let line = strip(line);
        if line == "---" {
            if inside {
                break;
            }
            inside = true;
        } else if inside && let Some(value) = line.strip_prefix("name:") {
            let value = unquoted(value);
            return (!value.is_empty()).then(|| value.to_owned());
        }
    }
    None
}

/// Without blanks, then without quotes, at both ends.
fn unquoted(text: &str) -> &str {
    strip(text).trim_matches(['\'', '"'])
}

/// The description as a catalogue line shows it, and whether it was cut (Hermes agent/skill_utils.py:822-839).
pub fn catalogue_line(description: &Value, limit: u64) -> (String, bool) {
    let text = match description {
        Value::Null | Value::Bool(false) => return (String::new(), false),
        Value::Array(items) if items.is_empty() => return (String::new(), false),
        Value::Object(fields) if fields.is_empty() => return (String::new(), false),
        Value::Number(number) if number.as_f64() == Some(0.0) => return (String::new(), false),
        other => yaml::show(other),
    };
    let text = unquoted(&text);
    if chars(text) <= limit {
        return (text.to_owned(), false);
    }
    let kept = usize::try_from(limit.saturating_sub(3)).unwrap_or(usize::MAX);
    (format!("{}...", head(text, kept)), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_read_without_its_quotes_and_only_inside_the_front_matter() {
        assert_eq!(name("---\nname: \"a b\"\n---\n"), Some("a b".to_owned()));
        assert_eq!(name("name: a\n---\n"), None);
        assert_eq!(name("---\nname:\n---\nname: b"), None);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_not_cut() {
        assert_eq!(catalogue_line(&"技".repeat(60).into(), 60), ("技".repeat(60), false));
        assert_eq!(catalogue_line(&"技".repeat(61).into(), 60), (format!("{}...", "技".repeat(57)), true));
    }
}

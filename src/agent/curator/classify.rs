//! What became of skills that a consolidation removed: merged into another, or given up.
//!
//! Three witnesses, in this order: what the delete call declared, what the model's closing block says, and what other
//! calls did with the content. Called after a consolidation. Never: a merge into a skill that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::agent::text::is_word;
use crate::agent::yaml;
use crate::world::files::file_name;

/// One tool call of the consolidating agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments as the model wrote them.
    pub arguments: String,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classification {
    /// Names that are gone.
    pub removed: Vec<String>,
    /// Names that are new.
    pub added: Vec<String>,
    /// Gone names whose content lives on, and where.
    pub consolidated: BTreeMap<String, String>,
    /// Gone names whose content does not.
    pub pruned: Vec<String>,
}

/// Classifies the removals of a run (Hermes agent/curator.py:483-645).
pub fn classify_removals(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    calls: &[ToolCall],
    final_text: &str,
) -> Classification {
    let operations: Vec<Value> = calls
        .iter()
        .filter(|call| call.name == "skill_manage")
        .flat_map(|call| operations(&call.arguments))
        .collect();
    let block = closing_block(final_text);
    let mut outcome = Classification {
        removed: before.difference(after).cloned().collect(),
        added: after.difference(before).cloned().collect(),
        ..Classification::default()
    };
    for name in &outcome.removed {
        let target = match declared(&operations, name) {
            Some(target) if target.is_empty() => None,
            Some(target) if after.contains(&target) => Some(target),
            _ => match block.get(name) {
                Some(target) if after.contains(target) => Some(target.clone()),
                _ => evidence(&operations, name, after),
            },
        };
        match target {
            Some(target) => {
                outcome.consolidated.insert(name.clone(), target);
            }
            None => outcome.pruned.push(name.clone()),
        }
    }
    outcome
}

/// The operations of one call; arguments that cannot be read name no skill and so bear no witness.
fn operations(arguments: &str) -> Vec<Value> {
    let Ok(args) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
    match args.get("operations").and_then(Value::as_array) {
        Some(list) => list
            .iter()
            .map(|op| {
                let mut op = op.clone();
                if op.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
                    && let (Some(fields), Some(name)) = (op.as_object_mut(), args.get("name"))
                {
                    fields.insert("name".to_owned(), name.clone());
                }
                op
            })
            .collect(),
        None => vec![args],
    }
}

fn text<'a>(op: &'a Value, key: &str) -> &'a str {
    op.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What the last delete of a skill said takes over; empty when it said that nothing does.
fn declared(operations: &[Value], name: &str) -> Option<String> {
    operations
        .iter()
        .rev()
        .filter(|op| text(op, "action") == "delete" && file_name(text(op, "name")) == name)
        .find_map(|op| op.get("absorbed_into").and_then(Value::as_str))
        .map(|target| target.trim().to_owned())
}

/// The merges that the model's closing block names.
fn closing_block(final_text: &str) -> BTreeMap<String, String> {
    static FENCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?is)```ya?ml[ \t]*\r?\n(.*?)\n[ \t]*```").expect("a fixed pattern"));
    let block = FENCE.captures(final_text).and_then(|found| yaml::parse(&found[1]).ok()).unwrap_or_default();
    let field = |row: &Value, key: &str| row.get(key).map(yaml::show).unwrap_or_default().trim().to_owned();
    block
        .get("consolidations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|row| (field(row, "from"), field(row, "into")))
        .filter(|(from, into)| !from.is_empty() && !into.is_empty())
        .collect()
}

/// The skill that a call brought a gone skill's name into.
fn evidence(operations: &[Value], name: &str, after: &BTreeSet<String>) -> Option<String> {
    let plain = |text: &str| text.replace('_', "-").to_lowercase();
    let wanted = plain(name);
    operations.iter().find_map(|op| {
        let target = text(op, "name");
        let target = if after.contains(target) { target } else { file_name(target) };
        if target == name || !after.contains(target) {
            return None;
        }
        let in_path = text(op, "file_path").split('/').any(|part| {
            let stem =
                part.rsplit_once('.').map_or(part, |(stem, _)| if stem.is_empty() { part } else { stem });
            plain(stem) == wanted
        });
        let in_text = ["file_content", "content", "new_string"]
            .into_iter()
            .any(|key| has_word(&plain(text(op, key)), &wanted));
        (in_path || in_text).then(|| target.to_owned())
    })
}

/// True when a text holds another as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    text.match_indices(word).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_inside_a_longer_word_is_no_evidence() {
        assert!(has_word("covers a-b.", "a-b"));
        assert!(!has_word("xa-b a-bc", "a-b"));
    }

    #[test]
    fn a_batch_inherits_the_name_of_its_call() {
        let call = r#"{"name": "u", "operations": [{"action": "patch", "new_string": "from a"}]}"#;
        let calls = [ToolCall { name: "skill_manage".to_owned(), arguments: call.to_owned() }];
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let outcome = classify_removals(&set(&["a", "u"]), &set(&["u"]), &calls, "");
        assert_eq!(outcome.consolidated["a"], "u");
    }
}

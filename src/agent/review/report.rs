//! What a review tells the user. Source: Hermes agent/background_review.py:616.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::policy::Notify;
use crate::wire::{Row, ToolCall};

/// How much the user is told; see the policy.
pub type Mode = Notify;

/// Characters of a preview of what memory took in.
const WRITTEN_CHARS: usize = 120;
/// Characters of a preview of what memory gave up.
const REMOVED_CHARS: usize = 60;
/// Characters of a preview of a skill's patch.
const PATCH_CHARS: usize = 80;

/// What kinds of knowledge a review changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Learned {
    /// A skill.
    pub skill: bool,
    /// Memory or the user profile.
    pub memory: bool,
}

impl Learned {
    /// `none`, `skill`, `memory` or `skill+memory`.
    pub fn word(self) -> &'static str {
        match (self.skill, self.memory) {
            (true, true) => "skill+memory",
            (true, false) => "skill",
            (false, true) => "memory",
            (false, false) => "none",
        }
    }
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Distinct lines, in order; none means silence.
    pub lines: Vec<String>,
    /// What the lines are about.
    pub learned: Learned,
}

impl Report {
    fn say(&mut self, line: String, learned: Learned) {
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
        self.learned.skill |= learned.skill;
        self.learned.memory |= learned.memory;
    }
}

const SKILL: Learned = Learned { skill: true, memory: false };
const MEMORY: Learned = Learned { skill: false, memory: true };
const OTHER: Learned = Learned { skill: false, memory: false };

/// Reads what a review did out of its rows, leaving out what the snapshot before it already held.
pub fn report(rows: &[Row], before: &[Row], mode: Mode) -> Report {
    let mut report = Report::default();
    if mode == Mode::Off {
        return report;
    }
    let known: BTreeSet<&str> = before.iter().filter_map(|row| row.tool_call_id.as_deref()).collect();
    let known_texts: BTreeSet<String> = before
        .iter()
        .filter(|row| row.is_tool() && row.tool_call_id.is_none())
        .map(|row| row.content.flat())
        .collect();
    let calls: BTreeMap<&str, &ToolCall> =
        rows.iter().flat_map(Row::call_list).map(|call| (call.id.as_str(), call)).collect();
    for row in rows.iter().filter(|row| row.is_tool()) {
        let text = row.content.flat();
        let id = row.tool_call_id.as_deref().filter(|id| !id.is_empty());
        if id.map_or_else(|| known_texts.contains(&text), |id| known.contains(id)) {
            continue;
        }
        let call = id.and_then(|id| calls.get(id).copied());
        let relevant = call.is_some_and(|call| matches!(call.name.as_str(), "memory" | "skill_manage"));
        if !calls.is_empty() && !relevant {
            continue;
        }
        let Some(result) =
            serde_json::from_str::<Value>(&text).ok().filter(|result| result["success"] == true)
        else {
            continue;
        };
        tell(&result, call, mode, &mut report);
    }
    report
}

fn tell(result: &Value, call: Option<&ToolCall>, mode: Mode, report: &mut Report) {
    let message = result["message"].as_str().unwrap_or_default();
    if result["staged"] == true {
        if result["proposal_staged"] == true && !message.is_empty() {
            report.say(message.to_owned(), OTHER);
        }
        return;
    }
    let arguments = call.and_then(ToolCall::parsed_arguments).unwrap_or_default();
    match call.map(|call| call.name.as_str()) {
        Some("skill_manage") => tell_skill(result, message, &arguments, mode, report),
        Some(_) => tell_memory(message, &arguments, mode, report),
        // Only the message is left to go by.
        None if mode == Mode::On && says(message, &["created", "updated"]) => {
            report.say(message.to_owned(), if message.starts_with("Skill") { SKILL } else { OTHER });
        }
        None => {}
    }
}

fn tell_skill(result: &Value, message: &str, arguments: &Value, mode: Mode, report: &mut Report) {
    if let Some(rows) = result["results"].as_array() {
        if result["operations_applied"] == 0 {
            return;
        }
        for row in rows.iter().filter(|row| row["success"] == true) {
            let done = row["action"].as_str().and_then(past);
            if let (Some(done), Some(name)) = (done, row["name"].as_str().filter(|name| !name.is_empty())) {
                let file = row["file_path"].as_str().map(|path| format!(" ({path})")).unwrap_or_default();
                report.say(format!("Skill '{name}' {done}{file}"), SKILL);
            }
        }
        return;
    }
    if mode == Mode::Verbose {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default();
        let mut line = if message.is_empty() {
            format!("Skill '{}': {}", text("name"), text("action"))
        } else {
            message.to_owned()
        };
        if text("action") == "patch" && !text("old_string").is_empty() {
            let (old, new) = (cut(text("old_string"), PATCH_CHARS), cut(text("new_string"), PATCH_CHARS));
            line.push_str(&format!(" \"{old}\" → \"{new}\""));
        }
        report.say(line, SKILL);
    } else if says(message, &["created", "updated", "patched", "written", "deleted"]) {
        report.say(message.to_owned(), SKILL);
    }
}

fn tell_memory(message: &str, arguments: &Value, mode: Mode, report: &mut Report) {
    let target = arguments["target"].as_str().unwrap_or("memory");
    let (label, learned) = match target {
        "memory" => ("Memory", MEMORY),
        "user" => ("User profile", MEMORY),
        other => (other, OTHER),
    };
    if mode == Mode::On {
        if says(message, &["added", "replaced", "removed", "applied", "created", "updated"]) {
            report.say(format!("{label} updated"), learned);
        }
        return;
    }
    let operations = arguments["operations"].as_array().filter(|list| !list.is_empty());
    let Some(operations) = operations else {
        let preview = preview(arguments).map(|preview| format!(": {preview}")).unwrap_or_default();
        let action = arguments["action"].as_str().unwrap_or("updated");
        report.say(format!("{label} {action}{preview}"), learned);
        return;
    };
    for operation in operations {
        if let Some(preview) = preview(operation) {
            let action = operation["action"].as_str().unwrap_or("updated");
            report.say(format!("{label} {action}: {preview}"), learned);
        }
    }
}

/// The text that one memory operation is about, cut short.
fn preview(operation: &Value) -> Option<String> {
    let text = |key: &str| operation[key].as_str().filter(|text| !text.is_empty());
    match operation["action"].as_str() {
        Some("remove") => text("old_text").or_else(|| text("content")).map(|text| cut(text, REMOVED_CHARS)),
        _ => text("content").or_else(|| text("new_text")).map(|text| cut(text, WRITTEN_CHARS)),
    }
}

fn says(message: &str, words: &[&str]) -> bool {
    let message = message.to_lowercase();
    words.iter().any(|word| message.contains(word))
}

/// What was done, of the actions of the tool for skills.
fn past(action: &str) -> Option<&'static str> {
    Some(match action {
        "create" => "created",
        "edit" => "updated",
        "patch" => "patched",
        "write_file" => "file written",
        "remove_file" => "file removed",
        "delete" => "deleted",
        _ => return None,
    })
}

fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        text.to_owned()
    } else {
        text.chars().take(max).chain(['…']).collect()
    }
}

//! The tools that the model is shown: names, descriptions, parameters.
//!
//! The table is sorted by name and frozen when a session begins, since it is the first thing that a prefix cache
//! compares. What a tool does is the dispatcher's business.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::wire::{Level, Segment};

/// One tool as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpec {
    /// Name on the wire.
    pub name: &'static str,
    /// The toolset that it belongs to.
    pub toolset: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Parameters as `name: type`; a trailing `?` on the name marks an optional one.
    pub parameters: &'static [(&'static str, &'static str)],
}

const fn tool(
    name: &'static str,
    toolset: &'static str,
    description: &'static str,
    parameters: &'static [(&'static str, &'static str)],
) -> ToolSpec {
    ToolSpec { name, toolset, description, parameters }
}

/// Every tool, sorted by name.
pub const SPECS: [ToolSpec; 17] = [
    tool(
        "cronjob_manage",
        "cronjob",
        "Create, list, pause, resume or remove scheduled jobs.",
        &[("action", "string"), ("name?", "string"), ("schedule?", "string"), ("prompt?", "string")],
    ),
    tool(
        "delegate_task",
        "delegation",
        "Hand a self-contained task to a child agent; only its summary comes back.",
        &[("goal", "string"), ("context?", "string"), ("tasks?", "array")],
    ),
    tool(
        "execute_code",
        "code_execution",
        "Run a short script; only what it prints comes back.",
        &[("code", "string")],
    ),
    tool(
        "memory",
        "memory",
        "Keep a small fact for later sessions, replace one, or remove one.",
        &[("action", "string"), ("target", "string"), ("content?", "string"), ("old_text?", "string")],
    ),
    tool(
        "patch",
        "file",
        "Replace a text in a file.",
        &[("path", "string"), ("old_string", "string"), ("new_string", "string")],
    ),
    tool("read_file", "file", "Read a file.", &[("path", "string")]),
    tool("search_files", "file", "Find lines in files.", &[("pattern", "string"), ("path?", "string")]),
    tool("send_message", "messaging", "Send a message to a chat.", &[("to", "string"), ("text", "string")]),
    tool(
        "session_search",
        "session_search",
        "Search earlier conversations.",
        &[("query", "string"), ("limit?", "integer")],
    ),
    tool(
        "skill_manage",
        "skills",
        "Create a skill, change one, or add a file to one.",
        &[
            ("action", "string"),
            ("name", "string"),
            ("content?", "string"),
            ("old_string?", "string"),
            ("new_string?", "string"),
        ],
    ),
    tool(
        "skill_view",
        "skills",
        "Load the body of a skill, or one of its files.",
        &[("name", "string"), ("file_path?", "string")],
    ),
    tool("skills_list", "skills", "List the skills.", &[]),
    tool("terminal", "terminal", "Run a shell command in the workspace.", &[("command", "string")]),
    tool("todo_list", "todo", "Keep the list of steps of the present task.", &[("todos", "array")]),
    tool("web_extract", "web", "Read web pages.", &[("urls", "array")]),
    tool("web_search", "web", "Search the web.", &[("query", "string")]),
    tool("write_file", "file", "Write a file.", &[("path", "string"), ("content", "string")]),
];

/// The tool of this name.
pub fn spec(name: &str) -> Option<&'static ToolSpec> {
    SPECS.iter().find(|spec| spec.name == name)
}

impl ToolSpec {
    /// The definition in the shape of Chat Completions.
    pub fn definition(&self) -> Value {
        let bare = |name: &str| name.trim_end_matches('?').to_owned();
        let properties: serde_json::Map<String, Value> =
            self.parameters.iter().map(|(name, kind)| (bare(name), json!({ "type": kind }))).collect();
        let required: Vec<&str> =
            self.parameters.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": { "type": "object", "properties": properties, "required": required },
            },
        })
    }
}

/// Every tool as a segment of a prompt, in the order of [`SPECS`]: sessions share the texts.
static SEGMENTS: LazyLock<Vec<Segment>> = LazyLock::new(|| {
    SPECS.iter().map(|spec| Segment::new(Level::Tools, spec.definition().to_string())).collect()
});

/// The tool table as segments of a prompt, in the order of `names`.
pub fn table(names: &[String]) -> Vec<Segment> {
    let place = |name: &String| SPECS.iter().position(|spec| spec.name == name);
    names.iter().filter_map(place).map(|place| SEGMENTS[place].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_scenarios_know_every_tool() {
        assert!(SPECS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut known = crate::scenario::TOOLS;
        known.sort_unstable();
        assert_eq!(known.to_vec(), SPECS.iter().map(|spec| spec.name).collect::<Vec<_>>());
    }
}

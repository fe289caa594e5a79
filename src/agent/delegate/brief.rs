//! What a child is told beside its goal: the end of its system prompt.

use serde_json::Value;

use super::Role;

/// What a brief is made of.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// What the parent gave the child to know.
    pub context: Option<&'a str>,
    /// JSON Schema that the answer must fit.
    pub schema: Option<&'a Value>,
    /// Directory of the parent's work.
    pub directory: &'a str,
    /// Text of the context files of that directory; empty for none.
    pub context_files: &'a str,
    /// What the child may become.
    pub role: Role,
    /// Its depth, and the greatest depth of all.
    pub depth: (u64, u64),
}

impl Brief<'_> {
    /// The text (Hermes tools/delegate_tool_progress.py:178). The goal is no part of it: that is the child's first
    /// message.
    pub fn text(&self) -> String {
        let mut parts = vec!["You do one piece of work that another agent has handed to you.".to_owned()];
        let context = [self.context.map(|text| text.trim_end().to_owned()), self.schema.map(contract)];
        let context: Vec<String> = context.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        if !context.is_empty() {
            parts.push(format!("What you have to know:\n{}", context.join("\n\n")));
        }
        parts.push(format!("Directory of the work: {}", self.directory));
        let files = self.context_files.trim();
        if !files.is_empty() {
            parts.push(format!("What the files of that directory ask of you holds here, too:\n\n{files}"));
        }
        parts.push(ENDING.to_owned());
        if self.role == Role::Orchestrator {
            let (depth, most) = self.depth;
            let own = if depth + 1 >= most { "cannot" } else { "can" };
            parts.push(format!(
                "You may hand independent parts of it on with `delegate_task`, but not the whole, and answer for \
                 what comes back. You are at depth {depth} of at most {most}; your own children {own} delegate."
            ));
        }
        parts.join("\n\n")
    }
}

const ENDING: &str = "Do it with your tools. Then answer shortly with what you did, what you found, which files you made \
                      or changed, and what went wrong: only that answer reaches the agent that asked. Take no path for \
                      given that nobody gave you.";

/// What a child is told of the form of its answer (Hermes tools/delegation_output_schema.py:45).
fn contract(schema: &Value) -> String {
    format!(
        "Your last answer is read by a machine: it must be one JSON value that fits this schema, with nothing before or \
         after it. One that does not fit is sent back once.\n{schema:#}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn leaf<'a>() -> Brief<'a> {
        Brief {
            context: None,
            schema: None,
            directory: "/workspace",
            context_files: "",
            role: Role::Leaf,
            depth: (1, 1),
        }
    }

    #[test]
    fn a_brief_holds_what_the_parent_gave_and_nothing_of_what_it_did_not() {
        let bare = leaf().text();
        assert!(bare.contains("/workspace") && !bare.contains("have to know") && !bare.contains("schema"));
        let schema = json!({ "type": "object" });
        let full = Brief {
            context: Some("The port is 8,443.\n"),
            schema: Some(&schema),
            context_files: "## AGENTS.md\nUse tabs.",
            ..leaf()
        };
        let text = full.text();
        let places = ["8,443", "\"type\": \"object\"", "/workspace", "Use tabs.", "went wrong"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} is missing")));
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn an_orchestrator_is_told_how_far_its_children_may_go() {
        let at = |depth| Brief { role: Role::Orchestrator, depth, ..leaf() }.text();
        assert!(at((1, 3)).contains("your own children can delegate"));
        assert!(at((1, 2)).contains("your own children cannot delegate"));
        assert!(!leaf().text().contains("delegate_task"));
    }
}

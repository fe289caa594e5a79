//! One operation on a skill: its arguments and their shape.
//!
//! Read from the tool's JSON once; everything behind works on these values. Never: an effect.

use serde_json::Value;

use super::refusal::{Reason, Refusal};

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make a skill.
    Create,
    /// Replace a text in a file, or write SKILL.md anew.
    Patch,
    /// Write SKILL.md anew; not advertised.
    Edit,
    /// Write a support file.
    WriteFile,
    /// Remove a support file.
    RemoveFile,
    /// Delete a skill.
    Delete,
    /// Anything else.
    Unknown(String),
}

impl Action {
    /// The action of that word.
    pub fn parse(word: &str) -> Self {
        match word {
            "create" => Self::Create,
            "patch" => Self::Patch,
            "edit" => Self::Edit,
            "write_file" => Self::WriteFile,
            "remove_file" => Self::RemoveFile,
            "delete" => Self::Delete,
            other => Self::Unknown(other.to_owned()),
        }
    }

    /// The word.
    pub fn word(&self) -> &str {
        match self {
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Edit => "edit",
            Self::WriteFile => "write_file",
            Self::RemoveFile => "remove_file",
            Self::Delete => "delete",
            Self::Unknown(word) => word,
        }
    }
}

/// One operation. Texts that are absent or null are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What it does; `None` when it does not say.
    pub action: Option<Action>,
    /// The skill, as named in the call; empty when it is not named.
    pub name: String,
    /// Category of a new skill, as given.
    pub category: Option<Value>,
    /// Whole SKILL.md.
    pub content: Option<String>,
    /// Path of a support file.
    pub file_path: Option<String>,
    /// Content of a support file.
    pub file_content: Option<String>,
    /// Text to be replaced.
    pub old_string: Option<String>,
    /// Text to replace it.
    pub new_string: Option<String>,
    /// Replace it everywhere.
    pub replace_all: bool,
    /// The skill that takes the content of a deleted one over.
    pub absorbed_into: Option<String>,
}

impl Operation {
    /// Reads the arguments of one operation.
    pub fn read(args: &Value) -> Self {
        let text = |key: &str| args.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            action: text("action").filter(|word| !word.is_empty()).map(|word| Action::parse(&word)),
            name: text("name").unwrap_or_default(),
            category: args.get("category").cloned(),
            content: text("content"),
            file_path: text("file_path"),
            file_content: text("file_content"),
            old_string: text("old_string"),
            new_string: text("new_string"),
            replace_all: args.get("replace_all").and_then(Value::as_bool).unwrap_or(false),
            absorbed_into: text("absorbed_into"),
        }
    }

    /// True when the operation writes SKILL.md anew.
    pub fn is_rewrite(&self) -> bool {
        match self.action {
            Some(Action::Edit) => true,
            Some(Action::Patch) => given(self.content.as_ref()),
            _ => false,
        }
    }

    /// Checks that the fields fit the action (Hermes tools/skill_manager_batch.py:21-83).
    ///
    /// # Errors
    /// The first field that is missing or too much.
    pub fn check_shape(&self) -> Result<(), Refusal> {
        let missing =
            |reason: Reason, what: &str| Err(Refusal::new(reason, format!("{what}{}", self.hint())));
        match self.action {
            Some(Action::Create | Action::Edit) if !given(self.content.as_ref()) => {
                missing(Reason::ContentRequired, "`content` must hold the whole SKILL.md")
            }
            Some(Action::WriteFile | Action::RemoveFile) if !given(self.file_path.as_ref()) => {
                missing(Reason::PathRequired, "`file_path` says which file")
            }
            Some(Action::WriteFile) if self.file_content.is_none() => {
                missing(Reason::FileContentRequired, "`file_content` must hold the file's text")
            }
            Some(Action::Patch) if given(self.content.as_ref()) => {
                if given(self.old_string.as_ref()) || self.new_string.is_some() {
                    return missing(
                        Reason::PatchShapeConflict,
                        "a patch has either `content` or a replacement",
                    );
                }
                Ok(())
            }
            Some(Action::Patch) if !given(self.old_string.as_ref()) => {
                missing(Reason::OldTextRequired, "`old_string` must hold the text to be replaced")
            }
            Some(Action::Patch) if self.new_string.is_none() => {
                missing(Reason::NewTextRequired, "`new_string` must hold the new text, empty to remove")
            }
            _ => Ok(()),
        }
    }

    /// Says where a text belongs that was given in a sibling's field.
    fn hint(&self) -> String {
        let (right, wrong): (&str, &[(&str, &Option<String>)]) = match self.action {
            Some(Action::Create | Action::Edit) => {
                ("content", &[("file_content", &self.file_content), ("new_string", &self.new_string)])
            }
            Some(Action::WriteFile) => {
                ("file_content", &[("content", &self.content), ("new_string", &self.new_string)])
            }
            Some(Action::Patch) => ("new_string", &[("file_content", &self.file_content)]),
            _ => return String::new(),
        };
        wrong
            .iter()
            .find(|(_, text)| given(text.as_ref()))
            .map_or_else(String::new, |(field, _)| format!("; the text in `{field}` belongs into `{right}`"))
    }
}

fn given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

/// A call of the tool: one operation, or several that succeed or fail together.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// One operation in the flat shape.
    Single(Box<Operation>),
    /// A list of operations, and the name for those that have none.
    Batch {
        /// Default name; empty when there is none.
        name: String,
        /// The operations; `None` when `operations` is no list.
        operations: Option<Vec<Operation>>,
    },
}

impl Request {
    /// Reads the arguments of a call.
    pub fn read(args: &Value) -> Self {
        match args.get("operations") {
            None | Some(Value::Null) => Self::Single(Box::new(Operation::read(args))),
            Some(list) => Self::Batch {
                name: args.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                operations: list.as_array().map(|items| items.iter().map(Operation::read).collect()),
            },
        }
    }
}

impl Request {
    /// The operations of the call, each with its name filled in.
    pub fn operations(&self) -> Vec<Operation> {
        match self {
            Self::Single(operation) => vec![(**operation).clone()],
            Self::Batch { name, operations } => operations
                .iter()
                .flatten()
                .map(|operation| {
                    let mut operation = operation.clone();
                    if operation.name.is_empty() {
                        operation.name.clone_from(name);
                    }
                    operation
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_says_where_a_misplaced_text_belongs() {
        let operation = Operation::read(&json!({"action": "create", "name": "a", "file_content": "x"}));
        let refusal = operation.check_shape().unwrap_err();
        assert!(refusal.message.contains("`file_content` belongs into `content`"), "{refusal}");
    }
}

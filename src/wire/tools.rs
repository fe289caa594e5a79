//! The tools of the runtime as a model sees them: names, descriptions, arguments.
//!
//! The one table of what can be called: the runtime sends it, a scenario is checked against it. What a tool does is the
//! dispatcher's business.

use serde_json::{Value, json};

/// What an argument holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// True or false.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any object.
    Object,
    /// A list of texts.
    Texts,
    /// A list of objects.
    Records(&'static [Parameter]),
}

/// One argument of a tool, or one field of an object in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// True when no call goes without it.
    pub required: bool,
    /// What the name does not say; empty for nothing.
    pub about: &'static str,
    /// False where the tool reads it and the model is not told of it: another name of one that it is told of.
    pub shown: bool,
}

impl Parameter {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }
}

const fn needs(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: true, about: "", shown: true }
}

const fn may(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, about: "", shown: true }
}

const fn hidden(name: &'static str) -> Parameter {
    Parameter { shown: false, ..may(name, Kind::Text) }
}

/// One tool as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpec {
    /// Name on the wire.
    pub name: &'static str,
    /// The toolset that it belongs to.
    pub toolset: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Every argument that the tool reads.
    pub parameters: &'static [Parameter],
}

const fn tool(
    name: &'static str,
    toolset: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
) -> ToolSpec {
    ToolSpec { name, toolset, description, parameters }
}

/// The arguments of a call that makes one change with these fields, or several as `operations`; `M` is their number.
const fn one_or_several<const M: usize>(
    beside: &'static [Parameter],
    change: &'static [Parameter],
    several: &'static str,
) -> [Parameter; M] {
    let operations = may("operations", Kind::Records(change)).about(several);
    let mut all = [operations; M];
    let mut place = 0;
    while place < beside.len() + change.len() {
        all[place] = if place < beside.len() {
            beside[place]
        } else {
            Parameter { required: false, ..change[place - beside.len()] }
        };
        place += 1;
    }
    all
}

const ALL_OR_NONE: &str = "several changes: all of them or none";
const MEMORY_TARGET: [Parameter; 1] = [needs("target", Kind::Word(&["memory", "user"]))];
const MEMORY_CHANGE: [Parameter; 5] = [
    needs("action", Kind::Word(&["add", "replace", "remove"])),
    may("content", Kind::Text).about("the new text"),
    may("old_text", Kind::Text).about("a part of the entry that is meant"),
    hidden("new_text"),
    hidden("matched_entry"),
];
const MEMORY: [Parameter; 7] = one_or_several(&MEMORY_TARGET, &MEMORY_CHANGE, ALL_OR_NONE);
const MEMORY_PATCH_CHANGE: [Parameter; 5] = [
    needs("action", Kind::Word(&["add", "patch", "remove"])),
    MEMORY_CHANGE[1],
    MEMORY_CHANGE[2],
    MEMORY_CHANGE[3],
    MEMORY_CHANGE[4],
];
const MEMORY_PATCH: [Parameter; 7] = one_or_several(&MEMORY_TARGET, &MEMORY_PATCH_CHANGE, ALL_OR_NONE);

/// The memory tool where it offers `patch` instead of `replace`.
pub const MEMORY_WITH_PATCH: ToolSpec = tool(
    "memory",
    "memory",
    "Keep a small fact for later sessions, change a part of one, or remove one.",
    &MEMORY_PATCH,
);

const SKILL_CHANGE: [Parameter; 10] = [
    needs("action", Kind::Word(&["create", "patch", "write_file", "remove_file", "delete"])),
    needs("name", Kind::Text),
    may("category", Kind::Text),
    may("content", Kind::Text).about("SKILL.md as a whole"),
    may("old_string", Kind::Text),
    may("new_string", Kind::Text),
    may("replace_all", Kind::Switch),
    may("file_path", Kind::Text).about("a file of the skill other than SKILL.md"),
    may("file_content", Kind::Text),
    may("absorbed_into", Kind::Text).about("on delete: the skill that has taken the content over"),
];
const SKILL: [Parameter; 11] = one_or_several(&[], &SKILL_CHANGE, "several changes, one after another");

/// One delegated task.
const DELEGATED: [Parameter; 5] = [
    needs("goal", Kind::Text),
    may("context", Kind::Text).about("all that the child has to know beside its goal"),
    may("output_schema", Kind::Object).about("JSON Schema of the answer"),
    may("images", Kind::Texts),
    may("group", Kind::Text).about("tasks of one group are answered together"),
];

/// What may become of a step of a task.
pub const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];

const TODO_ITEM: [Parameter; 4] = [
    needs("id", Kind::Text),
    needs("content", Kind::Text),
    needs("status", Kind::Word(&STATUSES)),
    may("parent", Kind::Text),
];

/// Every tool, sorted by name.
pub const SPECS: [ToolSpec; 17] = [
    tool(
        "cronjob_manage",
        "cronjob",
        "Create, list, update, pause, resume, run or remove scheduled jobs.",
        &[
            needs("action", Kind::Word(&["create", "list", "update", "pause", "resume", "run", "remove"])),
            may("name", Kind::Text),
            may("job_id", Kind::Text),
            hidden("id"),
            may("schedule", Kind::Text),
            may("prompt", Kind::Text),
            may("skills", Kind::Texts),
            may("repeat", Kind::Whole).about("how often it runs; for ever when absent"),
            may("deliver", Kind::Text).about("where its answers go"),
            may("reason", Kind::Text).about("on pause: why"),
        ],
    ),
    tool(
        "delegate_task",
        "delegation",
        "Hand self-contained tasks to child agents, which know nothing of this conversation; only their summaries come back.",
        &[
            may("goal", Kind::Text).about("a single task"),
            DELEGATED[1],
            DELEGATED[2],
            may("tasks", Kind::Records(&DELEGATED)).about("several tasks"),
        ],
    ),
    tool(
        "execute_code",
        "code_execution",
        "Run a short script; only what it prints comes back.",
        &[needs("code", Kind::Text)],
    ),
    tool("memory", "memory", "Keep a small fact for later sessions, replace one, or remove one.", &MEMORY),
    tool(
        "patch",
        "file",
        "Replace a text in a file.",
        &[needs("path", Kind::Text), needs("old_string", Kind::Text), needs("new_string", Kind::Text)],
    ),
    tool("read_file", "file", "Read a file.", &[needs("path", Kind::Text)]),
    tool(
        "search_files",
        "file",
        "Find lines in files.",
        &[needs("pattern", Kind::Text), may("path", Kind::Text)],
    ),
    tool(
        "send_message",
        "messaging",
        "Send a message to a chat.",
        &[needs("to", Kind::Text), needs("text", Kind::Text)],
    ),
    tool(
        "session_search",
        "session_search",
        "Search earlier conversations, read one, or look around one of its messages.",
        &[
            may("query", Kind::Text).about("the newest conversations when absent"),
            may("limit", Kind::Whole),
            may("sort", Kind::Word(&["newest", "oldest"])),
            may("detail", Kind::Word(&["adaptive", "full"])),
            may("after", Kind::Text).about("only conversations that began then or later"),
            may("before", Kind::Text),
            may("role_filter", Kind::Text).about("roles, separated by commas"),
            may("exclude_session_ids", Kind::Texts),
            may("session_id", Kind::Text).about("the conversation to read"),
            may("around_message_id", Kind::Whole),
            may("window", Kind::Whole).about("messages on each side"),
            may("profile", Kind::Text),
        ],
    ),
    tool("skill_manage", "skills", "Create a skill, change or delete one, or write a file of one.", &SKILL),
    tool(
        "skill_view",
        "skills",
        "Load the body of a skill, or one of its files.",
        &[needs("name", Kind::Text), may("file_path", Kind::Text)],
    ),
    tool("skills_list", "skills", "List the skills.", &[]),
    tool("terminal", "terminal", "Run a shell command in the workspace.", &[needs("command", Kind::Text)]),
    tool(
        "todo_list",
        "todo",
        "Write the list of steps of the present task, or read it.",
        &[
            may("todos", Kind::Records(&TODO_ITEM)).about("the list is only read when absent"),
            may("merge", Kind::Switch).about("change and add items by their id, and keep the others"),
        ],
    ),
    tool("web_extract", "web", "Read web pages.", &[needs("urls", Kind::Texts)]),
    tool("web_search", "web", "Search the web.", &[needs("query", Kind::Text)]),
    tool("write_file", "file", "Write a file.", &[needs("path", Kind::Text), needs("content", Kind::Text)]),
];

/// The tool of this name.
pub fn spec(name: &str) -> Option<&'static ToolSpec> {
    SPECS.iter().find(|spec| spec.name == name)
}

/// The JSON Schema of an object with these fields.
fn object(fields: &[Parameter]) -> Value {
    let shown = fields.iter().filter(|field| field.shown);
    let properties: serde_json::Map<String, Value> =
        shown.map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

impl Parameter {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Whole => json!({ "type": "integer" }),
            Kind::Switch => json!({ "type": "boolean" }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Object => json!({ "type": "object" }),
            Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Records(fields) => json!({ "type": "array", "items": object(fields) }),
        };
        if !self.about.is_empty() {
            schema["description"] = self.about.into();
        }
        schema
    }
}

impl ToolSpec {
    /// The definition in the shape of Chat Completions.
    pub fn definition(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": object(self.parameters),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(SPECS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    /// Every schema within a schema.
    fn schemas(of: &Value) -> Vec<&Value> {
        let inner = of["properties"].as_object().into_iter().flat_map(|fields| fields.values());
        let inner = inner.chain(of.get("items")).flat_map(schemas);
        std::iter::once(of).chain(inner).collect()
    }

    #[test]
    fn every_list_says_what_it_holds_and_every_required_field_is_one() {
        let mut lists = 0;
        for spec in SPECS.iter().chain([&MEMORY_WITH_PATCH]) {
            let definition = spec.definition();
            for schema in schemas(&definition["function"]["parameters"]) {
                let is_list = schema["type"] == "array";
                lists += usize::from(is_list);
                assert_eq!(is_list, schema["items"].is_object(), "{}: {schema}", spec.name);
                for field in schema["required"].as_array().into_iter().flatten() {
                    assert!(
                        schema["properties"][field.as_str().unwrap()].is_object(),
                        "{}: {field}",
                        spec.name
                    );
                }
            }
        }
        assert!(lists >= 8, "{lists}");
    }
}

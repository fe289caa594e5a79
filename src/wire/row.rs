//! Conversation rows.
//!
//! A row keeps what it does not know in `extra`, so that nothing is lost between reading and writing. Keys that begin
//! with `_` are private to the runtime and never reach a provider.

use serde_json::{Map, Value, json};

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The system prompt.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// Anything else, or nothing; such rows are dropped before sending.
    Other(Option<String>),
}

impl Role {
    /// The word on the wire.
    pub fn word(&self) -> &str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(word) => word.as_deref().unwrap_or(""),
        }
    }

    /// The role of a word.
    pub fn of(word: &str) -> Self {
        match word {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            other => Self::Other(Some(other.to_owned())),
        }
    }
}

/// What a row says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The key is missing.
    Absent,
    /// The key is null.
    Null,
    /// Plain text.
    Text(String),
    /// A list of parts.
    Parts(Vec<Value>),
    /// Something a provider would refuse; kept as it is.
    Other(Value),
}

impl Content {
    /// The text, if it is plain text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The parts, if it is a list.
    pub fn parts(&self) -> Option<&[Value]> {
        match self {
            Self::Parts(parts) => Some(parts),
            _ => None,
        }
    }

    /// All text in it, parts joined without separator; empty when there is none.
    pub fn flat(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.iter().filter_map(part_text).collect(),
            _ => String::new(),
        }
    }

    /// True when there is nothing in it: absent, null, empty text, empty list.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Absent | Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
            Self::Other(_) => false,
        }
    }

    /// Content from the value of a `content` key.
    pub fn of(value: Option<&Value>) -> Self {
        match value {
            None => Self::Absent,
            Some(Value::Null) => Self::Null,
            Some(Value::String(text)) => Self::Text(text.clone()),
            Some(Value::Array(parts)) => Self::Parts(parts.clone()),
            Some(other) => Self::Other(other.clone()),
        }
    }

    /// The value of the `content` key; `None` when the key is missing.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Null => Some(Value::Null),
            Self::Text(text) => Some(Value::from(text.as_str())),
            Self::Parts(parts) => Some(Value::Array(parts.clone())),
            Self::Other(other) => Some(other.clone()),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The text of one part: a plain string, or an object with a `text`.
pub fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text").and_then(Value::as_str))
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCall {
    /// The id that the result answers; empty when the model gave none.
    pub id: String,
    /// Name of the tool; empty when the model gave none.
    pub name: String,
    /// Arguments as the model wrote them, usually JSON text.
    pub arguments: String,
    /// Other keys of the call object, such as `call_id`.
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// A call with these arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), extra: Map::new() }
    }

    /// Reads a call object; `None` when the value is no object.
    pub fn from_json(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = object.get("function");
        let arguments = match function.and_then(|f| f.get("arguments")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let extra = object
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "id" | "type" | "function"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let name = text(function.and_then(|f| f.get("name")));
        Some(Self { id: text(object.get("id")), name, arguments, extra })
    }

    /// The call object in the usual shape.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "id": self.id, "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        });
        if let Some(object) = object.as_object_mut() {
            object.extend(self.extra.clone());
        }
        object
    }

    /// The arguments as JSON; `None` when they do not parse. Empty text is an empty object.
    pub fn parsed_arguments(&self) -> Option<Value> {
        if self.arguments.trim().is_empty() {
            return Some(json!({}));
        }
        serde_json::from_str(&self.arguments).ok()
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
    /// Calls of an assistant row; `None` when the key is missing.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The call that a tool row answers.
    pub tool_call_id: Option<String>,
    /// Name of the tool that a tool row comes from.
    pub name: Option<String>,
    /// Every other key, private ones included.
    pub extra: Map<String, Value>,
}

impl Row {
    /// A row with this role and text.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: None,
            tool_call_id: None,
            name: None,
            extra: Map::new(),
        }
    }

    /// A user row.
    pub fn user(text: impl Into<Content>) -> Self {
        Self::new(Role::User, text)
    }

    /// An assistant row without calls.
    pub fn assistant(text: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// An assistant row with calls.
    pub fn calls(text: impl Into<Content>, calls: Vec<ToolCall>) -> Self {
        Self { tool_calls: Some(calls), ..Self::assistant(text) }
    }

    /// A tool row.
    pub fn result(call_id: impl Into<String>, name: impl Into<String>, text: impl Into<Content>) -> Self {
        Self { tool_call_id: Some(call_id.into()), name: Some(name.into()), ..Self::new(Role::Tool, text) }
    }

    /// True for a tool row.
    pub fn is_tool(&self) -> bool {
        self.role == Role::Tool
    }

    /// True for a user row.
    pub fn is_user(&self) -> bool {
        self.role == Role::User
    }

    /// True for an assistant row.
    pub fn is_assistant(&self) -> bool {
        self.role == Role::Assistant
    }

    /// The calls of the row; empty when it has none.
    pub fn call_list(&self) -> &[ToolCall] {
        self.tool_calls.as_deref().unwrap_or_default()
    }

    /// True when the row calls at least one tool.
    pub fn has_calls(&self) -> bool {
        !self.call_list().is_empty()
    }

    /// True when a private or other key is set to `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.extra.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Sets a private or other key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(key.to_owned(), value.into());
        self
    }

    /// Reads a message object; keys that are missing stay missing.
    pub fn from_json(value: &Value) -> Self {
        let empty = Map::new();
        let object = value.as_object().unwrap_or(&empty);
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let role = object.get("role").and_then(Value::as_str).map_or(Role::Other(None), Role::of);
        let tool_calls = match object.get("tool_calls") {
            Some(Value::Array(calls)) => Some(calls.iter().filter_map(ToolCall::from_json).collect()),
            _ => None,
        };
        let known = ["role", "content", "tool_calls", "tool_call_id", "name"];
        let extra = object
            .iter()
            .filter(|(key, value)| {
                !known.contains(&key.as_str())
                    || (*key == "tool_calls" && !value.is_array() && !value.is_null())
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Self {
            role,
            content: Content::of(object.get("content")),
            tool_calls,
            tool_call_id: text("tool_call_id"),
            name: text("name"),
            extra,
        }
    }

    /// The whole row as an object, private keys included.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("role".to_owned(), Value::from(self.role.word()));
        if let Some(content) = self.content.value() {
            object.insert("content".to_owned(), content);
        }
        if let Some(calls) = &self.tool_calls {
            let calls = calls.iter().map(ToolCall::to_json).collect();
            object.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        if let Some(id) = &self.tool_call_id {
            object.insert("tool_call_id".to_owned(), Value::from(id.as_str()));
        }
        if let Some(name) = &self.name {
            object.insert("name".to_owned(), Value::from(name.as_str()));
        }
        object.extend(self.extra.clone());
        Value::Object(object)
    }

    /// The row as a provider sees it: without private keys.
    pub fn to_wire(&self) -> Value {
        let mut value = self.to_json();
        if let Some(object) = value.as_object_mut() {
            object.retain(|key, _| !key.starts_with('_'));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_as_it_was_read() {
        for text in [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"},"call_id":"c"}]}"#,
            r#"{"role":"tool","content":[{"type":"text","text":"x"}],"tool_call_id":"a","name":"t","_db_persisted":true}"#,
            r#"{"role":"assistant"}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Row::from_json(&value).to_json().to_string(), text);
        }
    }

    #[test]
    fn private_keys_never_reach_the_wire() {
        let row = Row::user("x").with("_compressed_summary", true);
        assert_eq!(row.to_wire().to_string(), r#"{"role":"user","content":"x"}"#);
    }
}

//! A look at one message: who speaks, which calls it makes, which it answers.
//!
//! Knows the shapes of Chat Completions and of Anthropic's Messages, so that the laws of history hold for both.

use serde::Deserialize;

/// What a message shows at a glance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Role on the wire.
    pub role: String,
    /// Ids of the calls that it makes.
    pub calls: Vec<String>,
    /// Ids of the calls that it answers.
    pub answers: Vec<String>,
    /// True when it also says something besides calls and answers.
    pub speaks: bool,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: serde_json::Value,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
}

/// Looks at a message given as JSON text; `None` when it is none.
pub fn glance(text: &str) -> Option<Glance> {
    let message: Message = serde_json::from_str(text).ok()?;
    let mut seen = Glance { role: message.role, ..Glance::default() };
    seen.calls.extend(message.tool_calls.into_iter().flatten().map(|call| call.id));
    seen.answers.extend(message.tool_call_id.iter().map(|id| id.split('|').next().unwrap_or(id).to_owned()));
    let is_result = !seen.answers.is_empty();
    match &message.content {
        serde_json::Value::String(text) => seen.speaks = !is_result && !text.is_empty(),
        serde_json::Value::Array(blocks) => {
            for block in blocks {
                let id = |key: &str| {
                    block.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
                };
                match block.get("type").and_then(serde_json::Value::as_str) {
                    Some("tool_use") => seen.calls.push(id("id")),
                    Some("tool_result") => seen.answers.push(id("tool_use_id")),
                    _ => seen.speaks = true,
                }
            }
        }
        _ => {}
    }
    for id in &mut seen.calls {
        if let Some((half, _)) = id.split_once('|') {
            *id = half.to_owned();
        }
    }
    Some(seen)
}

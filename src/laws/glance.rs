//! A look at one message: who speaks, which calls it makes, which it answers.
//!
//! Knows the shapes of Chat Completions, of Anthropic's Messages and of items of the Responses interface, so that the
//! laws of history hold for all of them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

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
    /// True when it is an item: one piece of what other interfaces send as one message.
    pub item: bool,
}

/// A message as far as it is looked at: contents stay text unless they are blocks, since most of what is sent is content.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: String,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
}

/// A block of a message's content; what is of another shape is nothing but speech.
#[derive(Deserialize, Default)]
struct Block<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    tool_use_id: String,
}

/// A call or an answer of the Responses interface.
fn item(kind: &str, id: &str) -> Glance {
    let answers = kind.ends_with("_output");
    let role = if answers { "tool" } else { "assistant" };
    let ids = vec![id.to_owned()];
    let (calls, answers) = if answers { (Vec::new(), ids) } else { (ids, Vec::new()) };
    Glance { role: role.to_owned(), calls, answers, speaks: false, item: true }
}

/// Looks at a message given as JSON text; `None` when it is none.
pub fn glance(text: &str) -> Option<Glance> {
    let message: Message = serde_json::from_str(text).ok()?;
    if let (Some(kind), Some(id)) = (&message.kind, &message.call_id) {
        return Some(item(kind, id));
    }
    let mut seen = Glance { role: message.role, item: message.kind.is_some(), ..Glance::default() };
    seen.calls.extend(message.tool_calls.into_iter().flatten().map(|call| call.id));
    seen.answers.extend(message.tool_call_id.iter().map(|id| id.split('|').next().unwrap_or(id).to_owned()));
    let is_result = !seen.answers.is_empty();
    let content = message.content.map_or("null", RawValue::get);
    if content.starts_with('"') {
        seen.speaks = !is_result && content != "\"\"";
    }
    if content.starts_with('[') {
        let blocks: Vec<&RawValue> = serde_json::from_str(content).ok()?;
        for block in blocks {
            let block: Block<'_> = serde_json::from_str(block.get()).unwrap_or_default();
            match &*block.kind {
                "tool_use" => seen.calls.push(block.id),
                "tool_result" => seen.answers.push(block.tool_use_id),
                _ => seen.speaks = true,
            }
        }
    }
    for id in &mut seen.calls {
        if let Some((half, _)) = id.split_once('|') {
            *id = half.to_owned();
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_the_responses_interface_call_and_answer() {
        let call = glance(r#"{"type":"function_call","call_id":"c1","name":"t","arguments":"{}"}"#).unwrap();
        let answer = glance(r#"{"type":"function_call_output","call_id":"c1","output":"x"}"#).unwrap();
        assert_eq!((call.role.as_str(), call.calls, call.item), ("assistant", vec!["c1".to_owned()], true));
        assert_eq!((answer.role.as_str(), answer.answers), ("tool", vec!["c1".to_owned()]));
        assert!(glance(r#"{"type":"message","role":"user","content":[]}"#).unwrap().item);
        assert!(!glance(r#"{"role":"user","content":"x"}"#).unwrap().item);
    }
}

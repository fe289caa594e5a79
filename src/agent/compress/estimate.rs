//! What a text, a row, a list and a request cost.
//!
//! Two estimators agree in kind: the tail price of single rows, with which cuts are placed, and the list estimate,
//! with which a whole history is compared with the threshold. Never asks a provider's tokenizer.

use serde_json::{Map, Value, json};

use crate::policy::{Compress, SizeUnit};
use crate::wire::row::part_text;
use crate::wire::{Content, Role, Row, python};

/// Tokens of a text: a quarter of its characters, dense scripts one token each (Hermes agent/model_metadata.py:2410).
///
/// ```
/// use hermes_lab::agent::compress::estimate::text_tokens;
/// assert_eq!((text_tokens(""), text_tokens("abc"), text_tokens("你好")), (0, 1, 2));
/// ```
pub fn text_tokens(text: &str) -> u64 {
    if text.is_ascii() {
        return (text.len() as u64).div_ceil(4);
    }
    let (mut dense, mut bytes) = (0u64, 0u64);
    for c in text.chars() {
        if is_dense(c) {
            dense += 1;
        } else {
            bytes += c.len_utf8() as u64;
        }
    }
    dense + bytes.div_ceil(4)
}

fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11ff | 0x2e80..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff00..=0xffef)
}

/// Number of code points of a text.
pub fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// True for a part that carries an image.
pub fn is_image_part(part: &Value) -> bool {
    matches!(part.get("type").and_then(Value::as_str), Some("image" | "image_url" | "input_image"))
}

/// True when the content is a list with an image in it.
pub fn has_image(content: &Content) -> bool {
    content.parts().is_some_and(|parts| parts.iter().any(is_image_part))
}

/// The bytes that were sent for a row, if they are kept apart from its content.
fn sent_text(row: &Row) -> Option<&str> {
    if !matches!(row.role, Role::User | Role::Assistant) {
        return None;
    }
    row.extra.get("api_content").and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Prices rows in the unit of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Sizer<'a> {
    policy: &'a Compress,
    /// The route replays the thinking of every row, not of the newest one alone.
    pub replays_thinking: bool,
}

impl<'a> Sizer<'a> {
    /// A sizer for a route that replays only the newest thinking.
    pub fn new(policy: &'a Compress) -> Self {
        Self { policy, replays_thinking: false }
    }

    /// Size of a text.
    pub fn text(&self, text: &str) -> u64 {
        match self.policy.unit {
            SizeUnit::Tokens => text_tokens(text),
            SizeUnit::Characters => chars(text),
        }
    }

    /// Tail price of one row; `thinking` counts its replayed thinking (Hermes agent/context_compressor.py:1293).
    pub fn row(&self, row: &Row, thinking: bool) -> u64 {
        if self.policy.unit == SizeUnit::Characters {
            return row_characters(row);
        }
        let content = sent_text(row).map_or_else(|| self.content(&row.content), text_tokens);
        let calls: u64 = row.call_list().iter().map(|call| text_tokens(&python::repr(&call.to_json()))).sum();
        let replay = replayed_items(row);
        let thought = if thinking { thinking_chars(row) / 4 } else { 0 };
        content + calls + replay + thought + self.policy.row_price
    }

    /// Tail prices of all rows; thinking counts for the newest assistant row, or for all on a replaying route.
    pub fn rows(&self, rows: &[Row]) -> Vec<u64> {
        let newest = rows.iter().rposition(Row::is_assistant);
        rows.iter()
            .enumerate()
            .map(|(index, row)| self.row(row, self.replays_thinking || newest == Some(index)))
            .collect()
    }

    /// Size of a whole history (Hermes agent/model_metadata.py:2430).
    pub fn list(&self, rows: &[Row]) -> u64 {
        if self.policy.unit == SizeUnit::Characters {
            return rows.iter().map(row_characters).sum();
        }
        rows.iter().map(|row| self.list_row(row)).sum()
    }

    /// Size of a whole request: system prompt, history and tool definitions.
    pub fn request(&self, system: &str, rows: &[Row], tools: &[Value]) -> u64 {
        let tools: u64 = tools.iter().map(tool_chars).sum();
        let tools = if self.policy.unit == SizeUnit::Tokens { tools.div_ceil(4) } else { tools };
        self.text(system) + self.list(rows) + tools
    }

    /// Size of the next request from the last real usage and the rows appended since (Hermes agent/usage_anchor.py:108).
    ///
    /// `appended` are the rows after the reply that the usage belonged to.
    pub fn anchored(&self, prompt_tokens: u64, completion_tokens: u64, appended: &[Row]) -> u64 {
        prompt_tokens + completion_tokens + self.list(appended)
    }

    fn content(&self, content: &Content) -> u64 {
        match content {
            Content::Text(text) => text_tokens(text),
            Content::Parts(parts) => {
                let sum: u64 = parts
                    .iter()
                    .map(|part| {
                        if is_image_part(part) {
                            4 * self.policy.image_price
                        } else {
                            part_text(part).map_or(0, chars)
                        }
                    })
                    .sum();
                sum / 4
            }
            _ => 0,
        }
    }

    fn list_row(&self, row: &Row) -> u64 {
        let mut images = 0;
        let mut reduced = match row.to_wire() {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        for key in
            ["api_content", "codex_reasoning_items", "codex_message_items", "timestamp", "display_kind"]
        {
            reduced.remove(key);
        }
        if let Some(text) = sent_text(row) {
            reduced.insert("content".to_owned(), Value::from(text));
        }
        if let Some(Value::Array(parts)) = reduced.get_mut("content") {
            for part in parts.iter_mut().filter(|part| is_image_part(part)) {
                images += 1;
                *part = json!({"type": "image"});
            }
        }
        text_tokens(&python::repr(&Value::Object(reduced))) + images * self.policy.image_price
    }
}

fn row_characters(row: &Row) -> u64 {
    match &row.content {
        Content::Text(text) => chars(text),
        Content::Parts(parts) => parts.iter().filter_map(part_text).map(chars).sum(),
        _ => 0,
    }
}

fn replayed_items(row: &Row) -> u64 {
    let mut length = 0;
    if let Some(items) = row.extra.get("codex_reasoning_items").and_then(Value::as_array) {
        let mut items = items.clone();
        for item in &mut items {
            if let Some(cipher) = item.get_mut("encrypted_content") {
                *cipher = Value::from("");
            }
        }
        length += chars(&Value::Array(items).to_string());
    }
    if let Some(items) = row.extra.get("codex_message_items").filter(|items| items.is_array()) {
        length += chars(&items.to_string());
    }
    length / 4
}

fn thinking_chars(row: &Row) -> u64 {
    if !row.is_assistant() {
        return 0;
    }
    let text = |key: &str| {
        row.extra.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(chars)
    };
    text("reasoning_content").or_else(|| text("reasoning")).unwrap_or_else(|| {
        let details = row.extra.get("reasoning_details").and_then(Value::as_array);
        details.into_iter().flatten().map(detail_chars).sum()
    })
}

fn detail_chars(detail: &Value) -> u64 {
    ["thinking", "text", "summary"]
        .iter()
        .find_map(|key| detail.get(key).and_then(Value::as_str))
        .map_or(0, chars)
}

fn tool_chars(tool: &Value) -> u64 {
    let function = tool.get("function").unwrap_or(tool);
    let text = |key: &str| function.get(key).and_then(Value::as_str).map_or(0, chars);
    let parameters = function.get("parameters").or_else(|| function.get("input_schema"));
    text("name") + text("description") + parameters.map_or(0, |value| chars(&value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ideographs_outside_the_dense_blocks_are_priced_by_bytes() {
        assert_eq!(text_tokens("\u{20000}"), 1);
        assert_eq!(text_tokens("\u{20000}\u{20000}a"), 3);
    }

    #[test]
    fn characters_count_only_content() {
        let policy = Compress { unit: SizeUnit::Characters, ..Compress::default() };
        let row = Row::user("héllo");
        assert_eq!(Sizer::new(&policy).row(&row, true), 5);
        assert_eq!(Sizer::new(&policy).list(&[row.clone(), row]), 10);
    }

    #[test]
    fn a_list_with_an_image_costs_the_image_price() {
        let policy = Compress::default();
        let row = Row::user(Content::Parts(vec![json!({"type": "image_url", "image_url": {"url": "x"}})]));
        assert_eq!(Sizer::new(&policy).row(&row, false), 1_510);
    }
}

//! Transcripts of Claude Code: what was said, with token counts; not what was sent.
//!
//! Lines with one request id are one request. A sidechain is a conversation of its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::audit::prompt::Shape;
use crate::audit::read::wrapped::time_of;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::{Grown, Record};
use crate::audit::usage;
use crate::world::Millis;

#[derive(Debug, Default)]
struct Lane {
    grown: Grown,
    request: String,
    asked_at: Option<Millis>,
}

#[derive(Debug, Default)]
pub(super) struct ClaudeCode {
    lanes: BTreeMap<String, Lane>,
}

impl Reader for ClaudeCode {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(error) => {
                sink.skip(line, format!("not JSON: {error}"));
                return;
            }
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let side = value.get("isSidechain").and_then(Value::as_bool) == Some(true);
        let session = text("sessionId");
        let name = if side { format!("{session}/{}", side_name(&value)) } else { session.to_owned() };
        let at = time_of(text("timestamp"));
        let lane = self.lanes.entry(name.clone()).or_default();
        match text("type") {
            "user" => {
                lane.asked_at = at;
                if value.get("isCompactSummary").and_then(Value::as_bool) == Some(true) {
                    lane.grown.compacted = true;
                }
                grow(&mut lane.grown, value.pointer("/message/content"));
            }
            "assistant" => {
                if let Some(record) = lane.answer(&value, line, at, name) {
                    sink.put(&record, &[]);
                } else {
                    sink.other();
                }
                grow(&mut lane.grown, value.pointer("/message/content"));
            }
            "system" if text("subtype") == "compact_boundary" => lane.grown.compacted = true,
            _ => sink.other(),
        }
    }
}

impl Lane {
    /// The request that an answer's first line stands for.
    fn answer(&mut self, value: &Value, line: u64, at: Option<Millis>, name: String) -> Option<Record> {
        let id = value
            .get("requestId")
            .or_else(|| value.pointer("/message/id"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let model = value.pointer("/message/model").and_then(Value::as_str).unwrap_or_default();
        if model == "<synthetic>" || !id.is_empty() && id == self.request {
            return None;
        }
        id.clone_into(&mut self.request);
        let failed = value.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true);
        Some(Record {
            line,
            // The request left when the user's part was written; an answer after an answer has its own time only.
            at: self.asked_at.take().or(at),
            done_at: at,
            shape: Some(Shape::Anthropic),
            conversation: (!name.is_empty()).then_some(name),
            model: Some(model.to_owned()),
            usage: value.pointer("/message/usage").and_then(usage::read),
            failed,
            grown: Some(std::mem::take(&mut self.grown)),
            ..Record::default()
        })
    }
}

fn side_name(value: &Value) -> &str {
    ["agentId", "parentToolUseID", "slug"]
        .iter()
        .find_map(|name| value.get(*name).and_then(Value::as_str))
        .unwrap_or("sidechain")
}

/// Counts what a message adds to the prompt.
pub(super) fn grow(grown: &mut Grown, content: Option<&Value>) {
    match content {
        Some(Value::String(text)) => {
            grown.blocks += 1;
            grown.bytes += text.len() as u64;
        }
        Some(Value::Array(blocks)) => {
            for block in blocks {
                grown.blocks += 1;
                if block.get("type").and_then(Value::as_str) == Some("tool_result") {
                    grown.answers += 1;
                }
                grown.bytes += size(block);
            }
        }
        _ => {}
    }
}

/// Bytes of the texts in a value.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(object) => object.values().map(size).sum(),
        _ => 4,
    }
}

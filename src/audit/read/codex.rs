//! Rollouts of Codex CLI: items of the conversation and running token counts.

use serde_json::Value;

use crate::audit::prompt::Shape;
use crate::audit::read::claude_code::size;
use crate::audit::read::wrapped::time_of;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::{Grown, Record};
use crate::audit::usage::Usage;

#[derive(Debug, Default)]
pub(super) struct Codex {
    session: String,
    model: String,
    grown: Grown,
    counted: Option<Value>,
}

impl Reader for Codex {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(error) => {
                sink.skip(line, format!("not JSON: {error}"));
                return;
            }
        };
        let payload = value.get("payload").unwrap_or(&value);
        let word = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match word(&value, "type").as_str() {
            "session_meta" => self.session = word(payload, "id"),
            "turn_context" => self.model = word(payload, "model"),
            "compacted" => self.grown.compacted = true,
            "response_item" => {
                self.grown.blocks += 1;
                self.grown.bytes += size(payload);
                if word(payload, "type").ends_with("_output") {
                    self.grown.answers += 1;
                }
            }
            "event_msg" if word(payload, "type") == "token_count" => {
                let total = payload.pointer("/info/total_token_usage").cloned();
                let last = payload.pointer("/info/last_token_usage");
                // The same counts are repeated with rate limits.
                if total.is_none() || total == self.counted {
                    sink.other();
                    return;
                }
                self.counted = total;
                let record = Record {
                    line,
                    at: time_of(&word(&value, "timestamp")),
                    shape: Some(Shape::Responses),
                    conversation: (!self.session.is_empty()).then(|| self.session.clone()),
                    model: Some(self.model.clone()),
                    usage: last.and_then(counts),
                    grown: Some(std::mem::take(&mut self.grown)),
                    ..Record::default()
                };
                sink.put(&record, &[]);
            }
            _ => sink.other(),
        }
    }
}

fn counts(value: &Value) -> Option<Usage> {
    let count = |name: &str| value.get(name).and_then(Value::as_u64).map(|count| count.min(1_000_000_000));
    let input = count("input_tokens")?;
    let read = count("cached_input_tokens").unwrap_or(0).min(input);
    Some(Usage { fresh: input - read, read, output: count("output_tokens").unwrap_or(0), ..Usage::default() })
}

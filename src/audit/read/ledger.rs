//! Ledgers of this lab: requests as segments, with what the cache model answered.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;
use crate::audit::usage::Usage;
use crate::ledger::{Event, What};
use crate::wire::{Level, Segment};

/// A request that waits for its answer, which carries the token counts.
#[derive(Debug)]
struct Waiting {
    record: Record,
}

#[derive(Debug, Default)]
pub(super) struct LedgerReader {
    requests: BTreeMap<u64, Vec<Segment>>,
    waiting: BTreeMap<u64, Waiting>,
    begun: bool,
}

impl Reader for LedgerReader {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        if !self.begun {
            self.begun = true;
            return;
        }
        let event: Event = match serde_json::from_slice(bytes) {
            Ok(event) => event,
            Err(error) => {
                sink.skip(line, format!("no event of a ledger: {error}"));
                return;
            }
        };
        match event.what {
            What::Request(request) => {
                let kept = usize::try_from(request.kept).unwrap_or(usize::MAX);
                let mut segments = self.requests.get(&request.base).cloned().unwrap_or_default();
                segments.truncate(kept);
                segments.extend(request.added);
                let record = Record {
                    line,
                    at: Some(event.at),
                    conversation: Some(format!("{}/{}", event.session, request.lane.word())),
                    event: (!request.planned.is_empty()).then(|| "after_compaction".to_owned()),
                    own_body: Some(body(&segments)),
                    ..Record::default()
                };
                self.requests.insert(request.id, segments);
                // Only what later requests are written against is needed again.
                while self.requests.len() > 256 {
                    self.requests.pop_first();
                }
                self.waiting.insert(request.id, Waiting { record });
            }
            What::Response(response) => {
                let Some(mut waiting) = self.waiting.remove(&response.request) else { return };
                waiting.record.failed = !response.refused.is_empty();
                waiting.record.usage = Some(Usage {
                    fresh: response.usage.uncached,
                    read: response.usage.read,
                    write_5m: response.usage.write_5m,
                    write_1h: response.usage.write_1h,
                    write_30m: 0,
                    output: response.usage.output,
                });
                sink.put(&waiting.record, &[]);
            }
            _ => sink.other(),
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            sink.put(&waiting.record, &[]);
        }
    }
}

/// The segments as one body; a segment that is no JSON is a text.
fn body(segments: &[Segment]) -> Vec<u8> {
    let of = |level: Level| -> Vec<Value> {
        segments
            .iter()
            .filter(|segment| segment.level == level)
            .map(|segment| {
                serde_json::from_str::<Value>(&segment.text)
                    .ok()
                    .filter(|value| value.is_object() || value.is_string())
                    .unwrap_or_else(|| Value::from(&*segment.text))
            })
            .collect()
    };
    let (tools, system, messages) = (of(Level::Tools), of(Level::System), of(Level::Messages));
    let mut object = serde_json::Map::new();
    if !tools.is_empty() {
        object.insert("tools".to_owned(), tools.into());
    }
    if !system.is_empty() {
        object.insert("instructions".to_owned(), system.into());
    }
    object.insert("messages".to_owned(), messages.into());
    serde_json::to_vec(&Value::Object(object)).unwrap_or_default()
}

//! HTTP archives: each entry whose body is a request of a known shape.

use serde_json::Value;

use crate::audit::prompt::Shape;
use crate::audit::read::wrapped::{time_of, usage_in_stream};
use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;
use crate::audit::usage::Usage;
use crate::world::Millis;

pub(super) struct Har;

impl Reader for Har {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            sink.skip(line, "not JSON");
            return;
        };
        let url = value.pointer("/request/url").and_then(Value::as_str).unwrap_or_default();
        let Some(body) = value.pointer("/request/postData/text").and_then(Value::as_str) else {
            sink.other();
            return;
        };
        let shape = shape_of(url);
        if shape.is_none() && !(body.contains("\"messages\"") || body.contains("\"contents\"")) {
            sink.other();
            return;
        }
        let at = value.get("startedDateTime").and_then(Value::as_str).and_then(time_of);
        let took = value.get("time").and_then(Value::as_f64).filter(|took| (0.0..1e12).contains(took));
        #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
        let done_at = at.zip(took).map(|(at, took)| at + took as Millis);
        let status = value.pointer("/response/status").and_then(Value::as_u64).unwrap_or(200);
        let answer = value.pointer("/response/content/text").and_then(Value::as_str).unwrap_or_default();
        let record = Record {
            line,
            at,
            done_at,
            shape,
            route: host_of(url).map(str::to_owned),
            own_body: Some(body.as_bytes().to_vec()),
            usage: usage_of(answer),
            failed: status >= 400,
            ..Record::default()
        };
        sink.put(&record, &[]);
    }
}

fn usage_of(answer: &str) -> Option<Usage> {
    usage_in_stream(answer.as_bytes())
}

fn shape_of(url: &str) -> Option<Shape> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.ends_with("/messages") {
        return Some(Shape::Anthropic);
    }
    if path.ends_with("/chat/completions") {
        return Some(Shape::Chat);
    }
    if path.ends_with("/responses") {
        return Some(Shape::Responses);
    }
    path.to_ascii_lowercase().contains("generatecontent").then_some(Shape::Gemini)
}

fn host_of(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split('/').next()
}

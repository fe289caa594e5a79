//! Raw request bodies and requests wrapped by a gateway or a proxy, one JSON object a line.

use std::borrow::Cow;
use std::ops::Range;

use crate::audit::json::{self, Fields};
use crate::audit::prompt::Shape;
use crate::audit::read::{Reader, Sink};
use crate::audit::record::Record;
use crate::audit::usage::{self, Usage};
use crate::world::Millis;

/// Names under which a wrapper holds the body.
pub(super) const REQUEST: &[&str] = &["request", "request_body", "requestBody", "body"];

pub(super) struct Wrapped;

impl Reader for Wrapped {
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        match wrapped(line, bytes) {
            Ok(Some(record)) => sink.put(&record, bytes),
            // The header of a cassette says how to read the lines behind it, and is no request.
            Ok(None) => {}
            Err(fault) => sink.skip(line, fault.to_string()),
        }
    }
}

/// Reads a wrapper, or a bare body, without looking into the body; `None` for the header of a cassette.
fn wrapped(line: u64, bytes: &[u8]) -> Result<Option<Record>, json::JsonFault> {
    let start = json::skip_space(bytes, 0);
    let mut fields = Fields::of(bytes, start)?;
    let mut record = Record { line, ..Record::default() };
    let mut routes: Vec<String> = Vec::new();
    let (mut bare, mut header, mut duration, mut request) = (false, false, None, None);
    while let Some((key, value)) = fields.next_field()? {
        match key {
            b"messages" | b"input" | b"contents" => bare = true,
            b"cassette" => header = true,
            b"request" | b"request_body" | b"requestBody" | b"body" => request = Some(value),
            b"response" | b"response_body" | b"responseBody" => {
                respond(&mut record, bytes, &value, &mut routes);
            }
            b"usage" | b"usageMetadata" => record.usage = usage_at(bytes, &value).or(record.usage),
            b"at" | b"timestamp" | b"start_time" | b"startTime" | b"started_at" | b"time" | b"ts"
            | b"created_at" => {
                record.at = record.at.or_else(|| time(bytes, &value));
            }
            b"done_at" | b"end_time" | b"endTime" | b"completed_at" => record.done_at = time(bytes, &value),
            b"duration_ms" | b"latency_ms" => duration = json::number(bytes, &value),
            b"conversation" | b"session_id" | b"sessionId" | b"conversation_id" | b"session"
            | b"thread_id" => {
                record.conversation = record.conversation.or_else(|| text(bytes, &value));
            }
            b"provider" => {
                let name = text(bytes, &value);
                record.shape = name.as_deref().and_then(Shape::of_name);
                routes.extend(name);
            }
            b"route" | b"base_url" | b"endpoint" | b"upstream" | b"deployment" | b"region" => {
                routes.extend(text(bytes, &value));
            }
            b"model" => record.model = text(bytes, &value),
            b"role" | b"lane" | b"purpose" => record.role = text(bytes, &value),
            b"event" => record.event = text(bytes, &value),
            b"status" | b"status_code" => {
                record.failed |= json::number(bytes, &value).is_some_and(|status| status >= 400);
            }
            b"error" => record.failed |= !matches!(bytes[value.start], b'n' | b'f'),
            _ => {}
        }
    }
    if let (Some(at), Some(duration), None) = (record.at, duration, record.done_at) {
        record.done_at = Millis::try_from(duration).ok().and_then(|duration| at.checked_add(duration));
    }
    record.route = (!routes.is_empty()).then(|| routes.join(" "));
    match request {
        Some(value) if bytes[value.start] == b'{' => record.body = value,
        Some(value) if bytes[value.start] == b'"' => {
            record.own_body = text(bytes, &value).map(String::into_bytes);
        }
        _ if bare => {
            // Times and token counts may stand beside the body's own fields.
            record.body = start..bytes.len();
        }
        None if header => return Ok(None),
        _ => {}
    }
    Ok(Some(record))
}

fn respond(record: &mut Record, bytes: &[u8], value: &Range<usize>, routes: &mut Vec<String>) {
    if bytes[value.start] == b'{' {
        let kind = json::field(bytes, value, "type").and_then(|kind| text(bytes, &kind));
        let error = json::field(bytes, value, "error");
        record.failed |= kind.as_deref() == Some("error")
            || error.is_some_and(|error| !matches!(bytes[error.start], b'n' | b'f'));
        for name in ["status", "status_code"] {
            let status = json::field(bytes, value, name).and_then(|status| json::number(bytes, &status));
            record.failed |= status.is_some_and(|status| status >= 400);
        }
        if let Some(upstream) = json::field(bytes, value, "provider") {
            routes.extend(text(bytes, &upstream));
        }
    }
    record.usage = usage_in(bytes, value).or(record.usage);
}

/// Token counts in a response: an object, a text of one, or a stream of events.
pub(super) fn usage_in(bytes: &[u8], value: &Range<usize>) -> Option<Usage> {
    match bytes.get(value.start)? {
        b'{' => {
            for name in ["usage", "usageMetadata", "token_usage"] {
                if let Some(found) = json::field(bytes, value, name).and_then(|span| usage_at(bytes, &span)) {
                    return Some(found);
                }
            }
            ["message", "response", "body"]
                .iter()
                .find_map(|name| usage_in(bytes, &json::field(bytes, value, name)?))
        }
        b'"' => usage_in_stream(text(bytes, value)?.as_bytes()),
        b'[' => usage_in_stream(&bytes[value.clone()]),
        _ => None,
    }
}

/// The fullest usage object anywhere in a stream of events.
pub(super) fn usage_in_stream(text: &[u8]) -> Option<Usage> {
    let mut best: Option<Usage> = None;
    for name in ["\"usage\"", "\"usageMetadata\""] {
        for found in memchr::memmem::find_iter(text, name.as_bytes()) {
            let colon = json::skip_space(text, found + name.len());
            if text.get(colon) != Some(&b':') {
                continue;
            }
            let start = json::skip_space(text, colon + 1);
            let Ok(end) = json::skip_value(text, start) else { continue };
            if let Some(usage) = usage_at(text, &(start..end))
                && best.is_none_or(|best| usage.prompt() >= best.prompt())
            {
                best = Some(usage);
            }
        }
    }
    best
}

pub(super) fn usage_at(bytes: &[u8], value: &Range<usize>) -> Option<Usage> {
    let value = serde_json::from_slice(bytes.get(value.clone())?).ok()?;
    usage::read(&value)
}

pub(super) fn text(bytes: &[u8], value: &Range<usize>) -> Option<String> {
    json::text(bytes, value).map(Cow::into_owned).filter(|text| !text.is_empty())
}

/// An instant: ISO 8601 (without an offset: UTC), or seconds, milliseconds, microseconds, nanoseconds since 1970.
pub(super) fn time(bytes: &[u8], value: &Range<usize>) -> Option<Millis> {
    if let Some(text) = json::text(bytes, value) {
        return time_of(&text);
    }
    let number: f64 = std::str::from_utf8(bytes.get(value.clone())?).ok()?.parse().ok()?;
    time_of_number(number)
}

/// An instant written as a text.
pub(crate) fn time_of(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(found) = text.parse::<jiff::Timestamp>() {
        return Some(found.as_millisecond());
    }
    if let Ok(found) = text.parse::<jiff::civil::DateTime>() {
        return Some(jiff::tz::TimeZone::UTC.to_timestamp(found).ok()?.as_millisecond());
    }
    time_of_number(text.parse().ok()?)
}

#[expect(clippy::cast_possible_truncation, reason = "checked to lie within the range of instants")]
fn time_of_number(number: f64) -> Option<Millis> {
    let millis = match number {
        n if !(1e8..1e20).contains(&n) => return None,
        n if n < 1e11 => n * 1e3,
        n if n < 1e14 => n,
        n if n < 1e17 => n / 1e3,
        n => n / 1e6,
    };
    Some(millis as Millis)
}

//! Replies as HTTP answers: plain or streamed, with the pauses and the end that the script wants.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::audit::json;
use crate::audit::prompt::Shape;
use crate::cache::usage::Parts;
use crate::policy::CacheModel;
use crate::scenario::ReplySpec;
use crate::serve::body::{ReplyBody, Step};
use crate::serve::cassette::Exchange;
use crate::serve::refuse::Refused;
use crate::serve::spoken::Spoken;
use crate::serve::{chat, messages, replay, responses};

/// What the server sends back.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: Cow<'static, str>,
    pub(super) body: ReplyBody,
    pub(super) request_id: String,
    pub(super) retry_after: Option<u64>,
}

/// What becomes of a request.
pub(super) enum Fate {
    /// It is answered.
    Answer(Answer),
    /// It is never answered; the connection is held for this long.
    Hang(Duration),
}

impl Answer {
    /// A JSON value.
    pub(super) fn json(status: u16, value: &Value, request: u64) -> Self {
        Self::text(status, "application/json", value.to_string(), request)
    }

    /// A text.
    pub(super) fn text(status: u16, content_type: &'static str, text: String, request: u64) -> Self {
        Self {
            status,
            content_type: content_type.into(),
            body: ReplyBody::whole(text),
            request_id: format!("req_{request}"),
            retry_after: None,
        }
    }

    /// An error in the shape of a protocol.
    pub(super) fn error(shape: Shape, refused: &Refused, request: u64) -> Self {
        let answer = Self::json(refused.status, &refused.body(shape), request);
        Self { retry_after: refused.retry_after, ..answer }
    }

    /// A recorded answer.
    pub(super) fn recorded(exchange: &Exchange, paced: bool, request: u64) -> Self {
        Self {
            status: exchange.status,
            content_type: exchange.content_type.clone().into(),
            body: replay::body(exchange, paced),
            request_id: format!("req_{request}"),
            retry_after: exchange.retry_after,
        }
    }

    /// A reply of the model.
    pub(super) fn reply(
        shape: Shape,
        flags: Flags,
        spoken: &Spoken,
        script: &ReplySpec,
        extra: &Map<String, Value>,
        request: u64,
    ) -> Self {
        let dropped = script.fault.is_some();
        if flags.stream {
            let events = match shape {
                Shape::Anthropic => messages::stream(spoken),
                Shape::Responses => responses::stream(spoken),
                Shape::Chat | Shape::Gemini => chat::stream(spoken, flags.include_usage, extra),
            };
            return Self {
                status: 200,
                content_type: "text/event-stream".into(),
                body: ReplyBody::pieces(steps(events, script)),
                request_id: format!("req_{request}"),
                retry_after: None,
            };
        }
        let value = match shape {
            Shape::Anthropic => messages::plain(spoken),
            Shape::Responses => responses::plain(spoken),
            Shape::Chat | Shape::Gemini => chat::plain(spoken, extra),
        };
        let mut answer = Self::json(200, &value, request);
        let slow = script.pause_ms.map(|pause| Step::Pause(Duration::from_millis(pause)));
        if dropped {
            // A plain answer breaks off in its middle.
            let text = value.to_string();
            let mut half = text.len() / 2;
            while !text.is_char_boundary(half) {
                half += 1;
            }
            let bytes = Bytes::from(text).slice(..half);
            answer.body = ReplyBody::pieces(vec![Step::Bytes(bytes), Step::Cut]);
        } else if let Some(pause) = slow {
            answer.body = ReplyBody::pieces(vec![pause, Step::Bytes(value.to_string().into())]);
        }
        answer
    }
}

/// The events of a stream with the script's pauses, up to where it is dropped.
fn steps(events: Vec<(String, usize)>, script: &ReplySpec) -> Vec<Step> {
    let dropped = script.fault.is_some();
    let pause = script.pause_ms.map(Duration::from_millis);
    if !dropped && pause.is_none() {
        let all: String = events.into_iter().map(|(event, _)| event).collect();
        return vec![Step::Bytes(Bytes::from(all))];
    }
    let total: usize = events.iter().map(|(_, brings)| brings).sum();
    let end = script.after_chars.map_or(total / 2, |after| usize::try_from(after).unwrap_or(usize::MAX));
    let mut steps = Vec::new();
    let mut sent = 0;
    for (event, brings) in events {
        if dropped && brings > 0 && sent >= end {
            break;
        }
        if let Some(pause) = pause.filter(|_| brings > 0) {
            steps.push(Step::Pause(pause));
        }
        steps.push(Step::Bytes(Bytes::from(event)));
        sent += brings;
    }
    if dropped {
        steps.push(Step::Cut);
    }
    steps
}

/// Fields by which single providers report what was read.
pub(super) fn extra(model: CacheModel, parts: &Parts) -> Map<String, Value> {
    let mut extra = Map::new();
    match model {
        CacheModel::DeepSeek2024 | CacheModel::DeepSeek2026 => {
            extra.insert("prompt_cache_hit_tokens".to_owned(), parts.read.into());
            extra.insert("prompt_cache_miss_tokens".to_owned(), (parts.prompt() - parts.read).into());
        }
        CacheModel::Moonshot => {
            extra.insert("cached_tokens".to_owned(), parts.read.into());
        }
        _ => {}
    }
    extra
}

/// What a body asks for beside the prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: bool,
}

impl Flags {
    pub(super) fn of(body: &[u8]) -> Self {
        let mut flags = Self::default();
        let Ok(mut fields) = json::Fields::of(body, json::skip_space(body, 0)) else { return flags };
        while let Ok(Some((key, value))) = fields.next_field() {
            match key {
                b"stream" => flags.stream = &body[value] == b"true",
                b"max_tokens" => flags.max_tokens = body[value.start].is_ascii_digit(),
                b"stream_options" => {
                    flags.include_usage = json::field(body, &value, "include_usage")
                        .is_some_and(|include| &body[include] == b"true");
                }
                _ => {}
            }
        }
        flags
    }
}

//! Paths, methods, headers, and bodies within their limits.

use std::io;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::audit::prompt::Shape;
use crate::serve::body::ReplyBody;
use crate::serve::desk::Shared;
use crate::serve::refuse::{self, Refused};
use crate::serve::render::{Answer, Fate};
use crate::serve::server::Busy;

/// Limits of one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) body_max: usize,
    pub(super) body_timeout: Duration,
}

type Reply = hyper::Response<ReplyBody>;

/// When the models of the cards were made, for clients that want a number: the first day of 2026.
const CREATED: i64 = 1_767_225_600;

/// Answers one request. An error closes the connection without an answer.
pub(super) async fn handle(desk: Shared, request: Request<Incoming>) -> io::Result<Reply> {
    let _busy = Busy::on(&desk);
    let limits = desk.borrow().limits();
    let path = request.uri().path().to_owned();
    let fate = match (request.method(), path.as_str()) {
        (&Method::POST, "/v1/chat/completions") => ask(&desk, limits, request, Shape::Chat).await,
        (&Method::POST, "/v1/messages") => ask(&desk, limits, request, Shape::Anthropic).await,
        (&Method::POST, "/v1/responses") => ask(&desk, limits, request, Shape::Responses).await,
        (&Method::POST, "/v1/messages/count_tokens") => match body(request, limits).await? {
            Ok(bytes) => Fate::Answer(desk.borrow_mut().count(&bytes)),
            Err(refused) => Fate::Answer(desk.borrow_mut().turned_away(Shape::Anthropic, &refused)),
        },
        (&Method::GET, "/v1/models") => Fate::Answer(models(&desk, anthropic(&request))),
        (&Method::GET, path) if path.starts_with("/v1/models/") => {
            Fate::Answer(model(&desk, &path["/v1/models/".len()..], anthropic(&request)))
        }
        (&Method::GET, "/_lab/report") => Fate::Answer(report(&desk, wants_page(&request))),
        (&Method::GET, "/_lab/report.html") => Fate::Answer(report(&desk, true)),
        (method, path) if is_model_path(path) || path == "/v1/messages/count_tokens" => {
            let message = format!("{method} is not allowed here; expected POST");
            let refused = Refused::of(405, "invalid_request_error", message).code("method_not_allowed");
            Fate::Answer(desk.borrow_mut().turned_away(shape_of(path), &refused))
        }
        (method, path) => {
            // Clients that look for the kind of a server ask for many things; none of them is a mistake.
            let refused = Refused::of(404, "not_found_error", format!("unknown path: {method} {path}"));
            Fate::Answer(desk.borrow().error(shape_of(path), &refused))
        }
    };
    match fate {
        Fate::Answer(answer) => Ok(reply(answer)),
        Fate::Hang(time) => {
            tokio::time::sleep(time).await;
            Err(io::Error::other("never answered, as the scenario has it"))
        }
    }
}

fn report(desk: &Shared, page: bool) -> Answer {
    let desk = desk.borrow();
    if page {
        return Answer::text(200, "text/html; charset=utf-8", desk.page(), desk.requests());
    }
    Answer::json(200, &desk.report(), desk.requests())
}

pub(super) fn reply(answer: Answer) -> Reply {
    let mut reply = Reply::new(answer.body);
    *reply.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    let content_type = HeaderValue::from_str(&answer.content_type);
    headers
        .insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    if answer.content_type.starts_with("text/event-stream") {
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    }
    if let Ok(id) = HeaderValue::from_str(&answer.request_id) {
        headers.insert("request-id", id.clone());
        headers.insert("x-request-id", id);
    }
    if let Some(seconds) = answer.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

async fn ask(desk: &Shared, limits: Limits, request: Request<Incoming>, shape: Shape) -> Fate {
    let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    if let Some(refused) = wrong_type(&request) {
        return Fate::Answer(desk.borrow_mut().turned_away(shape, &refused));
    }
    match body(request, limits).await {
        Ok(Ok(bytes)) => desk.borrow_mut().take(shape, &path, &bytes),
        Ok(Err(refused)) => Fate::Answer(desk.borrow_mut().turned_away(shape, &refused)),
        Err(_) => Fate::Hang(Duration::ZERO),
    }
}

fn wrong_type(request: &Request<Incoming>) -> Option<Refused> {
    let given = request.headers().get(CONTENT_TYPE)?;
    let word = given.to_str().unwrap_or_default().to_ascii_lowercase();
    let fine = word.split(';').next().is_some_and(|kind| {
        let kind = kind.trim();
        kind == "application/json" || kind.ends_with("+json")
    });
    (!fine).then(|| {
        Refused::of(415, "invalid_request_error", "unsupported content type; expected application/json")
            .code("unsupported_content_type")
    })
}

/// The whole body within its limits.
async fn body(request: Request<Incoming>, limits: Limits) -> io::Result<Result<Vec<u8>, Refused>> {
    let (head, incoming) = request.into_parts();
    collect(&head.headers, incoming, limits).await
}

/// The whole body behind a head, within its limits.
pub(super) async fn collect(
    headers: &HeaderMap,
    mut incoming: Incoming,
    limits: Limits,
) -> io::Result<Result<Vec<u8>, Refused>> {
    let too_large = || {
        let message = format!("the body is longer than {} bytes", limits.body_max);
        Refused::of(413, "invalid_request_error", message).code("request_too_large")
    };
    if let Some(encoding) = headers.get("content-encoding")
        && encoding != "identity"
    {
        let message = "bodies are taken without content encoding";
        return Ok(Err(Refused::of(415, "invalid_request_error", message).code("unsupported_encoding")));
    }
    let announced = headers.get("content-length").and_then(|length| length.to_str().ok());
    let announced: usize = announced.and_then(|length| length.parse().ok()).unwrap_or(0);
    if announced > limits.body_max {
        return Ok(Err(too_large()));
    }
    let collect = async {
        // What is announced is believed up to a point; the rest is believed when it comes.
        let mut bytes = Vec::with_capacity(announced.min(1 << 20));
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(io::Error::other)?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limits.body_max {
                return Ok(Err(too_large()));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Ok(bytes))
    };
    match tokio::time::timeout(limits.body_timeout, collect).await {
        Ok(collected) => collected,
        Err(_) => Ok(Err(Refused::of(408, "invalid_request_error", "the body did not arrive in time"))),
    }
}

fn wants_page(request: &Request<Incoming>) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn anthropic(request: &Request<Incoming>) -> bool {
    request.headers().contains_key("anthropic-version") || request.headers().contains_key("x-api-key")
}

/// True for the paths that a model answers on.
pub(super) fn is_model_path(path: &str) -> bool {
    matches!(path, "/v1/chat/completions" | "/v1/messages" | "/v1/responses")
}

/// In whose shape a path is answered.
pub(super) fn shape_of(path: &str) -> Shape {
    if path.starts_with("/v1/messages") { Shape::Anthropic } else { Shape::Chat }
}

fn models(desk: &Shared, anthropic: bool) -> Answer {
    let desk = desk.borrow();
    let (names, window) = desk.models();
    let known = [crate::serve::MOCK_MODEL.to_owned()];
    let names = if names.is_empty() { &known[..] } else { names };
    let cards: Vec<Value> = names.iter().map(|name| card(name, window, anthropic)).collect();
    let mut list = json!({"object": "list", "data": cards});
    if anthropic {
        list["has_more"] = false.into();
        list["first_id"] = names.first().map_or(Value::Null, |name| name.as_str().into());
        list["last_id"] = names.last().map_or(Value::Null, |name| name.as_str().into());
    }
    Answer::json(200, &list, desk.requests())
}

fn model(desk: &Shared, name: &str, anthropic: bool) -> Answer {
    let desk = desk.borrow();
    let (names, window) = desk.models();
    if names.is_empty() || names.iter().any(|known| known == name) {
        return Answer::json(200, &card(name, window, anthropic), desk.requests());
    }
    desk.error(if anthropic { Shape::Anthropic } else { Shape::Chat }, &refuse::no_model(name))
}

fn card(name: &str, window: u64, anthropic: bool) -> Value {
    let mut card = json!({
        "id": name, "object": "model", "created": CREATED, "owned_by": "hermes-lab", "context_length": window,
    });
    if anthropic {
        card["type"] = "model".into();
        card["display_name"] = name.into();
        card["created_at"] = "2026-01-01T00:00:00Z".into();
        card["max_input_tokens"] = window.into();
    }
    card
}

//! A proxy that passes requests on to a real provider and writes down what was said.
//!
//! Headers of the client go upstream and nowhere else; of the answer's headers the client gets what it needs to read it.
//! An exchange is written when its answer has ended, so a cassette holds whole exchanges only, and cut ones marked so.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a cassette grows in a file, in real time"
)]

use std::cell::RefCell;
use std::fs::File;
use std::future::Future;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHORIZATION, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Request, Response, Uri};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::serve::body::ReplyBody;
use crate::serve::cassette::{CassetteHeader, Exchange, FORMAT, usage_of};
use crate::serve::refuse::Refused;
use crate::serve::render::Answer;
use crate::serve::route::{self, Limits};
use crate::serve::server::{Busy, Work};
use crate::serve::upstream::{Authority, reason, target, without_credentials};
use crate::serve::{Options, normal, replay, upstream};

/// Bytes of an answer that are written down; a longer one is passed on whole and not recorded.
const REPLY_MAX: usize = 64 << 20;

/// Headers that belong to one connection and are not passed on.
const OWN: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    // What is compressed cannot be read when it is played back.
    ACCEPT_ENCODING,
];

/// How a recording is set up.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The provider: scheme, host, and perhaps a base path.
    pub upstream: Uri,
    /// Authorities that are trusted beside the public ones, as they stand in a PEM file.
    pub upstream_ca: Vec<Authority>,
    /// File that is written.
    pub cassette: PathBuf,
    /// Digests instead of request bodies.
    pub hash_bodies: bool,
    /// Address and limits; what concerns scripts is not looked at.
    pub limits: Options,
}

/// What a recording left behind.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Exchanges in the cassette.
    pub exchanges: u64,
    /// Requests that were passed on and not written down: cards, probes.
    pub passed: u64,
    /// Requests that the provider could not be asked.
    pub failed: u64,
    /// Why the cassette could not be written, if so.
    pub write_failed: Option<io::Error>,
}

/// A recording under way.
pub(super) struct Desk {
    client: upstream::HttpClient,
    upstream: Uri,
    hash: bool,
    limits: Limits,
    tape: Tape,
    /// Requests under way.
    in_flight: usize,
}

struct Tape {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    numbers: u64,
    recorded: Recorded,
}

type Shared = Rc<RefCell<Desk>>;

impl Desk {
    /// Begins a cassette.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub(super) fn new(options: &RecordOptions) -> io::Result<Self> {
        let RecordOptions { upstream, upstream_ca, cassette, hash_bodies: hash, limits } = options;
        let client = upstream::client(upstream_ca)?;
        let limits = Limits { body_max: limits.body_max, body_timeout: limits.body_timeout };
        let mut part = cassette.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut tape = Tape {
            path: cassette.to_owned(),
            out: BufWriter::new(File::create(&part)?),
            part,
            numbers: 0,
            recorded: Recorded::default(),
        };
        tape.line(&CassetteHeader {
            cassette: FORMAT,
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            upstream: without_credentials(upstream),
            hashed: *hash,
        });
        Ok(Self { client, upstream: upstream.clone(), hash: *hash, limits, tape, in_flight: 0 })
    }
}

impl Work for Desk {
    type End = Recorded;

    fn handle(
        desk: Shared,
        request: Request<Incoming>,
    ) -> impl Future<Output = io::Result<Response<ReplyBody>>> + 'static {
        handle(desk, request)
    }

    fn flush(&mut self) {
        self.tape.flush();
    }

    fn in_flight(&mut self) -> &mut usize {
        &mut self.in_flight
    }

    /// Gives the cassette its name.
    fn finish(mut self) -> Recorded {
        self.tape.flush();
        let mut recorded = self.tape.recorded;
        if recorded.write_failed.is_none() {
            recorded.write_failed = std::fs::rename(&self.tape.part, &self.tape.path).err();
        }
        recorded
    }
}

impl Tape {
    fn line(&mut self, value: &impl serde::Serialize) {
        let mut line = serde_json::to_vec(value).expect("an exchange has text keys only");
        line.push(b'\n');
        if self.recorded.write_failed.is_none()
            && let Err(error) = self.out.write_all(&line)
        {
            self.recorded.write_failed = Some(error);
        }
    }

    fn flush(&mut self) {
        if self.recorded.write_failed.is_none()
            && let Err(error) = self.out.flush()
        {
            self.recorded.write_failed = Some(error);
        }
    }
}

/// Passes one request on.
async fn handle(desk: Shared, request: Request<Incoming>) -> io::Result<Response<ReplyBody>> {
    let _busy = Busy::on(&desk);
    let path = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let shape = route::shape_of(&path);
    let models = request.method() == hyper::Method::POST && route::is_model_path(request.uri().path());
    let (parts, incoming) = request.into_parts();
    let limits = desk.borrow().limits;
    let body = match route::collect(&parts.headers, incoming, limits).await? {
        Ok(body) => body,
        Err(refused) => return Ok(route::reply(Answer::error(shape, &refused, 0))),
    };
    let (client, target) = {
        let desk = desk.borrow();
        (desk.client.clone(), target(&desk.upstream, &path))
    };
    let mut forward = Request::builder().method(parts.method).uri(target).body(Full::from(body.clone()));
    if let Ok(forward) = &mut forward {
        *forward.headers_mut() = passed_on(&parts.headers);
    }
    let forward = forward.map_err(io::Error::other)?;
    let (begun, at) = (Instant::now(), now());
    let response = match client.request(forward).await {
        Ok(response) => response,
        Err(error) => {
            desk.borrow_mut().tape.recorded.failed += 1;
            let message = format!("the provider cannot be reached: {}", reason(&error));
            let refused = Refused::of(502, "api_error", message).code("upstream_unreachable");
            return Ok(route::reply(Answer::error(shape, &refused, 0)));
        }
    };
    let (head, incoming) = response.into_parts();
    let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let exchange = models.then(|| {
        let (request, parts, key) = written_down(&body, desk.borrow().hash);
        Exchange {
            n: 0,
            at,
            path,
            key,
            request,
            parts,
            status: head.status.as_u16(),
            content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after: text(RETRY_AFTER).and_then(|seconds| seconds.parse().ok()),
            head_ms: millis(begun),
            reply: Vec::new(),
            cut: false,
            usage: Value::Null,
        }
    });
    // Few pieces wait: a slow client slows the provider down, as it would without us.
    let (sender, receiver) = mpsc::channel(16);
    tokio::task::spawn_local(pass_back(desk.clone(), incoming, sender, exchange));
    let mut reply = Response::new(ReplyBody::passed_on(receiver));
    *reply.status_mut() = head.status;
    for (name, value) in &head.headers {
        if !OWN.contains(name) {
            reply.headers_mut().append(name, value.clone());
        }
    }
    Ok(reply)
}

/// Passes the pieces of an answer on, and writes the exchange down when it has ended.
async fn pass_back(
    desk: Shared,
    mut incoming: Incoming,
    client: mpsc::Sender<io::Result<Bytes>>,
    mut exchange: Option<Exchange>,
) {
    let busy = Busy::on(&desk);
    let begun = Instant::now();
    let mut pieces: Vec<(u64, Bytes)> = Vec::new();
    let mut size = 0;
    let mut cut = false;
    while let Some(frame) = incoming.frame().await {
        match frame {
            Ok(frame) => {
                let Ok(data) = frame.into_data() else { continue };
                size += data.len();
                if size <= REPLY_MAX {
                    pieces.push((millis(begun), data.clone()));
                }
                if client.send(Ok(data)).await.is_err() {
                    // Whoever asked has left; what was not said to anybody is not recorded.
                    cut = true;
                    break;
                }
            }
            Err(error) => {
                cut = true;
                let _ = client.send(Err(io::Error::other(error))).await;
                break;
            }
        }
    }
    let tape = &mut desk.borrow_mut().tape;
    match exchange.take().filter(|_| size <= REPLY_MAX) {
        None => tape.recorded.passed += 1,
        Some(mut exchange) => {
            tape.numbers += 1;
            exchange.n = tape.numbers;
            exchange.reply = texts(pieces);
            exchange.cut = cut;
            let all: String = exchange.reply.iter().map(|(_, text)| text.as_str()).collect();
            exchange.usage = usage_of(&exchange.content_type, &all);
            tape.recorded.exchanges += 1;
            tape.line(&exchange);
        }
    }
    drop(busy);
}

/// Pieces as texts; a character that was cut in two stands in the later piece.
fn texts(pieces: Vec<(u64, Bytes)>) -> Vec<(u64, String)> {
    let mut rest: Vec<u8> = Vec::new();
    let mut out = Vec::with_capacity(pieces.len());
    let count = pieces.len();
    for (place, (at, piece)) in pieces.into_iter().enumerate() {
        rest.extend_from_slice(&piece);
        let end = match std::str::from_utf8(&rest) {
            Err(error) if error.error_len().is_none() && place + 1 < count => error.valid_up_to(),
            _ => rest.len(),
        };
        let text = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest.drain(..end);
        out.push((at, text));
    }
    out
}

/// The request as the cassette keeps it: normal form, digests, key.
fn written_down(body: &[u8], hash: bool) -> (Value, Vec<crate::serve::cassette::PartDigest>, String) {
    let Some(normal) = normal::normal(body) else { return (Value::Null, Vec::new(), String::new()) };
    let key = normal::key(&normal);
    if hash { (Value::Null, replay::parts(&normal), key) } else { (normal, Vec::new(), key) }
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed: HeaderMap = headers
        .iter()
        .filter(|(name, _)| !OWN.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    passed.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    passed
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_two_pieces_share_is_not_lost() {
        let whole = "a€b".as_bytes();
        let pieces = vec![(1, Bytes::copy_from_slice(&whole[..2])), (2, Bytes::copy_from_slice(&whole[2..]))];
        let texts = texts(pieces);
        assert_eq!(texts.iter().map(|(_, text)| text.as_str()).collect::<String>(), "a€b");
        assert_eq!(texts[0].1, "a");
    }
}

//! Answers from a cassette: the recorded one for the same request, and never a stale one for another.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ledger::hex;
use crate::serve::body::{ReplyBody, Step};
use crate::serve::cassette::{Cassette, Exchange, PartDigest};
use crate::serve::normal;
use crate::serve::refuse::Refused;

/// A cassette that is being played.
#[derive(Debug)]
pub(super) struct Replay {
    cassette: Cassette,
    by_key: BTreeMap<String, Vec<usize>>,
    /// How often each request was answered.
    given: BTreeMap<String, usize>,
}

impl Replay {
    pub(super) fn new(cassette: Cassette) -> Self {
        let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, exchange) in cassette.exchanges.iter().enumerate() {
            by_key.entry(exchange.key.clone()).or_default().push(at);
        }
        Self { cassette, by_key, given: BTreeMap::new() }
    }

    /// The recorded answer. The same request again gets the next recording of it, and the last one from then on.
    pub(super) fn find(&mut self, path: &str, body: &[u8]) -> Result<&Exchange, Refused> {
        let normal = normal::normal(body).ok_or_else(|| Refused::invalid("the body is no JSON object"))?;
        let key = normal::key(&normal);
        let Some(recorded) = self.by_key.get(&key) else { return Err(self.mismatch(path, &normal)) };
        let given = self.given.entry(key).or_insert(0);
        let at = recorded[(*given).min(recorded.len() - 1)];
        *given += 1;
        Ok(&self.cassette.exchanges[at])
    }

    /// Says what differs from the nearest recording.
    fn mismatch(&self, path: &str, normal: &Value) -> Refused {
        let own = parts(normal);
        let nearest = self
            .cassette
            .exchanges
            .iter()
            .filter(|exchange| route(&exchange.path) == route(path))
            .map(|exchange| {
                let theirs = if exchange.request.is_null() {
                    exchange.parts.clone()
                } else {
                    parts(&exchange.request)
                };
                let shared = own.iter().filter(|part| theirs.contains(part)).count();
                (shared, exchange, theirs)
            })
            // Among equals the first.
            .fold(None, |best: Option<(usize, &Exchange, Vec<PartDigest>)>, one| match best {
                Some(best) if best.0 >= one.0 => Some(best),
                _ => Some(one),
            });
        let Some((_, exchange, theirs)) = nearest else {
            let message = format!("the cassette `{}` holds no request to {path}", self.cassette.name);
            return Refused::invalid(message).code("cassette_mismatch");
        };
        let what = differences(normal, &own, exchange, &theirs);
        let message = format!(
            "the cassette holds no recording of this request; the nearest is request {}, from which it differs {what}",
            exchange.n
        );
        Refused::invalid(message).code("cassette_mismatch")
    }
}

/// The path without its query.
fn route(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// Differing places that are named; the rest is counted.
const NAMED: usize = 5;

fn differences(normal: &Value, own: &[PartDigest], exchange: &Exchange, theirs: &[PartDigest]) -> String {
    let find = |list: &[PartDigest], at: &str| list.iter().find(|part| part.at == at).cloned();
    let mut places: Vec<String> = own
        .iter()
        .filter(|part| find(theirs, &part.at).as_ref() != Some(part))
        .map(|part| part.at.clone())
        .collect();
    places.extend(theirs.iter().filter(|part| find(own, &part.at).is_none()).map(|part| part.at.clone()));
    let told: Vec<String> = places
        .iter()
        .take(NAMED)
        .map(|at| {
            let (old, new) = (exchange.request.pointer(at), normal.pointer(at));
            match (find(theirs, at), find(own, at)) {
                (None, _) => format!("at {at}, which was not there"),
                (_, None) => format!("at {at}, which is missing"),
                (Some(_), Some(_)) if exchange.request.is_null() => format!("at {at}"),
                _ => format!("at {at}: {}", change(&text(old), &text(new))),
            }
        })
        .collect();
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and at {more} more places") } else { String::new() };
    format!("{}{more}", told.join("; "))
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Before and after around the first differing byte.
fn change(old: &str, new: &str) -> String {
    let from = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let mut start = from.min(text.len()).saturating_sub(20);
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        text[start..].chars().take(60).collect::<String>()
    };
    format!("byte {from}, was `{}`, is `{}`", around(old), around(new))
}

/// The parts of a normal form, each with its digest.
pub(super) fn parts(normal: &Value) -> Vec<PartDigest> {
    let mut parts = Vec::new();
    for (name, value) in normal.as_object().into_iter().flatten() {
        match value.as_array().filter(|_| ["system", "tools", "messages", "input"].contains(&name.as_str())) {
            Some(items) => {
                parts.extend(items.iter().enumerate().map(|(at, item)| part(format!("/{name}/{at}"), item)));
            }
            None => parts.push(part(format!("/{name}"), value)),
        }
    }
    parts
}

fn part(at: String, value: &Value) -> PartDigest {
    let text = value.to_string();
    PartDigest { at, digest: hex(&Sha256::digest(text.as_bytes())[..16]), bytes: text.len() as u64 }
}

/// A recorded answer as a body; with `paced` it takes the time that it took.
pub(super) fn body(exchange: &Exchange, paced: bool) -> ReplyBody {
    if !paced && !exchange.cut {
        let all: String = exchange.reply.iter().map(|(_, text)| text.as_str()).collect();
        return if exchange.content_type.starts_with("text/event-stream") {
            ReplyBody::pieces(vec![Step::Bytes(all.into())])
        } else {
            ReplyBody::whole(all)
        };
    }
    let mut steps = Vec::new();
    let mut before = 0;
    for (at, text) in &exchange.reply {
        if paced && *at > before {
            steps.push(Step::Pause(Duration::from_millis(at - before)));
            before = *at;
        }
        steps.push(Step::Bytes(text.clone().into()));
    }
    if exchange.cut {
        steps.push(Step::Cut);
    }
    ReplyBody::pieces(steps)
}

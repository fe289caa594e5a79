//! The line to a provider: one request at a time, looked up, paid for, sent, tried again, kept.
//!
//! A request whose answer is in the journal is answered from there. Otherwise the budget must cover the worst that it
//! can cost; then it is sent, and sent again when the provider is busy or gone, after the time that it asks for. What
//! cannot get better (a wrong key, an unknown model, no more money) stops the run.

use serde::Serialize;
use serde_json::Value;

use crate::audit::{Auditor, Options as AuditOptions, Record};
use crate::cache::usage::{self, Parts};
use crate::ledger::Lane;
use crate::live::journal::Journal;
use crate::live::money::Budget;
use crate::live::outside::{Got, Lost, Outside};
use crate::live::provider::Provider;
use crate::live::shape;
use crate::model::{Ask, ModelError, Reply};
use crate::serve::cassette::{Exchange, usage_of};
use crate::serve::counter::Counter;
use crate::serve::normal::{key, normal};
use crate::units::Usd;
use crate::world::faults::OVERFLOW;
use crate::world::streams::Stream;
use crate::world::{Millis, Streams};

/// Attempts at one request.
const ATTEMPTS_MAX: u32 = 8;
/// First pause after a failure that names none, in milliseconds; each one after it is twice as long.
const PAUSE: u64 = 1_000;
/// Longest pause of our own, in milliseconds.
const PAUSE_MAX: u64 = 60_000;
/// Longest pause that a provider is granted, in milliseconds; who asks for more is left alone.
const ASKED_MAX: u64 = 300_000;

/// Why a run ended before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The next request might exceed the budget.
    #[error(
        "stopped before the budget: the next request may cost up to ${worst}; ${spent} of ${max} are spent{}",
        if *.uncertain > Usd::ZERO { format!(", and ${} may have been", .uncertain) } else { String::new() }
    )]
    Budget {
        /// The most that it can cost.
        worst: Usd,
        /// What was spent.
        spent: Usd,
        /// What may have been spent on requests whose answers were lost.
        uncertain: Usd,
        /// The limit.
        max: Usd,
    },
    /// The provider did not answer, however often it was asked.
    #[error("gave up: {0}")]
    GaveUp(String),
    /// The provider will not work with this input: key, model, address.
    #[error("{0}")]
    Refused(String),
    /// The journal cannot be written, so nothing more may be spent.
    #[error("the journal cannot be written: {0}")]
    Journal(String),
}

/// A request and its answer, as far as figures go.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Asked {
    /// Number, from 1.
    pub n: u64,
    /// The run that it belongs to: arm and seed.
    pub run: String,
    /// Who asked.
    pub lane: Lane,
    /// Session of the run.
    pub session: String,
    /// Turn of the session.
    pub turn: u64,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub at: Millis,
    /// True when the answer came from the journal.
    pub replayed: bool,
    /// Size of the body in bytes.
    pub bytes: u64,
    /// Status of the answer.
    pub status: u16,
    /// What the lab's cache model says; none where the provider refused.
    pub predicted: Option<Parts>,
    /// What the provider billed; none where it said nothing.
    pub billed: Option<Parts>,
    /// What that costs.
    pub cost: Usd,
}

/// What all requests of a run have in common.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) provider: Provider,
    pub(super) model: String,
    pub(super) max_tokens: u64,
}

/// A line to a provider.
pub(super) struct Line {
    terms: Terms,
    outside: Box<dyn Outside>,
    journal: Journal,
    pub(super) budget: Budget,
    counter: Counter,
    auditor: Auditor,
    jitter: Stream,
    /// Every request so far.
    pub(super) asked: Vec<Asked>,
    /// Why no more will be sent.
    pub(super) stopped: Option<Stop>,
    /// Told of pauses and stops at once.
    tell: Box<dyn Fn(&str)>,
}

impl Line {
    pub(super) fn new(
        terms: Terms,
        outside: Box<dyn Outside>,
        journal: Journal,
        budget: Budget,
        counter: Counter,
        tell: Box<dyn Fn(&str)>,
    ) -> Self {
        Self {
            terms,
            outside,
            journal,
            budget,
            counter,
            auditor: Auditor::new(AuditOptions::default()),
            jitter: Streams::new(0).named("live-pauses"),
            asked: Vec::new(),
            stopped: None,
            tell,
        }
    }

    /// What the audit makes of everything that was sent.
    pub(super) fn audit(&self) -> crate::audit::Audit {
        self.auditor.so_far()
    }

    /// Answers one request of a run.
    pub(super) fn ask(&mut self, run: &str, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        if let Some(stop) = &self.stopped {
            return Err(ModelError::Stopped(stop.to_string()));
        }
        let Terms { provider, model, max_tokens } = &self.terms;
        let (provider, max_tokens) = (*provider, *max_tokens);
        let body = shape::body(provider, ask, model, max_tokens).to_string().into_bytes();
        let normal = normal(&body).unwrap_or_default();
        let key = key(&normal);
        let kept = self.journal.take(&key);
        let replayed = kept.is_some();
        let exchange = match kept {
            Some(exchange) => exchange,
            None => self.exchange(&body, key, normal, max_tokens).map_err(|stop| {
                let words = stop.to_string();
                (self.tell)(&words);
                self.stopped = Some(stop);
                ModelError::Stopped(words)
            })?,
        };
        let billed = self.note(run, ask, &body, &exchange, replayed);
        let text: String = exchange.reply.iter().map(|(_, text)| text.as_str()).collect();
        if exchange.status >= 300 {
            let (code, message) = shape::error(&text);
            (self.tell)(&format!("request {}: the provider refuses it: {message}", self.asked.len()));
            let kind = if too_long(&code, &message) { OVERFLOW } else { "refused" };
            return Err(ModelError::Provider { kind: kind.to_owned(), retry: false });
        }
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        shape::reply(provider, &answer, billed.as_ref())
            .ok_or_else(|| ModelError::Provider { kind: "dropped".to_owned(), retry: true })
    }

    /// Sends a request until there is an answer to keep.
    fn exchange(
        &mut self,
        body: &[u8],
        key: String,
        normal: Value,
        max_tokens: u64,
    ) -> Result<Exchange, Stop> {
        let worst = self.budget.worst(body.len(), max_tokens);
        let mut why = String::new();
        for attempt in 0..ATTEMPTS_MAX {
            if !self.budget.covers(worst) {
                let (spent, uncertain) = (self.budget.spent(), self.budget.uncertain());
                return Err(Stop::Budget { worst, spent, uncertain, max: self.budget.max() });
            }
            let begun = self.budget.begin(worst);
            self.journal.account(&begun).map_err(|error| Stop::Journal(error.to_string()))?;
            let at = self.outside.now();
            let (cost, asked_to_wait) = match self.outside.post(body) {
                Ok(got) if got.status < 300 => {
                    let exchange = self.kept(got, at, key, normal)?;
                    let billed = bill(&exchange);
                    let cost = billed.map_or(worst, |parts| self.budget.cost(&parts));
                    self.settle(begun, cost)?;
                    return Ok(exchange);
                }
                Ok(got) => {
                    let (code, message) = shape::error(&got.text);
                    why = format!("the provider answers {}: {message}", got.status);
                    // What is refused is not billed.
                    self.settle(begun, Usd::ZERO)?;
                    match consequence(got.status, &code, &message) {
                        After::Again => {}
                        After::Stop => return Err(Stop::Refused(why)),
                        After::Keep => return self.kept(got, at, key, normal),
                    }
                    (Some(Usd::ZERO), got.retry_after)
                }
                Err(Lost::Unreachable(reason)) => {
                    why = format!("the provider cannot be reached: {reason}");
                    self.settle(begun, Usd::ZERO)?;
                    (Some(Usd::ZERO), None)
                }
                Err(Lost::Broken(reason)) => {
                    why = format!("the answer was lost: {reason}");
                    (None, None)
                }
            };
            if asked_to_wait.is_some_and(|millis| millis > ASKED_MAX) {
                let seconds = asked_to_wait.unwrap_or(0) / 1_000;
                return Err(Stop::GaveUp(format!("{why}; it asks to wait {seconds} s")));
            }
            if attempt + 1 < ATTEMPTS_MAX {
                let pause = asked_to_wait.unwrap_or_else(|| self.own_pause(attempt));
                let lost = if cost.is_none() { ", which may be billed" } else { "" };
                (self.tell)(&format!("{why}{lost}; again in {}.{} s", pause / 1_000, pause % 1_000 / 100));
                self.outside.pause(pause);
            }
        }
        Err(Stop::GaveUp(format!("{why}; asked {ATTEMPTS_MAX} times")))
    }

    /// One second, two, four, …, each up to a quarter longer, so that many runs do not come back at once.
    fn own_pause(&mut self, attempt: u32) -> u64 {
        let pause = (PAUSE << attempt.min(16)).min(PAUSE_MAX);
        pause + self.jitter.below(pause / 4 + 1)
    }

    fn settle(&mut self, begun: crate::live::money::Account, cost: Usd) -> Result<(), Stop> {
        let settled = self.budget.settle(begun, cost);
        self.journal.account(&settled).map_err(|error| Stop::Journal(error.to_string()))
    }

    /// Keeps an answer.
    fn kept(&mut self, got: Got, at: Millis, key: String, normal: Value) -> Result<Exchange, Stop> {
        let exchange = Exchange {
            n: 0,
            at,
            path: self.terms.provider.path().to_owned(),
            key,
            request: normal,
            parts: Vec::new(),
            status: got.status,
            usage: usage_of(&got.content_type, &got.text),
            content_type: got.content_type,
            retry_after: None,
            head_ms: got.took,
            reply: vec![(0, got.text)],
            cut: false,
        };
        self.journal.keep(exchange).map_err(|error| Stop::Journal(error.to_string()))
    }

    /// Holds the prediction against the bill; gives back the bill.
    fn note(
        &mut self,
        run: &str,
        ask: &Ask<'_>,
        body: &[u8],
        exchange: &Exchange,
        replayed: bool,
    ) -> Option<Parts> {
        let accepted = exchange.status < 300;
        let billed = bill(exchange).filter(|_| accepted);
        if let Some(parts) = &billed {
            self.budget.learn(body.len(), parts.prompt());
        }
        let mut predicted = None;
        if let Ok(prompt) = self.auditor.parse(body, Some(self.terms.provider.shape())) {
            if accepted {
                let sizes = self.counter.sizes(&prompt);
                let outcome = self.counter.observe(exchange.at, &prompt, &sizes);
                let output = billed.map_or(0, |parts| parts.output);
                predicted = outcome.ok().map(|outcome| Parts::of(outcome, output));
            }
            let done = exchange.at.saturating_add(Millis::try_from(exchange.head_ms).unwrap_or(0));
            let record = Record {
                line: self.asked.len() as u64 + 1,
                at: Some(exchange.at),
                done_at: Some(done),
                shape: Some(self.terms.provider.shape()),
                usage: billed,
                failed: !accepted,
                conversation: Some(conversation(run, ask)),
                ..Record::default()
            };
            self.auditor.judge(&record, &prompt);
        }
        let cost = billed.map_or(Usd::ZERO, |parts| self.budget.cost(&parts));
        self.asked.push(Asked {
            n: self.asked.len() as u64 + 1,
            run: run.to_owned(),
            lane: ask.lane,
            session: ask.session.to_owned(),
            turn: ask.turn,
            at: exchange.at,
            replayed,
            bytes: body.len() as u64,
            status: exchange.status,
            predicted,
            billed,
            cost,
        });
        billed
    }
}

/// A summary stands beside the conversation that it sums up; a review goes on from it.
fn conversation(run: &str, ask: &Ask<'_>) -> String {
    match ask.lane {
        Lane::Summary | Lane::Approver | Lane::Title => format!("{run} {} {}", ask.session, ask.lane.word()),
        _ => format!("{run} {}", ask.session),
    }
}

fn bill(exchange: &Exchange) -> Option<Parts> {
    usage::read(&exchange.usage).ok().map(|(parts, _)| parts)
}

/// What an error leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Another attempt can help.
    Again,
    /// This request is refused; others may not be.
    Keep,
    /// No request will do better.
    Stop,
}

fn consequence(status: u16, code: &str, message: &str) -> After {
    match status {
        // Anthropic answers 400 where the account is empty.
        400 if message.to_lowercase().contains("credit balance is too low") => After::Stop,
        // A quota that is used up does not come back while one waits.
        429 if code == "insufficient_quota" => After::Stop,
        408 | 409 | 425 | 429 | 500.. => After::Again,
        300..=399 | 401..=404 | 407 => After::Stop,
        _ => After::Keep,
    }
}

fn too_long(code: &str, message: &str) -> bool {
    let message = message.to_lowercase();
    code == "context_length_exceeded"
        || ["prompt is too long", "maximum context length", "context window"]
            .iter()
            .any(|words| message.contains(words))
}

#[cfg(test)]
mod tests;

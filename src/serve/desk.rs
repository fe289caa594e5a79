//! One request from its bytes to its answer.
//!
//! Taken apart and checked as a provider would, asked of the script, counted by the cache model, judged by the audit,
//! written into the ledger, answered in the protocol's shape.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use serde_json::{Value, json};

use crate::audit::prompt::{Piece, Prompt, Shape};
use crate::audit::{Audit, Auditor, Judged, Options as AuditOptions, Record};
use crate::cache;
use crate::cache::usage::Parts;
use crate::lab::play::policy_digest;
use crate::laws::Verdict;
use crate::ledger::{Header, Lane, Ledger};
use crate::model::placed::{Due, PlacedScript};
use crate::policy::Policy;
use crate::scenario::{ReplySpec, Scenario};
use crate::serve::Options;
use crate::serve::body::ReplyBody;
use crate::serve::book::{Book, Entry, Noted};
use crate::serve::cassette::Cassette;
use crate::serve::clean::Clean;
use crate::serve::clock::ServeClock;
use crate::serve::counter::Counter;
use crate::serve::learning::tool_names;
use crate::serve::refuse::{self, Refused};
use crate::serve::render::{Answer, Fate, Flags, extra};
use crate::serve::replay::Replay;
use crate::serve::report::{self, SCHEMA, Tally, Trouble};
use crate::serve::route::{self, Limits};
use crate::serve::scheduled::Scheduled;
use crate::serve::server::Work;
use crate::serve::shown::{RuleAsk, Showing};
use crate::serve::sink::Sink;
use crate::serve::spoken::{self, Spoken};
use crate::serve::translate::translated;
use crate::world::Millis;

/// How long a request without an answer is held when the script does not say.
const HOLD: Duration = Duration::from_secs(600);

/// What a run of the mock provider leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that happened; without its events when they were not to be kept.
    pub ledger: Ledger,
    /// Digest of the whole ledger.
    pub digest: String,
    /// Number of its events.
    pub events: u64,
    /// What the laws say to it.
    pub verdict: Verdict,
    /// Why each request read what it read, summed up.
    pub audit: Audit,
    /// Sums, refusals, faults.
    pub tally: Tally,
    /// Requests that came in.
    pub requests: u64,
    /// Why the ledger's file could not be written, if so.
    pub write_failed: Option<io::Error>,
}

impl Outcome {
    /// True when no law found anything and a provider would have refused nothing.
    pub fn holds(&self) -> bool {
        self.verdict.holds() && self.tally.refused == 0
    }

    /// As JSON, with a schema version.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "schema": SCHEMA, "scenario": self.ledger.header.scenario, "requests": self.requests,
            "events": self.events, "digest": self.digest, "holds": self.holds(),
            "findings": self.verdict.findings().collect::<Vec<_>>(),
        });
        merge(&mut value, self.tally.to_json());
        value["audit"] = report::audit(&self.audit);
        value
    }
}

fn merge(value: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (value.as_object_mut(), more) {
        object.extend(more);
    }
}

/// Everything that the mock provider knows.
pub(super) struct Desk {
    options: Options,
    script: PlacedScript,
    /// Recorded answers that are given instead of the script's.
    replay: Option<Replay>,
    scheduled: Scheduled,
    clock: ServeClock,
    counter: Counter,
    auditor: Auditor,
    clean: Clean,
    book: Book,
    sink: Sink,
    tally: Tally,
    requests: u64,
    scenario: String,
    /// Requests under way.
    in_flight: usize,
}

/// The desk as the connections share it.
pub(super) type Shared = Rc<RefCell<Desk>>;

/// A request that was taken apart.
struct Taken {
    shape: Shape,
    flags: Flags,
    prompt: Rc<Prompt>,
    pieces: Vec<Piece>,
    sizes: Vec<u64>,
    due: Due,
}

impl Taken {
    fn total(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(0)
    }
}

impl Desk {
    /// Opens the ledger.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub(super) fn new(
        scenario: &Scenario,
        cassette: Option<Cassette>,
        policy: &Policy,
        options: Options,
    ) -> io::Result<Self> {
        let header = Header {
            source: "serve".to_owned(),
            scenario: scenario.name.clone(),
            scenario_digest: scenario.digest.clone(),
            policy_digest: policy_digest(policy),
            seed: scenario.seed,
            ..Header::default()
        };
        Ok(Self {
            scheduled: Scheduled::of(scenario),
            script: PlacedScript::new(scenario),
            replay: cassette.map(Replay::new),
            clock: ServeClock::new(options.clock, scenario),
            counter: Counter::new(options.provider, policy.cache.clone()),
            auditor: Auditor::new(AuditOptions { fold: true, ..AuditOptions::default() }),
            clean: Clean::default(),
            book: Book::new(header.clone()),
            sink: Sink::new(header, options.ledger.as_deref(), options.keep_events)?,
            tally: Tally::default(),
            requests: 0,
            scenario: scenario.name.clone(),
            in_flight: 0,
            options,
        })
    }

    /// Takes in one request.
    pub(super) fn take(&mut self, shape: Shape, path: &str, body: &[u8]) -> Fate {
        self.requests += 1;
        let left_out = self.scheduled.left_out;
        if self.requests == 1 && left_out > 0 {
            let tell = || format!("{left_out} scheduled faults are none of a provider's and are left out");
            self.options.teller.tell(tell);
        }
        let fate = match self.look(shape, body) {
            Ok(taken) if self.replay.is_some() => Fate::Answer(self.play_back(&taken, path, body)),
            Ok(taken) => self.play(&taken),
            Err(refused) => {
                self.trouble("", &refused);
                Fate::Answer(self.error(shape, &refused))
            }
        };
        self.pass_on();
        fate
    }

    fn look(&mut self, shape: Shape, body: &[u8]) -> Result<Taken, Refused> {
        let prompt = self.auditor.parse(body, Some(shape)).map_err(|error| refuse::no_json(&error))?;
        if prompt.shape != shape || prompt.turns.is_empty() {
            return Err(refuse::missing(shape));
        }
        if prompt.model.is_empty() {
            return Err(Refused::invalid("you must provide a model parameter").param("model"));
        }
        if !self.options.models.is_empty() && !self.options.models.contains(&prompt.model) {
            return Err(refuse::no_model(&prompt.model));
        }
        let flags = Flags::of(body);
        if shape == Shape::Anthropic && !flags.max_tokens && !self.options.lenient {
            return Err(Refused::invalid("max_tokens: Field required").param("max_tokens"));
        }
        let pieces = prompt.pieces();
        let sizes = self.counter.sizes(&prompt);
        let due = self.script.due(&Showing::new(&prompt, &pieces));
        Ok(Taken { shape, flags, prompt, pieces, sizes, due })
    }

    fn play(&mut self, taken: &Taken) -> Fate {
        let now = self.begin(taken);
        let objection = self.objection(taken);
        if let Some(refused) = &objection {
            if !self.options.lenient {
                return Fate::Answer(self.refuse(taken, refused));
            }
            let session = self.book.name_of(&taken.due);
            self.trouble(&session, refused);
        }
        let scheduled = self.scheduled.on_request(taken.due.act, taken.due.lane);
        if let Some(fault) = scheduled.as_deref().filter(|fault| *fault != "dropped") {
            return self.fail(taken, fault, &ReplySpec::default());
        }
        let mut reply = match self.reply(taken) {
            Ok(reply) => reply,
            Err(refused) => return Fate::Answer(self.refuse(taken, &refused)),
        };
        reply.fault = scheduled.or(reply.fault);
        if let Some(fault) = reply.fault.as_deref().filter(|fault| *fault != "dropped") {
            return self.fail(taken, fault, &reply);
        }
        let outcome = match self.counter.observe(now, &taken.prompt, &taken.sizes) {
            Ok(outcome) => outcome,
            Err(_) if self.options.lenient => cache::Outcome::read_of(0, taken.total()),
            Err(refusal) => return Fate::Answer(self.refuse(taken, &refuse::by_cache(refusal))),
        };
        if objection.is_none() {
            self.clean.accept(&taken.prompt);
        }
        self.answer(taken, outcome, &reply)
    }

    /// Answers with what was recorded for this request.
    fn play_back(&mut self, taken: &Taken, path: &str, body: &[u8]) -> Answer {
        self.begin(taken);
        let found = self.replay.as_mut().map(|replay| replay.find(path, body).cloned());
        let exchange = match found {
            Some(Ok(exchange)) => exchange,
            Some(Err(refused)) => return self.refuse(taken, &refused),
            None => return self.refuse(taken, &Refused::invalid("there is no cassette")),
        };
        let answer = Answer::recorded(&exchange, self.options.paced, self.requests);
        if exchange.status >= 400 || exchange.cut {
            let judged = self.judge(taken, None);
            let noted = self.note(taken, &judged, false);
            let word =
                if exchange.cut { "dropped".to_owned() } else { format!("status {}", exchange.status) };
            self.fault(&noted, &word, &format!("recording {}", exchange.n));
            self.book.failed(&noted, &word);
            return answer;
        }
        let parts = cache::usage::read(&exchange.usage).map(|(parts, _)| parts).unwrap_or_default();
        let judged = self.judge(taken, Some(&parts));
        // What was billed counts, not what is estimated here.
        let size = if parts.prompt() > 0 { parts.prompt() } else { taken.total() };
        let parts = if parts.prompt() > 0 { parts } else { Parts { fresh: size, ..parts } };
        let noted = self.note_sized(taken, &judged, size, false);
        self.tally.tokens = self.tally.tokens.plus(parts);
        let spoken = Spoken { usage: parts, ..self.spoken(taken, &ReplySpec::default()) };
        self.book.answered(&noted, &taken.due, &spoken);
        answer
    }

    fn begin(&mut self, taken: &Taken) -> Millis {
        let now = self.clock.request(taken.due.act);
        self.book.set_now(now);
        self.tally.lanes[taken.due.lane as usize] += 1;
        self.tally.shapes[taken.shape as usize % 3] += 1;
        now
    }

    fn answer(&mut self, taken: &Taken, outcome: cache::Outcome, reply: &ReplySpec) -> Fate {
        let mut spoken = self.spoken(taken, reply);
        spoken.usage = Parts::of(outcome, spoken.tokens());
        let judged = self.judge(taken, Some(&spoken.usage));
        let noted = self.note(taken, &judged, false);
        self.book.answered(&noted, &taken.due, &spoken);
        self.tally.tokens = self.tally.tokens.plus(spoken.usage);
        if reply.fault.is_some() {
            self.fault(&noted, "dropped", &taken.due.id());
        }
        if let Some(tokens) = reply.prompt_tokens {
            // The client is told what the scenario wants; the ledger keeps what was counted.
            spoken.usage = scripted_usage(&spoken.usage, tokens);
            let detail = format!("{tokens} prompt tokens reported");
            self.fault(&noted, "scripted_usage", &detail);
        }
        let extra = extra(self.counter.model(taken.shape), &spoken.usage);
        Fate::Answer(Answer::reply(taken.shape, taken.flags, &spoken, reply, &extra, self.requests))
    }

    /// Why a provider refuses this request.
    fn objection(&self, taken: &Taken) -> Option<Refused> {
        let prompt = &taken.prompt;
        refuse::history(prompt, self.clean.checked(prompt))
            .or_else(|| refuse::empty_text(prompt))
            .or_else(|| self.auditor.illegal(prompt).map(|illegal| refuse::markers(prompt, illegal)))
            .or_else(|| {
                let (total, limit) = (taken.total(), self.options.context_length);
                (total > limit).then(|| refuse::too_long(total, limit))
            })
    }

    fn reply(&mut self, taken: &Taken) -> Result<ReplySpec, Refused> {
        let due = &taken.due;
        if let Some(reply) = &due.reply {
            return Ok(reply.clone());
        }
        if self.script.has_rules(due.lane) {
            let ask = RuleAsk::of(&taken.prompt, &taken.pieces);
            if let Some(reply) = self.script.by_rule(&ask.ask(due)) {
                return Ok(reply);
            }
        }
        if let Some(say) = spoken::unscripted(due, taken.pieces.len()) {
            return Ok(ReplySpec { say: Some(say), ..ReplySpec::default() });
        }
        let message = format!(
            "the script has no line for lane `{}`, session `{}`, turn {}, step {}; {}",
            due.lane.word(),
            due.session,
            due.turn,
            due.place.entry + 1,
            self.script.nearest(due.lane)
        );
        Err(Refused::invalid(message).code("script_exhausted"))
    }

    fn spoken(&self, taken: &Taken, reply: &ReplySpec) -> Spoken {
        let prefix = if taken.shape == Shape::Anthropic { "toolu_" } else { "call_" };
        let mut spoken = Spoken::of(&taken.due, reply, prefix, &taken.prompt);
        if !spoken.calls.is_empty() {
            let tools = tool_names(&taken.prompt);
            let calls = std::mem::take(&mut spoken.calls);
            spoken.calls = calls.into_iter().map(|call| translated(call, &tools)).collect();
        }
        Spoken { model: taken.prompt.model.clone(), created: self.clock.now() / 1_000, ..spoken }
    }

    /// What the audit says; without usage the request failed.
    fn judge(&mut self, taken: &Taken, usage: Option<&Parts>) -> Judged {
        let now = self.clock.now();
        let record = Record {
            line: self.requests,
            at: Some(now),
            done_at: Some(now),
            shape: Some(taken.shape),
            usage: usage.copied(),
            failed: usage.is_none(),
            // A title shares words with the conversation that it names, and is none of it; nor do sessions of the
            // scenario go over into each other.
            conversation: Some(if beside(taken.due.lane) {
                taken.due.lane.word().to_owned()
            } else {
                taken.due.session.clone()
            }),
            ..Record::default()
        };
        let judged = self.auditor.judge(&record, &taken.prompt);
        self.tally.judge(&judged);
        judged
    }

    fn note(&mut self, taken: &Taken, judged: &Judged, refused: bool) -> Noted {
        self.note_sized(taken, judged, taken.total(), refused)
    }

    fn note_sized(&mut self, taken: &Taken, judged: &Judged, size: u64, refused: bool) -> Noted {
        let entry =
            Entry { prompt: &taken.prompt, pieces: &taken.pieces, judged, due: &taken.due, size, refused };
        let noted = self.book.request(&entry);
        for (session, lane) in self.book.forgotten() {
            self.sink.forget(&session, lane);
        }
        noted
    }

    /// The provider would not take this.
    fn refuse(&mut self, taken: &Taken, refused: &Refused) -> Answer {
        let judged = self.judge(taken, None);
        let noted = self.note(taken, &judged, true);
        self.book.failed(&noted, refused.word());
        self.trouble(&noted.session, refused);
        self.error(taken.shape, refused)
    }

    /// The scenario has the provider fail.
    fn fail(&mut self, taken: &Taken, fault: &str, reply: &ReplySpec) -> Fate {
        let judged = self.judge(taken, None);
        let noted = self.note(taken, &judged, false);
        self.fault(&noted, fault, &taken.due.id());
        self.book.failed(&noted, fault);
        let limit = reply.prompt_tokens.unwrap_or(self.options.context_length);
        match refuse::scripted(fault, limit, reply.retry_after) {
            Some(refused) => Fate::Answer(self.error(taken.shape, &refused)),
            None => Fate::Hang(reply.hold_seconds.map_or(HOLD, Duration::from_secs)),
        }
    }

    fn fault(&mut self, noted: &Noted, kind: &str, detail: &str) {
        self.book.fault(&noted.session, kind, detail);
        self.tally.fault(Trouble {
            request: self.requests,
            session: noted.session.to_string(),
            kind: kind.to_owned(),
            message: detail.to_owned(),
        });
    }

    fn trouble(&mut self, session: &str, refused: &Refused) {
        self.options.teller.tell(|| format!("refused: request {}: {}", self.requests, refused.message));
        self.tally.refusal(Trouble {
            request: self.requests,
            session: session.to_owned(),
            kind: refused.word().to_owned(),
            message: refused.message.clone(),
        });
    }

    /// A request that never became one: too large, of the wrong type, on an unknown path.
    pub(super) fn turned_away(&mut self, shape: Shape, refused: &Refused) -> Answer {
        self.requests += 1;
        self.trouble("", refused);
        self.error(shape, refused)
    }

    /// Hands new events on to the sink, and tells what is wrong with them.
    fn pass_on(&mut self) {
        for event in self.book.drain() {
            for finding in self.sink.take(event) {
                self.options.teller.tell(|| crate::report::run::line(&finding));
            }
        }
    }

    /// An error in the shape of a protocol.
    pub(super) fn error(&self, shape: Shape, refused: &Refused) -> Answer {
        Answer::error(shape, refused, self.requests)
    }

    /// Tokens of a prompt, without answering it.
    pub(super) fn count(&mut self, body: &[u8]) -> Answer {
        self.requests += 1;
        match self.auditor.parse(body, Some(Shape::Anthropic)) {
            Ok(prompt) if !prompt.turns.is_empty() => {
                let tokens = self.counter.sizes(&prompt).last().copied().unwrap_or(0);
                Answer::json(200, &json!({ "input_tokens": tokens }), self.requests)
            }
            Ok(_) => self.error(Shape::Anthropic, &refuse::missing(Shape::Anthropic)),
            Err(error) => self.error(Shape::Anthropic, &refuse::no_json(&error)),
        }
    }

    /// Number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Names and window of the models.
    pub(super) fn models(&self) -> (&[String], u64) {
        (&self.options.models, self.options.context_length)
    }

    /// What was found so far.
    pub(super) fn report(&self) -> Value {
        let verdict = self.sink.judge.verdict();
        let mut value = json!({
            "schema": SCHEMA, "scenario": self.scenario, "requests": self.requests,
            "events": self.sink.count(), "digest": self.sink.digest(),
            "holds": self.sink.findings() == 0 && self.tally.refused == 0,
            "findings": verdict.findings().collect::<Vec<_>>(),
        });
        merge(&mut value, self.tally.to_json());
        value["audit"] = report::audit(&self.auditor.so_far());
        value
    }

    /// The same as a page.
    pub(super) fn page(&self) -> String {
        let verdict = self.sink.judge.verdict();
        report::page(&self.scenario, &verdict, &self.tally, self.auditor.so_far().conversations)
    }

    /// Limits of one request.
    pub(super) fn limits(&self) -> Limits {
        Limits { body_max: self.options.body_max, body_timeout: self.options.body_timeout }
    }
}

impl Work for Desk {
    type End = Outcome;

    fn handle(
        desk: Shared,
        request: Request<Incoming>,
    ) -> impl Future<Output = io::Result<Response<ReplyBody>>> + 'static {
        route::handle(desk, request)
    }

    fn flush(&mut self) {
        self.sink.flush();
    }

    fn in_flight(&mut self) -> &mut usize {
        &mut self.in_flight
    }

    fn finish(mut self) -> Outcome {
        self.pass_on();
        let (digest, events) = (self.sink.digest(), self.sink.count());
        let verdict = self.sink.judge.verdict();
        let (ledger, write_failed) = self.sink.finish();
        Outcome {
            ledger,
            digest,
            events,
            verdict,
            audit: self.auditor.finish(),
            tally: self.tally,
            requests: self.requests,
            write_failed,
        }
    }
}

/// Counts as the scenario wants them reported: what is more than counted was not cached.
fn scripted_usage(counted: &Parts, prompt: u64) -> Parts {
    let read = counted.read.min(prompt);
    Parts { fresh: prompt - read, read, output: counted.output, ..Parts::default() }
}

/// Lanes whose requests stand beside a conversation.
fn beside(lane: Lane) -> bool {
    matches!(lane, Lane::Title | Lane::Summary | Lane::Approver)
}

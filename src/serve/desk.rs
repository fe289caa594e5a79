//! One request from its bytes to its answer.
//!
//! Taken apart and checked as a provider would, asked of the script, counted by the cache model, judged by the audit,
//! written into the ledger, answered in the protocol's shape.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::audit::prompt::{Kind as SegKind, PassThrough, Piece, Prompt, Shape, Speaker as SegSpeaker};
use crate::audit::usage::Usage as Billed;
use crate::audit::{Audit, Auditor, Judged, Options as AuditOptions, Record};
use crate::cache::usage::Parts;
use crate::cache::{self, Facts, Kind, Observed, PrefixCache, Speaker};
use crate::lab::play::policy_digest;
use crate::laws::{self, Verdict};
use crate::ledger::{Header, Ledger, Response, Usage};
use crate::model::placed::{Due, PlacedScript};
use crate::policy::{CacheModel, Policy};
use crate::scenario::{ReplySpec, Scenario};
use crate::serve::body::{ReplyBody, Step};
use crate::serve::book::{Book, Entry, Noted};
use crate::serve::clock::ServeClock;
use crate::serve::refuse::{self, Refused};
use crate::serve::shown::Showing;
use crate::serve::spoken::{self, Spoken};
use crate::serve::{Options, chat, messages, responses};
use crate::wire::Chain;

/// Texts whose tokens are remembered; the older half goes when there are more.
const COUNTED: usize = 1 << 16;

/// What a run of the mock provider leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that happened.
    pub ledger: Ledger,
    /// What the laws say to it.
    pub verdict: Verdict,
    /// Why each request read what it read.
    pub audit: Audit,
    /// Requests that were answered or refused.
    pub requests: u64,
}

impl Outcome {
    /// True when no law found anything and nothing was refused.
    pub fn holds(&self) -> bool {
        self.verdict.holds()
    }
}

/// What the server sends back.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
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

/// Everything that the mock provider knows.
pub(super) struct Desk {
    options: Options,
    script: PlacedScript,
    clock: ServeClock,
    caches: BTreeMap<Shape, Box<dyn PrefixCache>>,
    policy: Policy,
    auditor: Auditor,
    book: Book,
    counted: indexmap::IndexMap<u128, u64, std::hash::BuildHasherDefault<PassThrough>>,
    requests: u64,
    /// Requests under way.
    pub(super) in_flight: usize,
}

/// A request that was taken apart.
struct Taken {
    prompt: Rc<Prompt>,
    pieces: Vec<Piece>,
    sizes: Vec<u64>,
    due: Due,
}

impl Desk {
    pub(super) fn new(scenario: &Scenario, policy: Policy, options: Options) -> Self {
        let header = Header {
            source: "serve".to_owned(),
            scenario: scenario.name.clone(),
            scenario_digest: scenario.digest.clone(),
            policy_digest: policy_digest(&policy),
            seed: scenario.seed,
            ..Header::default()
        };
        Self {
            script: PlacedScript::new(scenario),
            clock: ServeClock::new(options.clock, scenario),
            caches: BTreeMap::new(),
            policy,
            auditor: Auditor::new(AuditOptions { fold: true, ..AuditOptions::default() }),
            book: Book::new(header),
            counted: indexmap::IndexMap::default(),
            requests: 0,
            in_flight: 0,
            options,
        }
    }

    /// Takes in one request.
    pub(super) fn take(&mut self, shape: Shape, body: &[u8]) -> Fate {
        self.requests += 1;
        let flags = Flags::of(body);
        let taken = match self.look(shape, body) {
            Ok(taken) => taken,
            Err(refused) => return Fate::Answer(self.error(shape, &refused)),
        };
        self.play(shape, &flags, &taken)
    }

    fn look(&mut self, shape: Shape, body: &[u8]) -> Result<Taken, Refused> {
        // The spans that the audit works on forgive what a parser would not.
        let broken =
            |error: &dyn std::fmt::Display| Refused::invalid(format!("the body is not valid JSON: {error}"));
        let prompt = self.auditor.parse(body, Some(shape)).map_err(|error| broken(&error))?;
        if prompt.shape != shape {
            return Err(missing(shape));
        }
        if prompt.model.is_empty() {
            return Err(Refused::invalid("you must provide a model parameter").param("model"));
        }
        if !self.options.models.is_empty() && !self.options.models.contains(&prompt.model) {
            let message = format!("The model `{}` does not exist", prompt.model);
            return Err(Refused::of(404, "not_found_error", message).code("model_not_found").param("model"));
        }
        if prompt.turns.is_empty() {
            return Err(missing(shape));
        }
        let pieces = prompt.pieces();
        let sizes = self.sizes(&prompt);
        let due = self.script.due(&Showing::new(&prompt, &pieces));
        Ok(Taken { prompt, pieces, sizes, due })
    }

    /// Tokens up to and including each segment.
    fn sizes(&mut self, prompt: &Prompt) -> Vec<u64> {
        let mut sum = 0;
        (0..prompt.segs.len())
            .map(|at| {
                sum += self.tokens(prompt, at);
                sum
            })
            .collect()
    }

    fn tokens(&mut self, prompt: &Prompt, at: usize) -> u64 {
        let hash = prompt.segs[at].hash;
        if let Some(tokens) = self.counted.get(&hash) {
            return *tokens;
        }
        let tokens = cache::tokens::estimate(&prompt.compact(at));
        if self.counted.len() >= COUNTED {
            self.counted.drain(..COUNTED / 2);
        }
        self.counted.insert(hash, tokens);
        tokens
    }

    fn play(&mut self, shape: Shape, flags: &Flags, taken: &Taken) -> Fate {
        let now = self.clock.request(taken.due.act);
        self.book.set_now(now);
        let total = taken.sizes.last().copied().unwrap_or(0);
        if !self.options.lenient
            && let Some(refused) = self.objection(taken, total)
        {
            return Fate::Answer(self.refuse(shape, taken, &refused));
        }
        let fault = taken.due.reply.as_ref().and_then(|reply| reply.fault.clone());
        if let Some(fault) = &fault
            && fault != "dropped"
        {
            return self.fail(shape, taken, fault);
        }
        let outcome = match self.observe(shape, taken) {
            Ok(outcome) => outcome,
            Err(refusal) if self.options.lenient => {
                tracing::debug!(%refusal, "a provider would refuse this");
                cache::Outcome::read_of(0, total)
            }
            Err(refusal) => return Fate::Answer(self.refuse(shape, taken, &refuse::by_cache(refusal))),
        };
        let reply = match self.reply(taken) {
            Ok(reply) => reply,
            Err(refused) => return Fate::Answer(self.refuse(shape, taken, &refused)),
        };
        let mut spoken = self.spoken(shape, taken, &reply);
        spoken.usage = Parts::of(outcome, spoken.tokens());
        let judged = self.judge(taken, Some(&spoken.usage), false);
        let noted = self.note(taken, &judged, total, false);
        self.answered(&noted, &spoken);
        if fault.is_some() {
            self.book.fault(&noted.session, "dropped", &taken.due.id());
        }
        Fate::Answer(self.render(shape, flags, &spoken, &reply))
    }

    /// Why a provider refuses this request.
    fn objection(&self, taken: &Taken, total: u64) -> Option<Refused> {
        let prompt = &taken.prompt;
        refuse::history(prompt)
            .or_else(|| refuse::empty_text(prompt))
            .or_else(|| self.auditor.illegal(prompt).map(|illegal| refuse::markers(prompt, illegal)))
            .or_else(|| {
                (total > self.options.context_length)
                    .then(|| refuse::too_long(total, self.options.context_length))
            })
    }

    fn model_of(&self, shape: Shape) -> CacheModel {
        self.options.provider.unwrap_or(match shape {
            Shape::Anthropic => CacheModel::Anthropic,
            _ => CacheModel::OpenAi,
        })
    }

    fn observe(&mut self, shape: Shape, taken: &Taken) -> Result<cache::Outcome, cache::Refusal> {
        let prompt = &taken.prompt;
        let chains: Vec<Chain> = prompt.chain.iter().map(|hash| Chain::of_number(*hash)).collect();
        let facts: Vec<Facts> = prompt.segs.iter().map(facts).collect();
        let params: Vec<(&str, &str)> =
            prompt.params.iter().map(|param| (param.name, param.value.as_str())).collect();
        let request = Observed {
            chains: &chains,
            sizes: &taken.sizes,
            marks: &prompt.marks,
            facts: &facts,
            model: &prompt.model,
            key: &prompt.route_key,
            params: &params,
            ..Observed::default()
        };
        let model = self.model_of(shape);
        let knobs = &self.policy.cache;
        // One provider for all protocols shares one cache.
        let slot = if self.options.provider.is_some() { Shape::Chat } else { shape };
        let cache = self.caches.entry(slot).or_insert_with(|| cache::model(model, knobs));
        cache.observe(self.clock.now(), &request)
    }

    fn reply(&self, taken: &Taken) -> Result<ReplySpec, Refused> {
        let due = &taken.due;
        if let Some(reply) = &due.reply {
            return Ok(reply.clone());
        }
        if let Some(reply) = self.script.rules(due.lane).find_map(|rule| rule.reply.clone()) {
            return Ok(reply);
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

    fn spoken(&self, shape: Shape, taken: &Taken, reply: &ReplySpec) -> Spoken {
        let prefix = if shape == Shape::Anthropic { "toolu_" } else { "call_" };
        let spoken = Spoken::of(&taken.due, reply, prefix);
        Spoken { model: taken.prompt.model.clone(), created: self.clock.now() / 1_000, ..spoken }
    }

    fn judge(&mut self, taken: &Taken, usage: Option<&Parts>, failed: bool) -> Judged {
        let now = self.clock.now();
        let record = Record {
            line: self.requests,
            at: Some(now),
            done_at: Some(now),
            shape: Some(taken.prompt.shape),
            usage: usage.map(|parts| Billed {
                fresh: parts.fresh,
                read: parts.read,
                write_5m: parts.write_5m + parts.write_30m,
                write_1h: parts.write_1h,
                output: parts.output,
            }),
            failed,
            ..Record::default()
        };
        self.auditor.judge(&record, &taken.prompt)
    }

    fn note(&mut self, taken: &Taken, judged: &Judged, size: u64, refused: bool) -> Noted {
        let entry =
            Entry { prompt: &taken.prompt, pieces: &taken.pieces, judged, due: &taken.due, size, refused };
        self.book.request(&entry)
    }

    fn answered(&mut self, noted: &Noted, spoken: &Spoken) {
        let parts = &spoken.usage;
        let response = Response {
            request: noted.request,
            text: spoken.text.as_str().into(),
            calls: spoken
                .calls
                .iter()
                .map(|call| (call.id.as_str().into(), call.name.as_str().into()))
                .collect(),
            finish: spoken.finish.word().into(),
            usage: Usage {
                read: parts.read,
                // The ledger knows two classes of writes; thirty minutes are nearer to five than to sixty in price.
                write_5m: parts.write_5m + parts.write_30m,
                write_1h: parts.write_1h,
                uncached: parts.fresh,
                output: parts.output,
            },
            refused: "".into(),
        };
        self.book.response(&noted.session, response);
    }

    fn failed(&mut self, noted: &Noted, why: &str) {
        let response = Response {
            request: noted.request,
            text: "".into(),
            calls: Vec::new(),
            finish: "error".into(),
            usage: Usage { read: 0, write_5m: 0, write_1h: 0, uncached: 0, output: 0 },
            refused: why.into(),
        };
        self.book.response(&noted.session, response);
    }

    /// The provider would not take this.
    fn refuse(&mut self, shape: Shape, taken: &Taken, refused: &Refused) -> Answer {
        let total = taken.sizes.last().copied().unwrap_or(0);
        let judged = self.judge(taken, None, true);
        let noted = self.note(taken, &judged, total, true);
        self.failed(&noted, refused.word());
        self.error(shape, refused)
    }

    /// The scenario has the provider fail.
    fn fail(&mut self, shape: Shape, taken: &Taken, fault: &str) -> Fate {
        let total = taken.sizes.last().copied().unwrap_or(0);
        let judged = self.judge(taken, None, true);
        let noted = self.note(taken, &judged, total, false);
        self.book.fault(&noted.session, fault, &taken.due.id());
        self.failed(&noted, fault);
        match refuse::scripted(fault, self.options.context_length) {
            Some(refused) => Fate::Answer(self.error(shape, &refused)),
            None => Fate::Hang(Duration::from_mins(10)),
        }
    }

    /// An error in the shape of a protocol.
    pub(super) fn error(&self, shape: Shape, refused: &Refused) -> Answer {
        Answer {
            status: refused.status,
            content_type: "application/json",
            body: ReplyBody::whole(refused.body(shape).to_string()),
            request_id: format!("req_{}", self.requests),
            retry_after: refused.retry_after,
        }
    }

    fn render(&self, shape: Shape, flags: &Flags, spoken: &Spoken, reply: &ReplySpec) -> Answer {
        let extra = self.extra(shape, &spoken.usage);
        let request_id = format!("req_{}", self.requests);
        if !flags.stream {
            let value = match shape {
                Shape::Anthropic => messages::plain(spoken),
                Shape::Responses => responses::plain(spoken),
                Shape::Chat | Shape::Gemini => chat::plain(spoken, &extra),
            };
            let mut steps = vec![Step::Bytes(value.to_string().into())];
            if reply.fault.is_some() {
                steps.insert(0, Step::Cut);
            }
            let body = if reply.fault.is_some() {
                ReplyBody::pieces(steps)
            } else {
                ReplyBody::whole(value.to_string())
            };
            return Answer {
                status: 200,
                content_type: "application/json",
                body,
                request_id,
                retry_after: None,
            };
        }
        let events = match shape {
            Shape::Anthropic => messages::stream(spoken),
            Shape::Responses => responses::stream(spoken),
            Shape::Chat | Shape::Gemini => chat::stream(spoken, flags.include_usage, &extra),
        };
        Answer {
            status: 200,
            content_type: "text/event-stream",
            body: ReplyBody::pieces(steps(events, reply)),
            request_id,
            retry_after: None,
        }
    }

    /// Fields by which single providers report what was read.
    fn extra(&self, shape: Shape, parts: &Parts) -> Map<String, Value> {
        let mut extra = Map::new();
        match self.model_of(shape) {
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

    /// Tokens of a prompt, without answering it.
    pub(super) fn count(&mut self, body: &[u8]) -> Answer {
        self.requests += 1;
        match self.auditor.parse(body, Some(Shape::Anthropic)) {
            Ok(prompt) if !prompt.segs.is_empty() => {
                let tokens = self.sizes(&prompt).last().copied().unwrap_or(0);
                self.json(200, &serde_json::json!({ "input_tokens": tokens }))
            }
            Ok(_) => self.error(Shape::Anthropic, &missing(Shape::Anthropic)),
            Err(error) => {
                let message = format!("the body is not valid JSON: {error}");
                self.error(Shape::Anthropic, &Refused::invalid(message))
            }
        }
    }

    /// An answer that is a JSON value.
    pub(super) fn json(&self, status: u16, value: &Value) -> Answer {
        Answer {
            status,
            content_type: "application/json",
            body: ReplyBody::whole(value.to_string()),
            request_id: format!("req_{}", self.requests),
            retry_after: None,
        }
    }

    /// Names and window of the models.
    pub(super) fn models(&self) -> (&[String], u64) {
        (&self.options.models, self.options.context_length)
    }

    /// The findings so far.
    pub(super) fn report(&self) -> Value {
        let ledger = self.book.recorder().ledger();
        let verdict = laws::judge(ledger);
        serde_json::json!({
            "schema": "hermes-lab.serve/1", "scenario": ledger.header.scenario, "requests": self.requests,
            "digest": ledger.digest(), "findings": verdict.findings().collect::<Vec<_>>(),
        })
    }

    /// Ends the run.
    pub(super) fn finish(self) -> Outcome {
        let ledger = self.book.finish();
        let verdict = laws::judge(&ledger);
        Outcome { verdict, ledger, audit: self.auditor.finish(), requests: self.requests }
    }
}

/// The desk as the connections share it.
pub(super) type Shared = Rc<RefCell<Desk>>;

/// What a body asks for beside the prompt.
#[derive(Debug, Default)]
struct Flags {
    stream: bool,
    include_usage: bool,
}

impl Flags {
    fn of(body: &[u8]) -> Self {
        use crate::audit::json;
        let start = json::skip_space(body, 0);
        let mut flags = Self::default();
        let Ok(mut fields) = json::Fields::of(body, start) else { return flags };
        while let Ok(Some((key, value))) = fields.next_field() {
            match key {
                b"stream" => flags.stream = &body[value] == b"true",
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

fn missing(shape: Shape) -> Refused {
    let name = if shape == Shape::Responses { "input" } else { "messages" };
    Refused::invalid(format!("Missing required parameter: '{name}'.")).param(name)
}

fn facts(seg: &crate::audit::prompt::Seg) -> Facts {
    Facts {
        level: seg.level,
        kind: match seg.kind {
            SegKind::Call => Kind::ToolUse,
            SegKind::Answer => Kind::ToolResult,
            SegKind::Thinking => Kind::Thinking,
            _ => Kind::Text,
        },
        speaker: match seg.speaker {
            SegSpeaker::Assistant => Speaker::Assistant,
            SegSpeaker::Tool => Speaker::Tool,
            SegSpeaker::System => Speaker::Developer,
            _ if seg.kind == SegKind::Answer => Speaker::Tool,
            _ if seg.kind == SegKind::Call || seg.kind == SegKind::Thinking => Speaker::Assistant,
            _ => Speaker::User,
        },
        markable: !seg.unmarkable,
        blocks: 1,
    }
}

/// The events of a stream with the scenario's pauses, up to where it is dropped.
fn steps(events: Vec<(String, usize)>, reply: &ReplySpec) -> Vec<Step> {
    let dropped = reply.fault.is_some();
    if !dropped {
        let all: String = events.into_iter().map(|(event, _)| event).collect();
        return vec![Step::Bytes(Bytes::from(all))];
    }
    let mut steps = Vec::new();
    let total: usize = events.iter().map(|(_, bytes)| bytes).sum();
    let mut sent = 0;
    for (event, bytes) in events {
        steps.push(Step::Bytes(Bytes::from(event)));
        sent += bytes;
        if bytes > 0 && sent >= total / 2 {
            break;
        }
    }
    steps.push(Step::Cut);
    steps
}

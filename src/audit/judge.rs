//! The verdict on each request: reads records, keeps conversations, and says what became of the prefix.
//!
//! Memory does not grow with the log but for one small judgement a request: a conversation keeps its newest request,
//! and only the newest conversations keep its bytes.

mod miss;
mod tokens;
mod usage_only;
mod verdict;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::audit::compare::{self, Finding};
use crate::audit::conversations::{self, Kinship, Thread};
use crate::audit::history;
use crate::audit::json::JsonFault;
use crate::audit::predict::{self, Entries, Illegal, Walk};
use crate::audit::prompt::{ByHash, Parser, Prompt, Shape};
use crate::audit::record::{Judged, Record, Tokens};
use crate::audit::summary::Tally;
use crate::audit::threads::Threads;
use crate::audit::words::{Cause, Place, Verdict};
use crate::wire::Level;

/// How an audit is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Bytes as sent: a string and a lone text block differ. The default folds them, as providers do.
    pub strict_bytes: bool,
    /// The log's names of conversations decide; nothing is separated by shape.
    pub by_name: bool,
    /// Only sums and the first judgement of each cause are kept, so that memory does not grow with the log.
    pub fold: bool,
}

/// Faults of one history that are told.
const FAULTS_MAX: usize = 50;
/// Differences whose text is kept; later ones keep place and cause.
const TEXTS_MAX: usize = 2_000;

/// An audit under way.
#[derive(Debug)]
pub struct Auditor {
    options: Options,
    parser: Parser,
    entries: Entries,
    threads: Threads,
    names: Vec<String>,
    usage_threads: BTreeMap<String, usage_only::UsageThread>,
    judged: Vec<Judged>,
    samples: Vec<Judged>,
    tally: Tally,
    count: usize,
    texts: usize,
    /// Bytes and tokens of prompts whose tokens were counted.
    measured: (u64, u64),
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// A judgement a request, in the order of the log; of a folded audit those without bodies only.
    pub requests: Vec<Judged>,
    /// Of a folded audit, the first judgement of each cause.
    pub samples: Vec<Judged>,
    /// Of a folded audit, the sums.
    pub tally: Tally,
    /// Names of the conversations, by number.
    pub conversations: Vec<String>,
    /// Conversations whose reads never grow: number, floor in tokens.
    pub pinned: Vec<(usize, u64)>,
}

impl Audit {
    /// Number of requests.
    pub fn count(&self) -> usize {
        self.requests.len() + self.tally.count()
    }

    /// The judgement with this index, where it was kept.
    pub fn find(&self, index: usize) -> Option<&Judged> {
        let aligned = self.requests.get(index).filter(|judged| judged.index == index);
        aligned.or_else(|| self.samples.iter().chain(&self.requests).find(|judged| judged.index == index))
    }

    /// The name of a conversation; a number where the log gives none.
    pub fn name(&self, number: usize) -> String {
        match self.conversations.get(number) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => format!("#{number}"),
        }
    }
}

/// What is known of one request before the verdict.
struct Seen<'a> {
    prompt: Rc<Prompt>,
    record: &'a Record,
    walk: Walk,
    index: usize,
}

impl Auditor {
    /// An audit without any request.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            parser: Parser::new(!options.strict_bytes),
            entries: Entries::new(predict::rules()),
            threads: Threads::default(),
            names: Vec::new(),
            usage_threads: BTreeMap::new(),
            judged: Vec::new(),
            samples: Vec::new(),
            tally: Tally::default(),
            count: 0,
            texts: 0,
            measured: (0, 0),
        }
    }

    /// Judgements from a place on, each with the name of its conversation.
    pub fn since(&self, place: usize) -> impl Iterator<Item = (&Judged, &str)> {
        let name = |judged: &Judged| self.names.get(judged.conversation).map_or("", String::as_str);
        self.judged.iter().skip(place).map(move |judged| (judged, name(judged)))
    }

    /// Number of requests so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes in one request; `line` are the bytes that its body span points into.
    ///
    /// # Errors
    /// When the body is no JSON object, or none of a known shape.
    pub fn take(&mut self, record: &Record, line: &[u8]) -> Result<(), BodyFault> {
        let body = record.own_body.as_deref().unwrap_or_else(|| line.get(record.body.clone()).unwrap_or(&[]));
        if body.is_empty() {
            if record.usage.is_none() && record.grown.is_none() {
                return Err(BodyFault::NothingToJudge);
            }
            self.take_usage(record);
            return Ok(());
        }
        let mut prompt = self.parser.parse(body, record.shape)?.ok_or(BodyFault::UnknownShape)?;
        if prompt.segs.is_empty() {
            return Err(BodyFault::NothingToJudge);
        }
        if prompt.model.is_empty()
            && let Some(model) = &record.model
        {
            prompt.model.clone_from(model);
        }
        let judged = self.take_prompt(record, &Rc::new(prompt));
        self.keep(judged);
        Ok(())
    }

    /// Takes a body apart without judging it.
    ///
    /// # Errors
    /// When the body is no JSON object, or none of a known shape.
    pub fn parse(&mut self, body: &[u8], shape: Option<Shape>) -> Result<Rc<Prompt>, BodyFault> {
        Ok(Rc::new(self.parser.parse(body, shape)?.ok_or(BodyFault::UnknownShape)?))
    }

    /// Why a provider with markers would refuse the ones of this request.
    pub fn illegal(&self, prompt: &Prompt) -> Option<Illegal> {
        self.entries.illegal(prompt).filter(|_| prompt.shape == Shape::Anthropic)
    }

    /// Judges a request whose body was taken apart by [`Auditor::parse`], and says what was found.
    pub fn judge(&mut self, record: &Record, prompt: &Rc<Prompt>) -> Judged {
        let mut judged = self.take_prompt(record, prompt);
        if record.failed {
            // Nobody paid for it.
            (judged.tokens, judged.money, judged.money_lost) = (Tokens::default(), None, None);
        }
        self.keep(judged.clone());
        judged
    }

    /// Judges a history of which nobody knows how it was sent.
    fn take_said(&mut self, record: &Record, prompt: &Prompt) -> Judged {
        let number = self.number(record.conversation.as_deref());
        let mut judged = Judged::fine(self.count, record.line, number, record.at);
        judged.verdict = Verdict::NotJudged;
        for fault in history::faults(prompt, 0).iter().take(FAULTS_MAX) {
            judged.faults.push(history::told(prompt, fault));
        }
        judged
    }

    fn take_prompt(&mut self, record: &Record, prompt: &Rc<Prompt>) -> Judged {
        if record.said_only {
            return self.take_said(record, prompt);
        }
        let index = self.count;
        if let Some(usage) = &record.usage
            && usage.prompt() > 0
        {
            self.measured.0 += prompt.size();
            self.measured.1 += usage.prompt();
        }
        let accepted = record.usage.is_some_and(|usage| usage.prompt() > 0);
        if let Some(illegal) = self.entries.illegal(prompt)
            && !accepted
            && prompt.shape == Shape::Anthropic
        {
            return self.refuse(record, prompt, illegal);
        }
        let kinship = self.kinship(record, prompt);
        // An answer that failed writes nothing; what it would have read does not matter.
        let walk = if record.failed {
            Walk::default()
        } else {
            self.entries.observe(prompt, record.at, record.done_at)
        };
        let seen = Seen { prompt: prompt.clone(), record, walk, index };
        let (mut judged, thread) = match kinship {
            Kinship::New => self.begin(&seen),
            Kinship::Branch(thread, chain) => self.branch(&seen, thread, chain),
            Kinship::Follows(thread) => (self.follow(&seen, thread), thread),
        };
        self.price(&mut judged, &seen);
        self.histories(&mut judged, &seen, thread, kinship);
        self.advance(&seen, thread, &judged);
        judged
    }

    /// Keeps a judgement, or what is needed of it.
    fn keep(&mut self, judged: Judged) {
        self.count += 1;
        if !self.options.fold {
            self.judged.push(judged);
        } else if self.tally.add(&judged) {
            self.samples.push(judged);
        }
    }

    fn kinship(&self, record: &Record, prompt: &Prompt) -> Kinship {
        let compacted = declared(record);
        let name = record.conversation.as_deref();
        conversations::find(&self.threads, prompt, name, self.options.by_name, compacted)
    }

    fn refuse(&mut self, record: &Record, prompt: &Prompt, illegal: Illegal) -> Judged {
        let index = self.count;
        let kinship = self.kinship(record, prompt);
        let number = match kinship {
            Kinship::Follows(thread) | Kinship::Branch(thread, _) => self.threads[thread].number,
            Kinship::New => self.number(record.conversation.as_deref()),
        };
        let (cause, pointer, what) = refusal(prompt, illegal);
        let mut judged = Judged::fine(index, record.line, number, record.at);
        judged.verdict = Verdict::Refused;
        judged.cause = cause;
        judged.level = Some(Place::Request);
        judged.pointer.clone_from(&pointer);
        let mut finding = Finding::whole(cause, Place::Request, what);
        finding.pointer = pointer;
        judged.details.push(self.detail(finding));
        judged.tokens.prompt = self.estimate(prompt.size());
        judged
    }

    fn number(&mut self, name: Option<&str>) -> usize {
        self.names.push(name.unwrap_or_default().to_owned());
        self.names.len() - 1
    }

    fn begin(&mut self, seen: &Seen<'_>) -> (Judged, usize) {
        let name = seen.record.conversation.clone().unwrap_or_default();
        let number = self.number(seen.record.conversation.as_deref());
        let mut judged = Judged::fine(seen.index, seen.record.line, number, seen.record.at);
        judged.verdict = Verdict::ColdStart;
        judged.cause = Cause::ColdStart;
        if let Some(cause) = self.unaligned(seen) {
            judged.verdict = Verdict::UnplannedBreak;
            judged.cause = cause.cause;
            judged.level = Some(cause.level);
            judged.pointer.clone_from(&cause.pointer);
            judged.details.push(self.detail(cause));
        }
        self.fill(&mut judged, seen, 0, 0);
        let thread = self.threads.begin(Thread {
            number,
            name,
            last: seen.prompt.clone(),
            end: self.end(seen),
            route: seen.record.route.clone(),
            ends: ByHash::default(),
            compacted: None,
            touched: seen.index,
            stayed: 0,
        });
        (judged, thread)
    }

    /// A summariser that shares nothing with the conversation it summarises.
    fn unaligned(&self, seen: &Seen<'_>) -> Option<Finding> {
        let role = seen.record.role.as_deref()?;
        if !role.contains("summar") && !role.contains("compact") {
            return None;
        }
        let main = self.threads.last()?;
        let at = main.last.shared(&seen.prompt);
        let mut finding = Finding::whole(
            Cause::UnalignedSummarizer,
            seen.prompt.segs.get(at).map_or(Place::Messages, |seg| seg.level.into()),
            "the summariser does not share the conversation's prefix",
        );
        finding.pointer = seen.prompt.pointer(at);
        Some(finding)
    }

    fn branch(&mut self, seen: &Seen<'_>, thread: usize, chain: u128) -> (Judged, usize) {
        let found = &self.threads[thread];
        let mut judged = Judged::fine(seen.index, seen.record.line, found.number, seen.record.at);
        let end = found.ends.get(&chain).copied().unwrap_or(found.end);
        judged.base = Some(end.index);
        let expected = end.tokens.unwrap_or_else(|| self.estimate(seen.prompt.size_of(end.len)));
        self.fill(&mut judged, seen, end.len, expected);
        miss::judge(&mut judged, seen, end, expected);
        judged.notes.push("extends an earlier request of its conversation, not the newest one".to_owned());
        (judged, thread)
    }

    fn follow(&mut self, seen: &Seen<'_>, thread: usize) -> Judged {
        let found = &self.threads[thread];
        let before = found.last.clone();
        let end = found.end;
        let mut judged = Judged::fine(seen.index, seen.record.line, found.number, seen.record.at);
        judged.base = Some(end.index);
        let difference = compare::compare(&before, &seen.prompt);
        let expected = end.tokens.unwrap_or_else(|| self.estimate(before.size_of(difference.cacheable)));
        self.fill(&mut judged, seen, difference.shared, expected);
        judged.broken = !difference.extends();
        let outer = outer_changes(&before, found.route.as_deref(), seen, judged.broken);
        if judged.broken || !outer.is_empty() {
            self.broken(&mut judged, seen, thread, difference, outer, expected);
        } else {
            judged.tokens.lost = 0;
            miss::judge(&mut judged, seen, end, expected);
            miss::step(&mut judged, seen, &before);
            self.static_marker(&mut judged, seen, thread, &before);
        }
        judged
    }

    /// The last marker stays where it was although the conversation grows behind it.
    fn static_marker(&mut self, judged: &mut Judged, seen: &Seen<'_>, thread: usize, before: &Prompt) {
        let (Some((old, _)), Some((new, _))) = (before.marks.last(), seen.prompt.marks.last()) else {
            return;
        };
        let in_messages = seen.prompt.segs[*new].level == Level::Messages;
        let grew = seen.prompt.segs.len() > before.segs.len() && before.segs.len() > old + 1;
        let stayed = if old != new || !grew { 0 } else { self.threads[thread].stayed + 1 };
        self.threads.change(thread, |last| last.stayed = stayed);
        if in_messages && stayed >= 2 && judged.cause == Cause::None {
            let what = "the last marker stays on the same block while the conversation grows";
            let mut finding = Finding::whole(Cause::BreakpointStatic, Place::Messages, what);
            finding.pointer = seen.prompt.pointer(*new);
            let lost = before.size().saturating_sub(before.size_of(*old + 1));
            self.settle(judged, vec![finding], false);
            judged.tokens.lost = self.estimate(lost);
        }
    }

    fn histories(&mut self, judged: &mut Judged, seen: &Seen<'_>, thread: usize, kinship: Kinship) {
        let fresh = kinship == Kinship::New;
        let before = &self.threads[thread].last;
        let shared = if fresh { 0 } else { before.shared(&seen.prompt) };
        let from = if fresh { 0 } else { history::first_new_turn(&seen.prompt, shared) };
        let known = if fresh { Vec::new() } else { history::faults(before, from) };
        for fault in history::faults(&seen.prompt, from) {
            let again = known.iter().any(|old| old.kind == fault.kind && old.id == fault.id && fault.id != 0);
            if !again && judged.faults.len() < FAULTS_MAX {
                judged.faults.push(history::told(&seen.prompt, &fault));
            }
        }
    }

    /// Makes a request the newest one of its conversation, and lets go of what is too old to be shown.
    fn advance(&mut self, seen: &Seen<'_>, thread: usize, judged: &Judged) {
        let end = self.end(seen);
        if seen.record.failed {
            return;
        }
        let compacted = judged.planned
            || judged.details.iter().any(|detail| {
                matches!(detail.cause, Cause::PlannedCompaction | Cause::CompactionIneffective)
            });
        self.threads.change(thread, |found| {
            if seen.record.route.is_some() {
                found.route.clone_from(&seen.record.route);
            }
            if compacted {
                found.compacted = Some((seen.index, seen.prompt.size()));
            }
        });
        self.threads.advance(thread, &seen.prompt, end);
        self.threads.let_go();
    }

    /// What was found so far, of a folded audit.
    pub fn so_far(&self) -> Audit {
        Audit {
            requests: self.judged.clone(),
            samples: self.samples.clone(),
            tally: self.tally.clone(),
            conversations: self.names.clone(),
            pinned: Vec::new(),
        }
    }

    /// Ends the audit.
    pub fn finish(mut self) -> Audit {
        let pinned = self.finish_usage();
        Audit {
            requests: self.judged,
            samples: self.samples,
            tally: self.tally,
            conversations: self.names,
            pinned,
        }
    }
}

/// The log itself says that the history was compacted.
fn declared(record: &Record) -> bool {
    record.event.as_deref().is_some_and(|event| event.contains("compact"))
}

pub(crate) use verdict::changed_params;
use verdict::outer_changes;

/// Why a request could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// No JSON.
    #[error(transparent)]
    Json(#[from] JsonFault),
    /// A JSON object of no known shape.
    #[error("no request body of a known shape")]
    UnknownShape,
    /// Neither a body nor token counts.
    #[error("neither a prompt nor token counts")]
    NothingToJudge,
}

fn refusal(prompt: &Prompt, illegal: Illegal) -> (Cause, String, String) {
    match illegal {
        Illegal::Overflow(count) => {
            let counts = prompt.mark_counts();
            let what = format!(
                "{count} markers where four are allowed: {} on tools, {} on system, {} on messages",
                counts[0], counts[1], counts[2]
            );
            (Cause::BreakpointOverflow, prompt.pointer(prompt.marks[4].0), what)
        }
        Illegal::Target(at) => {
            let what = "a marker on a block that may not carry one".to_owned();
            (Cause::BreakpointIllegalTarget, prompt.pointer(at), what)
        }
        Illegal::Order(at) => {
            let what = "a one-hour marker behind a five-minute one".to_owned();
            (Cause::TtlOrderIllegal, prompt.pointer(at), what)
        }
    }
}

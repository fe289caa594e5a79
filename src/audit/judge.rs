//! The verdict on each request: reads records, keeps conversations, and says what became of the prefix.
//!
//! Memory does not grow with the log but for one small judgement a request: a conversation keeps its newest request,
//! and only the newest conversations keep its bytes.

mod miss;
mod usage_only;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::audit::compare::{self, Difference, Finding};
use crate::audit::conversations::{self, End, Kinship, Thread};
use crate::audit::history;
use crate::audit::json::JsonFault;
use crate::audit::predict::{Entries, Illegal, Rules, Walk};
use crate::audit::prompt::{ByHash, Parser, Prompt, Shape};
use crate::audit::record::{Detail, Judged, Record, Tokens};
use crate::audit::text_kind::TextKind;
use crate::audit::usage::{Price, Usage};
use crate::audit::words::{Cause, Evidence, Place, Verdict};
use crate::wire::Level;

/// How an audit is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Bytes as sent: a string and a lone text block differ. The default folds them, as providers do.
    pub strict_bytes: bool,
    /// The log's names of conversations decide; nothing is separated by shape.
    pub by_name: bool,
}

/// Bytes of bodies that are kept for showing differences.
const HELD_MAX: usize = 12 << 20;
/// Conversations that are kept.
const THREADS_MAX: usize = 4096;
/// Ends of earlier requests that a conversation keeps.
const ENDS_MAX: usize = 1024;
/// Differences whose text is kept; later ones keep place and cause.
const TEXTS_MAX: usize = 2_000;

/// An audit under way.
#[derive(Debug)]
pub struct Auditor {
    options: Options,
    parser: Parser,
    entries: Entries,
    threads: Vec<Thread>,
    names: Vec<String>,
    usage_threads: BTreeMap<String, usage_only::UsageThread>,
    judged: Vec<Judged>,
    held: usize,
    texts: usize,
    /// Bytes and tokens of prompts whose tokens were counted.
    measured: (u64, u64),
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// A judgement a request, in the order of the log.
    pub requests: Vec<Judged>,
    /// Names of the conversations, by number.
    pub conversations: Vec<String>,
    /// Conversations whose reads never grow: number, floor in tokens.
    pub pinned: Vec<(usize, u64)>,
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
            entries: Entries::new(Rules::default()),
            threads: Vec::new(),
            names: Vec::new(),
            usage_threads: BTreeMap::new(),
            judged: Vec::new(),
            held: 0,
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
        self.judged.len()
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
        self.take_prompt(record, Rc::new(prompt));
        Ok(())
    }

    fn take_prompt(&mut self, record: &Record, prompt: Rc<Prompt>) {
        let index = self.judged.len();
        if let Some(usage) = &record.usage
            && usage.prompt() > 0
        {
            self.measured.0 += prompt.size();
            self.measured.1 += usage.prompt();
        }
        let accepted = record.usage.is_some_and(|usage| usage.prompt() > 0);
        if let Some(illegal) = self.entries.illegal(&prompt)
            && !accepted
            && prompt.shape == Shape::Anthropic
        {
            self.refuse(record, &prompt, illegal);
            return;
        }
        let kinship = self.kinship(record, &prompt);
        // An answer that failed writes nothing; what it would have read does not matter.
        let walk = if record.failed {
            Walk::default()
        } else {
            self.entries.observe(index, &prompt, record.at, record.done_at)
        };
        let seen = Seen { prompt, record, walk, index };
        let (mut judged, thread) = match kinship {
            Kinship::New => self.begin(&seen),
            Kinship::Branch(thread, chain) => self.branch(&seen, thread, chain),
            Kinship::Follows(thread) => (self.follow(&seen, thread), thread),
        };
        self.price(&mut judged, &seen);
        self.histories(&mut judged, &seen, thread, kinship);
        self.advance(&seen, thread, &judged);
        self.judged.push(judged);
    }

    fn kinship(&self, record: &Record, prompt: &Prompt) -> Kinship {
        let compacted = declared(record);
        let name = record.conversation.as_deref();
        conversations::find(&self.threads, prompt, name, self.options.by_name, compacted)
    }

    fn refuse(&mut self, record: &Record, prompt: &Prompt, illegal: Illegal) {
        let index = self.judged.len();
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
        self.judged.push(judged);
    }

    fn number(&mut self, name: Option<&str>) -> usize {
        self.names.push(name.map_or_else(|| format!("#{}", self.names.len()), str::to_owned));
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
        self.threads.push(Thread {
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
        self.held += seen.prompt.body.len();
        (judged, self.threads.len() - 1)
    }

    /// A summariser that shares nothing with the conversation it summarises.
    fn unaligned(&self, seen: &Seen<'_>) -> Option<Finding> {
        let role = seen.record.role.as_deref()?;
        if !role.contains("summar") && !role.contains("compact") {
            return None;
        }
        let main = self.threads.iter().max_by_key(|thread| thread.touched)?;
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

    /// The prefix, or the key of its entry, broke.
    fn broken(
        &mut self,
        judged: &mut Judged,
        seen: &Seen<'_>,
        thread: usize,
        difference: Difference,
        outer: Vec<Finding>,
        expected: u64,
    ) {
        let declared = declared(seen.record);
        let compaction = difference.compaction;
        let mut findings = outer;
        findings.extend(difference.findings);
        findings.sort_by_key(|finding| (rank(finding), finding.at));
        let mut planned = false;
        let dropped = findings.iter().position(|finding| finding.cause == Cause::SummaryFailureDropsHistory);
        if let Some(at) = dropped {
            findings = vec![findings.swap_remove(at)];
        } else if declared {
            planned = true;
            let mut finding = findings.remove(0);
            finding.cause = Cause::PlannedCompaction;
            finding.what = "the history was compacted, as the log says".to_owned();
            findings = vec![finding];
        } else if compaction.is_some() {
            // What was read again from disk at a compaction belongs to it.
            findings
                .retain(|finding| finding.cause != Cause::MemoryLiveRead && finding.kind != TextKind::Memory);
            planned = findings.first().is_some_and(|first| first.cause == Cause::PlannedCompaction);
        }
        if (declared || compaction.is_some())
            && let Some(shrunk) = self.compaction_faults(seen, thread, &mut findings)
        {
            planned &= shrunk;
        }
        let last = &self.threads[thread];
        if let Some(idle) = idle_over(last.end.at, seen) {
            let mut finding = Finding::whole(Cause::TtlExpired, Place::All, idle);
            finding.at = usize::MAX;
            findings.push(finding);
        }
        if !judged.broken && self.proven_read(seen, expected) {
            // Only the key changed, and the provider read everything all the same.
            findings.clear();
            judged.tokens.lost = 0;
            judged.notes.push("a parameter changed and the provider read the prefix all the same".to_owned());
        }
        self.settle(judged, findings, planned);
    }

    fn proven_read(&self, seen: &Seen<'_>, expected: u64) -> bool {
        let _ = self;
        seen.record.usage.is_some_and(|usage| expected > 0 && usage.read + expected / 50 + 64 >= expected)
    }

    fn settle(&mut self, judged: &mut Judged, findings: Vec<Finding>, planned: bool) {
        let Some(first) = findings.first() else {
            judged.verdict = Verdict::Extends;
            return;
        };
        judged.cause = first.cause;
        judged.level = Some(first.level);
        judged.pointer.clone_from(&first.pointer);
        judged.byte = first.byte;
        judged.evidence = first.evidence;
        judged.planned = planned;
        judged.verdict = match first.cause {
            _ if planned => Verdict::PlannedBreak,
            Cause::TtlExpired => Verdict::Expired,
            _ => Verdict::UnplannedBreak,
        };
        for finding in findings.iter().skip(1) {
            if finding.cause != judged.cause && !judged.latent.contains(&finding.cause) {
                judged.latent.push(finding.cause);
            }
        }
        for finding in findings {
            let detail = self.detail(finding);
            judged.details.push(detail);
        }
    }

    /// Compactions that do not help, and what they lose. `Some(false)` when it did not shrink.
    fn compaction_faults(&self, seen: &Seen<'_>, thread: usize, findings: &mut Vec<Finding>) -> Option<bool> {
        let last = &self.threads[thread];
        let (before, after) = (&last.last, &seen.prompt);
        let mut shrunk = true;
        let repeated = last.compacted.is_some_and(|(index, _)| seen.index - index <= 2);
        if after.size() >= before.size() || repeated && after.size() * 20 >= before.size() * 19 {
            shrunk = false;
            let what = "the compaction did not make the request smaller";
            let mut finding = Finding::whole(Cause::CompactionIneffective, Place::Messages, what);
            if let Some(first) = findings.first() {
                finding.level = first.level;
                finding.pointer.clone_from(&first.pointer);
            }
            findings.insert(0, finding);
        }
        if before.held() && after.held() {
            let text: String = (0..after.segs.len()).map(|at| after.text(at)).collect::<Vec<_>>().join("\n");
            for lost in history::standing_instructions(before) {
                if !history::survives(&lost, &text) {
                    let what = "a standing instruction of the user is gone";
                    let mut finding = Finding::whole(Cause::InstructionLost, Place::Messages, what);
                    finding.before = lost;
                    finding.evidence = Evidence::BytesSeen;
                    finding.at = usize::MAX - 1;
                    findings.push(finding);
                }
            }
        }
        Some(shrunk)
    }

    /// The last marker stays where it was although the conversation grows behind it.
    fn static_marker(&mut self, judged: &mut Judged, seen: &Seen<'_>, thread: usize, before: &Prompt) {
        let (Some((old, _)), Some((new, _))) = (before.marks.last(), seen.prompt.marks.last()) else {
            return;
        };
        let in_messages = seen.prompt.segs[*new].level == Level::Messages;
        let grew = seen.prompt.segs.len() > before.segs.len() && before.segs.len() > old + 1;
        let last = &mut self.threads[thread];
        if old != new || !grew {
            last.stayed = 0;
            return;
        }
        last.stayed += 1;
        if in_messages && last.stayed >= 2 && judged.cause == Cause::None {
            let what = "the last marker stays on the same block while the conversation grows";
            let mut finding = Finding::whole(Cause::BreakpointStatic, Place::Messages, what);
            finding.pointer = seen.prompt.pointer(*new);
            let lost = before.size().saturating_sub(before.size_of(*old + 1));
            self.settle(judged, vec![finding], false);
            judged.tokens.lost = self.estimate(lost);
        }
    }

    fn detail(&mut self, finding: Finding) -> Detail {
        self.texts += 1;
        let (before, after) = if self.texts > TEXTS_MAX {
            (String::new(), String::new())
        } else {
            (around(&finding.before, &finding.after), around(&finding.after, &finding.before))
        };
        Detail {
            cause: finding.cause,
            level: Some(finding.level),
            pointer: finding.pointer,
            pointers: finding.pointers,
            byte: finding.byte,
            kind: finding.kind,
            what: finding.what,
            before,
            after,
            names: finding.names,
            moved: finding.moved,
            evidence: finding.evidence,
        }
    }

    fn end(&self, seen: &Seen<'_>) -> End {
        let _ = self;
        let len = seen.prompt.cacheable();
        let tokens = seen.record.usage.filter(|usage| usage.prompt() > 0).map(|usage| {
            let cached = usage.read + usage.written();
            match seen.prompt.shape {
                // What stands behind the last marker is the rest that is neither read nor written.
                Shape::Anthropic if cached > 0 => cached,
                Shape::Anthropic => 0,
                _ => usage.prompt(),
            }
        });
        End { len, index: seen.index, at: seen.record.at, tokens }
    }

    /// Tokens of so many bytes, by what this log measured; four bytes a token where it measured nothing.
    fn estimate(&self, bytes: u64) -> u64 {
        let (size, tokens) = self.measured;
        if size == 0 || tokens == 0 {
            return bytes / 4;
        }
        u64::try_from(u128::from(bytes) * u128::from(tokens) / u128::from(size)).unwrap_or(u64::MAX)
    }

    fn fill(&self, judged: &mut Judged, seen: &Seen<'_>, shared: usize, expected: u64) {
        let prompt = &seen.prompt;
        let total = match &seen.record.usage {
            Some(usage) if usage.prompt() > 0 => usage.prompt(),
            _ => self.estimate(prompt.size()),
        };
        let share = |count: usize| {
            let size = prompt.size().max(1);
            u64::try_from(u128::from(total) * u128::from(prompt.size_of(count)) / u128::from(size))
                .unwrap_or(0)
        };
        let matched = share(shared);
        let predicted = match prompt.shape {
            Shape::Anthropic => share(seen.walk.hit),
            _ if matched < 1024 => 0,
            _ => matched / 128 * 128,
        };
        judged.tokens = Tokens { prompt: total, matched, predicted_read: predicted, ..Tokens::default() };
        let tokens = &mut judged.tokens;
        match &seen.record.usage {
            Some(usage) if usage.prompt() > 0 => {
                (tokens.read, tokens.written, tokens.uncached) = (usage.read, usage.written(), usage.fresh);
                tokens.billed = true;
            }
            _ => {
                tokens.read = predicted;
                let end = if prompt.shape == Shape::Anthropic && prompt.marks.is_empty() {
                    0
                } else {
                    prompt.cacheable()
                };
                tokens.written = match prompt.shape {
                    Shape::Anthropic => share(end).saturating_sub(predicted),
                    _ => 0,
                };
                tokens.uncached = total.saturating_sub(tokens.read + tokens.written);
            }
        }
        tokens.lost = expected.saturating_sub(tokens.read).min(total);
    }

    fn price(&self, judged: &mut Judged, seen: &Seen<'_>) {
        let _ = self;
        let Some(price) = Price::of_model(&seen.prompt.model) else { return };
        let tokens = &judged.tokens;
        let written = tokens.written > 0;
        judged.money_lost = Some(price.lost(tokens.lost, written));
        let usage = seen.record.usage.unwrap_or(Usage {
            fresh: tokens.uncached,
            read: tokens.read,
            write_5m: tokens.written,
            write_1h: 0,
            output: 0,
        });
        judged.money = Some(price.of(&usage));
    }

    fn histories(&mut self, judged: &mut Judged, seen: &Seen<'_>, thread: usize, kinship: Kinship) {
        let fresh = kinship == Kinship::New;
        let before = &self.threads[thread].last;
        let shared = if fresh { 0 } else { before.shared(&seen.prompt) };
        let from = if fresh { 0 } else { history::first_new_turn(&seen.prompt, shared) };
        let known = if fresh { Vec::new() } else { history::faults(before, from) };
        for fault in history::faults(&seen.prompt, from) {
            let again = known.iter().any(|old| old.kind == fault.kind && old.id == fault.id && fault.id != 0);
            if !again && judged.faults.len() < 50 {
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
        let found = &mut self.threads[thread];
        if !Rc::ptr_eq(&found.last, &seen.prompt) {
            self.held = self.held.saturating_sub(found.last.body.len()) + seen.prompt.body.len();
        }
        found.last = seen.prompt.clone();
        found.end = end;
        found.touched = seen.index;
        if seen.record.route.is_some() {
            found.route.clone_from(&seen.record.route);
        }
        if let Some(chain) = end.len.checked_sub(1).map(|last| seen.prompt.chain[last]) {
            found.ends.insert(chain, end);
        }
        if let Some(last) = seen.prompt.chain.last() {
            found.ends.entry(*last).or_insert(End { len: seen.prompt.segs.len(), ..end });
        }
        if found.ends.len() > ENDS_MAX {
            found.ends.drain(..ENDS_MAX / 2);
        }
        let compacted = judged.planned
            || judged.details.iter().any(|detail| {
                matches!(detail.cause, Cause::PlannedCompaction | Cause::CompactionIneffective)
            });
        if compacted {
            found.compacted = Some((seen.index, seen.prompt.size()));
        }
        self.let_go();
    }

    fn let_go(&mut self) {
        while self.held > HELD_MAX && self.threads.len() > 1 {
            let oldest = self
                .threads
                .iter_mut()
                .filter(|thread| thread.last.held())
                .min_by_key(|thread| thread.touched);
            let Some(oldest) = oldest else { return };
            self.held -= oldest.last.body.len();
            let mut bare = (*oldest.last).clone();
            bare.body = Rc::from(&[][..]);
            oldest.last = Rc::new(bare);
            if self.threads.iter().filter(|thread| thread.last.held()).count() <= 1 {
                return;
            }
        }
        if self.threads.len() > THREADS_MAX {
            self.threads.sort_by_key(|thread| thread.touched);
            let gone: Vec<Thread> = self.threads.drain(..THREADS_MAX / 2).collect();
            self.held -= gone.iter().map(|thread| thread.last.body.len()).sum::<usize>();
        }
    }

    /// Ends the audit.
    pub fn finish(mut self) -> Audit {
        let pinned = self.finish_usage();
        Audit { requests: self.judged, conversations: self.names, pinned }
    }
}

/// The log itself says that the history was compacted.
fn declared(record: &Record) -> bool {
    record.event.as_deref().is_some_and(|event| event.contains("compact"))
}

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

/// Changes outside the segments that belong to the key of an entry.
fn outer_changes(before: &Prompt, route: Option<&str>, seen: &Seen<'_>, broken: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let after = &seen.prompt;
    if before.model != after.model {
        let mut finding = Finding::whole(
            Cause::ModelChanged,
            Place::All,
            format!("from {} to {}", shown(&before.model), shown(&after.model)),
        );
        (finding.before, finding.after) = (before.model.clone(), after.model.clone());
        found.push(finding);
    }
    let key = before.route_key != after.route_key;
    let moved = match (route, &seen.record.route) {
        (Some(old), Some(new)) if old != new => Some((old.to_owned(), new.clone())),
        _ => key.then(|| (before.route_key.clone(), after.route_key.clone())),
    };
    if let Some((old, new)) = moved {
        let what = format!("from {} to {}", shown(&old), shown(&new));
        let mut finding = Finding::whole(Cause::RouteChanged, Place::All, what);
        (finding.before, finding.after) = (old, new);
        found.push(finding);
    }
    let names = changed_params(before, after);
    if !names.is_empty() && before.shape == after.shape {
        let what = format!("changed: {}", names.join(", "));
        let mut finding = Finding::whole(Cause::ParamsChanged, Place::Messages, what);
        finding.names = names.iter().map(|name| (*name).to_owned()).collect();
        finding.before = params_text(before);
        finding.after = params_text(after);
        finding.at = after.segs.partition_point(|seg| seg.level < Level::Messages);
        // Parameters cost nothing where no message could have been cached.
        let messages = before.cacheable() > before.segs.partition_point(|seg| seg.level < Level::Messages);
        if messages || broken {
            found.push(finding);
        }
    }
    found
}

/// Names of parameters that differ between two prompts.
pub(crate) fn changed_params(before: &Prompt, after: &Prompt) -> Vec<&'static str> {
    let value = |prompt: &Prompt, name: &str| {
        prompt.params.iter().find(|param| param.name == name).map(|param| param.value.clone())
    };
    let mut names: Vec<&'static str> =
        before.params.iter().chain(&after.params).map(|param| param.name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| value(before, name) != value(after, name));
    names
}

fn params_text(prompt: &Prompt) -> String {
    prompt.params.iter().map(|param| format!("{}: {}\n", param.name, param.value)).collect()
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "nothing" } else { name }
}

/// Order of the levels in the prefix; the model and the route stand before everything.
fn rank(finding: &Finding) -> u8 {
    match finding.level {
        Place::All if finding.cause == Cause::TtlExpired => 9,
        Place::All | Place::Request => 0,
        Place::Tools => 1,
        Place::System => 2,
        Place::Messages if finding.cause == Cause::ParamsChanged => 3,
        Place::Messages => 4,
    }
}

/// The entries of the request before had outlived their lifetime as well.
fn idle_over(last: Option<crate::world::Millis>, seen: &Seen<'_>) -> Option<String> {
    let idle = seen.record.at?.checked_sub(last?)?;
    let lifetime = miss::lifetime_of(&seen.prompt, seen.record);
    (idle > lifetime)
        .then(|| format!("{} s since the request before, more than the entry lives", idle / 1000))
}

/// A text cut to a window around its first difference from another.
fn around(text: &str, other: &str) -> String {
    const WINDOW: usize = 1200;
    if text.len() <= 2 * WINDOW {
        return text.to_owned();
    }
    let at = crate::audit::text_kind::common_head(text, other);
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(at.saturating_sub(WINDOW)), floor(at + WINDOW));
    let lead = if start > 0 { "…" } else { "" };
    let trail = if end < text.len() { "…" } else { "" };
    format!("{lead}{}{trail}", &text[start..end])
}

impl Prompt {
    /// Markers on tools, system, messages.
    pub fn mark_counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for (at, _) in &self.marks {
            counts[self.segs[*at].level as usize] += 1;
        }
        counts
    }
}

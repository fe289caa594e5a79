//! Conversations of which only token counts are known: transcripts, usage logs.
//!
//! Everything here is concluded from numbers: what was read against what the request before had put into the cache,
//! how the prompt grew against what came in, and how long it was quiet. Where several causes fit, the others are named.

use crate::audit::judge::Auditor;
use crate::audit::record::{Detail, Grown, Judged, Record, Tokens};
use crate::audit::text_kind::TextKind;
use crate::audit::usage::{self, Usage};
use crate::audit::words::{Cause, Evidence, Place, Verdict};
use crate::cache::prices::Price;
use crate::world::Millis;

/// One request in numbers.
#[derive(Debug, Clone, Default)]
struct Point {
    /// Place among the kept judgements.
    judged: usize,
    index: usize,
    at: Option<Millis>,
    usage: Usage,
    grown: Grown,
    model: Option<String>,
    /// What is cached stands apart from the input in this provider's counts, so markers exist.
    explicit: bool,
}

/// A conversation in numbers.
#[derive(Debug, Default)]
pub(super) struct UsageThread {
    number: usize,
    points: Vec<Point>,
}

/// Tokens that framing may take or give.
const SLACK: u64 = 64;

impl Auditor {
    /// Takes in a request without a body.
    pub(super) fn take_usage(&mut self, record: &Record) {
        let name = record.conversation.clone().unwrap_or_default();
        let index = self.count;
        if !self.usage_threads.contains_key(&name) {
            let number = self.number(record.conversation.as_deref());
            self.usage_threads.insert(name.clone(), UsageThread { number, points: Vec::new() });
        }
        let Some(thread) = self.usage_threads.get_mut(&name) else { return };
        let mut judged = Judged::fine(index, record.line, thread.number, record.at);
        judged.evidence = Evidence::UsageOnly;
        let Some(usage) = record.usage.filter(|usage| usage.prompt() > 0 && !record.failed) else {
            judged.verdict = Verdict::NotJudged;
            judged.notes.push("no token counts".to_owned());
            self.keep_open(judged);
            return;
        };
        judged.tokens = Tokens {
            prompt: usage.prompt(),
            read: usage.read,
            written: usage.written(),
            uncached: usage.fresh,
            billed: true,
            ..Tokens::default()
        };
        let explicit = match record.shape {
            Some(shape) => shape == crate::audit::prompt::Shape::Anthropic,
            None => usage.written() > 0,
        };
        thread.points.push(Point {
            judged: self.judged.len(),
            index,
            at: record.at,
            usage,
            grown: record.grown.clone().unwrap_or_default(),
            model: record.model.clone(),
            explicit,
        });
        let known = thread.points.len();
        let verdict = judge(&thread.points, known - 1);
        apply(&mut judged, &thread.points, known - 1, verdict);
        self.keep_open(judged);
    }

    /// Keeps a judgement that may still change, whatever is folded.
    fn keep_open(&mut self, judged: Judged) {
        self.count += 1;
        self.judged.push(judged);
    }

    /// Judges again with hindsight: a miss that repeats has another cause than one that does not.
    pub(super) fn finish_usage(&mut self) -> Vec<(usize, u64)> {
        let mut pinned = Vec::new();
        for thread in self.usage_threads.values() {
            let floor = pinned_floor(&thread.points);
            if let Some(floor) = floor {
                pinned.push((thread.number, floor));
            }
            for at in 0..thread.points.len() {
                let judged = &mut self.judged[thread.points[at].judged];
                let mut verdict = judge(&thread.points, at);
                if let (Some(_), Some(said)) = (floor, &mut verdict)
                    && at > 0
                {
                    said.cause = Cause::FloorPinned;
                    said.verdict = Verdict::UnplannedBreak;
                    said.candidates.clear();
                    said.latent.clear();
                    said.what =
                        String::from("what is read stays at a small fixed head while the prompt grows");
                }
                apply(judged, &thread.points, at, verdict);
            }
        }
        pinned
    }
}

/// A small fixed read in every request after the first, while the prompt grows.
fn pinned_floor(points: &[Point]) -> Option<u64> {
    let later = points.get(1..)?;
    let floor = later.first()?.usage.read;
    let grows = points.windows(2).all(|pair| pair[1].usage.prompt() > pair[0].usage.prompt());
    let flat = later.iter().all(|point| point.usage.read == floor);
    let small = later.iter().zip(points).all(|(point, before)| {
        point.usage.read + SLACK < readable(before) && before.usage.prompt() > 2 * floor
    });
    (later.len() >= 3 && grows && flat && small && floor > 0).then_some(floor)
}

/// Tokens that the next request could read.
fn readable(point: &Point) -> u64 {
    if point.explicit { point.usage.read + point.usage.written() } else { point.usage.prompt() }
}

struct Said {
    verdict: Verdict,
    cause: Cause,
    latent: Vec<Cause>,
    level: Place,
    what: String,
    candidates: Vec<Cause>,
}

fn said(verdict: Verdict, cause: Cause, level: Place, what: impl Into<String>) -> Said {
    Said { verdict, cause, latent: Vec::new(), level, what: what.into(), candidates: Vec::new() }
}

/// Judges one point; `None` when nothing is wrong with it.
fn judge(points: &[Point], at: usize) -> Option<Said> {
    let point = &points[at];
    let before = points.get(at.checked_sub(1)?)?;
    let expected = readable(before);
    let slack = if point.explicit { SLACK + expected / 50 } else { 256 + expected / 20 };
    if expected < 1024 || point.usage.read + slack >= expected {
        return None;
    }
    if point.grown.compacted || shrunk(point, before) {
        let mut found = said(
            Verdict::PlannedBreak,
            Cause::PlannedCompaction,
            Place::Messages,
            "the prompt became smaller: the history was compacted",
        );
        if !point.grown.compacted {
            found.candidates = vec![Cause::HistoryRewritten];
        }
        return Some(found);
    }
    if let Some(idle) = idle(point, before) {
        return Some(said(
            Verdict::Expired,
            Cause::TtlExpired,
            Place::All,
            format!("idle for {} s", idle / 1000),
        ));
    }
    if !point.explicit {
        let what = "read less than the request before had sent; only token counts are known";
        return Some(said(Verdict::EvictedOrUnexplained, Cause::Unexplained, Place::All, what));
    }
    Some(explicit(points, at))
}

/// A miss of a client that sets markers.
fn explicit(points: &[Point], at: usize) -> Said {
    let point = &points[at];
    let shorter = shorter_than_expected(points, at);
    if point.usage.read == 0 {
        return head(points, at, shorter);
    }
    // Every result answers a call that came in the same step.
    let blocks = point.grown.blocks + point.grown.answers;
    if blocks >= 20 && shorter.is_none() {
        let what = format!("about {blocks} blocks came in one step; a marker looks back over 20");
        return said(Verdict::UnplannedBreak, Cause::LookbackExceeded, Place::All, what);
    }
    let boundary = points[..at].iter().position(|one| readable(one).abs_diff(point.usage.read) <= 4);
    let what = match boundary {
        Some(_) => {
            "what an earlier request wrote could be read, what came behind it could not: the history changed there"
        }
        None => "a part of the prefix could be read, the rest not: the history changed behind it",
    };
    let mut found = said(Verdict::UnplannedBreak, Cause::HistoryRewritten, Place::Messages, what);
    found.candidates = vec![
        Cause::ResultReorder,
        Cause::BlockMigrated,
        Cause::RepresentationDrift,
        Cause::ParamsChanged,
        Cause::LookbackExceeded,
    ];
    found
}

/// Nothing at all could be read: the head of the prompt changed, or the entries are gone.
fn head(points: &[Point], at: usize, shorter: Option<u64>) -> Said {
    let missed = |at: usize| points[at].usage.read == 0 && points[at].usage.written() > 0;
    let again = (at > 1 && missed(at - 1)) || (at + 1 < points.len() && missed(at + 1));
    if again {
        let what =
            "every request writes and none reads: something at the head changes each time, such as a clock";
        let mut found = said(Verdict::UnplannedBreak, Cause::VolatileTime, Place::System, what);
        found.candidates =
            vec![Cause::VolatileId, Cause::MemoryLiveRead, Cause::SystemChanged, Cause::ToolReorder];
        return found;
    }
    let what = "nothing was read, not even tools and system prompt: their bytes changed once, or the entries were lost";
    let mut found = said(Verdict::UnplannedBreak, Cause::ToolReorder, Place::Tools, what);
    found.candidates =
        vec![Cause::ToolSetChanged, Cause::SystemChanged, Cause::ModelChanged, Cause::Unexplained];
    if shorter.is_some() {
        found.latent.push(Cause::HistoryRewritten);
    }
    found
}

fn shrunk(point: &Point, before: &Point) -> bool {
    let (now, then) = (point.usage.prompt(), before.usage.prompt());
    now + SLACK + then / 50 < then
}

/// Tokens by which the prompt falls short of what came in, where the transcript shows what came in.
fn shorter_than_expected(points: &[Point], at: usize) -> Option<u64> {
    let grew = |at: usize| {
        let (now, then) = (points[at].usage.prompt(), points[at - 1].usage.prompt());
        (points[at].grown.bytes > 0 && now > then).then(|| (points[at].grown.bytes, now - then))
    };
    let (bytes, tokens) = (1..at).filter_map(grew).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let point = &points[at];
    if bytes == 0 || point.grown.bytes == 0 {
        return None;
    }
    let came = point.grown.bytes * tokens / bytes;
    let expected = points[at - 1].usage.prompt() + came;
    let short = expected.checked_sub(point.usage.prompt())?;
    (short > SLACK / 2 + came / 4).then_some(short)
}

fn idle(point: &Point, before: &Point) -> Option<Millis> {
    let idle = point.at?.checked_sub(before.at?)?;
    let lifetime = if before.usage.write_1h > 0 { 3_600_000 } else { 300_000 };
    (idle > lifetime).then_some(idle)
}

fn apply(judged: &mut Judged, points: &[Point], at: usize, said: Option<Said>) {
    let point = &points[at];
    judged.details.clear();
    judged.latent.clear();
    judged.candidates.clear();
    judged.base = at.checked_sub(1).map(|before| points[before].index);
    let expected = at.checked_sub(1).map_or(0, |before| readable(&points[before]));
    judged.tokens.matched = expected.min(point.usage.prompt());
    judged.tokens.predicted_read = judged.tokens.matched;
    let price = point.model.as_deref().and_then(|model| usage::price_of(model, point.at));
    judged.money = price.map(|price| price.cost(&point.usage).dollars());
    let Some(said) = said else {
        let first = at == 0;
        judged.verdict = if first { Verdict::ColdStart } else { Verdict::Extends };
        judged.cause = if first { Cause::ColdStart } else { Cause::None };
        judged.tokens.lost = 0;
        judged.money_lost = price.map(|_| 0.0);
        return;
    };
    judged.verdict = said.verdict;
    judged.cause = said.cause;
    judged.latent = said.latent;
    judged.level = Some(said.level);
    judged.candidates = said.candidates;
    judged.planned = said.verdict == Verdict::PlannedBreak;
    judged.tokens.lost = expected.saturating_sub(point.usage.read).min(point.usage.prompt());
    let lost = judged.tokens.lost;
    let missing = |price: &Price| price.cost_of_missing(&point.usage, lost, point.explicit).dollars();
    judged.money_lost = price.map(missing);
    judged.evidence = if judged.candidates.is_empty() { Evidence::UsageOnly } else { Evidence::Inferred };
    judged.details.push(Detail {
        cause: said.cause,
        level: Some(said.level),
        pointer: String::new(),
        pointers: Vec::new(),
        byte: None,
        kind: TextKind::Other,
        what: said.what,
        before: String::new(),
        after: String::new(),
        names: Vec::new(),
        moved: None,
        evidence: judged.evidence,
    });
}

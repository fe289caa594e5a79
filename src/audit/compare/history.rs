//! The messages before and after: edits, moves, drops, reordered results, compactions.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::audit::compare::{Finding, first_of, pair};
use crate::audit::prompt::{Kind, Prompt, Seg, Speaker};
use crate::audit::text_kind::TextKind;
use crate::audit::words::{Cause, Evidence};
use crate::wire::Level;

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Size before, in bytes.
    pub before: u64,
    /// Size after, in bytes.
    pub after: u64,
    /// True when a summary stands in the place of what went.
    pub summarised: bool,
}

/// Segments that left and segments that came, by place.
#[derive(Debug, Default)]
struct Moves {
    gone: Vec<usize>,
    come: Vec<usize>,
    /// Places that face each other in one changed run.
    runs: Vec<(Range<usize>, Range<usize>)>,
    /// Where the earlier messages end in the later ones: what comes behind is growth.
    end: usize,
    /// Where the last segment that stayed ends.
    stayed: usize,
    /// Segments behind the first difference that stayed.
    kept: usize,
}

pub(super) fn compare(
    before: &Prompt,
    after: &Prompt,
    limit: usize,
    out: &mut Vec<Finding>,
) -> Option<Compaction> {
    let moves = moves(before, after, limit);
    if moves.gone.is_empty() && moves.runs.is_empty() {
        return None;
    }
    if let Some(compaction) = compaction(before, after, &moves, out) {
        return Some(compaction);
    }
    let mut gone = moves.gone.clone();
    let mut come = moves.come.clone();
    reordered(before, after, &mut gone, &mut come, out);
    migrated(before, after, &mut gone, &mut come, moves.end, out);
    edited(before, after, &mut gone, &mut come, &moves, out);
    dropped(before, after, &gone, &moves, out);
    let inserted: Vec<usize> = come.into_iter().filter(|at| *at < moves.stayed).collect();
    added(after, &inserted, out);
    None
}

fn hashes(segs: &[Seg]) -> Vec<u128> {
    segs.iter().map(|seg| seg.hash).collect()
}

fn moves(before: &Prompt, after: &Prompt, limit: usize) -> Moves {
    let (start_b, start_a) = (first_of(before, Level::Messages), first_of(after, Level::Messages));
    let old = hashes(&before.segs[start_b..limit.max(start_b)]);
    let new = hashes(&after.segs[start_a..]);
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let ops = capture_diff_slices(Algorithm::Myers, &old[head..], &new[head..]);
    let mut found = Moves { end: start_a + head, stayed: start_a + head, ..Moves::default() };
    let (base_b, base_a) = (start_b + head, start_a + head);
    for op in ops {
        let (a, b) = (op.old_range(), op.new_range());
        let (a, b) = (a.start + base_b..a.end + base_b, b.start + base_a..b.end + base_a);
        if matches!(op, DiffOp::Equal { .. }) {
            found.kept += a.len();
            found.end = b.end;
            found.stayed = b.end;
            continue;
        }
        found.gone.extend(a.clone());
        found.come.extend(b.clone());
        if !a.is_empty() && !b.is_empty() {
            // Only as many as went can stand for them at the very end; the rest is growth.
            let last = a.end == start_b + old.len();
            let end = if last { b.start + a.len().min(b.len()) } else { b.end };
            found.end = found.end.max(end);
            found.runs.push((a, b.start..end));
        } else if a.is_empty() && b.end < start_a + new.len() {
            found.end = found.end.max(b.end);
        }
    }
    found
}

/// Results of one step in another order, by the ids that they answer.
fn reordered(
    before: &Prompt,
    after: &Prompt,
    gone: &mut Vec<usize>,
    come: &mut Vec<usize>,
    out: &mut Vec<Finding>,
) {
    let mut done = 0;
    let touched: Vec<usize> = gone.iter().copied().filter(|a| before.segs[*a].kind == Kind::Answer).collect();
    for a in touched {
        if a < done || before.segs[a].id == 0 {
            continue;
        }
        let old = step(before, a);
        done = old.end;
        let answers = |seg: &Seg| seg.kind == Kind::Answer && seg.id == before.segs[a].id;
        let Some(b) = after.segs.iter().position(answers) else { continue };
        let new = step(after, b);
        let ids = |prompt: &Prompt, range: &Range<usize>| -> Vec<u64> {
            range.clone().map(|at| prompt.segs[at].id).collect()
        };
        let (was, is) = (ids(before, &old), ids(after, &new));
        let Some(place) = was.iter().zip(&is).position(|(was, is)| was != is) else { continue };
        if sorted(&was) != sorted(&is) {
            continue;
        }
        let what = "the results of one step stand in another order";
        let mut finding = Finding::new(Cause::ResultReorder, after, new.start + place, what);
        finding.before = listed(before, old.clone());
        finding.after = listed(after, new.clone());
        out.push(finding);
        // What only stands elsewhere in the step is told; what also changed is an edit of its own.
        let same = |a: usize| new.clone().find(|b| after.segs[*b].hash == before.segs[a].hash);
        let moved: Vec<(usize, usize)> = old.clone().filter_map(|a| Some((a, same(a)?))).collect();
        gone.retain(|a| moved.iter().all(|(seen, _)| seen != a));
        come.retain(|b| moved.iter().all(|(_, seen)| seen != b));
    }
}

fn sorted(ids: &[u64]) -> Vec<u64> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

/// The run of results around a place.
fn step(prompt: &Prompt, at: usize) -> Range<usize> {
    let answers = |at: usize| prompt.segs[at].kind == Kind::Answer;
    let mut start = at;
    while start > 0 && answers(start - 1) {
        start -= 1;
    }
    let mut end = at + 1;
    while end < prompt.segs.len() && answers(end) {
        end += 1;
    }
    start..end
}

/// Ids of the results in a run, a line each.
fn listed(prompt: &Prompt, range: Range<usize>) -> String {
    range.map(|at| answer_id(prompt, at)).collect::<Vec<_>>().join("\n")
}

/// Id of the call that a segment answers.
pub(crate) fn answer_id(prompt: &Prompt, at: usize) -> String {
    let Some(value) = prompt.value(at) else { return String::new() };
    ["tool_use_id", "tool_call_id", "call_id"]
        .iter()
        .find_map(|name| value.get(*name).and_then(serde_json::Value::as_str))
        .unwrap_or_default()
        .to_owned()
}

/// A block that left one place and stands at another.
fn migrated(
    before: &Prompt,
    after: &Prompt,
    gone: &mut Vec<usize>,
    come: &mut Vec<usize>,
    end: usize,
    out: &mut Vec<Finding>,
) {
    let mut taken = Vec::new();
    for &a in gone.iter() {
        let seg = &before.segs[a];
        let target = come.iter().copied().find(|b| {
            // A short text such as "ok" may well be said twice.
            after.segs[*b].hash == seg.hash && seg.size >= 24 && taken.iter().all(|(_, seen)| seen != b)
        });
        let Some(b) = target else { continue };
        taken.push((a, b));
        let at = place_after(after, a, end);
        let mut finding = Finding::new(Cause::BlockMigrated, after, at, "a block stands in another message");
        finding.moved = Some((before.pointer(a), after.pointer(b)));
        finding.before = before.text(a);
        finding.after = format!("now at {}", after.pointer(b));
        out.push(finding);
    }
    gone.retain(|a| taken.iter().all(|(seen, _)| seen != a));
    come.retain(|b| taken.iter().all(|(_, seen)| seen != b));
}

fn place_after(after: &Prompt, a: usize, end: usize) -> usize {
    a.min(end).min(after.segs.len().saturating_sub(1))
}

/// Pairs inside a changed run: the same call's result, else the same place.
fn edited(
    before: &Prompt,
    after: &Prompt,
    gone: &mut Vec<usize>,
    come: &mut Vec<usize>,
    moves: &Moves,
    out: &mut Vec<Finding>,
) {
    let mut done: Vec<(usize, usize)> = Vec::new();
    for &a in gone.iter() {
        let seg = &before.segs[a];
        let same = |b: &&usize| after.segs[**b].id == seg.id && after.segs[**b].kind == seg.kind;
        if let Some(b) = come.iter().find(same).filter(|_| seg.id != 0) {
            done.push((a, *b));
        }
    }
    for (old, new) in &moves.runs {
        let free = |b: &usize| come.contains(b) && done.iter().all(|(_, seen)| seen != b);
        let mut free: Vec<usize> = new.clone().filter(free).collect();
        let lost = |a: &usize| gone.contains(a) && done.iter().all(|(seen, _)| seen != a);
        for a in old.clone().filter(lost).collect::<Vec<_>>() {
            let seg = &before.segs[a];
            let found = free.iter().position(|b| {
                let other = &after.segs[*b];
                other.speaker == seg.speaker && kin(seg.kind, other.kind) && (seg.id == 0 || other.id == 0)
            });
            if let Some(found) = found {
                done.push((a, free.remove(found)));
            }
        }
    }
    done.sort_unstable();
    for &(a, b) in &done {
        edit(before, after, a, b, out);
    }
    gone.retain(|a| done.iter().all(|(seen, _)| seen != a));
    come.retain(|b| done.iter().all(|(_, seen)| seen != b));
}

fn kin(a: Kind, b: Kind) -> bool {
    a == b || (a != Kind::Thinking && b != Kind::Thinking && (a == Kind::Image) == (b == Kind::Image))
}

fn edit(before: &Prompt, after: &Prompt, a: usize, b: usize, out: &mut Vec<Finding>) {
    let (Some(old), Some(new)) = (before.value(a), after.value(b)) else {
        out.push(Finding::new(Cause::HistoryRewritten, after, b, "an earlier message changed"));
        return;
    };
    let answers = before.segs[a].kind == Kind::Answer;
    for edit in pair::judge(&old, &new, answers) {
        let mut finding = Finding::new(edit.cause, after, b, edit.what.clone());
        finding.kind = edit.kind;
        finding.byte = Some(edit.byte);
        finding.before = before.text(a);
        finding.after = after.text(b);
        if answers {
            finding.names = vec![answer_id(after, b)];
        } else if !edit.path.is_empty() {
            finding.names = vec![format!("{}{}", finding.pointer, edit.path)];
        }
        out.push(finding);
    }
}

fn dropped(before: &Prompt, after: &Prompt, gone: &[usize], moves: &Moves, out: &mut Vec<Finding>) {
    for &a in gone {
        let seg = &before.segs[a];
        let at = moves
            .runs
            .iter()
            .find(|(old, _)| old.contains(&a))
            .map_or_else(|| place_of_gap(before, after, a), |(_, new)| new.start);
        let text = before.text(a);
        let (cause, what) = match seg.kind {
            Kind::Thinking => (Cause::ReasoningDropped, "reasoning was left out"),
            Kind::Image => (Cause::HistoryRewritten, "an image was left out"),
            _ if injected(&text) => (Cause::RecallInjection, "an injected block was not sent again"),
            _ => (Cause::HistoryRewritten, "an earlier message or block was left out"),
        };
        let mut finding = Finding::new(cause, after, at, what);
        if cause == Cause::RecallInjection {
            finding.kind = TextKind::Recall;
        }
        finding.before = text;
        out.push(finding);
    }
}

/// Where in the later messages the gap lies that a dropped segment left.
fn place_of_gap(before: &Prompt, after: &Prompt, a: usize) -> usize {
    let next = before.segs[a + 1..].iter().find_map(|seg| {
        after.segs.iter().position(|other| other.level == Level::Messages && other.hash == seg.hash)
    });
    next.unwrap_or_else(|| a.min(after.segs.len().saturating_sub(1)))
}

fn added(after: &Prompt, inserted: &[usize], out: &mut Vec<Finding>) {
    for &b in inserted {
        let text = after.text(b);
        let (cause, what) = if injected(&text) {
            (Cause::RecallInjection, "a block was put into an earlier message")
        } else {
            (Cause::HistoryRewritten, "something was put into the earlier history")
        };
        let mut finding = Finding::new(cause, after, b, what);
        finding.after = text;
        out.push(finding);
    }
}

/// Text that a client put in: recalled facts, memory.
fn injected(text: &str) -> bool {
    let head: String = text.chars().take(400).collect::<String>().to_lowercase();
    [
        "<memory",
        "<recall",
        "recalled",
        "[recall",
        "[memory",
        "memory context",
        "relevant memories",
        "<relevant",
    ]
    .iter()
    .any(|word| head.contains(word))
}

/// Words by which clients introduce a summary.
pub fn looks_like_summary(text: &str) -> bool {
    let head: String = text.chars().take(600).collect::<String>().to_lowercase();
    [
        "summary",
        "summaris",
        "summariz",
        "compact",
        "continued from a previous conversation",
        "handoff",
        "hand-off",
    ]
    .iter()
    .any(|word| head.contains(word))
}

/// Words by which clients say that a summary failed.
fn failed_summary(text: &str) -> bool {
    let head: String = text.chars().take(600).collect::<String>().to_lowercase();
    let about = head.contains("summary") || head.contains("summar");
    about
        && ["unavailable", "failed", "could not", "error", "no summary"]
            .iter()
            .any(|word| head.contains(word))
}

/// How many messages lie wholly among these segments.
fn whole(prompt: &Prompt, among: &[usize]) -> usize {
    let inside = |at: usize| among.binary_search(&at).is_ok();
    prompt
        .turns
        .iter()
        .filter(|turn| (turn.first..turn.first + turn.count).all(|at| inside(at as usize)))
        .count()
}

/// Recognises a compaction by its form: several messages gone from the middle, fewer in their place.
fn compaction(before: &Prompt, after: &Prompt, moves: &Moves, out: &mut Vec<Finding>) -> Option<Compaction> {
    let messages = |prompt: &Prompt| prompt.turns.len();
    let gone_messages = whole(before, &moves.gone);
    let new: Vec<usize> = moves.come.iter().copied().filter(|at| *at < moves.end).collect();
    let fewer = messages(after) < messages(before) || gone_messages >= whole(after, &new) + 2;
    let spoken: Vec<usize> = moves
        .come
        .iter()
        .copied()
        .filter(|at| *at < moves.end)
        .filter(|at| matches!(after.segs[*at].speaker, Speaker::User | Speaker::Assistant | Speaker::System))
        .collect();
    let summary = spoken
        .iter()
        .copied()
        .find(|at| after.segs[*at].kind == Kind::Text && looks_like_summary(&after.text(*at)));
    let replaced = gone_messages >= 2 && fewer && !spoken.is_empty() && moves.kept + spoken.len() > 1;
    if !(replaced && (summary.is_some() || moves.gone.len() >= 2 * moves.come.len().max(1))) {
        return None;
    }
    let at = moves.come.first().copied().unwrap_or(moves.end).min(after.segs.len().saturating_sub(1));
    let compaction = Compaction { before: before.size(), after: after.size(), summarised: summary.is_some() };
    let failed = summary.is_some_and(|at| failed_summary(&after.text(at)));
    let (cause, what) = if failed {
        (Cause::SummaryFailureDropsHistory, "the summary failed and the history was dropped all the same")
    } else {
        (Cause::PlannedCompaction, "the history was compacted")
    };
    let mut finding = Finding::new(cause, after, at, what);
    if !failed {
        finding.evidence = Evidence::Inferred;
    }
    finding.before = format!("{gone_messages} messages, {} bytes in all", compaction.before);
    finding.after = match summary.or(spoken.first().copied()) {
        Some(at) => after.text(at),
        None => String::new(),
    };
    out.push(finding);
    Some(compaction)
}

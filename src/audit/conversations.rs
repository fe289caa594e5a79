//! Which conversation a request belongs to: found by what it extends and what it shares, helped by ids.
//!
//! A log may interleave sessions, subagents, reviews, title calls and retries, with or without ids. A request belongs
//! to the thread whose earlier request it extends; else to the thread with which it shares most; else it begins one.

use std::rc::Rc;

use crate::audit::compare::looks_like_summary;
use crate::audit::prompt::{ByHash, Kind, Prompt, Speaker};
use crate::audit::threads::Threads;
use crate::wire::Level;
use crate::world::Millis;

/// The end of an earlier request.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Segments up to there.
    pub len: usize,
    /// Index of the request.
    pub index: usize,
    /// Its start.
    pub at: Option<Millis>,
    /// Tokens up to there, where a provider counted them.
    pub tokens: Option<u64>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Thread {
    /// Its number.
    pub number: usize,
    /// Name that the log gives it.
    pub name: String,
    /// Its newest request.
    pub last: Rc<Prompt>,
    /// Where the newest one ends.
    pub end: End,
    /// Route of the newest one.
    pub route: Option<String>,
    /// Ends of all its requests, by the running hash there.
    pub ends: ByHash<End>,
    /// Index of the newest compaction, and the size behind it.
    pub compacted: Option<(usize, u64)>,
    /// Ordinal of the newest request among all.
    pub touched: usize,
    /// How often the last marker stayed although the prompt grew.
    pub stayed: usize,
}

/// How a request relates to the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinship {
    /// It begins a conversation.
    New,
    /// It extends an earlier request of a thread that is not the newest one: a branch, a rewind, an interleaving.
    Branch(usize, u128),
    /// It is to be held against the newest request of a thread.
    Follows(usize),
}

/// Threads that are looked at where nothing is extended, newest first.
const LOOKED_AT: usize = 64;

/// Finds the thread of a request. `name` is what the log calls its conversation; with `by_name` nothing else counts.
/// An empty name sets the nameless ones apart from the named ones and says nothing more.
pub(super) fn find(
    threads: &Threads,
    prompt: &Prompt,
    name: Option<&str>,
    by_name: bool,
    compacted: bool,
) -> Kinship {
    if by_name {
        return threads.newest(name, None).next().map_or(Kinship::New, Kinship::Follows);
    }
    if let Some(found) = extended(threads, prompt, name) {
        return found;
    }
    let candidates: Vec<usize> = threads.newest(name, Some(prompt.shape)).take(LOOKED_AT).collect();
    let mut known: Vec<u128> = prompt.segs[first_message(prompt)..].iter().map(|seg| seg.hash).collect();
    known.sort_unstable();
    let best = candidates
        .iter()
        .map(|at| (score(&threads[*at].last, prompt, &known), *at))
        .filter(|(score, _)| *score > 0)
        // Among equals the newest, which comes first.
        .fold(
            None,
            |best: Option<(u64, usize)>, one| {
                if best.is_none_or(|best| one.0 > best.0) { Some(one) } else { best }
            },
        );
    match best {
        Some((_, at)) => Kinship::Follows(at),
        // Nothing said before is there any more: a compaction, or a named conversation that was rewritten.
        None => candidates
            .iter()
            .find(|at| {
                let last = &threads[**at].last;
                same_head(last, prompt)
                    && (compacted
                        || name.is_some_and(|name| !name.is_empty()) && goes_on(prompt)
                        || summarised(prompt))
            })
            .map_or(Kinship::New, |at| Kinship::Follows(*at)),
    }
}

/// The thread with the longest earlier request that this one extends, however long ago that was.
fn extended(threads: &Threads, prompt: &Prompt, name: Option<&str>) -> Option<Kinship> {
    let first = first_message(prompt);
    let chains = prompt.chain.iter().enumerate().skip(first).rev();
    let (len, at, chain) = chains
        .map(|(place, chain)| (place + 1, *chain))
        .find_map(|(len, chain)| Some((len, threads.ended(chain, len, name, prompt.shape)?, chain)))?;
    let thread = &threads[at];
    if thread.last.shared(prompt) >= thread.last.cacheable() {
        return Some(Kinship::Follows(at));
    }
    let newest = thread.end.len == len && thread.last.chain.get(len - 1) == Some(&chain);
    if newest || !is_branch(thread, prompt, len) {
        return Some(Kinship::Follows(at));
    }
    Some(Kinship::Branch(at, chain))
}

fn first_message(prompt: &Prompt) -> usize {
    prompt.segs.partition_point(|seg| seg.level < Level::Messages)
}

/// True when what differs from the newest request is a new direction, not an edited old one.
fn is_branch(thread: &Thread, prompt: &Prompt, len: usize) -> bool {
    let last = &thread.last;
    let shared = last.shared(prompt);
    if len > shared {
        return true;
    }
    // Something of the rest came back: the history was edited, not left.
    let rest = &last.segs[shared..];
    let again = prompt.segs[shared..].iter().any(|seg| {
        seg.size >= 24 && rest.iter().any(|other| other.hash == seg.hash || same_call(seg, other))
    });
    if again {
        return false;
    }
    let news = &prompt.segs[shared..];
    if news.iter().any(|seg| seg.kind == Kind::Text) && prompt.held() {
        let summary = (shared..prompt.segs.len())
            .any(|at| prompt.segs[at].kind == Kind::Text && looks_like_summary(&prompt.text(at)));
        if summary {
            return false;
        }
    }
    // A rewind goes on with one new message of the user, or with another answer to the same request.
    let turns = prompt.turns.len()
        - prompt.turns.partition_point(|turn| (turn.first + turn.count) as usize <= shared);
    match news.first() {
        None => true,
        Some(seg) if seg.speaker == Speaker::Assistant => len == shared,
        Some(seg) => seg.speaker == Speaker::User && seg.kind != Kind::Answer && turns == 1,
    }
}

fn same_call(a: &crate::audit::prompt::Seg, b: &crate::audit::prompt::Seg) -> bool {
    a.id != 0 && a.id == b.id && a.kind == b.kind
}

/// Bytes of messages that two prompts share, in any order; 0 when they have nothing to do with each other. `known` are
/// the later one's message hashes, sorted.
fn score(last: &Prompt, prompt: &Prompt, known: &[u128]) -> u64 {
    let old = &last.segs[first_message(last)..];
    let (mut shared, mut total) = (0, 0);
    for seg in old {
        total += u64::from(seg.size);
        if known.binary_search(&seg.hash).is_ok() {
            shared += u64::from(seg.size);
        }
    }
    // A short word in common, such as "ok", makes no kin.
    if shared >= 64 || shared * 3 >= total && shared > 0 {
        return shared;
    }
    let new = &prompt.segs[first_message(prompt)..];
    let calls =
        new.iter().filter(|seg| old.iter().take(64).any(|other| same_call(seg, other))).count() as u64;
    if calls > 0 {
        return shared + 256 * calls;
    }
    if prompt.held() && last.held() && similar_start(last, prompt) { shared + 128 } else { 0 }
}

/// True when the first messages differ in a part only, and what follows is no fresh start.
fn similar_start(last: &Prompt, prompt: &Prompt) -> bool {
    let (a, b) = (first_message(last), first_message(prompt));
    if a >= last.segs.len() || b >= prompt.segs.len() || prompt.turns.len() < last.turns.len() {
        return false;
    }
    let heads = (&last.segs[..a], &prompt.segs[..b]);
    let kin =
        heads.0.is_empty() || heads.0.iter().any(|seg| heads.1.iter().any(|other| other.hash == seg.hash));
    // Instructions among the messages are no part of what was said.
    let spoken = prompt.turns.iter().filter(|turn| turn.first as usize >= b).count();
    if spoken < 2 || !kin {
        return false;
    }
    let (old, new) = (last.text(a), prompt.text(b));
    let short = old.len().min(new.len());
    let head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    short > 0 && (head + tail).min(short) * 2 >= short
}

/// True when tools and system prompt are the same, or much of a changed system prompt is.
fn same_head(last: &Prompt, prompt: &Prompt) -> bool {
    let head = |prompt: &Prompt| -> Vec<u128> {
        prompt.segs[..first_message(prompt)].iter().map(|seg| seg.hash).collect()
    };
    let (old, new) = (head(last), head(prompt));
    let shared = old.iter().filter(|hash| new.contains(hash)).count();
    !old.is_empty() && shared * 2 >= old.len().max(new.len())
}

/// True when something was answered already: no fresh start.
fn goes_on(prompt: &Prompt) -> bool {
    prompt.turns.iter().any(|turn| turn.speaker == Speaker::Assistant)
}

/// True when the first message is a summary of what went before.
fn summarised(prompt: &Prompt) -> bool {
    let first = first_message(prompt);
    prompt.turns.len() > 1
        && prompt.held()
        && prompt.segs.get(first).is_some_and(|seg| seg.kind == Kind::Text)
        && starts_with_summary(&prompt.text(first))
}

/// Marks by which clients begin a message that stands for the earlier conversation.
fn starts_with_summary(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(80).collect::<String>().to_lowercase();
    [
        "[summary",
        "<summary",
        "summary of",
        "[context compact",
        "[conversation summary",
        "this session is being continued",
    ]
    .iter()
    .any(|word| head.starts_with(word))
}

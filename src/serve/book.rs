//! Bytes that arrived as events of a ledger.
//!
//! The audit has found which conversation a request belongs to, the script whose lane it is. Here a request is written
//! against the last one of its conversation and lane, piece by piece; only pieces that are new become text.

use std::collections::{BTreeMap, BTreeSet};

use crate::audit::Judged;
use crate::audit::prompt::{Piece, Prompt};
use crate::audit::words::Cause;
use crate::ledger::{
    Compaction, Conversation, Event, Fault, Header, Lane, Name, PromptView, Recorder, RequestFacts, Response,
    SessionStarted, Usage, What,
};
use crate::model::placed::Due;
use crate::serve::learning::Learning;
use crate::serve::spoken::Spoken;
use crate::wire::{Chain, Level, Segment};
use crate::world::Millis;

/// Conversations that are remembered; the least recently used half goes when there are more.
const CONVERSATIONS_MAX: usize = 4_096;
/// Bytes of text that all of them may hold together.
const BYTES_MAX: usize = 256 << 20;

/// A conversation as its last request showed it.
#[derive(Debug, Clone, Default)]
struct Kept {
    hashes: Vec<u128>,
    chains: Vec<Chain>,
    prefix: Vec<Segment>,
    messages: Vec<Segment>,
    size: u64,
    bytes: usize,
    touched: u64,
}

/// Writes the ledger.
#[derive(Debug)]
pub(super) struct Book {
    recorder: Recorder,
    /// Conversations that were let go and nobody was told of yet.
    forgotten: Vec<(Name, Lane)>,
    /// Session of each conversation that the audit numbered.
    names: BTreeMap<usize, Name>,
    /// The newest session that plays a session of the scenario.
    playing: BTreeMap<String, Name>,
    kept: BTreeMap<Conversation, Kept>,
    bytes: usize,
    /// Sessions that began.
    begun: BTreeSet<Name>,
    /// How many conversations began under a stem.
    stems: BTreeMap<String, u64>,
    learning: Learning,
    requests: u64,
}

/// What the book noted about a request.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    /// Session.
    pub(super) session: Name,
    /// Number of the request.
    pub(super) request: u64,
}

/// A request that is to be written.
pub(super) struct Entry<'a> {
    pub(super) prompt: &'a Prompt,
    pub(super) pieces: &'a [Piece],
    pub(super) judged: &'a Judged,
    pub(super) due: &'a Due,
    pub(super) size: u64,
    /// A refused request stands for itself: nothing extends it.
    pub(super) refused: bool,
}

impl Book {
    pub(super) fn new(header: Header) -> Self {
        Self {
            recorder: Recorder::new(header),
            forgotten: Vec::new(),
            names: BTreeMap::new(),
            playing: BTreeMap::new(),
            kept: BTreeMap::new(),
            bytes: 0,
            begun: BTreeSet::new(),
            stems: BTreeMap::new(),
            learning: Learning::default(),
            requests: 0,
        }
    }

    pub(super) fn set_now(&mut self, now: Millis) {
        self.recorder.set_now(now);
    }

    /// Events since the last time.
    pub(super) fn drain(&mut self) -> Vec<Event> {
        self.recorder.drain()
    }

    /// Conversations that were let go since the last time.
    pub(super) fn forgotten(&mut self) -> Vec<(Name, Lane)> {
        std::mem::take(&mut self.forgotten)
    }

    /// The session that a line of the script is played in, if it began.
    pub(super) fn name_of(&self, due: &Due) -> Name {
        self.playing.get(&due.session).cloned().unwrap_or_else(|| "".into())
    }

    pub(super) fn fault(&mut self, session: &Name, kind: &str, detail: &str) {
        self.recorder.event(session, What::Fault(Fault { kind: kind.into(), detail: detail.into() }));
    }

    /// Writes a reply, and what ends with it.
    pub(super) fn answered(&mut self, noted: &Noted, due: &Due, spoken: &Spoken) {
        let parts = &spoken.usage;
        let calls = spoken.calls.iter();
        let response = Response {
            request: noted.request,
            text: spoken.text.as_str().into(),
            calls: calls.map(|call| (call.id.as_str().into(), call.name.as_str().into())).collect(),
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
        self.recorder.event(&noted.session, What::Response(response));
        self.learning.answered(&mut self.recorder, noted, due, spoken);
    }

    /// Writes that there was no reply.
    pub(super) fn failed(&mut self, noted: &Noted, why: &str) {
        let response = Response {
            request: noted.request,
            text: "".into(),
            calls: Vec::new(),
            finish: "error".into(),
            usage: Usage { read: 0, write_5m: 0, write_1h: 0, uncached: 0, output: 0 },
            refused: why.into(),
        };
        self.recorder.event(&noted.session, What::Response(response));
    }

    /// Writes a request.
    pub(super) fn request(&mut self, entry: &Entry<'_>) -> Noted {
        self.requests += 1;
        let session = self.session(entry);
        let conversation = (session.clone(), entry.due.lane, which(entry));
        let origin = (entry.due.lane == Lane::Review).then(|| (session.clone(), Lane::Main, 0));
        let hashes: Vec<u128> = entry.pieces.iter().map(|piece| piece.hash).collect();
        let own = self.kept.remove(&conversation);
        self.bytes -= own.as_ref().map_or(0, |kept| kept.bytes);
        let goes_on = own.as_ref().is_some_and(|kept| hashes.starts_with(&kept.hashes));
        // A direction left behind: the request extends an earlier one, not the newest.
        let rewound = !goes_on && !entry.judged.broken && own.is_some();
        let base = match own {
            Some(_) if rewound || entry.refused => {
                self.recorder.forget(&conversation);
                Kept::default()
            }
            Some(kept) => kept,
            None => Kept::default(),
        };
        let before = (!goes_on && base.touched > 0 && planned(entry.judged)).then(|| Before {
            hashes: base.hashes.clone(),
            prefix: base.prefix.len(),
            size: base.size,
        });
        let base = match origin.as_ref().filter(|_| base.touched == 0) {
            Some(origin) => self.kept.get(origin).cloned().unwrap_or_default(),
            None => base,
        };
        let kept = base.grown(hashes, entry, self.requests);
        if let Some(before) = &before {
            self.compaction(&session, before, &kept);
        }
        let marks = marks(entry.prompt, entry.pieces);
        let facts = RequestFacts {
            turn: entry.due.turn.max(1),
            iteration: entry.due.place.entry + 1,
            marks,
            planned: if before.is_some() { "compaction".into() } else { "".into() },
        };
        let view = PromptView {
            chains: &kept.chains,
            prefix: &kept.prefix,
            messages: &kept.messages,
            size: entry.size,
        };
        self.learning.before(&mut self.recorder, &session, entry);
        let request = self.recorder.request(&conversation, origin.as_ref(), &view, facts);
        self.bytes += kept.bytes;
        self.kept.insert(conversation, kept);
        self.let_go();
        Noted { session, request }
    }

    fn session(&mut self, entry: &Entry<'_>) -> Name {
        let due = entry.due;
        let parent = self.playing.get(&due.session).cloned();
        let name: Name = match (due.lane, &parent) {
            (Lane::Review | Lane::Summary | Lane::Title | Lane::Approver, Some(parent)) => parent.clone(),
            (Lane::Child, Some(parent)) => format!("{parent}/t{}k{}", due.place.turn, due.place.child).into(),
            _ => match self.names.get(&entry.judged.conversation) {
                Some(name) => name.clone(),
                None => self.fresh(due),
            },
        };
        self.names.insert(entry.judged.conversation, name.clone());
        if due.lane == Lane::Main && !due.session.is_empty() {
            self.playing.insert(due.session.clone(), name.clone());
        }
        let name = if entry.refused { format!("{name}/refused").into() } else { name };
        if !self.begun.contains(&name) {
            let child = due.lane == Lane::Child;
            self.begun.insert(name.clone());
            let started = SessionStarted {
                why: if child { "delegate".into() } else { "fresh".into() },
                parent: if child { parent.unwrap_or_else(|| "".into()) } else { "".into() },
                depth: u64::from(child),
                persisted: false,
            };
            self.recorder.event(&name, What::SessionStarted(started));
        }
        name
    }

    /// A name that no session has yet: the scenario's, else a number.
    fn fresh(&mut self, due: &Due) -> Name {
        let stem = match due.lane {
            Lane::Main if !due.session.is_empty() => due.session.clone(),
            Lane::Main => "c".to_owned(),
            lane => lane.word().to_owned(),
        };
        let number = self.stems.entry(stem.clone()).or_insert(0);
        loop {
            *number += 1;
            let name: Name =
                if *number == 1 { stem.as_str().into() } else { format!("{stem}+{number}").into() };
            if !self.begun.contains(&name) {
                return name;
            }
        }
    }

    fn compaction(&mut self, session: &Name, before: &Before, after: &Kept) {
        let tail = before.hashes.iter().rev().zip(after.hashes.iter().rev()).take_while(|(a, b)| a == b);
        let head = before.hashes[before.prefix..]
            .iter()
            .zip(&after.hashes[after.prefix.len()..])
            .take_while(|(a, b)| a == b);
        let compaction = Compaction {
            committed: true,
            why_not: "".into(),
            rows_before: (before.hashes.len() - before.prefix) as u64,
            rows_after: after.messages.len() as u64,
            size_before: before.size,
            size_after: after.size,
            head_rows: head.count() as u64,
            tail_rows: tail.count() as u64,
            orphans: 0,
            dropped_results: 0,
            dropped_calls: 0,
            summary: "model".into(),
            mode: "in_place".into(),
            lost_instructions: Vec::new(),
        };
        self.recorder.event(session, What::Compaction(compaction));
    }

    fn let_go(&mut self) {
        if self.kept.len() <= CONVERSATIONS_MAX && self.bytes <= BYTES_MAX {
            return;
        }
        // The older half at once, so that the search for it is paid for rarely.
        let mut oldest: Vec<(u64, Conversation)> =
            self.kept.iter().map(|(key, kept)| (kept.touched, key.clone())).collect();
        oldest.sort_unstable_by_key(|(touched, _)| *touched);
        oldest.truncate(oldest.len() / 2);
        for (_, key) in oldest {
            self.bytes -= self.kept.remove(&key).map_or(0, |kept| kept.bytes);
            self.recorder.forget(&key);
            self.forgotten.push((key.0, key.1));
        }
    }
}

/// Which of its kind in the session: reviews are copied anew from the main line, other lanes go on.
fn which(entry: &Entry<'_>) -> u64 {
    match entry.due.lane {
        Lane::Review => entry.due.place.turn,
        _ => 0,
    }
}

/// True when the audit takes a break for a compaction.
fn planned(judged: &Judged) -> bool {
    judged.planned
        || judged
            .details
            .iter()
            .any(|detail| matches!(detail.cause, Cause::PlannedCompaction | Cause::CompactionIneffective))
}

/// What a compaction is held against.
struct Before {
    hashes: Vec<u128>,
    prefix: usize,
    size: u64,
}

impl Kept {
    /// The conversation with this request: what both share stays, only what is new becomes text.
    fn grown(mut self, hashes: Vec<u128>, entry: &Entry<'_>, touched: u64) -> Self {
        let shared = self.hashes.iter().zip(&hashes).take_while(|(a, b)| a == b).count();
        let gone = self.messages.drain(shared.saturating_sub(self.prefix.len()).min(self.messages.len())..);
        self.bytes -= gone.map(|segment| weight(&segment)).sum::<usize>();
        let gone = self.prefix.drain(shared.min(self.prefix.len())..);
        self.bytes -= gone.map(|segment| weight(&segment)).sum::<usize>();
        self.chains.truncate(shared);
        let mut chain = self.chains.last().copied().unwrap_or(Chain::EMPTY);
        for piece in &entry.pieces[shared..] {
            let segment = Segment::new(piece.level, entry.prompt.piece_text(piece));
            chain = chain.then(&segment);
            self.chains.push(chain);
            self.bytes += weight(&segment);
            let list = if piece.level == Level::Messages { &mut self.messages } else { &mut self.prefix };
            list.push(segment);
        }
        Self { hashes, size: entry.size, touched, ..self }
    }
}

/// Bytes that a segment holds in memory, its place in the lists included.
fn weight(segment: &Segment) -> usize {
    segment.text.len() + 64
}

fn marks(prompt: &Prompt, pieces: &[Piece]) -> Vec<(u64, Name)> {
    let mut marks: Vec<(u64, Name)> = Vec::new();
    for (at, ttl) in &prompt.marks {
        let piece = pieces.partition_point(|piece| piece.first + piece.count <= *at);
        marks.push((piece as u64, ttl.word().into()));
    }
    marks
}

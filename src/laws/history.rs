//! L4, structure-preserving history and verbatim recall.
//!
//! No tool result without its call, no call without its result, nothing lost silently; what is resumed is what was
//! stored; a search answers in conversations and in the original words.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::rebuild::ConversationKey;
use crate::ledger::{Event, Lane, Name, What};
use crate::wire::{Chain, Level, Segment};

use super::glance::{Glance, glance};
use super::{Bench, Check, Scene, excerpt};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "L4.no-orphans",
        says: "a tool result stands behind the call that it answers",
        mend: "move the cut of a compaction to the start of the tool group",
    },
    Check {
        id: "L4.no-unanswered",
        says: "a tool call is answered before anything else is said",
        mend: "answer interrupted and refused calls with a result that says so",
    },
    Check {
        id: "L4.roles-alternate",
        says: "user and assistant alternate, tool rounds aside",
        mend: "merge neighbouring rows of one role; give the summary the role that its neighbours need",
    },
    Check {
        id: "L4.cut-keeps-pairs",
        says: "the cut of a compaction never makes the cleaning drop a result or a call",
        mend: "move the cut of a compaction to the start of the tool group",
    },
    Check {
        id: "L4.instructions-kept",
        says: "a standing instruction that the user gave word for word survives a compaction",
        mend: "carry the user's own words over verbatim",
    },
    Check {
        id: "L4.stored-once",
        says: "the store holds each message once",
        mend: "remember what was written; hand over only what is new",
    },
    Check {
        id: "L4.nothing-lost",
        says: "every message that the model saw is still in the store, live or archived",
        mend: "archive rows instead of deleting them, and store before sending",
    },
    Check {
        id: "L4.replay-equals-persisted",
        says: "a session that is opened again sends exactly what the store gave back",
        mend: "store the bytes that were sent and replay them without repair",
    },
    Check {
        id: "L4.search-distinct",
        says: "a search answers distinct conversations, whatever they were split into",
        mend: "climb from every hit to the root of its lineage",
    },
    Check {
        id: "L4.search-verbatim",
        says: "what a search shows stands in the store word for word",
        mend: "show stored rows, not a summary of them",
    },
    Check {
        id: "L4.unknown-not-repeated",
        says: "a step whose outcome is unknown is not done again before the outcome was looked up",
        mend: "record the step as unknown, ask the other side, then decide",
    },
];

#[derive(Debug, Default)]
struct Session {
    /// How often each message was added to what the model sees.
    seen: BTreeMap<Chain, u64>,
    /// Messages that were stored since the last request; a last answer is never sent.
    unsent: Unsent,
    /// Messages that a compaction took before they were sent.
    swallowed: BTreeMap<Chain, u64>,
    resumed: Option<Vec<Chain>>,
    /// Rows as the store gave them, mended where a crash had left them open.
    given: BTreeSet<Chain>,
    parent: Option<Name>,
}

impl Session {
    /// How often each message was said, sent or not.
    fn said(&self) -> BTreeMap<Chain, u64> {
        let mut said = self.seen.clone();
        for (digest, times) in self.unsent.times.iter().chain(&self.swallowed) {
            *said.entry(*digest).or_insert(0) += times;
        }
        said
    }
}

/// Rows that no request has sent yet. Two turns may say the same; one that holds it twice has stored it twice.
#[derive(Debug, Default)]
struct Unsent {
    times: BTreeMap<Chain, u64>,
    this_turn: BTreeSet<Chain>,
}

impl Unsent {
    fn stored(&mut self, digest: Chain) {
        if self.this_turn.insert(digest) {
            *self.times.entry(digest).or_insert(0) += 1;
        }
    }

    fn take(&mut self) -> BTreeMap<Chain, u64> {
        self.this_turn.clear();
        std::mem::take(&mut self.times)
    }
}

/// How far the pairs of a conversation were checked, and what is open there.
#[derive(Debug, Default, Clone)]
struct Pairs {
    checked: usize,
    open: Vec<String>,
    last: Option<Glance>,
}

/// What this law remembers between events.
#[derive(Debug, Default)]
pub(super) struct State {
    pairs: BTreeMap<ConversationKey, Pairs>,
    sessions: BTreeMap<Name, Session>,
    persisted: BTreeSet<Name>,
    unknown: BTreeMap<(Name, Name), u64>,
}

impl State {
    /// Forgets what was open in a conversation.
    pub(super) fn forget(&mut self, session: &Name, lane: Lane) {
        let (from, until) = ((session.clone(), lane, 0), (session.clone(), lane, u64::MAX));
        let keys: Vec<ConversationKey> = self.pairs.range(from..=until).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.pairs.remove(&key);
        }
    }

    pub(super) fn take(&mut self, event: &Event, scene: &Scene<'_>, bench: &mut Bench) {
        match &event.what {
            What::SessionStarted(started) => {
                if started.persisted {
                    self.persisted.insert(event.session.clone());
                }
                // A rotation copies rows: what was said twice may stand twice in the child, too.
                let begins = ["compression", "resume"].contains(&&*started.why)
                    && !self.sessions.contains_key(&event.session);
                let rotated = self.sessions.get(&started.parent).filter(|_| begins);
                let said = rotated.map(Session::said);
                let session = self.sessions.entry(event.session.clone()).or_default();
                // A turn dies with its process.
                session.unsent.this_turn.clear();
                if let Some(said) = said {
                    session.swallowed = said;
                }
                session.parent = (!started.parent.is_empty()).then(|| started.parent.clone());
            }
            What::Request(request) => {
                let Some(seen) = scene.seen else { return };
                let Some(state) = scene.rebuild.conversation(&seen.key) else { return };
                let start = state.first_message();
                // A request for a title is words about a conversation, not one.
                if request.lane != Lane::Title {
                    let pair = self.pairs.entry(seen.key.clone()).or_default();
                    let common = seen.common.saturating_sub(start);
                    check_pairs(pair, &state.segments[start..], common, event, bench);
                }
                if request.lane == Lane::Main && self.persisted.contains(&event.session) {
                    let session = self.sessions.entry(event.session.clone()).or_default();
                    session.unsent.take();
                    let messages = &state.segments[start..];
                    // A session that was opened again, or that a rotation began, holds all of it.
                    let whole = session.resumed.is_some() || session.seen.is_empty();
                    let from = if whole { 0 } else { seen.common.saturating_sub(start) };
                    replay(session, messages, event, bench);
                    for digest in messages[from.min(messages.len())..].iter().map(digest_of) {
                        *session.seen.entry(digest).or_insert(0) += 1;
                    }
                }
            }
            What::Stored(stored) if stored.lane == Lane::Main => {
                self.sessions.entry(event.session.clone()).or_default().unsent.stored(stored.digest);
            }
            What::TurnEnded(_) => {
                if let Some(session) = self.sessions.get_mut(&event.session) {
                    session.unsent.this_turn.clear();
                }
            }
            What::Resumed(resumed) => {
                let session = self.sessions.entry(event.session.clone()).or_default();
                session.given.extend(resumed.rows.iter().copied());
                session.resumed = Some(resumed.rows.clone());
            }
            What::StoreState(state) => {
                let session = self.sessions.entry(event.session.clone()).or_default();
                store_state(session, state, event, bench);
            }
            What::Compaction(compaction) if compaction.committed => {
                // What is compacted before the first request is replayed in the compacted form.
                let session = self.sessions.entry(event.session.clone()).or_default();
                session.resumed = None;
                for (digest, times) in session.unsent.take() {
                    *session.swallowed.entry(digest).or_insert(0) += times;
                }
                let lost = compaction.dropped_results + compaction.dropped_calls + compaction.orphans;
                let wrong = (lost > 0).then(|| {
                    let evidence = format!(
                        "{} results and {} calls dropped, {} orphans left",
                        compaction.dropped_results, compaction.dropped_calls, compaction.orphans
                    );
                    ("cut".to_owned(), evidence)
                });
                bench.subject("L4.cut-keeps-pairs", event, wrong);
                let wrong =
                    compaction.lost_instructions.first().map(|text| ("summary".to_owned(), excerpt(text)));
                bench.subject("L4.instructions-kept", event, wrong);
            }
            What::Searched(search) => {
                let mut roots = BTreeSet::new();
                let twice = search.hits.iter().find(|(_, root, _)| !roots.insert(root.clone()));
                let wrong = twice.map(|(session, root, _)| {
                    (session.to_string(), format!("`{}` answers conversation {root} twice", search.query))
                });
                bench.subject("L4.search-distinct", event, wrong);
                let wrong = (!search.verbatim).then(|| {
                    (search.query.to_string(), "a text shown is not in the store as it is".to_owned())
                });
                bench.subject("L4.search-verbatim", event, wrong);
            }
            What::ToolRan(ran) => {
                let key = (event.session.clone(), ran.arguments.clone());
                if ran.outcome_unknown {
                    self.unknown.insert(key, event.n);
                    bench.examine("L4.unknown-not-repeated");
                } else if self.unknown.contains_key(&key) {
                    let wrong =
                        Some((ran.call.to_string(), format!("{} was run again", excerpt(&ran.arguments))));
                    bench.subject("L4.unknown-not-repeated", event, wrong);
                }
            }
            _ => {}
        }
    }
}

/// Digest of one message alone, as the store events give it.
fn digest_of(segment: &Segment) -> Chain {
    Chain::EMPTY.then(segment)
}

fn check_pairs(pairs: &mut Pairs, messages: &[Segment], common: usize, event: &Event, bench: &mut Bench) {
    // A request for a title is no conversation.
    let names = matches!(&event.what, What::Request(request) if request.lane == Lane::Title);
    if common < pairs.checked {
        *pairs = Pairs::default();
    }
    for (index, segment) in messages.iter().enumerate().skip(pairs.checked) {
        debug_assert_eq!(segment.level, Level::Messages);
        let Some(seen) = glance(&segment.text) else { continue };
        let place = format!("message {index}");
        let orphan = seen.answers.iter().find(|id| !pairs.open.contains(id)).cloned();
        if !seen.answers.is_empty() {
            let wrong = orphan.map(|id| (place.clone(), format!("result `{id}` answers no call before it")));
            bench.subject("L4.no-orphans", event, wrong);
            pairs.open.retain(|id| !seen.answers.contains(id));
        }
        // Calls that are items of their own are made one behind the other and answered together.
        let more_calls = seen.item && !seen.calls.is_empty();
        if seen.role != "tool"
            && !more_calls
            && !is_reasoning(&seen)
            && (seen.answers.is_empty() || seen.speaks)
        {
            let wrong =
                pairs.open.first().map(|id| (place.clone(), format!("call `{id}` was never answered")));
            if wrong.is_some() || pairs.last.as_ref().is_some_and(|last| !last.calls.is_empty()) {
                bench.subject("L4.no-unanswered", event, wrong);
            }
            pairs.open.clear();
        }
        // An interface of items asks nobody to take turns.
        if let Some(last) = pairs.last.as_ref().filter(|last| !last.item && !seen.item && !names) {
            let plain = |glance: &Glance| glance.calls.is_empty() && glance.answers.is_empty();
            let same = last.role == seen.role && plain(last) && plain(&seen) && last.role != "tool";
            let wrong = same.then(|| (place.clone(), format!("two {} messages in a row", seen.role)));
            bench.subject("L4.roles-alternate", event, wrong);
        }
        if !seen.calls.is_empty() {
            bench.examine("L4.no-unanswered");
            if more_calls {
                pairs.open.extend(seen.calls.iter().cloned());
            } else {
                pairs.open.clone_from(&seen.calls);
            }
        }
        pairs.last = Some(seen);
    }
    pairs.checked = messages.len();
}

/// Reasoning is an item without a role; it stands anywhere.
fn is_reasoning(seen: &Glance) -> bool {
    seen.item && seen.role.is_empty()
}

fn replay(session: &mut Session, messages: &[Segment], event: &Event, bench: &mut Bench) {
    let Some(rows) = session.resumed.take() else { return };
    let differs = rows
        .iter()
        .enumerate()
        .find(|(index, row)| messages.get(*index).is_none_or(|segment| digest_of(segment) != **row));
    let wrong = differs.map(|(index, _)| {
        let sent = messages.get(index).map_or("nothing", |segment| &*segment.text);
        (format!("message {index}"), format!("the store gave another row; sent: {}", excerpt(sent)))
    });
    bench.subject("L4.replay-equals-persisted", event, wrong);
}

fn store_state(session: &Session, state: &crate::ledger::StoreState, event: &Event, bench: &mut Bench) {
    let said = session.said();
    let mut held: BTreeMap<Chain, u64> = BTreeMap::new();
    for digest in state.live.iter().chain(&state.kept) {
        *held.entry(*digest).or_insert(0) += 1;
    }
    for (digest, times) in &held {
        let sent = said.get(digest).copied().unwrap_or(0).max(1);
        let wrong =
            (*times > sent).then(|| (digest.to_string(), format!("held {times} times, said {sent} times")));
        bench.subject("L4.stored-once", event, wrong);
    }
    for digest in session.seen.keys() {
        let known = |digest| state.hidden.contains(digest) || session.given.contains(digest);
        let wrong = (!held.contains_key(digest) && !known(digest))
            .then(|| (digest.to_string(), "a message that the model saw is not in the store".to_owned()));
        bench.subject("L4.nothing-lost", event, wrong);
    }
}

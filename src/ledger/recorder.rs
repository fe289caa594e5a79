//! Writes a ledger as things happen.
//!
//! The recorder knows for each conversation what its last request looked like, and writes the next one against it.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::{Event, Header, Lane, Ledger, Name, Request, What};
use crate::wire::{Chain, Segment};
use crate::world::Millis;

/// Names one conversation with the model: session, lane, and which of its kind in that session.
pub type Conversation = (Name, Lane, u64);

/// The prompt of one request, as positions.
#[derive(Debug, Clone, Copy)]
pub struct PromptView<'a> {
    /// Running digest after each segment.
    pub chains: &'a [Chain],
    /// Tools and system prompt.
    pub prefix: &'a [Segment],
    /// Messages.
    pub messages: &'a [Segment],
    /// Size of the whole prompt in the run's unit.
    pub size: u64,
}

/// Facts about one request besides its prompt.
#[derive(Debug, Clone, Default)]
pub struct RequestFacts {
    /// Turn of the session, from 1.
    pub turn: u64,
    /// Iteration of the turn, from 1.
    pub iteration: u64,
    /// Cache markers by position.
    pub marks: Vec<(u64, Name)>,
    /// The planned break that was announced; empty for none.
    pub planned: Name,
}

#[derive(Debug, Clone)]
struct Last {
    request: u64,
    chains: Vec<Chain>,
}

/// Writes a ledger as things happen.
#[derive(Debug)]
pub struct Recorder {
    ledger: Ledger,
    count: u64,
    now: Millis,
    requests: u64,
    last: BTreeMap<Conversation, Last>,
    /// Sessions whose rows go to a store.
    persisted: BTreeSet<Name>,
}

impl Recorder {
    /// A recorder with an empty ledger.
    pub fn new(header: Header) -> Self {
        Self {
            ledger: Ledger::new(header),
            count: 0,
            now: 0,
            requests: 0,
            last: BTreeMap::new(),
            persisted: BTreeSet::new(),
        }
    }

    /// The instant that later events are stamped with.
    pub fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// The instant that events are stamped with.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Appends an event.
    pub fn event(&mut self, session: &Name, what: What) {
        self.count += 1;
        let n = self.count;
        if let What::SessionStarted(started) = &what
            && started.persisted
        {
            self.persisted.insert(session.clone());
        }
        self.ledger.events.push(Event { n, at: self.now, session: session.clone(), what });
    }

    /// Appends a request; `origin` names the conversation that a new one was copied from, if any.
    pub fn request(
        &mut self,
        conversation: &Conversation,
        origin: Option<&Conversation>,
        prompt: &PromptView<'_>,
        facts: RequestFacts,
    ) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let base = self.last.get(conversation).or_else(|| origin.and_then(|origin| self.last.get(origin)));
        let (base_id, kept) = base.map_or((0, 0), |last| (last.request, common(&last.chains, prompt.chains)));
        let added: Vec<Segment> = {
            let prefix = &prompt.prefix[kept.min(prompt.prefix.len())..];
            let messages = &prompt.messages[kept.saturating_sub(prompt.prefix.len())..];
            prefix.iter().chain(messages).cloned().collect()
        };
        if let Some(last) = self.last.get_mut(conversation) {
            last.request = id;
            last.chains.truncate(kept);
            last.chains.extend_from_slice(&prompt.chains[kept..]);
        } else {
            let last = Last { request: id, chains: prompt.chains.to_vec() };
            self.last.insert(conversation.clone(), last);
        }
        let request = Request {
            id,
            lane: conversation.1,
            turn: facts.turn,
            iteration: facts.iteration,
            base: base_id,
            kept: kept as u64,
            added,
            chain: prompt.chains.last().copied().unwrap_or(Chain::EMPTY),
            marks: facts.marks,
            planned: facts.planned,
            size: prompt.size,
        };
        self.event(&conversation.0, What::Request(request));
        id
    }

    /// Forgets what a conversation's last request looked like; its next one is written in full.
    pub fn forget(&mut self, conversation: &Conversation) {
        self.last.remove(conversation);
    }

    /// Takes the events out that are there, for a caller that judges a long run piece by piece.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    /// Sessions whose rows go to a store, sorted.
    pub fn persisted(&self) -> &BTreeSet<Name> {
        &self.persisted
    }

    /// Forgets a session: nothing of it is sent again, and nobody asks what the store holds of it.
    pub fn forget_session(&mut self, session: &str) {
        self.last.retain(|(name, _, _), _| &**name != session);
        self.persisted.remove(session);
    }

    /// Lets a conversation go on under another name: a compaction that rotates the session.
    pub fn rename(&mut self, from: &Conversation, to: &Conversation) {
        if let Some(last) = self.last.remove(from) {
            self.last.insert(to.clone(), last);
        }
    }

    /// Events so far.
    pub fn len(&self) -> usize {
        self.ledger.events.len()
    }

    /// True before the first event.
    pub fn is_empty(&self) -> bool {
        self.ledger.events.is_empty()
    }

    /// The ledger so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Hands over the events that were not handed over yet; later ones go on with their numbers.
    pub fn drain(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    /// The finished ledger.
    pub fn finish(self) -> Ledger {
        self.ledger
    }
}

/// Leading positions at which both digests agree. Since digests run, the first difference is the only one that
/// counts, and a longer history that extends the other is settled by one look.
fn common(before: &[Chain], now: &[Chain]) -> usize {
    let shorter = before.len().min(now.len());
    if shorter > 0 && before[shorter - 1] == now[shorter - 1] {
        return shorter;
    }
    before.iter().zip(now).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Level;

    #[test]
    fn a_request_is_written_against_the_one_before_it() {
        let mut recorder = Recorder::new(Header::default());
        let conversation = (Name::from("s"), Lane::Main, 0);
        let texts = ["a", "b", "c"];
        let segments: Vec<Segment> = texts.iter().map(|text| Segment::new(Level::Messages, *text)).collect();
        let chains: Vec<Chain> = (1..=3).map(|n| Chain::of(&segments[..n])).collect();
        for n in [2, 3] {
            let view =
                PromptView { chains: &chains[..n], prefix: &[], messages: &segments[..n], size: n as u64 };
            recorder.request(&conversation, None, &view, RequestFacts::default());
        }
        let What::Request(second) = &recorder.ledger().events[1].what else { panic!("a request") };
        assert_eq!((second.base, second.kept, second.added.len()), (1, 2, 1));
    }
}

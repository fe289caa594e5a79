//! Rebuilds from a ledger what each request looked like.
//!
//! Used by the laws, the reports and the cache bench. The running digest in each request proves that the rebuilt
//! bytes are the bytes that were sent.

use std::collections::BTreeMap;

use crate::ledger::{Event, Lane, Name, Request, What};
use crate::wire::{Chain, Level, Segment};

/// Names a conversation: its session, its lane, and the request that it began with when it was forked from another.
pub type ConversationKey = (Name, Lane, u64);

/// One conversation as its last request showed it.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The segments.
    pub segments: Vec<Segment>,
    /// Running digest after each.
    pub chains: Vec<Chain>,
    /// Its last request.
    pub request: u64,
}

/// What a request did to its conversation.
#[derive(Debug, Clone)]
pub struct Rebuilt {
    /// The conversation.
    pub key: ConversationKey,
    /// True when it is the first request of the conversation.
    pub first: bool,
    /// Segments of the request that it is written against.
    pub before: usize,
    /// Leading segments that are equal byte for byte.
    pub common: usize,
    /// The segment of the earlier request that comes next after the common ones.
    pub old: Option<Segment>,
    /// False when the bytes do not give the digest that the request claims: the ledger lies.
    pub honest: bool,
}

/// All conversations of a ledger.
#[derive(Debug, Default)]
pub struct Rebuild {
    conversations: BTreeMap<ConversationKey, Conversation>,
    key_of_request: BTreeMap<u64, ConversationKey>,
}

impl Rebuild {
    /// A conversation by its key.
    pub fn conversation(&self, key: &ConversationKey) -> Option<&Conversation> {
        self.conversations.get(key)
    }

    /// Forgets the conversations of a lane; a request that goes on from one of them must be written in full.
    pub fn forget(&mut self, session: &Name, lane: Lane) {
        let from = (session.clone(), lane, 0);
        let until = (session.clone(), lane, u64::MAX);
        let keys: Vec<ConversationKey> =
            self.conversations.range(from..=until).map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(gone) = self.conversations.remove(&key) {
                self.key_of_request.remove(&gone.request);
            }
        }
    }

    /// Takes in one event; answers for requests.
    pub fn apply(&mut self, event: &Event) -> Option<Rebuilt> {
        let What::Request(request) = &event.what else { return None };
        let base_key = self.key_of_request.get(&request.base).cloned();
        let own =
            base_key.as_ref().filter(|key| key.1 == request.lane && continues(key, event, request)).cloned();
        let key = own.clone().unwrap_or_else(|| {
            let fork = if request.base == 0 { 0 } else { request.id };
            (event.session.clone(), request.lane, fork)
        });
        let mut state = match (&own, &base_key) {
            (Some(key), _) => self.conversations.remove(key).unwrap_or_default(),
            (None, Some(base)) => self.conversations.get(base).cloned().unwrap_or_default(),
            (None, None) => Conversation::default(),
        };
        let before = state.segments.len();
        let claimed = usize::try_from(request.kept).unwrap_or(usize::MAX).min(before);
        // What the writer did not keep may still be equal.
        let equal = request.added.iter().zip(&state.segments[claimed..]).take_while(|(a, b)| a == b).count();
        let common = claimed + equal;
        let old = state.segments.get(common).cloned();
        state.segments.truncate(claimed);
        state.chains.truncate(claimed);
        let mut chain = state.chains.last().copied().unwrap_or(Chain::EMPTY);
        for segment in &request.added {
            chain = chain.then(segment);
            state.segments.push(segment.clone());
            state.chains.push(chain);
        }
        state.request = request.id;
        if let Some(replaced) = self.conversations.insert(key.clone(), state) {
            self.key_of_request.remove(&replaced.request);
        }
        self.key_of_request.remove(&request.base);
        self.key_of_request.insert(request.id, key.clone());
        if own.is_none() && request.base != 0 {
            // The conversation that was copied from goes on as well.
            if let Some(base) = base_key {
                self.key_of_request.insert(request.base, base);
            }
        }
        Some(Rebuilt { key, first: own.is_none(), before, common, old, honest: chain == request.chain })
    }
}

/// A request goes on with the conversation of its base, unless a review or a child copies it.
fn continues(key: &ConversationKey, event: &Event, request: &Request) -> bool {
    // A rotation gives the conversation a new session name.
    key.1 == request.lane && (key.0 == event.session || request.lane == Lane::Main)
}

impl Conversation {
    /// The system prompt, its segments put together.
    pub fn system(&self) -> String {
        let system = self.segments.iter().filter(|segment| segment.level == Level::System);
        system.map(|segment| &*segment.text).collect()
    }

    /// Place of the first message.
    pub fn first_message(&self) -> usize {
        self.segments
            .iter()
            .position(|segment| segment.level == Level::Messages)
            .unwrap_or(self.segments.len())
    }
}

//! What requests used goes into the books of the store, by session and by route.
//!
//! As in the real agent, a request only notes what it used; neighbours of one route are added up, and all of it is
//! written when a run of the loop is over (Hermes hermes_state_usage.py:106, agent/session_persistence.py:453). A dead
//! process takes its notes along, and what cannot be written is lost with a warning: only the ledger knows everything.

use crate::cache::prices::{Price, Prices};
use crate::cache::usage::Parts;
use crate::ledger::{Lane, Name, Usage};
use crate::model::Model;
use crate::store::StoreError;
use crate::store::retry::WriteKind;
use crate::store::usage as books;
use crate::units::Usd;

use super::{Harness, Session};

/// What was used and is not booked yet.
#[derive(Debug, Default)]
pub(super) struct Unbooked {
    notes: Vec<Note>,
}

/// Neighbouring requests of one route.
#[derive(Debug)]
struct Note {
    session: Name,
    task: &'static str,
    model: String,
    provider: String,
    requests: i64,
    parts: Parts,
    price: Option<&'static Price>,
    cost: Usd,
}

/// The name under which a side task is booked; empty for the loop's own requests.
fn task(lane: Lane) -> &'static str {
    match lane {
        Lane::Main | Lane::Child | Lane::Cron | Lane::Curator => "",
        Lane::Review => "background_review",
        Lane::Summary => "compression",
        Lane::Approver => "approval",
        Lane::Title => "title_generation",
    }
}

impl Unbooked {
    /// Notes an answered request.
    pub(super) fn add(&mut self, session: &Session, lane: Lane, used: &Usage, priced: bool) {
        let parts = Parts::from(used);
        let same = |note: &Note| {
            note.session == session.name
                && note.task == task(lane)
                && note.model == session.model
                && note.provider == session.provider
        };
        if !self.notes.last().is_some_and(same) {
            let price = priced.then(|| Prices::shipped().find(&session.model, None)).flatten();
            self.notes.push(Note {
                session: session.name.clone(),
                task: task(lane),
                model: session.model.clone(),
                provider: session.provider.clone(),
                requests: 0,
                parts: Parts::default(),
                price,
                cost: Usd::ZERO,
            });
        }
        if let Some(note) = self.notes.last_mut() {
            note.requests += 1;
            note.parts += parts;
            note.cost += note.price.map_or(Usd::ZERO, |price| price.cost(&parts));
        }
    }
}

impl<M: Model> Harness<M> {
    /// Writes what was noted. Rows of sessions that the store does not know, as a curator's, are not written.
    pub(super) fn book(&mut self) {
        if self.is_killed() {
            return;
        }
        let now = self.clock.now();
        let base_url = self.policy.prompt.base_url.clone();
        for note in std::mem::take(&mut self.unbooked).notes {
            let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
            let usage = books::Usage {
                input_tokens: count(note.parts.fresh),
                output_tokens: count(note.parts.output),
                cache_read_tokens: count(note.parts.read),
                cache_write_tokens: count(note.parts.written()),
                api_calls: note.requests,
                estimated_cost_usd: note.price.map(|_| note.cost.dollars()),
                model: Some(&note.model),
                provider: Some(&note.provider),
                base_url: Some(&base_url),
                task: note.task,
                ..books::Usage::default()
            };
            let booked = self.stored(WriteKind::Ordinary, |store| match note.task {
                "" => store.book_usage(&note.session, &usage, now),
                _ => store.book_side_usage(&note.session, &usage, now),
            });
            match booked {
                Ok(()) | Err(StoreError::NoSession(_)) => {}
                Err(error) => tracing::warn!(%error, session = &*note.session, "what was used is not booked"),
            }
        }
    }
}

//! Reviews that wait until a local model server is idle. Source: Hermes agent/review_idle_queue.py.

use indexmap::IndexMap;

use crate::world::Millis;
use crate::world::clock::SECOND;

/// Time without a turn after which the server counts as idle; Hermes agent/review_idle_queue.py.
pub const IDLE_AFTER: Millis = 15 * SECOND;

/// One waiting review per session, in memory only.
#[derive(Debug, Clone)]
pub struct IdleQueue<T> {
    /// By session, in order of first arrival.
    waiting: IndexMap<String, (Millis, T)>,
    max_age: Millis,
    running: u64,
    last_end: Option<Millis>,
}

impl<T> IdleQueue<T> {
    /// An empty queue whose items are dispatched at this age at the latest.
    pub fn new(max_age: Millis) -> Self {
        Self { waiting: IndexMap::new(), max_age, running: 0, last_end: None }
    }

    /// A turn begins somewhere in the process.
    pub fn turn_begins(&mut self) {
        self.running += 1;
    }

    /// A turn has ended.
    pub fn turn_ends(&mut self, now: Millis) {
        self.running = self.running.saturating_sub(1);
        self.last_end = Some(now);
    }

    /// Puts a review in line. A newer snapshot of the same session replaces the older but keeps its place and age.
    pub fn enqueue(&mut self, session: &str, review: T, now: Millis) {
        match self.waiting.get_mut(session) {
            Some((_, waiting)) => *waiting = review,
            None => {
                self.waiting.insert(session.to_owned(), (now, review));
            }
        }
    }

    /// The review to run now, if any: one that has waited too long whatever the load, else the oldest when all is quiet.
    pub fn pop(&mut self, now: Millis, server_busy: bool) -> Option<(String, T)> {
        let (_, (since, _)) = self.waiting.first()?;
        let aged = now - since >= self.max_age;
        let quiet = self.running == 0 && self.last_end.is_some_and(|end| now - end >= IDLE_AFTER);
        if !aged && (!quiet || server_busy) {
            return None;
        }
        self.waiting.shift_remove_index(0).map(|(session, (_, review))| (session, review))
    }

    /// When the next one may begin, if no turn comes before.
    pub fn due(&self) -> Option<Millis> {
        let (_, (since, _)) = self.waiting.first()?;
        let aged = since.saturating_add(self.max_age);
        let quiet = self.last_end.filter(|_| self.running == 0).map(|end| end + IDLE_AFTER);
        Some(quiet.map_or(aged, |quiet| quiet.min(aged)))
    }

    /// True when a review of this session waits.
    pub fn holds(&self, session: &str) -> bool {
        self.waiting.contains_key(session)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

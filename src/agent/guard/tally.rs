//! The breaker: reviewer refusals in a row, per session.
//!
//! Never: more sessions than the cap; the one that was touched longest ago goes first.

use indexmap::IndexMap;

/// Refusals in a row per session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    counts: IndexMap<String, u64>,
}

impl Tally {
    /// Counts one refusal and answers the new count.
    pub fn deny(&mut self, session: &str, sessions_max: u64) -> u64 {
        let count = self.counts.shift_remove(session).unwrap_or(0) + 1;
        self.counts.insert(session.to_owned(), count);
        while self.counts.len() as u64 > sessions_max.max(1) {
            self.counts.shift_remove_index(0);
        }
        count
    }

    /// Any approval ends the row.
    pub fn reset(&mut self, session: &str) {
        self.counts.shift_remove(session);
    }

    /// Refusals in a row.
    pub fn count(&self, session: &str) -> u64 {
        self.counts.get(session).copied().unwrap_or(0)
    }

    /// True when the row is long enough to stop the agent; a threshold of 0 or less never is.
    pub fn tripped(&self, session: &str, threshold: i64) -> bool {
        u64::try_from(threshold).is_ok_and(|threshold| threshold > 0 && self.count(session) >= threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_touched_longest_ago_is_forgotten_first() {
        let mut tally = Tally::default();
        for session in ["a", "b", "a", "c"] {
            tally.deny(session, 2);
        }
        assert_eq!((tally.count("a"), tally.count("b"), tally.count("c")), (2, 0, 1));
    }
}

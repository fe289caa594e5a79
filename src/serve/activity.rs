//! How much is going on: requests begun and answered, for somebody who waits until nothing happens any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What has happened on the wire so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Requests that came in, on any path.
    pub requests: u64,
    /// Those of them without an answer yet.
    pub in_flight: u64,
}

/// The counts, shared between threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Arc<(AtomicU64, AtomicU64)>);

impl Counts {
    /// The counts as they are.
    pub(super) fn now(&self) -> Activity {
        let answered = self.0.1.load(Ordering::Acquire);
        let requests = self.0.0.load(Ordering::Acquire);
        Activity { requests, in_flight: requests - answered }
    }

    /// Counts a request until what is given back is dropped, whatever becomes of it.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.0.fetch_add(1, Ordering::AcqRel);
        UnderWay(self.clone())
    }
}

/// A request without an answer.
pub(super) struct UnderWay(Counts);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.1.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let counts = Counts::default();
        let one = counts.begin();
        assert_eq!(counts.now(), Activity { requests: 1, in_flight: 1 });
        drop(one);
        assert_eq!(counts.now(), Activity { requests: 1, in_flight: 0 });
    }
}

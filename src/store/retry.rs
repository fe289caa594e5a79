//! What a writer does that meets a lock: how long it sleeps, and when it gives up.
//!
//! Pure figures over the virtual clock and a named random stream; nothing here waits. Callers: whoever writes to a file
//! that others write to.

use crate::policy;
use crate::world::{Clock, Millis, streams::Stream};

/// What is written; the kinds have different patience (`Hermes hermes_state.py:483`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Anything not named below.
    Ordinary,
    /// Rows of a conversation, a new session: losing them would end a turn.
    Transcript,
    /// A stamp of activity, which the next one replaces.
    Stamp,
}

impl WriteKind {
    /// From the first try to giving up, in milliseconds.
    pub fn patience(self, knobs: &policy::Store) -> Millis {
        let patience = match self {
            Self::Ordinary => knobs.write_patience_ms,
            Self::Transcript => knobs.transcript_patience_ms,
            Self::Stamp => knobs.stamp_patience_ms,
        };
        millis(patience)
    }
}

/// One sleep before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// Shortest draw, in milliseconds.
    pub low: Millis,
    /// Longest draw, in milliseconds.
    pub high: Millis,
    /// Time left until the deadline, in milliseconds; the sleep is cut to it, but lasts at least 1 ms.
    pub left: Millis,
}

impl Sleep {
    /// The sleep for a draw, in milliseconds.
    pub fn cut(self, drawn: Millis) -> Millis {
        drawn.min(self.left).max(1)
    }
}

/// The sleep after a try that ended `elapsed` ms after the first one began; `None` at or behind the deadline.
pub fn next_sleep(knobs: &policy::Store, patience: Millis, elapsed: Millis) -> Option<Sleep> {
    let left = patience - elapsed;
    if left <= 0 {
        return None;
    }
    let early = elapsed < millis(knobs.retry_early_ms);
    let (low, high) = if early {
        (knobs.retry_early_low_ms, knobs.retry_early_high_ms)
    } else {
        (knobs.retry_late_low_ms, knobs.retry_late_high_ms)
    };
    Some(Sleep { low: millis(low), high: millis(high), left })
}

/// Runs a write until it succeeds, fails for another reason than a lock, or the patience is spent. Sleeps move the
/// clock.
///
/// # Errors
/// The last error of the write.
pub fn run<T, E>(
    knobs: &policy::Store,
    kind: WriteKind,
    clock: &mut Clock,
    stream: &mut Stream,
    is_lock: impl Fn(&E) -> bool,
    mut write: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let start = clock.now();
    let patience = kind.patience(knobs);
    loop {
        let error = match write() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let sleep = next_sleep(knobs, patience, clock.now() - start).filter(|_| is_lock(&error));
        let Some(sleep) = sleep else { return Err(error) };
        let (low, high) = (sleep.low.unsigned_abs(), sleep.high.max(sleep.low).unsigned_abs());
        clock.advance(sleep.cut(millis(stream.between(low, high))));
    }
}

fn millis(value: u64) -> Millis {
    Millis::try_from(value).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Streams;

    #[test]
    fn a_write_that_stays_locked_gives_up_at_its_deadline_and_not_before() {
        let knobs = policy::Store::default();
        let mut clock = Clock::at(5);
        let mut stream = Streams::new(1).named("store.retry");
        let done: Result<(), &str> =
            run(&knobs, WriteKind::Stamp, &mut clock, &mut stream, |_| true, || Err("busy"));
        assert_eq!((done, clock.now()), (Err("busy"), 505));
    }

    #[test]
    fn another_failure_is_not_tried_again() {
        let knobs = policy::Store::default();
        let mut clock = Clock::at(0);
        let mut stream = Streams::new(1).named("store.retry");
        let mut tries = 0;
        let done: Result<(), &str> = run(
            &knobs,
            WriteKind::Ordinary,
            &mut clock,
            &mut stream,
            |_| false,
            || {
                tries += 1;
                Err("disk full")
            },
        );
        assert_eq!((done, tries, clock.now()), (Err("disk full"), 1, 0));
    }
}

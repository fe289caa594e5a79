//! Virtual time. It stands still until somebody moves it.

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// Milliseconds in one second.
pub const SECOND: Millis = 1_000;
/// Milliseconds in one minute.
pub const MINUTE: Millis = 60 * SECOND;
/// Milliseconds in one hour.
pub const HOUR: Millis = 60 * MINUTE;
/// Milliseconds in one day.
pub const DAY: Millis = 24 * HOUR;

/// A clock that moves only when told.
///
/// ```
/// use hermes_lab::world::Clock;
/// let mut clock = Clock::at(1_000);
/// clock.advance(250);
/// assert_eq!(clock.now(), 1_250);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    now: Millis,
}

impl Clock {
    /// A clock standing at `now`, in milliseconds since the Unix epoch.
    pub fn at(now: Millis) -> Self {
        Self { now }
    }

    /// The present instant, in milliseconds since the Unix epoch.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// The present instant in whole seconds, rounded down.
    pub fn now_seconds(&self) -> i64 {
        self.now.div_euclid(SECOND)
    }

    /// Moves by `by` milliseconds; a negative amount models a clock that was set back.
    pub fn advance(&mut self, by: Millis) {
        self.now = self.now.saturating_add(by);
    }

    /// Sets the clock.
    pub fn set(&mut self, now: Millis) {
        self.now = now;
    }
}

//! Time of the mock provider: the real one, or one that moves with the requests.
//!
//! This is the one place of the room that asks for the time of day.
#![expect(clippy::disallowed_methods, reason = "the seam where a real agent meets a real clock")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::scenario::{Act, Scenario};
use crate::world::{Millis, clock};

/// Which time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockKind {
    /// The time of day: lifetimes of cache entries run as they do at a provider.
    Real,
    /// Starts with the scenario and moves a second with every request; `wait` acts of the scenario pass before the
    /// turn that follows them. Two runs give the same instants.
    #[default]
    Virtual,
}

/// The clock of a run.
#[derive(Debug)]
pub(super) struct ServeClock {
    kind: ClockKind,
    start: Millis,
    requests: Millis,
    /// Time that the scenario has let pass before each act.
    waited: Vec<Millis>,
    act: usize,
}

impl ServeClock {
    pub(super) fn new(kind: ClockKind, scenario: &Scenario) -> Self {
        let mut sum: Millis = 0;
        let waited = scenario
            .acts
            .iter()
            .map(|act| {
                if let Act::Wait(wait) = act {
                    sum += wait.days * clock::DAY
                        + wait.hours * clock::HOUR
                        + wait.minutes * clock::MINUTE
                        + wait.seconds * clock::SECOND;
                }
                sum
            })
            .collect();
        Self { kind, start: scenario.start, requests: 0, waited, act: 0 }
    }

    /// A request that belongs to an act of the scenario has come; what time is it?
    pub(super) fn request(&mut self, act: usize) -> Millis {
        self.requests += 1;
        self.act = self.act.max(act);
        self.now()
    }

    /// The present instant, in milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> Millis {
        match self.kind {
            ClockKind::Real => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)),
            ClockKind::Virtual => {
                let waited = self.waited.get(self.act).copied().unwrap_or(0);
                self.start + waited + self.requests * clock::SECOND
            }
        }
    }
}

impl std::str::FromStr for ClockKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "real" => Ok(Self::Real),
            "virtual" => Ok(Self::Virtual),
            other => Err(format!("`{other}` is no clock; expected real or virtual")),
        }
    }
}

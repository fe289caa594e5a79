//! Faults that a scenario schedules for the provider: `[[fault]]` with `act` and `provider = { … }`.
//!
//! Requests are counted by act and lane as the runtime counts them, attempts included. What else a scenario schedules
//! (crashes, a locked store, a full disk, the clock) happens inside an agent, where a provider cannot reach.

use std::collections::BTreeMap;

use crate::ledger::Lane;
use crate::scenario::{Scenario, fault};
use crate::world::Faults;
use crate::world::faults::Armed;

/// The schedule, one handle an act.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    acts: BTreeMap<usize, Faults>,
    /// Faults that are none of the provider's.
    pub(super) left_out: usize,
}

impl Scheduled {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let mut scheduled = Self::default();
        for index in 0..scenario.acts.len() {
            let (armed, _) = fault::of_act(&scenario.faults, index as u64 + 1);
            if armed.provider.is_empty() {
                continue;
            }
            let faults = Faults::default();
            faults.arm(Armed { provider: armed.provider, ..Armed::default() });
            scheduled.acts.insert(index, faults);
        }
        scheduled.left_out = scenario.faults.iter().filter(|fault| fault.provider.is_none()).count();
        scheduled
    }

    /// What is to happen to this request.
    pub(super) fn on_request(&self, act: usize, lane: Lane) -> Option<String> {
        self.acts.get(&act)?.on_request(lane.word())
    }
}

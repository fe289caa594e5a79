//! Faults of a scenario: what goes wrong in which act.
//!
//! A fault names its act and is written under the key of its kind: `[[fault]]` with `act = 3` and
//! `crash.after_event = 4`. Several kinds may stand in one table.

use serde::Deserialize;

use super::acts::tables;
use crate::world::Millis;
use crate::world::clock;
use crate::world::faults::{Armed, ProviderFault};

tables! {
    /// What goes wrong in one act. Ordinals count from 1 within the act.
    FaultSpec {
        /// Place of the act in the file, from 1.
        act: u64,
        /// The process dies, and another takes its place.
        crash: Option<CrashSpec>,
        /// The provider fails.
        provider: Option<ProviderSpec>,
        /// The store is locked by another connection.
        busy: Option<WritesSpec>,
        /// Home and store have no room.
        disk_full: Option<WritesSpec>,
        /// The clock jumps before the act.
        clock: Option<ClockSpec>,
        /// A new turn arrives beside a review.
        cancel_review: Option<RequestSpec>,
        /// The scheduler ticks beside a compaction.
        tick: Option<TickFaultSpec>,
        /// Children do not run one after another.
        interleave: Option<RequestSpec>,
    }

    /// Where the process dies: one of the two.
    CrashSpec {
        /// After so many ledger events.
        after_event: Option<u64>,
        /// Instead of this write to home or store.
        before_write: Option<u64>,
    }

    /// Requests that the provider fails.
    ProviderSpec {
        /// How it fails.
        fault: String,
        /// Whose requests.
        #[serde(default = "main_lane")]
        lane: String,
        /// The first one.
        #[serde(default = "one")]
        request: u64,
        /// How many in a row.
        #[serde(default = "one")]
        times: u64,
    }

    /// Writes that fail.
    WritesSpec {
        /// The first one.
        #[serde(default = "one")]
        write: u64,
        /// How many in a row.
        #[serde(default = "one")]
        times: u64,
    }

    /// By how much the clock jumps.
    ClockSpec {
        /// Minutes; negative for a clock that is set back.
        jump_minutes: i64,
    }

    /// A request by its ordinal.
    RequestSpec {
        /// Which.
        request: u64,
    }

    /// A summary by its ordinal.
    TickFaultSpec {
        /// Which.
        in_compaction: u64,
    }
}

fn main_lane() -> String {
    "main".to_owned()
}

fn one() -> u64 {
    1
}

/// Keys of a fault, for the nearest valid name.
pub(super) const KEYS: [&str; 9] =
    ["act", "crash", "provider", "busy", "disk_full", "clock", "cancel_review", "tick", "interleave"];

impl FaultSpec {
    /// True when it names no kind.
    pub(super) fn is_empty(&self) -> bool {
        let crash = self
            .crash
            .as_ref()
            .is_some_and(|crash| crash.after_event.is_some() || crash.before_write.is_some());
        !crash
            && self.provider.is_none()
            && self.busy.is_none()
            && self.disk_full.is_none()
            && self.clock.is_none()
            && self.cancel_review.is_none()
            && self.tick.is_none()
            && self.interleave.is_none()
    }

    /// Every ordinal and count that it gives.
    pub(super) fn ordinals(&self) -> Vec<u64> {
        let crash = self.crash.iter().flat_map(|crash| [crash.after_event, crash.before_write]).flatten();
        let writes = self.busy.iter().chain(&self.disk_full).flat_map(|spec| [spec.write, spec.times]);
        let provider = self.provider.iter().flat_map(|spec| [spec.request, spec.times]);
        let single = self.cancel_review.iter().chain(&self.interleave).map(|spec| spec.request);
        let tick = self.tick.iter().map(|spec| spec.in_compaction);
        crash.chain(writes).chain(provider).chain(single).chain(tick).collect()
    }
}

/// The schedule of one act, and by how much the clock jumps before it.
pub fn of_act(faults: &[FaultSpec], act: u64) -> (Armed, Millis) {
    let (mut armed, mut jump) = (Armed::default(), 0);
    for fault in faults.iter().filter(|fault| fault.act == act) {
        if let Some(crash) = &fault.crash {
            armed.crash_after_event = crash.after_event.or(armed.crash_after_event);
            armed.crash_before_write = crash.before_write.or(armed.crash_before_write);
        }
        armed.provider.extend(fault.provider.iter().map(|spec| ProviderFault {
            kind: spec.fault.clone(),
            lane: spec.lane.clone(),
            request: spec.request,
            times: spec.times,
        }));
        let writes = |spec: &Option<WritesSpec>| spec.as_ref().map(|spec| (spec.write, spec.times));
        armed.busy = writes(&fault.busy).or(armed.busy);
        armed.disk_full = writes(&fault.disk_full).or(armed.disk_full);
        let request = |spec: &Option<RequestSpec>| spec.as_ref().map(|spec| spec.request);
        armed.cancel_review = request(&fault.cancel_review).or(armed.cancel_review);
        armed.interleave = request(&fault.interleave).or(armed.interleave);
        armed.tick_in_compaction =
            fault.tick.as_ref().map(|spec| spec.in_compaction).or(armed.tick_in_compaction);
        jump += fault.clock.as_ref().map_or(0, |spec| spec.jump_minutes.saturating_mul(clock::MINUTE));
    }
    (armed, jump)
}

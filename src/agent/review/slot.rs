//! One review at a time, and none beside a live turn. Source: Hermes agent/background_review.py:28.

use crate::world::Millis;
use crate::world::clock::SECOND;

/// How long a new turn waits for a cancelled review, at most; Hermes agent/turn_facade.py:129.
pub const CANCEL_WAIT: Millis = 2 * SECOND;

/// One run of a review, as its slot sees it.
#[derive(Debug, Clone, Default)]
struct Life {
    cancelled: bool,
    done: bool,
    admitted: bool,
    interrupt_sent: bool,
}

/// The place that one agent has for a review. Runs are named by a number of the caller's.
#[derive(Debug, Clone, Default)]
pub struct Slot {
    current: Option<u64>,
    lives: std::collections::BTreeMap<u64, Life>,
}

impl Slot {
    /// A slot with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves the slot before the review's thread starts; false while another run is not done.
    pub fn prepare(&mut self, run: u64) -> bool {
        if self.current.is_some_and(|current| !self.is_done(current)) {
            return false;
        }
        // What is done and no longer current is never asked for again.
        self.lives.retain(|other, life| !life.done || Some(*other) == self.current);
        self.current = Some(run);
        self.lives.insert(run, Life::default());
        true
    }

    /// Admits the fork that was built; false when the run was cancelled or is done, `None` when it was never prepared.
    pub fn begin(&mut self, run: u64) -> Option<bool> {
        let life = self.lives.get_mut(&run)?;
        let may = !life.cancelled && !life.done;
        life.admitted |= may;
        Some(may)
    }

    /// Ends a run. A late end never clears a successor.
    pub fn finish(&mut self, run: u64) {
        if let Some(life) = self.lives.get_mut(&run) {
            life.done = true;
        }
        if self.current == Some(run) {
            self.current = None;
        }
    }

    /// A live turn begins: the current run is cancelled. Answers it when its fork is to be interrupted now.
    pub fn new_turn(&mut self) -> Option<u64> {
        let run = self.current?;
        let life = self.lives.get_mut(&run)?;
        life.cancelled = true;
        let send = life.admitted && !life.interrupt_sent && !life.done;
        life.interrupt_sent |= send;
        send.then_some(run)
    }

    /// The run that holds the slot.
    pub fn current(&self) -> Option<u64> {
        self.current
    }

    /// True when the run has ended.
    pub fn is_done(&self, run: u64) -> bool {
        self.lives.get(&run).is_some_and(|life| life.done)
    }

    /// True when a live turn cancelled the run.
    pub fn is_cancelled(&self, run: u64) -> bool {
        self.lives.get(&run).is_some_and(|life| life.cancelled)
    }
}

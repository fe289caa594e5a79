//! Up to where a history was found in order before, so that a growing one is not checked from its start every time.

use crate::audit::history::first_new_turn;
use crate::audit::prompt::{ByHash, Prompt};

/// Ends that are remembered; the older half goes when there are more.
const KNOWN_MAX: usize = 1 << 14;

/// Ends of histories that were in order.
#[derive(Debug, Default)]
pub(super) struct Clean {
    ends: ByHash<()>,
}

impl Clean {
    /// The message from which on a history is to be checked.
    pub(super) fn checked(&self, prompt: &Prompt) -> usize {
        let known = prompt.chain.iter().rposition(|chain| self.ends.contains_key(chain));
        known.map_or(0, |at| first_new_turn(prompt, at + 1))
    }

    /// This history was in order.
    pub(super) fn accept(&mut self, prompt: &Prompt) {
        let Some(chain) = prompt.chain.last() else { return };
        if self.ends.len() >= KNOWN_MAX {
            self.ends.drain(..KNOWN_MAX / 2);
        }
        self.ends.insert(*chain, ());
    }
}

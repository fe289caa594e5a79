//! Background review.

use super::knobs;

knobs! {
    /// Background review: when it is due, what it may do, how much it may spend.
    Review, "review" {
        /// Iterations since a skill was managed after which a review of skills is due; 0 switches it off.
        skill_interval: u64 = 10, [0, 1_000_000], "iterations", "Hermes agent/agent_init.py:1384", "L3";
        /// User turns since memory was used after which a review of memory is due; 0 switches it off.
        memory_interval: u64 = 10, [0, 1_000_000], "turns", "Hermes agent/agent_init.py:1322", "L3";
    }
}

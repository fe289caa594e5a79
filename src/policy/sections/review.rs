//! Background review.

use super::{choice, knobs};

choice! {
    /// Where the list of a review's tools is looked up.
    WhitelistScope {
        /// With the run: whatever thread a tool runs on, the list holds.
        Run = "run",
        /// With the thread that started the review: tools that run on a worker thread do not see it.
        Thread = "thread",
        /// Nowhere.
        Off = "off",
    }
}

choice! {
    /// When a due review runs.
    ReviewTime {
        /// After the answer was delivered.
        AfterDelivery = "after_delivery",
        /// Before it, so that the user waits.
        BeforeDelivery = "before_delivery",
    }
}

knobs! {
    /// Background review: when it is due, what it may do, how much it may spend.
    Review, "review" {
        /// Whether reviews run at all.
        enabled: bool = true, "switch", "Hermes run_agent.py:766", "L3";
        /// When a due review runs.
        when: ReviewTime = ReviewTime::AfterDelivery, "choice", "Hermes agent/turn_finalizer.py:763", "L3";
        /// Iterations since a skill was managed after which a review of skills is due; 0 switches it off.
        skill_interval: u64 = 10, [0, 1_000_000], "iterations", "Hermes agent/agent_init.py:1384", "L3";
        /// User turns since memory was used after which a review of memory is due; 0 switches it off.
        memory_interval: u64 = 10, [0, 1_000_000], "turns", "Hermes agent/agent_init.py:1322", "L3";
        /// Iterations of one review.
        iterations_max: u64 = 16, [1, 100_000], "iterations", "Hermes agent/background_review.py:173", "L3";
        /// Where the list of tools that a review may dispatch is looked up.
        whitelist: WhitelistScope = WhitelistScope::Run, "choice", "Hermes agent/background_review.py:1080", "L3";
        /// Whether a review is sent a tool table with only the tools that it may use.
        short_tool_table: bool = false, "switch", "hermes-lab", "L1";
        /// Tools that a review may dispatch beside its own.
        extra_tools: Vec<String> = Vec::new(), "names", "Hermes agent/background_review.py:1080", "L3";
    }
}

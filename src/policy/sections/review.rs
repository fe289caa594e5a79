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

choice! {
    /// How much the user is told of what a review learned.
    Notify {
        /// One line per change.
        On = "on",
        /// Nothing.
        Off = "off",
        /// Every change with a preview.
        Verbose = "verbose",
    }
}

choice! {
    /// Whether a review waits until a model server that the program manages itself is idle.
    Defer {
        /// It does.
        Auto = "auto",
        /// It starts at once.
        Never = "never",
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
        /// Model of the review; empty for the session's own. Another model is given a digest, not the whole conversation.
        model: String = String::new(), "name", "Hermes agent/background_review.py:245", "L1";
        /// Provider of that model; empty for the session's own.
        provider: String = String::new(), "name", "Hermes agent/background_review.py:245", "L1";
        /// Input tokens of one review; none derives them from the window (three quarters, 600,000 at most), 0 is without limit.
        input_tokens_max: Option<u64> = None, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/background_review.py:180", "L3";
        /// How much the user is told of what a review learned.
        notify: Notify = Notify::On, "choice", "Hermes agent/background_review.py:616", "L3";
        /// Whether the model server is a local one that the program manages itself.
        local_server: bool = false, "switch", "Hermes run_agent.py:766", "L3";
        /// Whether a review waits until such a server is idle.
        defer: Defer = Defer::Auto, "choice", "Hermes agent/review_idle_queue.py", "L3";
        /// Seconds after which a waiting review starts whatever the load.
        defer_max_age: u64 = 1800, [1, 1_000_000_000], "seconds", "Hermes agent/review_idle_queue.py", "L3";
        /// Skills that a review would write from a conversation with pages from the web in it wait for the user's approval.
        stage_after_web: bool = false, "switch", "hermes-lab", "L3";
        /// Tools that a review may dispatch beside its own.
        extra_tools: Vec<String> = Vec::new(), "names", "Hermes agent/background_review.py:1080", "L3";
    }
}

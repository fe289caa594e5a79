//! Cache markers.

use super::{choice, knobs};

choice! {
    /// Where cache markers go.
    MarkerLayout {
        /// As the route and the revision decide.
        Auto = "auto",
        /// Nowhere.
        None = "none",
        /// On the whole system prompt alone.
        SystemOnly = "system_only",
        /// On the whole system prompt and the last three messages.
        SystemAndThree = "system_and_3",
        /// On the static prefix, the end of the system prompt and the last two messages.
        StaticPrefix = "static_prefix",
        /// On the static prefix, the last tool and the ends of the last two transactions.
        DirectNative = "direct_native",
    }
}

knobs! {
    /// Cache markers.
    Breakpoints, "breakpoints" {
        /// Where the markers go.
        layout: MarkerLayout = MarkerLayout::Auto, "choice", "Hermes agent/prompt_caching.py:298", "L1";
        /// Markers of one request at most.
        markers_max: u64 = 4, [0, 64], "markers", "Hermes agent/prompt_caching.py:298", "L1";
        /// Tier of the markers: `5m`, `1h`, `auto`, or `off`.
        ttl: String = "5m".to_owned(), "text", "Hermes agent/agent_init.py:684", "-";
        /// The static prefix of the system prompt gets a marker of its own.
        static_prefix: bool = true, "switch", "Hermes agent/prompt_caching.py:298", "L1";
        /// The last tool gets a marker on the direct route.
        tool_markers: bool = true, "switch", "Hermes agent/agent_runtime_helpers.py:1611", "L1";
        /// Earlier markers are taken off before new ones are set.
        undo_decoration: bool = true, "switch", "Hermes agent/prompt_caching.py:191", "L1";
        /// The fixed part of a long user message is sent as a part of its own.
        scaffolds: bool = true, "switch", "Hermes agent/prompt_cache_boundary.py", "L1";
        /// Registered fixed parts at most.
        scaffolds_max: u64 = 32, [0, 1_000_000], "entries", "Hermes agent/prompt_cache_boundary.py", "L2";
        /// Registered fixed parts together.
        scaffold_chars_max: u64 = 4_194_304, [0, 1_000_000_000], "characters", "Hermes agent/prompt_cache_boundary.py", "L2";
        /// A custom route may declare that it caches.
        custom_capability: bool = true, "switch", "Hermes agent/agent_runtime_helpers.py:1780", "-";
        /// MiniMax M3 caches by itself and gets no markers.
        minimax_m3_unmarked: bool = true, "switch", "Hermes agent/agent_runtime_helpers.py:1780", "-";
        /// Claude behind LiteLLM is marked.
        litellm: bool = true, "switch", "Hermes agent/agent_runtime_helpers.py:1780", "-";
        /// OpenRouter and the portal are marked in the envelope even on the messages wire.
        envelope_on_messages_wire: bool = false, "switch", "Hermes agent/agent_runtime_helpers.py:1780", "-";
        /// The portal is known by any part of the address, not by its host.
        portal_by_substring: bool = false, "switch", "Hermes 0.19 agent/agent_runtime_helpers.py", "-";
    }
}

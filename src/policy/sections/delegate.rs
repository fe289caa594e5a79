//! Child agents.

use super::knobs;

knobs! {
    /// Child agents: how deep, how many, how long.
    Delegate, "delegate" {
        /// Depth at which spawning ends; the root has depth 0.
        max_spawn_depth: u64 = 1, [1, 1_000_000], "levels", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Children of a shallow enough agent may delegate in turn.
        orchestrator_enabled: bool = true, "switch", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Children of one call.
        max_concurrent_children: u64 = 10, [1, 1_000_000], "children", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Iterations of one child.
        max_iterations: u64 = 250, [1, 1_000_000], "iterations", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Tools that spawn, remember, send, ask or schedule are kept from children.
        block_tools: bool = true, "switch", "Hermes tools/delegate_tool_toolsets.py:14", "L5";
        /// Longest summary that comes back; 0 for no limit.
        max_summary_chars: u64 = 24_000, [0, 1_000_000_000], "characters", "Hermes tools/delegate_tool_results.py:160", "L2";
    }
}

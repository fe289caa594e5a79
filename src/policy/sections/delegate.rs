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
        /// Children that one turn may spawn over all its calls; 0 is without limit, as in the real agent.
        spawns_per_turn_max: u64 = 0, [0, 1_000_000], "children", "lab", "L5";
        /// Iterations of one child.
        max_iterations: u64 = 250, [1, 1_000_000], "iterations", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Children that a run which cannot wait for later results may have in all; 0 is without limit.
        oneshot_max_children: u64 = 2, [0, 1_000_000], "children", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// Whether results come back one message per group of tasks, not one for the whole call.
        independent_completions: bool = false, "switch", "Hermes tools/delegate_tool_config.py:17", "L2";
        /// Whether a child that asks for a narrower list keeps its parent's external toolsets.
        inherit_mcp_toolsets: bool = true, "switch", "Hermes tools/delegate_tool_toolsets.py:77", "L5";
        /// Tools that spawn, remember, send, ask or schedule are kept from children.
        block_tools: bool = true, "switch", "Hermes tools/delegate_tool_toolsets.py:14", "L5";
        /// Longest summary that comes back; 0 for no limit.
        max_summary_chars: u64 = 24_000, [0, 1_000_000_000], "characters", "Hermes tools/delegate_tool_results.py:160", "L2";
    }
}

//! One user turn.

use super::{choice, knobs};

choice! {
    /// Which rules split a batch of calls into parallel and serial runs.
    Parallel {
        /// Readers of one file run together; patches reserve what their headers name.
        Current = "current",
        /// Readers of one file conflict; searches reserve nothing.
        Older = "older",
        /// Never in parallel.
        Never = "never",
    }
}

choice! {
    /// In which order the results of a parallel batch are stored.
    ResultOrder {
        /// In the order of the calls, whatever finishes first.
        Call = "call",
        /// In finishing order, and put back into call order when the history is read again.
        Finish = "finish",
    }
}

knobs! {
    /// One user turn: iterations, retries, tool rounds, guardrails.
    Turn, "turn" {
        /// Iterations of the loop for one user turn.
        iterations_max: Option<u64> = Some(90), [1, 1_000_000], "iterations", "Hermes agent/conversation_loop.py:1673 (older default)", "L5";
        /// Attempts at one request before the turn fails.
        attempts_max: u64 = 3, [1, 100], "attempts", "Hermes api_max_retries", "-";
        /// Unknown-tool rounds in a row before the turn ends.
        unknown_tool_strikes: u64 = 3, [1, 100], "rounds", "Hermes agent/turn_tool_validation.py:72", "-";
        /// Silent retries of a reply whose arguments do not parse.
        bad_arguments_retries: u64 = 2, [0, 100], "retries", "Hermes agent/turn_tool_validation.py:72", "-";
        /// Retries of an empty reply.
        empty_retries: u64 = 3, [0, 100], "retries", "Hermes agent/turn_empty_response.py:140", "-";
        /// Reasoning-only replies that are kept as a start for the next.
        prefills_max: u64 = 2, [0, 100], "replies", "Hermes agent/turn_empty_response.py:140", "-";
        /// Nudges after a cut answer.
        cut_nudges_max: u64 = 3, [0, 100], "nudges", "Hermes agent/turn_truncation.py", "-";
        /// Repeats of a request whose tool call was cut.
        cut_call_retries: u64 = 4, [0, 100], "retries", "Hermes agent/turn_truncation.py", "-";
        /// Nudges after a reply that says tools follow but calls none.
        announced_nudges_max: u64 = 3, [0, 100], "nudges", "Hermes agent/turn_final_response.py:56", "-";
        /// Nudges after an answer that ends on an announced step.
        stall_nudges_max: u64 = 2, [0, 100], "nudges", "Hermes agent/turn_final_response.py:56", "-";
        /// Length up to which an answer may count as a stall.
        stall_chars_max: u64 = 400, [0, 100_000], "characters", "Hermes agent/turn_final_response.py:56", "-";
        /// Length up to which an answer without sentence end is a fragment.
        fragment_chars_max: u64 = 24, [0, 10_000], "characters", "Hermes agent/turn_finalizer.py:525", "-";
        /// How batches of calls are split.
        parallel: Parallel = Parallel::Current, "choice", "Hermes agent/tool_dispatch_helpers.py:195", "-";
        /// Calls of a parallel run that are under way at once.
        workers_max: u64 = 8, [1, 64], "calls", "Hermes agent/tool_dispatch_helpers.py:195", "L5";
        /// In which order results are stored.
        result_order: ResultOrder = ResultOrder::Call, "choice", "Hermes agent/tool_executor.py", "L4";
        /// Shortest time that the model takes for a reply.
        reply_ms_min: u64 = 0, [0, 3_600_000], "milliseconds", "hermes-lab", "-";
        /// Longest time that the model takes for a reply; drawn between both from a stream of its own.
        reply_ms_max: u64 = 0, [0, 3_600_000], "milliseconds", "hermes-lab", "-";
        /// A call whose outcome is unknown is sent again at once.
        retry_unknown: bool = false, "switch", "hermes-lab", "L4";
        /// Each time rows are stored the whole conversation is handed over again.
        store_everything: bool = false, "switch", "hermes-lab", "L4";
        /// Results are fitted into the budget of their round before they are stored, so that a resume sends what was
        /// sent.
        fit_before_store: bool = false, "switch", "lab: Hermes stores each result first", "L4";
        /// A message that cannot be stored is not sent.
        store_before_send: bool = false, "switch", "lab: Hermes sends it all the same", "L4";
        /// A user message that got no answer is closed by a row of the harness, so that the next message is not merged
        /// into it.
        close_failed: bool = false, "switch", "lab: Hermes merges the next message into it", "L1";
        /// A history that may be broken is mended before it is sent.
        repair_history: bool = true, "switch", "Hermes agent/agent_runtime_helpers.py:743", "L4";
        /// Calls that a dead process left without a result are kept and answered with "unknown" when the session is taken up again; off, they are dropped, and nothing tells the model that they may have run.
        close_open_calls: bool = false, "switch", "hermes-lab; Hermes agent/agent_runtime_helpers.py:766 drops them", "L4";
        /// Longest result that stays in the conversation, without a known window.
        result_chars_max: u64 = 100_000, [1, 100_000_000], "characters", "Hermes tools/budget_config.py", "L2";
        /// Longest result of an external tool server.
        server_result_chars_max: u64 = 50_000, [1, 100_000_000], "characters", "Hermes tools/budget_config.py", "L2";
        /// All results of one batch together, without a known window.
        round_chars_max: u64 = 200_000, [1, 100_000_000], "characters", "Hermes tools/budget_config.py", "L2";
        /// What stays of a result that was put aside.
        preview_chars: u64 = 1_500, [0, 1_000_000], "characters", "Hermes tools/tool_result_storage.py", "L2";
        /// Same failing call: warning from this count.
        repeat_warn_from: u64 = 2, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "-";
        /// Same failing or fruitless call: blocked from this count, where hard stops are on.
        repeat_block_from: u64 = 5, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "L5";
        /// Failures of one tool: warning from this count.
        tool_failures_warn_from: u64 = 3, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "-";
        /// Failures of one tool: halt at this count, where hard stops are on.
        tool_failures_halt_at: u64 = 8, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "L5";
        /// Consecutive identical calls and results: notice from this count.
        streak_notice_from: u64 = 3, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "-";
        /// Consecutive identical calls and results: halt at this count, where hard stops are on.
        streak_halt_at: u64 = 5, [1, 1_000], "calls", "Hermes agent/tool_guardrails.py", "L5";
        /// Laps of a cycle of two to four calls: notice from this count.
        cycle_laps_notice: u64 = 3, [2, 1_000], "laps", "Hermes agent/tool_guardrails.py", "-";
        /// Laps of a cycle: halt at this count, where hard stops are on.
        cycle_laps_halt: u64 = 5, [2, 1_000], "laps", "Hermes agent/tool_guardrails.py", "L5";
        /// Shortest repeated result that is replaced by a reference.
        stub_chars_min: u64 = 512, [0, 1_000_000], "characters", "Hermes agent/tool_guardrails.py", "L2";
        /// Web searches of one turn; 0 for no limit.
        web_searches_max: u64 = 50, [0, 100_000], "calls", "Hermes agent/tool_guardrails.py", "L5";
        /// Children spawned in one turn; 0 for no limit.
        spawns_max: u64 = 50, [0, 100_000], "children", "Hermes agent/tool_guardrails.py", "L5";
        /// Attempts to hand an answer to the platform that it goes to.
        delivery_attempts_max: u64 = 3, [1, 100], "attempts", "Hermes gateway/platforms/base.py", "-";
        /// The surface that the agent answers on; unattended ones stop hard.
        platform: String = "cli".to_owned(), "name", "Hermes agent/tool_guardrails.py", "-";
    }
}

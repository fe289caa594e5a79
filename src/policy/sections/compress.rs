//! Context compression.

use super::{choice, knobs};

choice! {
    /// What a window, a threshold and a row are measured in.
    SizeUnit {
        /// Estimated tokens.
        Tokens = "tokens",
        /// Characters of the rows' contents; for small worlds whose figures are meant to be read.
        Characters = "characters",
    }
}

choice! {
    /// When the size of the history is looked at.
    CompactionTime {
        /// Before each request.
        EachRequest = "each_request",
        /// After a turn; for small worlds.
        TurnEnd = "turn_end",
    }
}

choice! {
    /// How long the tail is that a compaction leaves alone.
    TailMode {
        /// A small share of the window.
        Lean = "lean",
        /// A share of the threshold.
        Legacy = "legacy",
    }
}

choice! {
    /// Whose words the summary row seems to be.
    SummaryRole {
        /// Decided by the neighbours, so that a strict chat template accepts the list.
        Auto = "auto",
        /// Always the user's.
        User = "user",
        /// Always the model's.
        Assistant = "assistant",
    }
}

choice! {
    /// What becomes of the session at a compaction.
    CompactionStore {
        /// The session goes on under its id.
        InPlace = "in_place",
        /// The session ends and a child session begins.
        Rotation = "rotation",
    }
}

knobs! {
    /// Context compression.
    Compress, "compress" {
        /// Compaction happens at all.
        enabled: bool = true, "switch", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// What sizes are measured in.
        unit: SizeUnit = SizeUnit::Tokens, "choice", "hermes-lab", "-";
        /// Rows that were summarised away stay in the store.
        keep_archived: bool = true, "switch", "Hermes hermes_state_messages.py:984", "L4";
        /// When it is looked at whether a compaction is due.
        check_at: CompactionTime = CompactionTime::EachRequest, "choice", "Hermes agent/turn_preflight.py:57", "-";
        /// The model's window.
        window: u64 = 200_000, [1, 1_000_000_000_000_i64], "tokens", "hermes-lab", "-";
        /// Share of the input budget at which a compaction is due.
        threshold: f64 = 0.5, [0, 1_000], "ratio", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// Absolute cap of the threshold.
        threshold_tokens: Option<u64> = Some(256_000), [1, 1_000_000_000_000_i64], "tokens", "Hermes hermes_cli/config_defaults.py:593", "L4";
        /// Smallest threshold, as far as the output room allows; 0 for none.
        threshold_floor: u64 = 64_000, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/context_compressor.py:2766", "-";
        /// Windows below this use at least the raised ratio; 0 for none.
        small_window: u64 = 512_000, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/context_compressor.py:2657", "-";
        /// Lowest ratio in a small window.
        small_window_threshold: f64 = 0.75, [0, 1], "ratio", "Hermes agent/context_compressor.py:2657", "-";
        /// Share of the budget that the floor must leave reachable.
        threshold_reachable: f64 = 0.85, [0, 1], "ratio", "Hermes agent/context_compressor.py:2766", "-";
        /// Ratios for single models, each `model part = ratio` or `provider:model part = ratio`.
        model_thresholds: Vec<String> = Vec::new(), "list of texts", "Hermes agent/context_compressor.py:2026", "-";
        /// How long the untouched tail is.
        tail_mode: TailMode = TailMode::Lean, "choice", "Hermes agent/context_compressor.py:2838", "L4";
        /// Share of the threshold that a legacy tail gets.
        target_ratio: f64 = 0.2, [0.1, 0.8], "ratio", "Hermes agent/context_compressor.py:2867", "L4";
        /// Share of the window that a lean tail gets.
        tail_ratio: f64 = 0.025, [0, 1], "ratio", "Hermes agent/context_compressor.py:2237", "L4";
        /// Smallest lean tail.
        tail_min: u64 = 10_000, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/context_compressor.py:2237", "L4";
        /// Largest lean tail.
        tail_max: u64 = 25_000, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/context_compressor.py:2237", "L4";
        /// Largest share of the window that any tail gets.
        tail_share_max: f64 = 0.2, [0, 1], "ratio", "Hermes agent/context_compressor.py:923", "L4";
        /// A tail may exceed its budget by this factor before it is cut.
        tail_stretch: f64 = 1.5, [1, 100], "ratio", "Hermes agent/context_compressor.py:3229", "L4";
        /// A fixed tail budget instead of the computed one.
        tail_budget: Option<u64> = None, [1, 1_000_000_000_000_i64], "tokens", "hermes-lab", "L4";
        /// A tail of so many rows instead of a budget.
        tail_rows: Option<u64> = None, [1, 1_000_000], "rows", "hermes-lab", "L4";
        /// The cut is moved so that a call and its results stay together.
        align_tail: bool = true, "switch", "Hermes agent/context_compressor.py:4703", "L4";
        /// The newest request and the newest visible answer stay in the tail.
        anchor_tail: bool = true, "switch", "Hermes agent/context_compressor.py:4774", "L4";
        /// The open items of the todo list are said again behind a compacted history.
        carry_todos: bool = true, "switch", "Hermes agent/conversation_compression.py:3042", "L4";
        /// A compacted history without any request of the user gets the newest one back.
        anchor_request: bool = true, "switch", "Hermes agent/conversation_compression.py:2415", "L4";
        /// Calls without a result and results without a call are removed after a compaction.
        clean_pairs: bool = true, "switch", "Hermes agent/context_compressor.py:4629", "L4";
        /// Rows after the system row that the first compaction leaves alone.
        protect_first_n: u64 = 3, [0, 1_000_000], "rows", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// A compacted history is mended before it is stored and sent, as the next process would mend it, and refused if what
        /// is sent did not become smaller.
        mend_result: bool = false, "switch", "lab: Hermes mends it when it is loaded", "L1";
        /// After a restart an earlier summary is looked for in the whole history, not only behind the protected head.
        find_any_handoff: bool = false, "switch", "lab: Hermes agent/context_compressor.py:4682 looks at a few rows", "L2";
        /// A summary by rule keeps the lines by which a person asked for something that is to last.
        rule_keeps_wishes: bool = false, "switch", "lab: Hermes agent/context_compressor.py:3608 keeps the newest request", "L4";
        /// The protected head is given up after the first compaction.
        head_decay: bool = true, "switch", "Hermes agent/context_compressor.py:4682", "L4";
        /// Rows at the end that should stay.
        protect_last_n: u64 = 20, [0, 1_000_000], "rows", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// As many of those rows are honoured at most.
        protect_last_cap: u64 = 8, [0, 1_000_000], "rows", "Hermes agent/context_compressor.py:1136", "L4";
        /// Rows at the end that always stay.
        tail_rows_min: u64 = 3, [0, 1_000_000], "rows", "Hermes agent/context_compressor.py:5096", "L4";
        /// Requests of the user that stay in the tail.
        min_tail_user_messages: u64 = 1, [0, 1_000_000], "rows", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// A history needs more than head plus this many rows to be compacted.
        rows_beyond_head: u64 = 4, [0, 1_000_000], "rows", "Hermes agent/context_compressor.py:5585", "-";
        /// Compactions per turn; below 1 counts as 3, above 10 as 10.
        max_attempts: i64 = 3, [-1_000_000, 1_000_000], "attempts", "Hermes agent/agent_init.py:1535", "-";
        /// A pass must cut the size by more than this share to count as progress.
        progress_share: f64 = 0.05, [0, 1], "ratio", "Hermes agent/turn_context.py:358", "-";
        /// A session that rested so long is compacted at its next turn; 0 for never.
        idle_compact_after_seconds: u64 = 0, [0, 1_000_000_000], "seconds", "Hermes agent/turn_context_compaction.py:144", "L1";
        /// Longest wait for the summary model without progress.
        context_timeout_seconds: u64 = 120, [1, 1_000_000], "seconds", "Hermes hermes_cli/config_defaults.py:577", "-";
        /// Longest wait for the summary model in all.
        context_total_ceiling_seconds: u64 = 600, [1, 1_000_000], "seconds", "Hermes hermes_cli/config_defaults.py:577", "-";
        /// Rows above which the gateway compacts in any case.
        hygiene_hard_message_limit: u64 = 5_000, [0, 1_000_000_000], "rows", "Hermes hermes_cli/config_defaults.py:577", "L2";
        /// Whether a compaction keeps the session or starts a child.
        store: CompactionStore = CompactionStore::InPlace, "choice", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// Strikes that stop compaction for a while.
        strikes_max: u64 = 2, [1, 1_000], "strikes", "Hermes agent/context_compressor.py:3042", "-";
        /// How long the breaker stays tripped before one more try.
        recovery_seconds: u64 = 300, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:3086", "-";
        /// Pause after an attempt that found nothing to compress.
        noop_backoff_seconds: u64 = 300, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:2503", "-";
        /// Price of one image.
        image_price: u64 = 1_500, [0, 1_000_000], "tokens", "Hermes agent/image_token_cost.py:23", "-";
        /// Price of a row beyond its text.
        row_price: u64 = 10, [0, 1_000], "tokens", "Hermes agent/context_compressor.py:1293", "-";
        /// Old tool output is shortened before a compaction summarises.
        prune: bool = true, "switch", "Hermes agent/context_compressor.py:3300", "L4";
        /// Shortest tool result of which only the newest copy is kept.
        duplicate_min_chars: u64 = 200, [0, 1_000_000_000], "characters", "Hermes agent/context_compressor.py:3181", "L4";
        /// Shortest tool result that a compaction replaces by one line, exclusive.
        prune_min_chars: u64 = 200, [0, 1_000_000_000], "characters", "Hermes agent/context_compressor.py:3300", "L4";
        /// Share of the input budget that unread tool output may take and still be spared.
        pending_share: f64 = 0.2, [0, 1], "ratio", "Hermes agent/context_compressor.py:1338", "L4";
        /// Newest tool results that keep their images.
        keep_image_results: u64 = 3, [0, 1_000_000], "rows", "Hermes agent/context_compressor.py:1462", "-";
        /// A skill loaded within so many rows from the end is spared.
        skill_guard_rows: u64 = 10, [0, 1_000_000], "rows", "Hermes agent/context_compressor.py:1104", "-";
        /// Size at which old tool output is shortened between compactions; 0 for never.
        proactive_prune_tokens: u64 = 0, [0, 1_000_000_000_000_i64], "tokens", "Hermes agent/context_compressor.py:3410", "L1";
        /// Shortest result that this touches; never below the general minimum.
        proactive_prune_min_result_chars: u64 = 8_000, [0, 1_000_000_000], "characters", "Hermes agent/context_compressor.py:2857", "L1";
        /// It must save at least so much.
        proactive_prune_min_reclaim_tokens: u64 = 4_096, [0, 1_000_000_000], "tokens", "Hermes hermes_cli/config_defaults.py:577", "L1";
        /// Exchanges are absorbed one by one into a running summary.
        micro_compact: bool = false, "switch", "Hermes agent/micro_compaction.py:3", "L1";
        /// Turns between two such steps.
        micro_compact_every_n_turns: u64 = 1, [1, 1_000_000], "turns", "Hermes hermes_cli/config_defaults.py:577", "L1";
        /// Size of the running summary at which it is rewritten.
        micro_compact_defrag_threshold_tokens: u64 = 2_000, [0, 1_000_000_000], "tokens", "Hermes hermes_cli/config_defaults.py:577", "-";
        /// Output limit of one such step.
        micro_compact_max_output_tokens: u64 = 1_500, [1, 1_000_000], "tokens", "Hermes agent/micro_compaction.py", "-";
        /// Failures on one exchange after which it is skipped.
        micro_compact_failures_max: u64 = 3, [1, 1_000_000], "failures", "Hermes agent/micro_compaction.py", "-";
        /// A failed summary leaves the history alone instead of using the deterministic one.
        abort_on_summary_failure: bool = false, "switch", "Hermes hermes_cli/config_defaults.py:577", "L4";
        /// Whose words the summary row seems to be.
        summary_role: SummaryRole = SummaryRole::Auto, "choice", "Hermes agent/context_compressor.py:5443", "L4";
        /// The summary leads as a user turn when nothing human survives or nothing stands before it.
        summary_leads_as_user: bool = true, "switch", "Hermes agent/context_compressor.py:5443", "L4";
        /// Share of the window's size that the summary is told to take.
        summary_ratio: f64 = 0.2, [0, 1], "ratio", "Hermes agent/context_compressor.py:3491", "-";
        /// Smallest size that the summary is told to take.
        summary_min: u64 = 2_000, [0, 1_000_000_000], "tokens", "Hermes agent/context_compressor.py:3491", "-";
        /// Largest share of the model's window for a summary.
        summary_window_share: f64 = 0.05, [0, 1], "ratio", "Hermes agent/context_compressor.py:3491", "L2";
        /// Largest summary.
        summary_max: u64 = 10_000, [0, 1_000_000_000], "tokens", "Hermes agent/context_compressor.py:3491", "L2";
        /// Room added in lean mode for the detailed log.
        summary_lean_extra: u64 = 4_000, [0, 1_000_000_000], "tokens", "Hermes agent/context_compressor.py:3491", "-";
        /// Longest text that the summary model is shown.
        summary_input_chars: u64 = 160_000, [1, 1_000_000_000], "characters", "Hermes agent/context_compressor.py:3767", "L2";
        /// Newest tool rounds that a lean tail keeps whole.
        lean_rounds: u64 = 6, [0, 1_000_000], "rounds", "Hermes agent/context_compressor.py:3676", "L4";
        /// Shortest older result in a lean tail that becomes a stub.
        lean_stub_chars: u64 = 1_500, [0, 1_000_000_000], "characters", "Hermes agent/context_compressor.py:3676", "L4";
        /// Summaries by rule in a row after which the summary model is benched.
        fallback_streak_max: u64 = 2, [1, 1_000_000], "summaries", "Hermes agent/context_compressor_prellm.py", "-";
        /// Time between two tries of a benched summary model.
        probe_seconds: u64 = 300, [0, 1_000_000], "seconds", "Hermes agent/context_compressor_prellm.py", "-";
        /// With a strike, a window smaller than this share of the threshold is summarised by rule.
        prellm_window_share: f64 = 0.1, [0, 1], "ratio", "Hermes agent/context_compressor_prellm.py", "-";
        /// Pauses after the first, second, third timeout in a row.
        timeout_cooldowns: Vec<u64> = vec![60, 300, 900], [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:712", "-";
        /// Pause after a failure that tends to pass: connection, unreadable body, empty reply.
        short_cooldown_seconds: u64 = 30, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:712", "-";
        /// Pause after any other failure.
        cooldown_seconds: u64 = 60, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:712", "-";
        /// Pause when there is no provider at all.
        no_provider_cooldown_seconds: u64 = 600, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:712", "-";
        /// Shortest pause after the host itself stalled.
        stall_cooldown_seconds: u64 = 120, [0, 1_000_000], "seconds", "Hermes agent/context_compressor.py:2618", "-";
        /// Overloads in a row from which the history is no longer left alone.
        overload_streak_max: u64 = 3, [1, 1_000_000], "failures", "Hermes agent/context_compressor.py:805", "-";
        /// Pause after a compaction that could not be stored.
        store_failure_cooldown_seconds: u64 = 60, [0, 1_000_000], "seconds", "Hermes agent/conversation_compression.py:70", "-";
        /// A compaction that would make the transcript larger is shrunk or refused.
        growth_guard: bool = true, "switch", "Hermes agent/conversation_compression.py:3174", "L4";
    }
}

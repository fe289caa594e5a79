//! Scheduled runs.

use super::{choice, knobs};

choice! {
    /// How a run's text says that there is nothing to deliver.
    SilenceRule {
        /// A marker as the whole text, its first or its last line.
        Lines = "lines",
        /// The bracketed marker anywhere.
        Contains = "contains",
    }
}

knobs! {
    /// Scheduled runs: schedules, scan, claims, retries, what a scheduled agent may do.
    Cron, "cron" {
        /// Zone in whose wall clock cron expressions are read.
        timezone: String = "UTC".to_owned(), "zone name", "Hermes cron/jobs.py:1178", "-";
        /// Seconds between two scans.
        tick_seconds: u64 = 60, [1, 86_400], "seconds", "Hermes cron/jobs.py:99", "L5";
        /// Recurring jobs are moved to their next run before they run, so that a crash loses a run instead of repeating it.
        advance_before_run: bool = true, "switch", "Hermes cron/scheduler_tick.py", "L5";
        /// A missed slot runs once, late; off skips it.
        catch_up_missed: bool = true, "switch", "Hermes cron/jobs.py:2877", "L5";
        /// Seconds after which a one-shot is too late to run.
        one_shot_grace_seconds: u64 = 120, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:1178", "L5";
        /// Shortest catch-up grace of a recurring job.
        grace_seconds_min: u64 = 120, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:937", "L5";
        /// Longest catch-up grace of a recurring job.
        grace_seconds_max: u64 = 7_200, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:937", "L5";
        /// Seconds after which a dispatch within grace is called late.
        late_seconds: u64 = 300, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:937", "-";
        /// Seconds for which a fire claim holds without a heartbeat.
        fire_claim_seconds: u64 = 300, [1, 31_536_000], "seconds", "Hermes cron/jobs.py:2736", "L5";
        /// Seconds before its slot from which on a claim is not a run of that slot.
        early_claim_seconds: u64 = 60, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:2736", "L5";
        /// Seconds after which another owner's unclaimed slot is put back.
        pending_slot_seconds: u64 = 300, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:2877", "L5";
        /// Seconds without activity after which a run counts as dead, so that its claim lapses.
        idle_seconds: u64 = 600, [1, 31_536_000], "seconds", "Hermes cron/scheduler.py:2470", "L5";
        /// A one-shot's run claim holds for this many idle limits.
        run_claim_idle_limits: u64 = 3, [1, 1_000], "idle limits", "Hermes cron/jobs.py:2585", "L5";
        /// Least seconds for which a one-shot's run claim holds.
        run_claim_seconds_min: u64 = 1_800, [1, 31_536_000], "seconds", "Hermes cron/jobs.py:2585", "L5";
        /// A recurring job whose model could not be reached is tried again.
        retry_unreachable: bool = true, "switch", "Hermes cron/jobs.py:2362", "-";
        /// Waits before these tries.
        retry_delays_seconds: Vec<u64> = vec![300, 900, 1_800], [1, 31_536_000], "seconds", "Hermes cron/jobs.py:2362", "-";
        /// Added to the wait that a provider names.
        quota_margin_seconds: u64 = 60, [0, 31_536_000], "seconds", "Hermes cron/jobs.py:2362", "-";
        /// Days after which a completed one-shot is dropped; 0 keeps all.
        completed_retention_days: u64 = 7, [0, 100_000], "days", "Hermes cron/jobs.py:2877", "L2";
        /// Outputs of a job that are kept.
        outputs_kept: u64 = 50, [1, 1_000_000], "files", "Hermes cron/jobs.py", "L2";
        /// Characters of a name that was made from the prompt.
        name_chars_max: u64 = 50, [1, 10_000], "characters", "Hermes cron/jobs.py:1813", "-";
        /// A scheduled agent gets the tool that schedules.
        allow_agent_scheduling: bool = false, "switch", "Hermes cron/scheduler.py:2470", "L5";
        /// Scheduled runs are not followed by a background review.
        skip_background_review: bool = true, "switch", "Hermes cron/scheduler.py:2470", "L5";
        /// Commands that stop the agent's own gateway are refused in prompts and scripts.
        lifecycle_guard: bool = true, "switch", "Hermes cron/jobs.py:1813", "L5";
        /// An interval of 0 minutes is refused; the real agent accepts it and is due at once for ever.
        refuse_zero_interval: bool = false, "switch", "lab: Hermes cron/jobs.py:787 accepts it", "L5";
        /// A failed job is re-armed only when no scheduler has just handed it out, and the run is known by the instant it
        /// was re-armed to; the real agent looks at neither.
        rearm_unclaimed_only: bool = false, "switch", "lab: Hermes cron/jobs.py:2877 re-arms what another scheduler moved on", "L5";
        /// How a text says that there is nothing to deliver; the current revision reads lines.
        silence: SilenceRule = SilenceRule::Contains, "choice", "Hermes gateway/response_filters.py:70", "-";
    }
}

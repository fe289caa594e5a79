//! Ageing and archiving of skills.

use super::knobs;

knobs! {
    /// The curator: ages skills, archives what is not used, deletes nothing.
    Curator, "curator" {
        /// The curator runs at all.
        enabled: bool = true, "switch", "Hermes agent/curator.py:99-143", "L2";
        /// The curator is polled whenever a session is opened and at each tick; off, it runs when a scenario says so.
        at_start: bool = false, "switch", "Hermes agent/curator.py:160-180", "L2";
        /// Time between two runs.
        interval_hours: u64 = 168, [1, 100_000], "hours", "Hermes agent/curator.py:99-143", "L2";
        /// Idle time that a run waits for, where one is measured.
        min_idle_hours: f64 = 2.0, [0, 100_000], "hours", "Hermes agent/curator.py:99-143", "L3";
        /// Age of the last activity from which a skill is stale; also how long a skill that was never used is left
        /// alone.
        stale_after_days: u64 = 14, [1, 100_000], "days", "Hermes agent/curator.py:99-143", "L2";
        /// Age of the last activity from which a skill is archived.
        archive_after_days: u64 = 30, [1, 100_000], "days", "Hermes agent/curator.py:99-143", "L2";
        /// A model merges narrow skills after the transitions.
        consolidate: bool = false, "switch", "Hermes agent/curator.py:915-1002", "L5";
        /// Bundled skills are aged like the agent's own.
        prune_builtins: bool = false, "switch", "Hermes tools/skill_usage.py:278", "L5";
        /// Age from which a purge deletes what is archived; 0 means that a purge needs an explicit age.
        archive_ttl_days: i64 = 0, [-1, 100_000], "days", "Hermes hermes_cli/curator.py:419-480", "L5";
        /// The tree is copied before a consolidation.
        backup_enabled: bool = true, "switch", "Hermes agent/curator_backup.py", "L5";
        /// Copies that are kept.
        backup_keep: u64 = 2, [1, 10_000], "copies", "Hermes agent/curator_backup.py", "L2";
        /// Age from which a claim on a run counts as abandoned.
        claim_seconds: u64 = 3_600, [0, 1_000_000], "seconds", "Hermes agent/curator.py:160-180", "L3";
        /// Only skills that the agent made are candidates; off, every local skill is.
        respect_provenance: bool = true, "switch", "Hermes tools/skill_usage.py:695", "L5";
        /// A skill that was never used is left alone while it is younger than the stale age.
        grace_for_unused: bool = true, "switch", "Hermes agent/curator.py:209-259", "L5";
        /// Scheduled jobs that name a merged skill name its heir afterwards.
        jobs_follow: bool = true, "switch", "Hermes cron/jobs.py:3453", "L5";
        /// Iterations of the consolidating agent.
        consolidation_iterations_max: u64 = 9_999, [1, 1_000_000], "iterations", "Hermes agent/curator.py:1085-1157", "L5";
    }
}

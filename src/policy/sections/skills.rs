//! Skills and who wrote them.

use super::{choice, knobs};

choice! {
    /// Which skills a background review may change.
    ReviewPolicy {
        /// Only those that the agent made by itself.
        ManagedOnly = "managed_only",
        /// The content of any; only deletes are guarded.
        ContentOpen = "content_open",
    }
}

knobs! {
    /// Skills: directories with a SKILL.md, who wrote them, and who may change them.
    Skills, "skills" {
        /// Longest name of a skill or category.
        name_chars_max: u64 = 64, [1, 1_000], "characters", "Hermes tools/skill_manager_tool.py:108", "L2";
        /// Longest description.
        description_chars_max: u64 = 1_024, [1, 1_000_000], "characters", "Hermes tools/skill_manager_tool.py:146-179", "L2";
        /// Longest description of a new skill, and of a catalogue line.
        catalogue_chars_max: u64 = 60, [4, 1_000_000], "characters", "Hermes agent/skill_utils.py:822-839", "L2";
        /// Longest text that is written.
        content_chars_max: u64 = 100_000, [1, 100_000_000], "characters", "Hermes tools/skill_manager_tool.py:108-111", "L2";
        /// Largest support file.
        file_bytes_max: u64 = 1_048_576, [1, 1_000_000_000], "bytes", "Hermes tools/skill_manager_tool.py:108-111", "L2";
        /// Most operations of one batch.
        batch_operations_max: u64 = 20, [1, 10_000], "operations", "Hermes tools/skill_manager_batch.py:219-330", "-";
        /// Which skills a background review may change.
        review_policy: ReviewPolicy = ReviewPolicy::ManagedOnly, "policy", "Hermes tools/skill_manager_guards.py:164-208", "L5";
        /// A skill without a usage record counts as made by the agent.
        missing_record_managed: bool = false, "switch", "Hermes tools/skill_usage.py:348", "L5";
        /// A review must have loaded an existing file before it changes it.
        read_before_write: bool = true, "switch", "Hermes tools/skill_manager_guards.py:211-221", "L3";
        /// A review's delete needs a skill that takes the content over.
        review_delete_absorbs: bool = true, "switch", "Hermes tools/skill_manager_tool.py:562", "L5";
        /// A review's delete archives instead of deleting.
        review_delete_archives: bool = true, "switch", "Hermes tools/skill_manager_tool.py:562", "L5";
        /// Writes wait for the user's approval.
        approval: bool = false, "switch", "Hermes tools/skill_manager_tool.py:768-817", "L3";
        /// Texts written to skills are scanned.
        guard_agent_created: bool = false, "switch", "Hermes tools/skill_manager_tool.py:562", "L3";
        /// Uses in a row that ended with a failing command after which loading the skill says so; 0 is never. The note stands in the tool result, so no prompt changes.
        outcome_note_from: u64 = 0, [0, 1_000], "uses", "hermes-lab", "L3";
        /// A new description longer than a catalogue line is refused.
        checks_catalogue_budget: bool = true, "switch", "Hermes tools/skill_manager_tool.py:146-179", "L2";
        /// A name may end in one line break.
        trailing_newline_in_names: bool = true, "switch", "Hermes tools/skill_manager_tool.py:108-130", "-";
        /// Skills that are never deleted.
        essential: Vec<String> = vec!["hermes-agent".to_owned()], "names", "Hermes tools/skill_manager_tool.py:562", "L5";
        /// Skills that automation never archives.
        protected: Vec<String> = vec!["plan".to_owned()], "names", "Hermes tools/skill_usage.py:278", "L5";
        /// Size of the audit log, copies included, above which the oldest rows go.
        ledger_bytes_max: u64 = 5_242_880, [0, 1_000_000_000], "bytes", "Hermes tools/skill_ledger.py", "L5";
        /// Age below which a row of the audit log is kept whatever its size.
        ledger_young_seconds: u64 = 3_600, [0, 100_000_000], "seconds", "Hermes tools/skill_ledger.py", "L5";
        /// Body length above which the lint speaks.
        lint_body_chars: u64 = 24_000, [1, 100_000_000], "characters", "Hermes tools/skill_linter.py", "L2";
        /// Number of reference files above which the lint speaks.
        lint_references_max: u64 = 60, [1, 100_000], "files", "Hermes tools/skill_linter.py", "L2";
    }
}

//! The system prompt.

use super::{choice, knobs};

choice! {
    /// How finely the date line tells the time.
    PromptClock {
        /// The day alone.
        Day = "day",
        /// Day and time to the second; every rebuild then makes other bytes.
        Second = "second",
    }
}

choice! {
    /// A tier of the system prompt.
    PromptTier {
        /// The first tier, which is the static prefix.
        Stable = "stable",
        /// The last tier.
        Volatile = "volatile",
    }
}

choice! {
    /// Which day the date line tells.
    PromptDay {
        /// The day on which the conversation began.
        Start = "start",
        /// The day on which the prompt was built.
        Build = "build",
    }
}

knobs! {
    /// The system prompt.
    Prompt, "prompt" {
        /// How finely the date line tells the time.
        clock: PromptClock = PromptClock::Day, "choice", "Hermes agent/system_prompt.py:474", "L1";
        /// Which day the date line tells.
        day: PromptDay = PromptDay::Start, "choice", "Hermes agent/system_prompt.py:474", "L1";
        /// The date line names the zone.
        date_zone: bool = false, "switch", "Hermes agent/system_prompt.py:474", "L1";
        /// On later days a second line gives the present day.
        date_as_of: bool = false, "switch", "Hermes agent/system_prompt.py:474", "L1";
        /// The trailer names the platform.
        date_platform: bool = true, "switch", "Hermes agent/system_prompt.py:474", "L1";
        /// The trailer names the session.
        pass_session_id: bool = false, "switch", "Hermes agent/system_prompt.py:474", "L1";
        /// Tier of the skills catalogue.
        catalogue_place: PromptTier = PromptTier::Volatile, "choice", "Hermes agent/system_prompt.py:730", "L1";
        /// Tier of the line that names the active profile.
        profile_place: PromptTier = PromptTier::Stable, "choice", "Hermes agent/system_prompt.py:730", "L1";
        /// Tier of the block that names host, home and working directory.
        environment_place: PromptTier = PromptTier::Volatile, "choice", "Hermes agent/system_prompt.py:730", "L1";
        /// The stored prompt is sent again byte for byte while it matches the runtime.
        reuse_stored: bool = true, "switch", "Hermes agent/conversation_loop.py:779", "L1";
        /// Memory is read again when a compaction rebuilds the prompt.
        reread_memory_on_compaction: bool = true, "switch", "Hermes agent/system_prompt.py:808", "L1";
        /// Changes of the skills are told in a note on the user message.
        index_notes: bool = false, "switch", "Hermes agent/skills_index_delta.py:100", "L1";
        /// Longest description of a skill in the catalogue.
        description_chars_max: u64 = 60, [0, 1_000_000], "characters", "Hermes agent/skill_utils.py:822", "L2";
        /// The model that answers.
        model: String = "claude-sonnet-4-6".to_owned(), "name", "hermes-lab", "-";
        /// Its provider.
        provider: String = "anthropic".to_owned(), "name", "hermes-lab", "-";
        /// Where requests go; decides with the provider whether and how markers are taken.
        base_url: String = "https://api.anthropic.com".to_owned(), "address", "hermes-lab", "-";
        /// Wire of the requests.
        api_mode: String = "anthropic_messages".to_owned(), "name", "hermes-lab", "-";
        /// A change of skills reaches the running session's catalogue at once.
        hot_skills: bool = false, "switch", "Hermes agent/skills_index_delta.py:100", "L1";
        /// The tool table keeps its order whatever order a tool server lists its tools in.
        sort_tools: bool = true, "switch", "Hermes tools/registry.py", "L1";
        /// A kept catalogue is used only while the files of the skills are as they were; off, a new session gets what the process built first.
        catalogue_checked: bool = true, "switch", "Hermes agent/prompt_builder.py:1200", "-";
        /// Catalogues that are kept in memory.
        catalogue_cache_max: u64 = 32, [0, 1_000_000], "entries", "Hermes agent/prompt_builder.py:1200", "-";
        /// Operating system that skills are offered for.
        operating_system: String = "linux".to_owned(), "text", "hermes-lab", "-";
        /// Longest context file, instead of the share of the window.
        context_file_chars: Option<u64> = None, [1, 1_000_000_000], "characters", "Hermes agent/prompt_builder.py:1166", "L2";
        /// Longest context file in a small or unknown window.
        context_file_chars_min: u64 = 20_000, [1, 1_000_000_000], "characters", "Hermes agent/prompt_builder.py:1166", "L2";
        /// Longest context file in any window.
        context_file_chars_max: u64 = 500_000, [1, 1_000_000_000], "characters", "Hermes agent/prompt_builder.py:1166", "L2";
        /// Share of the window, at four characters a token, that one context file may take.
        context_file_share: f64 = 0.06, [0, 1], "ratio", "Hermes agent/prompt_builder.py:1166", "L2";
        /// Share of a cut text that is kept from its front.
        truncate_head: f64 = 0.7, [0, 1], "ratio", "Hermes agent/prompt_builder.py:1598", "-";
        /// Share of a cut text that is kept from its end.
        truncate_tail: f64 = 0.2, [0, 1], "ratio", "Hermes agent/prompt_builder.py:1598", "-";
        /// Lost headings that a cut text names.
        truncate_headings_max: u64 = 15, [0, 1_000_000], "headings", "Hermes agent/prompt_builder.py:1598", "-";
        /// Hint files of sub-directories are appended to tool results.
        subdir_hints: bool = true, "switch", "Hermes agent/subdirectory_hints.py", "L1";
        /// Longest hint.
        hint_chars_max: u64 = 32_000, [0, 1_000_000_000], "characters", "Hermes agent/subdirectory_hints.py", "L2";
        /// A hint that is too long keeps its end, too.
        hint_keeps_tail: bool = true, "switch", "Hermes agent/subdirectory_hints.py", "-";
        /// A text that was given once is not given again.
        hint_digests: bool = true, "switch", "Hermes agent/subdirectory_hints.py", "L2";
        /// Directories that a touched path is followed upwards.
        hint_levels: u64 = 5, [0, 1_000], "directories", "Hermes agent/subdirectory_hints.py", "-";
    }
}

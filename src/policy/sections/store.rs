//! Session store.

use super::{choice, knobs};

choice! {
    /// A full-text index of the session store.
    Index {
        /// Words, case and Latin marks folded.
        Unicode61 = "unicode61",
        /// Any three characters in a row; finds substrings.
        Trigram = "trigram",
        /// Words, with runs of Chinese, Japanese and Korean cut into pairs.
        CjkBigram = "cjk_bigram",
    }
}

choice! {
    /// When rows enter the full-text indexes.
    IndexWhen {
        /// With every append in a file, as the real store does; at the first search in memory, where nobody else reads.
        Auto = "auto",
        /// With every append, by triggers.
        Append = "append",
        /// When somebody searches. The answers are the same; appends are cheaper.
        Search = "search",
    }
}

knobs! {
    /// Session store.
    Store, "store" {
        /// Full-text indexes that are kept.
        indexes: Vec<Index> = vec![Index::Unicode61, Index::Trigram, Index::CjkBigram],
            "indexes", "Hermes hermes_state_common.py:316, :880, hermes_state_fts.py:40", "L4";
        /// When rows enter the indexes.
        index_when: IndexWhen = IndexWhen::Auto, "moment", "Hermes hermes_state_common.py:777", "L4";
        /// How much of a tool result the word index holds.
        index_tool_chars: u64 = 8_192, [0, 100_000_000],
            "characters", "Hermes hermes_state_common.py:316", "L4";
        /// Version of the schema that a new file is stamped with.
        schema_version: u64 = 30, [1, 1_000], "version", "Hermes hermes_state_common.py:283", "-";
        /// Page size of a store in memory; small pages are copied faster when a store is opened.
        page_bytes: u64 = 1_024, [512, 65_536], "bytes", "lab", "-";
        /// Write-ahead log of a file: many readers beside one writer.
        wal: bool = true, "switch", "Hermes hermes_state_wal.py:254", "-";
        /// Use the log only with SQLite builds that lack the checkpoint fault.
        wal_needs_sound_build: bool = false, "switch", "Hermes hermes_state_wal.py:131", "-";
        /// Largest write-ahead log that is kept after a checkpoint.
        wal_bytes_max: u64 = 67_108_864, [0, 1e12], "bytes", "Hermes hermes_state_wal.py:254", "-";
        /// How long SQLite itself waits for a lock before the retry schedule takes over.
        busy_timeout_ms: u64 = 1_000, [0, 3_600_000], "milliseconds", "Hermes hermes_state.py:994", "-";
        /// First try to deadline of an ordinary write.
        write_patience_ms: u64 = 20_000, [0, 3_600_000], "milliseconds", "Hermes hermes_state.py:483", "-";
        /// First try to deadline of a transcript write.
        transcript_patience_ms: u64 = 60_000, [0, 3_600_000],
            "milliseconds", "Hermes hermes_state.py:483", "-";
        /// First try to deadline of an activity stamp.
        stamp_patience_ms: u64 = 500, [0, 3_600_000], "milliseconds", "Hermes hermes_state.py:483", "-";
        /// How long after the first try sleeps stay short.
        retry_early_ms: u64 = 2_000, [0, 3_600_000], "milliseconds", "Hermes hermes_state.py:496", "-";
        /// Shortest early sleep.
        retry_early_low_ms: u64 = 20, [1, 3_600_000], "milliseconds", "Hermes hermes_state.py:496", "-";
        /// Longest early sleep.
        retry_early_high_ms: u64 = 150, [1, 3_600_000], "milliseconds", "Hermes hermes_state.py:496", "-";
        /// Shortest late sleep.
        retry_late_low_ms: u64 = 250, [1, 3_600_000], "milliseconds", "Hermes hermes_state.py:497", "-";
        /// Longest late sleep.
        retry_late_high_ms: u64 = 1_000, [1, 3_600_000], "milliseconds", "Hermes hermes_state.py:498", "-";
        /// Successful writes from one passive checkpoint to the next; 0 for none.
        checkpoint_writes: u64 = 50, [0, 1_000_000_000], "writes", "Hermes hermes_state.py:500", "-";
        /// Successful writes from one merge of the full-text indexes to the next; 0 for none.
        merge_writes: u64 = 1_000, [0, 1_000_000_000], "writes", "Hermes hermes_state.py:501", "-";
        /// Pages that one merge command may write.
        merge_pages: u64 = 500, [1, 1_000_000], "pages", "Hermes hermes_state.py:502", "-";
        /// Merge commands per index and merge.
        merge_commands: u64 = 4, [1, 1_000], "commands", "Hermes hermes_state.py:503", "-";
        /// Latest message time that is believed; one outside becomes now.
        timestamp_max_s: u64 = 4_200_000_000, [0, 1e11],
            "seconds", "Hermes hermes_cli/timefmt.py:19", "-";
        /// Sessions that a forward walk along compactions visits at most.
        chain_max: u64 = 1_000, [1, 1_000_000], "sessions", "Hermes hermes_state_compression.py:766", "L4";
        /// Sessions that a walk to the conversation root visits at most.
        root_walk_max: u64 = 100, [1, 1_000_000], "sessions", "Hermes hermes_state_sessions.py:1562", "L4";
        /// Children that the search for a resume target follows at most.
        resume_walk_max: u64 = 32, [1, 1_000_000], "sessions", "Hermes hermes_state_messages.py:1471", "L4";
        /// Most rows that a resume may load; 0 for no limit.
        resume_rows_max: u64 = 20_000, [0, 1_000_000_000], "rows", "Hermes hermes_state_messages.py:1655", "L2";
        /// How long a compression lock is held without a refresh.
        lock_ttl_s: u64 = 300, [1, 1_000_000], "seconds", "Hermes hermes_state_compression.py:533", "L4";
        /// How long a turn lease is held without a refresh.
        turn_ttl_s: u64 = 300, [1, 1_000_000], "seconds", "Hermes hermes_state_compression.py:601", "L4";
        /// Age past its end at which a turn lease is swept.
        turn_sweep_s: u64 = 86_400, [0, 100_000_000], "seconds", "Hermes hermes_state_compression.py:601", "-";
        /// Longest title.
        title_chars_max: u64 = 100, [1, 1_000_000], "characters", "Hermes hermes_state_titles.py", "-";
    }
}

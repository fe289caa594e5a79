//! Bounded memory.

use super::knobs;

knobs! {
    /// Bounded memory: two files of short entries that ride in every system prompt.
    Memory, "memory" {
        /// Longest joined text of MEMORY.md, delimiters included.
        chars_max: u64 = 2_200, [0, 100_000_000], "characters", "Hermes tools/memory_tool_store.py:186", "L2";
        /// Longest joined text of USER.md, delimiters included.
        user_chars_max: u64 = 1_375, [0, 100_000_000], "characters", "Hermes tools/memory_tool_store.py:186", "L2";
    }
}

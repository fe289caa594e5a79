//! Bounded memory.

use super::{choice, knobs};

choice! {
    /// Which edit the memory tool offers the model.
    MemoryEdit {
        /// `replace`: a whole entry is written anew.
        Replace = "replace",
        /// `patch`: one span inside an entry is written anew.
        Patch = "patch",
    }
}

knobs! {
    /// Bounded memory: two files of short entries that ride in every system prompt.
    Memory, "memory" {
        /// Longest joined text of MEMORY.md, delimiters included.
        chars_max: u64 = 2_200, [0, 100_000_000], "characters", "Hermes tools/memory_tool_store.py:186", "L2";
        /// Longest joined text of USER.md, delimiters included.
        user_chars_max: u64 = 1_375, [0, 100_000_000], "characters", "Hermes tools/memory_tool_store.py:186", "L2";
        /// The limits are enforced; off, both stores grow without bound.
        cap_enforced: bool = true, "switch", "Hermes tools/memory_tool_store.py:369", "L2";
        /// The prompt shows the live store instead of the copy frozen at the last load.
        live_prompt: bool = false, "switch", "Hermes tools/memory_tool_store.py:618", "L1";
        /// MEMORY.md is kept and shown.
        memory_enabled: bool = true, "switch", "Hermes tools/memory_tool_store.py:186", "-";
        /// USER.md is kept and shown.
        user_enabled: bool = true, "switch", "Hermes tools/memory_tool_store.py:186", "-";
        /// Failed writes of one turn that get a full answer; later ones are told to stop.
        failures_per_turn_max: u64 = 3, [0, 1_000], "failures", "Hermes tools/memory_tool_store.py:184", "L2";
        /// Writes wait for the user's approval.
        approval: bool = false, "switch", "Hermes tools/memory_tool.py:353-370", "L3";
        /// An unattended review's destructive writes are staged, never applied.
        review_stages: bool = true, "switch", "Hermes tools/memory_tool.py:179-219", "L3";
        /// A staged destructive write names the entry that it was made for and fails when that is gone.
        pinned_approval: bool = false, "switch", "Hermes tools/memory_tool.py:64-104", "L3";
        /// An entry that would read back as several, or swallow part of its neighbour, is refused.
        refuse_delimiter: bool = false, "switch", "lab: the real agent accepts it and reads back another entry", "L2";
        /// Edit that the tool offers.
        edit: MemoryEdit = MemoryEdit::Replace, "tool action", "Hermes tools/memory_tool.py:168", "-";
        /// An old text that equals a whole entry selects it before entries that contain it.
        equality_first: bool = true, "switch", "Hermes tools/memory_tool_store.py:447", "-";
        /// An old text that is found nowhere is looked for once more with quotes, dashes and blanks folded.
        tolerant_match: bool = false, "switch", "Hermes tools/memory_tool_store.py:86-107", "-";
        /// A file that our own writer would have laid out differently is taken for foreign and refused.
        drift_by_layout: bool = true, "switch", "Hermes tools/memory_tool_store.py:685-700", "-";
        /// A batch may leave a store empty.
        batch_may_empty: bool = false, "switch", "Hermes tools/memory_tool_store.py:539-616", "-";
        /// A refused batch lists the live entries.
        batch_lists_entries: bool = false, "switch", "Hermes tools/memory_tool_store.py:539-616", "-";
        /// A success reports the text that it took away.
        reports_removed: bool = true, "switch", "Hermes tools/memory_tool_store.py:392-441", "-";
        /// A byte order mark at the start of a file is dropped.
        drops_byte_order_mark: bool = true, "switch", "Hermes tools/memory_tool_store.py:646-673", "-";
        /// `new_text` stands in for an empty `content`.
        new_text_alias: bool = true, "switch", "Hermes tools/memory_tool.py:168", "-";
        /// A call without a target means MEMORY.md.
        default_target: bool = false, "switch", "Hermes tools/memory_tool.py:168", "-";
    }
}

//! Session search.

use super::knobs;

knobs! {
    /// Session search.
    Search, "search" {
        /// Longest part of a query that is looked at.
        query_chars_max: u64 = 2_048, [1, 1e9], "characters", "Hermes hermes_state_common.py:329", "-";
        /// Rows that the store answers when nobody asks for a number.
        rows: u64 = 20, [1, 1e9], "rows", "Hermes hermes_state_search.py:1086", "-";
        /// Tokens of a snippet from an index.
        snippet_tokens: u64 = 40, [1, 64], "tokens", "Hermes hermes_state_search.py:938", "-";
        /// Length of a snippet from a scan.
        snippet_chars: u64 = 120, [1, 1e9], "characters", "Hermes hermes_state_search.py:48", "-";
        /// How far before the hit a snippet from a scan begins.
        snippet_lead_chars: u64 = 40, [0, 1e9], "characters", "Hermes hermes_state_search.py:48", "-";
        /// How much of each row around a hit is shown.
        context_chars: u64 = 200, [0, 1e9], "characters", "Hermes hermes_state_search.py:1032", "-";
        /// A query that the word index cannot read is answered by a scan instead of by nothing.
        scan_refused: bool = false, "switch", "Hermes hermes_state_search.py:1192", "L4";
        /// Conversations that the tool answers by default.
        limit: u64 = 3, [1, 1e6], "conversations", "Hermes tools/session_search_tool.py:577", "L4";
        /// Most conversations that a caller may ask for.
        limit_max: u64 = 10, [1, 1e6], "conversations", "Hermes tools/session_search_tool.py:577", "L4";
        /// Rows on each side of an anchor by default.
        window: u64 = 5, [0, 1e6], "rows", "Hermes tools/session_search_tool.py:577", "L4";
        /// Most rows on each side that a caller may ask for.
        window_max: u64 = 20, [1, 1e6], "rows", "Hermes tools/session_search_tool.py:577", "L4";
        /// Rows shown from each end of a conversation.
        ends: u64 = 3, [0, 1e6], "rows", "Hermes tools/session_search_tool.py:354", "L4";
        /// Rows that one search may rank before conversations are told apart.
        scan_rows: u64 = 300, [1, 1e9], "rows", "Hermes tools/session_search_tool.py:43", "L4";
        /// Sources whose sessions the tool never shows.
        hidden_sources: Vec<String> = ["kanban", "subagent", "tool"].map(str::to_owned).to_vec(),
            "sources", "Hermes tools/session_search_tool.py:23", "L4";
        /// Sources whose rows come after all others.
        demoted_sources: Vec<String> = vec!["cron".to_owned()],
            "sources", "Hermes tools/session_search_tool.py:32", "L4";
        /// Stored rows are shown as they are, not retold.
        verbatim: bool = true, "switch", "Hermes tools/session_search_tool.py:8", "L4";
        /// One place per conversation: rows of one tree of sessions are one result.
        one_per_conversation: bool = true, "switch", "Hermes tools/session_search_tool.py:354", "L4";
        /// Most sessions that a caller may exclude.
        exclude_max: u64 = 20, [0, 1e6], "sessions", "Hermes tools/session_search_tool.py:179", "-";
        /// Longest text of a row in a window.
        window_row_chars: u64 = 4_000, [0, 1e9], "characters", "Hermes tools/session_search_tool.py:325", "L2";
        /// Longest text of a row from an end of a conversation.
        end_row_chars: u64 = 1_200, [0, 1e9], "characters", "Hermes tools/session_search_tool.py:325", "L2";
        /// Rows from the start of a long conversation that is read.
        read_head: u64 = 20, [0, 1e6], "rows", "Hermes tools/session_search_tool.py:447", "L2";
        /// Rows from the end of a long conversation that is read.
        read_tail: u64 = 10, [0, 1e6], "rows", "Hermes tools/session_search_tool.py:447", "L2";
        /// Longest text of a row that is read.
        read_row_chars: u64 = 2_000, [0, 1e9], "characters", "Hermes tools/session_search_tool.py:447", "L2";
        /// Candidates that browsing fetches beyond the limit.
        browse_extra: u64 = 15, [0, 1e6], "conversations", "Hermes tools/session_search_tool.py:480", "-";
        /// Fewest sessions that browsing looks at.
        browse_sessions_min: u64 = 128, [1, 1e9], "sessions", "Hermes hermes_state_sessions.py:1193", "-";
        /// Sessions looked at for each candidate.
        browse_sessions_factor: u64 = 8, [1, 1e6], "sessions", "Hermes hermes_state_sessions.py:1193", "-";
        /// Longest preview of a conversation.
        preview_chars: u64 = 60, [1, 1e6], "characters", "Hermes hermes_state_common.py", "-";
    }
}

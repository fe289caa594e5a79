//! What the loop writes into rows of the user to move the model on. None of it is a request: a compaction knows each by
//! its first words.

/// After an announced step that did not come.
pub const ANNOUNCED_STEP: &str =
    "[Continue with the step that you announced: call the tool, or give the final answer.]";
/// After a reply that stopped for tools and called none.
pub const MISSING_CALL: &str =
    "[Continue: no tool call arrived. Send the call that you meant, or the final answer.]";
/// After an answer that the output limit cut.
pub const CUT: &str = "[Continue exactly where your answer was cut off.]";
/// After an empty reply to tool results.
pub const EMPTY: &str = "[Continue: the tools have answered. Go on with the task, or give the final answer.]";
/// When the iterations are used up.
pub const STEP_LIMIT: &str = "[System: the step limit is reached. Sum up what was done and what is left, without \
                              calling tools.]";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::compress::history::is_human;
    use crate::wire::Row;

    #[test]
    fn no_nudge_counts_as_a_request_of_the_user() {
        for nudge in [ANNOUNCED_STEP, MISSING_CALL, CUT, EMPTY, STEP_LIMIT] {
            assert!(!is_human(&Row::user(nudge)), "{nudge}");
        }
    }
}

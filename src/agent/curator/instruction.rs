//! What the agent that merges skills is asked to do.

/// The request that the consolidating agent gets; `candidates` are the skills that it may merge.
pub fn instruction(candidates: &[String]) -> String {
    let list = candidates.join("\n- ");
    format!(
        "Tidy the library of skills. The aim is a few skills, each for a class of tasks, in place of many narrow ones.\n\
         Look for groups among these:\n- {list}\n\n\
         For each group, put what is worth keeping into a skill that exists, or into a new one for the whole class, or \
         into support files of it by topic. Distil; do not only move text. A skill with support files stays whole. Then \
         delete the narrow skill and name in `absorbed_into` the one that took it over.\n\
         Leave alone what came with the agent, from a hub or from outside, and what is pinned. A skill that a scheduled \
         job names may be merged, since the job follows, but not given up. That a skill was rarely used is no reason \
         for or against it. One that was never used and is younger than 30 days stays. Say which names are too narrow \
         for what the skill does.\n\
         End with a block fenced as yaml: `consolidations`, a list of `from`, `into`, `reason`, and `prunings`, a list \
         of `name`, `reason`.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_names_every_candidate_on_a_line_of_its_own() {
        let text = instruction(&["pdf-merge".to_owned(), "pdf-split".to_owned()]);
        assert!(text.contains("\n- pdf-merge\n- pdf-split\n"));
    }
}

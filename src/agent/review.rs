//! The background review: when it is due, what it may dispatch, what it is told.
//!
//! Pure rules; the harness runs the review. Sources: Hermes agent/background_review.py.

use crate::policy;

/// What a review looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// Facts for memory.
    pub memory: bool,
    /// Lessons for skills.
    pub skills: bool,
}

/// The tools that a review may dispatch, sorted (Hermes agent/background_review.py:1080).
pub fn allowed_tools(review: &policy::Review, memory: &policy::Memory, scope: Scope) -> Vec<String> {
    let mut tools: Vec<String> = ["read_file", "search_files", "skill_manage", "skill_view", "skills_list"]
        .map(str::to_owned)
        .to_vec();
    if scope.memory && (memory.memory_enabled || memory.user_enabled) {
        tools.push("memory".to_owned());
    }
    tools
        .extend(review.extra_tools.iter().map(|tool| tool.trim().to_owned()).filter(|tool| !tool.is_empty()));
    tools.sort();
    tools.dedup();
    tools
}

/// The instruction that a review is given.
pub fn instruction(scope: Scope, focus: Option<&str>) -> String {
    let what = match (scope.memory, scope.skills) {
        (true, false) => {
            "facts about the user and the environment that later sessions need; keep them in memory"
        }
        (true, true) => "lessons for skills, and facts for memory; one lesson goes to one place",
        (false, _) => "lessons that make the next task of this kind shorter; keep them in skills",
    };
    let mut text = format!(
        "The conversation above is over. Look through it for {what}. Most conversations teach something, but \
         \"nothing to save\" is a valid end. Prefer to mend a skill that was loaded here, then an existing one of the \
         same class, then a support file, and only then create a new one. Read the exact file before you change it. \
         Write rules in the order of work with concrete commands, not the story of what happened. Leave out failures \
         of this machine, errors that went away, and one-off tasks. Never delete a skill. You may use the skill tools \
         and the reading tools; every other tool is refused."
    );
    if let Some(focus) = focus.map(str::trim).filter(|focus| !focus.is_empty()) {
        text.push_str("\n\nThis comes first: ");
        text.push_str(focus);
    }
    text
}

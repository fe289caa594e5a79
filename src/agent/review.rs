//! The background review: when it is due, what it may dispatch, what it is told, what it reports.
//!
//! Pure rules; the harness runs the review. Sources: Hermes agent/background_review.py.
//!
//! The real agent runs it on a thread beside the next turn, and a live turn stops it. Differs: here it runs to its end
//! before the next act; its list of tools belongs to the run and not to the thread that set it (`review.whitelist`
//! brings the thread back). The readers of a user's configuration ([`enabled`], [`defer`], [`defer_max_age`]) are held
//! against observed outcomes and not called by a run, whose knobs are typed already.

mod digest;
mod gate;
mod idle;
mod report;
mod settings;
mod slot;

pub use digest::digest;
pub use gate::{Admission, Request, admit};
pub use idle::{IDLE_AFTER, IdleQueue};
pub use report::{Learned, Mode, Report, report};
pub use settings::{defer, defer_max_age, enabled, input_budget};
pub use slot::{CANCEL_WAIT, Slot};

use crate::policy;

/// What a review looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// Facts for memory.
    pub memory: bool,
    /// Lessons for skills.
    pub skills: bool,
}

impl Scope {
    /// Which of the three instructions is given; without any flag it is the one for skills.
    pub fn word(self) -> &'static str {
        match (self.memory, self.skills) {
            (true, false) => "memory",
            (true, true) => "combined",
            (false, _) => "skills",
        }
    }
}

/// The tools that every review may dispatch; Hermes agent/background_review.py:1080.
const ALWAYS: [&str; 5] = ["read_file", "search_files", "skill_manage", "skill_view", "skills_list"];

/// The tools that a user's configuration adds: texts that are not blank.
pub fn extra_tools(review: &policy::Review) -> impl Iterator<Item = &str> {
    review.extra_tools.iter().map(|tool| tool.trim()).filter(|tool| !tool.is_empty())
}

/// The tools that a review may dispatch, sorted.
pub fn allowed_tools(review: &policy::Review, memory: &policy::Memory, scope: Scope) -> Vec<String> {
    let memory_tool = (scope.memory && (memory.memory_enabled || memory.user_enabled)).then_some("memory");
    let mut tools: Vec<String> =
        ALWAYS.into_iter().chain(memory_tool).chain(extra_tools(review)).map(str::to_owned).collect();
    tools.sort();
    tools.dedup();
    tools
}

/// The result of a call that a run may not make: names the tool and what is allowed, so that it is not retried.
pub fn denial(tool: &str, allowed: &[String]) -> String {
    format!(
        "`{tool}` may not be used here. Allowed: {}. Do not try it again; go on with an allowed tool or end.",
        allowed.join(", ")
    )
}

/// A focus that says something.
pub fn focus(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// The instruction that a review is given.
pub fn instruction(scope: Scope, focus_text: Option<&str>) -> String {
    let what = match scope.word() {
        "memory" => "facts about the user and the environment that later sessions need; keep them in memory",
        "combined" => "lessons for skills, and facts for memory; one lesson goes to one place",
        _ => "lessons that make the next task of this kind shorter; keep them in skills",
    };
    let mut text = format!(
        "The conversation above is over. Look through it for {what}. Most conversations teach something, but \
         \"nothing to save\" is a valid end. Prefer to mend a skill that was loaded here, then an existing one of the \
         same class, then a support file, and only then create a new one. Read the exact file before you change it. \
         Write rules in the order of work with concrete commands, not the story of what happened. Leave out failures \
         of this machine, errors that went away, and one-off tasks. Never delete a skill. You may use the skill tools \
         and the reading tools; every other tool is refused."
    );
    if let Some(focus) = focus(focus_text) {
        text.push_str("\n\nThis comes first: ");
        text.push_str(focus);
    }
    text
}

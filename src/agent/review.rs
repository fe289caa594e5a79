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

/// What a review of skills is told; Hermes agent/background_review.py:362-560, restated.
const SKILLS_TOLD: &str = "\
What is worth a skill: the user corrected style, format, length or the order of work, or was annoyed; a technique, a fix or \
a detour turned out to be worth keeping; a skill that was used here was wrong, incomplete or out of date. One of these is \
enough.
Keep few skills, one for each class of task, each with the rules that always hold in SKILL.md and a small number of support \
files; not one skill for each conversation. Take the first of these that fits: mend a skill that was loaded here; mend an \
existing skill of the same class; add a support file to one and a line in its SKILL.md that points there; create a new one, \
whose name is no number, error text, code name, single library or today's errand. Look for the rule before you add it, and \
sharpen the one that is there; what is wrong is corrected in its place.
Write the procedure in the order of work, with concrete commands; each pitfall at the step that it concerns, as a rule that \
always holds. No story of what happened, no dates, no ticket numbers.
Read the exact file in this review before you change it; after a refusal read it once, try once more, and leave it then. \
Never delete a skill: say in your answer which ones overlap.
Leave out failures of this machine, statements that a tool does not work, errors that went away, one-off errands, and \
attempts that led nowhere.";

/// What a review of memory is told.
const MEMORY_TOLD: &str = "\
Memory has two stores: the profile says who the user is and how they want to be met, the other one how things stand around \
you. A fact goes to one of them, once, and only if later conversations need it.";

/// The instruction that a review is given; it ends with the tools that the run may dispatch.
pub fn instruction(scope: Scope, allowed: &[String], focus_text: Option<&str>) -> String {
    let (what, told) = match scope.word() {
        "memory" => ("facts about the user and the environment that later sessions need", vec![MEMORY_TOLD]),
        "combined" => (
            "lessons for skills, and facts for memory. How to do a task for this user belongs into the skill of that \
             task; one lesson goes to one place",
            vec![SKILLS_TOLD, MEMORY_TOLD],
        ),
        _ => ("lessons that make the next task of this kind shorter", vec![SKILLS_TOLD]),
    };
    let mut text = format!(
        "The conversation above is over. Look through it for {what}. Most conversations teach something; if this one \
         did not, \"nothing to save\" is a valid end.\n{}",
        told.join("\n")
    );
    if let Some(focus) = focus(focus_text) {
        text.push_str("\nThis comes before the general rules: ");
        text.push_str(focus);
    }
    text.push_str(&format!("\nYou may use {}; every other tool is refused.", allowed.join(", ")));
    text
}

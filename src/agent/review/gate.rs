//! Whether a requested review starts, waits, or is dropped. Source: Hermes run_agent.py:766.

use crate::policy::Defer;

use super::focus;

/// A request for a review.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Depth of the agent that asks; 0 is the root.
    pub depth: u64,
    /// What the user wants looked at first.
    pub focus: Option<&'a str>,
    /// True when the user asked for it.
    pub explicit: bool,
    /// True when it would run on the local model server that the program manages itself.
    pub local: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It starts at once, over a copy of the conversation.
    Start,
    /// It waits in the idle queue.
    Queue,
    /// It is dropped.
    Drop,
}

/// Decides on a request, in the real order: children, the switch, then the load of a local server. A focus passes all.
pub fn admit(request: &Request<'_>, enabled: bool, defer: Defer) -> Admission {
    if focus(request.focus).is_some() {
        return Admission::Start;
    }
    if request.depth > 0 || !enabled {
        return Admission::Drop;
    }
    if request.local && !request.explicit && defer == Defer::Auto {
        return Admission::Queue;
    }
    Admission::Start
}

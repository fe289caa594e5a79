//! Whether a child is still alive. Source: Hermes tools/delegate_tool_child_run.py:267.

use crate::world::Millis;
use crate::world::clock::SECOND;

/// Time between two looks at a child; Hermes tools/delegate_tool_child_run.py:267.
pub const TICK: Millis = 30 * SECOND;
/// Ticks without progress after which a child outside a tool is stale.
const IDLE_TICKS: u64 = 15;
/// The same inside a tool.
const TOOL_TICKS: u64 = 40;

/// What a tick says of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// It lives; the parent's activity clock moves on.
    Alive,
    /// It has made no progress for this long.
    Stale(Millis),
}

/// The watch over one child.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    api_calls: u64,
    tool: Option<String>,
    activity: Option<f64>,
    without_progress: u64,
}

impl Heartbeat {
    /// Looks at the child: its requests so far, the tool that it is in, and its activity clock, if it has one.
    pub fn tick(&mut self, api_calls: u64, tool: Option<&str>, activity: Option<f64>) -> Beat {
        // A clock that goes backwards is no progress.
        let later = match (self.activity, activity) {
            (Some(before), Some(now)) => now > before,
            (None, now) => now.is_some(),
            (Some(_), None) => false,
        };
        if api_calls > self.api_calls || tool != self.tool.as_deref() || later {
            self.without_progress = 0;
        } else {
            self.without_progress += 1;
        }
        self.api_calls = self.api_calls.max(api_calls);
        self.tool = tool.map(str::to_owned);
        if later {
            self.activity = activity;
        }
        let limit = if tool.is_some() { TOOL_TICKS } else { IDLE_TICKS };
        if self.without_progress >= limit {
            Beat::Stale(Millis::try_from(limit).unwrap_or(0) * TICK)
        } else {
            Beat::Alive
        }
    }
}

//! An agent that is spoken to, whichever way its driver says.

use std::time::Duration;

use super::acp::Acp;
use super::driver::{Driver, Way};
use super::once::Once;
use super::place::Place;

/// Why an agent could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It could not be started.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended, or closed its output.
    #[error("the agent ended while {0}; the last that it printed:\n{1}")]
    Ended(&'static str, String),
    /// It took too long.
    #[error("the agent took longer than {seconds} s for {doing}; the last that it printed:\n{printed}")]
    Slow {
        /// Limit.
        seconds: u64,
        /// What it was doing.
        doing: &'static str,
        /// Its last lines.
        printed: String,
    },
    /// It answered with an error.
    #[error("the agent refused {0}: {1}")]
    Refused(&'static str, String),
    /// A session that was never opened is opened again.
    #[error("session `{0}` was not opened before")]
    UnknownSession(String),
}

/// Starts what the driver names, in the clean environment that it describes.
pub(super) fn environment(driver: &Driver, place: &Place) -> Vec<(String, String)> {
    // The search path is the one thing that an agent needs of the machine: its shell and its interpreter.
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    let mut variables = vec![
        ("PATH".to_owned(), path),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("TERM".to_owned(), "dumb".to_owned()),
        ("HOME".to_owned(), place.home.display().to_string()),
    ];
    for (name, value) in &driver.env {
        variables.retain(|(known, _)| known != name);
        variables.push((name.clone(), place.fill(value)));
    }
    variables
}

/// An agent under way.
pub(super) enum Agent<'a> {
    Acp(Acp<'a>),
    Once(Once<'a>),
}

impl<'a> Agent<'a> {
    /// Starts it, as far as it is one process for all turns.
    pub(super) fn start(driver: &'a Driver, place: &'a Place) -> Result<Self, AgentError> {
        Ok(match &driver.way {
            Way::Acp { command } => Self::Acp(Acp::start(driver, place, command)?),
            Way::Once { first, next, session } => {
                Self::Once(Once::new(driver, place, first, next, session.as_deref()))
            }
        })
    }

    /// Begins a session.
    pub(super) fn open(&mut self, name: &str) -> Result<(), AgentError> {
        match self {
            Self::Acp(agent) => agent.open(name),
            Self::Once(agent) => {
                agent.open(name);
                Ok(())
            }
        }
    }

    /// Opens a session again, in a new process.
    pub(super) fn reopen(&mut self, name: &str) -> Result<(), AgentError> {
        match self {
            Self::Acp(agent) => agent.reopen(name),
            Self::Once(agent) => agent.reopen(name),
        }
    }

    /// One turn: the user's words in, the agent's answer out.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Result<String, AgentError> {
        match self {
            Self::Acp(agent) => agent.prompt(session, text),
            Self::Once(agent) => agent.prompt(session, text),
        }
    }

    /// The last lines that it printed beside its answers.
    pub(super) fn printed(&self) -> String {
        match self {
            Self::Acp(agent) => agent.printed(),
            Self::Once(agent) => agent.printed(),
        }
    }
}

/// The last lines of a program.
#[derive(Debug, Default)]
pub(super) struct Tail(std::collections::VecDeque<String>);

impl Tail {
    /// Lines that are kept.
    const LINES: usize = 12;

    pub(super) fn push(&mut self, line: String) {
        if self.0.len() == Self::LINES {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(|line| format!("  {line}")).collect();
        lines.join("\n")
    }
}

/// The longest time of a turn.
pub(super) fn patience(driver: &Driver) -> Duration {
    Duration::from_secs(driver.turn_seconds)
}

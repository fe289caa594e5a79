//! Who answers: the model's part, played by a script, a cassette or a live provider.
//!
//! A [`Model`] gets a request and gives a reply; it never sees the harness, only what was sent. Usage is never its
//! business: the cache model computes it from the bytes.

pub mod placed;
pub mod reader;
pub mod script;

pub use script::ScriptedModel;

use crate::ledger::Lane;
use crate::wire::{Row, ToolCall};

/// What the model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Who asks.
    pub lane: Lane,
    /// The session, for diagnostics of scripts.
    pub session: &'a str,
    /// Turn of the session, from 1.
    pub turn: u64,
    /// Names of the tools in the table.
    pub tools: &'a [String],
    /// The system prompt.
    pub system: &'a str,
    /// The conversation.
    pub rows: &'a [Row],
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It wants tools to run.
    ToolCalls,
    /// Its output was cut.
    Length,
}

impl Finish {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
        }
    }
}

/// What the model answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Visible text; `None` when there is none at all.
    pub text: Option<String>,
    /// Tool calls.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// Reasoning beside the text.
    pub reasoning: Option<String>,
    /// Tokens produced, when the provider says so.
    pub output_tokens: Option<u64>,
    /// True when the user stopped the reply while it came in.
    pub interrupted: bool,
}

impl Reply {
    /// A reply that says something and stops.
    pub fn say(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            calls: Vec::new(),
            finish: Finish::Stop,
            reasoning: None,
            output_tokens: None,
            interrupted: false,
        }
    }

    /// A reply that calls tools.
    pub fn call(calls: Vec<ToolCall>) -> Self {
        Self { text: None, calls, finish: Finish::ToolCalls, ..Self::say("") }
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider refused or failed; the loop may try again.
    #[error("the provider answered `{kind}`")]
    Provider {
        /// `overloaded`, `rate_limited`, `server_error`, `timeout`, `context_length`, `dropped`,
        /// `refused` or `unauthorized`.
        kind: String,
        /// True when another attempt can help.
        retry: bool,
    },
    /// The script does not fit the run: the scenario is at fault.
    #[error("{0}")]
    Script(String),
}

/// Somebody who answers requests.
pub trait Model {
    /// Answers one request.
    ///
    /// # Errors
    /// [`ModelError::Provider`] when the provider fails, [`ModelError::Script`] when a script has no answer.
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, ModelError>;
}

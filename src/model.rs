//! Who answers: the model's part, played by a script, a cassette or a live provider.
//!
//! A [`Model`] gets a request and gives a reply; it never sees the harness, only what was sent. Usage is never its
//! business: the cache model computes it from the bytes.

pub mod placed;
pub mod reader;
pub mod script;

pub use script::ScriptedModel;

use crate::cache::Ttl;
use crate::ledger::Lane;
use crate::scenario::{ReplySpec, TurnAct};
use crate::wire::{Row, Segment, ToolCall};

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
    /// The same as it goes over the wire, for whoever sends it on.
    pub sent: Sent<'a>,
}

/// A request as it goes over the wire. Without segments it is what the rows say, and nothing is marked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent<'a> {
    /// Tool definitions, then the parts of the system prompt.
    pub prefix: &'a [Segment],
    /// The messages.
    pub messages: &'a [Segment],
    /// Cache markers: position in prefix and messages, and lifetime.
    pub marks: &'a [(usize, Ttl)],
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
    /// Nobody will answer any more: a budget is used up, or the provider cannot be worked with. The run ends here.
    #[error("{0}")]
    Stopped(String),
}

/// Somebody who answers requests.
pub trait Model {
    /// Answers one request.
    ///
    /// # Errors
    /// [`ModelError::Provider`] when the provider fails, [`ModelError::Script`] when a script has no answer.
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, ModelError>;
}

/// A model that a scenario is played with: it is handed the lines of each act. One that speaks for itself needs none.
pub trait Player: Model {
    /// Takes over the lists of a turn; `{i}` in their texts becomes `index`.
    fn load_turn(&mut self, _turn: &TurnAct, _index: u64) {}

    /// Appends lines to one lane's list.
    fn load(&mut self, _lane: Lane, _replies: &[ReplySpec], _index: u64) {}

    /// Lines of a lane that nobody asked for.
    fn left_over(&self, _lane: Lane) -> usize {
        0
    }

    /// Forgets what is left of a lane's list.
    fn clear(&mut self, _lane: Lane) {}

    /// Forgets what is left of every list: nobody is there any more to ask for it.
    fn clear_all(&mut self) {}
}

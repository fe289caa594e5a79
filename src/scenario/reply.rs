//! One reply of a scripted model.

use serde::Deserialize;

/// One tool call in a script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpec {
    /// Name of the tool.
    pub tool: String,
    /// Arguments as a table.
    #[serde(default)]
    pub args: toml::Table,
    /// Arguments as raw text instead, for malformed ones.
    pub raw: Option<String>,
    /// Id of the call; made from lane and place when absent.
    pub id: Option<String>,
}

/// One reply of a scripted model: words, calls, or a fault.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplySpec {
    /// Visible text.
    pub say: Option<String>,
    /// One call: the name of the tool, with `args`.
    pub call: Option<String>,
    /// Arguments of `call`.
    #[serde(default)]
    pub args: toml::Table,
    /// Several calls in one reply.
    #[serde(default)]
    pub calls: Vec<CallSpec>,
    /// Reasoning beside the text.
    pub reasoning: Option<String>,
    /// `stop`, `tool_calls` or `length`; what fits when absent.
    pub finish: Option<String>,
    /// The provider fails instead: `overloaded`, `rate_limited`, `server_error`, `timeout`, `context_length`,
    /// `dropped`, `refused` or `unauthorized`.
    pub fault: Option<String>,
    /// Seconds that the answer to `rate_limited` or `overloaded` asks to wait. Over HTTP only; in the runtime the fault
    /// alone counts.
    pub retry_after: Option<u64>,
    /// Characters after which a `dropped` stream breaks off; half of the reply when absent. Over HTTP only.
    pub after_chars: Option<u64>,
    /// Pause before each piece of a stream, in milliseconds. Over HTTP only.
    pub pause_ms: Option<u64>,
    /// Seconds for which a `timeout` holds the connection. Over HTTP only.
    pub hold_seconds: Option<u64>,
    /// Prompt tokens that the provider reports instead of what it counted; with `context_length` the limit that it
    /// names. Over HTTP only.
    pub prompt_tokens: Option<u64>,
    /// How often this reply is given in a row; once when absent.
    pub times: Option<u64>,
}

impl ReplySpec {
    /// Every call of the reply.
    pub fn all_calls(&self) -> Vec<CallSpec> {
        let single = self.call.iter().map(|tool| CallSpec {
            tool: tool.clone(),
            args: self.args.clone(),
            raw: None,
            id: None,
        });
        single.chain(self.calls.iter().cloned()).collect()
    }
}

//! The one place where tools are dispatched.
//!
//! Everything that limits a run acts here: a review's list, a child's and a scheduled run's denied toolsets, and
//! (inside the terminal) the judgement of commands. It does not matter whether the call came alone, in a batch, or
//! in a parallel run.

use serde_json::{Value, json};

use crate::agent::review::denial;
use crate::agent::threats::Scanner;
use crate::agent::turn::{Agent, Host as _, ToolOutcome, results};
use crate::ledger::{Name, ThreatFound, ToolRan, What};
use crate::model::Model;
use crate::wire::ToolCall;

use super::host::Run;

/// What a tool gave back.
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) ok: bool,
    pub(super) outcome_unknown: bool,
    /// Who refused it, when it did not run after all.
    pub(super) refused_by: Option<&'static str>,
}

impl ToolResult {
    pub(super) fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), ok: true, outcome_unknown: false, refused_by: None }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        let text = json!({ "error": message.into() }).to_string();
        Self { ok: false, ..Self::done(text) }
    }

    pub(super) fn refused(by: &'static str, message: impl Into<String>) -> Self {
        Self { refused_by: Some(by), ..Self::failed(message) }
    }
}

impl<M: Model> Run<'_, M> {
    fn ran(&mut self, call: &ToolCall, result: &ToolResult) {
        let ran = ToolRan {
            lane: self.session.lane,
            call: call.id.as_str().into(),
            tool: call.name.as_str().into(),
            arguments: call.arguments.as_str().into(),
            ok: result.ok,
            result_chars: result.text.chars().count() as u64,
            outcome_unknown: result.outcome_unknown,
        };
        self.event(What::ToolRan(ran));
    }

    pub(super) fn dispatch_call(&mut self, agent: &mut Agent, call: &ToolCall) -> ToolOutcome {
        if self.harness.is_killed() {
            return ToolOutcome { interrupt: true, ..ToolOutcome::default() };
        }
        if let Some(by) = self.session.permits.refuses(&call.name) {
            let allowed: Vec<String> = self.session.permits.allowed(&self.session.tools).cloned().collect();
            let reason = denial(&call.name, &allowed);
            self.refused(agent, call, by, &reason);
            return ToolOutcome {
                text: json!({ "error": reason }).to_string(),
                failed: true,
                ..ToolOutcome::default()
            };
        }
        let Some(arguments @ Value::Object(_)) = call.parsed_arguments() else {
            let reason = "not run: the arguments are no JSON object";
            self.refused(agent, call, "arguments", reason);
            return ToolOutcome {
                text: json!({ "error": reason }).to_string(),
                failed: true,
                ..ToolOutcome::default()
            };
        };
        let mut result = self.run_tool(agent, call, &arguments);
        if result.outcome_unknown && self.harness.policy.turn.retry_unknown {
            self.ran(call, &result);
            result = ToolResult { outcome_unknown: false, ..self.run_tool(agent, call, &arguments) };
        }
        if let Some(risk) =
            results::risk(&call.name, &result.text, &Scanner::new(&self.harness.policy.threats))
            && risk.high
        {
            let ids = risk.ids.iter().map(|id| Name::from(*id)).collect();
            self.event(What::ThreatFound(ThreatFound { place: "tool_result".into(), ids, blocked: false }));
        }
        if let Some(by) = result.refused_by {
            self.refused(agent, call, by, &result.text);
        } else {
            self.ran(call, &result);
        }
        ToolOutcome {
            text: result.text,
            failed: !result.ok,
            // A write that its own guard refused was dispatched all the same: the nudge counts it.
            dispatched: !matches!(result.refused_by, Some("guard")),
            interrupt: self.harness.is_killed(),
            steer: self.session.steer.take(),
        }
    }
}

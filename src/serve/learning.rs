//! What requests show of an agent's inside: answers delivered, reviews begun, tools that ran or were refused.
//!
//! Only calls that the script itself made are followed, by their ids. How a tool fared is read off its result: an error
//! that speaks of permission is a refusal, any other result means that it ran.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::Value;

use crate::audit::prompt::{Kind, Prompt, hash_of_id};
use crate::ledger::{
    Delivered, Lane, MemoryWrite, Name, Recorder, ReviewEnded, ReviewStarted, ToolRan, ToolRefused,
    TurnEnded, What,
};
use crate::model::placed::Due;
use crate::policy::Policy;
use crate::serve::book::{Entry, Noted};
use crate::serve::spoken::Spoken;
use crate::wire::Level;

/// Calls without a result that are remembered; the older half goes when there are more.
const ASKED_MAX: usize = 1 << 14;

#[derive(Debug)]
struct Asked {
    lane: Lane,
    id: Name,
    tool: Name,
    arguments: Name,
}

/// Calls that wait for results, and reviews that began.
#[derive(Debug, Default)]
pub(super) struct Learning {
    asked: IndexMap<u64, Asked>,
    reviewed: BTreeSet<(Name, u64)>,
}

impl Learning {
    /// A request is about to be written: what had happened before it?
    pub(super) fn before(&mut self, recorder: &mut Recorder, session: &Name, entry: &Entry<'_>) {
        if entry.refused {
            return;
        }
        if !self.asked.is_empty() {
            for fact in entry.prompt.ids.iter().filter(|fact| fact.answers) {
                if let Some(asked) = self.asked.shift_remove(&fact.id) {
                    answered(recorder, session, &asked, &result_of(entry.prompt, fact.id));
                }
            }
        }
        let (due, turn) = (entry.due, entry.due.turn.max(1));
        if due.lane == Lane::Review && self.reviewed.insert((session.clone(), due.place.turn)) {
            let started = ReviewStarted {
                allowed: Vec::new(),
                advertised: tool_names(entry.prompt),
                beside_turn: 0,
                delivered: turn,
            };
            recorder.event(session, What::ReviewStarted(started));
        }
    }

    /// A reply was given: what follows from it?
    pub(super) fn answered(&mut self, recorder: &mut Recorder, noted: &Noted, due: &Due, spoken: &Spoken) {
        for call in &spoken.calls {
            if self.asked.len() >= ASKED_MAX {
                self.asked.drain(..ASKED_MAX / 2);
            }
            let asked = Asked {
                lane: due.lane,
                id: call.id.as_str().into(),
                tool: call.name.as_str().into(),
                arguments: call.arguments.as_str().into(),
            };
            self.asked.insert(hash_of_id(&call.id), asked);
        }
        if !spoken.calls.is_empty() || spoken.text.trim().is_empty() {
            return;
        }
        let (turn, iterations) = (due.turn.max(1), due.place.entry + 1);
        match due.lane {
            Lane::Main => {
                let chars = spoken.text.chars().count() as u64;
                recorder.event(&noted.session, What::Delivered(Delivered { turn, chars }));
                let ended = TurnEnded { turn, exit: "answered".into(), iterations, since_skill: 0 };
                recorder.event(&noted.session, What::TurnEnded(ended));
            }
            Lane::Review => {
                let ended = ReviewEnded {
                    iterations,
                    iterations_max: Policy::default().review.iterations_max,
                    learned: "none".into(),
                    shown: Vec::new(),
                };
                recorder.event(&noted.session, What::ReviewEnded(ended));
            }
            _ => {}
        }
    }
}

fn answered(recorder: &mut Recorder, session: &Name, asked: &Asked, result: &str) {
    let error = error_of(result);
    if let Some(reason) = error.as_deref().filter(|reason| speaks_of_permission(reason)) {
        let refused = ToolRefused {
            lane: asked.lane,
            call: asked.id.clone(),
            tool: asked.tool.clone(),
            by: "whitelist".into(),
            reason: reason.into(),
        };
        recorder.event(session, What::ToolRefused(refused));
        return;
    }
    let ran = ToolRan {
        lane: asked.lane,
        call: asked.id.clone(),
        tool: asked.tool.clone(),
        arguments: asked.arguments.clone(),
        ok: error.is_none(),
        result_chars: result.chars().count() as u64,
        outcome_unknown: false,
    };
    recorder.event(session, What::ToolRan(ran));
    if &*asked.tool == "memory" {
        memory(recorder, session, asked, error);
    }
}

fn memory(recorder: &mut Recorder, session: &Name, asked: &Asked, error: Option<String>) {
    let Ok(arguments) = serde_json::from_str::<Value>(&asked.arguments) else { return };
    let text = |name: &str| Name::from(arguments[name].as_str().unwrap_or_default());
    let write = MemoryWrite {
        origin: if asked.lane == Lane::Review { "review".into() } else { "foreground".into() },
        target: text("target"),
        action: text("action"),
        ok: error.is_none(),
        refusal: error.unwrap_or_default().into(),
        content: text("content"),
    };
    recorder.event(session, What::MemoryWrite(write));
}

/// The text of the result that answers a call.
fn result_of(prompt: &Prompt, id: u64) -> String {
    let at = prompt.segs.iter().rposition(|seg| seg.kind == Kind::Answer && seg.id == id);
    at.map_or_else(String::new, |at| prompt.text(at))
}

/// What a result says went wrong; `None` when it speaks of no error.
fn error_of(result: &str) -> Option<String> {
    if let Ok(value) = serde_json::from_str::<Value>(result) {
        let error = value.get("error")?;
        return match error {
            Value::Null | Value::Bool(false) => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
    }
    let head: String = result.trim_start().chars().take(400).collect();
    let lower = head.to_lowercase();
    (lower.starts_with("error") || lower.starts_with("<tool_use_error>")).then_some(head)
}

fn speaks_of_permission(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["not allowed", "denied", "not permitted", "not available", "unknown tool", "whitelist", "no such tool"]
        .iter()
        .any(|words| reason.contains(words))
}

/// Names of the tools that a request offers.
pub(super) fn tool_names(prompt: &Prompt) -> Vec<Name> {
    let tools = (0..prompt.segs.len()).take_while(|at| prompt.segs[*at].level == Level::Tools);
    tools.filter_map(|at| name_of(&prompt.value(at)?)).collect()
}

/// The name of a tool definition.
pub(super) fn name_of(tool: &Value) -> Option<Name> {
    let name = tool.pointer("/function/name").or_else(|| tool.get("name"))?;
    name.as_str().map(Name::from)
}

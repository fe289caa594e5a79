//! The memory tool, and memory written from outside: what is answered and what the ledger is told.

use serde_json::{Value, json};

use crate::agent::memory::{Caller, Change, MemoryStore, Receipt, Refusal, ToolAnswer};
use crate::ledger::{Effect, MemoryWrite, PRESENT, What};
use crate::model::Model;
use crate::policy;

use super::dispatch::ToolResult;
use super::host::Run;
use super::{Harness, Origin};

/// What the ledger is told of a write; `Some` operations make it a batch.
fn recorded(origin: &str, arguments: &Value, answer: &ToolAnswer) -> MemoryWrite {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    let batch = is_batch(arguments);
    let (ok, refusal) = match answer {
        ToolAnswer::Applied(receipt) if receipt.changed => (true, String::new()),
        ToolAnswer::Applied(_) => (false, PRESENT.to_owned()),
        ToolAnswer::Staged(_) => (false, "staged".to_owned()),
        ToolAnswer::Refused(refusal) => (false, refusal.kind.to_string()),
    };
    let content = if batch { arguments["operations"].to_string() } else { text("content").to_owned() };
    MemoryWrite {
        origin: origin.into(),
        target: text("target").into(),
        action: if batch { "batch".into() } else { text("action").into() },
        ok,
        refusal: refusal.as_str().into(),
        content: content.into(),
    }
}

fn is_batch(arguments: &Value) -> bool {
    arguments.get("operations").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// A successful write as the model is told of it (Hermes tools/memory_tool_store.py:639): it never lists the entries.
fn told(receipt: &Receipt, done: &str) -> Value {
    let message = if receipt.changed {
        format!("Entry {done}.")
    } else {
        "It is there already; nothing was saved twice.".to_owned()
    };
    let mut told = json!({
        "success": true, "done": true, "target": receipt.target.word(), "message": message,
        "usage": format!("{}% — {}/{} chars", receipt.percent, receipt.size, receipt.limit),
        "entry_count": receipt.entry_count,
    });
    let taken = receipt.taken.iter().map(|taken| {
        let change = match taken.change {
            Change::Replaced => "replaced",
            Change::Removed => "removed",
            Change::Patched => "patched",
        };
        json!({ "operation": taken.operation, "change": change, "before": taken.before })
    });
    if !receipt.taken.is_empty() {
        told["taken"] = taken.collect();
    }
    told
}

/// A refusal with what the model needs to do better.
fn refused(refusal: &Refusal) -> ToolResult {
    let details = &refusal.details;
    let mut told = json!({ "error": refusal.to_string() });
    if refusal.is_terminal() {
        told["done"] = true.into();
    }
    if let Some((size, limit)) = details.usage {
        told["usage"] = format!("{size}/{limit} chars").into();
    }
    if let Some(entries) = &details.entries {
        told["entries"] = json!(entries);
    }
    for (key, list) in [("closest", &details.closest), ("matches", &details.candidates)] {
        if !list.is_empty() {
            told[key] = json!(list);
        }
    }
    if let Some(backup) = &details.backup {
        told["backup"] = backup.as_str().into();
    }
    ToolResult { ok: false, ..ToolResult::done(told.to_string()) }
}

impl<M: Model> Run<'_, M> {
    pub(super) fn memory(&mut self, arguments: &Value) -> ToolResult {
        let caller = match self.session.origin {
            Origin::Review => Caller::UnattendedReview,
            _ => Caller::Attended,
        };
        let now = self.harness.clock.now();
        let answer = self.session.memory.tool_call(&mut *self.harness.home, now, arguments, caller);
        let write = recorded(self.session.origin.word(), arguments, &answer);
        let (target, changed) = (write.target.clone(), write.ok);
        self.event(What::MemoryWrite(write));
        if changed {
            let effect = Effect { lane: self.session.lane, kind: "memory".into(), detail: target };
            self.event(What::Effect(effect));
        }
        match answer {
            ToolAnswer::Applied(receipt) => {
                let done = match (is_batch(arguments), arguments["action"].as_str()) {
                    (true, _) => "applied",
                    (false, Some("remove")) => "removed",
                    (false, Some("replace")) => "replaced",
                    (false, Some("patch")) => "updated",
                    (false, _) => "added",
                };
                ToolResult::done(told(&receipt, done).to_string())
            }
            ToolAnswer::Refused(refusal) => refused(&refusal),
            ToolAnswer::Staged(_) => {
                let message = "The change is proposed to the user; nothing was written.";
                let receipt =
                    json!({ "success": true, "staged": true, "proposal_staged": true, "message": message });
                ToolResult::done(receipt.to_string())
            }
        }
    }
}

impl<M: Model> Harness<M> {
    /// Writes to memory outside any conversation, as the user does, whose approval nobody asks for; true when it is there
    /// afterwards.
    pub fn remember(&mut self, target: &str, content: &str) -> bool {
        let knobs = policy::Memory { approval: false, ..self.policy.memory.clone() };
        let mut memory = MemoryStore::new(&knobs, &self.policy.threats);
        memory.load(&*self.home);
        let arguments = json!({ "action": "add", "target": target, "content": content });
        let now = self.clock.now();
        let answer = memory.tool_call(&mut *self.home, now, &arguments, Caller::Attended);
        let world = self.world.clone();
        self.event(&world, What::MemoryWrite(recorded("outside", &arguments, &answer)));
        matches!(answer, ToolAnswer::Applied(_))
    }
}

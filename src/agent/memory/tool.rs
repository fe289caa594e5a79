//! The front of the tool `memory`: reads arguments, decides whether a write is applied or staged.
//!
//! Called at dispatch. Never: a destructive write of an unattended review that is applied (unless the knob says so).

use serde_json::Value;

use super::answer::{Answer, Receipt, Refusal, RefusalKind, Target};
use super::locate::Located;
use super::{MemoryStore, Operation, OperationKind};
use crate::agent::text::strip;
use crate::policy::MemoryEdit;
use crate::world::{Files, Millis};

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The user's own turn, or a review that the user asked for.
    Attended,
    /// A background review that nobody watches.
    UnattendedReview,
}

/// A write that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The store.
    pub target: Target,
    /// The operations, with the entry that each destructive one was made for.
    pub operations: Vec<Operation>,
    /// True when they are one batch.
    pub batch: bool,
}

/// The answer of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAnswer {
    /// Applied.
    Applied(Receipt),
    /// Waits for the user.
    Staged(Staged),
    /// Refused.
    Refused(Refusal),
}

impl From<Answer> for ToolAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(receipt) => Self::Applied(receipt),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

/// A call that passed the front.
struct Call {
    target: Target,
    operations: Vec<Operation>,
    batch: bool,
}

impl MemoryStore {
    /// Carries out one call of the tool.
    pub fn tool_call(
        &mut self,
        files: &mut dyn Files,
        now: Millis,
        args: &Value,
        caller: Caller,
    ) -> ToolAnswer {
        let call = match self.front(args) {
            Ok(call) => call,
            Err(refusal) => return ToolAnswer::Refused(refusal),
        };
        let destructive = call.operations.iter().any(|op| op.kind.is_destructive());
        let review = caller == Caller::UnattendedReview && self.knobs.review_stages && destructive;
        if self.knobs.approval || review {
            return self.stage(call).map_or_else(ToolAnswer::Refused, ToolAnswer::Staged);
        }
        self.carry_out(files, now, call.target, &call.operations, call.batch).into()
    }

    /// Applies a write that the user approved.
    ///
    /// # Errors
    /// As the write itself; `unpinned` and `stale_entry` where approval is bound to an entry.
    pub fn approve(&mut self, files: &mut dyn Files, now: Millis, staged: &Staged) -> Answer {
        let unpinned = staged.operations.iter().any(|op| op.kind.is_destructive() && op.pin.is_none());
        if self.knobs.pinned_approval && unpinned {
            return Err(Refusal::new(RefusalKind::Unpinned, "the staged write does not name its entry"));
        }
        self.carry_out(files, now, staged.target, &staged.operations, staged.batch)
    }

    fn carry_out(
        &mut self,
        files: &mut dyn Files,
        now: Millis,
        target: Target,
        operations: &[Operation],
        batch: bool,
    ) -> Answer {
        match operations {
            [single] if !batch => self.single(files, now, target, single),
            all => self.batch(files, now, target, all),
        }
    }

    fn front(&self, args: &Value) -> Result<Call, Refusal> {
        let target = self.target(args.get("target"))?;
        if !self.enabled(target) {
            return Err(Refusal::new(
                RefusalKind::Disabled,
                format!("{} is switched off", target.file_name()),
            ));
        }
        match args.get("operations") {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) if items.is_empty() => {}
            Some(Value::Array(items)) => {
                let operations: Vec<Operation> = items.iter().map(|item| self.operation(item)).collect();
                if self.knobs.edit == MemoryEdit::Patch
                    && operations.iter().any(|op| op.kind == OperationKind::Replace)
                {
                    return Err(unknown_action());
                }
                return Ok(Call { target, operations, batch: true });
            }
            Some(_) => return Err(Refusal::new(RefusalKind::InvalidArgs, "`operations` must be a list")),
        }
        let operation = self.operation(args);
        self.check_single(target, &operation)?;
        Ok(Call { target, operations: vec![operation], batch: false })
    }

    fn target(&self, named: Option<&Value>) -> Result<Target, Refusal> {
        match named {
            None | Some(Value::Null) if self.knobs.default_target => Ok(Target::Memory),
            Some(Value::String(word)) => Target::parse(word).ok_or(()),
            _ => Err(()),
        }
        .map_err(|()| Refusal::new(RefusalKind::InvalidArgs, "`target` must be `memory` or `user`"))
    }

    fn check_single(&self, target: Target, op: &Operation) -> Result<(), Refusal> {
        let offered = match op.kind {
            OperationKind::Add | OperationKind::Remove => true,
            OperationKind::Replace => self.knobs.edit == MemoryEdit::Replace,
            OperationKind::Patch => self.knobs.edit == MemoryEdit::Patch,
            OperationKind::Unknown => false,
        };
        if !offered {
            return Err(unknown_action());
        }
        if op.kind.is_destructive() && op.old_text.is_empty() {
            let mut refusal =
                Refusal::new(RefusalKind::MissingOldText, "which entry? give a part of its text");
            refusal.details.entries = Some(self.live(target).to_vec());
            refusal.details.usage = Some((self.size(target), self.limit(target)));
            return Err(refusal);
        }
        if op.kind != OperationKind::Remove && op.content.is_empty() {
            return Err(Refusal::new(RefusalKind::MissingContent, "the text is missing"));
        }
        Ok(())
    }

    /// Reads one operation of the tool's arguments.
    pub fn operation(&self, value: &Value) -> Operation {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("action") {
            "add" => OperationKind::Add,
            "replace" => OperationKind::Replace,
            "remove" => OperationKind::Remove,
            "patch" if self.knobs.edit == MemoryEdit::Patch => OperationKind::Patch,
            _ => OperationKind::Unknown,
        };
        let mut content = text("content");
        if content.is_empty() && self.knobs.new_text_alias {
            content = text("new_text");
        }
        Operation {
            target: value.get("target").and_then(Value::as_str).map(str::to_owned),
            pin: value.get("matched_entry").and_then(Value::as_str).map(str::to_owned),
            ..Operation::new(kind, text("old_text"), content)
        }
    }

    /// Stages a call. Where approval is bound to an entry, each destructive operation is given the one that it
    /// selects now; what selects none cannot be staged.
    fn stage(&self, mut call: Call) -> Result<Staged, Refusal> {
        for op in call.operations.iter_mut().filter(|op| op.kind.is_destructive()) {
            op.pin = None;
            if !self.knobs.pinned_approval {
                continue;
            }
            let old =
                if op.kind == OperationKind::Patch { op.old_text.as_str() } else { strip(&op.old_text) };
            match self.search().locate(self.live(call.target), old) {
                Located::At(at) => op.pin = Some(self.live(call.target)[at].clone()),
                Located::Ambiguous(_) => {
                    return Err(Refusal::new(RefusalKind::Ambiguous, "several entries match"));
                }
                Located::Nothing(_) => return Err(Refusal::new(RefusalKind::NoMatch, "no entry matches")),
            }
        }
        Ok(Staged { target: call.target, operations: call.operations, batch: call.batch })
    }
}

fn unknown_action() -> Refusal {
    Refusal::new(RefusalKind::InvalidArgs, "unknown action")
}

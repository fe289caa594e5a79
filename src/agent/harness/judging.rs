//! Commands are judged before they run: the guard decides, the reviewer lane and the scripted user answer.

use crate::agent::guard::{Answer, Context, Homes, Kind, Question, Request, ReviewRequest, ReviewerFailed};
use crate::ledger::{GuardDecision, Lane, What};
use crate::model::Model;
use crate::policy::UserAnswer;
use crate::world::Millis;
use crate::world::clock::SECOND;

use super::Origin;
use super::dispatch::ToolResult;
use super::host::Run;
use super::sending::Aside;

impl<M: Model> Run<'_, M> {
    /// Who could answer a question about a command.
    fn context(&self) -> Context {
        let policy = &self.harness.policy;
        match self.session.origin {
            Origin::Foreground => Context::of_platform(&policy.turn.platform, &policy.guard),
            Origin::Cron => Context::Cron,
            Origin::Child => Context::Child,
            Origin::Review | Origin::Curator => Context::Helper,
        }
    }

    /// True when what runs in the terminal reaches more than the workspace.
    fn reaches_host(&self) -> bool {
        !self.harness.policy.terminal.confined
    }

    /// Judges a tool that runs code as a whole; a refusal if it must not run.
    pub(super) fn judge_code(&mut self, code: &str) -> Option<ToolResult> {
        let knobs = &self.harness.policy.guard;
        let refused = knobs.enabled
            && self.harness.guard.refuses_code(self.context(), &knobs.backend, self.reaches_host());
        if !refused {
            return None;
        }
        let event = GuardDecision {
            lane: self.session.lane,
            command: code.into(),
            approved: false,
            kind: Kind::UnattendedDenied.word().into(),
            rule: "execute_code".into(),
            hardline: false,
        };
        self.event(What::GuardDecision(event));
        Some(ToolResult::refused(
            "guard",
            "Code is not run where nobody can be asked; do not try it another way.",
        ))
    }

    /// Judges a command; a refusal if it must not run.
    pub(super) fn judge_command(&mut self, turn: u64, command: &str) -> Option<ToolResult> {
        let knobs = &self.harness.policy.guard;
        if !knobs.enabled {
            return None;
        }
        let answer = match knobs.user_answer {
            UserAnswer::Once => Answer::Once,
            UserAnswer::Session => Answer::Session,
            UserAnswer::Always => Answer::Always,
            UserAnswer::Deny => Answer::Deny,
            UserAnswer::Timeout => Answer::Timeout,
        };
        let homes = Homes { user: "/home/lab".to_owned(), agent: "/home/lab/.hermes".to_owned() };
        let (backend, name) = (knobs.backend.clone(), self.session.approved_as.clone());
        let waits = knobs.human_timeout_seconds;
        let request = Request {
            command,
            homes: &homes,
            session: &name,
            context: self.context(),
            backend: &backend,
            reaches_host: self.reaches_host(),
        };
        // The reviewer is asked through the harness, which the guard is a part of.
        let mut guard = std::mem::take(&mut self.harness.guard);
        let (harness, session) = (&mut *self.harness, &*self.session);
        let mut reviewer = |question: &ReviewRequest<'_>| {
            let aside = Aside {
                lane: Lane::Approver,
                session,
                turn,
                text: &format!("May this run? {}\nRule: {}", question.command, question.rule),
                patience: Millis::MAX,
            };
            harness.ask_aside(&aside).map(|reply| reply.text.unwrap_or_default()).map_err(|_| ReviewerFailed)
        };
        let mut human = |_: &Question<'_>| answer;
        let decision = guard.decide(&request, &mut reviewer, &mut human);
        self.harness.guard = guard;
        if decision.kind == Kind::Timeout {
            let waited = Millis::try_from(waits).unwrap_or(Millis::MAX / SECOND).saturating_mul(SECOND);
            self.harness.advance_to(self.harness.clock.now().saturating_add(waited));
        }
        let event = GuardDecision {
            lane: self.session.lane,
            command: command.into(),
            approved: decision.approved,
            kind: decision.kind.word().into(),
            rule: decision.floor.as_deref().or(decision.rule.as_deref()).unwrap_or_default().into(),
            hardline: decision.floor.is_some(),
        };
        self.event(What::GuardDecision(event));
        (!decision.approved).then(|| ToolResult::refused("guard", decision.message))
    }
}

//! Commands are judged before they run: the guard decides, the reviewer lane and the scripted user answer.

use crate::agent::guard::{Answer, Context, Homes, Question, Request, ReviewRequest, ReviewerFailed};
use crate::ledger::{GuardDecision, Lane, What};
use crate::model::Model;
use crate::policy::UserAnswer;
use crate::world::Millis;

use super::Origin;
use super::dispatch::ToolResult;
use super::host::Run;
use super::sending::Aside;

impl<M: Model> Run<'_, M> {
    /// Judges a command; a refusal if it must not run.
    pub(super) fn judge_command(&mut self, turn: u64, command: &str) -> Option<ToolResult> {
        let knobs = &self.harness.policy.guard;
        if !knobs.enabled {
            return None;
        }
        let homes = Homes { user: "/home/lab".to_owned(), agent: "/home/lab/.hermes".to_owned() };
        let context = match self.session.origin {
            Origin::Foreground => Context::Interactive,
            Origin::Cron => Context::Cron,
            // Nobody is there to ask; what would be asked about is refused at once.
            Origin::Review | Origin::Child | Origin::Curator => Context::Platform,
        };
        let answer = match knobs.user_answer {
            UserAnswer::Once => Answer::Once,
            UserAnswer::Session => Answer::Session,
            UserAnswer::Always => Answer::Always,
            UserAnswer::Deny => Answer::Deny,
            UserAnswer::Timeout => Answer::Timeout,
        };
        let backend = knobs.backend.clone();
        let name = self.session.approved_as.clone();
        let request = Request {
            command,
            homes: &homes,
            session: &name,
            context,
            backend: &backend,
            reaches_host: false,
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

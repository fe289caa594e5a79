//! Commands are judged before they run: the guard decides, the reviewer lane and the scripted user answer.

use crate::agent::guard::{Answer, Context, Homes, Question, Request, ReviewRequest, ReviewerFailed};
use crate::ledger::{GuardDecision, Lane, What};
use crate::model::{Ask, Model, Sent};
use crate::policy::UserAnswer;
use crate::wire::Row;

use super::Origin;
use super::dispatch::ToolResult;
use super::host::Run;

impl<M: Model> Run<'_, M> {
    /// Judges a command; a refusal if it must not run.
    pub(super) fn judge_command(&mut self, command: &str) -> Option<ToolResult> {
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
        let name = self.session.name.clone();
        let request = Request {
            command,
            homes: &homes,
            session: &name,
            context,
            backend: &backend,
            reaches_host: false,
        };
        let model = &mut self.harness.model;
        let mut reviewer = |question: &ReviewRequest<'_>| {
            let rows = [Row::user(format!("May this run? {}\nRule: {}", question.command, question.rule))];
            let ask = Ask {
                lane: Lane::Approver,
                session: &name,
                turn: 0,
                tools: &[],
                system: "",
                rows: &rows,
                sent: Sent::default(),
            };
            model.reply(&ask).map(|reply| reply.text.unwrap_or_default()).map_err(|_| ReviewerFailed)
        };
        let mut human = |_: &Question<'_>| answer;
        let decision = self.harness.guard.decide(&request, &mut reviewer, &mut human);
        let floor = self.harness.guard.classify(command, &homes).hardline;
        let event = GuardDecision {
            lane: self.session.lane,
            command: command.into(),
            approved: decision.approved,
            kind: decision.kind.word().into(),
            rule: floor.as_deref().or(decision.rule.as_deref()).unwrap_or_default().into(),
            hardline: floor.is_some(),
        };
        self.event(What::GuardDecision(event));
        (!decision.approved).then(|| ToolResult::refused("guard", decision.message))
    }
}

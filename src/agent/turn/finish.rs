//! Leaving the loop: every exit leaves a history that a provider accepts and an honest report.

use crate::model::ModelError;
use crate::wire::{Row, ToolCall};

use super::{Host, Turn, TurnReport, nudge, text};

/// Closes a user row that got no answer.
pub const UNANSWERED: &str = "I could not answer this.";

impl<H: Host> Turn<'_, H> {
    /// An early end: nothing half-made stays, a trailing result is closed by a visible row.
    pub(super) fn end_partial(mut self, why: &str) -> TurnReport {
        self.pop_scaffolding();
        self.report.partial = true;
        if why.is_empty() {
            self.report.answer = self.answer.take();
        } else {
            if self.agent.transcript.last().is_some_and(Row::is_tool) {
                self.push(Row::assistant(format!("I had to stop: {why}.")));
            }
            self.report.answer = Some(format!("I had to stop: {why}."));
            self.report.answer_is_synthetic = true;
        }
        self.close_open();
        self.flush();
        self.report.budget_used = self.budget.used();
        self.report
    }

    /// A user row that got no answer is closed, so that the next one does not have to be merged into it: that would
    /// change a row which was sent already.
    fn close_open(&mut self) {
        if !self.policy.close_failed {
            return;
        }
        let open: Vec<ToolCall> =
            self.agent.transcript.last().map(|row| row.call_list().to_vec()).unwrap_or_default();
        for call in &open {
            self.refuse(call, "interrupted", "not run: the turn could not go on");
        }
        let last = self.agent.transcript.last();
        if !open.is_empty() || last.is_some_and(Row::is_user) {
            self.push(Row::assistant(UNANSWERED));
        }
    }

    pub(super) fn leave(mut self, exit: Option<&'static str>) -> Result<TurnReport, ModelError> {
        let mut exit = exit;
        if self.answer.is_none() && exit.is_none() && !self.report.interrupted {
            self.ask_for_summary()?;
            exit = Some("max_iterations_reached");
        }
        let mut exit = exit.unwrap_or("unknown");
        self.pop_tail_scaffolding_of_failure(exit);
        let tail_is_tool = self.agent.transcript.last().is_some_and(Row::is_tool);
        if self.report.interrupted {
            let (closed, hidden, content) = close_interrupted(self.agent.transcript.rows(), None);
            if closed {
                let row = Row::assistant(content.unwrap_or_default());
                self.push(if hidden { row.with("display_kind", "hidden") } else { row });
            }
            self.answer = None;
        } else if tail_is_tool && self.answer.as_deref().unwrap_or_default().is_empty() {
            self.report.failed = true;
            exit = if self.persistence_failed { "session_persistence_failed" } else { "pending_tool_result" };
            self.push(Row::assistant("I could not finish this step."));
            self.answer = Some("I could not finish this step.".to_owned());
            self.report.answer_is_synthetic = true;
        }
        self.explain_fragments(exit);
        self.close_open();
        self.flush();
        let below = self.policy.iterations_max.is_none_or(|max| self.report.iterations < max);
        self.report.completed = self.answer.is_some()
            && !self.report.failed
            && !self.report.interrupted
            && (below || exit == "text_response");
        self.report.exit = Some(exit);
        self.report.answer = self.answer.take();
        self.report.budget_used = self.budget.used();
        Ok(self.report)
    }

    fn pop_tail_scaffolding_of_failure(&mut self, exit: &str) {
        if exit == "all_retries_exhausted_no_response" {
            self.pop_scaffolding();
        }
    }

    /// The budget is spent: one more request without tools, one retry when it comes back empty.
    fn ask_for_summary(&mut self) -> Result<(), ModelError> {
        self.pop_scaffolding();
        self.push(Row::user(nudge::STEP_LIMIT));
        if self.policy.store_before_send {
            self.flush();
        }
        let unstored = self.policy.store_before_send && self.persistence_failed;
        for _ in 0..if unstored { 0 } else { 2 } {
            let Ok(reply) = self.ask()? else { break };
            let words = text::visible(reply.text.as_deref().unwrap_or_default());
            if !words.is_empty() {
                self.push(Row::assistant(words.clone()));
                self.answer = Some(words);
                return Ok(());
            }
        }
        let words = "The step limit was reached before there was an answer.".to_owned();
        self.push(Row::assistant(words.clone()));
        self.answer = Some(words);
        self.report.answer_is_synthetic = true;
        Ok(())
    }

    /// A final text that is empty or a bare fragment is explained; rows stay as they are.
    fn explain_fragments(&mut self, exit: &str) {
        let Some(answer) = &self.answer else { return };
        let odd = answer.is_empty()
            || (exit != "text_response" && text::is_fragment(answer, &self.user, self.policy));
        if odd {
            let words = format!("{answer}\n\n(The turn ended before a full answer was given.)");
            self.answer = Some(words.trim().to_owned());
            self.report.answer_is_synthetic = true;
        }
    }
}

/// How an interrupted history must be closed: whether a row is due, whether it is hidden, and its text.
///
/// A row is due when the tail is a tool result: the model then sees that it was interrupted.
pub fn close_interrupted(rows: &[Row], streamed: Option<&str>) -> (bool, bool, Option<String>) {
    if !rows.last().is_some_and(Row::is_tool) {
        return (false, false, None);
    }
    let words = streamed.map(str::trim).unwrap_or_default();
    (true, words.is_empty(), Some(words.to_owned()))
}

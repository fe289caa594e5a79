//! A reply without tool calls: answers, announced steps, cut answers, and the ladder for empty ones.

use crate::agent::transcript::{PREFILL, SCAFFOLD};
use crate::model::{Finish, Reply};
use crate::wire::Row;

use super::{Host, Step, Turn, nudge, text};

/// Rows looked back over for a tool result before an empty reply; Hermes agent/turn_empty_response.py:140.
const TOOL_ROWS_BACK: usize = 5;
/// Retries of a reply whose scratchpad was not closed.
const SCRATCHPAD_RETRIES: u64 = 2;

impl<H: Host> Turn<'_, H> {
    pub(super) fn take_text(&mut self, reply: &Reply) -> Step {
        let raw = reply.text.clone().unwrap_or_default();
        if raw.contains("<REASONING_SCRATCHPAD>") && !raw.contains("</REASONING_SCRATCHPAD>") {
            if self.scratchpad_retries < SCRATCHPAD_RETRIES {
                self.scratchpad_retries += 1;
                return Step::Again;
            }
            return Step::Partial("the model did not finish its scratchpad".to_owned());
        }
        if reply.finish == Finish::Length {
            return self.take_cut(&raw);
        }
        let visible = text::visible(&raw);
        if visible.is_empty() {
            self.answer = Some(String::new());
            return self.take_empty(reply, &raw);
        }
        self.empty_retries = 0;
        self.empty_without_output = 0;
        if !self.host.tools().is_empty()
            && self.stalls < self.policy.stall_nudges_max
            && text::announces_a_step(&visible, self.policy)
        {
            self.stalls += 1;
            self.push(Row::assistant(visible));
            self.push(Row::user(nudge::ANNOUNCED_STEP));
            return Step::Again;
        }
        if text::is_runaway(&visible) {
            return Step::Partial("the model repeated itself without end".to_owned());
        }
        if reply.finish == Finish::ToolCalls && self.announced < self.policy.announced_nudges_max {
            self.announced += 1;
            self.push(Row::assistant(visible).with(SCAFFOLD, true));
            self.push(Row::user(nudge::MISSING_CALL).with(SCAFFOLD, true));
            return Step::Again;
        }
        self.pop_scaffolding();
        let parts = std::mem::take(&mut self.cut_parts);
        self.answer = Some(if parts.is_empty() { visible.clone() } else { parts.concat() + &visible });
        self.push(Row::assistant(visible));
        Step::Leave("text_response")
    }

    fn take_cut(&mut self, raw: &str) -> Step {
        if text::reasoning_left_open(raw) {
            return Step::Partial("the model's output was cut while it was still reasoning".to_owned());
        }
        if text::is_runaway(raw) {
            return Step::Partial("the model repeated itself without end".to_owned());
        }
        if !raw.is_empty() {
            self.cut_parts.push(raw.to_owned());
        }
        if self.cut_nudges == self.policy.cut_nudges_max {
            return self.give_up_on_cut();
        }
        self.cut_nudges += 1;
        if raw.is_empty() {
            self.agent.dirty = true;
        } else {
            self.push(Row::assistant(raw).with("_cut", true));
        }
        self.push(Row::user(nudge::CUT).with("_cut", true));
        Step::Again
    }

    /// The pieces of an answer that was cut too often become one row.
    fn give_up_on_cut(&mut self) -> Step {
        let rows = self.agent.transcript.rows();
        let keep = rows.iter().rposition(|row| !row.flag("_cut")).map_or(0, |at| at + 1);
        self.agent.transcript.truncate(keep);
        let joined = std::mem::take(&mut self.cut_parts).concat();
        let joined = joined.trim().to_owned();
        self.push(Row::assistant(joined.clone()));
        self.answer = Some(joined);
        Step::Partial(String::new())
    }

    /// The ladder for replies without visible text; the first rung that fits.
    fn take_empty(&mut self, reply: &Reply, raw: &str) -> Step {
        let inline = text::has_inline_reasoning(raw);
        if let Some((words, true)) = self.fallback.take() {
            self.pop_scaffolding();
            self.push(Row::assistant(words.clone()));
            self.answer = Some(words);
            return Step::Leave("fallback_prior_turn_content");
        }
        let rows = self.agent.transcript.rows();
        let after_tool = rows.iter().rev().take(TOOL_ROWS_BACK).any(Row::is_tool);
        if after_tool && !self.nudged_since_round && !inline {
            self.nudged_since_round = true;
            self.push(Row::assistant("(no answer)").with(SCAFFOLD, true));
            self.push(Row::user(nudge::EMPTY).with(SCAFFOLD, true));
            return Step::Again;
        }
        let reasons = inline || reply.reasoning.as_deref().is_some_and(|text| !text.trim().is_empty());
        if reasons && self.prefills < self.policy.prefills_max {
            self.prefills += 1;
            let reasoning = reply.reasoning.clone().unwrap_or_else(|| raw.to_owned());
            self.push(Row::assistant("").with("reasoning", reasoning).with(PREFILL, true));
            return Step::Again;
        }
        self.empty_without_output += u64::from(reply.output_tokens == Some(0));
        let deterministic = self.empty_without_output >= 2;
        if self.empty_retries < self.policy.empty_retries && !deterministic {
            self.empty_retries += 1;
            return Step::Again;
        }
        self.pop_scaffolding();
        let words = "The model gave no answer.".to_owned();
        self.push(Row::assistant(words.clone()));
        self.answer = Some(words);
        self.report.answer_is_synthetic = true;
        Step::Leave("empty_response_exhausted")
    }
}

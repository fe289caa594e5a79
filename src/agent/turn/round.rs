//! A reply with tool calls: validation, dispatch, results.

use std::collections::BTreeSet;

use crate::agent::transcript::PREFILL;
use crate::model::Reply;
use crate::policy::ResultOrder;
use crate::wire::{Row, ToolCall};

use super::calls::{self, Arguments};
use super::{Host, Step, Turn, results, segments, text};

/// Rounds of these tools alone do not count as work; Hermes agent/turn_tool_round.py:236.
const HOUSEKEEPING: [&str; 4] = ["memory", "todo_list", "skill_manage", "session_search"];
/// Rounds of this tool alone give their iteration back; Hermes agent/turn_tool_round.py:194.
const REFUNDED: &str = "execute_code";
/// The tool whose calls in one reply are capped; Hermes run_agent.py:1183.
const DELEGATES: &str = "delegate_task";

impl<H: Host> Turn<'_, H> {
    pub(super) fn take_calls(&mut self, mut reply: Reply) -> Step {
        self.rename_ids(&mut reply.calls);
        let tools = self.host.tools();
        for call in &mut reply.calls {
            if !tools.contains(&call.name)
                && let Some(mended) = calls::repair_name(&call.name, &tools)
            {
                call.name = mended;
            }
        }
        if !reply.calls.iter().any(|call| tools.contains(&call.name)) {
            return self.all_unknown(&reply, &tools);
        }
        self.unknown_strikes = 0;
        match calls::check_arguments(&mut reply.calls) {
            Arguments::Good => self.argument_strikes = 0,
            Arguments::Cut => return Step::Partial("the model's tool call was cut off".to_owned()),
            Arguments::Broken => return self.broken_arguments(&reply),
        }
        self.run_round(reply, &tools)
    }

    fn rename_ids(&self, calls: &mut [ToolCall]) {
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let rows = self.agent.transcript.rows();
        let wanted: BTreeSet<&str> = ids.iter().map(|id| calls::call_half(id)).collect();
        // Ids are unique per session almost always, so the walk over earlier rows is paid once per reused id only
        // where the index says so.
        let taken: BTreeSet<String> = rows
            .iter()
            .rev()
            .take(Self::ID_ROWS)
            .flat_map(Row::call_list)
            .map(|call| calls::call_half(&call.id))
            .filter(|id| wanted.contains(id))
            .map(str::to_owned)
            .collect();
        for (call, id) in calls.iter_mut().zip(calls::provider_ids(&calls::unique_ids(&ids, &taken))) {
            call.id = id;
        }
    }

    /// Rows looked back over for a reused id, so that a round costs the same early and late in a session.
    const ID_ROWS: usize = 512;

    fn all_unknown(&mut self, reply: &Reply, tools: &[String]) -> Step {
        self.unknown_strikes += 1;
        if self.unknown_strikes >= self.policy.unknown_tool_strikes {
            for call in &reply.calls {
                self.host.refused(self.agent, call, "unknown", "no such tool");
            }
            return Step::Partial("the model kept calling tools that do not exist".to_owned());
        }
        self.append_assistant(reply);
        for call in &reply.calls {
            self.refuse(call, "unknown", &unknown_text(&call.name, tools));
        }
        self.flush();
        Step::Again
    }

    fn broken_arguments(&mut self, reply: &Reply) -> Step {
        self.argument_strikes += 1;
        if self.argument_strikes <= self.policy.bad_arguments_retries {
            return Step::Again;
        }
        self.argument_strikes = 0;
        self.append_assistant(reply);
        for call in &reply.calls {
            let text = if calls::parses(&call.arguments) {
                "not run: another call of this reply had arguments that are not valid JSON"
            } else {
                "not run: the arguments are not valid JSON; send them again as one JSON object"
            };
            self.refuse(call, "arguments", text);
        }
        self.flush();
        Step::Again
    }

    fn append_assistant(&mut self, reply: &Reply) {
        while self.agent.transcript.last().is_some_and(|row| row.flag(PREFILL)) {
            let len = self.agent.transcript.rows().len();
            self.agent.transcript.truncate(len - 1);
        }
        let words = reply.text.clone().unwrap_or_default();
        let bare_marker = {
            let inner = words.trim();
            inner.starts_with('[')
                && inner.ends_with(']')
                && !inner[1..].contains('[')
                && !inner.contains('\n')
        };
        let content = if bare_marker { String::new() } else { words };
        self.push(Row::calls(content, reply.calls.clone()));
    }

    pub(super) fn refuse(&mut self, call: &ToolCall, by: &'static str, text: &str) {
        self.host.refused(self.agent, call, by, text);
        let answer = serde_json::json!({ "error": text }).to_string();
        self.push(Row::result(calls::result_id(&call.id), call.name.clone(), answer));
    }

    fn run_round(&mut self, mut reply: Reply, tools: &[String]) -> Step {
        let known = |call: &ToolCall| tools.contains(&call.name);
        self.cap_delegations(&mut reply.calls);
        if reply.calls.iter().all(known) {
            let keep = calls::dedupe(&reply.calls);
            if keep.len() < reply.calls.len() {
                reply.calls = keep.iter().map(|&index| reply.calls[index].clone()).collect();
            }
        }
        let words = text::visible(reply.text.as_deref().unwrap_or_default());
        let housekeeping = reply.calls.iter().all(|call| HOUSEKEEPING.contains(&call.name.as_str()));
        if !words.is_empty() {
            self.fallback = Some((words, housekeeping));
        } else if !housekeeping {
            self.fallback = None;
        }
        self.append_assistant(&reply);
        self.flush();
        if self.persistence_failed {
            self.report.failed = true;
            return Step::Leave("session_persistence_failed");
        }
        let first_result = self.agent.transcript.rows().len();
        for call in reply.calls.iter().filter(|call| !known(call)) {
            self.refuse(call, "unknown", &unknown_text(&call.name, tools));
        }
        let valid: Vec<ToolCall> = reply.calls.iter().filter(|call| known(call)).cloned().collect();
        self.run_calls(&valid);
        self.fit_round(first_result);
        self.flush();
        if valid.iter().all(|call| call.name == REFUNDED) && valid.len() == reply.calls.len() {
            self.budget.refund();
        }
        self.nudged_since_round = false;
        self.empty_retries = 0;
        self.empty_without_output = 0;
        self.prefills = 0;
        self.announced = 0;
        self.stalls = 0;
        if self.persistence_failed {
            self.report.failed = true;
            return Step::Leave("session_persistence_failed");
        }
        if let Some(rule) = self.agent.guardrails.halted() {
            let text = format!("I stopped because the same step kept repeating without progress ({rule}).");
            self.push(Row::assistant(text.clone()));
            self.answer = Some(text);
            self.report.answer_is_synthetic = true;
            return Step::Leave("guardrail_halt");
        }
        Step::Again
    }

    /// Delegations beyond the cap are dropped: they get neither a call nor a result.
    fn cap_delegations(&self, calls: &mut Vec<ToolCall>) {
        let mut seen = 0;
        calls.retain(|call| {
            seen += u64::from(call.name == DELEGATES);
            call.name != DELEGATES || seen <= self.host.delegations_max()
        });
    }

    fn run_calls(&mut self, valid: &[ToolCall]) {
        let mut interrupted = false;
        for run in segments::runs(valid, &self.host.cwd(), &[], self.policy.parallel) {
            let mut stop_after_run = false;
            let first = self.agent.transcript.rows().len();
            let batch = run.parallel.then_some(run.calls.len());
            for index in run.calls {
                let call = &valid[index];
                if interrupted {
                    self.refuse(call, "interrupted", "not run: the user stopped the turn");
                    continue;
                }
                let outcome = self.run_one(call, batch.is_none());
                if outcome {
                    // Calls of a parallel run have all started by then.
                    if run.parallel {
                        stop_after_run = true;
                    } else {
                        interrupted = true;
                    }
                }
            }
            interrupted |= stop_after_run;
            if batch.is_some() {
                self.finish_order(first);
                if !self.policy.fit_before_store {
                    self.flush();
                }
            }
        }
        if interrupted {
            self.report.interrupted = true;
        }
    }

    /// Where results are kept in finishing order: calls start in call order, each on the first worker that is free,
    /// and take as long as their result is.
    fn finish_order(&mut self, first: usize) {
        if self.policy.result_order == ResultOrder::Call {
            return;
        }
        let measure = self.host.measure();
        let mut workers = vec![0; usize::try_from(self.policy.workers_max).unwrap_or(usize::MAX).min(64)];
        let mut done: Vec<(usize, Row)> = Vec::new();
        for row in &self.agent.transcript.rows()[first..] {
            let Some(free) = workers.iter_mut().min() else { return };
            *free += row.content.flat().len();
            done.push((*free, row.clone()));
        }
        done.sort_by_key(|(at, _)| *at);
        self.agent.transcript.truncate(first);
        for (_, row) in done {
            self.agent.transcript.push(row, measure);
        }
    }

    /// Runs one call and appends its result; true when the user stopped the turn meanwhile.
    fn run_one(&mut self, call: &ToolCall, store: bool) -> bool {
        let before = self.agent.guardrails.before(&call.name, &call.arguments, self.policy);
        if before.blocks() {
            self.refuse(
                call,
                "guardrail",
                "not run: this call was repeated without progress; try something else",
            );
            return false;
        }
        let outcome = self.host.dispatch(self.agent, call);
        if outcome.dispatched {
            match call.name.as_str() {
                "memory" => self.agent.counters.turns_since_memory = 0,
                "skill_manage" => self.agent.counters.since_skill = 0,
                _ => {}
            }
        }
        if let Some(steer) = outcome.steer {
            let pending = self.agent.pending_steer.take();
            self.agent.pending_steer =
                Some(pending.map_or(steer.clone(), |first| format!("{first}\n{steer}")));
        }
        let row = self.shape(call, &outcome.text, outcome.failed);
        self.push(row);
        if store && !self.policy.fit_before_store {
            self.flush();
        }
        outcome.interrupt
    }

    /// A result as a row: guardrail note or stub, spilling, hints, fence.
    fn shape(&mut self, call: &ToolCall, result: &str, failed: bool) -> Row {
        let after = self.agent.guardrails.after(&call.name, &call.arguments, result, failed, self.policy);
        let mut text = result.to_owned();
        if after.stub {
            text.replace_range(.., "[same result as the call before; not repeated]");
        } else if after.decision.action == "warn" {
            let rule = after.decision.code.unwrap_or_default();
            text = format!("{text}\n[note: {rule}, {} times]", after.decision.count);
        }
        if let Some(notice) = after.notice {
            text = format!("{text}\n[note: {notice}]");
        }
        let mut spilled = false;
        let chars = text.chars().count() as u64;
        if self.limits.for_tool(&call.name).is_some_and(|max| chars > max) {
            text = self.put_aside(&call.id, &text);
            spilled = true;
        }
        for hint in self.host.hints(call) {
            text = format!("{text}\n\n{hint}");
        }
        let fenced = results::fence(&call.name, &text);
        let row = Row::result(calls::result_id(&call.id), call.name.clone(), fenced.text);
        if spilled { row.with("_spilled", true) } else { row }
    }

    fn put_aside(&mut self, call_id: &str, text: &str) -> String {
        match self.host.spill(&results::spill_name(call_id), text) {
            Some(path) => results::reference(text, &path, self.policy),
            None => results::reference(text, "a place that could not be written", self.policy),
        }
    }

    /// Puts the largest results aside until the batch fits its budget.
    fn fit_round(&mut self, first: usize) {
        let rows = &self.agent.transcript.rows()[first..];
        let sizes: Vec<u64> = rows.iter().map(|row| row.content.flat().chars().count() as u64).collect();
        if sizes.iter().sum::<u64>() <= self.limits.round_chars {
            return;
        }
        let spilled: Vec<bool> = rows.iter().map(|row| row.flag("_spilled")).collect();
        let chosen =
            results::over_budget(&sizes, &spilled, self.limits.round_chars, self.policy.preview_chars);
        for index in chosen {
            let row = &self.agent.transcript.rows()[first + index];
            let (id, full) = (row.tool_call_id.clone().unwrap_or_default(), row.content.flat());
            let text = self.put_aside(&id, &full);
            let measure = self.host.measure();
            self.agent.transcript.edit(first + index, |row| row.content = text.into(), measure);
        }
    }
}

fn unknown_text(name: &str, tools: &[String]) -> String {
    if name.trim().is_empty() {
        "a tool call needs the name of a tool".to_owned()
    } else {
        format!("there is no tool `{name}`; the tools are: {}", tools.join(", "))
    }
}

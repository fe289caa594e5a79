//! Children: a task handed to an agent of its own, of which only the summary comes back.

use serde_json::{Value, json};

use crate::agent::turn::Agent;
use crate::ledger::{Delegation, Lane, Name, SessionStarted, What};
use crate::model::Model;
use crate::store::NewSession;
use crate::wire::Row;

use super::dispatch::ToolResult;
use super::host::Run;
use super::session::Permits;
use super::{Harness, HarnessError, Origin, Session};

/// Tools that no child gets; Hermes tools/delegate_tool_toolsets.py:14.
const BLOCKED: [&str; 5] = ["delegate_task", "clarify", "memory", "send_message", "cronjob_manage"];

impl<M: Model> Run<'_, M> {
    pub(super) fn delegate_task(&mut self, _: &mut Agent, arguments: &Value) -> ToolResult {
        let goals: Vec<String> =
            match arguments.get("tasks").and_then(Value::as_array).filter(|list| !list.is_empty()) {
                Some(tasks) => tasks
                    .iter()
                    .map(|task| task.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned())
                    .collect(),
                None => vec![arguments.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned()],
            };
        let (name, depth, tools) =
            (self.session.name.clone(), self.session.depth, self.session.tools.clone());
        match self.harness.spawn(&name, depth, &goals, &tools) {
            Ok(Ok(summaries)) => {
                let results: Vec<Value> = summaries
                    .into_iter()
                    .enumerate()
                    .map(|(index, summary)| json!({ "task_index": index, "status": "completed", "summary": summary }))
                    .collect();
                ToolResult::done(json!({ "results": results }).to_string())
            }
            Ok(Err(refusal)) => ToolResult::failed(refusal),
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

impl<M: Model> Harness<M> {
    /// A child asked for outside a turn, by an agent of this depth that offers these tools.
    ///
    /// # Errors
    /// When the script has no answer for the child.
    pub fn delegate_outside(&mut self, depth: u64, goal: &str, tools: &[String]) -> Result<(), HarnessError> {
        let parent = self.open.clone().unwrap_or_else(|| self.world.clone());
        self.spawn(&parent, depth, &[goal.to_owned()], tools).map(|_| ())
    }

    /// Spawns children, runs them one after another, and answers their summaries in task order.
    fn spawn(
        &mut self,
        parent: &Name,
        depth: u64,
        goals: &[String],
        asked: &[String],
    ) -> Result<Result<Vec<String>, String>, HarnessError> {
        let policy = &self.policy.delegate;
        let defaults = crate::policy::Delegate::default();
        let refusal = if depth >= policy.max_spawn_depth {
            Some("depth_limit")
        } else if goals.iter().any(|goal| goal.trim().is_empty()) {
            Some("goal_missing")
        } else if goals.len() as u64 > policy.max_concurrent_children {
            Some("too_many_tasks")
        } else {
            None
        };
        let may_delegate = policy.orchestrator_enabled && depth + 1 < policy.max_spawn_depth;
        let open = !policy.block_tools;
        let granted: Vec<String> = asked
            .iter()
            .filter(|tool| {
                open || !BLOCKED.contains(&tool.as_str()) || (may_delegate && *tool == "delegate_task")
            })
            .cloned()
            .collect();
        let mut event = Delegation {
            depth,
            depth_max: defaults.max_spawn_depth,
            children: goals.len() as u64,
            children_max: defaults.max_concurrent_children,
            accepted: refusal.is_none(),
            refusal: refusal.unwrap_or_default().into(),
            asked: asked.iter().map(|tool| tool.as_str().into()).collect(),
            granted: Vec::new(),
            returned_chars: 0,
        };
        if let Some(refusal) = refusal {
            self.event(parent, What::Delegation(event));
            return Ok(Err(refusal.to_owned()));
        }
        event.granted = granted.iter().map(|tool| tool.as_str().into()).collect();
        let mut summaries = Vec::new();
        for goal in goals {
            summaries.push(self.child(parent, depth + 1, goal, &granted)?);
        }
        event.returned_chars = summaries.iter().map(|summary| summary.chars().count() as u64).sum();
        self.event(parent, What::Delegation(event));
        Ok(Ok(summaries))
    }

    fn child(
        &mut self,
        parent: &Name,
        depth: u64,
        goal: &str,
        tools: &[String],
    ) -> Result<String, HarnessError> {
        self.children += 1;
        let name: Name = format!("{parent}-child-{}", self.children).into();
        let now = self.clock.now();
        let mut new = NewSession::of(&name, "subagent");
        let mark = json!({ "_delegate_from": &**parent });
        new.model_config = mark.as_object();
        let known_parent = self.store.session(parent)?.is_some();
        self.store
            .create_session(&if known_parent { new.clone().child_of(parent) } else { new.clone() }, now)?;
        let started =
            SessionStarted { why: "delegate".into(), parent: parent.clone(), depth, persisted: true };
        self.event(&name, What::SessionStarted(started));
        // Memory and project files are off for children.
        let memory = crate::agent::memory::MemoryStore::new(&self.policy.memory, &self.policy.threats);
        let mut child = Session::new(name.clone(), Lane::Child, &self.policy, memory, now);
        child.depth = depth;
        child.origin = Origin::Child;
        child.agent.counts_iterations = false;
        child.iterations_max = Some(self.policy.delegate.max_iterations);
        child.keep_tools(|tool| tools.iter().any(|granted| granted == tool));
        let denied = crate::agent::tools::SPECS.iter().map(|spec| spec.name.to_owned());
        child.permits = Permits::without(denied.filter(|tool| !tools.contains(tool)));
        Run { harness: self, session: &mut child }.build_prompt("first")?;
        let report = self.run_loop(&mut child, Row::user(goal))?;
        self.store.end_session(&name, "agent_close", self.clock.now())?;
        let summary = report.answer.unwrap_or_default();
        Ok(crop(&summary, self.policy.delegate.max_summary_chars))
    }
}

/// A summary cut to its budget; 0 is without limit.
fn crop(summary: &str, chars_max: u64) -> String {
    let max = usize::try_from(chars_max).unwrap_or(usize::MAX);
    if max == 0 || summary.chars().count() <= max {
        return summary.to_owned();
    }
    summary.chars().take(max).chain("\n[cut]".chars()).collect()
}

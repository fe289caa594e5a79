//! Children: a task handed to an agent of its own, of which only an entry with a summary comes back.
//!
//! A call by the root is answered at once; its children run after the turn, and their results arrive as a message of
//! their own. A child that delegates waits.

use serde_json::{Value, json};

use crate::agent::delegate::{
    self, Asked, Call, Catalogue, Ended, Entry, Refusal, Role, SchemaOutcome, Task, Toolset,
};
use crate::agent::turn::Agent;
use crate::ledger::{Delegation, Lane, Name, SessionStarted, What};
use crate::model::Model;
use crate::store::NewSession;
use crate::store::retry::WriteKind;
use crate::wire::Row;
use crate::wire::tools::SPECS;
use crate::world::Files as _;
use crate::world::clock::SECOND;

use super::dispatch::ToolResult;
use super::host::Run;
use super::prompting::{environment, objections};
use super::session::Permits;
use super::{Harness, HarnessError, Origin, Session};

/// Tasks that were admitted and have not run.
#[derive(Debug, Clone)]
pub struct Pending {
    tasks: Vec<Task>,
    granted: Vec<String>,
    /// The turn that asked for them.
    turn: u64,
}

/// The children of one call, those that run and those that wait.
#[derive(Debug)]
pub(super) struct Batch {
    parent: Parent,
    granted: Vec<String>,
    waiting: std::collections::VecDeque<(usize, Task)>,
    done: Vec<(usize, Entry)>,
    /// What went wrong with a child that ran between two requests of another.
    failed: Option<HarnessError>,
}

/// The agent that asks for children.
#[derive(Debug, Clone)]
struct Parent {
    name: Name,
    depth: u64,
    tools: Vec<String>,
    /// Where it works, from the workspace's root.
    directory: String,
    /// Its turn, from 1; 0 outside a turn.
    turn: u64,
    /// Children that the turn has spawned so far.
    spawned: u64,
    /// Size of its last prompt; 0 when unknown.
    used: u64,
}

impl Parent {
    fn of(session: &Session, agent: &Agent) -> Self {
        let (name, depth, tools) = (session.name.clone(), session.depth, session.tools.clone());
        let (used, directory) = (agent.transcript.size(), session.directory.clone());
        Self { name, depth, tools, directory, turn: agent.turns, spawned: session.spawned, used }
    }
}

impl<M: Model> Run<'_, M> {
    pub(super) fn delegate_task(&mut self, agent: &mut Agent, arguments: &Value) -> ToolResult {
        let parent = Parent::of(self.session, agent);
        let tasks = match self.harness.admit(&parent, arguments) {
            Ok(tasks) if tasks.is_empty() => {
                let waiting: usize = self.session.pending.iter().map(|pending| pending.tasks.len()).sum();
                return ToolResult::done(json!({ "children": [], "waiting": waiting }).to_string());
            }
            Ok(tasks) => tasks,
            Err(refusal) => return ToolResult::failed(refusal.to_string()),
        };
        self.session.spawned += tasks.len() as u64;
        let granted = self.harness.granted(&parent);
        let room = (self.session.pending.len() as u64) < self.harness.policy.delegate.max_concurrent_children;
        let can_receive = matches!(self.session.origin, Origin::Foreground);
        if delegate::runs_in_background(parent.depth) && can_receive && room {
            let goals: Vec<&str> = tasks.iter().map(|task| task.goal.as_str()).collect();
            let receipt = json!({ "status": "dispatched", "goals": goals });
            self.session.pending.push(Pending { tasks, granted, turn: parent.turn });
            return ToolResult::done(receipt.to_string());
        }
        match self.harness.run_children(&parent, &tasks, &granted) {
            Ok(entries) => ToolResult::done(results(&entries).to_string()),
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

fn results(entries: &[Entry]) -> Value {
    json!({ "results": entries.iter().map(|entry| &entry.0).collect::<Vec<_>>() })
}

impl<M: Model> Harness<M> {
    /// A child asked for outside a turn, by an agent of this depth that offers these tools.
    ///
    /// # Errors
    /// When the script has no answer for the child.
    pub fn delegate_outside(&mut self, depth: u64, goal: &str, tools: &[String]) -> Result<(), HarnessError> {
        let name = self.open.clone().unwrap_or_else(|| self.world.clone());
        let directory = String::new();
        let parent = Parent { name, depth, tools: tools.to_vec(), directory, turn: 0, spawned: 0, used: 0 };
        if let Ok(tasks) = self.admit(&parent, &json!({ "goal": goal })) {
            let granted = self.granted(&parent);
            self.run_children(&parent, &tasks, &granted)?;
        }
        Ok(())
    }

    /// Runs what a turn left to its children; every unit of results opens a turn of its own.
    pub(super) fn deliver_children(&mut self, session: &mut Session) -> Result<(), HarnessError> {
        let policy = &self.policy.delegate;
        let independent = policy.independent_completions;
        while !session.pending.is_empty() {
            let pending = session.pending.remove(0);
            let parent = Parent { turn: pending.turn, ..Parent::of(session, &session.agent) };
            let entries = self.run_children(&parent, &pending.tasks, &pending.granted)?;
            let groups: Vec<Value> = pending.tasks.iter().map(|task| task.group.clone()).collect();
            for unit in delegate::completion_units(&groups, independent) {
                let entries: Vec<Entry> = unit.iter().map(|place| entries[*place].clone()).collect();
                let row = Row::user(format!("[Delegated work has ended]\n{}", results(&entries)));
                self.whole_turn(session, row.with("display_kind", "delegation"))?;
            }
        }
        Ok(())
    }

    /// The admitted tasks of a call. A refusal is recorded.
    fn admit(&mut self, parent: &Parent, arguments: &Value) -> Result<Vec<Task>, Refusal> {
        let call = Call {
            arguments,
            has_parent: true,
            depth: parent.depth,
            paused: false,
            spawned_this_turn: parent.spawned,
            oneshot_children: None,
        };
        let admitted = delegate::admit(&call, &self.policy.delegate);
        if let Err(refusal) = &admitted {
            let asked = arguments["tasks"].as_array().map_or(1, |tasks| tasks.len() as u64);
            let refused =
                Delegation { refusal: refusal.to_string().as_str().into(), ..self.delegation(parent, asked) };
            self.event(&parent.name, What::Delegation(refused));
        }
        admitted
    }

    fn delegation(&self, parent: &Parent, children: u64) -> Delegation {
        let defaults = crate::policy::Delegate::default();
        Delegation {
            depth: parent.depth,
            depth_max: defaults.max_spawn_depth,
            turn: parent.turn,
            children,
            children_max: defaults.max_concurrent_children,
            accepted: false,
            refusal: self.world.clone(),
            asked: parent.tools.iter().map(|tool| tool.as_str().into()).collect(),
            granted: Vec::new(),
            returned_chars: 0,
        }
    }

    /// The parent's tools that a child gets. A set that the parent has in part is not widened.
    fn granted(&self, parent: &Parent) -> Vec<String> {
        let policy = &self.policy.delegate;
        if !policy.block_tools {
            return parent.tools.clone();
        }
        let mut catalogue = Catalogue::default();
        for spec in &SPECS {
            let set: &mut Toolset = catalogue.0.entry(spec.toolset.to_owned()).or_default();
            set.tools.push(spec.name.to_owned());
        }
        let home = |tool: &String| SPECS.iter().find(|spec| spec.name == *tool);
        let loaded = parent.tools.iter().filter_map(home).map(|spec| spec.toolset.to_owned()).collect();
        let asked = Asked { loaded, inherit_external: policy.inherit_mcp_toolsets, ..Asked::default() };
        let child = delegate::child_tools(&asked, Role::at(parent.depth + 1, policy), &catalogue);
        parent.tools.iter().filter(|tool| child.tools.contains(*tool)).cloned().collect()
    }

    /// Runs children one after another; their entries come in the order of the tasks.
    fn run_children(
        &mut self,
        parent: &Parent,
        tasks: &[Task],
        granted: &[String],
    ) -> Result<Vec<Entry>, HarnessError> {
        self.waiting_children.push(Batch {
            parent: parent.clone(),
            granted: granted.to_vec(),
            waiting: tasks.iter().cloned().enumerate().collect(),
            done: Vec::new(),
            failed: None,
        });
        let mut failed = None;
        while failed.is_none() {
            match self.next_child() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => failed = Some(error),
            }
        }
        let (mut done, beside) =
            self.waiting_children.pop().map(|batch| (batch.done, batch.failed)).unwrap_or_default();
        if let Some(error) = failed.or(beside) {
            return Err(error);
        }
        done.sort_by_key(|(index, _)| *index);
        let mut entries: Vec<Entry> = done.into_iter().map(|(_, entry)| entry).collect();
        self.fit(parent, &mut entries)?;
        let event = Delegation {
            accepted: true,
            granted: granted.iter().map(|tool| tool.as_str().into()).collect(),
            returned_chars: entries.iter().map(|entry| entry.summary().chars().count() as u64).sum(),
            ..self.delegation(parent, tasks.len() as u64)
        };
        self.event(&parent.name, What::Delegation(event));
        Ok(entries)
    }

    /// Runs the child that waits next in the innermost delegation; false when none waits.
    fn next_child(&mut self) -> Result<bool, HarnessError> {
        let depth = self.waiting_children.len();
        let Some(batch) = self.waiting_children.last_mut() else { return Ok(false) };
        let Some((index, task)) = batch.waiting.pop_front() else { return Ok(false) };
        let (parent, granted) = (batch.parent.clone(), batch.granted.clone());
        let entry = self.child(&parent, index, &task, &granted)?;
        // A child's own delegations have come and gone; its batch is in its place again.
        if let Some(batch) = depth.checked_sub(1).and_then(|at| self.waiting_children.get_mut(at)) {
            batch.done.push((index, entry));
        }
        Ok(true)
    }

    /// While a child waits for its reply, the one that waits next runs. What goes wrong with it is told when the
    /// delegation ends: the child that waited is not to blame.
    pub(super) fn run_waiting_child(&mut self) {
        if let Err(error) = self.next_child()
            && let Some(batch) = self.waiting_children.last_mut()
        {
            batch.failed.get_or_insert(error);
        }
    }

    /// Cuts the summaries to what the parent can take in; the full texts go to files.
    fn fit(&mut self, parent: &Parent, entries: &mut [Entry]) -> Result<(), HarnessError> {
        let said = entries.iter().filter(|entry| !entry.summary().is_empty()).count() as u64;
        let window = Value::from(self.policy.compress.window);
        let dynamic = delegate::budget(&window, parent.used, 0, said);
        let Some(cap) = delegate::cap(dynamic, self.policy.delegate.max_summary_chars) else {
            return Ok(());
        };
        for (index, entry) in entries.iter_mut().enumerate() {
            let full = entry.summary().to_owned();
            if let Some(cut) = delegate::trim(&full, cap) {
                let path = format!("delegation/{}-{}-{index}.txt", parent.name, self.children);
                self.workspace.write(&path, full.as_bytes())?;
                entry.cut_summary(&cut.render(full.chars().count(), Some(&path)), Some(&path));
            }
        }
        Ok(())
    }

    fn child(
        &mut self,
        parent: &Parent,
        index: usize,
        task: &Task,
        tools: &[String],
    ) -> Result<Entry, HarnessError> {
        self.children += 1;
        let name: Name = format!("{}-child-{}", parent.name, self.children).into();
        let now = self.clock.now();
        let mut new = NewSession::of(&name, "subagent");
        let mark = json!({ "_delegate_from": &*parent.name });
        new.model_config = mark.as_object();
        let known_parent = self.store.session(&parent.name)?.is_some();
        let new = if known_parent { new.clone().child_of(&parent.name) } else { new.clone() };
        self.stored(WriteKind::Transcript, |store| store.create_session(&new, now))?;
        let depth = parent.depth + 1;
        let started =
            SessionStarted { why: "delegate".into(), parent: parent.name.clone(), depth, persisted: true };
        self.event(&name, What::SessionStarted(started));
        // Memory and project files are off for children.
        let memory = crate::agent::memory::MemoryStore::new(&self.policy.memory, &self.policy.threats);
        let mut child = Session::new(name.clone(), Lane::Child, &self.policy, memory, now);
        child.depth = depth;
        child.origin = Origin::Child;
        child.skip_review = true;
        child.agent.counts_iterations = false;
        child.iterations_max = Some(self.policy.delegate.max_iterations);
        child.keep_tools(|tool| tools.iter().any(|granted| granted == tool));
        let denied = SPECS.iter().map(|spec| spec.name.to_owned());
        child.permits = Permits::without(denied.filter(|tool| !tools.contains(tool)));
        child.directory.clone_from(&parent.directory);
        let context = self.project_context(&parent.directory, child.compressor.model().window);
        let policy = &self.policy.delegate;
        let brief = delegate::Brief {
            context: task.context.as_deref(),
            schema: task.schema.as_ref(),
            directory: &environment(&parent.directory).directory,
            context_files: &context.text,
            role: Role::at(depth, policy),
            depth: (depth, policy.max_spawn_depth),
        };
        child.brief = brief.text();
        let mut run = Run { harness: self, session: &mut child };
        run.build_prompt("first")?;
        run.tell_objections("context_file", &objections(Some(&context)));
        let mut report = self.run_loop(&mut child, Row::user(task.goal.as_str()))?;
        let mut outcome = None;
        if let Some(schema) = &task.schema {
            let answer = report.answer.clone().unwrap_or_default();
            let mut checked = delegate::check(&answer, schema);
            let retry = !checked.valid && !answer.is_empty() && !report.interrupted;
            if retry {
                let wrong: Vec<String> =
                    checked.errors.iter().map(|(place, why)| format!("{place}: {why}")).collect();
                let ask = format!("The answer does not fit its schema:\n{}\nAnswer again.", wrong.join("\n"));
                report = self.run_loop(&mut child, Row::user(ask))?;
                checked = delegate::check(report.answer.as_deref().unwrap_or_default(), schema);
            }
            outcome = Some(SchemaOutcome {
                valid: checked.valid,
                errors: checked.errors.iter().map(|(place, why)| format!("{place}: {why}")).collect(),
                retries: u64::from(retry),
            });
        }
        let ended_at = self.clock.now();
        // A rotation gave the child another session.
        let last = child.name.clone();
        self.stored(WriteKind::Ordinary, |store| store.end_session(&last, "agent_close", ended_at))?;
        let ended = Ended {
            text: report.answer.unwrap_or_default(),
            completed: report.completed,
            failed: report.failed,
            interrupted: report.interrupted,
            api_calls: report.requests,
            rows: child.agent.transcript.rows().to_vec(),
            model: child.model.clone(),
            tokens: (child.input_used, child.output_used),
            seconds: (self.clock.now() - now) as f64 / SECOND as f64,
            ..Ended::default()
        };
        Ok(delegate::entry(index, &ended, outcome.as_ref()))
    }
}

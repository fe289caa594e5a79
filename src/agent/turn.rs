//! One user turn: the loop that asks the model, runs tools, and knows when it is done.
//!
//! The loop owns the order of things and nothing else: what a request looks like, who answers it, how a tool runs and
//! where rows are stored is the [`Host`]'s business. So the whole runtime, a test with scripted tools and a replay
//! all run the very same loop.
//!
//! As in the real agent: each iteration counts for the skill nudge, the assistant row is stored before any of its
//! tools runs, each result is stored as it is appended, and every exit leaves a history that a provider accepts.
//! Differs: the loop never sleeps between retries; the host may move the virtual clock. Calls of one batch run one after
//! another, in the order that the policy gives their results. `budget::warning_ratio` reads a user's configuration and
//! `segments::mutation_targets`, `results::fence_words` look at finished rows: the vectors call them, a run does not.

mod answer;
pub mod budget;
pub mod calls;
mod finish;
pub mod guardrails;
mod nudge;
pub mod results;
mod round;
pub mod sanitize;
pub mod segments;
pub mod text;

pub use finish::{UNANSWERED, close_interrupted};

use std::borrow::Cow;

use crate::agent::transcript::{Measure, PREFILL, SCAFFOLD, Transcript};
use crate::model::{ModelError, Reply};
use crate::policy;
use crate::wire::{Chain, Row, ToolCall, repair};
use budget::IterationBudget;
use guardrails::Guardrails;
use results::ResultBudget;

/// What a dispatched tool gave back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutcome {
    /// The result for the model.
    pub text: String,
    /// True when the tool reports a failure.
    pub failed: bool,
    /// False when the call was refused before it ran.
    pub dispatched: bool,
    /// True when the user stopped the turn while it ran.
    pub interrupt: bool,
    /// Text that the user gave while it ran.
    pub steer: Option<String>,
}

/// Why rows could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rows could not be stored: {0}")]
pub struct StoreFault(pub String);

/// Everything around the loop.
pub trait Host {
    /// How sizes are measured.
    fn measure(&self) -> Measure;

    /// Names of the tools that exist for this agent.
    fn tools(&self) -> Vec<String>;

    /// Working directory of the tools.
    fn cwd(&self) -> String {
        "/".to_owned()
    }

    /// False when the run has used up what it may send; asked before each iteration.
    fn within_budget(&self) -> bool {
        true
    }

    /// Called before each request; may compact the transcript. False ends the turn as failed.
    fn before_request(&mut self, agent: &mut Agent) -> bool;

    /// Makes room after the provider called a request too long: true when another attempt is worth it. `None` for any
    /// other fault.
    fn make_room(&mut self, agent: &mut Agent, kind: &str) -> Option<bool> {
        let _ = (agent, kind);
        None
    }

    /// Calls that delegate which one reply may make.
    fn delegations_max(&self) -> u64 {
        u64::MAX
    }

    /// Sends the transcript as it stands and waits for the reply.
    ///
    /// # Errors
    /// What the provider or the script says.
    fn ask(&mut self, agent: &mut Agent, iteration: u64) -> Result<Reply, ModelError>;

    /// Runs one tool call, or refuses it: the one place where tools are dispatched.
    fn dispatch(&mut self, agent: &mut Agent, call: &ToolCall) -> ToolOutcome;

    /// Told of a call that never reaches a tool: unknown, malformed or skipped.
    fn refused(&mut self, agent: &Agent, call: &ToolCall, by: &'static str, reason: &str);

    /// Stores rows that were appended, each given with the digest of what is sent for it.
    ///
    /// # Errors
    /// When the store refuses; the turn then ends failed.
    fn store(&mut self, rows: &[Row], digests: &[Chain]) -> Result<(), StoreFault>;

    /// Puts the full text of a long result aside; answers where, or `None` when that failed.
    fn spill(&mut self, name: &str, text: &str) -> Option<String>;

    /// What the working directory says of the places that a call touched; it follows the result.
    fn hints(&mut self, call: &ToolCall) -> Vec<String> {
        let _ = call;
        Vec::new()
    }

    /// True when the user asked to stop.
    fn interrupted(&mut self) -> bool {
        false
    }

    /// Size of the model's window in tokens, if known.
    fn window(&self) -> Option<i64> {
        None
    }
}

/// Counters of one agent that outlive a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Iterations since a skill was managed.
    pub since_skill: u64,
    /// User turns since memory was used.
    pub turns_since_memory: u64,
}

/// The part of an agent that the loop works on.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// The live conversation.
    pub transcript: Transcript,
    /// Nudge counters.
    pub counters: Counters,
    /// User turns begun.
    pub turns: u64,
    /// Guardrails of the present turn.
    pub guardrails: Guardrails,
    /// Rows already in the store.
    pub stored: usize,
    /// Text that the user gave while tools ran.
    pub pending_steer: Option<String>,
    /// True when iterations count towards the skill nudge.
    pub counts_iterations: bool,
    /// True when the rows may not be well formed and must be looked through before the next request.
    pub dirty: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnReport {
    /// Exit kind; `None` for early partial ends.
    pub exit: Option<&'static str>,
    /// Iterations begun.
    pub iterations: u64,
    /// Iterations that the budget counts.
    pub budget_used: u64,
    /// Requests sent.
    pub requests: u64,
    /// The answer given to the user.
    pub answer: Option<String>,
    /// True when the answer is the loop's own wording.
    pub answer_is_synthetic: bool,
    /// True when the turn reached its end.
    pub completed: bool,
    /// True when something broke.
    pub failed: bool,
    /// True when the model's output could not be used to the end.
    pub partial: bool,
    /// True when the user stopped it.
    pub interrupted: bool,
    /// The provider's last fault.
    pub fault: Option<String>,
    /// Why the answer did not reach its reader, if it did not.
    pub delivery_error: Option<String>,
}

/// What the loop does next.
enum Step {
    /// Another iteration.
    Again,
    /// Leave the loop with this exit.
    Leave(&'static str),
    /// End the turn early as partial, with an explanation.
    Partial(String),
}

/// One run of the loop.
struct Turn<'a, H: Host> {
    host: &'a mut H,
    agent: &'a mut Agent,
    policy: &'a policy::Turn,
    user: String,
    budget: IterationBudget,
    limits: ResultBudget,
    report: TurnReport,
    /// Last answer seen, also an empty one.
    answer: Option<String>,
    fallback: Option<(String, bool)>,
    unknown_strikes: u64,
    argument_strikes: u64,
    empty_retries: u64,
    empty_without_output: u64,
    prefills: u64,
    nudged_since_round: bool,
    announced: u64,
    stalls: u64,
    cut_nudges: u64,
    cut_parts: Vec<String>,
    scratchpad_retries: u64,
    persistence_failed: bool,
}

/// Runs one user turn to its end.
///
/// # Errors
/// [`ModelError::Script`] when the scenario has no answer for a request, [`ModelError::Stopped`] when nobody answers any
/// more. Everything that a provider or a tool does wrong is part of the report.
pub fn run<H: Host>(
    host: &mut H,
    agent: &mut Agent,
    policy: &policy::Turn,
    user: Row,
) -> Result<TurnReport, ModelError> {
    agent.turns += 1;
    agent.guardrails = Guardrails::new(guardrails::hard_stop_default(&policy.platform));
    let measure = host.measure();
    let text = user.content.flat();
    let limits = ResultBudget::for_window(host.window(), policy);
    let open =
        agent.transcript.last().is_some_and(|row| row.is_user() || (row.is_assistant() && row.has_calls()));
    agent.dirty |= open && policy.repair_history;
    agent.transcript.push(user, measure);
    let mut turn = Turn {
        budget: IterationBudget::new(policy.iterations_max),
        host,
        agent,
        policy,
        user: text,
        limits,
        report: TurnReport::default(),
        answer: None,
        fallback: None,
        unknown_strikes: 0,
        argument_strikes: 0,
        empty_retries: 0,
        empty_without_output: 0,
        prefills: 0,
        nudged_since_round: false,
        announced: 0,
        stalls: 0,
        cut_nudges: 0,
        cut_parts: Vec::new(),
        scratchpad_retries: 0,
        persistence_failed: false,
    };
    turn.flush();
    if turn.persistence_failed && policy.store_before_send {
        turn.report.failed = true;
        return turn.leave(Some("session_persistence_failed"));
    }
    turn.drive()
}

impl<H: Host> Turn<'_, H> {
    fn drive(mut self) -> Result<TurnReport, ModelError> {
        let mut exit = None;
        while self.may_go_on() {
            if self.host.interrupted() {
                self.report.interrupted = true;
                exit = Some("interrupted_by_user");
                break;
            }
            if !self.host.within_budget() {
                exit = Some("review_input_budget_exhausted");
                break;
            }
            self.report.iterations += 1;
            if !self.budget.consume() {
                exit = Some("budget_exhausted");
                break;
            }
            match self.iterate()? {
                Step::Again => {}
                Step::Leave(kind) => {
                    exit = Some(kind);
                    break;
                }
                Step::Partial(why) => return Ok(self.end_partial(&why)),
            }
        }
        self.leave(exit)
    }

    fn may_go_on(&self) -> bool {
        let below = self.policy.iterations_max.is_none_or(|max| self.report.iterations < max);
        below && self.budget.left() != Some(0)
    }

    /// Prepares, asks and takes in one reply.
    fn iterate(&mut self) -> Result<Step, ModelError> {
        if self.agent.counts_iterations {
            self.agent.counters.since_skill += 1;
        }
        self.prepare();
        if self.policy.store_before_send {
            self.flush();
            if self.persistence_failed {
                self.report.failed = true;
                return Ok(Step::Leave("session_persistence_failed"));
            }
        }
        if !self.host.before_request(self.agent) {
            self.report.failed = true;
            return Ok(Step::Leave("compression_exhausted"));
        }
        let mut cut_calls = 0;
        loop {
            let reply = match self.ask()? {
                Ok(reply) => reply,
                Err(step) => return Ok(step),
            };
            if reply.interrupted {
                self.report.interrupted = true;
                if let Some(text) = reply.text.filter(|text| !text.trim().is_empty()) {
                    self.push(Row::assistant(text));
                }
                return Ok(Step::Leave("interrupted_during_api_call"));
            }
            let cut = reply.finish == crate::model::Finish::Length;
            if cut && !reply.calls.is_empty() {
                if cut_calls == self.policy.cut_call_retries {
                    return Ok(Step::Partial("the model's tool call was cut off every time".to_owned()));
                }
                cut_calls += 1;
                continue;
            }
            return Ok(if reply.calls.is_empty() { self.take_text(&reply) } else { self.take_calls(reply) });
        }
    }

    /// Sends one request, with a few attempts; `Err` holds the step that a final failure leads to.
    fn ask(&mut self) -> Result<Result<Reply, Step>, ModelError> {
        let mut attempt = 0;
        while attempt < self.policy.attempts_max {
            attempt += 1;
            self.report.requests += 1;
            let (kind, retry) = match self.host.ask(self.agent, self.report.iterations) {
                Ok(reply) => return Ok(Ok(reply)),
                Err(error @ (ModelError::Script(_) | ModelError::Stopped(_))) => return Err(error),
                Err(ModelError::Provider { kind, retry }) => (kind, retry),
            };
            let room = self.host.make_room(self.agent, &kind);
            self.report.fault = Some(kind);
            match room {
                // The host counts how often it does that in a turn.
                Some(true) => attempt = 0,
                Some(false) => {
                    self.report.failed = true;
                    return Ok(Err(Step::Leave("compression_exhausted")));
                }
                None if !retry => break,
                None => {}
            }
        }
        self.report.failed = true;
        Ok(Err(Step::Leave("all_retries_exhausted_no_response")))
    }

    /// Steering and repair before a request.
    fn prepare(&mut self) {
        if self.agent.transcript.last().is_some_and(Row::is_tool)
            && let Some(text) = self.agent.pending_steer.take()
        {
            self.push(Row::user(text).with("display_kind", "steer"));
        }
        if std::mem::take(&mut self.agent.dirty) {
            let before = self.agent.transcript.rows().to_vec();
            let repaired = repair::repair(before.clone());
            if repaired.report.repairs() > 0 {
                let rows = repaired.rows;
                let same = before.iter().zip(&rows).take_while(|(a, b)| a == b).count();
                let measure = self.host.measure();
                self.agent.transcript.truncate(same);
                for row in rows.into_iter().skip(same) {
                    self.agent.transcript.push(row, measure);
                }
                self.agent.stored = self.agent.stored.min(self.agent.transcript.rows().len());
            }
        }
    }

    fn push(&mut self, row: Row) {
        let measure = self.host.measure();
        self.agent.transcript.push(row, measure);
    }

    /// Stores what was appended since the last time.
    fn flush(&mut self) {
        let transcript = &self.agent.transcript;
        let from = if self.policy.store_everything { 0 } else { self.agent.stored };
        let until = transcript.rows().len();
        if self.agent.stored == until || self.persistence_failed {
            return;
        }
        let keeps = |at: &usize| !transcript.rows()[*at].flag(PREFILL);
        let kept: Vec<usize> = (from..until).filter(keeps).collect();
        let digests: Vec<Chain> = kept.iter().map(|at| transcript.digest(*at)).collect();
        let rows: Cow<'_, [Row]> = if kept.len() == until - from {
            Cow::from(&transcript.rows()[from..])
        } else {
            kept.iter().map(|at| transcript.rows()[*at].clone()).collect()
        };
        self.persistence_failed = self.host.store(&rows, &digests).is_err();
        // What could not be stored is stored with what comes next.
        if !self.persistence_failed {
            self.agent.stored = until;
        }
    }

    /// Takes back the rows at the tail that only served to move the model on.
    fn pop_scaffolding(&mut self) {
        let rows = self.agent.transcript.rows();
        let keep =
            rows.iter().rposition(|row| !row.flag(SCAFFOLD) && !row.flag(PREFILL)).map_or(0, |at| at + 1);
        if keep < rows.len() {
            self.agent.transcript.truncate(keep);
        }
    }
}

//! After the answer: nudges, and the background review that they ask for.
//!
//! The review is a copy of the agent. It sends its parent's prompt, tool table and history unchanged, so that the
//! parent's cache serves it, and may dispatch only what writes knowledge. Nothing of it is stored, and the parent's
//! history never changes.

use serde_json::Value;

use crate::agent::memory::Target;
use crate::agent::review::{self, Admission};
use crate::agent::turn::{self, TurnReport};
use crate::ledger::{Lane, Name, NudgeDue, ReviewEnded, ReviewStarted, TurnEnded, What};
use crate::model::Model;
use crate::policy::ReviewTime;
use crate::store::retry::WriteKind;
use crate::wire::Row;
use crate::world::Millis;
use crate::world::clock::SECOND;

use super::host::Run;
use super::session::Permits;
use super::{Harness, HarnessError, Origin, Session};

impl<M: Model> Harness<M> {
    /// Lets the user speak in a session: the turn, then what follows from it.
    ///
    /// # Errors
    /// When the session is unknown or the script has no answer.
    pub fn user_turn(&mut self, name: &str, text: &str) -> Result<TurnReport, HarnessError> {
        self.user_turn_with(name, text, None)
    }

    /// The same, with text that the user gives while the first tool of the turn runs.
    ///
    /// # Errors
    /// As [`Harness::user_turn`].
    pub fn user_turn_with(
        &mut self,
        name: &str,
        text: &str,
        steer: Option<&str>,
    ) -> Result<TurnReport, HarnessError> {
        let held = self.held(name)?;
        let (key, mut session) =
            self.sessions.remove_entry(&held).ok_or_else(|| HarnessError::UnknownSession(name.to_owned()))?;
        // What the user said while the last tool had run already belongs to this turn.
        let late = session.agent.pending_steer.take().into_iter().chain(session.steer.take());
        let text = late.chain([text.to_owned()]).collect::<Vec<_>>().join("\n\n");
        session.steer = steer.map(str::to_owned);
        let result = self.whole_turn(&mut session, Row::user(text)).and_then(|report| {
            self.deliver_children(&mut session)?;
            Ok(report)
        });
        self.sessions.insert(key, session);
        let report = result?;
        // One that has waited too long begins whatever the load.
        self.run_waiting_reviews()?;
        Ok(report)
    }

    /// One turn, from the message to what is learned of it.
    pub(super) fn whole_turn(
        &mut self,
        session: &mut Session,
        message: Row,
    ) -> Result<TurnReport, HarnessError> {
        session.memory.new_turn();
        session.followed.clear();
        session.attempts = 0;
        session.spawned = 0;
        // A live turn ends a review that is still under way.
        session.slot.new_turn();
        self.waiting_reviews.turn_begins();
        self.stamp(session);
        let memory_due = self.count_turn(session);
        let mut agent = std::mem::take(&mut session.agent);
        Run { harness: self, session }.compact_before_turn(&mut agent);
        session.agent = agent;
        let message = std::mem::take(&mut session.carried).with(message);
        let message = Run { harness: self, session }.with_index_note(message);
        let report = self.run_loop(session, message);
        self.waiting_reviews.turn_ends(self.clock.now());
        let mut report = report?;
        if self.is_killed() {
            return Err(HarnessError::Killed);
        }
        let turn = session.agent.turns;
        let early = self.policy.review.when == ReviewTime::BeforeDelivery;
        if early {
            self.learn(session, &report, memory_due)?;
        }
        self.deliver(session, &mut report);
        let ended = TurnEnded {
            turn,
            exit: report.exit.unwrap_or("partial").into(),
            iterations: report.iterations,
            since_skill: session.agent.counters.since_skill,
        };
        self.event(&session.name.clone(), What::TurnEnded(ended));
        self.note_outcomes(session);
        let mut agent = std::mem::take(&mut session.agent);
        Run { harness: self, session }.compact_after_turn(&mut agent);
        session.agent = agent;
        session.rests_since = self.clock.now();
        if !early {
            self.learn(session, &report, memory_due)?;
        }
        if self.is_killed() { Err(HarnessError::Killed) } else { Ok(report) }
    }

    /// Somebody is at work in the session; a stamp that is lost is followed by another.
    fn stamp(&mut self, session: &Session) {
        if session.persisted {
            let (name, now) = (&session.name, self.clock.now());
            let _ = self.stored(WriteKind::Stamp, |store| store.touch(name, now));
        }
    }

    /// Runs the loop over one user row.
    pub(super) fn run_loop(&mut self, session: &mut Session, row: Row) -> Result<TurnReport, HarnessError> {
        let mut policy = self.policy.turn.clone();
        policy.platform = session.platform(&policy.platform).to_owned();
        if session.iterations_max.is_some() {
            policy.iterations_max = session.iterations_max;
        }
        let mut agent = std::mem::take(&mut session.agent);
        let result = turn::run(&mut Run { harness: self, session }, &mut agent, &policy, row);
        session.agent = agent;
        self.book();
        Ok(result?)
    }

    /// Counts a user turn towards the memory nudge; true when it is due.
    fn count_turn(&self, session: &mut Session) -> bool {
        let interval = self.policy.review.memory_interval;
        let usable = session.memory.enabled(Target::Memory) || session.memory.enabled(Target::User);
        if interval == 0 || session.origin != Origin::Foreground || !session.has_tool("memory") || !usable {
            return false;
        }
        session.agent.counters.turns_since_memory += 1;
        let due = session.agent.counters.turns_since_memory >= interval;
        if due {
            session.agent.counters.turns_since_memory = 0;
        }
        due
    }

    fn learn(
        &mut self,
        session: &mut Session,
        report: &TurnReport,
        memory_due: bool,
    ) -> Result<(), HarnessError> {
        let interval = self.policy.review.skill_interval;
        let skills_due = interval > 0
            && session.has_tool("skill_manage")
            && session.agent.counters.since_skill >= interval;
        if skills_due {
            session.agent.counters.since_skill = 0;
        }
        for (kind, due) in [("skills", skills_due), ("memory", memory_due)] {
            if due {
                self.event(&session.name.clone(), What::NudgeDue(NudgeDue { kind: kind.into() }));
            }
        }
        // The loop's own wording of a failure is no answer.
        let answered =
            report.answer.as_deref().is_some_and(|answer| !answer.is_empty()) && !report.answer_is_synthetic;
        let wanted = (skills_due || memory_due) && answered && !report.interrupted;
        if !wanted || session.skip_review {
            return Ok(());
        }
        let policy = &self.policy.review;
        let request = review::Request {
            depth: session.depth,
            local: policy.local_server,
            ..review::Request::default()
        };
        let scope = review::Scope { memory: memory_due, skills: skills_due };
        match review::admit(&request, policy.enabled, policy.defer) {
            Admission::Start => self.review(session, scope),
            Admission::Queue => {
                let (now, name) = (self.clock.now(), session.name.clone());
                self.waiting_reviews.enqueue(&name, Waiting { snapshot: session.clone(), scope }, now);
                Ok(())
            }
            Admission::Drop => Ok(()),
        }
    }

    /// Starts the reviews whose moment has come; the switch is read again.
    pub(super) fn run_waiting_reviews(&mut self) -> Result<(), HarnessError> {
        while let Some((_, mut waiting)) = self.waiting_reviews.pop(self.clock.now(), false) {
            if self.policy.review.enabled {
                self.review(&mut waiting.snapshot, waiting.scope)?;
            }
        }
        Ok(())
    }

    /// Runs one background review.
    fn review(&mut self, parent: &mut Session, scope: review::Scope) -> Result<(), HarnessError> {
        self.reviews += 1;
        let number = self.reviews;
        if !parent.slot.prepare(number) {
            return Ok(());
        }
        let mut fork = self.fork(parent, scope, number)?;
        if parent.slot.begin(number) != Some(true) {
            parent.slot.finish(number);
            return Ok(());
        }
        let name = parent.name.clone();
        let allowed = review::allowed_tools(&self.policy.review, &self.policy.memory, scope);
        let started = ReviewStarted {
            allowed: allowed.iter().map(|tool| Name::from(tool.as_str())).collect(),
            advertised: fork.tools.iter().map(|tool| Name::from(tool.as_str())).collect(),
            beside_turn: 0,
            delivered: parent.delivered,
        };
        self.event(&name, What::ReviewStarted(started));
        let ran = self.run_loop(&mut fork, Row::user(review::instruction(scope, &allowed, None)));
        if self.faults.take_cancelled() {
            parent.slot.new_turn();
        }
        parent.slot.finish(number);
        let ran = ran?;
        let told = review::report(
            fork.agent.transcript.rows(),
            parent.agent.transcript.rows(),
            self.policy.review.notify,
        );
        let learned = review::report(
            fork.agent.transcript.rows(),
            parent.agent.transcript.rows(),
            crate::policy::Notify::Verbose,
        );
        let warning = ran.failed.then(|| Name::from("The background review failed."));
        let ended = ReviewEnded {
            iterations: ran.iterations,
            iterations_max: crate::policy::Review::default().iterations_max,
            learned: learned.learned.word().into(),
            shown: told.lines.iter().map(|line| Name::from(line.as_str())).chain(warning).collect(),
        };
        self.event(&name, What::ReviewEnded(ended));
        Ok(())
    }

    /// The copy of an agent that reviews its conversation.
    fn fork(&mut self, parent: &Session, scope: review::Scope, number: u64) -> Result<Session, HarnessError> {
        let policy = &self.policy.review;
        let allowed = review::allowed_tools(policy, &self.policy.memory, scope);
        let mut fork = parent.clone();
        fork.lane = Lane::Review;
        fork.instance = number;
        fork.origin = Origin::Review;
        fork.persisted = false;
        fork.copied_from = Some(parent.conversation());
        fork.planned = self.world.clone();
        fork.writer = crate::agent::skills::Writer::new(crate::agent::skills::Origin::BackgroundReview);
        fork.agent.counts_iterations = false;
        // Its instruction is a user turn of its own, for what memory counts by turns.
        fork.memory.new_turn();
        fork.agent.pending_steer = None;
        fork.pending.clear();
        fork.iterations_max = Some(policy.iterations_max);
        let configured = policy.input_tokens_max.map_or(Value::Null, Value::from);
        fork.input_budget = review::input_budget(&configured, &Value::from(self.policy.compress.window));
        fork.input_used = 0;
        fork.permits = Permits::only(allowed.iter().cloned(), policy.whitelist);
        if policy.short_tool_table {
            fork.keep_tools(|tool| allowed.iter().any(|allowed| allowed == tool));
        }
        let other = |own: &str, configured: &str| {
            if configured.is_empty() { own.to_owned() } else { configured.to_owned() }
        };
        let (model, provider) = (other(&fork.model, &policy.model), other(&fork.provider, &policy.provider));
        if (&model, &provider) != (&fork.model, &fork.provider) {
            // Another model has no cache of this conversation: it gets a prompt of its own, and less to read.
            (fork.model, fork.provider, fork.copied_from) = (model, provider, None);
            let measure = self.measure();
            let rows = review::digest(fork.agent.transcript.rows());
            fork.agent.transcript.replace(rows, measure);
            Run { harness: self, session: &mut fork }.build_prompt("other_model")?;
        }
        fork.agent.stored = fork.agent.transcript.rows().len();
        Ok(fork)
    }
}

/// A review that waits for a quiet moment.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    snapshot: Session,
    scope: review::Scope,
}

/// How long a review waits at most.
pub(super) fn max_age(policy: &crate::policy::Review) -> Millis {
    Millis::try_from(policy.defer_max_age).unwrap_or(Millis::MAX / SECOND).saturating_mul(SECOND)
}

//! After the answer: nudges, and the background review that they ask for.
//!
//! The review is a copy of the agent. It sends its parent's prompt, tool table and history unchanged, so that the
//! parent's cache serves it, and may dispatch only what writes knowledge. Nothing of it is stored, and the parent's
//! history never changes.

use crate::agent::review;
use crate::agent::turn::{self, TurnReport};
use crate::ledger::{Delivered, Lane, Name, NudgeDue, ReviewEnded, ReviewStarted, TurnEnded, What};
use crate::model::Model;
use crate::policy::ReviewTime;
use crate::wire::Row;

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
        let (key, mut session) =
            self.sessions.remove_entry(name).ok_or_else(|| HarnessError::UnknownSession(name.to_owned()))?;
        session.steer = steer.map(str::to_owned);
        let result = self.whole_turn(&mut session, text);
        self.sessions.insert(key, session);
        result
    }

    fn whole_turn(&mut self, session: &mut Session, text: &str) -> Result<TurnReport, HarnessError> {
        session.memory.new_turn();
        session.attempts = 0;
        let memory_due = self.count_turn(session);
        let report = self.run_loop(session, Row::user(text))?;
        if self.is_killed() {
            return Err(HarnessError::Killed);
        }
        let turn = session.agent.turns;
        let early = self.policy.review.when == ReviewTime::BeforeDelivery;
        if early {
            self.learn(session, &report, memory_due)?;
        }
        if let Some(answer) = &report.answer {
            session.delivered = turn;
            let chars = answer.chars().count() as u64;
            self.event(&session.name.clone(), What::Delivered(Delivered { turn, chars }));
        }
        let ended = TurnEnded {
            turn,
            exit: report.exit.unwrap_or("partial").into(),
            iterations: report.iterations,
            since_skill: session.agent.counters.since_skill,
        };
        self.event(&session.name.clone(), What::TurnEnded(ended));
        let mut agent = std::mem::take(&mut session.agent);
        Run { harness: self, session }.compact_after_turn(&mut agent);
        session.agent = agent;
        if !early {
            self.learn(session, &report, memory_due)?;
        }
        if self.is_killed() { Err(HarnessError::Killed) } else { Ok(report) }
    }

    /// Runs the loop over one user row.
    pub(super) fn run_loop(&mut self, session: &mut Session, row: Row) -> Result<TurnReport, HarnessError> {
        let mut policy = self.policy.turn.clone();
        if session.iterations_max.is_some() {
            policy.iterations_max = session.iterations_max;
        }
        let mut agent = std::mem::take(&mut session.agent);
        let result = turn::run(&mut Run { harness: self, session }, &mut agent, &policy, row);
        session.agent = agent;
        Ok(result?)
    }

    /// Counts a user turn towards the memory nudge; true when it is due.
    fn count_turn(&self, session: &mut Session) -> bool {
        let interval = self.policy.review.memory_interval;
        if interval == 0 || session.origin != Origin::Foreground {
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
        let skills_due = interval > 0 && session.agent.counters.since_skill >= interval;
        if skills_due {
            session.agent.counters.since_skill = 0;
        }
        for (kind, due) in [("skills", skills_due), ("memory", memory_due)] {
            if due {
                self.event(&session.name.clone(), What::NudgeDue(NudgeDue { kind: kind.into() }));
            }
        }
        let answered = report.answer.as_deref().is_some_and(|answer| !answer.is_empty());
        let wanted = (skills_due || memory_due) && answered && !report.interrupted;
        if !wanted || session.origin != Origin::Foreground || !self.policy.review.enabled {
            return Ok(());
        }
        self.review(session, review::Scope { memory: memory_due, skills: skills_due })
    }

    /// Runs one background review.
    fn review(&mut self, parent: &mut Session, scope: review::Scope) -> Result<(), HarnessError> {
        self.reviews += 1;
        let mut fork = parent.clone();
        fork.lane = Lane::Review;
        fork.instance = self.reviews;
        fork.origin = Origin::Review;
        fork.persisted = false;
        fork.copied_from = Some(parent.conversation());
        fork.planned = self.world.clone();
        fork.writer = crate::agent::skills::Writer::new(crate::agent::skills::Origin::BackgroundReview);
        fork.agent.counts_iterations = false;
        fork.agent.pending_steer = None;
        fork.agent.stored = fork.agent.transcript.rows().len();
        fork.iterations_max = Some(self.policy.review.iterations_max);
        let allowed = review::allowed_tools(&self.policy.review, &self.policy.memory, scope);
        fork.permits = Permits::only(allowed.iter().cloned(), self.policy.review.whitelist);
        if self.policy.review.short_tool_table {
            fork.keep_tools(|tool| allowed.iter().any(|allowed| allowed == tool));
        }
        let name = parent.name.clone();
        let started = ReviewStarted {
            allowed: allowed.iter().map(|tool| Name::from(tool.as_str())).collect(),
            advertised: fork.tools.iter().map(|tool| Name::from(tool.as_str())).collect(),
            beside_turn: 0,
            delivered: parent.delivered,
        };
        self.event(&name, What::ReviewStarted(started));
        let from = self.recorder.len();
        let report = self.run_loop(&mut fork, Row::user(review::instruction(scope, None)))?;
        let learned = self.learned_since(from);
        let ended = ReviewEnded {
            iterations: report.iterations,
            iterations_max: crate::policy::Review::default().iterations_max,
            learned: learned.into(),
        };
        self.event(&name, What::ReviewEnded(ended));
        Ok(())
    }

    /// What kinds of knowledge were written since an event.
    fn learned_since(&self, from: usize) -> &'static str {
        let events = &self.recorder.ledger().events[from..];
        let skill =
            events.iter().any(|event| matches!(&event.what, What::SkillChanged(changed) if changed.ok));
        let memory = events.iter().any(|event| matches!(&event.what, What::MemoryWrite(write) if write.ok));
        match (skill, memory) {
            (true, true) => "skill+memory",
            (true, false) => "skill",
            (false, true) => "memory",
            (false, false) => "none",
        }
    }
}

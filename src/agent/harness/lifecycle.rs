//! Sessions begin, end, and are opened again by a new process.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::compress::State;
use crate::agent::compress::carry::Todo;
use crate::agent::review::IdleQueue;
use crate::agent::turn::{Agent, UNANSWERED};
use crate::ledger::{Event, Lane, Name, Resumed, SessionEnded, SessionStarted, StoreState, Stored, What};
use crate::model::Model;
use crate::policy::ResultOrder;
use crate::store::lifecycle::{COMPRESSION, RESET};
use crate::store::retry::WriteKind;
use crate::store::{NewSession, Session as StoredSession, StoredRow, instant};
use crate::wire::{Chain, Row};

use super::booking::Unbooked;
use super::host::Run;
use super::{Harness, HarnessError, Session};
use crate::agent::transcript::digest_of;

/// Stands for the result of a call that a dead process left behind.
const UNKNOWN_OUTCOME: &str =
    r#"{"error":"the process ended before this call had a result; whether it took effect is unknown"}"#;

/// Where and with what a session is opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opening {
    /// Directory, from the workspace's root.
    pub directory: String,
    /// The tools that it gets; all when there is no list.
    pub tools: Option<Vec<String>>,
}

impl<M: Model> Harness<M> {
    fn apply(&self, session: &mut Session, opening: &Opening) {
        session.directory.clone_from(&opening.directory);
        let platform = &self.policy.turn.platform;
        session.deliver_to = (platform != "cli").then(|| format!("{platform}:{}", session.name));
        if let Some(tools) = &opening.tools {
            session.keep_tools(|tool| tools.iter().any(|kept| kept == tool));
            let others = crate::wire::tools::SPECS.iter().map(|spec| spec.name.to_owned());
            session.permits = super::Permits::without(others.filter(|tool| !tools.contains(tool)));
        }
    }

    /// Begins a session; `parent` names the one that it continues.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn begin(&mut self, name: &str, parent: Option<&str>) -> Result<(), HarnessError> {
        self.begin_with(name, parent, &Opening::default())
    }

    /// The same, opened somewhere or with fewer tools.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn begin_with(
        &mut self,
        name: &str,
        parent: Option<&str>,
        opening: &Opening,
    ) -> Result<(), HarnessError> {
        self.poll_curator()?;
        let now = self.clock.now();
        let key = Name::from(name);
        let (model, platform) = (self.policy.prompt.model.clone(), self.policy.turn.platform.clone());
        let mut new = NewSession::of(name, &platform);
        new.model = Some(&model);
        let new = parent.map_or_else(|| new.clone(), |parent| new.clone().child_of(parent));
        self.stored(WriteKind::Transcript, |store| store.create_session(&new, now))?;
        let started = SessionStarted {
            why: if parent.is_some() { "compression".into() } else { "fresh".into() },
            parent: parent.unwrap_or_default().into(),
            depth: 0,
            persisted: true,
        };
        self.event(&key, What::SessionStarted(started));
        let memory = self.fresh_memory();
        let mut session = Session::new(key.clone(), Lane::Main, &self.policy, memory, now);
        self.apply(&mut session, opening);
        Run { harness: self, session: &mut session }.build_prompt("first")?;
        self.sessions.insert(key.clone(), session);
        self.open = Some(key);
        Ok(())
    }

    /// Opens a session again as a new process does: nothing is left but the home and the store.
    ///
    /// # Errors
    /// When the store does not know the session.
    pub fn resume(&mut self, name: &str) -> Result<(), HarnessError> {
        self.resume_with(name, &Opening::default())
    }

    /// The same, opened somewhere or with fewer tools.
    ///
    /// # Errors
    /// When the store does not know the session.
    pub fn resume_with(&mut self, name: &str, opening: &Opening) -> Result<(), HarnessError> {
        self.poll_curator()?;
        let now = self.clock.now();
        let target = self.store.resume_target(name)?;
        self.store.check_resume(&target, false)?;
        let row = self.store.session(&target)?;
        let is_over = |row: &StoredSession| row.ended_at.is_some() && !row.ended_by(COMPRESSION);
        if row.as_ref().is_some_and(is_over) {
            self.stored(WriteKind::Ordinary, |store| store.reopen(&target))?;
        }
        let key = Name::from(target.as_str());
        // The old process knew the conversation by any of its names, whatever session it had got to, and took along
        // what was approved for the session.
        for gone in [name, &*key] {
            self.guard.end_session(gone);
        }
        self.sessions.retain(|held, session| *held != key && &**held != name && session.name != key);
        let parent = self.rotated_from(&target)?;
        let started = SessionStarted { why: "resume".into(), parent, depth: 0, persisted: true };
        self.event(&key, What::SessionStarted(started));
        if self.policy.turn.close_open_calls {
            self.close_open_calls(&key)?;
        }
        let loaded: Vec<Row> = if self.policy.turn.repair_history {
            self.store.load_for_model(&target)?.rows
        } else {
            self.store.live_rows(&target)?.into_iter().map(StoredRow::into_row).collect()
        };
        let memory = self.fresh_memory();
        let mut session = Session::new(key.clone(), Lane::Main, &self.policy, memory, now);
        self.apply(&mut session, opening);
        let measure = self.measure();
        session.rests_since = self.store.last_written(&target)?.unwrap_or(now);
        if let Some(row) = row {
            session.started_at = instant(row.started_at);
        }
        session.compressor_kept = self.store.compressor_notes(&target)?;
        session.compressor.state = State::of_notes(&session.compressor_kept);
        let (rows, reordered) = match self.policy.turn.result_order {
            ResultOrder::Call => (loaded, None),
            ResultOrder::Finish => {
                let digests: Vec<Chain> = loaded.iter().map(digest_of).collect();
                (in_call_order(loaded), Some(digests))
            }
        };
        let turns = rows.iter().filter(|row| row.is_user()).count() as u64;
        let mut agent =
            Agent { counts_iterations: session.agent.counts_iterations, turns, ..Agent::default() };
        agent.dirty = self.policy.turn.repair_history;
        session.todos = Todo::of_history(&rows);
        agent.transcript.replace(rows, measure);
        agent.stored = agent.transcript.rows().len();
        let given = || (0..agent.stored).map(|row| agent.transcript.digest(row)).collect();
        let digests = reordered.unwrap_or_else(given);
        if self.policy.turn.close_failed && agent.transcript.last().is_some_and(Row::is_user) {
            agent.transcript.push(Row::assistant(UNANSWERED), measure);
        }
        // As on the first turn of a fresh process: the memory nudge goes on where it would have stood.
        let interval = self.policy.review.memory_interval;
        agent.counters.turns_since_memory = if interval > 0 { turns % interval } else { 0 };
        session.agent = agent;
        let prompt_kept = Run { harness: self, session: &mut session }.restore_prompt()?;
        self.event(&key, What::Resumed(Resumed { rows: digests, prompt_kept }));
        self.sessions.insert(key.clone(), session);
        self.open = Some(key);
        Ok(())
    }

    /// Stores an answer for every call at the end of a session that has none: nobody knows whether it ran.
    fn close_open_calls(&mut self, session: &Name) -> Result<(), HarnessError> {
        let rows: Vec<Row> = self.store.live_rows(session)?.into_iter().map(StoredRow::into_row).collect();
        let Some(place) = rows.iter().rposition(|row| !row.is_tool()) else { return Ok(()) };
        let answered = |id: &str| rows[place..].iter().any(|row| row.tool_call_id.as_deref() == Some(id));
        let open = rows[place].call_list().iter().filter(|call| !answered(&call.id));
        let closing: Vec<Row> =
            open.map(|call| Row::result(call.id.clone(), call.name.clone(), UNKNOWN_OUTCOME)).collect();
        if closing.is_empty() {
            return Ok(());
        }
        let ids = self.store.append(session, &closing, self.clock.now())?;
        for (row, id) in closing.iter().zip(ids) {
            let (row_id, role, digest) =
                (u64::try_from(id).unwrap_or(0), row.role.word().into(), digest_of(row));
            self.event(session, What::Stored(Stored { lane: Lane::Main, row: row_id, role, digest }));
        }
        Ok(())
    }

    /// Ends a session for a reason.
    ///
    /// # Errors
    /// When the store does not know the session.
    pub fn end(&mut self, name: &str, reason: &str) -> Result<(), HarnessError> {
        let key = self.held(name)?;
        // A rotation gave the conversation another session.
        let own = self.sessions.get(&key).map_or_else(|| key.clone(), |session| session.name.clone());
        self.guard.end_session(&key);
        self.book();
        let now = self.clock.now();
        let reset = RESET.contains(&reason);
        let written = self.stored(WriteKind::Ordinary, |store| {
            if reset { store.reset_session(&own, reason, now) } else { store.end_session(&own, reason, now) }
        })?;
        if written {
            self.event(&own, What::SessionEnded(SessionEnded { reason: reason.into() }));
        }
        if self.open.as_ref() == Some(&key) {
            self.open = None;
        }
        Ok(())
    }

    /// Takes the events out of the ledger that are there.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.recorder.take()
    }

    /// Lets go of a session that ended for good.
    pub fn let_go(&mut self, name: &str) {
        self.forget(name);
        self.recorder.forget_session(name);
    }

    /// The provider's cache gives up what nobody can read any more.
    pub fn forget_expired(&mut self) {
        self.cache.forget(self.clock.now());
    }

    /// Lets go of every session, for a caller that has seen all that it wants to see.
    pub fn let_go_of_all(&mut self) {
        for name in self.persisted() {
            self.let_go(&name);
        }
    }

    /// A process is gone: what it held in memory of a session is lost.
    pub fn forget(&mut self, name: &str) {
        self.sessions.remove(name);
        if self.open.as_deref() == Some(name) {
            self.open = None;
        }
    }

    /// Every session whose rows go to the store.
    fn persisted(&self) -> BTreeSet<Name> {
        self.recorder.persisted().clone()
    }

    /// The live rows of every session as texts with their role.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn stored_texts(&self) -> Result<BTreeMap<String, Vec<String>>, HarnessError> {
        let shown = |row: Row| {
            let mut calls = String::new();
            for call in row.call_list() {
                calls.push_str(&format!(" {} {}", call.name, call.arguments));
            }
            format!("{}: {}{calls}", row.role.word(), row.content.flat())
        };
        let mut all = BTreeMap::new();
        for name in self.persisted() {
            let rows = self.store.live_rows(&name)?;
            all.insert(name.to_string(), rows.into_iter().map(|row| shown(row.into_row())).collect());
        }
        Ok(all)
    }

    /// A new process stands where a dead one was. Of that one, home and store are left; names that it had given out
    /// are not given out again. Answers the session that was open.
    pub fn restart(&mut self) -> Option<Name> {
        self.faults.restart();
        self.record_faults();
        self.sessions.clear();
        self.schedulers.clear();
        self.waiting_children.clear();
        self.waiting_reviews = IdleQueue::new(super::learning::max_age(&self.policy.review));
        self.guard = self.guard.in_new_process();
        self.skills_changed = false;
        self.unbooked = Unbooked::default();
        self.open.take()
    }

    /// Acts without a name go to this session, which the next of them takes up.
    pub fn reopen_later(&mut self, name: &str) {
        self.open = Some(name.into());
    }

    /// The session that a rotation closed to begin this one; the world's empty name when none did.
    fn rotated_from(&self, session: &str) -> Result<Name, HarnessError> {
        let parent = self.store.session(session)?.and_then(|row| row.parent);
        let Some(parent) = parent else { return Ok(self.world.clone()) };
        let closed = self.store.session(&parent)?.and_then(|row| row.end_reason);
        Ok(if closed.as_deref() == Some("compression") { parent.as_str().into() } else { self.world.clone() })
    }

    /// The name by which a process holds the conversation of a session: each rotation gives a conversation another
    /// session, and a process keeps it under the one that was the last when it opened it.
    pub(super) fn held(&self, name: &str) -> Result<Name, HarnessError> {
        if self.holds(name) {
            return Ok(Name::from(name));
        }
        let last = self.store.resume_target(name)?;
        let under =
            self.sessions.iter().find(|(_, session)| *session.name == *last).map(|(key, _)| key.clone());
        Ok(under.unwrap_or_else(|| Name::from(name)))
    }

    /// True when a process holds this session.
    pub fn holds(&self, name: &str) -> bool {
        self.sessions.contains_key(name)
    }

    /// Takes a session up wherever it is: the one that is held, else from the store, else anew.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn take_up(&mut self, name: &str) -> Result<(), HarnessError> {
        let held = self.held(name)?;
        if self.holds(&held) {
            return Ok(());
        }
        let known = self.store.session(&self.store.resume_target(name)?)?.is_some();
        if known { self.resume(name) } else { self.begin(name, None) }
    }

    /// Records what the store holds of every session.
    pub(super) fn record_store(&mut self) -> Result<(), HarnessError> {
        for name in self.persisted() {
            let mut state = StoreState { live: Vec::new(), kept: Vec::new(), hidden: Vec::new() };
            for stored in self.store.all_rows(&name)? {
                let (active, archived) = (stored.active, stored.is_archived());
                let digest = digest_of(&stored.into_sent());
                if active {
                    state.live.push(digest);
                } else if archived {
                    state.kept.push(digest);
                } else {
                    state.hidden.push(digest);
                }
            }
            self.event(&name, What::StoreState(state));
        }
        Ok(())
    }
}

/// Results put back into the order of the calls that they answer.
fn in_call_order(rows: Vec<Row>) -> Vec<Row> {
    let mut ordered: Vec<Row> = Vec::with_capacity(rows.len());
    let mut calls: Vec<String> = Vec::new();
    let mut run: Vec<Row> = Vec::new();
    let place = |row: &Row, calls: &[String]| {
        calls.iter().position(|id| Some(id) == row.tool_call_id.as_ref()).unwrap_or(usize::MAX)
    };
    for row in rows {
        if row.is_tool() {
            run.push(row);
            continue;
        }
        run.sort_by_key(|row| place(row, &calls));
        ordered.append(&mut run);
        calls = row.call_list().iter().map(|call| call.id.clone()).collect();
        ordered.push(row);
    }
    run.sort_by_key(|row| place(row, &calls));
    ordered.append(&mut run);
    ordered
}

//! When the history is compacted, and what becomes of it in the store and the prompt.
//!
//! A compaction is the one planned break of the prefix: history, memory snapshot, catalogue and tool table are
//! renewed together, stored, and sent once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::agent::compress::carry::{self, Refusal};
use crate::agent::compress::failure::FailureKind;
use crate::agent::compress::gate;
use crate::agent::compress::history;
use crate::agent::compress::micro::MicroPass;
use crate::agent::compress::prune::Proactive;
use crate::agent::compress::{self, Outcome, Summariser, SummaryFailure, SummaryOrigin, SummaryRequest};
use crate::agent::turn::{Agent, Host as _};
use crate::ledger::{Compaction, Lane, Name, SessionEnded, SessionStarted, Stored, What};
use crate::model::{Finish, Model, ModelError};
use crate::policy::{CompactionStore, CompactionTime, SizeUnit};
use crate::store::archive::Archival;
use crate::store::compressor::CompressorNotes;
use crate::store::retry::WriteKind;
use crate::store::rotate::Rotation;
use crate::store::{NewSession, StoreError, StoredRow};
use crate::wire::repair::repair;
use crate::wire::{Chain, Row};
use crate::world::Millis;
use crate::world::clock::SECOND;

use super::host::Run;
use super::sending::Aside;
use crate::agent::transcript::digest_of;

/// What became of a compressed history in the store.
enum Kept {
    /// The session is not stored.
    Nowhere,
    /// Rows behind this key are new.
    InPlace(i64),
    /// A child goes on, with these rows.
    Rotated(Name, Vec<StoredRow>),
}

impl<M: Model> Run<'_, M> {
    /// Asked before each request; false when the turn must end because nothing helps any more.
    pub(super) fn compact_before_request(&mut self, agent: &mut Agent) -> bool {
        let policy = &self.harness.policy.compress;
        // Differs: a review never compacts; its own budget ends it before that would pay.
        let review = self.session.lane == Lane::Review;
        if review || policy.check_at != CompactionTime::EachRequest || agent.transcript.rows().len() <= 1 {
            return true;
        }
        if self.session.attempts >= compress::threshold::attempts(policy.max_attempts) {
            return true;
        }
        // The first request of a process is weighed with its prompt, too.
        self.put_prefix(agent);
        if !self.compact_if_due(agent) {
            self.prune(agent);
        }
        true
    }

    /// After the provider called a request too long: whatever pauses, while attempts are left; true when it helped
    /// (Hermes agent/turn_overflow.py:165).
    pub(super) fn compact_overflow(&mut self, agent: &mut Agent) -> bool {
        let policy = &self.harness.policy.compress;
        let closed = !policy.enabled || self.session.lane == Lane::Review;
        if closed || self.session.attempts >= compress::threshold::attempts(policy.max_attempts) {
            return false;
        }
        self.session.attempts += 1;
        let before = (agent.transcript.rows().len() as u64, self.pressure(agent));
        self.compact(agent, false);
        let after = (agent.transcript.rows().len() as u64, self.pressure(agent));
        gate::made_progress((before.0, after.0), (before.1, after.1), &self.harness.policy.compress)
    }

    /// What of the compressor's state outlives the process goes to the session, when it changed.
    pub(super) fn keep_compressor(&mut self) {
        let notes = self.session.compressor.state.notes();
        if !self.session.persisted || notes == self.session.compressor_kept {
            return;
        }
        let name = &self.session.name;
        let kept =
            self.harness.stored(WriteKind::Ordinary, |store| store.keep_compressor_notes(name, &notes));
        match kept {
            Ok(()) => self.session.compressor_kept = notes,
            Err(error) => tracing::warn!(%error, "the state of the compressor could not be kept"),
        }
    }

    /// Asked before a turn begins: a history of too many rows is compacted whatever its size, where a gateway keeps the
    /// conversation, and so is one that rested long enough, since its cache is cold anyway.
    pub(super) fn compact_before_turn(&mut self, agent: &mut Agent) {
        self.put_prefix(agent);
        let policy = &self.harness.policy.compress;
        if !policy.enabled {
            return;
        }
        let limit = policy.hygiene_hard_message_limit;
        let kept_by_gateway = self.harness.policy.turn.platform != "cli";
        if kept_by_gateway && limit > 0 && agent.transcript.rows().len() as u64 >= limit {
            self.session.attempts += 1;
            return self.compact(agent, false);
        }
        if policy.idle_compact_after_seconds == 0 || agent.transcript.rows().is_empty() {
            return;
        }
        let now = self.harness.clock.now();
        let state = &self.session.compressor.state;
        let threshold = self.session.compressor.threshold().tokens;
        let rest = gate::Rest {
            gap_seconds: u64::try_from((now - self.session.rests_since) / SECOND).unwrap_or(0),
            tokens: self.pressure(agent),
            floor: compress::threshold::share(threshold, policy.target_ratio),
            last_result: state.last_result,
            cooling: state.cooldown_left(now).is_some(),
        };
        if gate::idle_due(rest, policy) {
            self.session.attempts += 1;
            self.compact(agent, false);
        }
    }

    /// Shortens old tool output between compactions, where that is on.
    fn prune(&mut self, agent: &mut Agent) {
        if self.harness.policy.compress.proactive_prune_tokens == 0 {
            return;
        }
        let before = self.pressure(agent);
        let done = self.session.compressor.proactive_prune(agent.transcript.rows(), Some(before));
        let Proactive::Committed { rows, .. } = done else { return };
        self.rewrite(agent, rows, before, "prune");
    }

    /// Puts a rewritten history in place that is no full compaction, and declares the break.
    fn rewrite(&mut self, agent: &mut Agent, rows: Vec<Row>, before: u64, mode: &str) {
        let measure = self.measure();
        let count = agent.transcript.rows().len();
        let tail = rows.len();
        let kept = match self.keep(&rows, false) {
            Ok(kept) => kept,
            Err(error) => return self.not_stored(&error),
        };
        agent.transcript.replace(rows, measure);
        let event = Compaction {
            committed: true,
            why_not: self.harness.world.clone(),
            rows_before: count as u64,
            rows_after: tail as u64,
            size_before: before,
            size_after: self.pressure(agent),
            head_rows: 0,
            tail_rows: 0,
            orphans: 0,
            dropped_results: 0,
            dropped_calls: 0,
            summary: if mode == "micro" { "model".into() } else { "none".into() },
            mode: mode.into(),
            lost_instructions: Vec::new(),
        };
        self.event(What::Compaction(event));
        self.commit(agent, kept);
        self.session.planned = "compaction".into();
    }

    /// Compacts when the pressure says so and the gate lets it; true when it was tried.
    pub(super) fn compact_if_due(&mut self, agent: &mut Agent) -> bool {
        let pressure = self.pressure(agent);
        let now = self.harness.clock.now();
        let due = self.session.compressor.should_compress(pressure, now).compress;
        if due {
            self.session.attempts += 1;
            self.compact(agent, false);
        }
        due
    }

    /// What the threshold is compared with: the next prompt, or at toy scale the history alone.
    pub(super) fn pressure(&self, agent: &Agent) -> u64 {
        match self.harness.policy.compress.unit {
            SizeUnit::Tokens => agent.transcript.size(),
            SizeUnit::Characters => {
                agent.transcript.rows().iter().map(|row| row.content.flat().chars().count() as u64).sum()
            }
        }
    }

    /// One compaction, whatever the pressure.
    pub(super) fn compact(&mut self, agent: &mut Agent, manual: bool) {
        self.try_to_compact(agent, manual);
        self.keep_compressor();
    }

    fn try_to_compact(&mut self, agent: &mut Agent, manual: bool) {
        let armed = self.session.compressor.state.verdict_armed;
        let rows = agent.transcript.rows().to_vec();
        let before = self.pressure(agent);
        let name = self.session.name.clone();
        let ask = compress::Ask {
            now: self.harness.clock.now(),
            manual,
            session: &name,
            ..compress::Ask::default()
        };
        let mut compressor = self.session.compressor.clone();
        let outcome = {
            let mut summarise = |request: &SummaryRequest| self.summarise(agent.turns, request);
            let summarise: &mut Summariser<'_> = &mut summarise;
            compressor.compress(&rows, ask, summarise)
        };
        self.session.compressor = compressor;
        let (new, report) = match outcome {
            Outcome::NoOp(why) => return self.not_compacted(rows.len(), before, &format!("{why:?}")),
            Outcome::Aborted { failure, .. } => {
                return self.not_compacted(rows.len(), before, &format!("summary failed: {failure:?}"));
            }
            Outcome::Compacted { rows, report } if self.harness.policy.compress.mend_result => {
                (repair(rows).rows, report)
            }
            Outcome::Compacted { rows, report } => (rows, report),
        };
        let todos = &self.session.todos;
        let policy = &self.harness.policy.compress;
        let mut new = match carry::finish(&rows, new, todos, &report.skills, policy) {
            Ok(candidate) => candidate.rows,
            Err(refusal) => {
                self.session.compressor.state.verdict_armed = armed;
                return self.refuse_candidate(rows.len(), before, refusal);
            }
        };
        let carried_before = self.session.carried.clone();
        if !rows.last().is_some_and(Row::is_user) {
            self.session.carried = carry::split_end(&mut new);
        }
        if policy.mend_result {
            // What was carried over may stand beside another row of the user, or of the summary.
            new = repair(new).rows;
            carry::join_last(&mut new);
        }
        let lost = lost_instructions(&rows, &new);
        let measure = self.harness.measure();
        let mut event = Compaction {
            committed: true,
            why_not: self.harness.world.clone(),
            rows_before: rows.len() as u64,
            rows_after: new.len() as u64,
            size_before: before,
            size_after: 0,
            head_rows: report.head_rows as u64,
            tail_rows: report.tail_rows as u64,
            orphans: report.orphan_results as u64,
            dropped_results: report.dropped_results as u64,
            dropped_calls: report.dropped_calls as u64,
            summary: origin_word(report.origin).into(),
            mode: "in_place".into(),
            lost_instructions: lost,
        };
        agent.transcript.replace(new, measure);
        event.size_after = self.pressure(agent);
        if policy.mend_result && policy.growth_guard && event.size_after >= before {
            // The guard above goes by an estimate of the rows; this is what is sent.
            let count = rows.len();
            self.take_back(agent, rows, carried_before, armed);
            return self.refuse_candidate(count, before, Refusal::Grew { before, after: event.size_after });
        }
        let kept = match self.keep(agent.transcript.rows(), true) {
            Ok(kept) => kept,
            Err(error) => {
                let count = rows.len();
                self.take_back(agent, rows, carried_before, armed);
                self.not_stored(&error);
                return self.not_compacted(count, before, "it could not be stored");
            }
        };
        self.session.compressor.state.committed(event.size_after);
        if self.harness.policy.compress.store == CompactionStore::Rotation {
            event.mode = "rotation".into();
        }
        self.event(What::Compaction(event));
        self.commit(agent, kept);
        self.rebuild_prompt("compaction");
        self.session.planned = "compaction".into();
    }

    /// The history as it was before a compaction that is not taken after all.
    fn take_back(&mut self, agent: &mut Agent, rows: Vec<Row>, carried: carry::Carried, armed: bool) {
        agent.transcript.replace(rows, self.harness.measure());
        self.session.carried = carried;
        self.session.compressor.state.verdict_armed = armed;
    }

    /// A candidate that is not taken: the history stays. One that grew is a strike, one that changed nothing a pause.
    fn refuse_candidate(&mut self, rows: usize, before: u64, refusal: Refusal) {
        match refusal {
            Refusal::Grew { .. } => self.session.compressor.state.refused(),
            Refusal::Empty | Refusal::Unchanged => {
                let now = self.harness.clock.now();
                self.session.compressor.state.back_off(now, &self.harness.policy.compress);
            }
        }
        self.not_compacted(rows, before, &refusal.to_string());
    }

    fn not_compacted(&mut self, rows: usize, size: u64, why: &str) {
        let nothing = self.harness.world.clone();
        let event = Compaction {
            committed: false,
            why_not: why.into(),
            rows_before: rows as u64,
            rows_after: rows as u64,
            size_before: size,
            size_after: size,
            head_rows: 0,
            tail_rows: 0,
            orphans: 0,
            dropped_results: 0,
            dropped_calls: 0,
            summary: "none".into(),
            mode: nothing,
            lost_instructions: Vec::new(),
        };
        self.event(What::Compaction(event));
    }

    /// Asks the summary lane.
    fn summarise(&mut self, turn: u64, request: &SummaryRequest) -> Result<String, SummaryFailure> {
        if self.harness.is_killed() {
            return Err(SummaryFailure::new(FailureKind::Connection, "the process is gone"));
        }
        if self.harness.faults.on_summary() {
            // Another thread of the process; what goes wrong there is told there.
            let _ = self.harness.tick(1);
        }
        // Scripted summaries come in one piece, so that all the waiting is without progress.
        let knobs = &self.harness.policy.compress;
        let patience = knobs.context_timeout_seconds.min(knobs.context_total_ceiling_seconds);
        let aside = Aside {
            lane: Lane::Summary,
            session: self.session,
            turn,
            text: &request.prompt,
            patience: Millis::try_from(patience).unwrap_or(Millis::MAX / SECOND) * SECOND,
        };
        match self.harness.ask_aside(&aside) {
            Ok(reply) if reply.finish == Finish::Length => {
                Err(SummaryFailure::new(FailureKind::Truncated, "the summary was cut by the output limit"))
            }
            Ok(reply) => reply
                .text
                .filter(|text| !text.trim().is_empty())
                .ok_or_else(|| SummaryFailure::new(FailureKind::Empty, "an empty summary")),
            // A lane without a line stands for a harness that has no summary model.
            Err(ModelError::Script(_)) => {
                Err(SummaryFailure::new(FailureKind::Other, "no provider configured"))
            }
            Err(ModelError::Provider { kind, .. }) => Err(failure_of(&kind)),
            Err(ModelError::Stopped(why)) => Err(SummaryFailure::new(FailureKind::Other, &why)),
        }
    }

    /// A compaction that the store refuses is none; the next try waits a while.
    fn not_stored(&mut self, error: &StoreError) {
        tracing::warn!(%error, "the compaction could not be stored");
        let pause = self.harness.policy.compress.store_failure_cooldown_seconds;
        let now = self.harness.clock.now();
        self.session.compressor.state.cool_down(pause, &error.to_string(), now);
    }

    /// The compressed history has taken the place of the old one: what is new in the store is recorded.
    fn commit(&mut self, agent: &mut Agent, kept: Kept) {
        agent.stored = agent.transcript.rows().len();
        match kept {
            Kept::Nowhere => {}
            Kept::InPlace(newest) => {
                let live = self.harness.store.live_rows(&self.session.name).unwrap_or_default();
                for row in live.into_iter().filter(|row| row.id > newest) {
                    self.event_stored(row);
                }
            }
            Kept::Rotated(child, rows) => {
                self.event(What::SessionEnded(SessionEnded { reason: "compression".into() }));
                let before = self.session.conversation();
                let parent = std::mem::replace(&mut self.session.name, child);
                self.harness.recorder.rename(&before, &self.session.conversation());
                self.session.compressor_kept = CompressorNotes::default();
                let (why, depth) = ("compression".into(), self.session.depth);
                self.event(What::SessionStarted(SessionStarted { why, parent, depth, persisted: true }));
                for row in rows {
                    self.event_stored(row);
                }
            }
        }
    }

    fn event_stored(&mut self, row: StoredRow) {
        let id = u64::try_from(row.id).unwrap_or(0);
        let row = row.into_sent();
        let role = row.role.word().into();
        let stored = Stored { lane: self.session.lane, row: id, role, digest: digest_of(&row) };
        self.event(What::Stored(stored));
    }

    /// Puts the compressed history in the place of the old one in the store. Smaller rewrites than a `whole` compaction
    /// keep the session whatever the knob says.
    fn keep(&mut self, rows: &[Row], whole: bool) -> Result<Kept, StoreError> {
        if !self.session.persisted {
            return Ok(Kept::Nowhere);
        }
        let rotates = whole && self.harness.policy.compress.store == CompactionStore::Rotation;
        if rotates { self.rotate(rows) } else { self.archive_rows(rows) }
    }

    fn archive_rows(&mut self, rows: &[Row]) -> Result<Kept, StoreError> {
        let now = self.harness.clock.now();
        let name = self.session.name.clone();
        let live = self.harness.store.live_rows(&name)?;
        let newest = live.last().map_or(0, |row| row.id);
        let carried = carried(live, rows);
        let archival = Archival { rows, carried: &carried, ..Archival::default() };
        self.harness.stored(WriteKind::Transcript, |store| store.archive(&name, &archival, now))?;
        if !self.harness.policy.compress.keep_archived {
            self.harness.store.delete_archived(&name)?;
        }
        Ok(Kept::InPlace(newest))
    }

    /// The older way: the session is closed under a lock, and a child goes on with the compressed history.
    fn rotate(&mut self, rows: &[Row]) -> Result<Kept, StoreError> {
        const HOLDER: &str = "runtime";
        let now = self.harness.clock.now();
        let parent = self.session.name.clone();
        // `s`, `s+1`, `s+2`: a new process counts on from the name.
        let counted =
            parent.rsplit_once('+').and_then(|(root, number)| Some((root, number.parse::<u64>().ok()?)));
        let (root, number) = counted.unwrap_or((&parent, 0));
        let child: Name = format!("{root}+{}", number + 1).into();
        let lease =
            Millis::try_from(self.harness.store.knobs().lock_ttl_s).unwrap_or(Millis::MAX / SECOND) * SECOND;
        let kind = WriteKind::Transcript;
        self.harness.stored(kind, |store| store.lock_compression(&parent, HOLDER, lease, now))?;
        let platform = self.session.platform(&self.harness.policy.turn.platform).to_owned();
        let new = NewSession {
            model: Some(&self.session.model),
            system_prompt: Some(self.session.own_prompt()),
            ..NewSession::of(&child, &platform)
        };
        let rotation = Rotation {
            parent: &parent,
            child: new,
            handoff: rows,
            lock_holder: Some(HOLDER),
            require_lease: true,
            ..Rotation::default()
        };
        let done = self.harness.stored(kind, |store| store.rotate(&rotation, now));
        let unlocked = self.harness.stored(kind, |store| store.unlock_compression(&parent, HOLDER));
        done?;
        if let Err(error) = unlocked {
            // It runs out by itself.
            tracing::warn!(%error, "the lock of the compaction could not be given back");
        }
        let stored = self.harness.store.live_rows(&child)?;
        Ok(Kept::Rotated(child, stored))
    }

    /// At the end of a turn: the toy scale's check, and micro-compaction where it is on.
    pub(super) fn compact_after_turn(&mut self, agent: &mut Agent) {
        if self.harness.policy.compress.check_at == CompactionTime::TurnEnd {
            self.compact_if_due(agent);
        }
        if !self.harness.policy.compress.micro_compact {
            return;
        }
        let rows = agent.transcript.rows().to_vec();
        let before = self.pressure(agent);
        let mut compressor = self.session.compressor.clone();
        let pass = {
            let mut summarise = |request: &SummaryRequest| self.summarise(agent.turns, request);
            compressor.micro_compact(&rows, &mut summarise)
        };
        self.session.compressor = compressor;
        if let MicroPass::Absorbed(rows) | MicroPass::Rewritten(rows) = pass {
            self.rewrite(agent, rows, before, "micro");
        }
    }
}

/// The stored rows that stand unchanged in a compressed history, each with its key, so that their copies replace
/// them instead of standing beside them.
///
/// What is summed up lies in the middle: of rows with the same words, those of the head are the oldest and those of the
/// tail the newest.
fn carried(live: Vec<StoredRow>, rows: &[Row]) -> Vec<Row> {
    let mut places: BTreeMap<Chain, VecDeque<Row>> = BTreeMap::new();
    let mut order = Vec::new();
    for stored in live {
        let id = stored.id;
        let row = stored.into_row();
        let digest = digest_of(&row);
        order.push(digest);
        places.entry(digest).or_default().push_back(row.with("_row_id", id));
    }
    let digests: Vec<Chain> = rows.iter().map(digest_of).collect();
    let head = digests.iter().zip(&order).take_while(|(row, stored)| row == stored).count();
    let mut carried: Vec<Row> =
        digests[..head].iter().filter_map(|digest| places.get_mut(digest)?.pop_front()).collect();
    let tail = digests[head..].iter().rev().filter_map(|digest| places.get_mut(digest)?.pop_back());
    let tail: Vec<Row> = tail.collect();
    carried.extend(tail.into_iter().rev());
    carried
}

/// A provider's fault as the compressor knows it.
fn failure_of(kind: &str) -> SummaryFailure {
    match kind {
        "overloaded" => SummaryFailure::http(529, kind),
        "rate_limited" => SummaryFailure::http(429, kind),
        "server_error" => SummaryFailure::http(500, kind),
        "timeout" => SummaryFailure::new(FailureKind::Timeout, kind),
        "dropped" => SummaryFailure::new(FailureKind::Connection, kind),
        _ => SummaryFailure::new(FailureKind::Other, kind),
    }
}

fn origin_word(origin: SummaryOrigin) -> &'static str {
    match origin {
        SummaryOrigin::Model => "model",
        SummaryOrigin::RuleAfterFailure | SummaryOrigin::RuleUnasked => "fallback",
    }
}

/// Standing instructions of the user that stood in the old history word for word and stand nowhere in the new one.
fn lost_instructions(before: &[Row], after: &[Row]) -> Vec<Name> {
    let kept: Vec<String> = after.iter().map(|row| row.content.flat()).collect();
    let mut seen = BTreeSet::new();
    before
        .iter()
        .filter(|row| row.is_user())
        .flat_map(|row| row.content.flat().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| line.trim().to_owned())
        .filter(|line| history::is_standing(line))
        .filter(|line| !kept.iter().any(|text| text.contains(line.as_str())) && seen.insert(line.clone()))
        .map(Name::from)
        .collect()
}

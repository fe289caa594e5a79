//! When the history is compacted, and what becomes of it in the store and the prompt.
//!
//! A compaction is the one planned break of the prefix: history, memory snapshot, catalogue and tool table are
//! renewed together, stored, and sent once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::agent::compress::failure::FailureKind;
use crate::agent::compress::micro::MicroPass;
use crate::agent::compress::prune::Proactive;
use crate::agent::compress::{self, Outcome, Summariser, SummaryFailure, SummaryOrigin, SummaryRequest};
use crate::agent::turn::{Agent, Host as _};
use crate::ledger::{Compaction, Lane, Name, Stored, What};
use crate::model::{Ask, Model, ModelError};
use crate::policy::{CompactionStore, CompactionTime, SizeUnit};
use crate::store::archive::Archival;
use crate::store::retry::WriteKind;
use crate::store::{StoreError, StoredRow};
use crate::wire::repair::repair;
use crate::wire::{Chain, Row};

use super::host::{Run, digest_of};

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
        if !self.compact_if_due(agent) {
            self.prune(agent);
        }
        true
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
        let newest = match self.archive_rows(&rows) {
            Ok(newest) => newest,
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
        self.commit(agent, newest);
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
    fn pressure(&self, agent: &Agent) -> u64 {
        match self.harness.policy.compress.unit {
            SizeUnit::Tokens => agent.transcript.size(),
            SizeUnit::Characters => {
                agent.transcript.rows().iter().map(|row| row.content.flat().chars().count() as u64).sum()
            }
        }
    }

    /// One compaction, whatever the pressure.
    pub(super) fn compact(&mut self, agent: &mut Agent, manual: bool) {
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
        if self.harness.policy.compress.growth_guard && event.size_after > before {
            agent.transcript.replace(rows, measure);
            self.session.compressor.state.refused();
            let count = agent.transcript.rows().len();
            return self.not_compacted(count, before, "it would have grown the history");
        }
        let newest = match self.archive_rows(agent.transcript.rows()) {
            Ok(newest) => newest,
            Err(error) => {
                agent.transcript.replace(rows, measure);
                self.not_stored(&error);
                let count = agent.transcript.rows().len();
                return self.not_compacted(count, before, "it could not be stored");
            }
        };
        self.session.compressor.state.committed(event.size_after);
        if self.harness.policy.compress.store == CompactionStore::Rotation {
            event.mode = "rotation".into();
        }
        self.event(What::Compaction(event));
        self.commit(agent, newest);
        self.rebuild_prompt("compaction");
        self.session.planned = "compaction".into();
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

    /// Asks the summary lane; its request is recorded like any other.
    fn summarise(&mut self, turn: u64, request: &SummaryRequest) -> Result<String, SummaryFailure> {
        let rows = [Row::user(request.prompt.as_str())];
        let ask = Ask {
            lane: Lane::Summary,
            session: &self.session.name,
            turn,
            tools: &[],
            system: "",
            rows: &rows,
        };
        if self.harness.is_killed() {
            return Err(SummaryFailure::new(FailureKind::Connection, "the process is gone"));
        }
        if self.harness.faults.on_summary() {
            // Another thread of the process; what goes wrong there is told there.
            let _ = self.harness.tick(1);
        }
        if let Some(kind) = self.harness.faults.on_request(Lane::Summary.word()) {
            return Err(failure_of(&kind));
        }
        match self.harness.model.reply(&ask) {
            Ok(reply) => reply
                .text
                .filter(|text| !text.trim().is_empty())
                .ok_or_else(|| SummaryFailure::new(FailureKind::Empty, "an empty summary")),
            // A lane without a line stands for a harness that has no summary model.
            Err(ModelError::Script(_)) => {
                Err(SummaryFailure::new(FailureKind::Other, "no provider configured"))
            }
            Err(ModelError::Provider { kind, .. }) => Err(failure_of(&kind)),
        }
    }

    /// A compaction that the store refuses is none; the next try waits a while.
    fn not_stored(&mut self, error: &StoreError) {
        tracing::warn!(%error, "the compaction could not be stored");
        let pause = self.harness.policy.compress.store_failure_cooldown_seconds;
        let now = self.harness.clock.now();
        self.session.compressor.state.cool_down(pause, &error.to_string(), now);
    }

    /// The compressed history has taken the place of the old one; rows behind `newest` are new in the store.
    fn commit(&mut self, agent: &mut Agent, newest: Option<i64>) {
        agent.stored = agent.transcript.rows().len();
        let Some(newest) = newest else { return };
        let name = self.session.name.clone();
        let live = self.harness.store.live_rows(&name).unwrap_or_default();
        for row in live.into_iter().filter(|row| row.id > newest) {
            let id = u64::try_from(row.id).unwrap_or(0);
            let row = row.into_row();
            let role = row.role.word().into();
            let stored = Stored { lane: self.session.lane, row: id, role, digest: digest_of(&row) };
            self.event(What::Stored(stored));
        }
    }

    /// The compressed history takes the place of the old one in the store; answers the newest key before it, `None`
    /// for a session that is not stored.
    fn archive_rows(&mut self, rows: &[Row]) -> Result<Option<i64>, StoreError> {
        if !self.session.persisted {
            return Ok(None);
        }
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
        Ok(Some(newest))
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
fn carried(live: Vec<StoredRow>, rows: &[Row]) -> Vec<Row> {
    let mut places: BTreeMap<Chain, VecDeque<Row>> = BTreeMap::new();
    for stored in live {
        let id = stored.id;
        let row = stored.into_row();
        places.entry(digest_of(&row)).or_default().push_back(row.with("_row_id", id));
    }
    rows.iter().filter_map(|row| places.get_mut(&digest_of(row))?.pop_front()).collect()
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
    /// How people begin an instruction that is meant to last.
    const STANDING: [&str; 6] = ["always ", "never ", "from now on", "remember: ", "总是", "永远不要"];
    let kept: Vec<String> = after.iter().map(|row| row.content.flat()).collect();
    let mut seen = BTreeSet::new();
    before
        .iter()
        .filter(|row| row.is_user())
        .flat_map(|row| row.content.flat().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| line.trim().to_owned())
        .filter(|line| STANDING.iter().any(|start| line.to_lowercase().starts_with(start)))
        .filter(|line| !kept.iter().any(|text| text.contains(line.as_str())) && seen.insert(line.clone()))
        .map(Name::from)
        .collect()
}

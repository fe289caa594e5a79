//! The kinds of events.
//!
//! Sizes say their unit in their name. Texts are the bytes that were seen. An event says what happened, never
//! whether it should have.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Lane;
use crate::wire::{Chain, Segment};
use crate::world::Millis;

/// A name that many events share.
pub type Name = Arc<str>;

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Place in the ledger, from 1.
    pub n: u64,
    /// Virtual time, in milliseconds since the Unix epoch.
    pub at: Millis,
    /// The session that it belongs to; empty for the world at large.
    pub session: Name,
    /// What happened.
    pub what: What,
}

/// In the place of a refusal: all that was to be written is there already.
pub const PRESENT: &str = "present";

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A session began, or was opened again.
    SessionStarted(SessionStarted),
    /// A session ended.
    SessionEnded(SessionEnded),
    /// The system prompt was built, or taken from the store.
    PromptReady(PromptReady),
    /// A request left for the model.
    Request(Request),
    /// The model answered.
    Response(Response),
    /// A tool really ran.
    ToolRan(ToolRan),
    /// A tool call was refused where tools are dispatched.
    ToolRefused(ToolRefused),
    /// Something outside the conversation changed because of a tool.
    Effect(Effect),
    /// The final answer reached the user.
    Delivered(Delivered),
    /// The final answer did not reach the user.
    DeliveryFailed(DeliveryFailed),
    /// A turn ended.
    TurnEnded(TurnEnded),
    /// A row was stored.
    Stored(Stored),
    /// A nudge counter reached its interval.
    NudgeDue(NudgeDue),
    /// A background review began.
    ReviewStarted(ReviewStarted),
    /// A background review ended.
    ReviewEnded(ReviewEnded),
    /// A write to memory was tried.
    MemoryWrite(MemoryWrite),
    /// The state of a memory store.
    MemoryState(MemoryState),
    /// A skill changed.
    SkillChanged(SkillChanged),
    /// A skill's body was loaded.
    SkillViewed(SkillViewed),
    /// The catalogue as the prompt shows it.
    Catalogue(Catalogue),
    /// The curator looked at the library.
    CuratorRan(CuratorRan),
    /// The history was compacted.
    Compaction(Compaction),
    /// What the store holds of a session, read back from it.
    StoreState(StoreState),
    /// A session was opened from the store.
    Resumed(Resumed),
    /// A search was answered.
    Searched(Searched),
    /// A child was asked for.
    Delegation(Delegation),
    /// A scheduled run fired.
    CronFired(CronFired),
    /// A job was asked for.
    CronJob(CronJob),
    /// A command was judged.
    GuardDecision(GuardDecision),
    /// The scanner found something.
    ThreatFound(ThreatFound),
    /// The clock moved without the harness.
    TimePassed(TimePassed),
    /// A fault that the scenario scheduled took effect.
    Fault(Fault),
}

impl What {
    /// The word that names the kind, as in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SessionStarted(_) => "session_started",
            Self::SessionEnded(_) => "session_ended",
            Self::PromptReady(_) => "prompt_ready",
            Self::Request(_) => "request",
            Self::Response(_) => "response",
            Self::ToolRan(_) => "tool_ran",
            Self::ToolRefused(_) => "tool_refused",
            Self::Effect(_) => "effect",
            Self::Delivered(_) => "delivered",
            Self::DeliveryFailed(_) => "delivery_failed",
            Self::TurnEnded(_) => "turn_ended",
            Self::Stored(_) => "stored",
            Self::NudgeDue(_) => "nudge_due",
            Self::ReviewStarted(_) => "review_started",
            Self::ReviewEnded(_) => "review_ended",
            Self::MemoryWrite(_) => "memory_write",
            Self::MemoryState(_) => "memory_state",
            Self::SkillChanged(_) => "skill_changed",
            Self::SkillViewed(_) => "skill_viewed",
            Self::Catalogue(_) => "catalogue",
            Self::CuratorRan(_) => "curator_ran",
            Self::Compaction(_) => "compaction",
            Self::StoreState(_) => "store_state",
            Self::Resumed(_) => "resumed",
            Self::Searched(_) => "searched",
            Self::Delegation(_) => "delegation",
            Self::CronFired(_) => "cron_fired",
            Self::CronJob(_) => "cron_job",
            Self::GuardDecision(_) => "guard_decision",
            Self::ThreatFound(_) => "threat_found",
            Self::TimePassed(_) => "time_passed",
            Self::Fault(_) => "fault",
        }
    }

    /// Every kind, for filters and their diagnostics.
    pub const KINDS: [&'static str; 32] = [
        "session_started",
        "session_ended",
        "prompt_ready",
        "request",
        "response",
        "tool_ran",
        "tool_refused",
        "effect",
        "delivered",
        "delivery_failed",
        "turn_ended",
        "stored",
        "nudge_due",
        "review_started",
        "review_ended",
        "memory_write",
        "memory_state",
        "skill_changed",
        "skill_viewed",
        "catalogue",
        "curator_ran",
        "compaction",
        "store_state",
        "resumed",
        "searched",
        "delegation",
        "cron_fired",
        "cron_job",
        "guard_decision",
        "threat_found",
        "time_passed",
        "fault",
    ];
}

/// Declares event bodies: plain structs that refuse unknown fields.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    )*};
}

bodies! {
    /// A session began, or was opened again.
    SessionStarted {
        /// `fresh`, `resume`, `compression`, `delegate`, `cron` or `curator`.
        why: Name,
        /// The session that this one continues or serves; empty for a root.
        parent: Name,
        /// 0 for a root, 1 for its children.
        depth: u64,
        /// True when its rows go to the store.
        persisted: bool,
    }

    /// A session ended.
    SessionEnded {
        /// `compression`, `new_session`, `agent_close`, …
        reason: Name,
    }

    /// The system prompt was built, or taken from the store.
    PromptReady {
        /// `first`, `stored`, `compaction`, `lost_row`, `runtime_changed`, `live_memory` or `hot_skills`.
        why: Name,
        /// True when the harness announced the change as a planned break, or nothing changed.
        declared: bool,
        /// Length in characters.
        chars: u64,
        /// Characters of the memory blocks in it.
        memory_chars: u64,
        /// Characters of the skills catalogue in it.
        catalogue_chars: u64,
        /// Running digest of the text alone.
        digest: Chain,
    }

    /// A request left for the model.
    Request {
        /// Number of the request in this ledger, from 1.
        id: u64,
        /// Who asks.
        lane: Lane,
        /// Turn of the session, from 1.
        turn: u64,
        /// Iteration of the turn, from 1.
        iteration: u64,
        /// The earlier request that it is written against; 0 for none.
        base: u64,
        /// Leading segments that it takes over from `base`.
        kept: u64,
        /// The segments that follow.
        added: Vec<Segment>,
        /// Running digest over all segments.
        chain: Chain,
        /// Cache markers: index of the marked segment and lifetime (`5m`, `1h`).
        marks: Vec<(u64, Name)>,
        /// The planned break that this request was announced to be; empty for none.
        planned: Name,
        /// Size of the prompt in the run's unit.
        size: u64,
    }

    /// The model answered.
    Response {
        /// The request that it answers.
        request: u64,
        /// Visible text.
        text: Name,
        /// Tool calls as `[id, name]`.
        calls: Vec<(Name, Name)>,
        /// `stop`, `tool_calls`, `length` or `error`.
        finish: Name,
        /// What the provider counts.
        usage: Usage,
        /// The refusal of the provider; empty for none.
        refused: Name,
    }

    /// What a provider counts for one request; the four input parts add up to the prompt.
    Usage {
        /// Read from the cache.
        read: u64,
        /// Written with the five-minute lifetime.
        write_5m: u64,
        /// Written with the one-hour lifetime.
        write_1h: u64,
        /// Neither read nor written.
        uncached: u64,
        /// Produced.
        output: u64,
    }

    /// A tool really ran.
    ToolRan {
        /// Who called.
        lane: Lane,
        /// Id of the call.
        call: Name,
        /// Name of the tool.
        tool: Name,
        /// Arguments as JSON text.
        arguments: Name,
        /// False when the tool reported a failure.
        ok: bool,
        /// Length of the result in characters, before any cut.
        result_chars: u64,
        /// True when the step may have taken effect though no answer came.
        outcome_unknown: bool,
    }

    /// A tool call was refused where tools are dispatched.
    ToolRefused {
        /// Who called.
        lane: Lane,
        /// Id of the call.
        call: Name,
        /// Name of the tool.
        tool: Name,
        /// `whitelist`, `toolset`, `guard`, `guardrail`, `unknown`, `arguments`, `interrupted`, `workspace` or `provenance`.
        by: Name,
        /// Why, for people.
        reason: Name,
    }

    /// Something outside the conversation changed because of a tool.
    Effect {
        /// Who caused it.
        lane: Lane,
        /// `command`, `file_written`, `file_removed`, `message_sent`, `spilled`, …
        kind: Name,
        /// What exactly.
        detail: Name,
    }

    /// The final answer reached the user.
    Delivered {
        /// Turn of the session, from 1.
        turn: u64,
        /// Length of the answer in characters.
        chars: u64,
    }

    /// The final answer did not reach the user; it stays stored.
    DeliveryFailed {
        /// Turn of the session, from 1.
        turn: u64,
        /// Where it should have gone, `platform:chat`.
        to: Name,
        /// How often it was tried.
        attempts: u64,
        /// What the platform said.
        reason: Name,
    }

    /// A turn ended.
    TurnEnded {
        /// Turn of the session, from 1.
        turn: u64,
        /// How the loop was left.
        exit: Name,
        /// Iterations of the loop.
        iterations: u64,
        /// Iterations since a skill was last managed.
        since_skill: u64,
    }

    /// A row was stored.
    Stored {
        /// Who wrote it.
        lane: Lane,
        /// Row id in the store.
        row: u64,
        /// `system`, `user`, `assistant` or `tool`.
        role: Name,
        /// Digest of the row as it goes over the wire.
        digest: Chain,
    }

    /// A nudge counter reached its interval.
    NudgeDue {
        /// `skills` or `memory`.
        kind: Name,
    }

    /// A background review began.
    ReviewStarted {
        /// The tools that it may dispatch.
        allowed: Vec<Name>,
        /// The tools in its table.
        advertised: Vec<Name>,
        /// Requests of the main lane that were under way; 0 when it runs beside no turn.
        beside_turn: u64,
        /// Answers delivered in this session before it began.
        delivered: u64,
    }

    /// A background review ended.
    ReviewEnded {
        /// Iterations that it used.
        iterations: u64,
        /// Its upper limit.
        iterations_max: u64,
        /// `none`, `skill`, `memory` or `skill+memory`.
        learned: Name,
        /// The lines that the user is shown.
        shown: Vec<Name>,
    }

    /// A write to memory was tried.
    MemoryWrite {
        /// `foreground`, `review`, `outside` or `cron`.
        origin: Name,
        /// `memory` or `user`.
        target: Name,
        /// `add`, `replace`, `remove`, `patch` or `batch`.
        action: Name,
        /// True when it was carried out.
        ok: bool,
        /// Kind of refusal; empty for none, [`PRESENT`] where everything was there already and nothing was written.
        refusal: Name,
        /// The text that was to be written.
        content: Name,
    }

    /// The state of a memory store.
    MemoryState {
        /// `memory` or `user`.
        target: Name,
        /// Joined text in characters, delimiters included.
        chars: u64,
        /// Its cap in characters, as published by the policy's defaults.
        chars_max: u64,
        /// The entries.
        entries: Vec<Name>,
    }

    /// A skill changed.
    SkillChanged {
        /// Name of the skill.
        skill: Name,
        /// `create`, `patch`, `edit`, `write_file`, `remove_file`, `delete`, `archive`, `stale`, `reactivate` or
        /// `restore`.
        action: Name,
        /// `foreground`, `review`, `cron`, `child`, `curator` or `user`.
        origin: Name,
        /// Who wrote the skill in the first place; `agent` alone means managed.
        created_by: Name,
        /// False when it was refused.
        ok: bool,
        /// Identifier of the refusal; empty for none.
        refusal: Name,
        /// True when the same run had read the file before.
        read_before: bool,
        /// True when the file that was to be changed was there before.
        existed: bool,
        /// How often the skill was used.
        uses: u64,
        /// Days since its creation.
        age_days: u64,
    }

    /// A skill's body was loaded.
    SkillViewed {
        /// Name of the skill.
        skill: Name,
        /// Who loaded it.
        lane: Lane,
    }

    /// The catalogue as the prompt shows it.
    Catalogue {
        /// Lines in it.
        lines: u64,
        /// Its size in characters.
        chars: u64,
        /// Names in order.
        names: Vec<Name>,
        /// Longest description shown, in characters.
        description_chars_max: u64,
    }

    /// The curator looked at the library.
    CuratorRan {
        /// Skills looked at.
        checked: u64,
        /// Newly stale.
        stale: Vec<Name>,
        /// Archived.
        archived: Vec<Name>,
        /// Active again.
        reactivated: Vec<Name>,
        /// Skills with no maintainable owner, left alone.
        skipped: Vec<Name>,
        /// Skills still present after the pass.
        present: Vec<Name>,
        /// Managed skills that are past their time and still present.
        overdue: Vec<Name>,
        /// Skills that could not be archived.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<Name>,
        /// Skills whose content went into another, `from → into`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merged: Vec<Name>,
        /// Skills that a consolidation removed without an heir.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        given_up: Vec<Name>,
        /// Skills that scheduled jobs name after the run, and that are there or were there before it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scheduled: Vec<Name>,
    }

    /// The history was compacted.
    Compaction {
        /// True when the compressed history replaced the old one.
        committed: bool,
        /// Why not, if not.
        why_not: Name,
        /// Rows before.
        rows_before: u64,
        /// Rows after.
        rows_after: u64,
        /// Size before, in the run's unit.
        size_before: u64,
        /// Size after, in the run's unit.
        size_after: u64,
        /// Rows kept at the head.
        head_rows: u64,
        /// Rows kept at the tail.
        tail_rows: u64,
        /// Tool results without their call, after cleaning.
        orphans: u64,
        /// Tool results that the cleaning dropped.
        dropped_results: u64,
        /// Tool calls that the cleaning dropped.
        dropped_calls: u64,
        /// `model`, `fallback` or `none`.
        summary: Name,
        /// `in_place` or `rotation`.
        mode: Name,
        /// Standing instructions of the user that were given before and are not found after.
        lost_instructions: Vec<Name>,
    }

    /// What the store holds of a session, read back from it.
    StoreState {
        /// Digests of the rows that the model would see, in order.
        live: Vec<Chain>,
        /// Digests of every row that is kept for people and search.
        kept: Vec<Chain>,
        /// Digests of rows that were hidden, by rewind or as superseded copies.
        hidden: Vec<Chain>,
    }

    /// A session was opened from the store.
    Resumed {
        /// Digests of the rows that the store gave back.
        rows: Vec<Chain>,
        /// True when the stored system prompt was taken over.
        prompt_kept: bool,
    }

    /// A search was answered.
    Searched {
        /// The query.
        query: Name,
        /// How many conversations were asked for.
        limit: u64,
        /// Hits as the conversation that the answer names, its true root, and the digest of the text shown.
        hits: Vec<(Name, Name, Name)>,
        /// True when every text shown stands in the store as it is.
        verbatim: bool,
    }

    /// A child was asked for.
    Delegation {
        /// Depth of the asking agent.
        depth: u64,
        /// Depth that the policy's defaults allow.
        depth_max: u64,
        /// Turn of the asking agent, from 1; 0 outside a turn.
        turn: u64,
        /// Children asked for.
        children: u64,
        /// Children that may run at once.
        children_max: u64,
        /// True when they were spawned.
        accepted: bool,
        /// Why not; empty if so.
        refusal: Name,
        /// Tools that the child asked for or inherited.
        asked: Vec<Name>,
        /// Tools that it got.
        granted: Vec<Name>,
        /// Characters by which the parent's context grew.
        returned_chars: u64,
    }

    /// A scheduled run fired.
    CronFired {
        /// Id of the job.
        job: Name,
        /// The occurrence, in milliseconds since the Unix epoch.
        occurrence: Millis,
        /// True when the claim or the advance was stored before the run began.
        claimed: bool,
        /// `ran`, `skipped` or `lost`.
        outcome: Name,
    }

    /// A job was asked for.
    CronJob {
        /// Id of the job.
        job: Name,
        /// `create`, `update`, `remove`, …
        action: Name,
        /// Who asked.
        lane: Lane,
        /// True when it was carried out.
        ok: bool,
        /// Why not; empty if so.
        refusal: Name,
    }

    /// A command was judged.
    GuardDecision {
        /// Who wanted to run it.
        lane: Lane,
        /// The command.
        command: Name,
        /// True when it may run.
        approved: bool,
        /// Kind of decision.
        kind: Name,
        /// The rule that matched; empty for none.
        rule: Name,
        /// True when the rule is one that nothing may override.
        hardline: bool,
    }

    /// The scanner found something.
    ThreatFound {
        /// `context_file`, `hint` or `tool_result`.
        place: Name,
        /// Ids of the findings.
        ids: Vec<Name>,
        /// True when the text was kept out.
        blocked: bool,
    }

    /// The clock moved without the harness.
    TimePassed {
        /// By how much.
        by_ms: Millis,
    }

    /// A fault that the scenario scheduled took effect.
    Fault {
        /// Which.
        kind: Name,
        /// On what.
        detail: Name,
    }
}

impl MemoryWrite {
    /// True when it was turned away; what is there already is not.
    pub fn is_refused(&self) -> bool {
        !self.ok && &*self.refusal != PRESENT
    }
}

impl Usage {
    /// All input parts together: the prompt.
    pub fn prompt(&self) -> u64 {
        self.read + self.write_5m + self.write_1h + self.uncached
    }
}

//! Whether a compaction may run now: cooldown, structural backoff, the breaker against thrashing, and waiting for a
//! real reading.
//!
//! [`State`] is everything that outlives one compaction; part of it is stored with the session. Time is milliseconds
//! given by the caller.

use serde::{Deserialize, Serialize};

use crate::policy::Compress;
use crate::store::compressor::CompressorNotes;
use crate::store::{instant, seconds};
use crate::world::Millis;
use crate::world::clock::SECOND;

/// What a compressor remembers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Compactions in a row that did not help. Stored.
    pub strikes: u64,
    /// End of the breaker's window. Stored.
    pub recovery_at: Option<Millis>,
    /// End of the pause after a failed summary. Stored.
    pub cooldown_at: Option<Millis>,
    /// What the failed summary said. Stored.
    pub cooldown_error: Option<String>,
    /// Summaries by rule in a row. Stored.
    pub fallback_streak: u64,
    /// Overloads in a row. Stored.
    pub overload_streak: u64,
    /// Next try of a benched summary model. Stored with the model's configuration.
    pub probe_at: Option<Millis>,
    /// Size at which the next proactive prune may run. Stored with the model's configuration.
    pub prune_runway: u64,
    /// End of the pause after an attempt that found nothing.
    pub backoff_at: Option<Millis>,
    /// Timeouts in a row.
    pub timeout_streak: u64,
    /// Summaries in a row that were cut by the output limit.
    pub truncated_streak: u64,
    /// Last prompt size that a provider reported; 0 for none yet, -1 for unknown since a compaction.
    pub last_prompt_tokens: i64,
    /// The next real reading decides whether the last compaction helped.
    pub verdict_armed: bool,
    /// A compaction happened and no usage has come back yet.
    pub awaits_usage: bool,
    /// The provider has been seen to report no usage.
    pub usage_omitted: bool,
    /// Size after the last compaction.
    pub last_result: u64,
    /// Compactions of this session.
    pub compressions: u64,
    /// Body of the newest summary.
    pub previous_summary: Option<String>,
    /// The newest summary covers at least one human request.
    pub summary_has_human: bool,
    /// Window of the summary model, once it is known.
    pub summary_window: Option<u64>,
    /// First row that micro-compaction has not absorbed.
    pub micro_cursor: usize,
    /// Turns since the last micro-compaction.
    pub micro_turns: u64,
    /// Failures of micro-compaction at its cursor.
    pub micro_failures: u64,
}

/// Why a due compaction does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// A summary failed not long ago.
    Cooldown,
    /// The last attempt found nothing to compress.
    Backoff,
    /// Compaction does not help here.
    Breaker,
}

/// The answer of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Compact now.
    pub compress: bool,
    /// What stops it although it is due.
    pub blocked_by: Option<Block>,
    /// Seconds that the block lasts, rounded up; none for the breaker.
    pub seconds: Option<i64>,
}

impl Verdict {
    const NO: Self = Self { compress: false, blocked_by: None, seconds: None };
    const YES: Self = Self { compress: true, blocked_by: None, seconds: None };

    fn blocked(by: Block, seconds: Option<i64>) -> Self {
        Self { compress: false, blocked_by: Some(by), seconds }
    }
}

fn millis(seconds: u64) -> Millis {
    Millis::try_from(seconds).unwrap_or(Millis::MAX / SECOND).saturating_mul(SECOND)
}

fn left(until: Option<Millis>, now: Millis) -> Option<i64> {
    let rest = until?.saturating_sub(now);
    (rest > 0).then(|| rest.div_euclid(SECOND) + i64::from(rest.rem_euclid(SECOND) > 0))
}

impl State {
    /// Whether to compact at this size (Hermes agent/context_compressor.py:3021).
    ///
    /// Asking while the breaker is tripped starts its window, and the question at the window's end is answered yes
    /// once.
    pub fn ask(&mut self, tokens: u64, threshold: u64, now: Millis, policy: &Compress) -> Verdict {
        if tokens < threshold {
            return Verdict::NO;
        }
        if let Some(seconds) = left(self.cooldown_at, now) {
            return Verdict::blocked(Block::Cooldown, Some(seconds));
        }
        if let Some(seconds) = left(self.backoff_at, now) {
            return Verdict::blocked(Block::Backoff, Some(seconds));
        }
        if self.strikes < policy.strikes_max {
            return Verdict::YES;
        }
        let window = millis(policy.recovery_seconds);
        match self.recovery_at {
            // A clock that was set back must not keep the breaker tripped for longer than its window.
            Some(end) if end > now && end.saturating_sub(now) <= window => {
                Verdict::blocked(Block::Breaker, None)
            }
            Some(end) if end <= now => {
                self.recovery_at = None;
                self.strikes = policy.strikes_max.saturating_sub(1);
                Verdict::YES
            }
            _ => {
                self.recovery_at = Some(now.saturating_add(window));
                Verdict::blocked(Block::Breaker, None)
            }
        }
    }

    /// Seconds that the cooldown still lasts; none when it is over.
    pub fn cooldown_left(&self, now: Millis) -> Option<i64> {
        left(self.cooldown_at, now)
    }

    /// A pause after a failed summary; a longer one that is running stays (Hermes agent/context_compressor.py:2604).
    pub fn cool_down(&mut self, seconds: u64, error: &str, now: Millis) {
        let until = now.saturating_add(millis(seconds));
        if self.cooldown_at.is_none_or(|running| running < until) {
            self.cooldown_at = Some(until);
        }
        self.cooldown_error = Some(error.to_owned());
    }

    /// A pause after an attempt that found nothing to compress.
    pub fn back_off(&mut self, now: Millis, policy: &Compress) {
        self.backoff_at = Some(now.saturating_add(millis(policy.noop_backoff_seconds)));
    }

    /// A compaction by hand lifts cooldown and backoff.
    pub fn lift_pauses(&mut self) {
        self.cooldown_at = None;
        self.cooldown_error = None;
        self.backoff_at = None;
    }

    /// A compaction was made; `by_rule` says that its summary came from the fixed rule after the model failed.
    ///
    /// `neutral` leaves the streak of such summaries alone, for summaries that skipped the model on purpose.
    pub fn completed(&mut self, by_rule: bool, neutral: bool) {
        self.verdict_armed = true;
        if neutral {
            return;
        }
        if by_rule {
            self.fallback_streak += 1;
        } else {
            self.fallback_streak = 0;
            self.probe_at = None;
        }
    }

    /// A compaction was stored: sizes are unknown until the provider reports one.
    pub fn committed(&mut self, result: u64) {
        self.last_prompt_tokens = -1;
        self.awaits_usage = true;
        self.last_result = result;
    }

    /// A candidate was refused because it would have grown the transcript.
    pub fn refused(&mut self) {
        self.strikes += 1;
    }

    /// The provider reported the size of a prompt (Hermes agent/context_compressor.py:2930).
    pub fn usage(&mut self, prompt_tokens: u64, threshold: u64) {
        self.last_prompt_tokens = i64::try_from(prompt_tokens).unwrap_or(i64::MAX);
        self.awaits_usage = false;
        if prompt_tokens == 0 {
            return;
        }
        if prompt_tokens < threshold {
            self.strikes = 0;
            self.recovery_at = None;
        } else if self.verdict_armed {
            self.strikes += 1;
        }
        self.verdict_armed = false;
    }

    /// The provider reported no usage.
    pub fn no_usage(&mut self) {
        self.usage_omitted = true;
    }

    /// True when a rough figure should wait for one real reading (Hermes agent/context_compressor.py:2998).
    pub fn defers(&self, rough: u64, threshold: u64) -> bool {
        if rough < threshold {
            return false;
        }
        if self.awaits_usage {
            return true;
        }
        let below = u64::try_from(self.last_prompt_tokens).map_or(true, |last| last < threshold);
        below && !self.usage_omitted
    }

    /// True when the benched summary model is not even tried; starts and renews the wait for its next try.
    pub fn benches_model(&mut self, now: Millis, policy: &Compress) -> bool {
        if self.fallback_streak < policy.fallback_streak_max {
            return false;
        }
        let next = Some(now.saturating_add(millis(policy.probe_seconds)));
        match self.probe_at {
            None => {
                self.probe_at = next;
                true
            }
            Some(at) if now >= at => {
                self.probe_at = next;
                false
            }
            Some(_) => true,
        }
    }

    /// Pause after a timeout, longer with each in a row. Counts it.
    pub fn timeout_pause(&mut self, policy: &Compress) -> u64 {
        self.timeout_streak += 1;
        rung(&policy.timeout_cooldowns, self.timeout_streak)
    }

    /// Pause after a summary that was cut by the output limit, longer with each in a row. Counts it.
    pub fn truncated_pause(&mut self, policy: &Compress) -> u64 {
        self.truncated_streak += 1;
        rung(&policy.timeout_cooldowns, self.truncated_streak)
    }

    /// The summary model answered well.
    pub fn summary_succeeded(&mut self) {
        self.cooldown_at = None;
        self.cooldown_error = None;
        self.timeout_streak = 0;
        self.truncated_streak = 0;
        self.overload_streak = 0;
    }

    /// The model changed; `identity` says that it is really another model, provider, address or wire
    /// (Hermes agent/context_compressor.py:2685).
    pub fn model_switched(&mut self, identity: bool) {
        self.last_prompt_tokens = 0;
        self.awaits_usage = false;
        self.verdict_armed = false;
        self.strikes = 0;
        self.recovery_at = None;
        if identity {
            self.fallback_streak = 0;
            self.probe_at = None;
            self.cooldown_at = None;
            self.cooldown_error = None;
            self.overload_streak = 0;
            self.summary_window = None;
        }
    }

    /// What the session keeps of it.
    pub fn notes(&self) -> CompressorNotes {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        CompressorNotes {
            cooldown_until: self.cooldown_at.map(seconds),
            error: self.cooldown_error.clone(),
            fallback_streak: count(self.fallback_streak),
            strikes: count(self.strikes),
            recovery_deadline: self.recovery_at.map(seconds),
            overload_streak: count(self.overload_streak),
            prune_runway: self.prune_runway,
            probe_at: self.probe_at.map(seconds),
        }
    }

    /// The state of a compressor in a new process, of which the session kept this.
    pub fn of_notes(notes: &CompressorNotes) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            cooldown_at: notes.cooldown_until.map(instant),
            cooldown_error: notes.error.clone(),
            fallback_streak: count(notes.fallback_streak),
            strikes: count(notes.strikes),
            recovery_at: notes.recovery_deadline.map(instant),
            overload_streak: count(notes.overload_streak),
            prune_runway: notes.prune_runway,
            probe_at: notes.probe_at.map(instant),
            ..Self::default()
        }
    }
}

fn rung(ladder: &[u64], count: u64) -> u64 {
    let at = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
    ladder.get(at.min(ladder.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// Whether the start of a turn is worth an estimate at all (Hermes agent/turn_context_compaction.py:230).
pub fn preflight_due(rows: u64, rough: u64, threshold: u64, policy: &Compress) -> bool {
    rows > policy.protect_first_n.saturating_add(policy.protect_last_n).saturating_add(1)
        || rough >= threshold
}

fn shrank(before: u64, after: u64, policy: &Compress) -> bool {
    // Five per cent are compared in whole numbers, so that a size at the border is not decided by rounding.
    let kept = (1.0 - policy.progress_share) * 10_000.0;
    after as f64 * 10_000.0 < (before as f64 * kept).round()
}

/// Whether a pass made progress: fewer rows, or clearly fewer tokens (Hermes agent/turn_context.py:358).
pub fn made_progress(rows: (u64, u64), tokens: (u64, u64), policy: &Compress) -> bool {
    rows.1 < rows.0 || (tokens.0 > 0 && shrank(tokens.0, tokens.1, policy))
}

/// Whether another pass is worth it (Hermes agent/turn_context.py:440).
pub fn another_pass(before: u64, after: u64, threshold: u64, policy: &Compress) -> bool {
    after >= threshold && shrank(before, after, policy)
}

/// What is known about a session that rested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rest {
    /// Seconds since the last turn.
    pub gap_seconds: u64,
    /// Present size.
    pub tokens: u64,
    /// Threshold times target ratio.
    pub floor: u64,
    /// Size after the last compaction; 0 when there was none.
    pub last_result: u64,
    /// A cooldown is running.
    pub cooling: bool,
}

/// Whether a session that rested is compacted before its next turn (Hermes agent/turn_context_compaction.py:144).
pub fn idle_due(rest: Rest, policy: &Compress) -> bool {
    let after = policy.idle_compact_after_seconds;
    let floor = if rest.last_result > 0 {
        rest.floor.max(rest.last_result.saturating_add(rest.floor))
    } else {
        rest.floor
    };
    policy.enabled && after > 0 && rest.gap_seconds >= after && rest.tokens > floor && !rest.cooling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_deadline_too_far_ahead_is_reset() {
        let policy = Compress::default();
        let mut state = State { strikes: 2, recovery_at: Some(999_999_000), ..State::default() };
        assert_eq!(state.ask(10, 5, 1_000, &policy).blocked_by, Some(Block::Breaker));
        assert_eq!(state.recovery_at, Some(301_000));
        assert!(state.ask(10, 5, 301_000, &policy).compress);
        assert_eq!(state.strikes, 1);
    }

    #[test]
    fn state_survives_storing() {
        let state = State { strikes: 2, previous_summary: Some("x".to_owned()), ..State::default() };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
        assert_eq!(serde_json::from_str::<State>("{}").unwrap(), State::default());
    }

    #[test]
    fn five_per_cent_are_not_progress() {
        let policy = Compress::default();
        assert!(!made_progress((10, 10), (100, 95), &policy));
        assert!(made_progress((10, 10), (100, 94), &policy));
    }
}

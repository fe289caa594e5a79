//! Why a summary failed and what follows from it: a pause, an abort, or a summary by rule.
//!
//! Only judges; the compressor's run acts on the judgement.

use crate::agent::compress::gate::State;
use crate::policy::Compress;

/// How a call of the summary model ended without a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}{}: {message}", status.map(|code| format!(" {code}")).unwrap_or_default())]
pub struct SummaryFailure {
    /// Where it went wrong.
    pub kind: FailureKind,
    /// Status of the provider's answer, if it answered.
    pub status: Option<u16>,
    /// What was said.
    pub message: String,
}

/// Where a summary call went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The provider answered with an error.
    Http,
    /// The connection broke.
    Connection,
    /// No answer in time.
    Timeout,
    /// The host itself stood still.
    Stalled,
    /// The body could not be read.
    NotJson,
    /// The reply was cut by the output limit.
    Truncated,
    /// The reply was empty or a refusal.
    Empty,
    /// Anything else.
    Other,
}

impl SummaryFailure {
    /// A failure without a status.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into() }
    }

    /// An error answer of a provider.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Http, status: Some(status), message: message.into() }
    }
}

/// The classes that the compressor tells apart (Hermes agent/context_compressor.py:712).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// There is no provider for the task.
    NoProvider,
    /// Access or quota.
    Access,
    /// Timeouts and their kin.
    Timeout,
    /// The connection closed.
    Connection,
    /// The body was not JSON.
    NotJson,
    /// Empty or refusal.
    Empty,
    /// Cut by the output limit.
    Truncated,
    /// The provider is overloaded.
    Overload,
    /// Anything else.
    Other,
}

const NO_PROVIDER: &[&str] = &["no llm provider", "no provider configured", "no auxiliary provider"];
const ACCESS: &[&str] = &[
    "insufficient_quota",
    "quota",
    "no api key",
    "missing api key",
    "api key is required",
    "invalid api key",
    "incorrect api key",
    "unauthorized",
    "forbidden",
    "payment required",
    "insufficient credits",
    "insufficient balance",
    "billing",
];
const OVERLOAD: &[&str] =
    &["overloaded", "overload", "service unavailable", "at capacity", "temporarily unavailable"];
const CONNECTION: &[&str] = &[
    "connection reset",
    "connection closed",
    "connection aborted",
    "connection refused",
    "connection error",
    "server disconnected",
    "peer closed",
    "broken pipe",
    "incomplete chunked read",
    "remoteprotocolerror",
];
const TRUNCATED: &[&str] = &["output limit", "max_tokens reached", "finish_reason=length", "truncated"];
const NOT_JSON: &[&str] = &["expecting value", "jsondecodeerror", "not valid json", "invalid json"];

/// The class of a failure.
pub fn class(failure: &SummaryFailure) -> FailureClass {
    let text = failure.message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match failure.kind {
        FailureKind::Truncated => return FailureClass::Truncated,
        FailureKind::Empty => return FailureClass::Empty,
        FailureKind::NotJson => return FailureClass::NotJson,
        FailureKind::Stalled => return FailureClass::Timeout,
        _ => {}
    }
    if says(NO_PROVIDER) {
        return FailureClass::NoProvider;
    }
    if matches!(failure.status, Some(401..=403)) || says(ACCESS) {
        return FailureClass::Access;
    }
    if matches!(failure.status, Some(503 | 529)) || says(OVERLOAD) {
        return FailureClass::Overload;
    }
    let late = says(&["timeout", "timed out"]);
    if failure.kind == FailureKind::Timeout || matches!(failure.status, Some(408 | 429 | 502 | 504)) || late {
        return FailureClass::Timeout;
    }
    if failure.kind == FailureKind::Connection || says(CONNECTION) {
        return FailureClass::Connection;
    }
    if says(NOT_JSON) {
        return FailureClass::NotJson;
    }
    if says(TRUNCATED) {
        return FailureClass::Truncated;
    }
    FailureClass::Other
}

/// True for a reply in which the model declines.
pub fn is_refusal(reply: &str) -> bool {
    let text = reply.trim().to_lowercase().replace('’', "'");
    let declines = [
        "i cannot",
        "i can't",
        "i am unable",
        "i'm unable",
        "i am not able",
        "i'm not able",
        "i won't",
        "i'm sorry",
        "i am sorry",
        "sorry, i",
        "i must decline",
        "as an ai",
    ];
    text.chars().count() < 400 && !text.contains('#') && declines.iter().any(|words| text.starts_with(words))
}

/// What follows from a final failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    /// Seconds of pause.
    pub cooldown: u64,
    /// The history is left alone and nothing is counted.
    pub abort: bool,
}

/// Judges a final failure and counts it (Hermes agent/context_compressor.py:4203).
pub fn consequence(failure: &SummaryFailure, state: &mut State, policy: &Compress) -> Consequence {
    let class = class(failure);
    let mut cooldown = match class {
        FailureClass::NoProvider => policy.no_provider_cooldown_seconds,
        FailureClass::Timeout => state.timeout_pause(policy),
        FailureClass::Truncated => state.truncated_pause(policy),
        FailureClass::Connection | FailureClass::NotJson | FailureClass::Empty => {
            policy.short_cooldown_seconds
        }
        FailureClass::Access | FailureClass::Overload | FailureClass::Other => policy.cooldown_seconds,
    };
    if failure.kind == FailureKind::Stalled {
        cooldown = cooldown.max(policy.stall_cooldown_seconds);
    }
    if class == FailureClass::Overload {
        state.overload_streak += 1;
    } else {
        state.overload_streak = 0;
    }
    let abort = match class {
        FailureClass::Access | FailureClass::Connection | FailureClass::Truncated | FailureClass::Empty => {
            true
        }
        FailureClass::Overload => {
            state.overload_streak < policy.overload_streak_max || policy.abort_on_summary_failure
        }
        _ => policy.abort_on_summary_failure,
    };
    Consequence { cooldown, abort }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_beats_the_status_that_carries_it() {
        assert_eq!(class(&SummaryFailure::http(429, "insufficient_quota")), FailureClass::Access);
        assert_eq!(class(&SummaryFailure::http(429, "slow down")), FailureClass::Timeout);
    }

    #[test]
    fn a_stalled_host_pauses_for_the_stall_window_at_least() {
        let stalled = SummaryFailure::new(FailureKind::Stalled, "");
        let policy = Compress::default();
        let mut state = State::default();
        assert_eq!(consequence(&stalled, &mut state, &policy).cooldown, 120);
        assert_eq!(consequence(&stalled, &mut state, &policy).cooldown, 300);
    }

    #[test]
    fn a_summary_that_quotes_a_refusal_is_none() {
        assert!(is_refusal("I cannot summarize this conversation."));
        assert!(!is_refusal("## Goal\nI cannot find the file"));
    }
}

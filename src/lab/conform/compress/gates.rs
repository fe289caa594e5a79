//! Whether a compaction may run now.

use serde_json::{Value, json};

use super::{Answer, Given};
use crate::agent::compress::gate;
use crate::agent::compress::gate::{Block, Rest, State};
use crate::lab::conform::ReplayError;
use crate::policy::Compress;

pub(super) fn gate_ops(given: Given<'_>) -> Answer {
    let policy = Compress::default();
    let threshold = given.size("threshold_tokens");
    let mut state = State::default();
    let mut now = 1_000_000_000_i64;
    let mut results = Vec::new();
    for op in given.items("ops") {
        let word = op.get(0).and_then(Value::as_str).unwrap_or("");
        let argument = op.get(1).unwrap_or(&Value::Null);
        let number = argument.as_u64().unwrap_or(0);
        results.push(match word {
            "ask" => {
                let verdict = state.ask(number, threshold, now, &policy);
                let blocked = verdict.blocked_by.map(|block| match block {
                    Block::Cooldown => "cooldown",
                    Block::Backoff => "structural_backoff",
                    Block::Breaker => "ineffective",
                });
                json!({"compress": verdict.compress, "blocked_by": blocked, "seconds": verdict.seconds})
            }
            "advance" => {
                now += argument.as_i64().unwrap_or(0) * 1_000;
                Value::Null
            }
            "done" => {
                state.completed(argument.as_bool().unwrap_or(false), false);
                Value::Null
            }
            "usage" => {
                state.usage(number, threshold);
                json!({"ineffective": state.strikes})
            }
            "rejected" => {
                state.refused();
                json!({"ineffective": state.strikes})
            }
            "noop" => {
                state.back_off(now, &policy);
                Value::Null
            }
            "cooldown" => {
                state.cool_down(number, "", now);
                Value::Null
            }
            "manual" => {
                state.lift_pauses();
                Value::Null
            }
            "bench" => json!({"skip_summary_model": state.benches_model(now, &policy)}),
            "streak" => json!({"fallback_streak": state.fallback_streak}),
            "timeout" => json!({"cooldown": state.timeout_pause(&policy)}),
            "truncated" => json!({"cooldown": state.truncated_pause(&policy)}),
            "defer" => json!({"defer": state.defers(number, threshold)}),
            "arm_defer" => {
                state.awaits_usage = true;
                Value::Null
            }
            "no_usage" => {
                state.no_usage();
                Value::Null
            }
            "reset" => {
                state = State::default();
                Value::Null
            }
            other => return Err(ReplayError::UnknownFunction(format!("gate op {other}"))),
        });
    }
    Ok(json!({"results": results}))
}

pub(super) fn preflight_gate(given: Given<'_>) -> Value {
    let due = gate::preflight_due(
        given.size("n_messages"),
        given.size("rough_tokens"),
        given.size("threshold_tokens"),
        &given.policy(),
    );
    json!({"run_estimate": due})
}

pub(super) fn idle_compact(given: Given<'_>) -> Value {
    let rest = Rest {
        gap_seconds: given.size("idle_gap_seconds"),
        tokens: given.size("tokens"),
        floor: given.size("floor_tokens"),
        last_result: given.size("last_compaction_tokens"),
        cooling: given.flag("cooldown_active"),
    };
    json!({"compact": gate::idle_due(rest, &given.policy())})
}

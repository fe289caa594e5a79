//! Adapter for the context compressor's vectors. Translates words; behaves in no way of its own.

mod gates;
mod prune;
mod size;
mod whole;
mod window;

use serde_json::{Value, json};

use crate::agent::compress::estimate;
use crate::agent::compress::{gate, micro, threshold};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::Compress;
use crate::wire::Row;

type Answer = Result<Value, ReplayError>;

/// Answers one vector.
///
/// # Errors
/// An unknown function, or an input that lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Answer {
    let given = Given(given);
    match function {
        "threshold" => Ok(size::threshold_figures(given)),
        "aux_ceiling" => Ok(size::aux_ceiling(given)),
        "model_threshold" => size::model_threshold(given),
        "model_switch" => Ok(size::model_switch(given)),
        "estimate_tokens" => Ok(json!({"tokens": estimate::text_tokens(given.text("text")?)})),
        "message_tokens" => Ok(size::message_tokens(given)),
        "align" => window::align(given),
        "tail_cut" => Ok(window::tail_cut(given)),
        "head_size" => Ok(window::head_size(given)),
        "window" => Ok(window::window_of(given)),
        "sanitize_pairs" => Ok(prune::sanitize_pairs(given)),
        "prune" => Ok(prune::prune_rows(given)),
        "proactive_prune" => Ok(prune::proactive_prune(given)),
        "tool_summary" => prune::tool_line(given),
        "summary_placement" => Ok(window::placement(given)),
        "summary_budget" => {
            let (window, content) = (given.size("context_length"), given.size("content_tokens"));
            Ok(json!({"tokens": threshold::summary_budget(window, content, &Compress::default())}))
        }
        "gate" => gates::gate_ops(given),
        "preflight_gate" => Ok(gates::preflight_gate(given)),
        "made_progress" => {
            let rows = (given.size("rows_before"), given.size("rows_after"));
            let tokens = (given.size("tokens_before"), given.size("tokens_after"));
            Ok(json!({"progress": gate::made_progress(rows, tokens, &Compress::default())}))
        }
        "another_pass" => {
            let (before, after) = (given.size("tokens_before"), given.size("tokens_after"));
            let threshold = given.size("threshold_tokens");
            Ok(json!({"again": gate::another_pass(before, after, threshold, &Compress::default())}))
        }
        "idle_compact" => Ok(gates::idle_compact(given)),
        "micro_exchange" => {
            let rows = given.rows("messages");
            let found = micro::exchange(&rows, given.index("start"), given.index("tail_start"));
            Ok(json!({"exchange": found.map(|found| [found.start, found.end])}))
        }
        "last_rows" => Ok(window::last_rows(given)),
        "pending" => Ok(window::pending(given)),
        "verbatim_users" => Ok(whole::verbatim_users(given)),
        "todo_carry" => Ok(whole::todo_carry(given)),
        "user_anchor" => Ok(whole::user_anchor(given)),
        "summary_failure" => Ok(whole::summary_failure(given)),
        "run" => Ok(whole::run(given)),
        other => Err(ReplayError::UnknownFunction(format!("compress.{other}"))),
    }
}

#[derive(Clone, Copy)]
struct Given<'a>(&'a Value);

impl<'a> Given<'a> {
    fn value(self, key: &str) -> &'a Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    fn text(self, key: &str) -> Result<&'a str, ReplayError> {
        self.value(key).as_str().ok_or_else(|| ReplayError::Missing(key.to_owned()))
    }

    fn size(self, key: &str) -> u64 {
        self.value(key).as_u64().unwrap_or(0)
    }

    fn index(self, key: &str) -> usize {
        usize::try_from(self.size(key)).unwrap_or(usize::MAX)
    }

    fn flag(self, key: &str) -> bool {
        self.value(key).as_bool().unwrap_or(false)
    }

    /// A positive integer, or nothing.
    fn positive(self, key: &str) -> Option<u64> {
        self.value(key).as_u64().filter(|number| *number > 0)
    }

    fn items(self, key: &str) -> &'a [Value] {
        self.value(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn rows(self, key: &str) -> Vec<Row> {
        self.items(key).iter().map(Row::from_json).collect()
    }

    fn sizes(self, key: &str) -> Vec<u64> {
        self.items(key).iter().filter_map(Value::as_u64).collect()
    }

    /// A policy with those knobs turned that the vector names.
    fn policy(self) -> Compress {
        let mut policy = Compress { threshold_tokens: self.positive("cap"), ..Compress::default() };
        for (word, knob) in [
            ("threshold", "threshold"),
            ("floor", "threshold_floor"),
            ("protect_first_n", "protect_first_n"),
            ("protect_last_n", "protect_last_n"),
            ("min_tail_user_messages", "min_tail_user_messages"),
            ("abort_on_summary_failure", "abort_on_summary_failure"),
            ("tail_token_budget", "tail_budget"),
            ("trigger_tokens", "proactive_prune_tokens"),
            ("min_result_chars", "proactive_prune_min_result_chars"),
            ("min_reclaim_tokens", "proactive_prune_min_reclaim_tokens"),
            ("enabled", "enabled"),
            ("idle_after_seconds", "idle_compact_after_seconds"),
        ] {
            // A value that does not fit means that the knob keeps its default, as the agent's own reading does.
            let _ = policy.set(knob, self.value(word));
        }
        if let Some(options) = self.value("options").as_object() {
            for (knob, value) in options {
                let _ = policy.set(knob, value);
            }
        }
        policy
    }
}

/// Rows that remember their index under a private key.
fn tagged(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().enumerate().map(|(index, row)| row.with("_index", index)).collect()
}

fn tag(row: &Row) -> Value {
    row.extra.get("_index").cloned().unwrap_or(Value::Null)
}

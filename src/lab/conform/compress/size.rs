//! How large is too large: thresholds, budgets, prices of texts and rows.

use serde_json::{Value, json};

use super::{Answer, Given};
use crate::agent::compress::estimate::Sizer;
use crate::agent::compress::gate::State;
use crate::agent::compress::{Compressor, ModelFacts, threshold};
use crate::policy::{Compress, TailMode};
use crate::wire::Row;

pub(super) fn threshold_figures(given: Given<'_>) -> Value {
    let policy = given.policy();
    let window = given.size("context_length");
    let found = threshold::threshold(window, policy.threshold, given.positive("max_tokens"), None, &policy);
    let lean = threshold::tail_budget(window, found.tokens, TailMode::Lean, &policy);
    json!({
        "effective_ratio": found.ratio,
        "threshold_tokens": found.tokens,
        "tail_budget_lean": lean,
        "tail_budget_legacy": threshold::tail_budget(window, found.tokens, TailMode::Legacy, &policy),
        "tail_soft_ceiling_lean": threshold::soft_ceiling(lean, window, &policy),
        "max_summary_tokens": threshold::summary_max(window, &policy),
    })
}

fn compressor(given: Given<'_>, window: u64, name: &str) -> Compressor {
    let model = ModelFacts { name: name.to_owned(), window, ..ModelFacts::default() };
    Compressor::new(&given.policy(), model, State::default())
}

pub(super) fn aux_ceiling(given: Given<'_>) -> Value {
    let mut compressor = compressor(given, given.size("context_length"), "m");
    let before = compressor.threshold().tokens;
    compressor.learn_summary_window(given.size("aux_context"));
    json!({"before": before, "after": compressor.threshold().tokens})
}

pub(super) fn model_threshold(given: Given<'_>) -> Answer {
    let table: Vec<(String, f64)> = given
        .value("table")
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, ratio)| Some((key.clone(), ratio.as_f64()?)))
        .collect();
    let provider = given.value("provider").as_str().unwrap_or("");
    let default = given.value("default").as_f64().unwrap_or(0.5);
    Ok(json!({"ratio": threshold::model_ratio(given.text("model")?, provider, &table, default)}))
}

pub(super) fn model_switch(given: Given<'_>) -> Value {
    let mut steps = Vec::new();
    let windows = given.sizes("windows");
    let mut compressor = compressor(given, windows.first().copied().unwrap_or(0), "m0");
    let before = Given(given.value("before_each_switch"));
    for (place, window) in windows.iter().enumerate() {
        if place > 0 {
            compressor.state.strikes = before.size("ineffective");
            compressor.state.fallback_streak = before.size("fallback_streak");
            compressor.state.last_prompt_tokens = before.value("last_prompt_tokens").as_i64().unwrap_or(0);
            let name = if given.flag("model_name_changes") { format!("m{place}") } else { "m0".to_owned() };
            compressor.switch_model(ModelFacts { name, window: *window, ..ModelFacts::default() });
        }
        let mut step = json!({"threshold_tokens": compressor.threshold().tokens});
        // A vector that sets no usage asks for fewer figures.
        let sized = before.value("last_prompt_tokens").is_number();
        if sized {
            step["tail_budget"] = json!(compressor.tail_budget());
        }
        if place > 0 {
            step["ineffective"] = json!(compressor.state.strikes);
            step["fallback_streak"] = json!(compressor.state.fallback_streak);
            if sized {
                step["last_prompt_tokens"] = json!(compressor.state.last_prompt_tokens);
            }
        }
        steps.push(step);
    }
    json!({"steps": steps})
}

pub(super) fn message_tokens(given: Given<'_>) -> Value {
    let policy = Compress::default();
    let sizer = Sizer::new(&policy);
    let row = Row::from_json(given.value("message"));
    json!({"tokens": sizer.row(&row, true), "tokens_without_stale_thinking": sizer.row(&row, false)})
}

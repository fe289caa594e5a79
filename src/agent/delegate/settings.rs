//! How a user's configuration of delegation is read; what does not convert falls back to the default.

use serde_json::Value;

use crate::policy;

/// Shortest limit of inactivity, in seconds; Hermes tools/delegate_tool_config.py.
const TIMEOUT_FLOOR: f64 = 30.0;
/// Smallest compaction trigger that a child may be given, in tokens; Hermes tools/delegate_tool_config.py.
const TRIGGER_FLOOR: f64 = 16_000.0;

/// The policy with the settings of `delegation` in a configuration on top.
pub fn with_settings(policy: &policy::Delegate, config: &Value) -> policy::Delegate {
    let mut policy = policy.clone();
    let floor = |key: &str, least: u64, default: u64| whole(&config[key]).map_or(default, |n| n.max(least));
    policy.max_spawn_depth = floor("max_spawn_depth", 1, policy.max_spawn_depth);
    policy.max_iterations = floor("max_iterations", 1, policy.max_iterations);
    policy.max_summary_chars = floor("max_summary_chars", 0, policy.max_summary_chars);
    policy.oneshot_max_children = floor("oneshot_max_children", 0, policy.oneshot_max_children);
    if !config["max_concurrent_children"].is_null() {
        policy.max_concurrent_children = concurrency(&config["max_concurrent_children"], None);
    }
    policy.orchestrator_enabled = match &config["orchestrator_enabled"] {
        Value::Bool(on) => *on,
        Value::String(word) => says_yes(word),
        _ => true,
    };
    if let Some(on) = config["independent_completions"].as_bool() {
        policy.independent_completions = on;
    }
    if let Some(on) = config["inherit_mcp_toolsets"].as_bool() {
        policy.inherit_mcp_toolsets = on;
    }
    policy
}

/// Children at once: the setting, else the environment variable, else the default; at least one.
///
/// A setting that does not convert gives the default, not the variable.
pub fn concurrency(setting: &Value, variable: Option<&str>) -> u64 {
    let default = policy::Delegate::default().max_concurrent_children;
    let found = if setting.is_null() {
        variable.and_then(|text| text.trim().parse::<i64>().ok()).map(|n| u64::try_from(n).unwrap_or(0))
    } else {
        whole(setting)
    };
    found.unwrap_or(default).max(1)
}

/// Seconds of inactivity after which a child is given up; `None` for never.
pub fn child_timeout(setting: &Value) -> Option<f64> {
    number(setting).filter(|seconds| *seconds > 0.0).map(|seconds| seconds.max(TIMEOUT_FLOOR))
}

/// Tokens at which a child compacts, if that is set and not too small.
pub fn compression_cap(setting: &Value) -> Option<u64> {
    if setting.is_boolean() {
        return None;
    }
    number(setting).filter(|tokens| *tokens >= TRIGGER_FLOOR && tokens.is_finite()).map(cut)
}

fn says_yes(word: &str) -> bool {
    matches!(word.trim().to_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

/// What converts to a whole number; below zero counts as zero.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse::<i64>().ok().map(|n| u64::try_from(n).unwrap_or(0)),
        other => number(other).map(cut),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(on) => Some(f64::from(u8::from(*on))),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the fraction is cut off, and what is below zero becomes zero, as in the source"
)]
fn cut(number: f64) -> u64 {
    number as u64
}

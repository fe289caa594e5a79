//! A home's own curator settings, read the way the reference reads them: unusable values fall back.
//!
//! Called when a home's configuration is laid over the policy. Never: an error.

use serde_json::Value;

use crate::policy;

/// True as the reference's language knows it: any text but the empty one, any number but zero.
pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// A whole number from a number, a switch or a text; `None` for anything else.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(on) => Some(i64::from(*on)),
        Value::Number(number) => number.as_i64().or_else(|| {
            #[expect(clippy::cast_possible_truncation, reason = "cutting the fraction is what is wanted")]
            number.as_f64().map(|number| number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A count of at least one, or the default.
fn at_least_one(value: &Value, default: u64) -> u64 {
    whole(value)
        .filter(|number| *number >= 1)
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(default)
}

/// How many snapshots are kept: at least one; an unusable value is the default.
pub fn backup_keep(value: &Value, default: u64) -> u64 {
    whole(value).map_or(default, |number| u64::try_from(number.max(1)).unwrap_or(1))
}

/// The knobs with a home's settings laid over them (Hermes agent/curator.py:99-143).
pub fn with_settings(knobs: &policy::Curator, settings: &Value) -> policy::Curator {
    let mut knobs = knobs.clone();
    let defaults = policy::Curator::default();
    let on = |key: &str, default: bool| settings.get(key).map_or(default, truthy);
    let count = |key: &str, default: u64, fallback: u64| {
        settings.get(key).map_or(default, |value| at_least_one(value, fallback))
    };
    knobs.enabled = on("enabled", knobs.enabled);
    knobs.consolidate = on("consolidate", knobs.consolidate);
    knobs.prune_builtins = on("prune_builtins", knobs.prune_builtins);
    knobs.interval_hours = count("interval_hours", knobs.interval_hours, defaults.interval_hours);
    knobs.stale_after_days = count("stale_after_days", knobs.stale_after_days, defaults.stale_after_days);
    knobs.archive_after_days =
        count("archive_after_days", knobs.archive_after_days, defaults.archive_after_days);
    if let Some(value) = settings.get("min_idle_hours") {
        let hours = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        knobs.min_idle_hours = hours.unwrap_or(defaults.min_idle_hours);
    }
    if let Some(value) = settings.get("archive_ttl_days") {
        knobs.archive_ttl_days = whole(value).unwrap_or(defaults.archive_ttl_days);
    }
    if let Some(backup) = settings.get("backup") {
        knobs.backup_enabled = backup.get("enabled").map_or(knobs.backup_enabled, truthy);
        knobs.backup_keep =
            backup.get("keep").map_or(knobs.backup_keep, |keep| backup_keep(keep, defaults.backup_keep));
    }
    knobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_may_be_texts_and_nonsense_falls_back() {
        let read = |settings: Value| with_settings(&policy::Curator::default(), &settings);
        assert_eq!(read(json!({"interval_hours": "5"})).interval_hours, 5);
        assert_eq!(read(json!({"interval_hours": 0})).interval_hours, 168);
        assert_eq!(read(json!({"backup": {"keep": []}})).backup_keep, 2);
        assert!(!read(json!({"enabled": ""})).enabled);
    }
}

//! How a user's configuration of the review is read. Sources: Hermes agent/background_review.py:180,
//! agent/review_idle_queue.py.

use serde_json::Value;

use crate::policy::Defer;
use crate::world::Millis;
use crate::world::clock::SECOND;

/// Input tokens of one review at most; Hermes agent/background_review.py:180.
pub const TOKENS_CEILING: u64 = 600_000;
/// Share of the window that a review may use, in quarters.
pub const WINDOW_QUARTERS: u64 = 3;
/// Input tokens of a review when the window is not known.
pub const TOKENS_UNKNOWN_WINDOW: u64 = 120_000;
/// Age at which a waiting review is dispatched whatever the load.
const MAX_AGE_SECONDS: f64 = 1800.0;

/// The switch `auxiliary.background_review.enabled` of a configuration; whatever cannot be read counts as on.
pub fn enabled(config: &Value) -> bool {
    match config.pointer("/auxiliary/background_review/enabled") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(on)) => *on,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(word)) => {
            matches!(word.trim().to_lowercase().as_str(), "1" | "true" | "yes" | "on")
        }
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(table)) => !table.is_empty(),
    }
}

/// The setting `defer`; an unknown value is `auto`.
pub fn defer(value: &Value) -> Defer {
    match value.as_str().map(|word| word.trim().to_lowercase()).as_deref() {
        Some("never") => Defer::Never,
        _ => Defer::Auto,
    }
}

/// The setting `defer_max_age_s`: a positive number of seconds, else 1800.
pub fn defer_max_age(value: &Value) -> Millis {
    let seconds = number(value).filter(|seconds| *seconds > 0.0 && seconds.is_finite());
    #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest whole millisecond")]
    let millis = (seconds.unwrap_or(MAX_AGE_SECONDS) * SECOND as f64) as Millis;
    millis
}

/// Input tokens that one review may use: the configured number, else a share of the window; `None` is without limit.
pub fn input_budget(configured: &Value, window: &Value) -> Option<u64> {
    if let Some(configured) = number(configured) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a fraction of a token is cut off, as in the source"
        )]
        let whole = configured as i64;
        return u64::try_from(whole).ok().filter(|tokens| *tokens > 0);
    }
    Some(match window.as_u64().filter(|window| *window > 0) {
        None => TOKENS_UNKNOWN_WINDOW,
        Some(window) => {
            (window / 4 * WINDOW_QUARTERS + window % 4 * WINDOW_QUARTERS / 4).clamp(1, TOKENS_CEILING)
        }
    })
}

/// What converts to a number: numbers, booleans, texts of a whole number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(on) => Some(f64::from(u8::from(*on))),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    }
}

//! Token counts of a log and their price.
//!
//! Counts and prices are the cache room's; here is only what logs call them beside the providers' own names, and on
//! which day a request was sent. Called by the readers and by the judge.

use serde_json::Value;

use crate::cache::prices::{Price, Prices};
use crate::cache::usage;
use crate::world::Millis;

pub use crate::cache::usage::Parts as Usage;

/// Reads a usage object; `None` when it is none, or its counts cannot be.
pub fn read(value: &Value) -> Option<Usage> {
    value.as_object()?;
    match usage::read(value) {
        Ok((parts, _)) => Some(parts),
        Err(usage::UsageError::Unknown) => {
            let (own, _) = usage::read(&provider_names(value)?).ok()?;
            Some(own)
        }
        Err(_) => None,
    }
}

/// Names of logs that no provider uses, under the provider's name for the same count.
const NAMES: &[(&str, &str)] = &[
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("outputTokens", "output_tokens"),
    ("gen_ai.usage.output_tokens", "output_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
    ("cacheWriteInputTokens", "cache_creation_input_tokens"),
];

/// The same counts as Anthropic reports them; `None` when there is no count of the prompt at all.
fn provider_names(value: &Value) -> Option<Value> {
    let mut own = value.as_object()?.clone();
    for (from, to) in NAMES {
        if let Some(count) = own.get(*from).cloned() {
            own.entry(*to).or_insert(count);
        }
    }
    let cached = own.contains_key("cache_read_input_tokens")
        || own.contains_key("cache_creation_input_tokens")
        || own.contains_key("cache_creation");
    if cached {
        // A report of the cached part alone: nothing else was sent.
        own.entry("input_tokens").or_insert(Value::from(0));
    }
    own.contains_key("input_tokens").then_some(Value::Object(own))
}

/// The list price of a model at an instant, or the latest one.
pub fn price_of(model: &str, at: Option<Millis>) -> Option<&'static Price> {
    let day = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let day = day.map(|day| day.strftime("%Y-%m-%d").to_string());
    Prices::shipped().find(model, day.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn three_conventions_give_one_form() {
        let beside = json!({"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 40, "output_tokens": 5});
        assert_eq!(
            read(&beside).unwrap(),
            Usage { fresh: 3, read: 40, write_5m: 20, output: 5, ..Usage::default() }
        );
        let inside = json!({"prompt_tokens": 63, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}});
        assert_eq!(read(&inside).unwrap(), Usage { fresh: 23, read: 40, output: 5, ..Usage::default() });
        let split =
            json!({"prompt_tokens": 63, "prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 23});
        assert_eq!(read(&split).unwrap().read, 40);
        let proxy =
            json!({"prompt_tokens": 63, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 20});
        assert_eq!(read(&proxy).unwrap(), Usage { fresh: 3, read: 40, write_5m: 20, ..Usage::default() });
        assert_eq!(read(&json!({"prompt_tokens": -1})), None);
    }

    #[test]
    fn names_of_logs_are_understood() {
        assert_eq!(read(&json!({"input": 7, "output": 2})).unwrap().prompt(), 7);
        assert_eq!(read(&json!({"cache_read_input_tokens": 40, "output_tokens": 5})).unwrap().read, 40);
        assert_eq!(read(&json!({"output_tokens": 5})), None);
        assert_eq!(read(&json!({"input_tokens": u64::MAX})), None);
    }

    #[test]
    fn a_model_is_priced_as_of_the_day_of_the_request() {
        let read = |at| price_of("claude-sonnet-5-5-20260901", at).unwrap().rates.read;
        assert_eq!((read(Some(1_790_000_000_000)), read(None)), (200_000, 100_000));
        assert!(price_of("m-large-1", None).is_none());
    }
}

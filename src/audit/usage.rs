//! Token counts as providers report them, brought to one form, and their price.
//!
//! Three conventions: cached tokens beside the input count (Anthropic), inside it (OpenAI, Gemini, most others), and
//! as hit and miss (DeepSeek). Confusing them is the commonest error of accounting.

use serde_json::Value;

/// Tokens of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Paid in full.
    pub fresh: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written for five minutes, or with whatever lifetime the provider has.
    pub write_5m: u64,
    /// Written for one hour.
    pub write_1h: u64,
    /// Answered.
    pub output: u64,
}

impl Usage {
    /// Tokens of the prompt.
    pub fn prompt(&self) -> u64 {
        self.fresh.saturating_add(self.read).saturating_add(self.written())
    }

    /// Tokens written.
    pub fn written(&self) -> u64 {
        self.write_5m.saturating_add(self.write_1h)
    }

    /// Reads a provider's usage object; `None` when it is none.
    pub fn of(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let count = |path: &str| count(value, path);
        let first = |paths: &[&str]| paths.iter().find_map(|path| count(path));
        let output = first(&[
            "/output_tokens",
            "/completion_tokens",
            "/candidatesTokenCount",
            "/outputTokens",
            "/output",
            "/gen_ai.usage.output_tokens",
        ])
        .unwrap_or(0);
        let anthropic = ["cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"]
            .iter()
            .any(|name| object.contains_key(*name));
        if anthropic && !object.contains_key("prompt_tokens") || object.contains_key("cacheReadInputTokens") {
            return Some(Self::beside(value, output));
        }
        let prompt =
            first(&["/prompt_tokens", "/input_tokens", "/promptTokenCount", "/inputTokens", "/input"])?;
        let read = first(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cachedContentTokenCount",
            "/prompt_cache_hit_tokens",
            "/cache_read_input_tokens",
            "/cached_tokens",
        ])
        .unwrap_or(0);
        let write = first(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_tokens",
            "/cache_creation_input_tokens",
            "/cache_write_tokens",
        ])
        .unwrap_or(0);
        let fresh = prompt.saturating_sub(read).saturating_sub(write);
        Some(Self { fresh, read, write_5m: write, write_1h: 0, output })
    }

    fn beside(value: &Value, output: u64) -> Self {
        let count = |path: &str| count(value, path);
        let written = count("/cache_creation_input_tokens").or_else(|| count("/cacheWriteInputTokens"));
        let hour = count("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0);
        let five = count("/cache_creation/ephemeral_5m_input_tokens");
        let written = written.unwrap_or_else(|| five.unwrap_or(0).saturating_add(hour));
        Self {
            fresh: count("/input_tokens").or_else(|| count("/inputTokens")).unwrap_or(0),
            read: count("/cache_read_input_tokens").or_else(|| count("/cacheReadInputTokens")).unwrap_or(0),
            write_5m: written.saturating_sub(hour),
            write_1h: hour.min(written),
            output,
        }
    }
}

/// More tokens than any request has: a larger count is no count.
const TOKENS_MAX: u64 = 1_000_000_000;

fn count(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path).and_then(Value::as_u64).filter(|count| *count <= TOKENS_MAX)
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input, not cached.
    pub input: f64,
    /// Written for five minutes.
    pub write_5m: f64,
    /// Written for one hour.
    pub write_1h: f64,
    /// Read.
    pub read: f64,
    /// Output.
    pub output: f64,
}

impl Price {
    /// Dollars for these tokens.
    pub fn of(&self, usage: &Usage) -> f64 {
        let parts = [
            (usage.fresh, self.input),
            (usage.read, self.read),
            (usage.write_5m, self.write_5m),
            (usage.write_1h, self.write_1h),
            (usage.output, self.output),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6
    }

    /// Dollars lost when tokens are written (or paid in full) instead of read.
    pub fn lost(&self, tokens: u64, written: bool) -> f64 {
        let paid = if written { self.write_5m } else { self.input };
        tokens as f64 * (paid - self.read).max(0.0) / 1e6
    }

    /// The list price of a model, by the longest name that its own begins with or contains.
    pub fn of_model(model: &str) -> Option<Self> {
        let model = model.to_ascii_lowercase().replace('.', "-");
        let row = TABLE.iter().filter(|row| model.contains(row.0)).max_by_key(|row| row.0.len())?;
        let (_, input, write, read, output) = *row;
        let (write_5m, write_1h) = match write {
            Some(times) => (input * times, input * if times > 1.2 { 2.0 } else { times }),
            None => (input, input),
        };
        Some(Self { input, write_5m, write_1h, read, output })
    }
}

/// Model (dots as dashes), input, how many times the input price a write costs, read, output: provider-caching 14.
const TABLE: &[(&str, f64, Option<f64>, f64, f64)] = &[
    ("fable-5", 10.0, Some(1.25), 1.0, 50.0),
    ("fable-5-1", 10.0, Some(1.25), 0.25, 50.0),
    ("fable-5-2", 8.0, Some(1.25), 0.2, 40.0),
    ("mythos-5", 10.0, Some(1.25), 1.0, 50.0),
    ("mythos-5-2", 8.0, Some(1.25), 0.2, 40.0),
    ("opus-5", 5.0, Some(1.25), 0.5, 25.0),
    ("opus-5-5", 4.0, Some(1.25), 0.2, 20.0),
    ("opus-4", 15.0, Some(1.25), 1.5, 75.0),
    ("opus-4-1", 15.0, Some(1.25), 1.5, 75.0),
    ("opus-4-5", 5.0, Some(1.25), 0.5, 25.0),
    ("opus-4-6", 5.0, Some(1.25), 0.5, 25.0),
    ("opus-4-7", 5.0, Some(1.25), 0.5, 25.0),
    ("opus-4-8", 5.0, Some(1.25), 0.5, 25.0),
    ("sonnet-5", 2.0, Some(1.25), 0.2, 10.0),
    ("sonnet-5-5", 2.0, Some(1.25), 0.1, 10.0),
    ("sonnet-4", 3.0, Some(1.25), 0.3, 15.0),
    ("3-7-sonnet", 3.0, Some(1.25), 0.3, 15.0),
    ("3-5-sonnet", 3.0, Some(1.25), 0.3, 15.0),
    ("haiku-5-5", 0.1, Some(1.25), 0.01, 0.5),
    ("haiku-4-5", 1.0, Some(1.25), 0.1, 5.0),
    ("haiku-3-5", 0.8, Some(1.25), 0.08, 4.0),
    ("3-5-haiku", 0.8, Some(1.25), 0.08, 4.0),
    ("gpt-6-astra", 10.0, Some(1.25), 1.0, 50.0),
    ("gpt-6-1-sol", 2.0, Some(1.25), 0.1, 10.0),
    ("gpt-6-sol", 2.0, Some(1.25), 0.2, 10.0),
    ("gpt-6-1-terra", 1.0, Some(1.25), 0.05, 5.0),
    ("gpt-6-luna", 0.1, Some(1.25), 0.01, 0.5),
    ("gpt-5-6-sol", 4.0, Some(1.25), 0.4, 20.0),
    ("gpt-5-6-terra", 2.0, Some(1.25), 0.2, 12.0),
    ("gpt-5-6-luna", 0.2, Some(1.25), 0.02, 1.2),
    ("gpt-5-5", 5.0, None, 0.5, 30.0),
    ("gpt-5-4", 2.5, None, 0.25, 15.0),
    ("gpt-5-4-mini", 0.75, None, 0.075, 4.5),
    ("gpt-5-4-nano", 0.2, None, 0.02, 1.25),
    ("gpt-5-2", 1.75, None, 0.175, 14.0),
    ("gpt-5", 1.25, None, 0.125, 10.0),
    ("gpt-5-mini", 0.25, None, 0.025, 2.0),
    ("gpt-5-nano", 0.05, None, 0.005, 0.4),
    ("gpt-4-1", 2.0, None, 0.5, 8.0),
    ("gpt-4-1-mini", 0.4, None, 0.1, 1.6),
    ("gpt-4o", 2.5, None, 1.25, 10.0),
    ("gpt-4o-mini", 0.15, None, 0.075, 0.6),
    ("o3", 2.0, None, 0.5, 8.0),
    ("o4-mini", 1.1, None, 0.275, 4.4),
    ("o1", 15.0, None, 7.5, 60.0),
    ("gemini-2-5-pro", 1.25, None, 0.125, 10.0),
    ("gemini-2-5-flash", 0.3, None, 0.03, 2.5),
    ("gemini-2-5-flash-lite", 0.1, None, 0.01, 0.4),
    ("gemini-3-flash", 0.5, None, 0.05, 3.0),
    ("gemini-3-1-pro", 2.0, None, 0.2, 12.0),
    ("gemini-3-1-flash-lite", 0.25, None, 0.025, 1.5),
    ("gemini-3-5-flash", 1.5, None, 0.15, 9.0),
    ("gemini-3-8-flash", 0.75, None, 0.075, 3.75),
    ("deepseek-flash", 0.15, None, 0.003, 0.6),
    ("deepseek-v4-pro", 0.66, None, 0.022, 1.98),
    ("deepseek", 0.28, None, 0.028, 0.42),
    ("kimi-k2", 0.6, None, 0.15, 2.5),
    ("kimi-k3", 3.0, Some(1.0), 0.3, 15.0),
    ("glm-4", 0.6, None, 0.11, 2.2),
    ("glm-5", 1.0, None, 0.2, 3.2),
    ("grok-4", 3.0, None, 0.75, 15.0),
    ("grok-4-5", 2.0, None, 0.3, 6.0),
    ("minimax-m2", 0.3, Some(1.25), 0.03, 1.2),
    ("mistral-large", 0.7, None, 0.07, 2.1),
    ("qwen-plus", 0.26, Some(1.25), 0.052, 0.78),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn three_conventions_give_one_form() {
        let beside = json!({"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 40, "output_tokens": 5});
        assert_eq!(
            Usage::of(&beside).unwrap(),
            Usage { fresh: 3, read: 40, write_5m: 20, write_1h: 0, output: 5 }
        );
        let inside = json!({"prompt_tokens": 63, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}});
        assert_eq!(Usage::of(&inside).unwrap(), Usage { fresh: 23, read: 40, output: 5, ..Usage::default() });
        let split =
            json!({"prompt_tokens": 63, "prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 23});
        assert_eq!(Usage::of(&split).unwrap().read, 40);
        assert_eq!(Usage::of(&json!({"prompt_tokens": -1})), None);
    }

    #[test]
    fn the_longest_name_prices_a_model() {
        assert_eq!(Price::of_model("claude-opus-4-5-20251101").unwrap().input.to_bits(), 5.0_f64.to_bits());
        assert_eq!(Price::of_model("openai/gpt-4o-mini").unwrap().read.to_bits(), 0.075_f64.to_bits());
        assert!(Price::of_model("m-large-1").is_none());
    }
}

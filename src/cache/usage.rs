//! Reading a provider's usage report: cached tokens beside the input count, or inside it.
//!
//! Three conventions are in use. Anthropic and Bedrock report what was read and written beside the input; OpenAI and
//! those who copy it, and Google, report it inside. Adding the cached part to a count that contains it is the
//! commonest accounting error, so a report is read once, here, into parts that never overlap.

use serde::Serialize;
use serde_json::Value;

use crate::cache::Outcome;

/// Tokens of one call in parts that never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Parts {
    /// Prompt tokens neither read nor written.
    pub fresh: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written for five minutes, or without a stated lifetime.
    pub write_5m: u64,
    /// Written for thirty minutes.
    pub write_30m: u64,
    /// Written for an hour.
    pub write_1h: u64,
    /// Produced.
    pub output: u64,
}

impl Parts {
    /// All prompt tokens.
    pub fn prompt(&self) -> u64 {
        self.fresh + self.read + self.written()
    }

    /// Written tokens of every lifetime.
    pub fn written(&self) -> u64 {
        self.write_5m + self.write_30m + self.write_1h
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            fresh: self.fresh + other.fresh,
            read: self.read + other.read,
            write_5m: self.write_5m + other.write_5m,
            write_30m: self.write_30m + other.write_30m,
            write_1h: self.write_1h + other.write_1h,
            output: self.output + other.output,
        }
    }

    /// What a cache model answered, with the tokens produced.
    pub fn of(outcome: Outcome, output: u64) -> Self {
        Self {
            fresh: outcome.uncached,
            read: outcome.read,
            write_5m: outcome.write_5m,
            write_30m: outcome.write_30m,
            write_1h: outcome.write_1h,
            output,
        }
    }
}

impl From<&crate::ledger::Usage> for Parts {
    fn from(usage: &crate::ledger::Usage) -> Self {
        Self {
            fresh: usage.uncached,
            read: usage.read,
            write_5m: usage.write_5m,
            write_1h: usage.write_1h,
            write_30m: 0,
            output: usage.output,
        }
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, more: Self) {
        self.fresh += more.fresh;
        self.read += more.read;
        self.write_5m += more.write_5m;
        self.write_30m += more.write_30m;
        self.write_1h += more.write_1h;
        self.output += more.output;
    }
}

/// Where a report puts cached tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// Beside the input count.
    Beside,
    /// Inside the prompt count.
    Inside,
}

/// Why a report cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// No known count of prompt tokens.
    #[error("no usage report: expected `input_tokens`, `prompt_tokens`, `promptTokenCount` or `inputTokens`")]
    Unknown,
    /// A count is not a whole number from 0 to a thousand million.
    #[error("`{0}` is no whole number from 0 to 1,000,000,000")]
    Count(String),
    /// The cached part is larger than the prompt that contains it.
    #[error("{cached} cached tokens in a prompt of {prompt}")]
    MoreThanAll {
        /// Read and written.
        cached: u64,
        /// The whole prompt.
        prompt: u64,
    },
}

/// Reads a usage report of any known shape.
///
/// # Errors
/// When the shape is unknown, a count is no count, or the parts exceed the whole.
pub fn read(usage: &Value) -> Result<(Parts, Convention), UsageError> {
    let has = |pointer: &str| usage.pointer(pointer).is_some();
    if has("/promptTokenCount") {
        return google(usage).map(|parts| (parts, Convention::Inside));
    }
    if has("/inputTokens") {
        return bedrock(usage).map(|parts| (parts, Convention::Beside));
    }
    if has("/prompt_tokens") {
        return openai(usage, "/prompt_tokens", "/completion_tokens")
            .map(|parts| (parts, Convention::Inside));
    }
    if has("/input_tokens") {
        // The Responses interface shares its names with Anthropic; only the details tell them apart.
        if has("/input_tokens_details") {
            return openai(usage, "/input_tokens", "/output_tokens").map(|parts| (parts, Convention::Inside));
        }
        return anthropic(usage).map(|parts| (parts, Convention::Beside));
    }
    Err(UsageError::Unknown)
}

/// More tokens than any call has: a larger count is no count, and sums of what is left cannot overflow.
const TOKENS_MAX: u64 = 1_000_000_000;

/// A count at a pointer; what is absent or null counts as none.
fn count(usage: &Value, pointer: &str) -> Result<Option<u64>, UsageError> {
    match usage.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .filter(|tokens| *tokens <= TOKENS_MAX)
            .map(Some)
            .ok_or_else(|| UsageError::Count(pointer.trim_start_matches('/').replace('/', "."))),
    }
}

fn or_zero(usage: &Value, pointer: &str) -> Result<u64, UsageError> {
    Ok(count(usage, pointer)?.unwrap_or(0))
}

fn first(usage: &Value, pointers: &[&str]) -> Result<u64, UsageError> {
    for pointer in pointers {
        if let Some(found) = count(usage, pointer)? {
            return Ok(found);
        }
    }
    Ok(0)
}

fn anthropic(usage: &Value) -> Result<Parts, UsageError> {
    let written = or_zero(usage, "/cache_creation_input_tokens")?;
    let write_1h = or_zero(usage, "/cache_creation/ephemeral_1h_input_tokens")?;
    let write_5m = count(usage, "/cache_creation/ephemeral_5m_input_tokens")?;
    Ok(Parts {
        fresh: or_zero(usage, "/input_tokens")?,
        read: or_zero(usage, "/cache_read_input_tokens")?,
        // Without the split everything written counts for five minutes.
        write_5m: write_5m.unwrap_or_else(|| written.saturating_sub(write_1h)),
        write_30m: 0,
        write_1h,
        output: or_zero(usage, "/output_tokens")?,
    })
}

fn bedrock(usage: &Value) -> Result<Parts, UsageError> {
    let written = or_zero(usage, "/cacheWriteInputTokens")?;
    let details = usage.pointer("/cacheDetails").and_then(Value::as_array);
    let hours =
        details.into_iter().flatten().filter(|detail| detail.get("ttl").is_some_and(|ttl| ttl == "1h"));
    let write_1h = hours.map(|detail| or_zero(detail, "/inputTokens")).sum::<Result<u64, _>>()?;
    Ok(Parts {
        fresh: or_zero(usage, "/inputTokens")?,
        read: or_zero(usage, "/cacheReadInputTokens")?,
        write_5m: written.saturating_sub(write_1h),
        write_30m: 0,
        write_1h,
        output: or_zero(usage, "/outputTokens")?,
    })
}

fn inside(prompt: u64, read: u64, written: u64) -> Result<u64, UsageError> {
    let cached = read.saturating_add(written);
    prompt.checked_sub(cached).ok_or(UsageError::MoreThanAll { cached, prompt })
}

fn openai(usage: &Value, prompt: &str, output: &str) -> Result<Parts, UsageError> {
    let read = first(
        usage,
        &[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
            // A proxy that speaks for Anthropic and counts as OpenAI does.
            "/cache_read_input_tokens",
        ],
    )?;
    let for_anthropic = or_zero(usage, "/cache_creation_input_tokens")?;
    let written = first(
        usage,
        &[
            "/prompt_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_input_tokens",
            "/prompt_tokens_details/cache_creation_tokens",
            "/cache_write_tokens",
        ],
    )?;
    let written = if for_anthropic > 0 { 0 } else { written };
    Ok(Parts {
        fresh: inside(or_zero(usage, prompt)?, read, written + for_anthropic)?,
        read,
        write_5m: for_anthropic,
        write_30m: written,
        output: or_zero(usage, output)?,
        ..Parts::default()
    })
}

fn google(usage: &Value) -> Result<Parts, UsageError> {
    let read = or_zero(usage, "/cachedContentTokenCount")?;
    Ok(Parts {
        fresh: inside(or_zero(usage, "/promptTokenCount")?, read, 0)?,
        read,
        // Thinking is charged as output and reported beside it.
        output: or_zero(usage, "/candidatesTokenCount")? + or_zero(usage, "/thoughtsTokenCount")?,
        ..Parts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_call_reads_the_same_in_every_convention() {
        let expected = Parts { fresh: 300, read: 700, output: 5, ..Parts::default() };
        let reports = [
            json!({ "input_tokens": 300, "cache_read_input_tokens": 700, "output_tokens": 5 }),
            json!({ "inputTokens": 300, "cacheReadInputTokens": 700, "outputTokens": 5 }),
            json!({ "prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 700 } }),
            json!({ "prompt_tokens": 1000, "completion_tokens": 5, "prompt_cache_hit_tokens": 700 }),
            json!({ "prompt_tokens": 1000, "completion_tokens": 5, "cached_tokens": 700 }),
            json!({ "input_tokens": 1000, "output_tokens": 5, "input_tokens_details": { "cached_tokens": 700 } }),
            json!({ "promptTokenCount": 1000, "candidatesTokenCount": 3, "thoughtsTokenCount": 2,
                    "cachedContentTokenCount": 700 }),
        ];
        for report in reports {
            assert_eq!(read(&report).map(|(parts, _)| parts), Ok(expected), "{report}");
        }
    }

    #[test]
    fn a_cached_part_above_its_prompt_is_an_error_not_a_negative_number() {
        let report = json!({ "prompt_tokens": 10, "prompt_tokens_details": { "cached_tokens": 11 } });
        assert_eq!(read(&report), Err(UsageError::MoreThanAll { cached: 11, prompt: 10 }));
        assert_eq!(read(&json!({ "prompt_tokens": -1 })), Err(UsageError::Count("prompt_tokens".to_owned())));
        assert_eq!(read(&json!({})), Err(UsageError::Unknown));
    }
}

//! Provider caches: builds the model that a vector's policy describes and lets it observe the vector's requests.

use serde_json::{Value, json};

use crate::cache::anthropic::{self, Explicit, ExtraMarks};
use crate::cache::automatic::{self, Automatic};
use crate::cache::deepseek::{self, Units};
use crate::cache::llamacpp::Slots;
use crate::cache::minimum::Minimum;
use crate::cache::openai::{self, Boundaries};
use crate::cache::sglang::Radix;
use crate::cache::vllm::Blocks;
use crate::cache::{Facts, Kind, Observed, Output, PrefixCache, Speaker, Ttl, platforms};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::{self, EntriesAt, Eviction, Isolation, KnobValue, RenewedWith, VisibleFrom};
use crate::wire::{Chain, Level, Segment};

/// Replays one vector; the function is the provider's name, the policy says everything else.
pub(super) fn replay(_: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    let missing = |what: &str| ReplayError::Missing(what.to_owned());
    let policy = given.get("policy").ok_or_else(|| missing("policy"))?;
    let requests = given.get("requests").and_then(Value::as_array).ok_or_else(|| missing("requests"))?;
    let mut cache = model(policy).ok_or_else(|| missing("policy.provider"))?;
    let usage: Option<Vec<Value>> = requests
        .iter()
        .map(|request| Request::read(request).map(|read| read.run(&mut *cache, policy)))
        .collect();
    Ok(json!({ "usage": usage.ok_or_else(|| missing("requests[].blocks"))? }))
}

fn number(policy: &Value, name: &str) -> Option<u64> {
    policy.get(name).and_then(Value::as_u64)
}

fn millis(policy: &Value, name: &str) -> Option<i64> {
    policy.get(name).and_then(Value::as_i64)
}

fn is(policy: &Value, name: &str, word: &str) -> bool {
    policy.get(name).and_then(Value::as_str) == Some(word)
}

fn flag(policy: &Value, name: &str) -> Option<bool> {
    policy.get(name).and_then(Value::as_bool)
}

fn model(policy: &Value) -> Option<Box<dyn PrefixCache>> {
    let provider = policy.get("provider")?.as_str()?;
    let passive = is(policy, "mode", "implicit") || is(policy, "mode", "passive");
    let boundaries =
        policy.get("generation").and_then(Value::as_str).is_some_and(|generation| generation == "5.6");
    Some(match provider {
        "openai" if boundaries => Box::new(Boundaries::new(openai_rules(policy))),
        "deepseek" if is(policy, "units", "whole") || is(policy, "generation", "2026") => {
            Box::new(Units::new(deepseek::Rules {
                interval: number(policy, "interval"),
                idle: millis(policy, "idle_ms"),
                settle: millis(policy, "settle_ms").unwrap_or(0),
                tokens_min: number(policy, "min_tokens").unwrap_or(0),
            }))
        }
        "vllm" => Box::new(Blocks::new(number(policy, "block_size")?, number(policy, "capacity_blocks")?)),
        "sglang" => {
            let eviction = policy.get("eviction").and_then(|word| Eviction::read(word, None).ok());
            let page = number(policy, "page_size").unwrap_or(1);
            let capacity = number(policy, "capacity_tokens").unwrap_or(u64::MAX);
            Box::new(Radix::new(page, capacity, eviction.unwrap_or(Eviction::Lru)))
        }
        "llamacpp" => {
            let similarity = policy.get("slot_prompt_similarity").and_then(Value::as_f64).unwrap_or(0.1);
            Box::new(Slots::new(number(policy, "slots").unwrap_or(1), similarity))
        }
        "anthropic" | "bedrock" | "vertex" | "openrouter" | "qwen" | "minimax" if !passive => {
            Box::new(Explicit::new(marker_rules(provider, policy)))
        }
        _ => Box::new(Automatic::new(automatic::Rules {
            tokens_min: number(policy, "min_tokens").unwrap_or(0),
            granule: number(policy, "granule").unwrap_or(1),
            idle: millis(policy, "idle_ms"),
            settle: millis(policy, "settle_ms").unwrap_or(0),
            requires_key: flag(policy, "requires_key").unwrap_or(false),
            by_key: provider != "moonshot",
            full_resend: is(policy, "full_resend", "all"),
            keyed_params: &[],
        })),
    })
}

fn marker_rules(provider: &str, policy: &Value) -> anthropic::Rules {
    let knobs = policy::Cache {
        breakpoints_max: number(policy, "max_breakpoints").unwrap_or(4),
        lookback: number(policy, "lookback").unwrap_or(20),
        collapse_tool_runs: flag(policy, "collapse_tool_runs").unwrap_or(false),
        strips_prior_thinking: flag(policy, "strip_prior_thinking").unwrap_or(false),
        ..policy::Cache::default()
    };
    let mut rules = match provider {
        "bedrock" => platforms::bedrock(&knobs),
        "vertex" => platforms::vertex(&knobs),
        "openrouter" => platforms::openrouter(&knobs),
        "qwen" => platforms::qwen(&knobs),
        "minimax" => platforms::minimax(&knobs),
        _ => anthropic::Rules::of(&knobs),
    };
    if let Some(tokens) = number(policy, "min_tokens") {
        rules.tokens_min = Minimum::Fixed(tokens);
    }
    if is(policy, "write_rule", "every_block_boundary") {
        rules.entries_at = EntriesAt::EveryBlock;
    }
    if let Some(isolation) = policy.get("isolation").and_then(|word| Isolation::read(word, None).ok()) {
        rules.isolation = isolation;
    }
    if let Some(visible) = policy.get("visible").and_then(|word| VisibleFrom::read(word, None).ok()) {
        rules.visible_from = visible;
    }
    if is(policy, "read_ttl", "request") {
        rules.renewed_with = RenewedWith::Request;
    }
    if let Some(supported) = flag(policy, "auto_supported") {
        rules.auto_supported = supported;
    }
    if let Some(extra) = policy.get("extra_breakpoints").and_then(Value::as_str) {
        rules.extra_marks = if extra == "keep_last" { ExtraMarks::LastCount } else { ExtraMarks::Refused };
    } else {
        rules.extra_marks = ExtraMarks::Refused;
    }
    rules
}

fn openai_rules(policy: &Value) -> openai::Rules {
    let knobs = policy::Cache::default();
    let count = |name, default| number(policy, name).and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    let rules = openai::Rules::of(&knobs);
    openai::Rules {
        tokens_min: number(policy, "min_tokens").unwrap_or(rules.tokens_min),
        lifetime: millis(policy, "ttl_ms").unwrap_or(rules.lifetime),
        explicit: is(policy, "mode", "explicit"),
        writes_max: count("max_writes", rules.writes_max),
        earlier_ends: count("earlier_endings", rules.earlier_ends),
        ..rules
    }
}

/// A request in the room's own terms.
struct Request<'a> {
    given: &'a Value,
    chains: Vec<Chain>,
    sizes: Vec<u64>,
    facts: Vec<Facts>,
    marks: Vec<(usize, Ttl)>,
    params: Vec<(&'a str, String)>,
}

impl<'a> Request<'a> {
    fn read(given: &'a Value) -> Option<Self> {
        let (mut chain, mut size) = (Chain::EMPTY, 0);
        let mut read = Self {
            given,
            chains: Vec::new(),
            sizes: Vec::new(),
            facts: Vec::new(),
            marks: Vec::new(),
            params: Vec::new(),
        };
        for (position, block) in given.get("blocks")?.as_array()?.iter().enumerate() {
            let facts = facts(block);
            chain = chain.then(&Segment::new(facts.level, block.get("hash")?.as_str()?));
            size += block.get("tokens")?.as_u64()?;
            read.chains.push(chain);
            read.sizes.push(size);
            read.facts.push(facts);
            let ttl = block.get("breakpoint").and_then(Value::as_str).and_then(Ttl::of_word);
            read.marks.extend(ttl.map(|ttl| (position, ttl)));
        }
        for (name, value) in given.get("params").and_then(Value::as_object).into_iter().flatten() {
            read.params.push((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        read.params.sort_unstable();
        Some(read)
    }

    fn run(&self, cache: &mut dyn PrefixCache, policy: &Value) -> Value {
        let text = |pointer: &str| self.given.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let at = millis(self.given, "at_ms").unwrap_or(0);
        let params: Vec<(&str, &str)> =
            self.params.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let duration = millis(self.given, "end_ms").map(|end| end - at).or(millis(self.given, "duration_ms"));
        let output = self.given.get("output").and_then(|output| {
            let segment = Segment::new(Level::Messages, output.get("hash")?.as_str()?);
            let before = self.chains.last().copied().unwrap_or(Chain::EMPTY);
            Some(Output { tokens: output.get("tokens")?.as_u64()?, chain: before.then(&segment) })
        });
        let observed = Observed {
            chains: &self.chains,
            sizes: &self.sizes,
            marks: &self.marks,
            auto: self.given.get("auto").and_then(Value::as_str).and_then(Ttl::of_word),
            facts: &self.facts,
            model: match text("/model") {
                "" => policy.get("model").and_then(Value::as_str).unwrap_or(""),
                model => model,
            },
            org: text("/scope/org"),
            workspace: text("/scope/workspace"),
            key: [text("/key"), text("/cache_salt")].into_iter().find(|key| !key.is_empty()).unwrap_or(""),
            params: &params,
            explicit: self.given.get("mode").and_then(Value::as_str).map(|mode| mode == "explicit"),
            first_token: millis(self.given, "first_token_ms"),
            duration,
            output,
        };
        match cache.observe(at, &observed) {
            Ok(outcome) => {
                let mut usage = json!({
                    "read": outcome.read, "write_5m": outcome.write_5m,
                    "write_1h": outcome.write_1h, "uncached": outcome.uncached,
                });
                // Only where the provider has such a lifetime do vectors speak of it.
                if outcome.write_30m > 0 || is(policy, "generation", "5.6") {
                    usage["write_30m"] = Value::from(outcome.write_30m);
                }
                usage
            }
            Err(refusal) => json!({ "refused": refusal.to_string() }),
        }
    }
}

fn facts(block: &Value) -> Facts {
    let word = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
    let kind = match word("kind") {
        "tool_use" => Kind::ToolUse,
        "tool_result" => Kind::ToolResult,
        "server_tool_result" => Kind::ServerResult,
        "thinking" => Kind::Thinking,
        _ => Kind::Text,
    };
    Facts {
        level: match word("level") {
            "tools" => Level::Tools,
            "system" => Level::System,
            _ => Level::Messages,
        },
        kind,
        speaker: match word("role") {
            "assistant" => Speaker::Assistant,
            "tool" => Speaker::Tool,
            "developer" | "system" => Speaker::Developer,
            _ if matches!(kind, Kind::ToolUse | Kind::Thinking) => Speaker::Assistant,
            _ => Speaker::User,
        },
        markable: block.get("cacheable").and_then(Value::as_bool).unwrap_or(true),
        blocks: 1,
    }
}

//! Which cache model a policy asks for.

use crate::cache::anthropic::{self, Explicit};
use crate::cache::automatic::{self, Automatic};
use crate::cache::deepseek::{self, Units};
use crate::cache::gemini::Objects;
use crate::cache::llamacpp::Slots;
use crate::cache::minimum::Minimum;
use crate::cache::openai::{self, Boundaries};
use crate::cache::sglang::Radix;
use crate::cache::vllm::Blocks;
use crate::cache::{Observed, Outcome, PrefixCache, Refusal, platforms};
use crate::policy::{self, CacheModel, Policy};
use crate::world::{Millis, clock};

/// Step of OpenAI up to GPT-5.5 and of xAI, in tokens.
const OPENAI_GRANULE: u64 = 128;
/// Step of DeepSeek 2024 and of Mistral, in tokens.
const SMALL_GRANULE: u64 = 64;
/// Shortest implicit prefix at Gemini (2.5 models, September 2026), in tokens.
pub const GEMINI_MIN: u64 = 2_048;
/// Shortest implicit prefix at Qwen, October 2026, in tokens; 256 until mid-2026.
const QWEN_IMPLICIT_MIN: u64 = 1_024;

/// Names of the cache models and what each stands for; the names are the values of the knob `cache.model`.
pub const MODELS: &[(&str, &str)] = &[
    ("anthropic", "Anthropic Messages: four markers, 5m and 1h, 20 positions back"),
    ("bedrock", "Claude on Bedrock, older endpoint: own minimums, no automatic marker"),
    ("vertex", "Claude on Vertex AI: shared by organisation"),
    ("openrouter", "Claude through OpenRouter: forgotten after ten idle minutes"),
    ("openai", "OpenAI up to GPT-5.5: from 1,024 tokens in steps of 128"),
    ("openai-5.6", "OpenAI from GPT-5.6: boundaries at message ends, 30 minutes, write fee"),
    ("gemini", "Gemini, implicit"),
    ("gemini-explicit", "Gemini, named objects"),
    ("deepseek-2024", "DeepSeek until 2026: units of 64 tokens"),
    ("deepseek-2026", "DeepSeek from 2026: whole units between request ends"),
    ("qwen", "Qwen, explicit"),
    ("qwen-implicit", "Qwen, implicit"),
    ("qwen4", "Qwen4, explicit: 5m and 1h, renewed by the reading request"),
    ("moonshot", "Moonshot: steps of 256, an exact resend is read whole"),
    ("minimax", "MiniMax, explicit"),
    ("minimax-passive", "MiniMax, passive"),
    ("mistral", "Mistral: steps of 64, only with a key"),
    ("xai", "xAI: steps of 128, per server"),
    ("vllm", "vLLM V1: full blocks, queue of free ones"),
    ("sglang", "SGLang: radix tree"),
    ("llamacpp", "llama.cpp server: slots"),
    ("ideal", "everything sent before is read: the upper bound"),
    ("off", "nothing is ever read: the lower bound"),
];

/// The cache that a policy asks for.
pub fn for_policy(policy: &Policy) -> Box<dyn PrefixCache> {
    model(policy.cache.model, &policy.cache)
}

/// A cache of this model, with the constants of these knobs; it panics when the parts of an answer do not add up.
pub fn model(model: CacheModel, knobs: &policy::Cache) -> Box<dyn PrefixCache> {
    Box::new(AddsUp { inner: unchecked(model, knobs), may_drop: knobs.strips_prior_thinking })
}

fn unchecked(model: CacheModel, knobs: &policy::Cache) -> Box<dyn PrefixCache> {
    let seconds =
        |seconds: u64| Millis::try_from(seconds).unwrap_or(Millis::MAX / clock::SECOND) * clock::SECOND;
    let explicit = |rules: anthropic::Rules| -> Box<dyn PrefixCache> { Box::new(Explicit::new(rules)) };
    let steps = |tokens_min: u64, granule: u64, idle: u64| automatic::Rules {
        tokens_min: knobs.tokens_min.unwrap_or(tokens_min),
        granule,
        idle: Some(seconds(idle)),
        ..automatic::Rules::default()
    };
    let automatic = |rules: automatic::Rules| -> Box<dyn PrefixCache> { Box::new(Automatic::new(rules)) };
    let passive = knobs.passive_idle;
    match model {
        CacheModel::Anthropic => explicit(anthropic::Rules::of(knobs)),
        CacheModel::Bedrock => explicit(platforms::bedrock(knobs)),
        CacheModel::Vertex => explicit(platforms::vertex(knobs)),
        CacheModel::OpenRouter => explicit(platforms::openrouter(knobs)),
        CacheModel::Qwen => explicit(platforms::qwen(knobs)),
        CacheModel::Qwen4 => explicit(platforms::qwen4(knobs)),
        CacheModel::MiniMax => explicit(platforms::minimax(knobs)),
        CacheModel::OpenAi => automatic(steps(openai::TOKENS_MIN, OPENAI_GRANULE, knobs.openai_idle)),
        CacheModel::OpenAi56 => Box::new(Boundaries::new(openai::Rules::of(knobs))),
        CacheModel::Gemini => automatic(steps(GEMINI_MIN, knobs.gemini_granule, knobs.gemini_idle)),
        CacheModel::GeminiExplicit => {
            let tokens_min = Minimum::Fixed(knobs.tokens_min.unwrap_or(GEMINI_MIN));
            Box::new(Objects::new(tokens_min, seconds(knobs.gemini_object_life)))
        }
        CacheModel::DeepSeek2024 => automatic(automatic::Rules {
            settle: seconds(knobs.deepseek_settle),
            ..steps(SMALL_GRANULE, SMALL_GRANULE, knobs.deepseek_idle)
        }),
        CacheModel::DeepSeek2026 => Box::new(Units::new(deepseek::Rules {
            interval: knobs.deepseek_interval,
            idle: Some(seconds(knobs.deepseek_idle)),
            settle: 0,
            tokens_min: knobs.tokens_min.unwrap_or(0),
        })),
        CacheModel::QwenImplicit => automatic(steps(QWEN_IMPLICIT_MIN, 1, passive)),
        CacheModel::Moonshot => automatic(automatic::Rules {
            full_resend: true,
            by_key: false,
            ..steps(knobs.moonshot_granule, knobs.moonshot_granule, passive)
        }),
        CacheModel::MiniMaxPassive => automatic(steps(platforms::MINIMAX_MIN, 1, passive)),
        CacheModel::Mistral => Box::new(WithKey {
            key: knobs.key.clone(),
            inner: Automatic::new(automatic::Rules {
                requires_key: true,
                ..steps(SMALL_GRANULE, SMALL_GRANULE, passive)
            }),
        }),
        CacheModel::Xai => automatic(steps(OPENAI_GRANULE, OPENAI_GRANULE, passive)),
        CacheModel::Vllm => Box::new(Blocks::new(knobs.block_size, knobs.capacity_blocks)),
        CacheModel::Sglang => Box::new(Radix::new(knobs.page_size, knobs.capacity_tokens, knobs.eviction)),
        CacheModel::LlamaCpp => Box::new(Slots::new(knobs.slots, knobs.slot_similarity)),
        CacheModel::Ideal => automatic(automatic::Rules::default()),
        CacheModel::Off => Box::new(Off),
    }
}

/// Asserts that the parts of every answer are the prompt, or less where thinking is dropped from it.
struct AddsUp {
    inner: Box<dyn PrefixCache>,
    may_drop: bool,
}

impl PrefixCache for AddsUp {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let outcome = self.inner.observe(at, request)?;
        let (parts, prompt) = (outcome.prompt(), request.total());
        assert!(
            parts == prompt || self.may_drop && parts < prompt,
            "{outcome:?} is not the prompt of {prompt}"
        );
        Ok(outcome)
    }

    fn forget(&mut self, at: Millis) {
        self.inner.forget(at);
    }
}

/// Requests without a key of their own get the policy's.
struct WithKey {
    key: String,
    inner: Automatic,
}

impl PrefixCache for WithKey {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let key = if request.key.is_empty() { self.key.as_str() } else { request.key };
        self.inner.observe(at, &Observed { key, ..*request })
    }

    fn forget(&mut self, at: Millis) {
        self.inner.forget(at);
    }
}

/// No cache at all.
struct Off;

impl PrefixCache for Off {
    fn observe(&mut self, _: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        Ok(Outcome::read_of(0, request.total()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;
    use crate::policy::KnobValue as _;

    #[test]
    fn every_value_of_the_knob_is_a_listed_model() {
        let listed: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
        assert_eq!(CacheModel::range(None), listed.join(", "));
    }

    proptest::proptest! {
        /// Three conversations that grow, rest for seconds or hours and start over, on every model.
        #[test]
        fn forgetting_what_has_expired_changes_no_answer(
            steps in proptest::collection::vec((0_usize..3, 0_usize..5, 0_usize..6, 1_u64..900), 1..40)
        ) {
            const RESTS: [Millis; 6] = [0, 1_000, 200_000, 400_000, 4_000_000, 90_000_000];
            for (name, _) in MODELS {
                let named = serde_json::Value::from(*name);
                let of_name = CacheModel::read(&named, None).expect("a listed model");
                let knobs = policy::Cache { tokens_min: Some(0), ..policy::Cache::default() };
                let (mut whole, mut light) = (unchecked(of_name, &knobs), unchecked(of_name, &knobs));
                let mut at = 0;
                let mut said = [const { String::new() }; 3];
                for (turn, (who, cut, rest, tokens)) in steps.iter().enumerate() {
                    at += RESTS[*rest];
                    if *cut == 0 {
                        said[*who].clear();
                    }
                    let ttl = ["", "*5m", "*1h", "*30m", "*5m"][*cut];
                    said[*who].push_str(&format!(" w{who}t{turn}:{tokens}{ttl}"));
                    let pieces: Vec<&str> = said[*who].split_whitespace().collect();
                    let marked = pieces.iter().filter(|piece| piece.contains('*')).count();
                    if marked > 4 {
                        said[*who].clear();
                        continue;
                    }
                    let request = prompt(&said[*who]).answered(&format!("a{turn}"), 7);
                    light.forget(at);
                    proptest::prop_assert_eq!(
                        request.send(&mut *whole, at),
                        request.send(&mut *light, at),
                        "{} at step {}", name, turn
                    );
                }
            }
        }
    }
}

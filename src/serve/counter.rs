//! Tokens of a prompt, and what a provider's cache reads and writes of it.

use std::collections::BTreeMap;
use std::hash::BuildHasherDefault;

use indexmap::IndexMap;

use crate::audit::prompt::{Kind as SegKind, Prompt, Seg, Shape, Speaker as SegSpeaker};
use crate::cache::{self, Facts, Kind, Observed, Outcome, PrefixCache, Refusal, Speaker};
use crate::policy::{self, CacheModel};
use crate::wire::{Chain, PassThrough};
use crate::world::Millis;

/// Texts whose tokens are remembered; the older half goes when there are more.
const COUNTED: usize = 1 << 16;
/// Prefixes that a cache model may hold; when there are more it begins anew, as a provider that lost its memory would.
const HELD_MAX: usize = 1 << 21;

/// Counts, and asks the cache models.
pub(crate) struct Counter {
    provider: Option<CacheModel>,
    knobs: policy::Cache,
    caches: BTreeMap<Shape, Slot>,
    counted: IndexMap<u128, u64, BuildHasherDefault<PassThrough>>,
    chains: Vec<Chain>,
    facts: Vec<Facts>,
}

struct Slot {
    cache: Box<dyn PrefixCache>,
    held: usize,
}

impl Counter {
    pub(crate) fn new(provider: Option<CacheModel>, knobs: policy::Cache) -> Self {
        Self {
            provider,
            knobs,
            caches: BTreeMap::new(),
            counted: IndexMap::default(),
            chains: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The cache model that answers for a protocol.
    pub(crate) fn model(&self, shape: Shape) -> CacheModel {
        self.provider.unwrap_or(match shape {
            Shape::Anthropic => CacheModel::Anthropic,
            _ => CacheModel::OpenAi,
        })
    }

    /// Tokens up to and including each segment.
    pub(crate) fn sizes(&mut self, prompt: &Prompt) -> Vec<u64> {
        let mut sum = 0;
        let mut sizes = Vec::with_capacity(prompt.segs.len());
        for at in 0..prompt.segs.len() {
            sum += self.tokens(prompt, at);
            sizes.push(sum);
        }
        sizes
    }

    fn tokens(&mut self, prompt: &Prompt, at: usize) -> u64 {
        let hash = prompt.segs[at].hash;
        if let Some(tokens) = self.counted.get(&hash) {
            return *tokens;
        }
        let tokens = cache::tokens::estimate(&prompt.compact(at));
        if self.counted.len() >= COUNTED {
            self.counted.drain(..COUNTED / 2);
        }
        self.counted.insert(hash, tokens);
        tokens
    }

    /// What the provider's cache makes of a prompt.
    pub(crate) fn observe(
        &mut self,
        now: Millis,
        prompt: &Prompt,
        sizes: &[u64],
    ) -> Result<Outcome, Refusal> {
        let model = self.model(prompt.shape);
        self.chains.clear();
        self.chains.extend(prompt.chain.iter().map(|hash| Chain::of_number(*hash)));
        self.facts.clear();
        self.facts.extend(prompt.segs.iter().map(facts));
        let params: Vec<(&str, &str)> =
            prompt.params.iter().map(|param| (param.name, param.value.as_str())).collect();
        let request = Observed {
            chains: &self.chains,
            sizes,
            marks: &prompt.marks,
            facts: &self.facts,
            model: &prompt.model,
            key: &prompt.route_key,
            params: &params,
            ..Observed::default()
        };
        // One provider for all protocols has one cache.
        let slot = if self.provider.is_some() { Shape::Chat } else { prompt.shape };
        let fresh = || Slot { cache: cache::model(model, &self.knobs), held: 0 };
        let slot = self.caches.entry(slot).or_insert_with(fresh);
        if slot.held > HELD_MAX {
            tracing::info!("the cache model holds {} prefixes and begins anew", slot.held);
            *slot = fresh();
        }
        let outcome = slot.cache.observe(now, &request)?;
        // What was not read may have become new entries, at most one a segment.
        let read = sizes.partition_point(|size| *size <= outcome.read);
        slot.held += if outcome.read == request.total() { 1 } else { sizes.len() - read };
        Ok(outcome)
    }
}

fn facts(seg: &Seg) -> Facts {
    Facts {
        level: seg.level,
        kind: match seg.kind {
            SegKind::Call => Kind::ToolUse,
            SegKind::Answer => Kind::ToolResult,
            SegKind::Thinking => Kind::Thinking,
            _ => Kind::Text,
        },
        speaker: match seg.speaker {
            SegSpeaker::Assistant => Speaker::Assistant,
            SegSpeaker::Tool => Speaker::Tool,
            SegSpeaker::System => Speaker::Developer,
            _ if seg.kind == SegKind::Answer => Speaker::Tool,
            _ if seg.kind == SegKind::Call || seg.kind == SegKind::Thinking => Speaker::Assistant,
            _ => Speaker::User,
        },
        markable: !seg.unmarkable,
        blocks: 1,
    }
}

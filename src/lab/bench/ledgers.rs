//! A ledger's requests put through cache models.
//!
//! The prompts are rebuilt from the ledger; sizes are counted in the ledger's own unit, so that a toy scenario whose
//! unit is the character reads as if a character were a token.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::compress::estimate;
use crate::agent::transcript::Measure;
use crate::cache::{Facts, Kind, Observed, Speaker, Ttl};
use crate::ledger::rebuild::{ConversationKey, Rebuild};
use crate::ledger::{Ledger, Name, What};
use crate::policy::SizeUnit;
use crate::wire::{Level, Segment};

use super::account::Account;

#[derive(Debug, Clone, Default)]
struct Positions {
    sizes: Vec<u64>,
    facts: Vec<Facts>,
}

/// Lets every account observe every request of a ledger, all lanes in their order.
pub fn observe(ledger: &Ledger, model: &str, accounts: &mut [Account]) {
    let characters = ledger.header.unit == SizeUnit::Characters.word();
    let measure: Measure = if characters { estimate::chars } else { estimate::text_tokens };
    let outputs: BTreeMap<u64, u64> = ledger
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Response(response) => Some((response.request, response.usage.output)),
            _ => None,
        })
        .collect();
    let mut rebuild = Rebuild::default();
    let mut positions: BTreeMap<ConversationKey, Positions> = BTreeMap::new();
    // Breaks that were declared and not yet used, by session.
    let mut declared: BTreeMap<Name, u64> = BTreeMap::new();
    for event in &ledger.events {
        if declares(&event.what) {
            *declared.entry(event.session.clone()).or_default() += 1;
        }
        let What::Request(request) = &event.what else { continue };
        let Some(seen) = rebuild.apply(event) else { continue };
        let Some(conversation) = rebuild.conversation(&seen.key) else { continue };
        let state = positions.entry(seen.key.clone()).or_default();
        let before = state.sizes.last().copied().unwrap_or(0);
        let common = state.sizes.get(seen.common.wrapping_sub(1)).copied().unwrap_or(0);
        // What is written against the request before is as long as that; a copied conversation is counted once.
        let kept = usize::try_from(request.kept).unwrap_or(0).min(state.sizes.len());
        state.sizes.truncate(kept);
        state.facts.truncate(kept);
        let mut size = state.sizes.last().copied().unwrap_or(0);
        for segment in &conversation.segments[kept..] {
            size += measure(&segment.text);
            state.sizes.push(size);
            state.facts.push(facts(segment));
        }
        let marks: Vec<(usize, Ttl)> = request
            .marks
            .iter()
            .filter_map(|(at, ttl)| Some((usize::try_from(*at).ok()?, Ttl::of_word(ttl)?)))
            .filter(|(at, _)| *at < conversation.chains.len())
            .collect();
        let observed = Observed {
            chains: &conversation.chains,
            sizes: &state.sizes,
            marks: &marks,
            facts: &state.facts,
            model,
            ..Observed::default()
        };
        let broke = !seen.first && seen.common < seen.before;
        let planned = !seen.first && declared.insert(event.session.clone(), 0).is_some_and(|count| count > 0);
        let output = outputs.get(&request.id).copied().unwrap_or(0);
        for account in &mut *accounts {
            account.observe(event.at, &observed, output);
            if broke && !planned {
                account.breaks.unplanned += 1;
                account.breaks.wasted += before.saturating_sub(common);
            } else if broke {
                account.breaks.planned += 1;
            }
        }
    }
}

/// True for what announces that the next request will not extend the one before: a compaction, a declared rebuild.
fn declares(what: &What) -> bool {
    match what {
        What::Compaction(compaction) => compaction.committed,
        // The prompt that a compaction rebuilds is part of that one break.
        What::PromptReady(prompt) => {
            prompt.declared && !["first", "stored", "compaction"].contains(&&*prompt.why)
        }
        _ => false,
    }
}

/// What a cache may have to know of a segment of the runtime: a message is one position of several blocks.
pub fn facts(segment: &Segment) -> Facts {
    if segment.level != Level::Messages {
        return Facts { level: segment.level, speaker: Speaker::Developer, ..Facts::default() };
    }
    let message: Value = serde_json::from_str(&segment.text).unwrap_or_default();
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(0, Vec::len);
    let (speaker, kind) = match message.get("role").and_then(Value::as_str) {
        Some("assistant") if calls > 0 => (Speaker::Assistant, Kind::ToolUse),
        Some("assistant") => (Speaker::Assistant, Kind::Text),
        Some("tool") => (Speaker::Tool, Kind::ToolResult),
        Some("system" | "developer") => (Speaker::Developer, Kind::Text),
        _ => (Speaker::User, Kind::Text),
    };
    let words = match message.get("content") {
        Some(Value::String(text)) => usize::from(!text.is_empty()),
        Some(Value::Array(parts)) => parts.len(),
        _ => 0,
    };
    let blocks = u32::try_from((words + calls).max(1)).unwrap_or(u32::MAX);
    Facts { level: Level::Messages, kind, speaker, markable: true, blocks }
}

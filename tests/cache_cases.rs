//! Recorded request logs under the cache model: which segments each request reads.
//!
//! The cases assume no minimum size, entries that are readable once a request is done, and one position a segment.

use hermes_lab::cache::anthropic::{Explicit, Rules};
use hermes_lab::cache::minimum::Minimum;
use hermes_lab::cache::{Facts, Kind, Observed, PrefixCache as _, Ttl};
use hermes_lab::wire::{Chain, Level, Segment};
use serde_json::Value;

/// A request in positions; sizes count segments.
#[derive(Default)]
struct Prompt {
    chains: Vec<Chain>,
    sizes: Vec<u64>,
    facts: Vec<Facts>,
    marks: Vec<(usize, Ttl)>,
}

impl Prompt {
    fn push(&mut self, level: Level, role: &str, block: &Value) {
        let mut block = block.clone();
        let marker = block.as_object_mut().and_then(|object| object.shift_remove("cache_control"));
        if let Some(marker) = marker {
            let word = marker.get("ttl").and_then(Value::as_str).unwrap_or("5m");
            self.marks.push((self.chains.len(), Ttl::of_word(word).expect("a lifetime")));
        }
        let kind = match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => Kind::ToolUse,
            Some("tool_result") => Kind::ToolResult,
            _ => Kind::Text,
        };
        let before = self.chains.last().copied().unwrap_or(Chain::EMPTY);
        self.chains.push(before.then(&Segment::new(level, format!("{role}{block}"))));
        self.sizes.push(self.chains.len() as u64);
        self.facts.push(Facts { level, kind, ..Facts::default() });
    }

    fn of(request: &Value) -> Self {
        let mut prompt = Self::default();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        for tool in list(&request["tools"]) {
            prompt.push(Level::Tools, "", &tool);
        }
        for part in list(&request["system"]) {
            prompt.push(Level::System, "", &part);
        }
        for message in list(&request["messages"]) {
            let role = message["role"].as_str().unwrap_or_default();
            for block in list(&message["content"]) {
                prompt.push(Level::Messages, role, &block);
            }
        }
        prompt
    }
}

fn replay(name: &str) -> (Value, Vec<Option<u64>>, Vec<usize>) {
    let folder = format!("{}/tests/cases/{name}", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a test reads its own data files")]
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).expect("a file of the case");
    let case: Value = serde_json::from_str(&read("case.json")).expect("JSON");
    let mut cache = Explicit::new(Rules { tokens_min: Minimum::Fixed(0), ..Rules::default() });
    let (mut hits, mut totals) = (Vec::new(), Vec::new());
    for line in read("requests.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let instant = |key: &str| {
            let text = row.get(key).and_then(Value::as_str)?;
            Some(text.parse::<jiff::Timestamp>().expect("an instant").as_millisecond())
        };
        let at = instant("at").expect("a start");
        let prompt = Prompt::of(&row["request"]);
        let params: Vec<(&str, String)> = ["thinking", "tool_choice"]
            .into_iter()
            .filter_map(|name| Some((name, row["request"].get(name)?.to_string())))
            .collect();
        let params: Vec<(&str, &str)> = params.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let request = Observed {
            chains: &prompt.chains,
            sizes: &prompt.sizes,
            marks: &prompt.marks,
            facts: &prompt.facts,
            model: row["request"]["model"].as_str().unwrap_or_default(),
            params: &params,
            first_token: instant("done_at").map(|done| done - at),
            // Conversations of one log are played as if each had the cache to itself.
            key: row.get("conversation").and_then(Value::as_str).unwrap_or("main"),
            ..Observed::default()
        };
        hits.push(cache.observe(at, &request).ok().map(|outcome| outcome.read));
        totals.push(prompt.chains.len());
    }
    (case, hits, totals)
}

#[test]
fn every_recorded_log_reads_the_segments_that_it_should() {
    for name in [
        "cache-change-after-last-breakpoint",
        "cache-clock-in-system",
        "cache-idle-gap",
        "cache-memory-frozen-control",
        "cache-memory-read-live",
        "cache-parallel-results-reordered",
        "cache-reminder-migrates-on-resume",
        "cache-sliding-result-clearing",
        "cache-thinking-toggle",
        "cache-tool-server-reconnect",
        "cache-wide-turn-lookback",
    ] {
        let (case, hits, totals) = replay(name);
        assert_eq!(case["expected"]["hit_segments"], serde_json::json!(hits), "{name}");
        if let Some(expected) = case["expected"].get("total_segments") {
            assert_eq!(*expected, serde_json::json!(totals), "{name}");
        }
    }
}

#[test]
fn the_fifth_marker_is_refused_and_the_others_go_through() {
    let (case, hits, _) = replay("cache-five-breakpoints");
    let refused: Vec<usize> = (0..hits.len()).filter(|&index| hits[index].is_none()).collect();
    assert_eq!(case["expected"]["rejected"], serde_json::json!(refused));
}

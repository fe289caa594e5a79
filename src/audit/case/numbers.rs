//! Facts about token counts: shares, costs, compactions that do not help.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::audit::case::{CaseFault, Facts, lines};
use crate::audit::judge::{Auditor, Options};
use crate::audit::record::Record;
use crate::audit::summary::round;
use crate::audit::usage::{self, Usage};
use crate::audit::words::{Cause, Verdict};
use crate::cache::prices::Price;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn counts(line: &Value) -> Option<Usage> {
    line.get("usage")
        .or_else(|| line.pointer("/response/usage"))
        .or_else(|| line.pointer("/response/usageMetadata"))
        .and_then(usage::read)
}

/// Health of each conversation, from its counts alone.
pub(super) fn conversations(bytes: &[u8]) -> Result<Facts, CaseFault> {
    let mut auditor = Auditor::new(Options { strict_bytes: true, by_name: true, fold: false });
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (index, line) in lines("usage.jsonl", bytes)?.iter().enumerate() {
        let name = line.get("conversation").and_then(Value::as_str).unwrap_or("main").to_owned();
        let usage = counts(line);
        if let Some(usage) = &usage {
            let sum = sums.entry(name.clone()).or_default();
            sum.0 += usage.read;
            sum.1 += usage.prompt();
        }
        let record = Record {
            line: index as u64 + 1,
            at: crate::audit::read::time_of(text(line, "at")),
            conversation: Some(name),
            shape: crate::audit::prompt::Shape::of_name(text(line, "provider")),
            usage,
            ..Record::default()
        };
        // A line without counts is judged as such.
        let _ = auditor.take(&record, &[]);
    }
    let audit = auditor.finish();
    let mut found = Facts::new();
    let mut healthy = true;
    for (number, name) in audit.conversations.iter().enumerate() {
        let (read, prompt) = sums.get(name).copied().unwrap_or_default();
        let share = if prompt == 0 { 0.0 } else { round(read as f64 / prompt as f64) };
        let own = audit.requests.iter().filter(|judged| judged.conversation == number);
        let bad = own
            .clone()
            .find(|judged| matches!(judged.verdict, Verdict::UnplannedBreak | Verdict::EvictedOrUnexplained));
        let floor = audit.pinned.iter().find(|(pinned, _)| *pinned == number).map(|(_, floor)| *floor);
        let quiet = own.clone().find(|judged| !matches!(judged.cause, Cause::None | Cause::ColdStart));
        let cause = bad.or(quiet).map_or(Cause::None, |judged| judged.cause);
        let mut facts = Facts::new();
        healthy &= bad.is_none();
        facts.insert("verdict".into(), if bad.is_some() { "violation" } else { "ok" }.into());
        facts.insert("cause".into(), json!(cause));
        if let Some(bad) = bad {
            facts.insert("first_broken_request".into(), bad.index.into());
        }
        if let Some(floor) = floor {
            facts.insert("floor_tokens".into(), floor.into());
        }
        facts.insert("cached_share".into(), json!(share));
        found.insert(name.clone(), Value::Object(facts));
    }
    let mut facts = Facts::new();
    facts.insert("conversations".into(), Value::Object(found));
    facts.insert("verdict".into(), if healthy { "ok" } else { "violation" }.into());
    Ok(facts)
}

fn price(prices: &Value, model: &str) -> Option<Price> {
    let own = prices.get(model)?;
    let get = |name: &str| own.get(name).filter(|price| price.is_number()).map(ToString::to_string);
    let input = get("input")?;
    let write_5m = get("cache_write_5m").or_else(|| get("cache_write"));
    let write_1h = get("cache_write_1h").or_else(|| write_5m.clone());
    let read = get("cache_read").unwrap_or_else(|| input.clone());
    let output = get("output").unwrap_or_else(|| "0".to_owned());
    let writes = [write_5m.as_deref(), None, write_1h.as_deref()];
    Price::per_million(model, &input, &read, writes, &output).ok()
}

fn dollars(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}

/// Every row in one form, and its price.
pub(super) fn costs(usage: &[u8], prices: &[u8]) -> Result<Facts, CaseFault> {
    let prices: Value = serde_json::from_slice(prices).map_err(|error| CaseFault::Input {
        file: "prices_per_million.json".into(),
        line: error.line(),
        reason: error.to_string(),
    })?;
    let mut rows = Facts::new();
    let (mut total, mut twice) = (0.0, 0.0);
    let mut priced = true;
    for line in lines("usage.jsonl", usage)? {
        let Some(found) = counts(&line) else { continue };
        let Some(price) = price(&prices, text(&line, "model")) else {
            priced = false;
            continue;
        };
        let cost = price.cost(&found).dollars();
        let own = line.get("usage").or_else(|| line.pointer("/response/usage")).unwrap_or(&Value::Null);
        total += cost;
        // The common error: the whole input at full price, and the cached part of it once more.
        let inside = own.get("prompt_tokens").is_some()
            || own.get("promptTokenCount").is_some()
            || own.get("input_tokens_details").is_some();
        let again = Usage { fresh: found.read + found.written(), ..Usage::default() };
        twice += cost + if inside { price.cost(&again).dollars() } else { 0.0 };
        rows.insert(
            text(&line, "id").to_owned(),
            json!({
                "fresh": found.fresh, "read": found.read, "write_5m": found.write_5m + found.write_30m, "write_1h": found.write_1h,
                "output": found.output, "cost": dollars(cost),
            }),
        );
    }
    let mut facts = Facts::new();
    facts.insert("normalised".into(), Value::Object(rows));
    facts.insert("total_cost".into(), json!(dollars(total)));
    facts.insert("total_if_cached_counted_twice".into(), json!(dollars(twice)));
    facts.insert("verdict".into(), if priced { "ok" } else { "violation" }.into());
    Ok(facts)
}

/// Compactions that do not get under the threshold.
pub(super) fn compactions(events: &[u8], rule: Option<&[u8]>) -> Result<Facts, CaseFault> {
    let rule: Value = rule.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let most = rule.get("max_ineffective_in_a_row").and_then(Value::as_u64).unwrap_or(2);
    let test = rule
        .get("ineffective_when")
        .and_then(Value::as_str)
        .unwrap_or("provider_prompt_tokens_next >= threshold");
    let (mut all, mut ineffective, mut wasted, mut disagrees) = (vec![], vec![], vec![], vec![]);
    let (mut row, mut stop) = (0, None);
    for event in lines("events.jsonl", events)? {
        if event.get("compacted").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let number = |name: &str| event.get(name).and_then(Value::as_u64);
        let turn = number("turn").unwrap_or(0);
        all.push(turn);
        if stop.is_some() {
            wasted.push(turn);
        }
        let bad = holds(test, &event);
        if bad {
            ineffective.push(turn);
            let threshold = number("threshold").unwrap_or(u64::MAX);
            if number("local_estimate_after").is_some_and(|estimate| estimate < threshold) {
                disagrees.push(turn);
            }
        }
        row = if bad { row + 1 } else { 0 };
        if row >= most && stop.is_none() {
            stop = Some(turn);
        }
    }
    let mut facts = Facts::new();
    let violated = !wasted.is_empty();
    let cause = if ineffective.is_empty() { Cause::None } else { Cause::CompactionIneffective };
    facts.insert("first_broken_request".into(), json!(ineffective.first()));
    facts.insert("compactions".into(), json!(all));
    facts.insert("ineffective".into(), json!(ineffective));
    facts.insert("must_stop_after_turn".into(), json!(stop));
    facts.insert("wasted_turns".into(), json!(wasted));
    facts.insert("estimate_disagrees".into(), json!(disagrees));
    facts.insert("cause".into(), json!(cause));
    facts.insert("verdict".into(), if violated { "violation" } else { "ok" }.into());
    Ok(facts)
}

/// A comparison of two fields or numbers, such as `a >= b`.
fn holds(test: &str, event: &Value) -> bool {
    let value = |side: &str| {
        let side = side.trim();
        event.get(side).and_then(Value::as_f64).or_else(|| side.parse().ok())
    };
    for sign in [">=", "<=", "==", ">", "<"] {
        let Some((left, right)) = test.split_once(sign) else { continue };
        let (Some(left), Some(right)) = (value(left), value(right)) else { return false };
        return match sign {
            ">=" => left >= right,
            "<=" => left <= right,
            ">" => left > right,
            "<" => left < right,
            _ => (left - right).abs() < f64::EPSILON,
        };
    }
    false
}

//! Tool calls as a model writes them, made usable: ids, names, arguments, duplicates.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::agent::transcript::canonical;
use crate::ledger::hex;
use crate::wire::ToolCall;

/// Similarity from which a name counts as a misspelling; Ratcliff–Obershelp ratio. Hermes
/// agent/turn_tool_validation.py:72.
const NAME_RATIO_MIN: f64 = 0.7;
/// Ids of one vendor that collide between batches.
const VENDOR_PREFIX: &str = "chatcmpl-tool-";

/// The half of a composite id that names the call.
pub fn call_half(id: &str) -> &str {
    id.split('|').next().unwrap_or(id).trim()
}

/// The id that the result of a call carries: the first half of `call|item`.
pub fn result_id(id: &str) -> &str {
    id.split('|').next().unwrap_or(id)
}

/// Renames ids that were used before, in this batch or in `taken`: `<id>_d<n>`, `n` from 2, the first that is free.
pub fn unique_ids(ids: &[String], taken: &BTreeSet<String>) -> Vec<String> {
    let mut used = taken.clone();
    ids.iter()
        .map(|id| {
            let half = call_half(id);
            if half.is_empty() {
                return id.clone();
            }
            if used.insert(half.to_owned()) {
                return id.clone();
            }
            // One more name than ids and taken ones together: one of them is free.
            let fresh = (2..=used.len() + ids.len() + 2)
                .map(|n| format!("{half}_d{n}"))
                .find(|name| !used.contains(name) && !ids.iter().any(|other| call_half(other) == name))
                .unwrap_or_else(|| half.to_owned());
            used.insert(fresh.clone());
            match id.split_once('|') {
                Some((_, item)) => format!("{fresh}|{item}"),
                None => fresh,
            }
        })
        .collect()
}

/// Renames a batch of two or more whose ids all have one vendor's colliding form.
pub fn provider_ids(ids: &[String]) -> Vec<String> {
    if ids.len() < 2 || !ids.iter().all(|id| id.starts_with(VENDOR_PREFIX)) {
        return ids.to_vec();
    }
    ids.iter()
        .map(|id| {
            let half = call_half(id);
            let name = format!("call_{}", &hex(&Sha256::digest(half.as_bytes()))[..12]);
            match id.split_once('|') {
                Some((_, item)) => format!("{name}|{item}"),
                None => name,
            }
        })
        .collect()
}

/// The tool that a misspelt name means, if any.
pub fn repair_name(name: &str, valid: &[String]) -> Option<String> {
    let known = |name: &str| valid.iter().find(|tool| *tool == name).cloned();
    let cut = match name.find(['"', '\'', '<', '>']) {
        Some(at) if at > 0 => name[..at].trim(),
        _ => name.trim(),
    };
    if cut.is_empty() {
        return None;
    }
    if let Some(tool) = known(cut) {
        return Some(tool);
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let snake = |text: &str| {
        let mut out = String::new();
        let mut before: Option<char> = None;
        for c in text.chars() {
            if c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit()) {
                out.push('_');
            }
            out.push(c);
            before = Some(c);
        }
        plain(&out)
    };
    let strip = |text: &str| {
        let mut text = text.to_owned();
        for _ in 0..2 {
            for ending in ["_tool", "-tool", "tool"] {
                if let Some(short) = text.strip_suffix(ending) {
                    text = short.trim_end_matches(['_', '-']).to_owned();
                    break;
                }
            }
        }
        text
    };
    let lower = cut.to_lowercase();
    let candidates =
        [lower.clone(), plain(cut), snake(cut), strip(&plain(cut)), strip(&snake(cut)), snake(&strip(cut))];
    if let Some(tool) = candidates.iter().find_map(|candidate| known(candidate)) {
        return Some(tool);
    }
    valid
        .iter()
        .map(|tool| (ratio(&lower, tool), tool))
        .filter(|(ratio, _)| *ratio >= NAME_RATIO_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)))
        .map(|(_, tool)| tool.clone())
}

/// Ratcliff–Obershelp similarity: twice the matching characters over both lengths.
pub fn ratio(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let total = a.len() + b.len();
    if total == 0 { 1.0 } else { 2.0 * matching(&a, &b) as f64 / total as f64 }
}

fn matching(a: &[char], b: &[char]) -> usize {
    let mut sum = 0;
    let mut open = vec![(0, a.len(), 0, b.len())];
    // Lengths of the matches that end at each place of `b`, for the place of `a` before and for this one.
    let (mut lengths, mut next) = (vec![0usize; b.len()], vec![0usize; b.len()]);
    while let Some((a_low, a_high, b_low, b_high)) = open.pop() {
        let (mut best, mut at_a, mut at_b) = (0, a_low, b_low);
        lengths.fill(0);
        for (i, left) in a.iter().enumerate().take(a_high).skip(a_low) {
            next.fill(0);
            for j in b_low..b_high {
                if *left == b[j] {
                    let length = if j > b_low { lengths[j - 1] + 1 } else { 1 };
                    next[j] = length;
                    if length > best {
                        (best, at_a, at_b) = (length, i + 1 - length, j + 1 - length);
                    }
                }
            }
            std::mem::swap(&mut lengths, &mut next);
        }
        if best > 0 {
            sum += best;
            open.push((a_low, at_a, b_low, at_b));
            open.push((at_a + best, a_high, at_b + best, b_high));
        }
    }
    sum
}

/// Places of the calls that stay when each repeated call (same tool, same arguments) is left out.
pub fn dedupe(calls: &[ToolCall]) -> Vec<usize> {
    if let [_] = calls {
        return vec![0];
    }
    let mut seen = BTreeSet::new();
    (0..calls.len())
        .filter(|&index| seen.insert((calls[index].name.clone(), canonical(&calls[index].arguments))))
        .collect()
}

/// What is wrong with the argument texts of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// All parse.
    Good,
    /// One was cut off in the middle.
    Cut,
    /// One does not parse, though it ends like JSON.
    Broken,
}

/// Looks at the argument texts; empty ones are made an empty object first.
pub fn check_arguments(calls: &mut [ToolCall]) -> Arguments {
    let mut verdict = Arguments::Good;
    for call in calls {
        let text = call.arguments.trim();
        if text.is_empty() {
            "{}".clone_into(&mut call.arguments);
        } else if !parses(text) {
            if !text.ends_with(['}', ']']) {
                return Arguments::Cut;
            }
            verdict = Arguments::Broken;
        }
    }
    verdict
}

/// True when an argument text is JSON.
pub fn parses(text: &str) -> bool {
    text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok()
}

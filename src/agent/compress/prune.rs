//! Shortening old tool output without a model: duplicates, one-line summaries, images, and pressure inside the tail.
//!
//! Works on a copy; arguments of calls are never changed. Output that the model has not read yet is spared.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::compress::estimate::{Sizer, chars, has_image, is_image_part};
use crate::agent::compress::threshold::{share, soft_ceiling};
use crate::agent::compress::{history, tool_summary};
use crate::policy::Compress;
use crate::wire::{Content, Row};

/// Stands in for an older copy of a result.
pub const BACK_REFERENCE: &str = "[Same output as a newer call further down; see there.]";
/// Stands in for a stripped screenshot.
pub const STRIPPED_IMAGE: &str = "[image removed to save context]";
/// Stands in for output that is gone.
pub const CLEARED: &str = "[old tool output cleared to save context]";

/// What became of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Keep,
    /// It refers to a newer copy.
    Duplicate,
    /// It became one line.
    Summarized,
    /// It lost its images.
    ImageStripped,
}

/// What is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Rows at the end.
    pub rows: usize,
    /// Budget of the end, in the unit of the policy; none to count rows alone.
    pub budget: Option<u64>,
    /// Window of the model.
    pub window: u64,
    /// Room for input.
    pub input_budget: u64,
    /// Longest result that is left alone.
    pub min_chars: u64,
}

/// The pruned copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// The rows.
    pub rows: Vec<Row>,
    /// Changes made, all passes together.
    pub count: usize,
    /// What became of each row; the last pass that touched a row decides.
    pub decisions: Vec<Decision>,
    /// Names of skills whose long text was dropped.
    pub skills: Vec<String>,
}

impl Pruned {
    /// Rows of which nothing was changed.
    pub fn untouched(rows: &[Row]) -> Self {
        Self {
            rows: rows.to_vec(),
            count: 0,
            decisions: vec![Decision::Keep; rows.len()],
            skills: Vec::new(),
        }
    }
}

struct Pass<'a> {
    policy: &'a Compress,
    rows: Vec<Row>,
    prices: Vec<u64>,
    /// Where each result's call stands, as `(tool, arguments)`.
    calls: BTreeMap<String, (String, String)>,
    spared: std::ops::Range<usize>,
    tail: Tail,
    count: usize,
    decisions: Vec<Decision>,
    skills: Vec<String>,
}

/// Shortens old tool output (Hermes agent/context_compressor.py:3300).
pub fn prune(rows: &[Row], tail: Tail, policy: &Compress) -> Pruned {
    let mut calls = BTreeMap::new();
    for call in rows.iter().flat_map(Row::call_list) {
        calls.insert(call.id.clone(), (call.name.clone(), call.arguments.clone()));
    }
    let mut pass = Pass {
        policy,
        prices: Sizer::new(policy).rows(rows),
        rows: rows.to_vec(),
        calls,
        spared: 0..0,
        tail,
        count: 0,
        decisions: vec![Decision::Keep; rows.len()],
        skills: Vec::new(),
    };
    let mut boundary = boundary(&pass.prices, tail, policy);
    if let Some(pending) = history::pending_round(rows) {
        let price: u64 = pass.prices[pending.start - 1..pending.end].iter().sum();
        if price <= share(tail.input_budget, policy.pending_share) {
            boundary = boundary.min(pending.start - 1);
            pass.spared = pending;
        }
    }
    pass.duplicates();
    pass.old_results(boundary);
    pass.images();
    pass.pressure(boundary);
    Pruned { rows: pass.rows, count: pass.count, decisions: pass.decisions, skills: pass.skills }
}

/// First row that is protected (Hermes agent/context_compressor.py:3168).
fn boundary(prices: &[u64], tail: Tail, policy: &Compress) -> usize {
    let n = prices.len();
    let Some(budget) = tail.budget else { return n.saturating_sub(tail.rows) };
    let cap = usize::try_from(policy.protect_last_cap).unwrap_or(usize::MAX);
    let least = tail.rows.min(n).min(cap);
    let mut sum = 0u64;
    let mut at = 0;
    for index in (0..n).rev() {
        if sum + prices[index] > budget && n - index >= least {
            at = index;
            break;
        }
        sum += prices[index];
    }
    at.min(n - least)
}

fn looks_like_stub(text: &str) -> bool {
    text == BACK_REFERENCE
        || text == STRIPPED_IMAGE
        || text == CLEARED
        || (text.starts_with('[') && text.contains(" chars)") && chars(text) < 400)
}

impl Pass<'_> {
    fn set(&mut self, index: usize, content: Content, decision: Decision) {
        self.rows[index].content = content;
        self.rows[index].extra.remove("api_content");
        self.prices[index] = Sizer::new(self.policy).row(&self.rows[index], false);
        self.decisions[index] = decision;
        self.count += 1;
    }

    fn duplicates(&mut self) {
        let least = self.policy.duplicate_min_chars;
        let mut seen = std::collections::BTreeSet::new();
        let mut old = Vec::new();
        for (index, row) in self.rows.iter().enumerate().rev().filter(|(_, row)| row.is_tool()) {
            let Some(text) = row.content.text().filter(|text| chars(text) >= least) else { continue };
            if !looks_like_stub(text) && !seen.insert(text) {
                old.push(index);
            }
        }
        for index in old {
            self.set(index, Content::from(BACK_REFERENCE), Decision::Duplicate);
        }
    }

    fn call_of(&self, index: usize) -> (String, String) {
        let row = &self.rows[index];
        let known = row.tool_call_id.as_ref().and_then(|id| self.calls.get(id)).cloned();
        known.unwrap_or_else(|| (row.name.clone().unwrap_or_else(|| "unknown".to_owned()), String::new()))
    }

    /// True when the result is text that may become one line.
    fn is_long(&self, index: usize) -> bool {
        self.rows[index].is_tool()
            && self.rows[index]
                .content
                .text()
                .is_some_and(|text| chars(text) > self.tail.min_chars && !looks_like_stub(text))
    }

    fn summarize(&mut self, index: usize) {
        let (tool, arguments) = self.call_of(index);
        let content = self.rows[index].content.flat();
        let line = tool_summary::summarize(&tool, &arguments, &content);
        if line.skill_marker {
            self.skills.extend(skill_name(&arguments));
        }
        self.set(index, Content::from(line.text), Decision::Summarized);
    }

    fn strip_images(&mut self, index: usize) {
        if let Some(stripped) = without_images(&self.rows[index].content) {
            self.set(index, stripped, Decision::ImageStripped);
        }
    }

    fn old_results(&mut self, boundary: usize) {
        let guarded = self.guarded_skills(boundary);
        for index in 0..boundary.min(self.rows.len()) {
            if self.spared.contains(&index) {
                continue;
            }
            if self.rows[index].is_tool() && has_image(&self.rows[index].content) {
                self.strip_images(index);
            } else if self.is_long(index) && !self.is_guarded(index, &guarded) {
                self.summarize(index);
            }
        }
    }

    /// Skills that are still in use (Hermes agent/context_compressor.py:1104).
    fn guarded_skills(&self, boundary: usize) -> Vec<String> {
        let n = self.rows.len();
        let recent =
            n.saturating_sub(usize::try_from(self.policy.skill_guard_rows).unwrap_or(n)).min(boundary);
        let mut viewed = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            for call in row.call_list().iter().filter(|call| call.name == "skill_view") {
                viewed.extend(skill_name(&call.arguments).map(|name| (index, name)));
            }
        }
        if viewed.is_empty() {
            return Vec::new();
        }
        let said: Vec<String> = self.rows[boundary.min(n)..]
            .iter()
            .filter(|row| row.is_user())
            .map(|row| row.content.flat().to_lowercase())
            .collect();
        viewed
            .into_iter()
            .filter(|(index, name)| {
                *index >= recent || said.iter().any(|text| text.contains(&name.to_lowercase()))
            })
            .map(|(_, name)| name)
            .collect()
    }

    fn is_guarded(&self, index: usize, guarded: &[String]) -> bool {
        let (tool, arguments) = self.call_of(index);
        tool == "skill_view" && skill_name(&arguments).is_some_and(|name| guarded.contains(&name))
    }

    /// Only the newest results with images keep them (Hermes agent/context_compressor.py:1462).
    fn images(&mut self) {
        let bearing: Vec<usize> = (0..self.rows.len())
            .rev()
            .filter(|index| self.rows[*index].is_tool() && has_image(&self.rows[*index].content))
            .collect();
        let keep = usize::try_from(self.policy.keep_image_results).unwrap_or(usize::MAX);
        for index in bearing.into_iter().skip(keep) {
            if !self.spared.contains(&index) {
                self.strip_images(index);
            }
        }
    }

    /// Shortens results inside the protected tail when it is still too heavy (Hermes agent/context_compressor.py:3239).
    fn pressure(&mut self, boundary: usize) {
        let n = self.rows.len();
        let Some(budget) = self.tail.budget.filter(|_| boundary < n.saturating_sub(3)) else { return };
        let ceiling = soft_ceiling(budget, self.tail.window, self.policy);
        let mut weight: u64 = self.prices[boundary..].iter().sum();
        let newest = (boundary..n).rev().find(|index| self.rows[*index].is_tool());
        let phases = [(n - 3, None), (n, newest), (n, None)];
        for (end, spare) in phases {
            for index in boundary..end {
                if weight <= ceiling {
                    return;
                }
                if Some(index) == spare || self.spared.contains(&index) || !self.is_long(index) {
                    continue;
                }
                weight -= self.prices[index];
                self.summarize(index);
                weight += self.prices[index];
            }
        }
    }
}

fn skill_name(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// The content with a note in place of its images; `None` when there is none.
pub fn without_images(content: &Content) -> Option<Content> {
    if !has_image(content) {
        return None;
    }
    let parts = content.parts()?;
    let replaced =
        parts
            .iter()
            .map(|part| {
                if is_image_part(part) {
                    json!({"type": "text", "text": STRIPPED_IMAGE})
                } else {
                    part.clone()
                }
            })
            .collect();
    Some(Content::Parts(replaced))
}

/// What a proactive prune did.
#[derive(Debug, Clone, PartialEq)]
pub enum Proactive {
    /// Nothing; the caller keeps its list as it is.
    Idle,
    /// The list was shortened.
    Committed {
        /// The shortened rows.
        rows: Vec<Row>,
        /// Changes made.
        count: usize,
        /// Size from which the next one may run.
        runway: u64,
    },
}

/// What a proactive prune has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProactiveLimits {
    /// Present size as billed; none when unknown.
    pub current: Option<u64>,
    /// Size at which a compaction is due.
    pub threshold: u64,
    /// Rows protected at the front.
    pub head: usize,
    /// Window of the model.
    pub window: u64,
    /// Room for input.
    pub input_budget: u64,
    /// Size from which it may run again.
    pub runway: u64,
}

/// Shortens old output between compactions (Hermes agent/context_compressor.py:3410).
pub fn proactive(rows: &[Row], limits: ProactiveLimits, policy: &Compress) -> Proactive {
    let trigger = policy.proactive_prune_tokens;
    if trigger == 0 || limits.current.is_some_and(|size| size < trigger) {
        return Proactive::Idle;
    }
    let protect = usize::try_from(policy.protect_last_n).unwrap_or(usize::MAX);
    if rows.len() <= protect.saturating_add(limits.head).saturating_add(1) {
        return Proactive::Idle;
    }
    let sizer = Sizer::new(policy);
    let before: u64 = sizer.rows(rows).iter().sum();
    let over = limits.current.is_some_and(|size| size >= limits.threshold);
    if before < limits.runway && !over {
        return Proactive::Idle;
    }
    let tail = Tail {
        rows: protect,
        budget: None,
        window: limits.window,
        input_budget: limits.input_budget,
        min_chars: policy.proactive_prune_min_result_chars.max(policy.prune_min_chars),
    };
    let pruned = prune(rows, tail, policy);
    let after: u64 = sizer.rows(&pruned.rows).iter().sum();
    let saved = before.saturating_sub(after);
    let least = policy.proactive_prune_min_reclaim_tokens;
    if pruned.count == 0 || saved < least {
        return Proactive::Idle;
    }
    let runway = after.saturating_add(saved.max(trigger).max(least));
    Proactive::Committed { rows: pruned.rows, count: pruned.count, runway }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_larger_than_the_history_protects_all_of_it() {
        let policy = Compress::default();
        let tail = Tail {
            rows: 20,
            budget: Some(1_000_000),
            window: 1_000_000,
            input_budget: 1_000_000,
            min_chars: 200,
        };
        assert_eq!(boundary(&[10, 10, 10], tail, &policy), 0);
        assert_eq!(boundary(&[], tail, &policy), 0);
    }

    #[test]
    fn text_beside_an_image_stays() {
        let parts = vec![json!({"type": "text", "text": "seen"}), json!({"type": "image", "data": "x"})];
        let stripped = without_images(&Content::Parts(parts)).unwrap();
        assert_eq!(stripped.flat(), format!("seen{STRIPPED_IMAGE}"));
    }
}

//! A whole log in numbers: hit rate and its bounds, money, the costliest causes, what to do first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::audit::judge::Audit;
use crate::audit::read::Reading;
use crate::audit::record::Judged;
use crate::audit::words::{Cause, Verdict};

/// What one cause cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Requests whose decisive cause it is.
    pub requests: usize,
    /// Tokens lost.
    pub lost: u64,
    /// Dollars lost, where prices are known.
    pub money: f64,
    /// Index of the first such request.
    pub first: usize,
    /// Times it stood behind another cause.
    pub latent: usize,
}

/// A log in numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Requests.
    pub requests: usize,
    /// Conversations.
    pub conversations: usize,
    /// How often each verdict was given.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// Tokens of all prompts.
    pub prompt: u64,
    /// Tokens read.
    pub read: u64,
    /// Tokens written.
    pub written: u64,
    /// Tokens paid in full.
    pub uncached: u64,
    /// Tokens lost.
    pub lost: u64,
    /// Requests whose tokens a provider counted.
    pub billed: usize,
    /// Dollars for the prompts, where known.
    pub money: Option<f64>,
    /// Dollars lost, where known.
    pub money_lost: Option<f64>,
    /// Causes by cost, the costliest first.
    pub causes: Vec<(Cause, Cost)>,
    /// Faults of histories by kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// True when something should not be.
    pub findings: bool,
    /// True when nothing could be judged.
    pub blind: bool,
}

/// Running sums over judgements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    sum: Summary,
    causes: BTreeMap<Cause, Cost>,
}

impl Tally {
    /// Adds one judgement; true when it is the first of a cause, and so the one to show.
    pub fn add(&mut self, judged: &Judged) -> bool {
        let sum = &mut self.sum;
        sum.requests += 1;
        *sum.verdicts.entry(judged.verdict).or_default() += 1;
        let tokens = &judged.tokens;
        sum.prompt += tokens.prompt;
        sum.read += tokens.read;
        sum.written += tokens.written;
        sum.uncached += tokens.uncached;
        sum.lost += tokens.lost;
        sum.billed += usize::from(tokens.billed);
        add(&mut sum.money, judged.money);
        add(&mut sum.money_lost, judged.money_lost);
        sum.findings |= judged.finding();
        for fault in &judged.faults {
            *sum.faults.entry(fault.kind).or_default() += 1;
        }
        if matches!(judged.cause, Cause::None | Cause::ColdStart) {
            return false;
        }
        let fresh = Cost { first: judged.index, ..Cost::default() };
        let known = self.causes.len();
        let cost = self.causes.entry(judged.cause).or_insert(fresh);
        cost.requests += 1;
        cost.lost += tokens.lost;
        cost.money += judged.money_lost.unwrap_or(0.0);
        for latent in &judged.latent {
            self.causes.entry(*latent).or_insert(fresh).latent += 1;
        }
        self.causes.len() > known
    }

    /// Number of judgements.
    pub fn count(&self) -> usize {
        self.sum.requests
    }

    /// Adds the sums of another log, whose requests are counted from `offset` on.
    pub fn join(&mut self, other: &Self, offset: usize) {
        let (sum, more) = (&mut self.sum, &other.sum);
        sum.requests += more.requests;
        for (verdict, count) in &more.verdicts {
            *sum.verdicts.entry(*verdict).or_default() += count;
        }
        sum.prompt += more.prompt;
        sum.read += more.read;
        sum.written += more.written;
        sum.uncached += more.uncached;
        sum.lost += more.lost;
        sum.billed += more.billed;
        add(&mut sum.money, more.money);
        add(&mut sum.money_lost, more.money_lost);
        sum.findings |= more.findings;
        for (kind, count) in &more.faults {
            *sum.faults.entry(kind).or_default() += count;
        }
        for (cause, cost) in &other.causes {
            let own =
                self.causes.entry(*cause).or_insert(Cost { first: cost.first + offset, ..Cost::default() });
            own.requests += cost.requests;
            own.lost += cost.lost;
            own.money += cost.money;
            own.latent += cost.latent;
        }
    }
}

/// Sums a log up.
pub fn summarise(audit: &Audit) -> Summary {
    let mut tally = audit.tally.clone();
    for judged in &audit.requests {
        tally.add(judged);
    }
    let mut sum = tally.sum;
    sum.conversations = audit.conversations.len();
    sum.causes = tally.causes.into_iter().collect();
    sum.causes.sort_by_key(|(_, cost)| std::cmp::Reverse((cost.lost, cost.requests, cost.latent)));
    sum.blind =
        sum.faults.is_empty() && sum.requests == sum.verdicts.get(&Verdict::NotJudged).copied().unwrap_or(0);
    sum
}

fn add(sum: &mut Option<f64>, part: Option<f64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0.0) + part);
    }
}

impl Summary {
    /// Share of prompt tokens that were read.
    pub fn hit_rate(&self) -> f64 {
        share(self.read, self.prompt)
    }

    /// Share that would have been read had nothing been lost.
    pub fn hit_rate_reachable(&self) -> f64 {
        share((self.read + self.lost).min(self.prompt), self.prompt)
    }

    /// What to do first.
    pub fn first_step(&self) -> Option<(Cause, &'static str)> {
        self.causes
            .iter()
            .filter(|(cause, _)| !cause.mend().is_empty())
            .map(|(cause, _)| (*cause, cause.mend()))
            .next()
    }

    /// As JSON.
    pub fn to_json(&self, readings: &[Reading]) -> Value {
        json!({
            "requests": self.requests, "conversations": self.conversations,
            "verdicts": self.verdicts.iter().map(|(verdict, count)| (verdict.word().to_owned(), json!(count)))
                .collect::<serde_json::Map<_, _>>(),
            "tokens": {
                "prompt": self.prompt, "read": self.read, "written": self.written, "uncached": self.uncached,
                "lost": self.lost,
            },
            "billed_requests": self.billed,
            "hit_rate": round(self.hit_rate()), "hit_rate_reachable": round(self.hit_rate_reachable()),
            "money": self.money, "money_lost": self.money_lost,
            "causes": self.causes.iter().map(|(cause, cost)| json!({
                "cause": cause, "requests": cost.requests, "latent": cost.latent, "tokens_lost": cost.lost,
                "money_lost": cost.money, "first": cost.first, "mend": cause.mend(),
            })).collect::<Vec<_>>(),
            "history_faults": self.faults,
            "first_step": self.first_step().map(|(cause, mend)| json!({"cause": cause, "mend": mend})),
            "sources": readings.iter().map(source_json).collect::<Vec<_>>(),
        })
    }
}

fn source_json(reading: &Reading) -> Value {
    json!({
        "name": reading.source, "format": reading.format.map(super::read::Format::word),
        "pieces": reading.pieces, "bytes": reading.bytes, "other": reading.other,
        "not_judged": reading.format.map(super::read::Format::blind).filter(|blind| !blind.is_empty()),
        "unreadable": reading.skipped_count,
        "unreadable_lines": reading.skipped.iter().map(|skipped| json!({
            "line": skipped.line, "reason": skipped.reason,
        })).collect::<Vec<_>>(),
    })
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Four decimals.
pub fn round(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

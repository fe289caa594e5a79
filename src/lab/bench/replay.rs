//! A trace put through caches: one row for each policy and capacity.

use serde::Serialize;

use super::distances::{Rates, Sweep};
use super::policies::{self, Policy};
use super::rounds::{self, Account};
use super::sessions::Read;
use super::trace::{Blocks, Trace};
use super::{published, published::Row as Published};

/// Capacities when none are named.
pub const CAPACITIES: [Option<u64>; 6] =
    [None, Some(100_000), Some(50_000), Some(30_000), Some(10_000), Some(1_000)];

/// What to compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Policies of eviction.
    pub policies: Vec<Policy>,
    /// Capacities in blocks; unlimited where absent.
    pub capacities: Vec<Option<u64>>,
    /// Blocks of a request are visited last to first.
    pub reverse: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { policies: Policy::ALL.to_vec(), capacities: CAPACITIES.to_vec(), reverse: false }
    }
}

/// One row. Ratios are shares from 0 to 1, to six digits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Policy of eviction, or the rule for agent sessions and rounds.
    pub policy: String,
    /// Capacity in blocks; none when unlimited.
    pub capacity: Option<u64>,
    /// Resident blocks of all visited blocks.
    pub block_ratio: Option<f64>,
    /// Blocks in leading resident runs of all visited blocks.
    pub prefix_ratio: Option<f64>,
    /// Tokens in leading resident runs of all tokens.
    pub token_ratio: f64,
    /// Mean over requests of the leading run's share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_mean: Option<f64>,
    /// Block ratio of the clairvoyant policy at this capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// What a trace showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// Version of this form.
    pub schema: u32,
    /// Name of the format.
    pub format: &'static str,
    /// Requests or rounds.
    pub requests: u64,
    /// Sessions; none where a trace knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Block visits and different blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<(u64, u64)>,
    /// Prompt tokens.
    pub tokens: u64,
    /// Rows.
    pub rows: Vec<Row>,
    /// Whether the read of each round is the read and the write of the one before: held, transitions, by session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<(String, u64, u64)>,
    /// Printed figures beside ours.
    #[serde(skip)]
    pub published: Vec<Published>,
}

fn six(ratio: f64) -> f64 {
    (ratio * 1e6).round() / 1e6
}

/// Puts a trace through caches; `published` also sets printed figures beside ours.
pub fn replay(trace: &Trace, plan: &Plan, published: bool) -> Replay {
    match trace {
        Trace::Blocks(blocks) => {
            let mut replay = of_blocks(blocks, plan);
            if published {
                replay.published = published::of_blocks(blocks);
            }
            replay
        }
        Trace::Sessions(sessions) => {
            let read = sessions.iter().map(super::sessions::Session::read).fold(Read::default(), Read::plus);
            let requests = sessions.iter().map(|session| session.requests.len() as u64).sum();
            let mut replay = of_sessions(sessions.len() as u64, requests, read);
            if published {
                replay.published = published::of_sessions(sessions.len(), read);
            }
            replay
        }
        Trace::Rounds(rounds) => {
            let accounts = rounds::accounts(rounds);
            let mut replay = of_rounds(&accounts);
            if published {
                replay.published = published::of_rounds(&accounts);
            }
            replay
        }
    }
}

fn of_blocks(blocks: &Blocks, plan: &Plan) -> Replay {
    let sweep = Sweep::of(blocks, plan.reverse);
    let bounds: Vec<f64> = plan
        .capacities
        .iter()
        .map(|capacity| match capacity {
            Some(capacity) if *capacity < blocks.distinct as u64 => policies::clairvoyant(blocks, *capacity),
            _ => sweep.rates(None).block,
        })
        .collect();
    let mut rows = Vec::new();
    for &policy in &plan.policies {
        for (&capacity, &bound) in plan.capacities.iter().zip(&bounds) {
            // Where nothing ever has to leave, all policies are one.
            let roomy = capacity.is_none_or(|capacity| capacity >= blocks.distinct as u64);
            let rates = match capacity {
                Some(capacity) if !roomy && policy != Policy::Lru => {
                    policies::rates(blocks, policy, capacity, plan.reverse)
                }
                _ => sweep.rates(capacity),
            };
            rows.push(row(policy.word(), capacity, rates, bound));
        }
    }
    Replay {
        schema: 1,
        format: "mooncake",
        requests: blocks.ends.len() as u64,
        sessions: None,
        blocks: Some((blocks.visits.len() as u64, blocks.distinct as u64)),
        tokens: blocks.tokens_total(),
        rows,
        identities: Vec::new(),
        published: Vec::new(),
    }
}

fn row(policy: &str, capacity: Option<u64>, rates: Rates, bound: f64) -> Row {
    // A clairvoyant cache visits in prompt order; in reverse order it may differ by the blocks of one request.
    Row {
        policy: policy.to_owned(),
        capacity,
        block_ratio: Some(six(rates.block)),
        prefix_ratio: Some(six(rates.prefix)),
        token_ratio: six(rates.token),
        request_mean: Some(six(rates.request_mean)),
        bound: Some(six(bound)),
    }
}

fn plain(policy: &str, part: u64, whole: u64) -> Row {
    let token_ratio = if whole == 0 { 0.0 } else { six(part as f64 / whole as f64) };
    Row {
        policy: policy.to_owned(),
        capacity: None,
        block_ratio: None,
        prefix_ratio: None,
        token_ratio,
        request_mean: None,
        bound: None,
    }
}

fn of_sessions(sessions: u64, requests: u64, read: Read) -> Replay {
    let rows = vec![
        plain("request-before", read.before, read.tokens),
        plain("any-earlier", read.earlier, read.tokens),
        plain("ttl-300s", read.ttl_300, read.tokens),
        plain("ttl-3600s", read.ttl_3600, read.tokens),
    ];
    Replay {
        schema: 1,
        format: "agent-sessions",
        requests,
        sessions: Some(sessions),
        blocks: None,
        tokens: read.tokens,
        rows,
        identities: Vec::new(),
        published: Vec::new(),
    }
}

fn of_rounds(accounts: &[Account]) -> Replay {
    let name = |account: &Account| format!("reported {}", account.session);
    Replay {
        schema: 1,
        format: "tracelab",
        requests: accounts.iter().map(|account| account.rounds).sum(),
        sessions: Some(accounts.len() as u64),
        blocks: None,
        tokens: accounts.iter().map(|account| account.tokens).sum(),
        rows: accounts.iter().map(|account| plain(&name(account), account.read, account.tokens)).collect(),
        identities: accounts
            .iter()
            .filter(|account| account.transitions > 0)
            .map(|account| (account.session.clone(), account.identities, account.transitions))
            .collect(),
        published: Vec::new(),
    }
}

//! What others printed about the public traces, beside what is computed here.
//!
//! Each figure says whether it is reached. Some are not, and no definition tried reaches them; then the recomputation
//! that two parties agree on counts, and the row says so.

use super::distances::Sweep;
use super::policies::{self, Policy};
use super::rounds::Account;
use super::sessions::Read;
use super::trace::Blocks;

/// A printed figure and ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Who printed it.
    pub source: &'static str,
    /// What it measures.
    pub figure: String,
    /// What was printed.
    pub printed: String,
    /// What is computed here; none when the data cannot be had.
    pub ours: Option<String>,
    /// Whether the printed figure is reached to its own digits.
    pub reached: bool,
    /// Why not, if not.
    pub note: &'static str,
}

/// Requests of the two Mooncake traces, by which they are told apart.
const CONVERSATION: usize = 12_031;
const SYNTHETIC: usize = 3_993;

/// Capacities of the recomputed tables.
const CAPACITIES: [Option<u64>; 6] =
    [None, Some(100_000), Some(50_000), Some(30_000), Some(10_000), Some(1_000)];

type Printed = [f64; 6];

const LRU: [Printed; 2] =
    [[0.3664, 0.3637, 0.3546, 0.3257, 0.2112, 0.0445], [0.6396, 0.6396, 0.6396, 0.6242, 0.4235, 0.0825]];
const LFU: [Printed; 2] =
    [[0.3664, 0.3631, 0.3438, 0.2759, 0.1318, 0.0481], [0.6396, 0.6396, 0.6396, 0.6260, 0.3578, 0.0401]];
const LENGTH_AWARE: [Printed; 2] =
    [[0.3664, 0.3345, 0.2602, 0.2028, 0.1123, 0.0504], [0.6396, 0.6396, 0.6396, 0.5068, 0.1865, 0.0191]];
const FIFO: [Printed; 2] =
    [[0.3664, 0.3593, 0.3400, 0.3021, 0.1865, 0.0435], [0.6396, 0.6396, 0.6396, 0.5951, 0.3990, 0.0787]];
/// Shares of the different blocks at which others computed LRU, and what they found.
const SHARES: [u64; 5] = [1, 5, 10, 25, 50];
const BY_SHARE: [[f64; 5]; 2] = [[0.052, 0.195, 0.278, 0.353, 0.363], [0.034, 0.155, 0.260, 0.443, 0.589]];

fn compared(source: &'static str, figure: String, printed: f64, ours: f64, digits: usize) -> Row {
    let (printed, ours) = (format!("{printed:.digits$}"), format!("{ours:.digits$}"));
    Row { source, figure, reached: printed == ours, printed, ours: Some(ours), note: "" }
}

/// Figures about a Mooncake trace; none for a trace that nobody printed figures of.
pub fn of_blocks(trace: &Blocks) -> Vec<Row> {
    let place = match trace.ends.len() {
        CONVERSATION => 0,
        SYNTHETIC => 1,
        _ => return Vec::new(),
    };
    let sweep = Sweep::of(trace, false);
    let mut rows = Vec::new();
    let name = |policy: Policy, capacity: Option<u64>| match capacity {
        Some(capacity) => format!("{} at {capacity} blocks", policy.word()),
        None => format!("{}, unlimited", policy.word()),
    };
    let tables =
        [(Policy::Lru, LRU), (Policy::Lfu, LFU), (Policy::LengthAware, LENGTH_AWARE), (Policy::Fifo, FIFO)];
    for (policy, table) in tables {
        for (capacity, printed) in CAPACITIES.into_iter().zip(table[place]) {
            let ours = match (policy, capacity) {
                (Policy::Lru, _) | (_, None) => sweep.rates(capacity).block,
                (_, Some(capacity)) => policies::rates(trace, policy, capacity, false).block,
            };
            rows.push(compared("recomputation of 2026", name(policy, capacity), printed, ours, 4));
        }
    }
    for (share, printed) in SHARES.into_iter().zip(BY_SHARE[place]) {
        let ours = sweep.rates(Some(trace.distinct as u64 * share / 100)).block;
        rows.push(compared(
            "independent recomputation",
            format!("lru at {share} % of the blocks"),
            printed,
            ours,
            3,
        ));
    }
    let unlimited = sweep.rates(None);
    rows.push(compared(
        "recomputation of 2026",
        "token ratio, unlimited".to_owned(),
        [0.3736, 0.6512][place],
        unlimited.token,
        4,
    ));
    rows.push(compared(
        "recomputation of 2026",
        "request mean, unlimited".to_owned(),
        [0.3843, 0.4232][place],
        unlimited.request_mean,
        4,
    ));
    let mut paper = compared(
        "FAST '25 paper, table 2",
        "cache ratio".to_owned(),
        [0.40, 0.66][place],
        unlimited.block,
        2,
    );
    paper.note =
        "the ratio is not defined there; no definition tried reaches it, two recomputations agree with ours";
    rows.push(paper);
    // Capacities in tokens: what fits into three and fifty million, as a share of what can be reached at all.
    let local = sweep.rates(Some(3_000_000 / trace.block_tokens)).block / unlimited.block;
    rows.push(Row {
        source: "FAST '25 paper, figure 9",
        figure: "share of the reachable at 3 million tokens".to_owned(),
        printed: "0.41 / 0.75 / 0.46 / 0.48 for four workloads".to_owned(),
        ours: Some(format!("{local:.3}")),
        reached: false,
        note: "of the same order; which label belongs to which curve is not said",
    });
    rows.push(Row {
        source: "Mooncake report, version 3, table 1",
        figure: "lru at 10000 blocks".to_owned(),
        printed: "0.40".to_owned(),
        ours: None,
        reached: false,
        note: "its trace of 23,608 requests cannot be had",
    });
    rows
}

/// Figures about the packed agent sessions.
pub fn of_sessions(sessions: usize, read: Read) -> Vec<Row> {
    const PACKED: usize = 710;
    if sessions != PACKED {
        return Vec::new();
    }
    let ratio = |part: u64| part as f64 / read.tokens as f64;
    let figures = [
        ("against the request before", 0.9631, read.before),
        ("against any earlier request", 0.9636, read.earlier),
        ("lost after 300 s without use", 0.9161, read.ttl_300),
        ("lost after 3,600 s without use", 0.9601, read.ttl_3600),
    ];
    let row = |(figure, printed, part): (&str, f64, u64)| {
        compared("recomputation of 2026", format!("token ratio {figure}"), printed, ratio(part), 4)
    };
    figures.into_iter().map(row).collect()
}

/// Figures about the TraceLab rounds.
pub fn of_rounds(accounts: &[Account]) -> Vec<Row> {
    let row = |account: &Account| match account.provider.as_str() {
        "claude" => Row {
            source: "TraceLab, example session",
            figure: "next read equals read plus written".to_owned(),
            printed: "9 of 9".to_owned(),
            ours: Some(format!("{} of {}", account.identities, account.transitions)),
            reached: (account.identities, account.transitions) == (9, 9),
            note: "",
        },
        _ => Row {
            source: "TraceLab, example session",
            figure: "step of cached tokens".to_owned(),
            printed: "128".to_owned(),
            ours: Some(account.step.to_string()),
            reached: account.step.is_multiple_of(128) && account.step > 0,
            note: "",
        },
    };
    accounts.iter().map(row).collect()
}

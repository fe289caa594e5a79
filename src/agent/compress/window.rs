//! Which rows a compaction summarises: the head it spares, and where the tail begins.
//!
//! Works on rows and their prices; the prices come from outside, so that a cut can be judged without an estimator.

use crate::agent::compress::estimate;
use crate::agent::compress::threshold::soft_ceiling;
use crate::agent::compress::{handoff, history};
use crate::policy::Compress;
use crate::wire::{Role, Row};

/// What a head depends on besides the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Past {
    /// Compactions of this session so far.
    pub compressions: u64,
    /// A summary is in memory.
    pub has_summary: bool,
}

/// The limits of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Budget of the tail.
    pub tail_budget: u64,
    /// Window of the model.
    pub window: u64,
    /// The tail may begin inside the newest turn when that turn is larger than the tail.
    pub may_split_turn: bool,
}

/// The rows to be summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First row of the stretch.
    pub start: usize,
    /// First row of the tail.
    pub end: usize,
    /// First row of the tail before it was moved off the newest request.
    pub plain_end: usize,
}

impl Window {
    /// True when there is something to summarise.
    pub fn has_content(&self) -> bool {
        self.start < self.plain_end
    }
}

fn leading_system(rows: &[Row]) -> usize {
    usize::from(rows.first().is_some_and(|row| row.role == Role::System))
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Rows at the front that a compaction leaves alone (Hermes agent/context_compressor.py:4682).
pub fn head_size(rows: &[Row], past: Past, policy: &Compress) -> usize {
    let system = leading_system(rows);
    let first = index(policy.protect_first_n);
    if !policy.head_decay {
        return system.saturating_add(first);
    }
    let found = || {
        if policy.find_any_handoff {
            return rows.iter().skip(system).any(handoff::holds_handoff);
        }
        rows.iter().skip(system).take(first.saturating_add(4)).any(handoff::is_handoff)
    };
    if past.compressions >= 1 || past.has_summary || found() {
        return system;
    }
    system.saturating_add(first)
}

/// Start and end of the stretch to summarise (Hermes agent/context_compressor.py:5096).
pub fn window(rows: &[Row], prices: &[u64], past: Past, limits: Limits, policy: &Compress) -> Window {
    let start = history::align_forward(rows, head_size(rows, past, policy).min(rows.len()));
    let plain_end = tail_cut(rows, prices, start, limits, policy);
    let end = bridge(rows, start, plain_end, policy);
    Window { start, end, plain_end }
}

/// Takes the row before the newest request into the tail, so that the summary never joins a live request
/// (Hermes agent/context_compressor.py:5315).
fn bridge(rows: &[Row], start: usize, cut: usize, policy: &Compress) -> usize {
    if policy.tail_rows.is_some() || !policy.anchor_tail {
        return cut;
    }
    if cut == 0 || cut >= rows.len() || history::last_human(rows, 0) != Some(cut) {
        return cut;
    }
    let before = if rows[cut - 1].is_assistant() {
        cut - 1
    } else if rows[cut - 1].is_tool() {
        history::align_backward(rows, cut)
    } else {
        cut
    };
    if before > start { before } else { cut }
}

/// Walks from the newest row down while the sum stays within `limit`; answers the cut and the sum of what was taken.
fn walk(prices: &[u64], head: usize, limit: u64, keep: usize, on_row: bool) -> (usize, u64) {
    let n = prices.len();
    let (mut cut, mut sum) = (n, 0u64);
    for at in (head..n).rev() {
        if sum + prices[at] > limit && n - at >= keep {
            return (if on_row { at } else { cut }, sum);
        }
        sum += prices[at];
        cut = at;
    }
    (cut, sum)
}

fn sum(prices: &[u64]) -> u64 {
    prices.iter().sum()
}

/// First row of the tail for a stretch that begins at `head`.
pub fn tail_cut(rows: &[Row], prices: &[u64], head: usize, limits: Limits, policy: &Compress) -> usize {
    let n = rows.len();
    let head = head.min(n);
    if let Some(count) = policy.tail_rows {
        let cut = n.saturating_sub(index(count)).max((head + 1).min(n));
        return align_end(rows, align(rows, cut, policy).max((head + 1).min(n)), policy);
    }
    let ceiling = soft_ceiling(limits.tail_budget, limits.window, policy);
    let available = n.saturating_sub(head + 1);
    let floor = index(policy.protect_last_n.min(policy.protect_last_cap).max(policy.tail_rows_min));
    let least = index(policy.tail_rows_min);
    let min_tail = if available > 1 { floor.min(least.max(available - 2)).min(available) } else { 0 };
    let walk_floor = if ceiling >= min_tail as u64 * 10 { 0 } else { min_tail };

    let (mut cut, taken) = walk(prices, head, ceiling, walk_floor, false);
    if cut <= head && taken > 0 && taken <= ceiling {
        cut = walk(prices, head, limits.tail_budget, min_tail, true).0;
    }
    cut = cut.min(n.saturating_sub(walk_floor.max(1)));
    if cut <= head {
        cut = n.saturating_sub(min_tail).max(head + 1);
    }
    cut = align(rows, cut, policy);
    if policy.anchor_tail {
        let (anchored, split) = anchor_user(rows, prices, head, cut, limits, ceiling);
        cut = anchored;
        if !split {
            cut = anchor_assistant(rows, prices, head, cut, ceiling, policy);
        }
        cut = keep_requests(rows, head, cut, policy.min_tail_user_messages);
    }
    align_end(rows, cut.max(head + 1), policy)
}

fn align(rows: &[Row], cut: usize, policy: &Compress) -> usize {
    if policy.align_tail { history::align_backward(rows, cut) } else { cut }
}

fn align_end(rows: &[Row], cut: usize, policy: &Compress) -> usize {
    let cut = if policy.align_tail { history::align_forward(rows, cut) } else { cut };
    cut.min(rows.len())
}

/// Moves the cut to the newest request; the second value says that the turn was split instead
/// (Hermes agent/context_compressor.py:4774, :5140).
fn anchor_user(
    rows: &[Row],
    prices: &[u64],
    head: usize,
    cut: usize,
    limits: Limits,
    ceiling: u64,
) -> (usize, bool) {
    let Some(request) = history::last_human(rows, head).filter(|request| *request < cut) else {
        return (cut, false);
    };
    let anchored = if request > head {
        request
    } else {
        let mut end = request + 1;
        if rows.get(end).is_some_and(Row::is_assistant) {
            end = history::align_forward(rows, end + 1);
        }
        end.max(head + 1)
    };
    let splits = limits.may_split_turn
        && anchored < cut
        && !estimate::has_image(&rows[request].content)
        && prices[request] <= ceiling
        && rows[request..cut.min(rows.len())].iter().any(Row::has_calls)
        && sum(&prices[anchored.min(prices.len())..]) > ceiling;
    if splits { (cut, true) } else { (anchored, false) }
}

/// Moves the cut to the newest visible answer (Hermes agent/context_compressor.py:4758, :5184).
fn anchor_assistant(
    rows: &[Row],
    prices: &[u64],
    head: usize,
    cut: usize,
    ceiling: u64,
    policy: &Compress,
) -> usize {
    let Some(answer) = history::last_assistant(rows, head).filter(|answer| *answer < cut) else {
        return cut;
    };
    let moved = align(rows, answer, policy).max(head + 1);
    let between = moved.min(cut)..cut.min(rows.len());
    let heavy = rows[between.clone()].iter().any(Row::has_calls) && sum(&prices[between]) > ceiling;
    if heavy { cut } else { moved.min(cut) }
}

fn keep_requests(rows: &[Row], head: usize, cut: usize, count: u64) -> usize {
    if count <= 1 {
        return cut;
    }
    // With fewer requests than wanted the oldest of them counts.
    let requests = (head..rows.len()).rev().filter(|at| history::is_human(&rows[*at]));
    requests.take(index(count)).last().map_or(cut, |at| cut.min(at).max(head + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ToolCall;

    fn talk() -> Vec<Row> {
        vec![
            Row::user("1"),
            Row::assistant("2"),
            Row::user("3"),
            Row::user("4"),
            Row::calls("", vec![ToolCall::new("a", "t", "{}")]),
            Row::result("a", "t", "5"),
            Row::assistant("6"),
            Row::user("7"),
            Row::assistant("8"),
        ]
    }

    #[test]
    fn a_tail_counted_in_rows_keeps_a_tool_group_only_when_it_is_aligned() {
        let rows = talk();
        let prices = vec![1; rows.len()];
        let limits = Limits { tail_budget: 1, window: 1_200, may_split_turn: true };
        let mut policy = Compress { tail_rows: Some(4), ..Compress::default() };
        assert_eq!(tail_cut(&rows, &prices, 3, limits, &policy), 4);
        policy.align_tail = false;
        assert_eq!(tail_cut(&rows, &prices, 3, limits, &policy), 5);
    }

    #[test]
    fn the_head_stays_when_it_does_not_decay() {
        let past = Past { compressions: 5, has_summary: true };
        let policy = Compress { head_decay: false, ..Compress::default() };
        assert_eq!(head_size(&talk(), past, &policy), 3);
        assert_eq!(head_size(&talk(), past, &Compress::default()), 0);
    }

    #[test]
    fn no_cut_of_an_empty_history_panics() {
        let limits = Limits { tail_budget: 1, window: 0, may_split_turn: true };
        assert_eq!(tail_cut(&[], &[], 0, limits, &Compress::default()), 0);
    }
}

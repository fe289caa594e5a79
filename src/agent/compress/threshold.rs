//! When a history counts as too large, and how large its tail and its summary may be.
//!
//! Pure arithmetic on the window of the model and the knobs. Never looks at a history.

use crate::policy::{Compress, TailMode};

/// `amount × ratio` as a double, cut towards zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cutting towards zero is the rule; ratios are not negative"
)]
pub fn share(amount: u64, ratio: f64) -> u64 {
    (amount as f64 * ratio) as u64
}

/// The figures that follow from a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Ratio after a small window raised it.
    pub ratio: f64,
    /// Size from which a compaction is due, inclusive.
    pub tokens: u64,
    /// Room for input: the window without the reserved output.
    pub input_budget: u64,
}

/// The ratio that a small window is raised to (Hermes agent/context_compressor.py:2657).
pub fn effective_ratio(ratio: f64, window: u64, policy: &Compress) -> f64 {
    if window > 0 && window < policy.small_window { ratio.max(policy.small_window_threshold) } else { ratio }
}

/// The threshold of a window (Hermes agent/context_compressor.py:2766).
///
/// `ratio` is the configured or per-model one; `max_output` the reserved output, none when it is not a positive
/// number; `summary_window` the window of the summary model, once it is known.
pub fn threshold(
    window: u64,
    ratio: f64,
    max_output: Option<u64>,
    summary_window: Option<u64>,
    policy: &Compress,
) -> Threshold {
    let ratio = effective_ratio(ratio, window, policy);
    let room = window.saturating_sub(max_output.unwrap_or(0));
    let budget = if room == 0 { window } else { room };
    let wished = share(budget, ratio);
    let reachable = share(budget, policy.threshold_reachable);
    let mut tokens = wished.max(policy.threshold_floor);
    if tokens > wished && tokens > reachable {
        tokens = wished.max(reachable);
    }
    if tokens >= budget {
        tokens = reachable.min(budget.saturating_sub(1)).max(1);
    }
    if let Some(cap) = policy.threshold_tokens.filter(|cap| *cap > 0) {
        tokens = tokens.min(cap.min(window));
    }
    if let Some(limit) = summary_window.filter(|limit| *limit > 0) {
        tokens = tokens.min(limit);
    }
    Threshold { ratio, tokens, input_budget: budget }
}

/// Budget of the untouched tail (Hermes agent/context_compressor.py:2237).
pub fn tail_budget(window: u64, threshold: u64, mode: TailMode, policy: &Compress) -> u64 {
    if let Some(fixed) = policy.tail_budget {
        return fixed;
    }
    let wished = match mode {
        TailMode::Lean => {
            share(window, policy.tail_ratio).max(policy.tail_min).min(policy.tail_max.max(policy.tail_min))
        }
        TailMode::Legacy => share(threshold, policy.target_ratio),
    };
    wished.min(share(window, policy.tail_share_max)).max(1)
}

/// How far a tail may exceed its budget before it is cut (Hermes agent/context_compressor.py:3229).
pub fn soft_ceiling(budget: u64, window: u64, policy: &Compress) -> u64 {
    budget.max(share(budget, policy.tail_stretch).min(share(window, policy.tail_share_max)))
}

/// Largest summary in a window (Hermes agent/context_compressor.py:3491).
pub fn summary_max(window: u64, policy: &Compress) -> u64 {
    share(window, policy.summary_window_share).min(policy.summary_max)
}

/// Size that the summary of a stretch is told to take, before the lean extra.
pub fn summary_budget(window: u64, stretch: u64, policy: &Compress) -> u64 {
    share(stretch, policy.summary_ratio).min(summary_max(window, policy)).max(policy.summary_min)
}

/// The ratio that a table gives to a model, or `default` (Hermes agent/context_compressor.py:2026).
///
/// Keys are parts of model names; `provider:part` holds for one provider and wins over a bare key of equal length.
pub fn model_ratio(model: &str, provider: &str, table: &[(String, f64)], default: f64) -> f64 {
    if model.is_empty() {
        return default;
    }
    let provider = provider.trim().to_lowercase();
    table
        .iter()
        .filter_map(|(key, ratio)| {
            let (part, own) = match key.split_once(':') {
                Some((owner, part)) if owner.trim().to_lowercase() == provider => (part, true),
                Some(_) => return None,
                None => (key.as_str(), false),
            };
            model.contains(part).then_some(((part.chars().count(), own, key.as_str()), *ratio))
        })
        .max_by(|a, b| a.0.cmp(&b.0))
        .map_or(default, |(_, ratio)| ratio)
}

/// Reads the lines of `compress.model_thresholds`; a line that is no `key = ratio` is left out.
pub fn model_table(lines: &[String]) -> Vec<(String, f64)> {
    lines
        .iter()
        .filter_map(|line| {
            let (key, ratio) = line.rsplit_once('=')?;
            Some((key.trim().to_owned(), ratio.trim().parse().ok()?))
        })
        .collect()
}

/// Attempts that one turn may make.
pub fn attempts(configured: i64) -> u64 {
    match configured {
        ..1 => 3,
        10.. => 10,
        other => other.unsigned_abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_can_take_every_floor_away() {
        let policy =
            Compress { threshold_floor: 0, small_window: 0, threshold_tokens: None, ..Compress::default() };
        assert_eq!(threshold(1_200, 0.5, None, None, &policy).tokens, 600);
    }

    #[test]
    fn a_reserved_output_as_large_as_the_window_reserves_nothing() {
        let policy = Compress::default();
        assert_eq!(threshold(200_000, 0.5, Some(200_000), None, &policy).input_budget, 200_000);
    }

    #[test]
    fn attempts_outside_the_range_are_mended() {
        assert_eq!((attempts(0), attempts(1), attempts(10), attempts(11)), (3, 1, 10, 10));
    }

    #[test]
    fn the_longest_matching_part_of_a_model_name_decides() {
        let table =
            model_table(&["glm = 0.4".to_owned(), "zai:glm-5 = 0.3".to_owned(), "nonsense".to_owned()]);
        assert!((model_ratio("glm-5.2", " ZAI ", &table, 0.5) - 0.3).abs() < f64::EPSILON);
        assert!((model_ratio("glm-5.2", "other", &table, 0.5) - 0.4).abs() < f64::EPSILON);
    }
}

//! The mean difference of pairs, with an interval.
//!
//! Method: Student's t for paired samples, 95 %, two-sided. The pairs are two arms of one seed; what they have in
//! common (scenario, tools, words of the user) cancels, what differs is the arm and the provider's own chance. With one
//! pair there is no interval.

use serde::Serialize;

/// 0.975 quantiles of Student's t for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// What the differences of some pairs say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Pairs.
    pub pairs: usize,
    /// Mean of the first arm.
    pub with: f64,
    /// Mean of the second arm.
    pub without: f64,
    /// Mean of first minus second.
    pub mean: f64,
    /// Ends of the interval; none for fewer than two pairs.
    pub interval: Option<(f64, f64)>,
}

impl Difference {
    /// The difference of these pairs; none when there are none.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let count = pairs.len() as f64;
        let mean_of = |pick: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(pick).sum::<f64>() / count;
        let mean = mean_of(&|(with, without)| with - without);
        let interval = (pairs.len() > 1).then(|| {
            let squares = pairs.iter().map(|(with, without)| (with - without - mean).powi(2)).sum::<f64>();
            let half = quantile(pairs.len() - 1) * (squares / (count - 1.0)).sqrt() / count.sqrt();
            (mean - half, mean + half)
        });
        Some(Self {
            pairs: pairs.len(),
            with: mean_of(&|(with, _)| *with),
            without: mean_of(&|(_, without)| *without),
            mean,
            interval,
        })
    }

    /// What it shows, where less is better.
    pub fn says(&self) -> &'static str {
        match self.interval {
            None => "one pair shows nothing",
            Some((_, high)) if high < 0.0 => "less",
            Some((low, _)) if low > 0.0 => "more",
            Some(_) => "not shown",
        }
    }
}

/// The quantile for so many degrees of freedom, at least one; beyond thirty within 0.002 of the true one.
fn quantile(freedom: usize) -> f64 {
    QUANTILES.get(freedom.max(1) - 1).copied().unwrap_or_else(|| 1.96 + 2.4 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.001
    }

    #[test]
    fn an_interval_is_that_of_a_paired_t_test() {
        // Differences -2, -4, -3, -5: mean -3.5, standard deviation 1.29099, t(3) = 3.182.
        let difference = Difference::of(&[(8.0, 10.0), (7.0, 11.0), (9.0, 12.0), (6.0, 11.0)]).unwrap();
        let (low, high) = difference.interval.unwrap();
        assert!(near(difference.mean, -3.5) && near(low, -5.554) && near(high, -1.446), "{difference:?}");
        assert_eq!(difference.says(), "less");
        assert!(near(difference.with, 7.5) && near(difference.without, 11.0));
    }

    #[test]
    fn few_or_scattered_pairs_show_nothing() {
        assert!(Difference::of(&[]).is_none());
        assert_eq!(Difference::of(&[(1.0, 2.0)]).unwrap().says(), "one pair shows nothing");
        assert_eq!(Difference::of(&[(1.0, 2.0), (2.0, 1.0)]).unwrap().says(), "not shown");
        assert_eq!(Difference::of(&[(2.0, 1.0), (3.0, 2.0)]).unwrap().says(), "more");
        assert!(near(quantile(40), 2.02) && near(quantile(120), 1.98));
    }
}

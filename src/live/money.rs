//! The budget: what a request may cost at worst, what was spent, and what may have been.
//!
//! Accounts are kept in a file, one line before a request leaves and one when it is settled. A line that was never
//! settled (the answer was lost, or the process) counts with the worst that the request could cost.

use serde::{Deserialize, Serialize};

use crate::cache::prices::Price;
use crate::cache::usage::Parts;
use crate::units::Usd;

/// Tokens that a provider may add to a prompt of its own accord, such as instructions for tools.
const ADDED_MAX: u64 = 2_000;
/// Bytes of a request to a token, at least, until answers show otherwise. Prose has about four.
const BYTES_PER_TOKEN: u64 = 2;

/// One line of the accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    /// Number of the attempt, from 1.
    pub(super) attempt: u64,
    /// True when it is settled; else it is about to be sent.
    pub(super) settled: bool,
    /// Cost, or the most that it can be, in millionths of a millionth of a dollar.
    pub(super) pico: u64,
}

/// What may be spent, and what was.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    price: Price,
    max: Usd,
    spent: Usd,
    /// What requests may have cost whose answers were lost.
    uncertain: Usd,
    attempts: u64,
    /// The largest share of tokens in bytes that a bill showed, in thousandths.
    mille: u64,
}

fn of_pico(pico: u64) -> Usd {
    Usd::of_tokens(pico, 1)
}

impl Budget {
    /// A budget of which earlier accounts were spent.
    pub(super) fn new(price: Price, max: Usd, earlier: &[Account]) -> Self {
        let mut budget = Self {
            price,
            max,
            spent: Usd::ZERO,
            uncertain: Usd::ZERO,
            attempts: 0,
            mille: 1_000 / BYTES_PER_TOKEN,
        };
        let mut open = std::collections::BTreeMap::new();
        for account in earlier {
            budget.attempts = budget.attempts.max(account.attempt);
            if account.settled {
                open.remove(&account.attempt);
                budget.spent += of_pico(account.pico);
            } else {
                open.insert(account.attempt, account.pico);
            }
        }
        budget.uncertain = open.into_values().map(of_pico).sum();
        budget
    }

    /// What was spent, as far as bills say.
    pub(super) fn spent(&self) -> Usd {
        self.spent
    }

    /// What may have been spent besides.
    pub(super) fn uncertain(&self) -> Usd {
        self.uncertain
    }

    /// The limit.
    pub(super) fn max(&self) -> Usd {
        self.max
    }

    /// The most that a request of so many bytes can cost: every token at the dearest rate, the longest answer.
    pub(super) fn worst(&self, bytes: usize, output: u64) -> Usd {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let prompt = bytes.saturating_mul(self.mille).div_ceil(1_000).saturating_add(ADDED_MAX);
        let rates = self.price.rates_of(prompt);
        let classes = [rates.input, rates.write_5m, rates.write_30m, rates.write_1h, rates.read];
        let dearest = classes.into_iter().max().unwrap_or(0);
        Usd::of_tokens(prompt, dearest) + Usd::of_tokens(output, rates.output)
    }

    /// True when that much can still be spent.
    pub(super) fn covers(&self, worst: Usd) -> bool {
        self.spent + self.uncertain + worst <= self.max
    }

    /// A request is about to leave.
    pub(super) fn begin(&mut self, worst: Usd) -> Account {
        self.attempts += 1;
        self.uncertain += worst;
        Account { attempt: self.attempts, settled: false, pico: pico(worst) }
    }

    /// The same request cost so much.
    pub(super) fn settle(&mut self, begun: Account, cost: Usd) -> Account {
        self.uncertain = self.uncertain - of_pico(begun.pico);
        self.spent += cost;
        Account { settled: true, pico: pico(cost), ..begun }
    }

    /// What a bill comes to.
    pub(super) fn cost(&self, parts: &Parts) -> Usd {
        self.price.cost(parts)
    }

    /// A bill for a request of so many bytes: where tokens are shorter than was assumed, later estimates follow.
    pub(super) fn learn(&mut self, bytes: usize, prompt: u64) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).max(1);
        let seen = prompt.saturating_sub(ADDED_MAX).saturating_mul(1_100).div_ceil(bytes);
        self.mille = self.mille.max(seen);
    }
}

fn pico(amount: Usd) -> u64 {
    u64::try_from(amount.pico()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::prices::Prices;

    fn budget(max: &str, earlier: &[Account]) -> Budget {
        let price = Prices::shipped().of("claude-sonnet-4-6", None).unwrap().clone();
        Budget::new(price, Usd::of_text(max).unwrap(), earlier)
    }

    #[test]
    fn the_worst_is_every_token_written_for_an_hour_and_the_longest_answer() {
        let budget = budget("1", &[]);
        // 10,000 bytes are 5,000 tokens and 2,000 that may be added, at 6 dollars; 1,000 tokens of answer at 15.
        assert_eq!(budget.worst(10_000, 1_000).six_decimals(), "0.057000");
    }

    #[test]
    fn a_budget_is_never_exceeded_by_what_is_uncertain() {
        let mut budget = budget("0.10", &[]);
        let worst = Usd::of_text("0.06").unwrap();
        assert!(budget.covers(worst));
        let begun = budget.begin(worst);
        assert!(!budget.covers(worst), "while the first is under way");
        budget.settle(begun, Usd::of_text("0.01").unwrap());
        assert!(budget.covers(worst));
        budget.begin(worst);
        assert!(!budget.covers(Usd::of_text("0.04").unwrap()), "its answer was lost");
        assert_eq!(budget.uncertain(), worst);
    }

    #[test]
    fn accounts_of_an_earlier_run_count() {
        let line = |attempt, settled, pico| Account { attempt, settled, pico };
        let budget = budget("1", &[line(1, false, 900), line(1, true, 500), line(2, false, 700)]);
        assert_eq!((budget.spent().pico(), budget.uncertain().pico()), (500, 700));
    }

    #[test]
    fn a_dense_tokenizer_raises_the_estimate() {
        let mut budget = budget("1", &[]);
        let before = budget.worst(10_000, 0);
        budget.learn(10_000, 3_000);
        assert_eq!(budget.worst(10_000, 0), before);
        budget.learn(10_000, 12_000);
        assert!(budget.worst(10_000, 0) > before);
    }
}

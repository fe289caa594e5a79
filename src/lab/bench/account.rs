//! The account of a run under a cache model: tokens by kind, money, breaks, and the bounds that no cache can leave.
//!
//! The upper bound is what a cache that forgets nothing would read of the same requests, the lower one is nothing.
//! An account outside its bounds is a fault of this lab and panics.

use serde::Serialize;

use crate::cache::prices::Price;
use crate::cache::usage::Parts;
use crate::cache::{Observed, Outcome, PrefixCache};
use crate::policy::{self, CacheModel};
use crate::units::Usd;
use crate::world::Millis;

/// One row of a bench. Ratios are shares from 0 to 1, to six digits; money is in dollars, to six decimals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Scenario or generated session.
    pub scenario: String,
    /// Layout of markers, where several are compared.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub layout: String,
    /// Cache model.
    pub cache: &'static str,
    /// Model whose price is paid; empty for engines that one runs oneself.
    pub price: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that the provider refused.
    pub refused: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Tokens read.
    pub read: u64,
    /// Tokens written for five minutes.
    pub write_5m: u64,
    /// Tokens written for thirty minutes.
    pub write_30m: u64,
    /// Tokens written for an hour.
    pub write_1h: u64,
    /// Tokens neither read nor written.
    pub uncached: u64,
    /// Tokens produced.
    pub output: u64,
    /// Read of all prompt tokens.
    pub hit_rate: f64,
    /// The most that any cache could read of them.
    pub hit_rate_upper: f64,
    /// What it costs.
    pub cost: Option<Usd>,
    /// What it would cost where nothing is cached.
    pub cost_without_cache: Option<Usd>,
    /// Requests that broke the prefix as announced.
    pub planned_breaks: u64,
    /// Requests that broke it otherwise.
    pub unplanned_breaks: u64,
    /// Tokens that had been sent before and had to be sent anew behind an unplanned break.
    pub wasted_tokens: u64,
}

/// A cache model under observation, beside its bounds.
pub struct Account {
    model: CacheModel,
    cache: Box<dyn PrefixCache>,
    upper: Box<dyn PrefixCache>,
    parts: Parts,
    readable: u64,
    requests: u64,
    refused: u64,
    cost: Usd,
    without: Usd,
    price: Option<Price>,
    /// Breaks so far.
    pub breaks: Breaks,
}

/// How requests broke the prefix of the ones before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaks {
    /// As announced.
    pub planned: u64,
    /// Otherwise.
    pub unplanned: u64,
    /// Tokens sent anew behind unplanned breaks.
    pub wasted: u64,
}

impl Account {
    /// A fresh account of this model.
    pub fn new(model: CacheModel, knobs: &policy::Cache, price: Option<Price>) -> Self {
        Self {
            model,
            cache: crate::cache::model(model, knobs),
            upper: crate::cache::model(CacheModel::Ideal, knobs),
            parts: Parts::default(),
            readable: 0,
            requests: 0,
            refused: 0,
            cost: Usd::ZERO,
            without: Usd::ZERO,
            price,
            breaks: Breaks::default(),
        }
    }

    /// Takes in one request; `output` is what the model will have produced. Answers what this request cost.
    ///
    /// # Panics
    /// When the model reads what nobody could.
    pub fn observe(&mut self, at: Millis, request: &Observed<'_>, output: u64) -> Usd {
        let upper = self.upper.observe(at, request).map_or(0, |outcome| outcome.read);
        let Ok(outcome) = self.cache.observe(at, request) else {
            self.refused += 1;
            return Usd::ZERO;
        };
        let Outcome { read, .. } = outcome;
        assert!(read <= upper, "{} reads {read} where {upper} were ever sent", self.model.word());
        self.readable += upper;
        self.requests += 1;
        let parts = Parts::of(outcome, output);
        self.parts = self.parts.plus(parts);
        let Some(price) = &self.price else { return Usd::ZERO };
        let cost = price.cost(&parts);
        self.cost += cost;
        self.without += price.cost_without_cache(&parts);
        cost
    }

    /// Money so far.
    pub fn cost(&self) -> Usd {
        self.cost
    }

    /// Money so far, had nothing been cached.
    pub fn cost_without_cache(&self) -> Usd {
        self.without
    }

    /// Tokens so far.
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// The account as a row.
    pub fn row(&self, scenario: &str, layout: &str) -> Row {
        let Parts { fresh, read, write_5m, write_30m, write_1h, output } = self.parts;
        let prompt = self.parts.prompt();
        let share =
            |part: u64| if prompt == 0 { 0.0 } else { (part as f64 / prompt as f64 * 1e6).round() / 1e6 };
        Row {
            scenario: scenario.to_owned(),
            layout: layout.to_owned(),
            cache: self.model.word(),
            price: self.price.as_ref().map(|price| price.model.clone()).unwrap_or_default(),
            requests: self.requests,
            refused: self.refused,
            prompt_tokens: prompt,
            read,
            write_5m,
            write_30m,
            write_1h,
            uncached: fresh,
            output,
            hit_rate: share(read),
            hit_rate_upper: share(self.readable),
            cost: self.price.as_ref().map(|_| self.cost),
            cost_without_cache: self.price.as_ref().map(|_| self.without),
            planned_breaks: self.breaks.planned,
            unplanned_breaks: self.breaks.unplanned,
            wasted_tokens: self.breaks.wasted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::KnobValue as _;
    use crate::wire::{Chain, Level, Segment};

    /// A growing conversation that forks now and then, with markers at its end.
    #[test]
    fn every_model_stays_between_nothing_and_everything() {
        for (name, _) in crate::cache::MODELS {
            let model = CacheModel::read(&serde_json::Value::from(*name), None).unwrap();
            let mut account = Account::new(model, &policy::Cache::default(), None);
            for turn in 0..200_u64 {
                let (mut chain, mut size) = (Chain::EMPTY, 0);
                let (mut chains, mut sizes) = (Vec::new(), Vec::new());
                let fork = turn / 37;
                for place in 0..=turn % 50 {
                    let text = if place > 20 { format!("{fork} {place}") } else { place.to_string() };
                    chain = chain.then(&Segment::new(Level::Messages, text));
                    size += 90 + place * 13 % 70;
                    chains.push(chain);
                    sizes.push(size);
                }
                let marks = [(chains.len() - 1, crate::cache::Ttl::Minutes5)];
                let at = Millis::try_from(turn * turn).unwrap() * 300;
                let request =
                    Observed { chains: &chains, sizes: &sizes, marks: &marks, ..Observed::default() };
                account.observe(at, &request, 10);
            }
            let row = account.row("growing", "");
            assert!(row.hit_rate <= row.hit_rate_upper, "{name}: {row:?}");
            assert_eq!(row.read > 0, *name != "off", "{name}");
        }
    }
}

//! Prices by model: dated rows, each with its source, and exact sums.
//!
//! The table is `prices.toml`. A model is found by its name, with or without the maker in front and a date behind. An
//! unknown model is an error that names the nearest known ones; nothing is ever priced at a guess.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::cache::usage::Parts;
use crate::units::Usd;

const TABLE: &str = include_str!("prices.toml");

/// Prices per token, in millionths of a millionth of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Prompt tokens neither read nor written.
    pub input: i64,
    /// Written for five minutes.
    pub write_5m: i64,
    /// Written for thirty minutes.
    pub write_30m: i64,
    /// Written for an hour.
    pub write_1h: i64,
    /// Read.
    pub read: i64,
    /// Produced.
    pub output: i64,
}

impl Rates {
    fn cost(&self, parts: &Parts) -> Usd {
        [
            (parts.fresh, self.input),
            (parts.write_5m, self.write_5m),
            (parts.write_30m, self.write_30m),
            (parts.write_1h, self.write_1h),
            (parts.read, self.read),
            (parts.output, self.output),
        ]
        .into_iter()
        .map(|(tokens, price)| Usd::of_tokens(tokens, price))
        .sum()
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The model as the table names it.
    pub model: String,
    /// Who makes it.
    pub provider: String,
    /// First day on which it holds, `2026-08-21`; from ever when absent.
    pub since: Option<String>,
    /// Prices.
    pub rates: Rates,
    /// Prices of requests whose prompt is longer than so many tokens.
    pub above: Option<(u64, Rates)>,
    /// Keeping a million tokens for an hour, in millionths of a dollar.
    pub storage_hour: Option<i64>,
    /// Day or month of the source.
    pub date: String,
    /// Where it stands.
    pub source: String,
    /// What else is said about it.
    pub note: String,
}

impl Price {
    /// A price of one's own, per million tokens in dollars, as decimal texts; a write price that is absent is the
    /// input's.
    ///
    /// # Errors
    /// The text that is no price.
    pub fn per_million(
        model: &str,
        input: &str,
        read: &str,
        writes: [Option<&str>; 3],
        output: &str,
    ) -> Result<Self, PriceError> {
        let [write_5m, write_30m, write_1h] = writes.map(|text| text.map(str::to_owned));
        let texts = Texts {
            input: input.to_owned(),
            read: Some(read.to_owned()),
            output: Some(output.to_owned()),
            write_5m,
            write_30m,
            write_1h,
        };
        let rates = texts.rates()?;
        let none = String::new();
        Ok(Self {
            model: model.to_owned(),
            provider: none.clone(),
            since: None,
            rates,
            above: None,
            storage_hour: None,
            date: none.clone(),
            source: none.clone(),
            note: none,
        })
    }

    /// Prices of a call with a prompt of so many tokens.
    pub fn rates_of(&self, prompt: u64) -> &Rates {
        match &self.above {
            Some((tokens, rates)) if prompt > *tokens => rates,
            _ => &self.rates,
        }
    }

    /// What a call costs.
    pub fn cost(&self, parts: &Parts) -> Usd {
        self.rates_of(parts.prompt()).cost(parts)
    }

    /// What it costs that so many tokens of a call were not read: written anew, or paid in full.
    pub fn cost_of_missing(&self, parts: &Parts, tokens: u64, written: bool) -> Usd {
        let rates = self.rates_of(parts.prompt());
        let paid = if written { rates.write_5m.max(rates.write_30m) } else { rates.input };
        Usd::of_tokens(tokens, (paid - rates.read).max(0))
    }

    /// What the same call costs where nothing is cached.
    pub fn cost_without_cache(&self, parts: &Parts) -> Usd {
        self.cost(&Parts { fresh: parts.prompt(), output: parts.output, ..Parts::default() })
    }
}

/// Why a price cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// No row has this model.
    #[error("no price for `{model}`; the nearest known are {}", nearest.join(", "))]
    UnknownModel {
        /// The model as it was asked for.
        model: String,
        /// Up to three known models.
        nearest: Vec<String>,
    },
    /// A text is no price.
    #[error("`{0}` is no price in dollars per million tokens, with at most six decimals")]
    NoPrice(String),
    /// The table as a whole cannot be read.
    #[error("the price table: {0}")]
    Table(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    price: Vec<TableRow>,
}

#[derive(Debug, Deserialize)]
struct TableRow {
    models: Vec<String>,
    provider: String,
    since: Option<String>,
    #[serde(flatten)]
    texts: Texts,
    above: Option<Above>,
    storage_hour: Option<String>,
    date: String,
    source: String,
    #[serde(default)]
    note: String,
}

#[derive(Debug, Deserialize)]
struct Above {
    tokens: u64,
    #[serde(flatten)]
    texts: Texts,
}

#[derive(Debug, Deserialize)]
struct Texts {
    input: String,
    write_5m: Option<String>,
    write_30m: Option<String>,
    write_1h: Option<String>,
    read: Option<String>,
    output: Option<String>,
}

impl Texts {
    fn rates(&self) -> Result<Rates, PriceError> {
        let input = price(&self.input)?;
        let or = |text: &Option<String>, otherwise: i64| text.as_deref().map_or(Ok(otherwise), price);
        Ok(Rates {
            input,
            write_5m: or(&self.write_5m, input)?,
            write_30m: or(&self.write_30m, input)?,
            write_1h: or(&self.write_1h, input)?,
            read: or(&self.read, input)?,
            output: or(&self.output, 0)?,
        })
    }
}

/// Dollars per million tokens, as a decimal text, in millionths of a millionth of a dollar per token.
fn price(text: &str) -> Result<i64, PriceError> {
    let wrong = || PriceError::NoPrice(text.to_owned());
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits =
        |text: &str| !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !(part.is_empty() && !text.ends_with('.') || digits(part)) {
        return Err(wrong());
    }
    format!("{whole}{part:0<6}").parse().map_err(|_| wrong())
}

/// The price table.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// Rows of each model, the earliest first.
    by_model: BTreeMap<String, Vec<Price>>,
}

impl Prices {
    /// The table that ships with the lab.
    ///
    /// # Panics
    /// When the shipped table is broken, which a test forbids.
    pub fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<Prices> =
            LazyLock::new(|| Prices::parse(TABLE).expect("the shipped table is sound"));
        &SHIPPED
    }

    /// Reads a table.
    ///
    /// # Errors
    /// When it is no TOML of that form, or a text is no price.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let table: Table =
            toml::from_str(text).map_err(|error| PriceError::Table(error.message().to_owned()))?;
        let mut prices = Self::default();
        for row in table.price {
            let rates = row.texts.rates()?;
            let above = row
                .above
                .map(|above| Ok::<_, PriceError>((above.tokens, above.texts.rates()?)))
                .transpose()?;
            let storage_hour = row.storage_hour.as_deref().map(price).transpose()?;
            for model in row.models {
                let price = Price {
                    model: model.clone(),
                    provider: row.provider.clone(),
                    since: row.since.clone(),
                    rates,
                    above,
                    storage_hour,
                    date: row.date.clone(),
                    source: row.source.clone(),
                    note: row.note.clone(),
                };
                let rows = prices.by_model.entry(model).or_default();
                rows.push(price);
                rows.sort_by(|a, b| a.since.cmp(&b.since));
            }
        }
        Ok(prices)
    }

    /// Every model with its latest price.
    pub fn latest(&self) -> impl Iterator<Item = &Price> {
        self.by_model.values().filter_map(|rows| rows.last())
    }

    /// The price of a model on a day (`2026-08-21`), or the latest one.
    ///
    /// # Errors
    /// [`PriceError::UnknownModel`] with the nearest known names.
    pub fn of(&self, model: &str, day: Option<&str>) -> Result<&Price, PriceError> {
        self.find(model, day).ok_or_else(|| self.unknown(model))
    }

    /// The same where it does not matter which other models there are.
    pub fn find(&self, model: &str, day: Option<&str>) -> Option<&Price> {
        let rows = self.rows(model)?;
        let holds = |row: &&Price| match (day, row.since.as_deref()) {
            (Some(day), Some(since)) => since <= day,
            _ => true,
        };
        rows.iter().rev().find(holds).or(rows.first())
    }

    fn rows(&self, model: &str) -> Option<&Vec<Price>> {
        let lower = model.trim().to_ascii_lowercase();
        // `anthropic/claude-…`, `us.anthropic.claude-…-v1:0`, `claude-…@20251101`
        let name = lower.rsplit('/').next().unwrap_or(&lower);
        let name = name.rfind("anthropic.").map_or(name, |at| &name[at + "anthropic.".len()..]);
        let name = name.split([':', '@']).next().unwrap_or(name);
        let name = name.strip_suffix("-v1").or_else(|| name.strip_suffix("-latest")).unwrap_or(name);
        let dashed = name.replace('.', "-");
        let found = [name, undated(name), dashed.as_str(), undated(&dashed)];
        found.into_iter().find_map(|name| self.by_model.get(name))
    }

    fn unknown(&self, model: &str) -> PriceError {
        let likeness = |known: &str| similar::TextDiff::from_chars(model, known).ratio();
        let mut known: Vec<(f32, &String)> =
            self.by_model.keys().map(|known| (likeness(known), known)).collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let nearest = known.into_iter().take(3).map(|(_, known)| known.clone()).collect();
        PriceError::UnknownModel { model: model.to_owned(), nearest }
    }
}

/// A name without the date behind it: `-20251101` or `-2025-11-01`.
fn undated(name: &str) -> &str {
    let is_date = |tail: &str| {
        let digits = tail.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && (tail.len() == 8 || tail.len() == 10 && tail.as_bytes()[4] == b'-')
    };
    [9, 11]
        .into_iter()
        .filter_map(|length| name.len().checked_sub(length))
        .filter(|&at| name.as_bytes()[at] == b'-' && name.is_char_boundary(at))
        .find(|&at| is_date(&name[at + 1..]))
        .map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_with_maker_date_and_dots() {
        let prices = Prices::shipped();
        for name in [
            "claude-sonnet-4-6",
            "anthropic/claude-sonnet-4.6",
            "claude-sonnet-4-6-20260301",
            "us.anthropic.claude-sonnet-4-6-20260301-v1:0",
            "claude-sonnet-4-6@20260301",
        ] {
            assert_eq!(
                prices.of(name, None).map(|price| price.model.as_str()),
                Ok("claude-sonnet-4-6"),
                "{name}"
            );
        }
        assert_eq!(prices.of("gpt-4o-2024-08-06", None).map(|price| price.rates.input), Ok(2_500_000));
    }

    #[test]
    fn an_unknown_model_names_its_neighbours_and_is_never_priced() {
        let error = Prices::shipped().of("claude-opus-6", None).unwrap_err().to_string();
        assert!(error.contains("claude-opus-5"), "{error}");
    }

    #[test]
    fn a_price_is_the_one_of_its_day() {
        let prices = Prices::shipped();
        let read = |day| prices.of("claude-sonnet-5-5", day).map(|price| price.rates.read);
        assert_eq!(read(Some("2026-10-06")), Ok(200_000));
        assert_eq!(read(Some("2026-10-07")), Ok(100_000));
        assert_eq!(read(None), Ok(100_000));
    }

    #[test]
    fn prices_keep_every_digit_and_refuse_what_is_none() {
        assert_eq!(price("0.003625"), Ok(3_625));
        assert_eq!(price("12.5"), Ok(12_500_000));
        for text in ["", ".5", "5.", "-1", "1.1234567", "1e3", "free"] {
            assert!(price(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_prompt_pays_the_higher_price_for_all_of_it() {
        let prices = Prices::shipped();
        let price = prices.of("gemini-2.5-pro", None).unwrap();
        let cost = |fresh| price.cost(&Parts { fresh, ..Parts::default() }).six_decimals();
        assert_eq!(cost(200_000), "0.250000");
        assert_eq!(cost(200_001), "0.500003");
    }
}

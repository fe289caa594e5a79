//! Knobs over a range, seeds over each: what a default costs and what it buys.
//!
//! A sweep is a list of points (every combination of the knobs' values) times seeds. The list is cut into shards by
//! place, so that a matrix of machines can share it; [`merge`] puts the parts together and refuses parts of another
//! sweep. Any number of threads or shards gives the same bytes.

pub mod shipped;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::lab::figures;
use crate::lab::life::{self, Kind, Lived, Where};
use crate::lab::play::{Plan, play};
use crate::lab::runs::each_on;
use crate::ledger::hex;
use crate::policy::{Overlay, Policy};
use crate::scenario::Scenario;

/// The version of the JSON shape.
pub const SCHEMA: u64 = 1;

/// Most points of one sweep; more would be a slip of the keyboard.
const POINTS_MAX: usize = 100_000;

/// One knob over a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The knob.
    pub knob: String,
    /// Its values, in order.
    pub values: Vec<Value>,
}

impl Axis {
    /// Reads `knob=a..b:step` (both ends included) or `knob=a,b,c`.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (knob, range) = text
            .split_once('=')
            .ok_or_else(|| format!("expected `knob=a..b:step` or `knob=a,b,c`, found `{text}`"))?;
        let knob = knob.trim().to_owned();
        let values = match range.split_once("..") {
            Some((low, rest)) => {
                let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
                span(low, high, step)?
            }
            None => range.split(',').map(|value| value_of(&knob, value.trim())).collect(),
        };
        let axis = Self { knob, values };
        for value in &axis.values {
            let turn = Overlay { knobs: vec![(axis.knob.clone(), value.clone())] };
            if let Err(errors) = turn.apply(&mut Policy::default()) {
                return Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            }
        }
        Ok(axis)
    }
}

fn value_of(knob: &str, text: &str) -> Value {
    Overlay::parse_turn(&format!("{knob}={text}"))
        .ok()
        .and_then(|overlay| overlay.knobs.into_iter().next())
        .map_or(Value::Null, |(_, value)| value)
}

/// Decimal places of a range: the most that any of its three numbers has.
fn span(low: &str, high: &str, step: &str) -> Result<Vec<Value>, String> {
    let places = [low, high, step]
        .iter()
        .map(|text| text.trim().split_once('.').map_or(0, |(_, rest)| rest.len()))
        .max();
    let places = places.unwrap_or(0).min(9);
    let scale = 10_i64.pow(u32::try_from(places).unwrap_or(0));
    // Whole numbers of the finest place: no sum of steps drifts.
    let read = |text: &str| {
        let text = text.trim();
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        if rest.len() > places {
            return Err(format!("more than {places} decimals in `{text}`"));
        }
        let digits = format!("{whole}{rest:0<places$}");
        digits.parse::<i64>().map_err(|_| format!("expected a number, found `{text}`"))
    };
    let (low, high, step) = (read(low)?, read(high)?, read(step)?);
    if step <= 0 {
        return Err("the step must be above 0".to_owned());
    }
    if high < low {
        return Err(format!("the range ends before it begins: {low}..{high}"));
    }
    if (high - low) / step >= i64::try_from(POINTS_MAX).unwrap_or(i64::MAX) {
        return Err(format!("more than {POINTS_MAX} values"));
    }
    let mut values = Vec::new();
    let mut at = low;
    while at <= high {
        values.push(if places == 0 { Value::from(at) } else { Value::from(at as f64 / scale as f64) });
        at += step;
    }
    Ok(values)
}

/// What is swept over.
#[derive(Debug, Clone)]
pub enum World {
    /// A scenario, judged by its figures.
    Scenario(Box<Scenario>),
    /// A life of so many days, its first variant.
    Life(Kind, u64),
}

impl World {
    fn name(&self) -> String {
        match self {
            Self::Scenario(scenario) => scenario.name.clone(),
            Self::Life(kind, days) => format!("{} for {days} days", kind.word()),
        }
    }
}

/// A sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// What is played.
    pub world: World,
    /// The knobs.
    pub axes: Vec<Axis>,
    /// Seeds from 1 on, each at every point.
    pub seeds: u64,
    /// Overlays beneath.
    pub plan: Plan,
}

/// The result of one point under one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Place in the list of all points and seeds.
    pub index: u64,
    /// Values of the knobs, in the order of the axes.
    pub point: Vec<Value>,
    /// Seed.
    pub seed: u64,
    /// Measures by name.
    pub measures: BTreeMap<String, i64>,
}

/// A sweep's results, or a shard of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Version of the shape.
    pub schema: u64,
    /// Digest of what is swept; parts of one sweep share it.
    pub sweep: String,
    /// What was played.
    pub world: String,
    /// The knobs.
    pub axes: Vec<Axis>,
    /// Seeds at each point.
    pub seeds: u64,
    /// Rows of the whole sweep.
    pub total: u64,
    /// The rows that are here.
    pub rows: Vec<Row>,
}

impl Sweep {
    fn points(&self) -> Vec<Vec<Value>> {
        let mut points: Vec<Vec<Value>> = vec![Vec::new()];
        for axis in &self.axes {
            points = points
                .into_iter()
                .flat_map(|point| {
                    axis.values.iter().map(move |value| [point.clone(), vec![value.clone()]].concat())
                })
                .collect();
        }
        points
    }

    fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        let (name, text) = match &self.world {
            World::Scenario(scenario) => (scenario.name.clone(), scenario.digest.clone()),
            World::Life(kind, days) => {
                (format!("{}-{days}", kind.word()), life::variants(*kind, *days, 1)[0].text.clone())
            }
        };
        hasher.update(format!("{SCHEMA}\n{name}\n{text}\n{}\n", self.seeds));
        hasher.update(serde_json::to_string(&self.axes).unwrap_or_default());
        hasher.update(format!("{:?}{:?}", self.plan.beneath, self.plan.above));
        hex(&hasher.finalize())
    }

    /// Plays the part `shard` of `shards`, both from 1.
    ///
    /// # Errors
    /// The first run, in order, that cannot be played, as a sentence.
    pub fn run(&self, shard: (u64, u64), threads: NonZeroUsize) -> Result<Results, String> {
        let points = self.points();
        let total = points.len() as u64 * self.seeds;
        if total > POINTS_MAX as u64 {
            return Err(format!("{total} runs; a sweep has at most {POINTS_MAX}"));
        }
        let mine: Vec<u64> = (0..total).filter(|index| index % shard.1 == shard.0 - 1).collect();
        let rows = each_on(&mine, threads, |index| {
            let point = &points[usize::try_from(index / self.seeds).unwrap_or(0)];
            let seed = index % self.seeds + 1;
            let knobs = self.axes.iter().map(|axis| axis.knob.clone()).zip(point.iter().cloned()).collect();
            let mut plan = self.plan.clone();
            plan.above.push(Overlay { knobs });
            let measures =
                self.measure(&plan, seed).map_err(|error| format!("{point:?}, seed {seed}: {error}"))?;
            Ok(Row { index: *index, point: point.clone(), seed, measures })
        });
        Ok(Results {
            schema: SCHEMA,
            sweep: self.digest(),
            world: self.world.name(),
            axes: self.axes.clone(),
            seeds: self.seeds,
            total,
            rows: rows.into_iter().collect::<Result<_, String>>()?,
        })
    }

    fn measure(&self, plan: &Plan, seed: u64) -> Result<BTreeMap<String, i64>, String> {
        match &self.world {
            World::Scenario(scenario) => {
                let plan = Plan { seed: Some(seed), ..plan.clone() };
                let ledger = play(scenario, &plan).map_err(|error| error.to_string())?;
                Ok(figures::all(&ledger)
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.to_owned(), number(&value)?)))
                    .collect())
            }
            World::Life(kind, days) => {
                let variants = life::variants(*kind, *days, seed);
                let lived = life::live(&variants[0], *days, plan).map_err(|error| error.to_string())?;
                Ok(of_life(&lived))
            }
        }
    }
}

/// A figure as a number: lists count, switches are 0 and 1.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::Bool(on) => Some(i64::from(*on)),
        Value::Array(items) => i64::try_from(items.len()).ok(),
        _ => None,
    }
}

/// Measures of a life.
fn of_life(lived: &Lived) -> BTreeMap<String, i64> {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let days = (lived.days.len() as u64).max(1);
    let sum = |read: fn(&life::Day) -> u64| lived.days.iter().map(read).sum::<u64>();
    let mut measures: BTreeMap<String, i64> = [
        ("cost_micro_usd_per_day", sum(|day| day.cost_micro_usd) / days),
        ("uncached_micro_usd_per_day", sum(|day| day.uncached_micro_usd) / days),
        ("prompt_tokens_per_day", sum(|day| day.prompt_tokens) / days),
        ("review_tokens_per_day", sum(|day| day.review_tokens) / days),
        ("requests", sum(|day| day.requests)),
        ("turns", sum(|day| day.turns)),
        ("compactions", sum(|day| day.compactions)),
        ("skills_created", sum(|day| day.skills_created)),
        ("skills_used", sum(|day| day.skills_used)),
        ("skills_archived", sum(|day| day.skills_archived)),
        ("catalogue_share_thousandths", sum(|day| day.catalogue_share) / days),
        ("catalogue_lines_max", lived.bounds.catalogue_lines),
        ("memory_chars_max", lived.bounds.memory_chars),
        ("memory_refused", lived.bounds.memory_refused),
        ("system_chars_max", lived.bounds.system_chars),
        ("request_tokens_max", lived.bounds.request_tokens),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), whole(value)))
    .collect();
    for place in Where::ALL {
        let of = || lived.survival.iter().filter(|row| row.place == place);
        let (facts, seen) = (of().map(|row| row.facts).sum::<u64>(), of().map(|row| row.seen).sum::<u64>());
        if let Some(share) = (seen * 1_000).checked_div(facts) {
            measures.insert(format!("{}_facts_seen_thousandths", place.word()), whole(share));
        }
    }
    measures
}

/// Puts the shards of one sweep together.
///
/// # Errors
/// When they are not of one sweep, overlap, or something is missing.
pub fn merge(parts: Vec<(String, Results)>) -> Result<Results, String> {
    let mut parts = parts.into_iter();
    let (_, mut whole) = parts.next().ok_or("no files to merge")?;
    for (file, part) in parts {
        if part.sweep != whole.sweep || part.schema != whole.schema {
            return Err(format!(
                "`{file}` belongs to another sweep ({} over {})",
                part.world,
                names(&part.axes)
            ));
        }
        whole.rows.extend(part.rows);
    }
    whole.rows.sort_by_key(|row| row.index);
    if let Some(pair) = whole.rows.windows(2).find(|pair| pair[0].index == pair[1].index) {
        return Err(format!("row {} is there twice", pair[0].index));
    }
    if whole.rows.len() as u64 != whole.total {
        return Err(format!("{} of {} rows are there", whole.rows.len(), whole.total));
    }
    Ok(whole)
}

/// The knobs of axes, for people.
pub fn names(axes: &[Axis]) -> String {
    axes.iter().map(|axis| axis.knob.as_str()).collect::<Vec<_>>().join(", ")
}

/// One point of a sweep: each measure's mean over the seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Values of the knobs.
    pub point: Vec<Value>,
    /// Means by name.
    pub means: BTreeMap<String, f64>,
}

/// The points of a sweep in order.
pub fn points(results: &Results) -> Vec<Point> {
    let mut points: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
    for row in &results.rows {
        match points.iter_mut().find(|(point, _)| *point == row.point) {
            Some((_, rows)) => rows.push(row),
            None => points.push((row.point.clone(), vec![row])),
        }
    }
    points
        .into_iter()
        .map(|(point, rows)| {
            let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
            for (name, value) in rows.iter().flat_map(|row| &row.measures) {
                let entry = sums.entry(name.clone()).or_insert((0, 0));
                *entry = (entry.0 + value, entry.1 + 1);
            }
            let means = sums.into_iter().map(|(name, (sum, n))| (name, sum as f64 / n as f64)).collect();
            Point { point, means }
        })
        .collect()
}

//! Months of an agent's life in seconds: scenarios made from parameters, and what they cost and keep day by day.
//!
//! A life is a scenario file like any other (`hermes-lab life … --print` shows it, `hermes-lab run` plays it). It is
//! played with a watch instead of a ledger, so that a year needs no more room than a day. Every life has variants that
//! differ in one thing: with and without the curator, with a summary that a model writes and one made by rule.

pub mod chat;
pub mod on_call;
pub mod steady;
pub mod watch;

use serde::Serialize;

use crate::lab::play::{Plan, PlayError, play_watched};
use crate::scenario::{self, Scenario};
use crate::world::clock;
use watch::Watch;

pub use watch::{Bounds, Day, Survival};

/// The version of the JSON shape.
pub const SCHEMA: u64 = 1;

/// Which life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A bot in a group that is on call: a session a day, alerts that come back, a weekly timer.
    OnCall,
    /// One chat that is never reset.
    Chat,
    /// Nothing but load, for measuring the lab: 1,600 requests a day.
    Steady,
}

impl Kind {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::OnCall => "on-call",
            Self::Chat => "chat",
            Self::Steady => "steady",
        }
    }

    /// Days of a life that names none.
    pub fn days(self) -> u64 {
        match self {
            Self::OnCall => 90,
            Self::Chat => 180,
            Self::Steady => 30,
        }
    }
}

/// Where a fact was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// In what the user said.
    History,
    /// In memory.
    Memory,
    /// In what the user said; a review has to put it into memory before a compaction takes it.
    Learned,
    /// In a skill.
    Skill,
}

impl Where {
    /// All places.
    pub const ALL: [Self; 4] = [Self::History, Self::Memory, Self::Learned, Self::Skill];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Memory => "memory",
            Self::Learned => "learned",
            Self::Skill => "skill",
        }
    }
}

/// A fact that a life plants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Where.
    pub place: Where,
    /// On which day, from 0.
    pub day: u64,
    /// Text by which it is known in a prompt.
    pub text: String,
}

/// One way in which a life goes.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Name in tables.
    pub name: &'static str,
    /// The scenario file.
    pub text: String,
    /// Facts that it plants.
    pub facts: Vec<Fact>,
}

/// What one variant of a life showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lived {
    /// Name of the variant.
    pub name: String,
    /// Day by day.
    pub days: Vec<Day>,
    /// Facts that are still seen after so many compactions.
    pub survival: Vec<Survival>,
    /// The largest of everything that is resident.
    pub bounds: Bounds,
}

/// A whole life in all its variants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Life {
    /// Version of the shape.
    pub schema: u64,
    /// Which.
    pub kind: Kind,
    /// Days.
    pub days: u64,
    /// Model whose prices are paid.
    pub price: String,
    /// The variants.
    pub variants: Vec<Lived>,
}

/// The variants of a life.
pub fn variants(kind: Kind, days: u64, seed: u64) -> Vec<Variant> {
    match kind {
        Kind::OnCall => on_call::variants(days, seed),
        Kind::Chat => chat::variants(days, seed),
        Kind::Steady => steady::variants(days, seed),
    }
}

/// The scenario of a variant.
///
/// # Panics
/// When the text is no scenario, which would be a mistake of the lab.
pub fn scenario_of(variant: &Variant) -> Scenario {
    scenario::load(variant.name, &variant.text).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// Lives one variant.
///
/// # Errors
/// When the plan's knobs do not fit.
pub fn live(variant: &Variant, days: u64, plan: &Plan) -> Result<Lived, PlayError> {
    let scenario = scenario_of(variant);
    let policy = crate::lab::play::policy_of(&scenario, plan)?;
    let mut watch = Watch::new(scenario.start, days, &policy, &variant.facts);
    play_watched(&scenario, plan, &mut |event| watch.see(event))?;
    let (days, survival, bounds) = watch.finish();
    Ok(Lived { name: variant.name.to_owned(), days, survival, bounds })
}

/// Lives a whole life.
///
/// # Errors
/// As [`live`].
pub fn whole(kind: Kind, days: u64, seed: u64, plan: &Plan) -> Result<Life, PlayError> {
    let variants = variants(kind, days, seed);
    let lived = variants.iter().map(|variant| live(variant, days, plan)).collect::<Result<_, _>>()?;
    Ok(Life { schema: SCHEMA, kind, days, price: watch::PRICE.to_owned(), variants: lived })
}

/// The day of an instant, from 0.
fn day_of(start: i64, at: i64) -> usize {
    usize::try_from((at - start).div_euclid(clock::DAY)).unwrap_or(0)
}

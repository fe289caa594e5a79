//! What is played with a real provider, and what is measured.
//!
//! Each suite has a scenario whose users and tools are the same for every model. `{seed}` in its text becomes the seed,
//! so that runs of different seeds are different conversations. A scenario that is given by hand takes its place.

mod cache;
mod compaction;
mod learning;
mod prefix;

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::diag::Diagnostic;
use crate::lab::play::{Plan, Played, play_with};
use crate::live::journal::{Identity, Journal};
use crate::live::line::{Asked, Line, Stop, Terms};
use crate::live::model::LiveModel;
use crate::live::money::Budget;
use crate::live::outside::{Network, Outside};
use crate::live::{Options, report};
use crate::policy::{KnobValue as _, Overlay, Policy};
use crate::scenario::{self, Scenario};
use crate::serve::counter::Counter;
use crate::serve::upstream::without_credentials;
use crate::units::Usd;

pub use cache::{Calibration, Row};
pub use compaction::{Fact, Facts};
pub use learning::{Learned, Measure};
pub use prefix::Prefix;

/// Version of the results' shape.
const SCHEMA: &str = "hermes-lab.live/1";

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Predicted against billed tokens, request by request.
    Cache,
    /// Whether each request extends the one before it.
    Prefix,
    /// Which standing facts a real summary keeps.
    Compaction,
    /// What a written skill is worth.
    Learning,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 4] = [Self::Cache, Self::Prefix, Self::Compaction, Self::Learning];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Prefix => "prefix",
            Self::Compaction => "compaction",
            Self::Learning => "learning",
        }
    }

    /// The suite of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.word() == word)
    }

    /// Name and text of its scenario.
    pub fn scenario(self) -> (&'static str, &'static str) {
        let file = match self {
            Self::Cache | Self::Prefix => "live-conversation",
            Self::Compaction => "live-compaction",
            Self::Learning => "live-learning",
        };
        let shipped = scenario::live().iter().find(|(name, _)| *name == file);
        *shipped.expect("every suite has a shipped scenario")
    }
}

/// What a suite found.
#[derive(Debug, Clone)]
pub enum Found {
    /// Calibration of the cache model.
    Cache(Calibration),
    /// Stability of the prefix.
    Prefix(Prefix),
    /// Facts after compactions.
    Compaction(Facts),
    /// The worth of a skill.
    Learning(Learned),
}

/// What a live run has to say.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The suite.
    pub suite: Suite,
    /// Provider and model, in words.
    pub asked_of: String,
    /// Every request.
    pub asked: Vec<Asked>,
    /// What was found.
    pub found: Found,
    /// Why it ended early, if it did.
    pub stopped: Option<Stop>,
    /// What was spent, earlier parts of the run included.
    pub spent: Usd,
    /// What may have been spent on answers that were lost.
    pub uncertain: Usd,
}

impl Outcome {
    /// True when everything was played and what was to hold does.
    pub fn holds(&self) -> bool {
        let found = match &self.found {
            Found::Cache(found) => found.holds(),
            Found::Prefix(found) => found.holds(),
            Found::Compaction(found) => found.holds(),
            Found::Learning(found) => found.holds(),
        };
        self.stopped.is_none() && found
    }

    /// As JSON, with a schema version.
    pub fn to_json(&self) -> Value {
        let found = match &self.found {
            Found::Cache(found) => json!(found),
            Found::Prefix(found) => json!(found),
            Found::Compaction(found) => json!(found),
            Found::Learning(found) => json!(found),
        };
        json!({
            "schema": SCHEMA, "suite": self.suite.word(), "asked_of": self.asked_of, "holds": self.holds(),
            "stopped": self.stopped.as_ref().map(ToString::to_string), "usd": self.spent,
            "usd_uncertain": self.uncertain, self.suite.word(): found, "requests": self.asked,
        })
    }

    /// As text for people.
    pub fn text(&self) -> String {
        report::text(self)
    }
}

/// One play of a scenario, finished.
pub(super) struct Run {
    /// Arm and seed.
    pub(super) name: String,
    pub(super) arm: String,
    pub(super) seed: u64,
    pub(super) scenario: Scenario,
    pub(super) played: Played,
}

/// Plays a suite.
///
/// # Errors
/// When the scenario, the directory or the policy does not fit. What the provider does wrong is part of the outcome.
pub fn run(options: &Options, tell: impl Fn(&str) + 'static) -> Result<Outcome, Diagnostic> {
    let network = Network::new(
        options.provider,
        &options.base_url,
        &options.upstream_ca,
        options.key.clone(),
        options.timeout,
    );
    let network =
        network.map_err(|error| Diagnostic::of_file(&options.base_url.to_string(), error.to_string()))?;
    run_with(options, Box::new(network), Box::new(tell))
}

pub(super) fn run_with(
    options: &Options,
    outside: Box<dyn Outside>,
    tell: Box<dyn Fn(&str)>,
) -> Result<Outcome, Diagnostic> {
    // Everything that can be wrong with the scenario is said before a directory is made.
    let scenarios: Vec<Scenario> =
        (0..options.seeds).map(|seed| seeded(options, seed)).collect::<Result<_, _>>()?;
    let line = Rc::new(RefCell::new(open(options, outside, tell)?));
    let mut runs = Vec::new();
    'all: for (seed, scenario) in (0u64..).zip(scenarios) {
        let arms = if options.suite == Suite::Learning { arms(&scenario)? } else { vec![Arm::default()] };
        for arm in arms {
            let name =
                if arm.name.is_empty() { format!("seed {seed}") } else { format!("{} {seed}", arm.name) };
            let plan = Plan {
                above: vec![overlay(options), arm.overlay],
                seed: Some(scenario.seed + seed),
                ..Plan::default()
            };
            let played = play_with(&scenario, &plan, LiveModel::new(&line, &name));
            // A run that was stopped is unfinished, even where the runtime went on without its summary.
            if line.borrow().stopped.is_some() {
                break 'all;
            }
            let played =
                played.map_err(|error| Diagnostic::of_file(&scenario.name, format!("{name}: {error}")))?;
            runs.push(Run { name, arm: arm.name, seed, scenario: scenario.clone(), played });
        }
    }
    let line = line.borrow();
    let found = match options.suite {
        Suite::Cache => Found::Cache(Calibration::of(&line.asked, options.tolerance)),
        Suite::Prefix => Found::Prefix(Prefix::of(&runs, &line.audit())),
        Suite::Compaction => Found::Compaction(Facts::of(&runs)),
        Suite::Learning => Found::Learning(Learned::of(&runs, &line.asked)),
    };
    Ok(Outcome {
        suite: options.suite,
        asked_of: format!("{} `{}`", options.provider.word(), options.model),
        asked: line.asked.clone(),
        found,
        stopped: line.stopped.clone(),
        spent: line.budget.spent(),
        uncertain: line.budget.uncertain(),
    })
}

/// Opens journal and accounts.
fn open(options: &Options, outside: Box<dyn Outside>, tell: Box<dyn Fn(&str)>) -> Result<Line, Diagnostic> {
    let (name, text) = text(options);
    let upstream = without_credentials(&options.base_url);
    let identity = Identity::from([
        ("suite", options.suite.word().to_owned()),
        ("provider", options.provider.word().to_owned()),
        ("model", options.model.clone()),
        ("base_url", upstream.clone()),
        ("max_tokens", options.max_tokens.to_string()),
        ("scenario", format!("{name} {}", crate::wire::Chain::of_bytes(text.as_bytes()))),
    ]);
    let (journal, earlier) = Journal::open(&options.out, upstream, &identity, options.resume)?;
    let mut policy = Policy::default();
    overlay(options).apply(&mut policy).map_err(|errors| {
        let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Diagnostic::of_file("live", words.join("; "))
    })?;
    let cache_model = options.cache_model.unwrap_or_else(|| options.provider.cache_model(&options.model));
    let counter = Counter::new(Some(cache_model), policy.cache);
    let terms =
        Terms { provider: options.provider, model: options.model.clone(), max_tokens: options.max_tokens };
    let budget = Budget::new(options.price.clone(), options.budget, &earlier);
    Ok(Line::new(terms, outside, journal, budget, counter, tell))
}

/// The scenario's name and text.
fn text(options: &Options) -> (&str, &str) {
    match &options.scenario {
        Some((name, text)) => (name, text),
        None => options.suite.scenario(),
    }
}

fn seeded(options: &Options, seed: u64) -> Result<Scenario, Diagnostic> {
    let (name, text) = text(options);
    let mut faults = match scenario::load(name, &text.replace("{seed}", &seed.to_string())) {
        Ok(scenario) => return Ok(scenario),
        Err(faults) => faults,
    };
    Err(faults.swap_remove(0))
}

/// The runtime as the provider wants it.
fn overlay(options: &Options) -> Overlay {
    let provider = options.provider;
    let vendor = match provider {
        crate::live::Provider::Anthropic => "anthropic",
        crate::live::Provider::Compatible => "custom",
        _ => "openai",
    };
    let cache_model = options.cache_model.unwrap_or_else(|| provider.cache_model(&options.model));
    // Which markers a route takes hangs on the vendor's own address, wherever the requests really go.
    let address = provider.base_url().map_or_else(|| options.base_url.to_string(), str::to_owned);
    let turn = |knob: &str, value: &str| (knob.to_owned(), Value::from(value));
    Overlay {
        knobs: vec![
            turn("prompt.model", &options.model),
            turn("prompt.provider", vendor),
            turn("prompt.base_url", &address),
            turn("prompt.api_mode", provider.api_mode()),
            ("cache.model".to_owned(), cache_model.show()),
        ],
    }
}

/// A way in which a scenario is played.
#[derive(Default)]
struct Arm {
    name: String,
    overlay: Overlay,
}

/// The two arms of a pair: the first is the one with what is measured.
fn arms(scenario: &Scenario) -> Result<Vec<Arm>, Diagnostic> {
    if scenario.arms.len() != 2 {
        let message =
            format!("{} arms, where a pair has two: with the skill, and without", scenario.arms.len());
        return Err(Diagnostic::of_file(&scenario.name, message));
    }
    let arm =
        |spec: &scenario::ArmSpec| Arm { name: spec.name.clone(), overlay: Overlay::from_table(&spec.turn) };
    Ok(scenario.arms.iter().map(arm).collect())
}

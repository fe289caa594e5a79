//! Conformance: replays observed outcomes of the real agent through the code that the runtime runs.
//!
//! A vector is one line of JSON: `id`, `mechanism` (`family.function`), `given`, `expect`, `note`. An adapter turns
//! `given` into calls of the runtime's own functions and answers what they did in the vector's words; it contains no
//! behaviour of its own. The comparison asks that every key of `expect` is answered equally.
//!
//! A difference is either undeclared, which fails, or listed with its reason in `deliberate.toml`.

mod breakpoints;
mod cache;
mod compare;
mod compress;
mod cron;
mod curator;
mod delegate;
mod guard;
mod memory;
mod prompt;
mod review;
mod search;
mod sessions;
mod skills;
mod text;
mod threats;
mod turn;

pub use compare::first_difference;
pub use text::expand;

use std::collections::BTreeMap;

use serde_json::Value;

/// One observed outcome.
#[derive(Debug, Clone)]
pub struct Vector {
    /// Unique name.
    pub id: String,
    /// `family.function`.
    pub mechanism: String,
    /// The input.
    pub given: Value,
    /// What the real code did.
    pub expect: Value,
    /// What the case shows; may carry the labels `gap` or `overreach`.
    pub note: String,
}

/// Why a vector could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// No adapter knows the function.
    #[error("no function `{0}` is known")]
    UnknownFunction(String),
    /// The input lacks something.
    #[error("the input lacks `{0}`")]
    Missing(String),
}

/// What the vectors of one file share: lines that give a table or a corpus to the others.
#[derive(Debug, Clone, Default)]
pub struct Fixtures {
    by_mechanism: BTreeMap<String, Vec<Value>>,
}

impl Fixtures {
    /// Mechanisms whose lines are fixtures as well as vectors.
    const KINDS: [&'static str; 2] = ["search.corpus", "delegate.catalog"];

    /// The fixtures among these vectors.
    pub fn of(vectors: &[Vector]) -> Self {
        let mut fixtures = Self::default();
        for vector in vectors.iter().filter(|vector| Self::KINDS.contains(&vector.mechanism.as_str())) {
            fixtures.by_mechanism.entry(vector.mechanism.clone()).or_default().push(vector.given.clone());
        }
        fixtures
    }

    /// The `given` of every fixture line of a mechanism, in file order.
    pub fn of_mechanism(&self, mechanism: &str) -> &[Value] {
        self.by_mechanism.get(mechanism).map_or(&[], Vec::as_slice)
    }
}

/// An adapter: the function's name, the input and the file's fixtures; answers in the words of `expect`.
pub type Replay = fn(&str, &Value, &Fixtures) -> Result<Value, ReplayError>;

/// A family of mechanisms, the vectors' file stem, and its adapter.
pub const FAMILIES: &[(&str, Replay)] = &[
    ("breakpoints", breakpoints::replay),
    ("compress", compress::replay),
    ("cron", cron::replay),
    ("curator", curator::replay),
    ("delegate", delegate::replay),
    ("guard", guard::replay),
    ("loop", turn::replay),
    ("memory", memory::replay),
    ("prompt", prompt::replay),
    ("provider-cache", cache::replay),
    ("review", review::replay),
    ("search", search::replay),
    ("sessions", sessions::replay),
    ("skills", skills::replay),
    ("threats", threats::replay),
];

/// The outcome of one vector.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Everything that the vector names is answered equally.
    Agrees,
    /// Something differs; the text names the first difference.
    Differs {
        /// What our code answered.
        got: Value,
        /// Place of the first difference and both values.
        first: String,
    },
}

impl Vector {
    /// Reads one line.
    ///
    /// # Errors
    /// When the line is no JSON object or lacks `id`, `mechanism`, `given` or `expect`.
    pub fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            id: text("id").ok_or("a vector needs the text `id`")?,
            mechanism: text("mechanism").ok_or("a vector needs the text `mechanism`")?,
            given: value.get("given").cloned().ok_or("a vector needs `given`")?,
            expect: value.get("expect").cloned().ok_or("a vector needs `expect`")?,
            note: text("note").unwrap_or_default(),
        })
    }

    /// The family: what stands before the first dot of the mechanism, as the file is named.
    pub fn family(&self) -> &str {
        match self.mechanism.split_once('.').map_or(self.mechanism.as_str(), |(family, _)| family) {
            // The caches are a provider's, and their file says so.
            "cache" => "provider-cache",
            family => family,
        }
    }

    /// The function: what stands behind the first dot of the mechanism.
    pub fn function(&self) -> &str {
        self.mechanism.split_once('.').map_or("", |(_, function)| function)
    }

    /// Runs the vector.
    ///
    /// # Errors
    /// When no adapter knows it, or the input lacks something.
    pub fn run(&self, fixtures: &Fixtures) -> Result<Outcome, ReplayError> {
        let (_, replay) = FAMILIES
            .iter()
            .find(|(family, _)| *family == self.family())
            .ok_or_else(|| ReplayError::UnknownFunction(self.mechanism.clone()))?;
        let got = replay(self.function(), &expand(&self.given), fixtures)?;
        Ok(match first_difference(&expand(&self.expect), &got) {
            None => Outcome::Agrees,
            Some(first) => Outcome::Differs { got, first },
        })
    }
}

/// A vector and what came of it.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The vector.
    pub vector: Vector,
    /// What the runtime did.
    pub outcome: Result<Outcome, ReplayError>,
    /// Why a difference is meant, if it is.
    pub deliberate: Option<String>,
}

impl Replayed {
    /// True when it agrees.
    pub fn agrees(&self) -> bool {
        matches!(self.outcome, Ok(Outcome::Agrees))
    }

    /// True when it agrees or differs on purpose.
    pub fn fine(&self) -> bool {
        self.agrees() || self.deliberate.is_some()
    }

    /// What is wrong, in one line; empty when nothing is.
    pub fn trouble(&self) -> String {
        match &self.outcome {
            Ok(Outcome::Agrees) => String::new(),
            Ok(Outcome::Differs { first, .. }) => first.clone(),
            Err(error) => error.to_string(),
        }
    }
}

/// How the vectors of one mechanism came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// All vectors.
    pub vectors: usize,
    /// Those that agree.
    pub agree: usize,
    /// Those that differ without a reason.
    pub differ: usize,
    /// Those that differ on purpose.
    pub deliberate: usize,
}

/// A whole conformance run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    replayed: Vec<Replayed>,
}

impl Report {
    /// Adds replayed vectors.
    pub fn extend(&mut self, more: Vec<Replayed>) {
        self.replayed.extend(more);
    }

    /// True when nothing was replayed.
    pub fn is_empty(&self) -> bool {
        self.replayed.is_empty()
    }

    /// Ids of all vectors.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.replayed.iter().map(|replayed| replayed.vector.id.as_str())
    }

    /// The vector with this id.
    pub fn find(&self, id: &str) -> Option<&Replayed> {
        self.replayed.iter().find(|replayed| replayed.vector.id == id)
    }

    /// Vectors that differ without a declared reason.
    pub fn undeclared(&self) -> impl Iterator<Item = &Replayed> {
        self.replayed.iter().filter(|replayed| !replayed.fine())
    }

    /// A tally per family, sorted by name.
    pub fn by_family(&self) -> BTreeMap<String, Tally> {
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for replayed in &self.replayed {
            let tally = tallies.entry(replayed.vector.family().to_owned()).or_default();
            tally.vectors += 1;
            match (replayed.agrees(), &replayed.deliberate) {
                (true, _) => tally.agree += 1,
                (false, Some(_)) => tally.deliberate += 1,
                (false, None) => tally.differ += 1,
            }
        }
        tallies
    }

    /// The run as JSON: `{schema, mechanisms: {NAME: {vectors, agree, differ, deliberate}}, differing: [id…]}`.
    pub fn to_json(&self) -> Value {
        let mechanisms: serde_json::Map<String, Value> = self
            .by_family()
            .into_iter()
            .map(|(name, tally)| {
                let row = serde_json::json!({
                    "vectors": tally.vectors, "agree": tally.agree,
                    "differ": tally.differ, "deliberate": tally.deliberate,
                });
                (name, row)
            })
            .collect();
        let differing: Vec<&str> = self.undeclared().map(|replayed| replayed.vector.id.as_str()).collect();
        serde_json::json!({ "schema": 1, "mechanisms": mechanisms, "differing": differing })
    }
}

/// Differences that are meant, each with its reason.
const DELIBERATE: &str = include_str!("conform/deliberate.toml");

/// What is meant to differ.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deliberate {
    /// Vectors that the runtime answers otherwise than the real agent: id and reason.
    pub vectors: BTreeMap<String, String>,
    /// Fault cases in which the default follows the real agent although the case says otherwise.
    pub cases: BTreeMap<String, CaseDifference>,
}

/// A fault case that the real agent, and so the default, gets wrong.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseDifference {
    /// What the real agent does.
    pub real: String,
    /// The knob that mends it.
    pub mended_by: String,
}

/// The deliberate differences.
///
/// # Panics
/// When the shipped list is broken, which every conformance run would show.
pub fn deliberate() -> Deliberate {
    toml::from_str(DELIBERATE).expect("the shipped list has reasons for vectors and cases")
}

/// Replays the vectors of one file; `wanted` chooses among them, the rest may still serve as fixtures.
pub fn replay_all(vectors: &[Vector], wanted: impl Fn(&Vector) -> bool) -> Vec<Replayed> {
    let fixtures = Fixtures::of(vectors);
    let reasons = deliberate().vectors;
    vectors
        .iter()
        .filter(|vector| wanted(vector))
        .map(|vector| {
            let outcome = vector.run(&fixtures);
            let agrees = matches!(outcome, Ok(Outcome::Agrees));
            let deliberate = if agrees { None } else { reasons.get(&vector.id).cloned() };
            Replayed { vector: vector.clone(), outcome, deliberate }
        })
        .collect()
}

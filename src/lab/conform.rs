//! Conformance: replays observed outcomes of the real agent through the code that the runtime runs.
//!
//! A vector is one line of JSON: `id`, `mechanism` (`family.function`), `given`, `expect`, `note`. An adapter turns
//! `given` into calls of the runtime's own functions and answers what they did in the vector's words; it contains no
//! behaviour of its own. The comparison asks that every key of `expect` is answered equally.
//!
//! A difference is either undeclared, which fails, or listed with its reason in `deliberate.toml`.

mod compare;
mod cron;
mod guard;
mod text;
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
pub const FAMILIES: &[(&str, Replay)] =
    &[("cron", cron::replay), ("guard", guard::replay), ("loop", turn::replay)];

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

    /// The family: what stands before the first dot of the mechanism.
    pub fn family(&self) -> &str {
        self.mechanism.split_once('.').map_or(self.mechanism.as_str(), |(family, _)| family)
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

//! Overlays: lists of `knob = value` that turn a policy.

use serde_json::Value;

use crate::policy::Policy;

/// Why a knob could not be turned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// There is no such knob.
    #[error("unknown knob `{name}`{}", nearest.as_ref().map(|near| format!(", did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// The name that was given.
        name: String,
        /// The knob whose name is closest.
        nearest: Option<String>,
    },
    /// The value does not fit.
    #[error("knob `{knob}`: expected {expected}")]
    Value {
        /// The knob.
        knob: String,
        /// What was expected and what was found.
        expected: String,
    },
}

impl KnobError {
    pub(crate) fn unknown(name: &str) -> Self {
        let knobs = Policy::knobs();
        let nearest = crate::diag::nearest(name, knobs.iter().map(|knob| knob.name));
        Self::Unknown { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
    }
}

/// A named list of turned knobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overlay {
    /// The turns, in the order in which they are applied.
    pub knobs: Vec<(String, Value)>,
}

impl Overlay {
    /// Applies every turn.
    ///
    /// # Errors
    /// All turns that failed; those that fit are applied.
    pub fn apply(&self, policy: &mut Policy) -> Result<(), Vec<KnobError>> {
        let errors: Vec<KnobError> =
            self.knobs.iter().filter_map(|(name, value)| policy.set(name, value).err()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Reads one `knob=value` of a command line. The value is TOML if it parses as such, else a text.
    ///
    /// # Errors
    /// When there is no `=`.
    ///
    /// ```
    /// use hermes_lab::policy::Overlay;
    /// let overlay = Overlay::parse_turn("memory.chars_max=99").unwrap();
    /// assert_eq!(overlay.knobs[0], ("memory.chars_max".to_owned(), 99.into()));
    /// ```
    pub fn parse_turn(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("expected `knob=value`, found `{text}`"))?;
        let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .and_then(|table| serde_json::to_value(&table["v"]).ok())
            .unwrap_or_else(|| Value::from(value));
        Ok(Self { knobs: vec![(name.trim().to_owned(), parsed)] })
    }

    /// Flattens a TOML table of sections into turns: `[memory] chars_max = 1` and `"memory.chars_max" = 1` alike.
    pub fn from_table(table: &toml::Table) -> Self {
        let mut knobs = Vec::new();
        for (section, value) in table {
            match value {
                toml::Value::Table(inner) => knobs
                    .extend(inner.iter().map(|(knob, value)| (format!("{section}.{knob}"), json_of(value)))),
                value => knobs.push((section.clone(), json_of(value))),
            }
        }
        Self { knobs }
    }
}

fn json_of(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

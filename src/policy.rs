//! Every knob of the runtime, in one typed value.
//!
//! A [`Policy`] has one section per mechanism; a section is a plain struct whose fields are knobs. Each knob carries
//! its default, unit, allowed range, source and the law it serves, and all of that is printed by
//! `hermes-lab policy`. The defaults are the pinned values of Hermes Agent. Everything else is an overlay: a list of
//! `knob = value`, from a preset, a scenario, a break or the command line, applied in that order.
//!
//! Never: a constant of a mechanism outside this room, a question such as "is this break on?".

mod knob;
mod overlay;
pub mod preset;
mod sections;

pub use knob::{KnobInfo, KnobValue, Range};
pub use overlay::{KnobError, Overlay};
pub use sections::*;

use serde_json::Value;

macro_rules! policy {
    ($($(#[$doc:meta])* $field:ident: $section:ty),* $(,)?) => {
        /// All knobs of a run.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Policy {
            $($(#[$doc])* pub $field: $section,)*
        }

        impl Policy {
            /// Facts about every knob, in the order of the sections.
            pub fn knobs() -> Vec<KnobInfo> {
                let mut all = Vec::new();
                $(all.extend(<$section>::infos());)*
                all
            }

            /// Every knob as `name → value`, in the order of the sections.
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                let mut all = Vec::new();
                $(all.extend(self.$field.values());)*
                all
            }

            /// The present value of a knob as JSON; `None` when there is no such knob.
            pub fn get(&self, name: &str) -> Option<Value> {
                let (section, knob) = name.split_once('.')?;
                $(if section == <$section>::SECTION { return self.$field.get(knob); })*
                None
            }

            /// Turns one knob.
            ///
            /// # Errors
            /// An unknown name, a wrong type, or a value out of range.
            pub fn set(&mut self, name: &str, value: &Value) -> Result<(), KnobError> {
                let (section, knob) = name.split_once('.').unwrap_or((name, ""));
                $(if section == <$section>::SECTION && self.$field.get(knob).is_some() {
                    return self.$field.set(knob, value);
                })*
                Err(KnobError::unknown(name))
            }
        }
    };
}

policy! {
    /// One user turn.
    turn: Turn,
    /// The system prompt.
    prompt: Prompt,
    /// Cache markers.
    breakpoints: Breakpoints,
    /// Bounded memory.
    memory: Memory,
    /// The literal scanner.
    threats: Threats,
    /// Skills and who wrote them.
    skills: Skills,
    /// Background review.
    review: Review,
    /// Ageing and archiving of skills.
    curator: Curator,
    /// Context compression.
    compress: Compress,
    /// Session store.
    store: Store,
    /// Session search.
    search: Search,
    /// Child agents.
    delegate: Delegate,
    /// Scheduled runs.
    cron: Cron,
    /// The terminal and the files beside it.
    terminal: Terminal,
    /// Command approval.
    guard: Guard,
    /// The provider's prefix cache.
    cache: Cache,
}

impl Policy {
    /// The knobs that differ from their defaults.
    pub fn turned(&self) -> Vec<(&'static str, Value)> {
        let defaults = Self::default();
        self.values().into_iter().filter(|(name, value)| defaults.get(name).as_ref() != Some(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_names_unit_and_source_and_its_default_is_in_range() {
        let mut policy = Policy::default();
        for knob in Policy::knobs() {
            assert!(
                !knob.unit.is_empty() && !knob.source.is_empty() && !knob.doc.is_empty(),
                "{}",
                knob.name
            );
            let value = policy.get(knob.name).expect("a value");
            policy.set(knob.name, &value).unwrap_or_else(|error| panic!("{}: {error}", knob.name));
        }
        assert_eq!(policy, Policy::default());
    }

    #[test]
    fn an_unknown_knob_names_the_nearest() {
        let error = Policy::default().set("memory.chars_mx", &Value::from(3)).unwrap_err();
        assert!(error.to_string().contains("memory.chars_max"), "{error}");
    }
}

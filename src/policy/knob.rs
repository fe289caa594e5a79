//! What a knob is, and the macro that declares a section of them.

use serde_json::Value;

/// Facts about one knob.
#[derive(Debug, Clone, PartialEq)]
pub struct KnobInfo {
    /// Full name, `section.knob`.
    pub name: &'static str,
    /// Type as people know it: integer, number, switch, text, choice, list.
    pub kind: &'static str,
    /// Default value.
    pub default: Value,
    /// Unit of the value.
    pub unit: &'static str,
    /// Allowed values in words.
    pub range: String,
    /// Where the default comes from.
    pub source: &'static str,
    /// The law that the knob serves, or `-`.
    pub law: &'static str,
    /// What the knob does.
    pub doc: String,
}

/// Inclusive bounds of a numeric knob.
pub type Range = Option<(f64, f64)>;

/// A type that a knob can have.
pub trait KnobValue: Sized {
    /// Name of the type for people.
    const KIND: &'static str;

    /// Reads a value; the error says what was expected.
    ///
    /// # Errors
    /// When the value has another type or lies outside the range.
    fn read(value: &Value, range: Range) -> Result<Self, String>;

    /// The value as JSON.
    fn show(&self) -> Value;

    /// Allowed values in words.
    fn range(range: Range) -> String {
        range.map_or_else(|| "any".to_owned(), |(low, high)| format!("{low} to {high}"))
    }
}

fn within(number: f64, range: Range) -> Result<(), String> {
    match range {
        Some((low, high)) if number < low || number > high => {
            Err(format!("a value from {low} to {high}, found {number}"))
        }
        _ => Ok(()),
    }
}

impl KnobValue for bool {
    const KIND: &'static str = "switch";

    fn read(value: &Value, _: Range) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("`true` or `false`, found {value}"))
    }

    fn show(&self) -> Value {
        Value::from(*self)
    }

    fn range(_: Range) -> String {
        "true, false".to_owned()
    }
}

macro_rules! integer_knob {
    ($($int:ty, $read:ident);*) => {$(
        impl KnobValue for $int {
            const KIND: &'static str = "integer";

            fn read(value: &Value, range: Range) -> Result<Self, String> {
                let number = value.$read().ok_or_else(|| format!("an integer, found {value}"))?;
                within(number as f64, range)?;
                Ok(number)
            }

            fn show(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}

integer_knob!(u64, as_u64; i64, as_i64);

impl KnobValue for f64 {
    const KIND: &'static str = "number";

    fn read(value: &Value, range: Range) -> Result<Self, String> {
        let number = value.as_f64().ok_or_else(|| format!("a number, found {value}"))?;
        within(number, range)?;
        Ok(number)
    }

    fn show(&self) -> Value {
        Value::from(*self)
    }
}

impl KnobValue for String {
    const KIND: &'static str = "text";

    fn read(value: &Value, _: Range) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("a text, found {value}"))
    }

    fn show(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl<T: KnobValue> KnobValue for Vec<T> {
    const KIND: &'static str = "list";

    fn read(value: &Value, range: Range) -> Result<Self, String> {
        let items = value.as_array().ok_or_else(|| format!("a list, found {value}"))?;
        items.iter().map(|item| T::read(item, range)).collect()
    }

    fn show(&self) -> Value {
        Value::Array(self.iter().map(KnobValue::show).collect())
    }
}

/// `"none"` stands for an absent value.
impl<T: KnobValue> KnobValue for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(value: &Value, range: Range) -> Result<Self, String> {
        if value.is_null() || value.as_str() == Some("none") {
            return Ok(None);
        }
        T::read(value, range).map(Some).map_err(|expected| format!("\"none\" or {expected}"))
    }

    fn show(&self) -> Value {
        self.as_ref().map_or_else(|| Value::from("none"), KnobValue::show)
    }

    fn range(range: Range) -> String {
        format!("none, or {}", T::range(range))
    }
}

/// Declares a section of knobs: a struct, its defaults, and the facts about each field.
///
/// ```text
/// knobs! {
///     /// Bounded memory.
///     Memory, "memory" {
///         /// Longest joined text of MEMORY.md.
///         chars_max: u64 = 2_200, [0, 10_000_000], "characters", "Hermes tools/memory_tool_store.py:186", "L2";
///     }
/// }
/// ```
macro_rules! knobs {
    ($(#[doc = $section_doc:expr])* $name:ident, $section:literal {
        $($(#[doc = $doc:expr])* $field:ident: $kind:ty = $default:expr, $([$low:expr, $high:expr],)?
            $unit:literal, $source:literal, $law:literal;)*
    }) => {
        $(#[doc = $section_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            /// Name of the section, the first half of every knob in it.
            pub const SECTION: &'static str = $section;

            /// Facts about the knobs of this section.
            pub fn infos() -> Vec<$crate::policy::KnobInfo> {
                #[allow(unused_variables, clippy::allow_attributes, reason = "a section may be empty")]
                let defaults = Self::default();
                vec![$($crate::policy::KnobInfo {
                    name: concat!($section, ".", stringify!($field)),
                    kind: <$kind as $crate::policy::KnobValue>::KIND,
                    default: $crate::policy::KnobValue::show(&defaults.$field),
                    unit: $unit,
                    range: <$kind as $crate::policy::KnobValue>::range(knobs!(@range $($low, $high)?)),
                    source: $source,
                    law: $law,
                    doc: [$($doc),*].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
                },)*]
            }

            /// Every knob and its value, in order.
            pub fn values(&self) -> Vec<(&'static str, serde_json::Value)> {
                vec![$((
                    concat!($section, ".", stringify!($field)),
                    $crate::policy::KnobValue::show(&self.$field),
                ),)*]
            }

            /// The value of a knob by its short name.
            pub fn get(&self, knob: &str) -> Option<serde_json::Value> {
                match knob {
                    $(stringify!($field) => Some($crate::policy::KnobValue::show(&self.$field)),)*
                    _ => None,
                }
            }

            /// Turns a knob by its short name.
            ///
            /// # Errors
            /// An unknown name, a wrong type, or a value out of range.
            #[allow(unused_variables, clippy::allow_attributes, reason = "a section may be empty")]
            pub fn set(&mut self, knob: &str, value: &serde_json::Value) -> Result<(), $crate::policy::KnobError> {
                match knob {
                    $(stringify!($field) => {
                        self.$field = <$kind as $crate::policy::KnobValue>::read(
                            value, knobs!(@range $($low, $high)?)
                        ).map_err(|expected| $crate::policy::KnobError::Value {
                            knob: concat!($section, ".", stringify!($field)).to_owned(),
                            expected,
                        })?;
                        Ok(())
                    })*
                    _ => Err($crate::policy::KnobError::unknown(&format!("{}.{knob}", $section))),
                }
            }
        }
    };
    (@range) => { None };
    (@range $low:expr, $high:expr) => { Some(($low as f64, $high as f64)) };
}

/// Declares a choice: an enum whose variants are written as fixed words.
///
/// ```text
/// choice! {
///     /// Which rule decides.
///     Rule { /// The first. First = "first", /// The second. Second = "second" }
/// }
/// ```
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// The word that stands for this choice.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl $crate::policy::KnobValue for $name {
            const KIND: &'static str = "choice";

            fn read(value: &serde_json::Value, _: $crate::policy::Range) -> Result<Self, String> {
                match value.as_str() {
                    $(Some($word) => Ok(Self::$variant),)*
                    _ => Err(format!("one of {}, found {value}", Self::range(None))),
                }
            }

            fn show(&self) -> serde_json::Value {
                serde_json::Value::from(self.word())
            }

            fn range(_: $crate::policy::Range) -> String {
                [$($word),*].join(", ")
            }
        }
    };
}

pub(super) use {choice, knobs};

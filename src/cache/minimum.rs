//! Shortest prefix that Claude models cache, by model and platform.
//!
//! First party: the provider's page of August 2026, with later models as others quote it. Bedrock prints a table of
//! its own. Where a third copy says something else, the first-party page wins and `cache.tokens_min` overrides.

/// Minimum for models that no table knows.
pub const UNKNOWN: u64 = 1_024;

/// Parts of a model's name and its minimum in tokens; the first match counts, so longer names come first.
const FIRST_PARTY: &[(&str, u64)] = &[
    ("opus-5", 512),
    ("fable-5", 512),
    ("mythos-5", 512),
    ("mythos-preview", 2_048),
    ("opus-4-8", 1_024),
    ("opus-4-7", 2_048),
    ("opus-4-6", 4_096),
    ("opus-4-5", 4_096),
    ("opus-4", 1_024),
    ("sonnet", 1_024),
    ("haiku-4-5", 4_096),
    ("haiku", 2_048),
];

/// The same on Bedrock.
const BEDROCK: &[(&str, u64)] = &[
    ("opus-5", 512),
    ("opus-4-8", 1_024),
    ("sonnet-5", 1_024),
    ("opus-4-7", 4_096),
    ("opus-4-6", 4_096),
    ("haiku-4-5", 4_096),
    ("3-7-sonnet", 1_024),
    ("sonnet-3-7", 1_024),
    ("3-5-haiku", 2_048),
    ("haiku-3-5", 2_048),
    ("nova", 1_000),
];

/// A table of minimums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Minimum {
    /// The same for every model, in tokens.
    Fixed(u64),
    /// The first-party table.
    FirstParty,
    /// Bedrock's table, and where that is silent the first-party one.
    Bedrock,
}

impl Minimum {
    /// The minimum of a model, in tokens.
    ///
    /// ```
    /// use hermes_lab::cache::minimum::Minimum;
    /// assert_eq!(Minimum::FirstParty.of("claude-opus-4.7"), 2_048);
    /// assert_eq!(Minimum::Bedrock.of("anthropic.claude-opus-4-7-v1:0"), 4_096);
    /// ```
    pub fn of(self, model: &str) -> u64 {
        let named = |table: &[(&str, u64)]| {
            let model = model.to_ascii_lowercase().replace('.', "-");
            table.iter().find(|(part, _)| model.contains(part)).map(|(_, tokens)| *tokens)
        };
        match self {
            Self::Fixed(tokens) => tokens,
            Self::FirstParty => named(FIRST_PARTY).unwrap_or(UNKNOWN),
            Self::Bedrock => named(BEDROCK).or_else(|| named(FIRST_PARTY)).unwrap_or(UNKNOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_generations_of_one_family_apart() {
        for (model, tokens) in [
            ("claude-opus-5", 512),
            ("claude-opus-4-8", 1_024),
            ("claude-opus-4-6", 4_096),
            ("claude-opus-4-1", 1_024),
            ("claude-sonnet-4-6", 1_024),
            ("claude-haiku-4-5", 4_096),
            ("claude-3-5-haiku", 2_048),
            ("something-else", UNKNOWN),
        ] {
            assert_eq!(Minimum::FirstParty.of(model), tokens, "{model}");
        }
    }
}

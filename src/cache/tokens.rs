//! Counting tokens of texts.
//!
//! Three counters are known, and which one was used is always said: an estimate from characters, counts that a log
//! brings along, and, behind the feature `tokenizer`, a real byte-pair table (o200k).
//!
//! The estimate weighs characters by kind. Measured against o200k on 83 files: English prose and tables 7 % too low to
//! 6 % too high (mean −1 %), Rust code −9 % to +6 % (mean 0 %), JSON request logs −7 % to +4 % (mean +1 %), Chinese
//! prose within 2 %. Providers' own tokenizers differ from each other by more than that; where money is at stake, use
//! logged counts.

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// From characters, see [`estimate`].
    Estimate,
    /// As the log says.
    Log,
    /// With a byte-pair table.
    #[cfg(feature = "tokenizer")]
    BytePair,
}

impl Counter {
    /// The name for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Estimate => "estimate from characters",
            Self::Log => "counts of the log",
            #[cfg(feature = "tokenizer")]
            Self::BytePair => "byte pairs (o200k)",
        }
    }

    /// Tokens of a text; `logged` is what the log says, without which [`Counter::Log`] has no answer.
    pub fn count(self, text: &str, logged: Option<u64>) -> Option<u64> {
        match self {
            Self::Estimate => Some(estimate(text)),
            Self::Log => logged,
            #[cfg(feature = "tokenizer")]
            Self::BytePair => Some(byte_pairs(text)),
        }
    }
}

/// Weights in thousandths of a token, fitted to o200k.
const LETTER: u64 = 250;
const DIGIT: u64 = 900;
const BLANK: u64 = 45;
const LINE_END: u64 = 415;
const SIGN: u64 = 465;
const IDEOGRAPH: u64 = 735;
const KANA_OR_HANGUL: u64 = 650;
const OTHER: u64 = 500;

/// Tokens of a text, estimated from its characters.
///
/// ```
/// use hermes_lab::cache::tokens::estimate;
/// assert_eq!(estimate(""), 0);
/// assert_eq!(estimate("The quick brown fox jumps over the lazy dog."), 10);
/// assert!(estimate("提示缓存") > estimate("cache"));
/// ```
pub fn estimate(text: &str) -> u64 {
    let weight: u64 = text.chars().map(weight).sum();
    weight.div_ceil(1_000)
}

fn weight(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' => LETTER,
        '0'..='9' => DIGIT,
        '\n' => LINE_END,
        ' ' | '\t' | '\r' => BLANK,
        '!'..='~' => SIGN,
        '\u{3040}'..='\u{30FF}' | '\u{AC00}'..='\u{D7A3}' => KANA_OR_HANGUL,
        '\u{2E80}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}'
        | '\u{20000}'..='\u{3FFFD}' => IDEOGRAPH,
        _ => OTHER,
    }
}

/// Tokens of a text by the o200k byte-pair table.
#[cfg(feature = "tokenizer")]
pub fn byte_pairs(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
}

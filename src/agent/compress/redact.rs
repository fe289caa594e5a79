//! Texts made fit for a summary: secrets, thinking and inline media taken out.
//!
//! Used on everything that the summary model is shown and on what it answers.

use std::sync::LazyLock;

use regex::Regex;

use crate::agent::sieve::{Lazy, Sieved};

fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("the patterns of this module are constants and are tested")
}

/// What credentials look like, each with what takes its place. Few texts hold any.
static SECRETS: LazyLock<Sieved<(Lazy<Regex>, &'static str)>> = LazyLock::new(|| {
    let any_case: fn(&str) -> Regex = |source| pattern(&format!("(?i){source}"));
    let as_written: fn(&str) -> Regex = pattern;
    let forms = vec![
        (Lazy::new(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}", as_written), "[REDACTED]"),
        (Lazy::new(r"\bgh[pousr]_[A-Za-z0-9]{20,}", as_written), "[REDACTED]"),
        (Lazy::new(r"\bAKIA[0-9A-Z]{16}\b", as_written), "[REDACTED]"),
        (Lazy::new(r"\bxox[abprs]-[A-Za-z0-9\-]{10,}", as_written), "[REDACTED]"),
        (Lazy::new(r"\bbearer\s+[A-Za-z0-9._\-]{16,}", any_case), "Bearer [REDACTED]"),
        (
            Lazy::new(
                r#"\b(api[_-]?key|secret|token|password|passwd)(["']?\s*[:=]\s*["']?)[^\s"',;]{8,}"#,
                any_case,
            ),
            "$1$2[REDACTED]",
        ),
        (
            Lazy::new(
                r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
                as_written,
            ),
            "[REDACTED]",
        ),
    ];
    Sieved::of(forms, |(form, _)| vec![form.source()])
});
static THINKING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?is)<(think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>\s*"));
static MEDIA: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*MEDIA:\S+|data:[a-z]+/[a-z0-9.+\-]+;base64,\S+"));

/// The text without anything that looks like a credential.
pub fn secrets(text: &str) -> String {
    let candidates = SECRETS.candidates(text.as_bytes());
    let mut text = text.to_owned();
    for (form, instead) in candidates {
        text = form.get().replace_all(&text, *instead).into_owned();
    }
    text
}

/// The text without blocks of thinking.
pub fn thinking(text: &str) -> String {
    if text.contains('<') { THINKING.replace_all(text, "").into_owned() } else { text.to_owned() }
}

/// The text with inline media replaced by a note.
pub fn media(text: &str) -> String {
    MEDIA.replace_all(text, "[media]").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_thinking_and_media_disappear() {
        assert_eq!(secrets("use sk-abcdefghijklmnopqrst now"), "use [REDACTED] now");
        assert_eq!(secrets("password: hunter2hunter2"), "password: [REDACTED]");
        let word = "Abcdefghijklmnop0123";
        for (text, without) in [
            (format!("ghp_{word}"), "[REDACTED]"),
            ("AKIAABCDEFGHIJKLMNOP".to_owned(), "[REDACTED]"),
            (format!("xoxb-{word}"), "[REDACTED]"),
            (format!("BEARER {word}"), "Bearer [REDACTED]"),
            (format!("API_KEY = '{word}"), "API_KEY = '[REDACTED]"),
            ("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----".to_owned(), "[REDACTED]"),
        ] {
            assert_eq!(secrets(&format!("with {text} now")), format!("with {without} now"));
        }
        assert_eq!(secrets("akiaabcdefghijklmnop and GHP_x stay"), "akiaabcdefghijklmnop and GHP_x stay");
        assert_eq!(thinking("<think>hm\n</think> yes"), "yes");
        assert_eq!(media("data:image/png;base64,AAAA x"), "[media] x");
    }
}

//! Texts made fit for a summary: secrets, thinking and inline media taken out.
//!
//! Used on everything that the summary model is shown and on what it answers.

use std::sync::LazyLock;

use regex::Regex;

fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("the patterns of this module are constants and are tested")
}

static SECRETS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    vec![
        (pattern(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"), "[REDACTED]"),
        (pattern(r"\bgh[pousr]_[A-Za-z0-9]{20,}"), "[REDACTED]"),
        (pattern(r"\bAKIA[0-9A-Z]{16}\b"), "[REDACTED]"),
        (pattern(r"\bxox[abprs]-[A-Za-z0-9\-]{10,}"), "[REDACTED]"),
        (pattern(r"(?i)\bbearer\s+[A-Za-z0-9._\-]{16,}"), "Bearer [REDACTED]"),
        (
            pattern(r#"(?i)\b(api[_-]?key|secret|token|password|passwd)(["']?\s*[:=]\s*["']?)[^\s"',;]{8,}"#),
            "$1$2[REDACTED]",
        ),
        (pattern(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"), "[REDACTED]"),
    ]
});
static THINKING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?is)<(think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>\s*"));
static MEDIA: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*MEDIA:\S+|data:[a-z]+/[a-z0-9.+\-]+;base64,\S+"));

/// The text without anything that looks like a credential.
pub fn secrets(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, instead) in SECRETS.iter() {
        if pattern.is_match(&text) {
            text = pattern.replace_all(&text, *instead).into_owned();
        }
    }
    text
}

/// The text without blocks of thinking.
pub fn thinking(text: &str) -> String {
    THINKING.replace_all(text, "").into_owned()
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
        assert_eq!(thinking("<think>hm\n</think> yes"), "yes");
        assert_eq!(media("data:image/png;base64,AAAA x"), "[media] x");
    }
}

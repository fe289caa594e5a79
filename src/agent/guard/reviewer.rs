//! The reviewing model: what it is shown and how its answer is read.
//!
//! One small call. Only two exact words decide; whatever else comes back goes to the human.

use crate::policy;

/// What the reviewer is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewRequest<'a> {
    /// The command without its comments, which could try to talk to the reviewer.
    pub command: String,
    /// The rule that fired.
    pub rule: &'a str,
    /// Longest answer, in tokens.
    pub tokens_max: u64,
    /// Sampling temperature.
    pub temperature: f64,
}

impl<'a> ReviewRequest<'a> {
    /// The request for a command and the rule that fired.
    pub fn new(command: &str, rule: &'a str, knobs: &policy::Guard) -> Self {
        Self {
            command: strip_comments(command),
            rule,
            tokens_max: knobs.reviewer_tokens_max,
            temperature: knobs.reviewer_temperature,
        }
    }
}

/// The reviewer could not be asked, or its reply had no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reviewer gave no answer")]
pub struct ReviewerFailed;

/// What the reviewer's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// This command, this time.
    Approve,
    /// Not this command.
    Deny,
    /// The human decides.
    Escalate,
}

impl Verdict {
    /// Reads an answer (Hermes tools/approval_smart.py).
    pub fn of(answer: Result<&str, ReviewerFailed>) -> Self {
        match answer.map(|text| text.trim().to_uppercase()).as_deref() {
            Ok("APPROVE") => Self::Approve,
            Ok("DENY") => Self::Deny,
            _ => Self::Escalate,
        }
    }

    /// The verdict as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Escalate => "escalate",
        }
    }
}

/// The command without what stands behind an unquoted `#`; lines that held only a comment vanish.
///
/// Backslashes do not protect the sign, and it need not begin a word.
pub fn strip_comments(command: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut quote = None;
    for line in command.split('\n') {
        let mut end = line.len();
        for (at, ch) in line.char_indices() {
            match quote {
                Some(open) if ch == open => quote = None,
                None if matches!(ch, '\'' | '"') => quote = Some(ch),
                None if ch == '#' => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        if end == line.len() {
            kept.push(line.to_owned());
        } else if !line[..end].trim().is_empty() {
            kept.push(line[..end].trim_end().to_owned());
        }
    }
    kept.join("\n").trim().to_owned()
}

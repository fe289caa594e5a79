//! Which prompt a turn sends: the kept one, the stored one, or a new one; and the static part of a stored prompt.
//!
//! Decides and reports; building and storing are the caller's closures.

use crate::agent::prompt::identity::{self, Mismatch, Runtime};
use crate::policy::Prompt;

/// What the session row answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The read failed.
    Unreadable,
    /// There is no row, or nothing in it.
    Missing,
    /// The bytes.
    Text(String),
}

/// Why a prompt was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildReason {
    /// The first turn of a session.
    FirstTurn,
    /// The row could not be read.
    Unreadable,
    /// The row held no prompt.
    Missing,
    /// The stored prompt was made for another runtime.
    Mismatch(Mismatch),
    /// Stored prompts are not used.
    Policy,
}

/// The prompt of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The bytes to send.
    pub prompt: String,
    /// Why it was built; none when the stored bytes were taken.
    pub built: Option<BuildReason>,
    /// The new bytes were stored.
    pub persisted: bool,
}

/// Takes the stored prompt if it fits, else builds and stores one (Hermes agent/conversation_loop.py:769).
///
/// `history` says that the session has turns already. `write` answers whether storing worked.
pub fn restore(
    history: bool,
    stored: Stored,
    runtime: &Runtime,
    knobs: &Prompt,
    build: impl FnOnce() -> String,
    write: impl FnOnce(&str) -> bool,
) -> Restored {
    let reason = if history {
        match stored {
            Stored::Text(_) if !knobs.reuse_stored => BuildReason::Policy,
            Stored::Text(text) if !text.is_empty() => {
                match identity::mismatch(&text, runtime, knobs.pass_session_id) {
                    None => return Restored { prompt: text, built: None, persisted: false },
                    Some(mismatch) => BuildReason::Mismatch(mismatch),
                }
            }
            Stored::Unreadable => BuildReason::Unreadable,
            Stored::Text(_) | Stored::Missing => BuildReason::Missing,
        }
    } else {
        BuildReason::FirstTurn
    };
    let prompt = build();
    let persisted = write(&prompt);
    Restored { prompt, built: Some(reason), persisted }
}

/// The static part of the present prompt, as far as it is known (Hermes agent/system_prompt.py:829).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaticPart {
    known: Option<String>,
    failed_for: Option<String>,
}

impl StaticPart {
    /// A static part that was kept when the prompt was built.
    pub fn known(text: Option<String>) -> Self {
        Self { known: text, failed_for: None }
    }

    /// Forgets everything; for a prompt that was dropped.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The static part of a prompt. Rebuilds once when caching is on and none is known; a failure is remembered.
    pub fn of(&mut self, prompt: &str, caching: bool, rebuild: impl FnOnce() -> String) -> Option<&str> {
        let fits = |text: &str| !text.is_empty() && prompt.starts_with(text);
        if !self.known.as_deref().is_some_and(fits) {
            self.known = None;
            if !caching || self.failed_for.as_deref() == Some(prompt) {
                return None;
            }
            let stable = rebuild();
            if fits(&stable) {
                self.known = Some(stable);
            } else {
                self.failed_for = Some(prompt.to_owned());
            }
        }
        self.known.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_still_gives_a_prompt() {
        let restored = restore(
            false,
            Stored::Missing,
            &Runtime::default(),
            &Prompt::default(),
            || "P".to_owned(),
            |_| false,
        );
        assert_eq!((restored.prompt.as_str(), restored.persisted), ("P", false));
    }

    #[test]
    fn a_failure_is_remembered_for_that_prompt_alone() {
        let mut part = StaticPart::default();
        assert_eq!(part.of("old", true, || "new".to_owned()), None);
        assert_eq!(part.of("old", true, || panic!("not tried again")), None);
        assert_eq!(part.of("new prompt", true, || "new".to_owned()), Some("new"));
    }
}

//! Session search: what the agent can ask about past conversations.
//!
//! One tool, four uses, told apart by its arguments: discover (a query), scroll (a session and a row), read (a session
//! alone), browse (nothing). Results are conversations, not rows: all sessions of one tree share one place. Every answer
//! is stored text in the original words.
//!
//! Never: a model call, a row of the caller's own live context, a change of the store.

mod answer;
mod arguments;
mod browse;
mod discover;
mod scroll;
pub mod time;

pub use answer::{Answer, Conversation, Detail, Discovery, Listed, Refusal, Shown, SessionFacts};
pub use arguments::{Arguments, exclude_ids};
pub use browse::browse;
pub use discover::discover;
pub use scroll::{read, scroll};

use std::collections::BTreeMap;

use crate::policy;
use crate::store::{Store, StoreError};
use crate::world::Millis;

/// Who asks, and when.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The caller's own session; its live context is never an answer.
    pub session: Option<&'a str>,
    /// The present, in milliseconds since the Unix epoch.
    pub now: Millis,
}

/// Why a search could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The arguments do not fit, or what they name is not there; the caller is told.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs the tool (`Hermes tools/session_search_tool.py:577`). `profiles` are the stores of other profiles by name; one
/// of them is asked when the arguments say so, and then the caller has no session of its own there.
///
/// # Errors
/// [`SearchError::Refused`] with what the caller is told; [`SearchError::Store`] when the store fails.
pub fn session_search(
    store: &Store,
    profiles: &BTreeMap<String, &Store>,
    arguments: &Arguments,
    caller: Caller<'_>,
    knobs: &policy::Search,
) -> Result<Answer, SearchError> {
    let (store, caller) = match &arguments.profile {
        None => (store, caller),
        Some(name) => {
            let other = profiles.get(name).ok_or_else(|| Refusal::UnknownProfile(name.clone()))?;
            (*other, Caller { session: None, ..caller })
        }
    };
    match (&arguments.session, &arguments.around) {
        (Some(session), Some(around)) => {
            Ok(Answer::Scroll(scroll(store, session, around, arguments.window, caller)?))
        }
        (Some(session), None) => Ok(Answer::Read(read(store, session, knobs)?)),
        (None, _) if arguments.query.is_empty() => {
            Ok(Answer::Browse(browse(store, arguments.limit, caller, knobs)?))
        }
        (None, _) => Ok(Answer::Discover(discover(store, arguments, caller, knobs)?)),
    }
}

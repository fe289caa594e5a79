//! Session search: what the agent can ask about past conversations.
//!
//! One tool, four uses, told apart by its arguments: discover (a query), scroll (a session and a row), read (a session
//! alone), browse (nothing). Results are conversations, not rows: all sessions of one tree share one place. Every answer
//! is stored text in the original words.
//!
//! Never: a model call, a row of the caller's own live context, a change of the store.
//!
//! The real agent answers from the same three full-text indexes, and looks into other profiles when it is asked to.
//! Differs: there is one profile; `search.scan_refused` finds the words of a query that the query grammar refuses, where
//! the real agent gives up.

mod answer;
mod arguments;
mod browse;
mod discover;
mod scroll;
pub mod time;

pub use answer::{Answer, Conversation, Detail, Discovery, Listed, Refusal, SessionFacts, Shown};
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::NewSession;
    use crate::wire::Row;

    /// A conversation in two segments, a scheduled run, a delegate's run, and the caller's own.
    fn store() -> Store {
        let store = Store::open_in_memory(&policy::Store::default()).unwrap();
        for (id, source, parent) in [
            ("one", "cli", None),
            ("two", "cli", Some("one")),
            ("nightly", "cron", None),
            ("helper", "subagent", Some("two")),
            ("now", "cli", None),
        ] {
            let new = NewSession { parent, ..NewSession::of(id, source) };
            store.create_session(&new, 1_000).unwrap();
            store.append(id, &[Row::user(format!("the lighthouse in {id}"))], 1_000).unwrap();
        }
        store.end_session("one", "compression", 2_000).unwrap();
        store
    }

    fn ask(store: &Store, given: &serde_json::Value) -> Result<Answer, SearchError> {
        let knobs = policy::Search::default();
        let arguments = Arguments::read(given, 10_000, &knobs)?;
        let caller = Caller { session: Some("now"), now: 10_000 };
        session_search(store, &BTreeMap::from([("work".to_owned(), store)]), &arguments, caller, &knobs)
    }

    #[test]
    fn a_conversation_takes_one_place_and_quotes_the_segment_that_matched() {
        let Ok(Answer::Discover(found)) = ask(&store(), &json!({"query": "lighthouse", "limit": 5})) else {
            panic!("no answer");
        };
        let places: Vec<(&str, &str)> =
            found.results.iter().map(|found| (found.session.as_str(), found.root.as_str())).collect();
        assert_eq!(places, [("one", "one"), ("nightly", "nightly")]);
        assert_eq!(found.sessions_searched, Some(2));
        let json = Answer::Discover(found).to_json();
        assert_eq!(json["results"][0]["messages"][0]["anchor"], true);
    }

    #[test]
    fn without_folding_every_row_takes_a_place() {
        let knobs = policy::Search { one_per_conversation: false, ..policy::Search::default() };
        let arguments = Arguments::read(&json!({"query": "lighthouse"}), 0, &knobs).unwrap();
        let caller = Caller { session: None, now: 0 };
        let found = discover(&store(), &arguments, caller, &knobs).unwrap();
        assert_eq!(found.results.len(), 3);
        assert_eq!(found.results[1].root, "one");
    }

    #[test]
    fn a_link_names_the_profile_to_ask() {
        let store = store();
        let Ok(Answer::Read(whole)) = ask(&store, &json!({"session_id": "work/two"})) else {
            panic!("no answer");
        };
        assert_eq!(whole.message_count, 1);
        let refused = ask(&store, &json!({"session_id": "home/two"})).unwrap_err();
        assert!(matches!(refused, SearchError::Refused(Refusal::UnknownProfile(_))));
    }
}

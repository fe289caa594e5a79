//! Search over earlier conversations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::search::{self, Answer, Arguments, Caller, SearchError};
use crate::ledger::{Name, Searched, What};
use crate::model::Model;
use crate::wire::Chain;

use super::dispatch::ToolResult;
use super::host::Run;
use super::{Harness, HarnessError};

impl<M: Model> Run<'_, M> {
    pub(super) fn session_search(&mut self, arguments: &Value) -> ToolResult {
        let name = self.session.name.clone();
        match self.harness.search_as(Some(&name), arguments) {
            Ok(answer) if self.harness.policy.search.verbatim => {
                ToolResult::done(answer.to_json().to_string())
            }
            Ok(answer) => ToolResult::done(retold(&answer.to_json().to_string())),
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

impl<M: Model> Harness<M> {
    /// Searches for conversations; `session` is the one that asks.
    ///
    /// # Errors
    /// When the store fails; a query that finds nothing is an answer.
    pub fn search(&mut self, query: &str, limit: usize, session: Option<&str>) -> Result<(), HarnessError> {
        let arguments = json!({ "query": query, "limit": limit });
        match self.search_as(session, &arguments) {
            Ok(_) | Err(SearchError::Refused(_)) => Ok(()),
            Err(SearchError::Store(error)) => Err(error.into()),
        }
    }

    fn search_as(&mut self, session: Option<&str>, arguments: &Value) -> Result<Answer, SearchError> {
        let now = self.clock.now();
        let read = Arguments::read(arguments, now, &self.policy.search)?;
        let caller = Caller { session, now };
        let answer =
            search::session_search(&self.store, &BTreeMap::new(), &read, caller, &self.policy.search)?;
        if let Answer::Discover(found) = &answer {
            let mut hits = Vec::new();
            let mut verbatim = true;
            for hit in &found.results {
                // Where lineage is not climbed, conversations are still told apart by their true root.
                let (root, _) = self.store.search_root(&hit.session)?;
                for shown in &hit.rows {
                    let stored = self.store.stored_row(shown.row.id)?;
                    let text = stored.map(|row| row.content.flat()).unwrap_or_default();
                    let whole = if self.policy.search.verbatim {
                        shown.row.content.flat()
                    } else {
                        retold(&shown.row.content.flat())
                    };
                    verbatim &= shown.cut_from.is_some() || text == whole;
                }
                let digest = Chain::EMPTY
                    .then(&crate::wire::Segment::new(crate::wire::Level::Messages, hit.snippet.as_str()));
                // Without the climb an answer goes by the name of the session that owns the row.
                let named = if self.policy.search.one_per_conversation { &hit.root } else { &hit.session };
                hits.push((Name::from(named.as_str()), Name::from(root.as_str()), digest.to_string().into()));
            }
            let searched = Searched { query: found.query.as_str().into(), limit: read.limit, hits, verbatim };
            let name = session.map_or_else(|| self.world.clone(), Name::from);
            self.event(&name, What::Searched(searched));
        }
        Ok(answer)
    }
}

/// A row in other words, as a harness shows it that lets a model sum up what was found.
fn retold(text: &str) -> String {
    /// Words of a retold row.
    const WORDS: usize = 12;
    let words: Vec<&str> = text.split_whitespace().take(WORDS).collect();
    format!("In short: {}", words.join(" "))
}

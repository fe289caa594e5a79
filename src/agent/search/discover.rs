//! Discover: from a query to conversations.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Conversation, Detail, Discovery, SessionFacts, Shown};
use super::arguments::Arguments;
use super::{Caller, SearchError, time};
use crate::policy::{self, Index};
use crate::store::search::query::trim;
use crate::store::search::{Filters, Hit, SearchQuery};
use crate::store::{Session, Store, StoreError, StoredRow};
use crate::wire::Content;

/// Roles of the rows that windows show.
const SPEAKERS: [&str; 2] = ["user", "assistant"];

/// Finds conversations (`Hermes tools/session_search_tool.py:354`).
///
/// The best row of each tree of sessions takes the tree's place. Rows of the caller's own live context are skipped;
/// what has left it, by a compaction or a fresh start, is not. A title that the query names comes first.
///
/// # Errors
/// [`SearchError::Store`].
pub fn discover(
    store: &Store,
    arguments: &Arguments,
    caller: Caller<'_>,
    knobs: &policy::Search,
) -> Result<Discovery, SearchError> {
    let mut roots = Roots { store, known: BTreeMap::new() };
    let own_root = caller.session.map(|session| roots.of(session)).transpose()?;
    let titled = title_match(store, &mut roots, arguments, own_root.as_deref(), knobs)?;
    let hits = ranked_rows(store, arguments, knobs)?;
    let rebuild_percent =
        store.pending_rebuild(Index::Unicode61)?.map(|(done, all)| (100 * done / all).min(100));
    let query = arguments.query.clone();
    if hits.is_empty() && titled.is_none() {
        return Ok(Discovery { query, results: Vec::new(), sessions_searched: None, rebuild_percent });
    }
    let mut held: BTreeSet<String> = titled.iter().map(|found| found.root.clone()).collect();
    let mut chosen: Vec<(String, Hit)> = Vec::new();
    for hit in hits {
        if held.len() as u64 >= arguments.limit || (chosen.len() as u64 >= arguments.limit) {
            break;
        }
        let root = roots.of(&hit.session)?;
        if is_skipped(store, arguments, caller, own_root.as_deref(), &root, &hit)? {
            continue;
        }
        if held.insert(root.clone()) || !knobs.one_per_conversation {
            chosen.push((root, hit));
        }
    }
    let mut results: Vec<Conversation> = titled.into_iter().collect();
    for (root, hit) in chosen {
        let full = arguments.detail == Detail::Full || results.is_empty();
        results.push(hydrate(store, &root, hit, full, knobs)?);
    }
    Ok(Discovery { query, results, sessions_searched: Some(held.len()), rebuild_percent })
}

/// Roots that were looked up; many rows share a session.
struct Roots<'a> {
    store: &'a Store,
    known: BTreeMap<String, String>,
}

impl Roots<'_> {
    fn of(&mut self, session: &str) -> Result<String, StoreError> {
        if let Some(root) = self.known.get(session) {
            return Ok(root.clone());
        }
        let (root, _) = self.store.search_root(session)?;
        self.known.insert(session.to_owned(), root.clone());
        Ok(root)
    }
}

/// The rows that match, best first, automation behind people.
fn ranked_rows(
    store: &Store,
    arguments: &Arguments,
    knobs: &policy::Search,
) -> Result<Vec<Hit>, SearchError> {
    let search = SearchQuery {
        text: &arguments.query,
        filters: Filters {
            exclude_sources: knobs.hidden_sources.clone(),
            roles: arguments.roles.clone(),
            after: arguments.after,
            before: arguments.before,
            ..Filters::default()
        },
        sort: arguments.sort,
        limit: knobs.scan_rows,
        offset: 0,
        context: false,
    };
    let mut hits = store.search(&search, knobs)?.hits;
    hits.sort_by_key(|hit| knobs.demoted_sources.contains(&hit.source));
    Ok(hits)
}

fn is_skipped(
    store: &Store,
    arguments: &Arguments,
    caller: Caller<'_>,
    own_root: Option<&str>,
    root: &str,
    hit: &Hit,
) -> Result<bool, StoreError> {
    if arguments.exclude.iter().any(|excluded| *excluded == hit.session || excluded == root) {
        return Ok(true);
    }
    if hit.archived {
        return Ok(false);
    }
    if caller.session == Some(hit.session.as_str()) {
        return Ok(true);
    }
    Ok(own_root == Some(root) && !store.left_live_context(&hit.session)?)
}

fn facts(store: &Store, root: &str, session: &str) -> Result<Option<Session>, StoreError> {
    match store.session(root)? {
        Some(session) => Ok(Some(session)),
        None => store.session(session),
    }
}

fn hydrate(
    store: &Store,
    root: &str,
    hit: Hit,
    full: bool,
    knobs: &policy::Search,
) -> Result<Conversation, StoreError> {
    let view = store.anchored_view(&hit.session, hit.id, knobs.window, knobs.ends, Some(&SPEAKERS))?;
    let about = facts(store, root, &hit.session)?;
    let rows = view.rows.into_iter().filter(|row| full || row.id == hit.id);
    let ends = |rows: Vec<StoredRow>| -> Vec<Shown> {
        let told = rows.into_iter().filter(|row| full && !is_handoff(row));
        told.map(|row| shown(row, None, Some(knobs.end_row_chars))).collect()
    };
    Ok(Conversation {
        session: hit.session,
        root: root.to_owned(),
        facts: about.as_ref().map_or_else(SessionFacts::default, SessionFacts::of),
        matched_role: hit.role,
        anchor: Some(hit.id),
        snippet: hit.snippet,
        first: ends(view.first),
        rows: rows.map(|row| shown(row, Some(hit.id), Some(knobs.window_row_chars))).collect(),
        last: ends(view.last),
        before: view.before,
        after: view.after,
        detail: if full { Detail::Full } else { Detail::Compact },
    })
}

/// A session whose title the query names (`Hermes tools/session_search_tool.py:276`).
fn title_match(
    store: &Store,
    roots: &mut Roots<'_>,
    arguments: &Arguments,
    own_root: Option<&str>,
    knobs: &policy::Search,
) -> Result<Option<Conversation>, StoreError> {
    let title = trim(&arguments.query).trim_matches(['`', '\'', '"']);
    if title.is_empty() {
        return Ok(None);
    }
    let Some(session) = store.resolve_title(title)? else { return Ok(None) };
    let root = roots.of(&session)?;
    if own_root == Some(root.as_str()) && !store.left_live_context(&session)? {
        return Ok(None);
    }
    let about = facts(store, &root, &session)?;
    let hidden = about.as_ref().is_some_and(|about| knobs.hidden_sources.contains(&about.source));
    let excluded = arguments.exclude.iter().any(|id| *id == session || *id == root);
    let started = about.as_ref().map(|about| about.started_at);
    if hidden || excluded || !time::is_inside(started, arguments.after, arguments.before) {
        return Ok(None);
    }
    let live = store.live_rows(&session)?;
    let anchor = live.first().map(|row| row.id);
    let view = match anchor {
        Some(anchor) => store.anchored_view(&session, anchor, knobs.window, knobs.ends, Some(&SPEAKERS))?,
        None => crate::store::search::AnchoredView::default(),
    };
    let ends = usize::try_from(knobs.ends).unwrap_or(usize::MAX);
    let window = usize::try_from(knobs.window).unwrap_or(usize::MAX);
    let or = |rows: Vec<StoredRow>, fallback: &[StoredRow]| -> Vec<StoredRow> {
        if rows.is_empty() { fallback.to_vec() } else { rows }
    };
    let head = &live[..live.len().min(ends)];
    let tail = &live[live.len().saturating_sub(ends)..];
    let plain = |rows: Vec<StoredRow>, cut: u64| -> Vec<Shown> {
        rows.into_iter().map(|row| shown(row, anchor, Some(cut))).collect()
    };
    let facts = about.as_ref().map_or_else(SessionFacts::default, SessionFacts::of);
    let named = facts.title.clone().unwrap_or_else(|| title.to_owned());
    Ok(Some(Conversation {
        session,
        root,
        facts,
        matched_role: "session_title".to_owned(),
        anchor,
        snippet: format!("The title of the session is {named}"),
        first: plain(or(view.first, head), knobs.end_row_chars),
        rows: plain(or(view.rows, &live[..live.len().min(window)]), knobs.window_row_chars),
        last: plain(or(view.last, tail), knobs.end_row_chars),
        before: view.before,
        after: if anchor.is_some() { view.after } else { live.len().saturating_sub(window) },
        detail: Detail::Full,
    }))
}

/// How a handoff of the compressor begins when its mark was lost.
const HANDOFF_STARTS: [&str; 2] = ["[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:"];

/// A summary is no end of a conversation: shown there it would smuggle a whole old context into a new one.
fn is_handoff(row: &StoredRow) -> bool {
    let text = row.content.flat();
    row.compressed_summary || HANDOFF_STARTS.iter().any(|start| text.trim_start().starts_with(start))
}

/// A row without terminal escapes, cut to a length.
pub(super) fn shown(mut row: StoredRow, anchor: Option<i64>, chars_max: Option<u64>) -> Shown {
    let mut cut_from = None;
    if let Content::Text(text) = &row.content {
        let mut text = without_escapes(text);
        let most = chars_max.filter(|most| *most > 0).and_then(|most| usize::try_from(most).ok());
        if let Some((end, _)) = most.and_then(|most| text.char_indices().nth(most)) {
            cut_from = Some(text.chars().count());
            text.truncate(end);
            text.push('…');
        }
        row.content = Content::Text(text);
    }
    Shown { anchor: anchor == Some(row.id), row, cut_from }
}

fn without_escapes(text: &str) -> String {
    use std::sync::LazyLock;

    use regex::Regex;
    static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])";
        Regex::new(pattern).expect("a constant pattern compiles")
    });
    if text.contains('\u{1b}') { ESCAPE.replace_all(text, "").into_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_are_not_recalled() {
        assert_eq!(without_escapes("\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;t\u{7}x"), "red x");
    }
}

//! Scroll and read: into one session.

use serde_json::Value;

use super::answer::{Excerpt, Refusal, SessionFacts, Transcript};
use super::arguments::whole_number;
use super::discover::shown;
use super::{Caller, SearchError};
use crate::policy;
use crate::store::{Store, StoreError, StoredRow};

/// Rows around a row (`Hermes tools/session_search_tool.py:531`). A row of another session of the same tree is shown
/// where it lives.
///
/// # Errors
/// [`Refusal::BadAnchor`], [`Refusal::OwnContext`], [`Refusal::UnknownSession`], [`Refusal::AnchorElsewhere`].
pub fn scroll(
    store: &Store,
    session: &str,
    around: &Value,
    each_side: u64,
    caller: Caller<'_>,
) -> Result<Excerpt, SearchError> {
    let anchor = whole_number(around).ok_or(Refusal::BadAnchor)?;
    let row = store.stored_row(anchor)?;
    if let Some(own) = caller.session {
        let owner = row.as_ref().map_or(session, |row| row.session.as_str());
        if is_own_context(store, own, owner, row.as_ref())? {
            return Err(Refusal::OwnContext.into());
        }
    }
    let about = store.session(session)?.ok_or_else(|| Refusal::UnknownSession(session.to_owned()))?;
    let mut window = store.window(session, anchor, each_side)?;
    let mut facts = SessionFacts::of(&about);
    let mut shown_in = session.to_owned();
    let mut rebound = false;
    if window.rows.is_empty()
        && let Some(owner) = row.map(|row| row.session).filter(|owner| owner != session)
        && store.search_root(session)?.0 == store.search_root(&owner)?.0
    {
        window = store.window(&owner, anchor, each_side)?;
        if let Some(about) = store.session(&owner)? {
            facts = SessionFacts::of(&about);
        }
        shown_in = owner;
        rebound = true;
    }
    if window.rows.is_empty() {
        return Err(Refusal::AnchorElsewhere { anchor, session: session.to_owned() }.into());
    }
    Ok(Excerpt {
        session: shown_in,
        facts,
        rows: window.rows.into_iter().map(|row| shown(row, Some(anchor), None)).collect(),
        window: each_side,
        before: window.before,
        after: window.after,
        rebound,
    })
}

/// True when the row is in the caller's tree and has not left its live context; what was taken back stays hidden.
fn is_own_context(
    store: &Store,
    own: &str,
    owner: &str,
    row: Option<&StoredRow>,
) -> Result<bool, StoreError> {
    if store.search_root(own)?.0 != store.search_root(owner)?.0 {
        return Ok(false);
    }
    if row.is_some_and(StoredRow::is_archived) {
        return Ok(false);
    }
    Ok(row.is_some_and(|row| !row.active) || !store.left_live_context(owner)?)
}

/// The live rows of a session, of a long one its two ends (`Hermes tools/session_search_tool.py:447`).
///
/// # Errors
/// [`Refusal::UnknownSession`].
pub fn read(store: &Store, session: &str, knobs: &policy::Search) -> Result<Transcript, SearchError> {
    let about = store.session(session)?.ok_or_else(|| Refusal::UnknownSession(session.to_owned()))?;
    let mut rows = store.live_rows(session)?;
    let message_count = rows.len();
    let head = usize::try_from(knobs.read_head).unwrap_or(usize::MAX);
    let tail = usize::try_from(knobs.read_tail).unwrap_or(usize::MAX);
    let truncated = message_count > head.saturating_add(tail);
    if truncated {
        rows.drain(head..message_count - tail);
    }
    Ok(Transcript {
        session: session.to_owned(),
        facts: SessionFacts::of(&about),
        rows: rows.into_iter().map(|row| shown(row, None, Some(knobs.read_row_chars))).collect(),
        message_count,
        truncated,
    })
}

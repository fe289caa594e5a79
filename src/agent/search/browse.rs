//! Browse: the latest conversations.

use std::collections::BTreeSet;

use super::answer::Listed;
use super::{Caller, SearchError};
use crate::policy;
use crate::store::Store;
use crate::store::search::query::is_space;

/// The conversations where something happened last, each once (`Hermes tools/session_search_tool.py:480`).
///
/// # Errors
/// [`SearchError::Store`].
pub fn browse(
    store: &Store,
    limit: u64,
    caller: Caller<'_>,
    knobs: &policy::Search,
) -> Result<Vec<Listed>, SearchError> {
    let wanted = limit.saturating_add(knobs.browse_extra);
    let looked_at = knobs.browse_sessions_min.max(knobs.browse_sessions_factor.saturating_mul(wanted));
    let mut seen = BTreeSet::new();
    let mut found: Vec<(String, Listed)> = Vec::new();
    for id in store.latest_sessions(looked_at, &knobs.hidden_sources)? {
        let root_id = store.turn_lease_key(&id)?;
        if !seen.insert(root_id.clone()) {
            continue;
        }
        let Some(root) = store.session(&root_id)?.filter(|root| store.is_listed(root).unwrap_or(false))
        else {
            continue;
        };
        let tip_id = store.compression_tip(&root_id)?;
        let Some(tip) = store.session(&tip_id)? else { continue };
        let last_active = store.activity(&tip_id)?.unwrap_or(tip.started_at);
        let entry = Listed {
            session: tip_id,
            title: tip.title.or(root.title),
            source: tip.source,
            started_at: root.started_at,
            last_active,
            message_count: tip.message_count,
            preview: String::new(),
        };
        found.push((root_id, entry));
    }
    found.sort_by(|a, b| b.1.last_active.total_cmp(&a.1.last_active));
    found.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    let own = caller.session.map(|session| store.search_root(session)).transpose()?;
    // Behind a compaction the root's rows live on in the caller's own context, summarised.
    let own_root = own.and_then(|(root, compacted)| compacted.then_some(root));
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    for (root, mut entry) in found {
        let hidden = [Some(entry.session.as_str()), Some(root.as_str())];
        if caller.session == Some(entry.session.as_str())
            || own_root.as_deref().is_some_and(|own| hidden.contains(&Some(own)))
        {
            continue;
        }
        if shown.len() == most {
            break;
        }
        entry.preview = preview(&store.first_request(&root)?.unwrap_or_default(), knobs);
        shown.push(entry);
    }
    Ok(shown)
}

fn preview(text: &str, knobs: &policy::Search) -> String {
    let line: String = text.trim_matches(is_space).replace(['\n', '\r'], " ");
    let most = usize::try_from(knobs.preview_chars).unwrap_or(usize::MAX);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

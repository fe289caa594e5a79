//! Vectors of session search. Queries run on the corpus, which is a line of the same file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Fixtures, ReplayError};
use crate::agent::search as tool;
use crate::policy::{self, Index, preset};
use crate::store::search::{Filters, SearchQuery, Sort, like, query};
use crate::store::{NewSession, Store, StoreError};
use crate::wire::{Content, Role, Row, ToolCall};

/// Replays one vector.
///
/// # Errors
/// [`ReplayError::UnknownFunction`], [`ReplayError::Missing`] when the input lacks something or cannot be built.
pub fn replay(function: &str, given: &Value, fixtures: &Fixtures) -> Result<Value, ReplayError> {
    let knobs = match text(given, "rev") {
        "hardened" => preset::policy("hardened").and_then(Result::ok).unwrap_or_default().search,
        _ => policy::Search::default(),
    };
    match function {
        "corpus" => Ok(json!({})),
        "sanitize" => Ok(sanitize(given, &knobs)),
        "query_shape" => Ok(query_shape(text(given, "query"))),
        "like_compile" => Ok(like_compile(text(given, "query"))),
        "bigram_tokens" => bigram_tokens(text(given, "text")),
        "query" => rows(given, &corpus(given, fixtures)?, &knobs),
        "snippet" => snippets(given, &corpus(given, fixtures)?, &knobs),
        "discover" | "scroll" | "read" | "browse" => run_tool(given, &corpus(given, fixtures)?, &knobs),
        "time_bound" => Ok(time_bound(given)),
        "exclude_ids" => Ok(json!({"ids": tool::exclude_ids(given.get("value"), &knobs)})),
        "in_window" => {
            let at = |key: &str| given.get(key).and_then(Value::as_f64);
            Ok(json!({"inside": tool::time::is_inside(at("started"), at("after"), at("before"))}))
        }
        _ => Err(ReplayError::UnknownFunction(format!("search.{function}"))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of errors")]
fn failed(error: StoreError) -> ReplayError {
    ReplayError::Missing(error.to_string())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn sanitize(given: &Value, knobs: &policy::Search) -> Value {
    let sanitized = query::sanitize(text(given, "query"), knobs.query_chars_max);
    let head: String = sanitized.chars().take(40).collect();
    json!({"sanitized_length": sanitized.chars().count(), "sanitized_head": head, "sanitized": sanitized})
}

fn query_shape(text: &str) -> Value {
    json!({
        "contains_cjk": query::contains_cjk(text), "cjk_chars": query::cjk_chars(text),
        "lone_cjk_run": query::has_lone_cjk(text), "has_short_cjk_token": query::has_short_cjk(text),
        "trigram_eligible": query::has_long_tokens(text), "or_relaxed": query::relax(text),
        "wildcards_stripped": query::strip_stars(text), "quoted_tokens": query::quote_tokens(text),
        "trigram_route": query::suits_trigram(text),
        "non_operator_tokens": query::plain_tokens(text).collect::<Vec<_>>(),
    })
}

fn like_compile(text: &str) -> Value {
    let condition = like::compile(text);
    let term = |term: &like::Term| json!({"pattern": term.pattern(), "negated": term.negated});
    let groups: Vec<Vec<Value>> =
        condition.groups.iter().map(|group| group.iter().map(term).collect()).collect();
    json!({"groups": groups, "snippet_term": condition.snippet_term()})
}

fn bigram_tokens(text: &str) -> Result<Value, ReplayError> {
    let store = Store::open_in_memory(&policy::Store::default()).map_err(failed)?;
    store.create_session(&NewSession::of("s", "cli"), 0).map_err(failed)?;
    store.append("s", &[Row::user(text)], 0).map_err(failed)?;
    Ok(json!({"tokens": store.indexed_tokens(Index::CjkBigram, 1).map_err(failed)?}))
}

/// A store with the corpus and the indexes that a vector allows.
fn corpus(given: &Value, fixtures: &Fixtures) -> Result<Store, ReplayError> {
    let allowed = |index: Index| match given.get("indexes") {
        Some(Value::Object(allowed)) => allowed.get(index.word()).is_none_or(|on| on == true),
        _ => true,
    };
    let indexes =
        [Index::Unicode61, Index::Trigram, Index::CjkBigram].into_iter().filter(|index| allowed(*index));
    // The observed store feeds its indexes with every append.
    let index_when = policy::IndexWhen::Append;
    let knobs = policy::Store { indexes: indexes.collect(), index_when, ..policy::Store::default() };
    let store = Store::open_in_memory(&knobs).map_err(failed)?;
    let name = given.get("corpus").and_then(Value::as_str).unwrap_or("main");
    let corpus = fixtures
        .of_mechanism("search.corpus")
        .iter()
        .find(|corpus| text(corpus, "corpus") == name)
        .ok_or_else(|| ReplayError::Missing(format!("corpus {name}")))?;
    let corpus = super::expand(corpus);
    fill(&store, &corpus).map_err(failed)?;
    Ok(store)
}

fn fill(store: &Store, corpus: &Value) -> Result<(), StoreError> {
    let sessions = corpus.get("sessions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let millis = |value: &Value, key: &str| value.get(key).and_then(Value::as_i64).unwrap_or(0) * 1_000;
    let mut rows: Vec<(i64, &str, &Value)> = Vec::new();
    store.batch(|store| {
        for session in sessions {
            let new = NewSession {
                parent: session.get("parent").and_then(Value::as_str),
                model: Some("lab"),
                model_config: session.get("model_config").and_then(Value::as_object),
                ..NewSession::of(text(session, "id"), text(session, "source"))
            };
            store.create_session(&new, millis(session, "started_at"))?;
            if let Some(title) = session.get("title").and_then(Value::as_str) {
                store.set_title(new.id, title)?;
            }
            let messages = session.get("messages").and_then(Value::as_array).into_iter().flatten();
            rows.extend(
                messages.map(|row| (row.get("id").and_then(Value::as_i64).unwrap_or(0), new.id, row)),
            );
        }
        rows.sort_by_key(|row| row.0);
        for (id, session, message) in &rows {
            store.import_row(
                *id,
                session,
                &row_of(message),
                flag(message, "active"),
                flag(message, "compacted"),
            )?;
        }
        for session in sessions {
            if let Some(reason) = session.get("end_reason").and_then(Value::as_str) {
                store.end_session(text(session, "id"), reason, millis(session, "ended_at"))?;
            }
            if session.get("archived").is_some_and(|on| on == 1 || on == true) {
                store.set_archived(text(session, "id"), true)?;
            }
        }
        Ok(())
    })
}

fn flag(message: &Value, key: &str) -> bool {
    message.get(key).is_some_and(|on| on == 1 || on == true)
}

fn row_of(message: &Value) -> Row {
    let mut row = Row::new(Role::of(text(message, "role")), Content::of(message.get("content")));
    row.tool_calls = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .map(|calls| calls.iter().filter_map(ToolCall::from_json).collect());
    row.tool_call_id = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned);
    row.name = message.get("tool_name").and_then(Value::as_str).map(str::to_owned);
    if let Some(at) = message.get("timestamp") {
        row.extra.insert("timestamp".to_owned(), at.clone());
    }
    if let Some(kind) = message.get("display_kind") {
        row.extra.insert("display_kind".to_owned(), kind.clone());
    }
    if flag(message, "compressed_summary") {
        row.extra.insert("_compressed_summary".to_owned(), Value::from(true));
    }
    row
}

fn search_of<'a>(given: &'a Value, knobs: &policy::Search) -> SearchQuery<'a> {
    let list = |key: &str| -> Option<Vec<String>> {
        let items = given.get(key)?.as_array()?;
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    };
    let whole = |key: &str| given.get(key).and_then(Value::as_u64);
    SearchQuery {
        filters: Filters {
            include_inactive: given.get("include_inactive").is_some_and(|on| on == true),
            sources: list("source_filter"),
            exclude_sources: list("exclude_sources").unwrap_or_default(),
            roles: list("role_filter").unwrap_or_default(),
            after: given.get("after_ts").and_then(Value::as_f64),
            before: given.get("before_ts").and_then(Value::as_f64),
        },
        sort: given.get("sort").and_then(Value::as_str).and_then(Sort::of),
        limit: whole("limit").unwrap_or(knobs.rows),
        offset: whole("offset").unwrap_or(0),
        context: true,
        ..SearchQuery::of(text(given, "query"), knobs)
    }
}

fn rows(given: &Value, store: &Store, knobs: &policy::Search) -> Result<Value, ReplayError> {
    let found = store.search(&search_of(given, knobs), knobs).map_err(failed)?;
    let attempts: Vec<&str> = found.attempts.iter().map(|route| route.word()).collect();
    let hits: Vec<Value> = found.hits.iter().map(|hit| json!([hit.id, hit.session])).collect();
    Ok(json!({
        "attempts": attempts, "served_by": found.served_by.map(crate::store::search::ServedBy::word), "hits": hits,
    }))
}

fn snippets(given: &Value, store: &Store, knobs: &policy::Search) -> Result<Value, ReplayError> {
    let found = store.search(&search_of(given, knobs), knobs).map_err(failed)?;
    let rows: Vec<Value> = found
        .hits
        .iter()
        .map(|hit| {
            let context: Vec<Value> = hit.context.iter().map(|(role, text)| json!([role, text])).collect();
            json!({"id": hit.id, "snippet": hit.snippet, "context": context})
        })
        .collect();
    Ok(json!({"rows": rows}))
}

/// The present of the corpus; no vector depends on it unless it gives one.
const NOW: i64 = 1_791_000_000_000;

fn run_tool(given: &Value, store: &Store, knobs: &policy::Search) -> Result<Value, ReplayError> {
    let now = given.get("now").and_then(Value::as_i64).map_or(NOW, |now| now * 1_000);
    let caller = tool::Caller { session: given.get("current_session_id").and_then(Value::as_str), now };
    let answer = tool::Arguments::read(given, now, knobs)
        .map_err(tool::SearchError::from)
        .and_then(|arguments| tool::session_search(store, &BTreeMap::new(), &arguments, caller, knobs));
    let ids = |rows: &[tool::Shown]| -> Value { rows.iter().map(|shown| shown.row.id).collect() };
    Ok(match answer {
        Err(tool::SearchError::Refused(_)) => json!({"ok": false, "mode": null}),
        Err(tool::SearchError::Store(error)) => return Err(failed(error)),
        Ok(tool::Answer::Discover(found)) => {
            let results: Vec<Value> = found.results.iter().map(conversation).collect();
            json!({
                "ok": true, "mode": "discover", "count": results.len(), "results": results,
                "sessions_searched": found.sessions_searched,
            })
        }
        Ok(tool::Answer::Scroll(part)) => {
            let anchors: Vec<i64> =
                part.rows.iter().filter(|shown| shown.anchor).map(|shown| shown.row.id).collect();
            json!({
                "ok": true, "mode": "scroll", "session_id": part.session, "window": part.window,
                "messages": ids(&part.rows), "anchor": anchors, "before": part.before, "after": part.after,
                "rebound": part.rebound,
            })
        }
        Ok(tool::Answer::Read(whole)) => json!({
            "ok": true, "mode": "read", "message_count": whole.message_count, "truncated": whole.truncated,
            "messages": ids(&whole.rows),
        }),
        Ok(tool::Answer::Browse(list)) => {
            let sessions: Vec<&str> = list.iter().map(|entry| entry.session.as_str()).collect();
            json!({"ok": true, "mode": "browse", "sessions": sessions})
        }
    })
}

fn conversation(found: &tool::Conversation) -> Value {
    let ids = |rows: &[tool::Shown]| -> Value { rows.iter().map(|shown| shown.row.id).collect() };
    let mut object = json!({
        "session_id": found.session, "anchor": found.anchor, "role": found.matched_role,
        "detail": found.detail.word(), "messages": ids(&found.rows), "bookend_start": ids(&found.first),
        "bookend_end": ids(&found.last), "before": found.before, "after": found.after,
    });
    if found.root != found.session {
        object["lineage_root"] = Value::from(found.root.as_str());
    }
    object
}

fn time_bound(given: &Value) -> Value {
    let now = given.get("now").and_then(Value::as_i64).unwrap_or(0) * 1_000;
    match tool::time::bound(given.get("value"), now) {
        Ok(at) => json!({"timestamp": at}),
        Err(_) => json!({"error": "invalid_time_bound"}),
    }
}

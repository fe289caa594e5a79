//! What the tool answers, and its shape as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::store::{Seconds, Session, StoredRow};

/// Why the caller gets no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such session.
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    /// There is no such profile.
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    /// The anchor is no whole number.
    #[error("around_message_id must be a whole number")]
    BadAnchor,
    /// The anchor is in another conversation, or nowhere.
    #[error("message {anchor} is not in session `{session}`")]
    AnchorElsewhere {
        /// The row that was asked for.
        anchor: i64,
        /// The session that was named.
        session: String,
    },
    /// What is asked for is in the caller's context already.
    #[error("that message is part of the present conversation and in the context already")]
    OwnContext,
    /// A bound of time that cannot be read.
    #[error("invalid_time_bound: `{0}` is neither a date nor a span such as 7d")]
    InvalidTimeBound(String),
}

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Window and ends.
    Full,
    /// The row that was found.
    Compact,
}

impl Detail {
    /// The word in an answer.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Compact => "compact",
        }
    }
}

/// A row as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The row, its text shortened and without terminal escapes.
    pub row: StoredRow,
    /// True for the row that the window is around.
    pub anchor: bool,
    /// Length of the text before it was cut, in characters; `None` when it was not.
    pub cut_from: Option<usize>,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionFacts {
    /// When it started.
    pub started_at: Option<Seconds>,
    /// Where it came from.
    pub source: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Title.
    pub title: Option<String>,
}

impl SessionFacts {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            started_at: Some(session.started_at),
            source: Some(session.source.clone()),
            model: session.model.clone(),
            title: session.title.clone(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "when": when(self.started_at), "source": self.source, "model": self.model, "title": self.title,
        })
    }
}

/// One conversation that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The session that owns the row.
    pub session: String,
    /// The root of its tree.
    pub root: String,
    /// What is known of the root.
    pub facts: SessionFacts,
    /// Role of the row that was found, or `session_title`.
    pub matched_role: String,
    /// The row that was found; `None` when a title was found and the session has no rows.
    pub anchor: Option<i64>,
    /// The place of the hit with some text around it.
    pub snippet: String,
    /// First rows of the session, outside the window.
    pub first: Vec<Shown>,
    /// Rows around the hit.
    pub rows: Vec<Shown>,
    /// Last rows of the session, outside the window.
    pub last: Vec<Shown>,
    /// Rows before the hit in the whole window.
    pub before: usize,
    /// Rows behind the hit in the whole window.
    pub after: usize,
    /// How much is shown.
    pub detail: Detail,
}

/// What a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovery {
    /// The query as it was searched for.
    pub query: String,
    /// The conversations, best first.
    pub results: Vec<Conversation>,
    /// Trees that hold a place; `None` when no row and no title was found at all.
    pub sessions_searched: Option<usize>,
    /// Share of rows that a pending rebuild has indexed, in percent.
    pub rebuild_percent: Option<i64>,
}

/// Part of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    /// The session that owns the rows.
    pub session: String,
    /// What is known of it.
    pub facts: SessionFacts,
    /// The rows.
    pub rows: Vec<Shown>,
    /// Rows asked for on each side.
    pub window: u64,
    /// Rows before the anchor.
    pub before: usize,
    /// Rows behind the anchor.
    pub after: usize,
    /// True when the row lives in another session of the conversation than the one named.
    pub rebound: bool,
}

/// A whole session, or its two ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The session.
    pub session: String,
    /// What is known of it.
    pub facts: SessionFacts,
    /// The rows shown.
    pub rows: Vec<Shown>,
    /// Live rows in all.
    pub message_count: usize,
    /// True when the middle is left out.
    pub truncated: bool,
}

/// One conversation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its live tip.
    pub session: String,
    /// Title of the tip, else of the root.
    pub title: Option<String>,
    /// Where it came from.
    pub source: String,
    /// When its root started.
    pub started_at: Seconds,
    /// When something last happened in it.
    pub last_active: Seconds,
    /// Live rows of the tip.
    pub message_count: i64,
    /// Its first request, on one line.
    pub preview: String,
}

/// An answer of the tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Conversations that a query found.
    Discover(Discovery),
    /// Rows around a row.
    Scroll(Excerpt),
    /// A session.
    Read(Transcript),
    /// The latest conversations.
    Browse(Vec<Listed>),
}

impl Answer {
    /// The result that the model sees.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Discover(found) => discovery_json(found),
            Self::Scroll(part) => json!({
                "success": true, "mode": "scroll", "session_id": part.session, "link": link(&part.session),
                "session_meta": part.facts.json(), "window": part.window, "messages": list(&part.rows),
                "messages_before": part.before, "messages_after": part.after,
                "rebound": part.rebound,
            }),
            Self::Read(whole) => json!({
                "success": true, "mode": "read", "session_id": whole.session, "link": link(&whole.session),
                "session_meta": whole.facts.json(), "message_count": whole.message_count,
                "truncated": whole.truncated, "messages": list(&whole.rows),
            }),
            Self::Browse(entries) => {
                let results: Vec<Value> = entries.iter().map(listed_json).collect();
                json!({"success": true, "mode": "browse", "count": results.len(), "results": results})
            }
        }
    }
}

fn discovery_json(found: &Discovery) -> Value {
    let results: Vec<Value> = found.results.iter().map(conversation_json).collect();
    let mut object = json!({
        "success": true, "mode": "discover", "query": found.query, "count": results.len(), "results": results,
    });
    if let Some(searched) = found.sessions_searched {
        object["sessions_searched"] = Value::from(searched);
    }
    if let Some(percent) = found.rebuild_percent {
        object["index_rebuild"] = json!({"percent": percent});
    }
    object
}

fn conversation_json(found: &Conversation) -> Value {
    let mut object = json!({"session_id": found.session});
    if found.root != found.session {
        object["parent_session_id"] = Value::from(found.root.as_str());
    }
    let rest = json!({
        "when": when(found.facts.started_at), "source": found.facts.source, "model": found.facts.model,
        "title": found.facts.title, "matched_role": found.matched_role, "match_message_id": found.anchor,
        "snippet": found.snippet, "bookend_start": list(&found.first), "messages": list(&found.rows),
        "bookend_end": list(&found.last), "messages_before": found.before, "messages_after": found.after,
        "detail": found.detail.word(), "link": link(&found.session),
    });
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    object
}

fn listed_json(entry: &Listed) -> Value {
    json!({
        "session_id": entry.session, "link": link(&entry.session), "title": entry.title, "source": entry.source,
        "started_at": entry.started_at, "last_active": entry.last_active, "message_count": entry.message_count,
        "preview": entry.preview,
    })
}

fn list(rows: &[Shown]) -> Vec<Value> {
    rows.iter().map(shown_json).collect()
}

fn shown_json(shown: &Shown) -> Value {
    let row = &shown.row;
    let mut object = Map::new();
    object.insert("id".to_owned(), Value::from(row.id));
    object.insert("role".to_owned(), Value::from(row.role.as_str()));
    object.insert("content".to_owned(), row.content.value().unwrap_or_default());
    object.insert("timestamp".to_owned(), Value::from(row.timestamp));
    if let Some(name) = &row.tool_name {
        object.insert("tool_name".to_owned(), Value::from(name.as_str()));
    }
    if let Some(calls) = row.tool_calls.as_deref().and_then(|text| serde_json::from_str(text).ok()) {
        object.insert("tool_calls".to_owned(), calls);
    }
    if let Some(id) = &row.tool_call_id {
        object.insert("tool_call_id".to_owned(), Value::from(id.as_str()));
    }
    if shown.anchor {
        object.insert("anchor".to_owned(), Value::from(true));
    }
    if let Some(length) = shown.cut_from {
        object.insert("content_truncated".to_owned(), Value::from(true));
        object.insert("original_content_chars".to_owned(), Value::from(length));
    }
    Value::Object(object)
}

/// What the agent writes to point somebody at a session.
fn link(session: &str) -> String {
    format!("@session:{session}")
}

/// A time for people, in UTC.
fn when(at: Option<Seconds>) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a time beyond the range is unknown anyway")]
    let stamp = at.and_then(|at| Timestamp::from_second(at.floor() as i64).ok());
    stamp.map_or_else(|| "unknown".to_owned(), |stamp| stamp.strftime("%B %d, %Y at %I:%M %p").to_string())
}

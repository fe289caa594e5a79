//! What a search for rows takes and answers.

use super::query;
use crate::policy::{self, Index};
use crate::store::Seconds;

/// Order of the rows of an index; without one it is the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Latest first, then by rank.
    Newest,
    /// Earliest first, then by rank.
    Oldest,
}

impl Sort {
    /// The order that a caller's word means; anything else is rank.
    pub fn of(word: &str) -> Option<Self> {
        match query::trim(word).to_lowercase().as_str() {
            "newest" => Some(Self::Newest),
            "oldest" => Some(Self::Oldest),
            _ => None,
        }
    }
}

/// Which rows may be answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filters {
    /// Rows that were taken back, too.
    pub include_inactive: bool,
    /// Only sessions of these sources; an empty list matches nothing.
    pub sources: Option<Vec<String>>,
    /// No sessions of these sources.
    pub exclude_sources: Vec<String>,
    /// Only these roles; none means all.
    pub roles: Vec<String>,
    /// Only sessions that started at or after this.
    pub after: Option<Seconds>,
    /// Only sessions that started before this.
    pub before: Option<Seconds>,
}

/// One search for rows.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuery<'a> {
    /// What is looked for, as somebody typed it.
    pub text: &'a str,
    /// Which rows may be answered.
    pub filters: Filters,
    /// Order; rank without one.
    pub sort: Option<Sort>,
    /// Most rows.
    pub limit: u64,
    /// Rows to skip.
    pub offset: u64,
    /// Whether the rows around each hit are wanted.
    pub context: bool,
}

impl<'a> SearchQuery<'a> {
    /// A search for a text with the usual options.
    pub fn of(text: &'a str, knobs: &policy::Search) -> Self {
        Self { text, filters: Filters::default(), sort: None, limit: knobs.rows, offset: 0, context: true }
    }
}

/// Something that was asked for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A full-text index.
    Index(Index),
    /// A scan of the table.
    Like,
}

impl Route {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Index(index) => index.word(),
            Self::Like => "like",
        }
    }
}

/// Who found the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedBy {
    /// The first or a later route, with the query as it is.
    Route(Route),
    /// The word index, with any term enough.
    OrRelaxed,
}

impl ServedBy {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Route(route) => route.word(),
            Self::OrRelaxed => "or_relaxed",
        }
    }
}

/// A row that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Key of the row.
    pub id: i64,
    /// Session that owns it.
    pub session: String,
    /// Who speaks.
    pub role: String,
    /// The place of the hit with some text around it.
    pub snippet: String,
    /// When it was said.
    pub timestamp: Seconds,
    /// Name of the tool.
    pub tool_name: Option<String>,
    /// Source of the session.
    pub source: String,
    /// Model of the session.
    pub model: Option<String>,
    /// When the session started.
    pub session_started: Seconds,
    /// Summarised away.
    pub archived: bool,
    /// Role and shortened text of the row before, the hit, and the row after.
    pub context: Vec<(String, String)>,
}

/// What a search found, and how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The rows, best first.
    pub hits: Vec<Hit>,
    /// Everything that was asked, in order.
    pub attempts: Vec<Route>,
    /// Who found the rows; `None` when there are none.
    pub served_by: Option<ServedBy>,
}

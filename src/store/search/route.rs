//! Which index answers a query, and what happens when it finds nothing.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{ErrorCode, params, params_from_iter};

use super::like::{self, Condition, Term};
use super::query;
use crate::policy::{self, Index, IndexWhen};
use crate::store::{Seconds, Store, StoreError, codec, schema, whole};
use crate::wire::Content;

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
        Self {
            text,
            filters: Filters::default(),
            sort: None,
            limit: knobs.rows,
            offset: 0,
            context: true,
        }
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
            Self::Index(index) => policy_word(index),
            Self::Like => "like",
        }
    }
}

fn policy_word(index: Index) -> &'static str {
    index.word()
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

impl Store {
    /// Searches rows (`Hermes hermes_state_search.py:1086`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`]. A query that FTS5 cannot read finds nothing.
    pub fn search(&self, search: &SearchQuery<'_>, knobs: &policy::Search) -> Result<Found, StoreError> {
        let text = query::sanitize(search.text, knobs.query_chars_max);
        let mut run = Run { store: self, search, knobs, found: Found::default() };
        if !text.is_empty() {
            run.answer(&text)?;
        }
        let mut found = run.found;
        if search.context {
            for hit in &mut found.hits {
                hit.context = self.context_of(hit, knobs)?;
            }
        }
        Ok(found)
    }

    fn context_of(&self, hit: &Hit, knobs: &policy::Search) -> Result<Vec<(String, String)>, StoreError> {
        let neighbour = |sign: &str, order: &str| {
            let sql = format!(
                "SELECT role, content FROM messages WHERE session_id = ?1 AND (timestamp, id) {sign} (?2, ?3)
                 ORDER BY timestamp {order}, id {order} LIMIT 1"
            );
            self.one(&sql, params![hit.session, hit.timestamp, hit.id], |row| {
                Ok((row.get::<_, String>(0)?, codec::decode(row.get_ref(1)?)))
            })
        };
        let own = [neighbour("<", "DESC")?, neighbour("=", "ASC")?, neighbour(">", "ASC")?];
        let most = usize::try_from(knobs.context_chars).unwrap_or(usize::MAX);
        let short = |content: &Content| flat(content).chars().take(most).collect();
        Ok(own.into_iter().flatten().map(|(role, content)| (role, short(&content))).collect())
    }

    /// Brings indexes that searches catch up to the newest row.
    fn catch_up(&self) -> Result<(), StoreError> {
        if self.knobs.index_when != IndexWhen::Search {
            return Ok(());
        }
        let newest = self.one("SELECT COALESCE(max(id), 0) FROM messages", [], |row| row.get::<_, i64>(0))?;
        let newest = newest.unwrap_or(0);
        let reached = self.meta(schema::INDEXED_TO)?.and_then(|text| text.parse::<i64>().ok());
        if reached == Some(newest) {
            return Ok(());
        }
        self.write(|connection| {
            schema::create_lazily(connection, &self.knobs)?;
            for index in &self.knobs.indexes {
                self.execute(&schema::catch_up_sql(*index), [reached.unwrap_or(0), newest])?;
            }
            let sql = "UPDATE state_meta SET value = ?2 WHERE key = ?1";
            self.execute(sql, params![schema::INDEXED_TO, newest.to_string()]).map(|_| ())
        })
    }

    /// The tokens of a row in an index, in order, for people who wonder why a search finds it or not.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also when the store does not keep the index.
    pub fn indexed_tokens(&self, index: Index, row: i64) -> Result<Vec<String>, StoreError> {
        self.catch_up()?;
        let table = schema::table_of(index);
        self.connection.execute_batch(&format!(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_terms USING fts5vocab(main, {table}, instance)"
        ))?;
        let sql = format!("SELECT term FROM temp.{table}_terms WHERE doc = ?1 ORDER BY col, offset");
        self.all(&sql, [row], |row| row.get(0))
    }

    /// Progress of a pending rebuild: the last row of its first part that is indexed, and the last that was there when
    /// it began.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn pending_rebuild(&self, index: Index) -> Result<Option<(i64, i64)>, StoreError> {
        let prefix = if index == Index::CjkBigram { "fts_cjk_rebuild" } else { "fts_rebuild" };
        let number = |key: &str| -> Result<Option<i64>, StoreError> {
            Ok(self.meta(&format!("{prefix}_{key}"))?.and_then(|text| text.parse().ok()))
        };
        let mark = number("high_water")?.filter(|mark| *mark > 0);
        Ok(match mark {
            Some(mark) => Some((number("progress")?.unwrap_or(0), mark)),
            None => None,
        })
    }
}

/// Text of a content on one line of thought: text parts joined by blanks.
fn flat(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Parts(parts) => {
            let texts = parts.iter().filter(|part| part.get("type").is_some_and(|kind| kind == "text"));
            let texts = texts.filter_map(|part| part.get("text")?.as_str()).filter(|text| !text.is_empty());
            let joined = texts.collect::<Vec<_>>().join(" ");
            let joined = query::trim(&joined);
            if joined.is_empty() { "[multimodal content]".to_owned() } else { joined.to_owned() }
        }
        _ => String::new(),
    }
}

struct Run<'a> {
    store: &'a Store,
    search: &'a SearchQuery<'a>,
    knobs: &'a policy::Search,
    found: Found,
}

impl Run<'_> {
    fn answer(&mut self, text: &str) -> Result<(), StoreError> {
        let for_tools = self.search.filters.roles.iter().any(|role| role == "tool");
        if for_tools || self.store.meta("fts_stale")?.is_some() {
            return self.scan(text);
        }
        if !self.has(Index::Unicode61) {
            return Ok(());
        }
        self.store.catch_up()?;
        let cjk = query::contains_cjk(text);
        let done = if cjk { self.cjk(text)? } else { self.words(text)? };
        if !done {
            return Ok(());
        }
        self.top_up(text)?;
        if self.found.hits.is_empty() && !cjk {
            self.relaxed(text)?;
        }
        Ok(())
    }

    fn has(&self, index: Index) -> bool {
        self.store.knobs.indexes.contains(&index)
    }

    /// The pair index is not asked while it is being rebuilt.
    fn has_pairs(&self) -> Result<bool, StoreError> {
        Ok(self.has(Index::CjkBigram) && self.store.pending_rebuild(Index::CjkBigram)?.is_none())
    }

    /// Words; false when FTS5 cannot read the query or the scan has answered already.
    fn words(&mut self, text: &str) -> Result<bool, StoreError> {
        match self.ask(Index::Unicode61, text)? {
            Asked::Rows(hits) => self.serve(Route::Index(Index::Unicode61), hits),
            Asked::Refused => return Ok(false),
            Asked::Damaged => {
                self.scan(text)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Chinese, Japanese, Korean: pairs, trigrams, a scan. The first index that can read the query has the last word.
    fn cjk(&mut self, text: &str) -> Result<bool, StoreError> {
        let stripped = query::strip_stars(text);
        let raw = query::trim(stripped.trim_matches('"'));
        let quoted = query::quote_tokens(raw);
        let unindexed = |source: &String| source == "cron" || source == "subagent";
        let indexed = !self.search.filters.sources.iter().flatten().any(unindexed);
        let pairs = indexed && !query::has_lone_cjk(raw) && self.has_pairs()?;
        let trigram = indexed && self.has(Index::Trigram) && query::suits_trigram(raw);
        for (index, suits) in [(Index::CjkBigram, pairs), (Index::Trigram, trigram)] {
            if suits && let Asked::Rows(hits) = self.ask(index, &quoted)? {
                self.serve(Route::Index(index), hits);
                return Ok(true);
            }
        }
        let mut tokens: Vec<&str> = query::plain_tokens(raw).collect();
        if tokens.is_empty() {
            tokens.push(raw);
        }
        let any = tokens.iter().map(|token| vec![Term { text: (*token).to_owned(), negated: false }]);
        let condition = Condition { groups: any.collect() };
        let hits = self.like(&condition, None, "m.timestamp DESC, m.id", self.search.limit)?;
        self.serve(Route::Like, hits);
        Ok(true)
    }

    /// What is tried when words find nothing, each only if the one before found nothing.
    fn relaxed(&mut self, text: &str) -> Result<(), StoreError> {
        let quoted = query::quote_tokens(query::trim(text.trim_matches('"')));
        let pairs = self.has_pairs()?;
        let trigram = self.has(Index::Trigram) && query::has_long_tokens(text);
        for (index, suits) in [(Index::CjkBigram, pairs), (Index::Trigram, trigram)] {
            if suits && let Asked::Rows(hits) = self.ask(index, &quoted)? {
                self.serve(Route::Index(index), hits);
                if !self.found.hits.is_empty() {
                    return Ok(());
                }
            }
        }
        if let Some(any) = query::relax(text)
            && let Asked::Rows(hits) = self.ask(Index::Unicode61, &any)?
        {
            self.serve(Route::Index(Index::Unicode61), hits);
            self.found.served_by = self.found.served_by.map(|_| ServedBy::OrRelaxed);
        }
        Ok(())
    }

    fn serve(&mut self, route: Route, hits: Vec<Hit>) {
        self.found.served_by = (!hits.is_empty()).then_some(ServedBy::Route(route));
        self.found.hits = hits;
    }

    /// The boolean scan of the table, with the last word.
    fn scan(&mut self, text: &str) -> Result<(), StoreError> {
        let condition = like::compile(text);
        if condition.groups.is_empty() {
            return Ok(());
        }
        let order = match self.search.sort {
            Some(Sort::Oldest) => "m.timestamp, m.id",
            _ => "m.timestamp DESC, m.id DESC",
        };
        let hits = self.like(&condition, None, order, self.search.limit)?;
        self.serve(Route::Like, hits);
        Ok(())
    }

    /// While a rebuild is pending the rows that it has not reached are scanned, all terms required.
    fn top_up(&mut self, text: &str) -> Result<(), StoreError> {
        let have = self.found.hits.len() as u64;
        let Some((progress, mark)) = self.store.pending_rebuild(Index::Unicode61)? else { return Ok(()) };
        let terms = like::all_terms(text);
        if have >= self.search.limit || terms.is_empty() {
            return Ok(());
        }
        let condition = Condition { groups: vec![terms] };
        let more = self.like(&condition, Some((progress, mark)), "m.timestamp DESC, m.id", self.search.limit - have)?;
        let mut known: BTreeMap<i64, ()> = self.found.hits.iter().map(|hit| (hit.id, ())).collect();
        let fresh: Vec<Hit> = more.into_iter().filter(|hit| known.insert(hit.id, ()).is_none()).collect();
        if self.found.served_by.is_none() && !fresh.is_empty() {
            self.found.served_by = Some(ServedBy::Route(Route::Like));
        }
        self.found.hits.extend(fresh);
        Ok(())
    }

    fn ask(&mut self, index: Index, text: &str) -> Result<Asked, StoreError> {
        self.found.attempts.push(Route::Index(index));
        let table = schema::table_of(index);
        let order = match self.search.sort {
            Some(Sort::Newest) => "m.timestamp DESC, rank, m.id",
            Some(Sort::Oldest) => "m.timestamp, rank, m.id",
            None => "rank, m.id",
        };
        let mut values = vec![Value::from(text.to_owned())];
        let filters = self.filters(&mut values);
        values.extend([number(self.search.limit), number(self.search.offset)]);
        let sql = format!(
            "SELECT m.id, m.session_id, m.role, snippet({table}, -1, '>>>', '<<<', '...', {tokens}), {TAIL}
             FROM {table} JOIN messages AS m ON m.id = {table}.rowid JOIN sessions AS s ON s.id = m.session_id
             WHERE {table} MATCH ?{filters} ORDER BY {order} LIMIT ? OFFSET ?",
            tokens = self.knobs.snippet_tokens,
        );
        match self.store.all(&sql, params_from_iter(values), hit_of) {
            Ok(hits) => Ok(Asked::Rows(hits)),
            Err(error) if error.is_corruption() => {
                self.store.write(|_| self.store.drop_indexing())?;
                Ok(Asked::Damaged)
            }
            Err(StoreError::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
                Ok(Asked::Refused)
            }
            Err(error) => Err(error),
        }
    }

    fn like(
        &mut self,
        condition: &Condition,
        between: Option<(i64, i64)>,
        order: &str,
        limit: u64,
    ) -> Result<Vec<Hit>, StoreError> {
        const ANYWHERE: &str = "(COALESCE(m.content, '') LIKE ? ESCAPE '\\' \
            OR COALESCE(m.tool_name, '') LIKE ? ESCAPE '\\' OR COALESCE(m.tool_calls, '') LIKE ? ESCAPE '\\')";
        if between.is_none() {
            self.found.attempts.push(Route::Like);
        }
        let snippet_term = condition.snippet_term().unwrap_or_default().to_owned();
        let mut values = vec![Value::from(snippet_term)];
        let mut groups = Vec::with_capacity(condition.groups.len());
        for group in &condition.groups {
            let mut clauses = Vec::with_capacity(group.len());
            for term in group {
                clauses.push(if term.negated { format!("NOT {ANYWHERE}") } else { ANYWHERE.to_owned() });
                values.extend(std::iter::repeat_n(Value::from(term.pattern()), 3));
            }
            groups.push(format!("({})", clauses.join(" AND ")));
        }
        let mut filters = String::new();
        if let Some((from, to)) = between {
            filters.push_str(" AND m.id > ? AND m.id <= ?");
            values.extend([Value::from(from), Value::from(to)]);
        }
        filters.push_str(&self.filters(&mut values));
        let offset = if between.is_some() { 0 } else { self.search.offset };
        values.extend([number(limit), number(offset)]);
        let sql = format!(
            "SELECT m.id, m.session_id, m.role, substr(m.content, max(1, instr(m.content, ?) - {lead}), {length}),
                 {TAIL}
             FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
             WHERE ({groups}){filters} ORDER BY {order} LIMIT ? OFFSET ?",
            lead = self.knobs.snippet_lead_chars,
            length = self.knobs.snippet_chars,
            groups = groups.join(" OR "),
        );
        self.store.all(&sql, params_from_iter(values), hit_of)
    }

    /// The conditions that every route shares.
    fn filters(&self, values: &mut Vec<Value>) -> String {
        let filters = &self.search.filters;
        let mut sql = String::new();
        if !filters.include_inactive {
            sql.push_str(" AND (m.active = 1 OR m.compacted = 1)");
        }
        sql.push_str(" AND COALESCE(m.display_kind, '') <> 'hidden'");
        let mut list = |column: &str, negated: bool, texts: &[String]| {
            let marks = vec!["?"; texts.len()].join(", ");
            let not = if negated { "NOT " } else { "" };
            values.extend(texts.iter().map(|text| Value::from(text.clone())));
            sql.push_str(&format!(" AND {column} {not}IN ({marks})"));
        };
        if let Some(sources) = &filters.sources {
            list("s.source", false, sources);
        }
        if !filters.exclude_sources.is_empty() {
            list("s.source", true, &filters.exclude_sources);
        }
        if !filters.roles.is_empty() {
            list("m.role", false, &filters.roles);
        }
        for (sign, bound) in [(">=", filters.after), ("<", filters.before)] {
            if let Some(bound) = bound {
                sql.push_str(&format!(" AND s.started_at {sign} ?"));
                values.push(Value::from(bound));
            }
        }
        sql
    }
}

/// What an index said.
enum Asked {
    /// These rows, perhaps none.
    Rows(Vec<Hit>),
    /// The query is no query to it.
    Refused,
    /// It is damaged; it has been detached.
    Damaged,
}

const TAIL: &str = "m.timestamp, m.tool_name, s.source, s.model, s.started_at, m.active = 0 AND m.compacted = 1";

fn hit_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Hit> {
    Ok(Hit {
        id: row.get(0)?,
        session: row.get(1)?,
        role: row.get(2)?,
        snippet: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        timestamp: row.get(4)?,
        tool_name: row.get(5)?,
        source: row.get(6)?,
        model: row.get(7)?,
        session_started: row.get(8)?,
        archived: row.get(9)?,
        context: Vec::new(),
    })
}

fn number(value: u64) -> Value {
    Value::from(whole(value))
}

//! Which index answers a query, and what happens when it finds nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rusqlite::types::Value;
use rusqlite::{ErrorCode, params, params_from_iter};

use super::found::{Found, Hit, Route, SearchQuery, ServedBy, Sort};
use super::like::{self, Condition, Term};
use super::query;
use crate::policy::{self, Index, IndexWhen};
use crate::store::{Store, StoreError, codec, schema, whole};
use crate::wire::Content;

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

    /// Brings an index that searches catch up to the newest row.
    fn catch_up(&self, index: Index) -> Result<(), StoreError> {
        if self.knobs.index_when != IndexWhen::Search {
            return Ok(());
        }
        let newest = self.one("SELECT COALESCE(max(id), 0) FROM messages", [], |row| row.get::<_, i64>(0))?;
        let newest = newest.unwrap_or(0);
        let mark = schema::indexed_to(index);
        let reached = self.meta(&mark)?.and_then(|text| text.parse::<i64>().ok());
        if reached == Some(newest) {
            return Ok(());
        }
        self.write(|connection| {
            if reached.is_none() {
                schema::create_indexes(connection, &self.knobs)?;
            }
            self.execute(&schema::catch_up_sql(index), [reached.unwrap_or(0), newest])?;
            let sql = "UPDATE state_meta SET value = ?2 WHERE key = ?1";
            self.execute(sql, params![mark, newest.to_string()]).map(|_| ())
        })
    }

    /// The tokens of a row in an index, in order, for people who wonder why a search finds it or not.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also when the store does not keep the index.
    pub fn indexed_tokens(&self, index: Index, row: i64) -> Result<Vec<String>, StoreError> {
        self.catch_up(index)?;
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
            Asked::Refused => {
                if self.knobs.scan_refused {
                    // As it was typed: the quotes that sanitising added are no part of what is looked for.
                    let most = usize::try_from(self.knobs.query_chars_max).unwrap_or(usize::MAX);
                    let typed: String = self.search.text.chars().take(most).collect();
                    self.scan(&typed)?;
                }
                return Ok(false);
            }
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
        let more = self.like(
            &condition,
            Some((progress, mark)),
            "m.timestamp DESC, m.id",
            self.search.limit - have,
        )?;
        let mut known: BTreeSet<i64> = self.found.hits.iter().map(|hit| hit.id).collect();
        let fresh: Vec<Hit> = more.into_iter().filter(|hit| known.insert(hit.id)).collect();
        if self.found.served_by.is_none() && !fresh.is_empty() {
            self.found.served_by = Some(ServedBy::Route(Route::Like));
        }
        self.found.hits.extend(fresh);
        Ok(())
    }

    fn ask(&mut self, index: Index, text: &str) -> Result<Asked, StoreError> {
        self.found.attempts.push(Route::Index(index));
        self.store.catch_up(index)?;
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
            groups.push(balanced(&clauses, "AND"));
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
            groups = balanced(&groups, "OR"),
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
            // Writing to a string cannot fail.
            let _ = write!(sql, " AND {column} {not}IN ({marks})");
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
                let _ = write!(sql, " AND s.started_at {sign} ?");
                values.push(Value::from(bound));
            }
        }
        sql
    }
}

/// Conditions joined as a balanced tree: SQLite refuses one that is a thousand deep.
fn balanced(clauses: &[String], operator: &str) -> String {
    match clauses {
        [] => "1".to_owned(),
        [only] => format!("({only})"),
        _ => {
            let (left, right) = clauses.split_at(clauses.len() / 2);
            format!("({} {operator} {})", balanced(left, operator), balanced(right, operator))
        }
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

const TAIL: &str =
    "m.timestamp, m.tool_name, s.source, s.model, s.started_at, m.active = 0 AND m.compacted = 1";

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewSession;
    use crate::wire::Row;

    fn store_of(knobs: &policy::Store, texts: &[&str]) -> Store {
        let store = Store::open_in_memory(knobs).unwrap();
        store.create_session(&NewSession::of("a", "cli"), 0).unwrap();
        for text in texts {
            store.append("a", &[Row::user(*text)], 0).unwrap();
        }
        store
    }

    /// The knobs of a store whose indexes are fed by appends.
    fn fed() -> policy::Store {
        policy::Store { index_when: IndexWhen::Append, ..policy::Store::default() }
    }

    fn ids(store: &Store, text: &str, knobs: &policy::Search) -> Vec<i64> {
        store.search(&SearchQuery::of(text, knobs), knobs).unwrap().hits.iter().map(|hit| hit.id).collect()
    }

    const TEXTS: [&str; 6] = [
        "the harbour map is in maps/harbour.svg",
        "put the token into .env first",
        "started with --dry-run",
        "昨天的harbour部署失败了",
        "concatenate the parts",
        "港口地图",
    ];

    #[test]
    fn indexes_that_searches_catch_up_answer_like_indexes_that_appends_feed() {
        let knobs = policy::Search::default();
        let append = store_of(&fed(), &TEXTS);
        let lazy = policy::Store { index_when: IndexWhen::Search, ..policy::Store::default() };
        let search = store_of(&lazy, &TEXTS[..2]);
        let mut found = 0;
        for (at, text) in TEXTS.iter().enumerate().skip(2) {
            assert_eq!(ids(&search, "token", &knobs), [2]);
            assert_eq!(search.append("a", &[Row::user(*text)], 0).unwrap(), [i64::try_from(at).unwrap() + 1]);
        }
        for text in [
            "harbour",
            "harbour OR parts",
            "部署",
            "地图",
            "cat",
            "maps/harbour.svg",
            "港",
            "\"harbour map\"",
        ] {
            let answer = ids(&append, text, &knobs);
            found += answer.len();
            assert_eq!(ids(&search, text, &knobs), answer, "{text}");
        }
        assert!(found >= 8, "{found}");
    }

    #[test]
    fn a_query_that_the_index_cannot_read_finds_nothing_unless_it_may_scan() {
        let store = store_of(&policy::Store::default(), &TEXTS);
        let knobs = policy::Search::default();
        let mended = policy::Search { scan_refused: true, ..policy::Search::default() };
        for (text, id) in [(".env", 2), ("--dry-run", 3)] {
            assert_eq!(ids(&store, text, &knobs), [0_i64; 0]);
            assert_eq!(ids(&store, text, &mended), [id]);
        }
    }

    #[test]
    fn a_query_of_a_thousand_terms_is_scanned() {
        let store = store_of(&policy::Store::default(), &["字"]);
        let knobs = policy::Search::default();
        assert_eq!(ids(&store, &"字 ".repeat(1_024), &knobs), [1]);
    }

    #[test]
    fn a_stale_index_is_replaced_by_a_scan() {
        let store = store_of(&policy::Store::default(), &TEXTS);
        store.write(|_| store.drop_indexing()).unwrap();
        store.append("a", &[Row::user("harbour again")], 0).unwrap();
        let knobs = policy::Search::default();
        let found = store.search(&SearchQuery::of("harbour again", &knobs), &knobs).unwrap();
        assert_eq!(found.attempts, [Route::Like]);
        assert_eq!(found.hits.len(), 1);
    }

    #[test]
    fn rows_that_a_rebuild_has_not_reached_are_scanned() {
        let store = store_of(&fed(), &["first harbour"]);
        store.set_meta("fts_rebuild_high_water", "3").unwrap();
        store.set_meta("fts_rebuild_progress", "1").unwrap();
        store.append("a", &[Row::user("second harbour"), Row::user("third")], 0).unwrap();
        store.append("a", &[Row::user("fourth harbour")], 0).unwrap();
        assert_eq!(ids(&store, "harbour", &policy::Search::default()), [1, 4, 2]);
    }
}

//! Booking what a session has used.

use rusqlite::params;

use super::{Store, StoreError, seconds};
use crate::world::Millis;

/// One report of usage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage<'a> {
    /// Prompt tokens that no cache served.
    pub input_tokens: i64,
    /// Completion tokens.
    pub output_tokens: i64,
    /// Prompt tokens that a cache served.
    pub cache_read_tokens: i64,
    /// Prompt tokens that were written to a cache.
    pub cache_write_tokens: i64,
    /// Completion tokens spent on thinking.
    pub reasoning_tokens: i64,
    /// Calls of the provider.
    pub api_calls: i64,
    /// Cost by the price list, in US dollars.
    pub estimated_cost_usd: Option<f64>,
    /// Cost by the provider's own word, in US dollars.
    pub actual_cost_usd: Option<f64>,
    /// Model that answered.
    pub model: Option<&'a str>,
    /// Provider that billed.
    pub provider: Option<&'a str>,
    /// Address of the provider.
    pub base_url: Option<&'a str>,
    /// How it is billed.
    pub mode: Option<&'a str>,
    /// Name of a side task; empty for the main loop.
    pub task: &'a str,
    /// True when the figures are totals of the session, not of one call.
    pub absolute: bool,
}

impl Usage<'_> {
    fn has_usage(&self) -> bool {
        self.estimated_cost_usd.is_some_and(|cost| cost != 0.0)
            || [
                self.input_tokens,
                self.output_tokens,
                self.cache_read_tokens,
                self.cache_write_tokens,
                self.reasoning_tokens,
                self.api_calls,
            ]
            .iter()
            .any(|count| *count != 0)
    }
}

/// What a session has used in all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionUsage {
    /// Model of the session.
    pub model: Option<String>,
    /// Provider that bills it.
    pub provider: Option<String>,
    /// Prompt tokens that no cache served.
    pub input_tokens: i64,
    /// Completion tokens.
    pub output_tokens: i64,
    /// Prompt tokens that a cache served.
    pub cache_read_tokens: i64,
    /// Prompt tokens that were written to a cache.
    pub cache_write_tokens: i64,
    /// Completion tokens spent on thinking.
    pub reasoning_tokens: i64,
    /// Calls of the provider.
    pub api_calls: i64,
    /// Cost by the price list, in US dollars.
    pub estimated_cost_usd: Option<f64>,
    /// Cost by the provider's own word, in US dollars.
    pub actual_cost_usd: Option<f64>,
}

/// What a session has used by one route.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUsage {
    /// Model.
    pub model: String,
    /// Provider; empty when unknown.
    pub provider: String,
    /// Address of the provider; empty when unknown.
    pub base_url: String,
    /// Side task; empty for the main loop.
    pub task: String,
    /// Calls.
    pub api_calls: i64,
    /// Prompt tokens that no cache served.
    pub input_tokens: i64,
    /// Completion tokens.
    pub output_tokens: i64,
}

impl Store {
    /// Adds one report to the counters of the session and to those of its route (`Hermes hermes_state_usage.py`).
    ///
    /// The first report with real usage may replace the model and provider that were set at creation, later ones
    /// cannot. Totals set the counters and add nothing per route. A side task never becomes the route of the session and
    /// does not inherit it.
    ///
    /// # Errors
    /// [`StoreError::NoSession`].
    pub fn book_usage(&self, session: &str, usage: &Usage<'_>, now: Millis) -> Result<(), StoreError> {
        let accounted = usage.has_usage() || usage.actual_cost_usd.is_some_and(|cost| cost != 0.0);
        let main = usage.task.is_empty() && accounted;
        self.write(|_| {
            if main && filled(usage.model).is_some() && filled(usage.provider).is_some() {
                self.execute(
                    "UPDATE sessions SET model = ?2, billing_provider = ?3, billing_base_url = ?4,
                         billing_mode = ?5
                     WHERE id = ?1 AND api_call_count = 0 AND (model IS NOT ?2 OR billing_provider IS NOT ?3)",
                    params![session, usage.model, usage.provider, usage.base_url, usage.mode],
                )?;
            }
            let booked = self.execute(
                "UPDATE sessions SET
                     input_tokens = input_tokens * ?2 + ?3, output_tokens = output_tokens * ?2 + ?4,
                     cache_read_tokens = cache_read_tokens * ?2 + ?5,
                     cache_write_tokens = cache_write_tokens * ?2 + ?6,
                     reasoning_tokens = reasoning_tokens * ?2 + ?7, api_call_count = api_call_count * ?2 + ?8,
                     estimated_cost_usd = COALESCE(estimated_cost_usd, 0) * ?2 + COALESCE(?9, 0),
                     actual_cost_usd = CASE WHEN ?10 IS NULL THEN actual_cost_usd
                         ELSE COALESCE(actual_cost_usd, 0) * ?2 + ?10 END,
                     model = COALESCE(model, IIF(?11, ?12, NULL)),
                     billing_provider = COALESCE(billing_provider, IIF(?11, ?13, NULL)),
                     billing_base_url = COALESCE(billing_base_url, IIF(?11, ?14, NULL)),
                     billing_mode = COALESCE(billing_mode, IIF(?11, ?15, NULL))
                 WHERE id = ?1",
                params![
                    session,
                    i64::from(!usage.absolute),
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.cache_read_tokens,
                    usage.cache_write_tokens,
                    usage.reasoning_tokens,
                    usage.api_calls,
                    usage.estimated_cost_usd,
                    usage.actual_cost_usd,
                    main,
                    usage.model,
                    usage.provider,
                    usage.base_url,
                    usage.mode,
                ],
            )?;
            if booked == 0 {
                return Err(StoreError::NoSession(session.to_owned()));
            }
            if !usage.absolute && usage.has_usage() {
                self.book_route(session, usage, now)?;
            }
            Ok(())
        })
    }

    /// Books a side task by its route only; the counters of the session stay as they are.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn book_side_usage(&self, session: &str, usage: &Usage<'_>, now: Millis) -> Result<(), StoreError> {
        self.write(|_| self.book_route(session, usage, now))
    }

    fn book_route(&self, session: &str, usage: &Usage<'_>, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO session_model_usage
                 SELECT id, COALESCE(?3, CASE WHEN ?7 = '' THEN model END, 'unknown'),
                     COALESCE(?4, CASE WHEN ?7 = '' THEN billing_provider END, ''),
                     COALESCE(?5, CASE WHEN ?7 = '' THEN billing_base_url END, ''),
                     COALESCE(?6, CASE WHEN ?7 = '' THEN billing_mode END, ''),
                     ?7, ?8, ?9, ?10, ?11, ?12, ?13, COALESCE(?14, 0), ?15, ?2, ?2
                 FROM sessions WHERE id = ?1
             ON CONFLICT DO UPDATE SET
                 api_call_count = api_call_count + excluded.api_call_count,
                 input_tokens = input_tokens + excluded.input_tokens,
                 output_tokens = output_tokens + excluded.output_tokens,
                 cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
                 cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
                 reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
                 estimated_cost_usd = estimated_cost_usd + excluded.estimated_cost_usd,
                 actual_cost_usd = COALESCE(actual_cost_usd, 0) + COALESCE(excluded.actual_cost_usd, 0),
                 last_seen = excluded.last_seen",
            params![
                session,
                seconds(now),
                filled(usage.model),
                filled(usage.provider),
                filled(usage.base_url),
                filled(usage.mode),
                usage.task,
                usage.api_calls,
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.reasoning_tokens,
                usage.estimated_cost_usd,
                usage.actual_cost_usd,
            ],
        )?;
        Ok(())
    }

    /// What a session has used, by route, sorted by model.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn usage_by_model(&self, session: &str) -> Result<Vec<ModelUsage>, StoreError> {
        self.all(
            "SELECT model, billing_provider, billing_base_url, task, api_call_count, input_tokens, output_tokens
             FROM session_model_usage WHERE session_id = ?1
             ORDER BY model, billing_provider, billing_base_url, task",
            [session],
            |row| {
                Ok(ModelUsage {
                    model: row.get(0)?,
                    provider: row.get(1)?,
                    base_url: row.get(2)?,
                    task: row.get(3)?,
                    api_calls: row.get(4)?,
                    input_tokens: row.get(5)?,
                    output_tokens: row.get(6)?,
                })
            },
        )
    }

    /// The counters of a session.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn usage_of(&self, session: &str) -> Result<Option<SessionUsage>, StoreError> {
        self.one(
            "SELECT model, billing_provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
                 reasoning_tokens, api_call_count, estimated_cost_usd, actual_cost_usd
             FROM sessions WHERE id = ?1",
            [session],
            |row| {
                Ok(SessionUsage {
                    model: row.get(0)?,
                    provider: row.get(1)?,
                    input_tokens: row.get(2)?,
                    output_tokens: row.get(3)?,
                    cache_read_tokens: row.get(4)?,
                    cache_write_tokens: row.get(5)?,
                    reasoning_tokens: row.get(6)?,
                    api_calls: row.get(7)?,
                    estimated_cost_usd: row.get(8)?,
                    actual_cost_usd: row.get(9)?,
                })
            },
        )
    }
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

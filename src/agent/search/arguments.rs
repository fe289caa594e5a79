//! Reading the arguments that the model wrote.

use serde_json::Value;

use super::answer::{Detail, Refusal};
use super::time;
use crate::policy;
use crate::store::Seconds;
use crate::store::search::Sort;
use crate::store::search::query::trim;
use crate::world::Millis;

/// Arguments as they are meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// What is looked for, trimmed; empty for none.
    pub query: String,
    /// Roles that may match.
    pub roles: Vec<String>,
    /// Most conversations.
    pub limit: u64,
    /// Order of the rows.
    pub sort: Option<Sort>,
    /// Full for all results, or only for the first.
    pub detail: Detail,
    /// Only conversations that started at or after this.
    pub after: Option<Seconds>,
    /// Only conversations that started before this.
    pub before: Option<Seconds>,
    /// Sessions that are left out, with their trees when they are roots.
    pub exclude: Vec<String>,
    /// The session to look into.
    pub session: Option<String>,
    /// The row to look around, as it was written.
    pub around: Option<Value>,
    /// Rows on each side of it.
    pub window: u64,
    /// The profile to ask.
    pub profile: Option<String>,
}

impl Arguments {
    /// Reads the arguments of a call; what cannot be read falls back to its default.
    ///
    /// # Errors
    /// [`Refusal::InvalidTimeBound`]: a bound that is ignored would answer another question.
    pub fn read(given: &Value, now: Millis, knobs: &policy::Search) -> Result<Self, Refusal> {
        let text =
            |key: &str| given.get(key).and_then(Value::as_str).map(trim).filter(|text| !text.is_empty());
        let (embedded, session) = match text("session_id") {
            Some(link) => match link.split_once('/') {
                Some((profile, id)) if !id.is_empty() => (Some(profile), Some(id)),
                _ => (None, Some(link)),
            },
            None => (None, None),
        };
        let profile = text("profile").or(embedded).filter(|profile| !profile.is_empty());
        let roles: Vec<String> = text("role_filter")
            .unwrap_or_default()
            .split(',')
            .map(trim)
            .filter(|role| !role.is_empty())
            .map(str::to_owned)
            .collect();
        let bound = |key: &str| time::bound(given.get(key), now);
        Ok(Self {
            query: text("query").unwrap_or_default().to_owned(),
            roles: if roles.is_empty() { vec!["user".to_owned(), "assistant".to_owned()] } else { roles },
            limit: clamped(given.get("limit"), knobs.limit, knobs.limit_max),
            sort: text("sort").and_then(Sort::of),
            detail: match text("detail") {
                Some(word) if word.to_lowercase() == "full" => Detail::Full,
                _ => Detail::Compact,
            },
            after: bound("after")?,
            before: bound("before")?,
            exclude: exclude_ids(given.get("exclude_session_ids"), knobs),
            session: session.map(str::to_owned),
            around: given.get("around_message_id").filter(|around| !around.is_null()).cloned(),
            window: clamped(given.get("window"), knobs.window, knobs.window_max),
            profile: profile.map(str::to_owned),
        })
    }
}

/// A whole number in any spelling that the reference takes: a number (cut towards zero) or numeric text.
pub(super) fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(on) => Some(i64::from(*on)),
        Value::Number(number) => number.as_i64().or_else(|| {
            #[expect(clippy::cast_possible_truncation, reason = "a number out of range is clamped by `as`")]
            let cut = number.as_f64().filter(|number| number.is_finite()).map(|number| number as i64);
            cut
        }),
        Value::String(text) => {
            let text = trim(text);
            text.strip_prefix('+').unwrap_or(text).parse().ok()
        }
        _ => None,
    }
}

fn clamped(value: Option<&Value>, default: u64, most: u64) -> u64 {
    match value.and_then(whole_number) {
        None => default.clamp(1, most.max(1)),
        Some(number) => u64::try_from(number).unwrap_or(0).clamp(1, most.max(1)),
    }
}

/// The sessions to leave out: a text or a list; blank ones, other types and repeats dropped, the rest cut to the limit.
pub fn exclude_ids(value: Option<&Value>, knobs: &policy::Search) -> Vec<String> {
    let one = value.filter(|value| value.is_string()).map(std::slice::from_ref);
    let items = value.and_then(Value::as_array).map(Vec::as_slice).or(one).unwrap_or_default();
    let mut ids: Vec<String> = Vec::new();
    for id in items.iter().filter_map(Value::as_str).map(trim).filter(|id| !id.is_empty()) {
        if ids.len() as u64 >= knobs.exclude_max {
            break;
        }
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}

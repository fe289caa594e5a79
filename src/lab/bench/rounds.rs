//! Rounds with the provider's own usage figures.
//!
//! A growing conversation with a marker at its end reads in each round what the round before read and wrote; that
//! identity holds or it does not, and no simulation is needed to see it.

use serde_json::Value;

use super::trace::{Faults, count, lines};

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The session that it belongs to.
    pub session: String,
    /// Its provider.
    pub provider: String,
    /// Prompt tokens.
    pub tokens: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written to it, where the provider says so.
    pub written: Option<u64>,
}

/// What the rounds of one session say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The session.
    pub session: String,
    /// Its provider.
    pub provider: String,
    /// Its rounds.
    pub rounds: u64,
    /// Prompt tokens.
    pub tokens: u64,
    /// Tokens read.
    pub read: u64,
    /// Transitions in which the next round read exactly what this one read and wrote.
    pub identities: u64,
    /// Transitions for which that can be said.
    pub transitions: u64,
    /// Rounds that read less than the one before, although prompts of a session only grow.
    pub falls: u64,
    /// The largest power of two that divides every read.
    pub step: u64,
}

/// Reads rounds, one a line.
pub(super) fn read(text: &str, faults: &mut Faults<'_>) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for (line, value) in lines(text) {
        if faults.full() {
            break;
        }
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                faults.at(line, format!("not JSON: {error}"));
                continue;
            }
        };
        let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let session = word("session_id");
        if session.is_empty() {
            faults.at(line, "`session_id` is missing");
        }
        if let Some(index) = value.get("round_index").and_then(Value::as_i64)
            && let Some(before) = seen.insert(session.clone(), index).filter(|before| *before >= index)
        {
            faults.at(line, format!("round {index} of `{session}` follows round {before}"));
        }
        let tokens = count(&value, "input_tokens_total", line, faults);
        let read = count(&value, "prefix_tokens", line, faults);
        let (Some(tokens), Some(read)) = (tokens, read) else { continue };
        if read > tokens {
            faults.at(line, format!("{read} tokens read of {tokens}"));
        }
        let written = value.get("claude_cache_creation_input_tokens").and_then(Value::as_u64);
        rounds.push(Round { session, provider: word("provider"), tokens, read, written });
    }
    rounds
}

/// The account of every session, in order of appearance.
pub fn accounts(rounds: &[Round]) -> Vec<Account> {
    let mut order: indexmap::IndexMap<&str, Vec<&Round>> = indexmap::IndexMap::new();
    for round in rounds {
        order.entry(&round.session).or_default().push(round);
    }
    let of_session = |(session, rounds): (&str, Vec<&Round>)| {
        let pairs = || rounds.windows(2).map(|pair| (pair[0], pair[1]));
        let said = || pairs().filter_map(|(one, next)| Some((one.read + one.written?, next.read)));
        let step = rounds.iter().map(|round| round.read).filter(|read| *read > 0);
        Account {
            session: session.to_owned(),
            provider: rounds[0].provider.clone(),
            rounds: rounds.len() as u64,
            tokens: rounds.iter().map(|round| round.tokens).sum(),
            read: rounds.iter().map(|round| round.read).sum(),
            identities: said().filter(|(wanted, read)| wanted == read).count() as u64,
            transitions: said().count() as u64,
            falls: pairs().filter(|(one, next)| next.read < one.read).count() as u64,
            step: step.map(|read| 1 << read.trailing_zeros()).min().unwrap_or(0),
        }
    };
    order.into_iter().map(of_session).collect()
}

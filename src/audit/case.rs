//! A folder with a question: the same rules as for a log, the answer as an object of facts.
//!
//! What a folder holds says which facts there are: requests, token counts, histories, events of compactions. Every
//! fact is worked out from the inputs. If the folder says which facts it asks for, the answer has these and no other.

mod histories;
mod numbers;
mod requests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The files of a folder by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Name of the file that makes a folder a case.
pub const CASE_FILE: &str = "case.json";

/// Facts in the order in which they are told.
pub(super) type Facts = Map<String, Value>;

/// Why a folder cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseFault {
    /// An input that cannot be read.
    #[error("{file}: line {line}: {reason}")]
    Input {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Nothing that an audit answers.
    #[error("nothing here that an audit answers: it reads requests, token counts, histories and compactions")]
    NoQuestion,
}

/// Answers a folder.
///
/// # Errors
/// When an input cannot be read, or there is none that an audit answers.
pub fn answer(files: &Files) -> Result<Value, CaseFault> {
    let case: Value =
        files.get(CASE_FILE).and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let facts = facts(files, &case)?;
    // Only the names of the facts asked for are looked at, never their values.
    let Some(asked) = case.get("expected").and_then(Value::as_object) else {
        return Ok(Value::Object(facts));
    };
    let kept = facts.into_iter().filter(|(name, _)| asked.contains_key(name));
    Ok(Value::Object(kept.collect()))
}

fn facts(files: &Files, case: &Value) -> Result<Facts, CaseFault> {
    if let Some(bytes) = files.get("requests.jsonl") {
        return requests::facts(bytes, &rules(files, case));
    }
    if let (Some(usage), Some(prices)) = (files.get("usage.jsonl"), files.get("prices_per_million.json")) {
        return numbers::costs(usage, prices);
    }
    if let Some(usage) = files.get("usage.jsonl") {
        return numbers::conversations(usage);
    }
    if let Some(events) = files.get("events.jsonl") {
        return numbers::compactions(events, files.get("rule.json").map(Vec::as_slice));
    }
    histories::facts(files).ok_or(CaseFault::NoQuestion)
}

/// Rules that a folder sets beside the default ones.
fn rules(files: &Files, case: &Value) -> crate::audit::predict::Rules {
    let mut rules = crate::audit::predict::rules();
    let own: Vec<Value> = ["rule.json", "rules.json", "policy.json"]
        .iter()
        .filter_map(|name| serde_json::from_slice(files.get(*name)?).ok())
        .collect();
    for source in own.iter().chain([case]) {
        for holder in [Some(source), source.get("rules"), source.get("policy")].into_iter().flatten() {
            if let Some(collapse) = holder.get("collapse_tool_runs").and_then(Value::as_bool) {
                rules.collapse_tool_runs = collapse;
            }
            if let Some(lookback) = holder.get("lookback").and_then(Value::as_u64) {
                rules.lookback = usize::try_from(lookback).unwrap_or(rules.lookback).max(1);
            }
        }
    }
    rules
}

/// Lines of a file as values.
fn lines(file: &str, bytes: &[u8]) -> Result<Vec<Value>, CaseFault> {
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| line.iter().any(|byte| !byte.is_ascii_whitespace()))
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| CaseFault::Input {
                file: file.to_owned(),
                line: index + 1,
                reason: error.to_string(),
            })
        })
        .collect()
}

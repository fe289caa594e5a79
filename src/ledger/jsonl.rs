//! The JSON Lines form of a ledger.

use serde::{Deserialize, Serialize};

use crate::diag::Diagnostic;
use crate::ledger::{Event, Ledger};

/// Version of the format; a reader refuses newer ones.
pub const FORMAT: u64 = 1;

/// Longest line that is read, in bytes. A longer one is a fault of the file, not a request.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// The first line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format.
    pub ledger: u64,
    /// Version of the lab that wrote it.
    pub lab: String,
    /// `runtime`, `serve` or the name of a log format.
    pub source: String,
    /// Name of the scenario; empty for a log.
    pub scenario: String,
    /// SHA-256 of the scenario's text.
    pub scenario_digest: String,
    /// SHA-256 of the whole policy.
    pub policy_digest: String,
    /// Seed of the run.
    pub seed: u64,
    /// Unit of all sizes: `tokens` or `characters`.
    pub unit: String,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            ledger: FORMAT,
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            source: "runtime".to_owned(),
            scenario: String::new(),
            scenario_digest: String::new(),
            policy_digest: String::new(),
            seed: 0,
            unit: "tokens".to_owned(),
        }
    }
}

/// Why a ledger could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(pub Diagnostic);

pub(super) fn line_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a ledger line has no keys that are not texts")
}

/// Reads a whole ledger; `file` names it in diagnostics.
///
/// # Errors
/// A missing or newer header, a line that is no event, numbers out of order, a file that ends inside a line.
pub fn read(file: &str, text: &str) -> Result<Ledger, LedgerError> {
    let fail = |line: usize, message: String| LedgerError(Diagnostic::at_line(file, line, message));
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let Some((_, first)) = lines.next() else {
        return Err(LedgerError(Diagnostic::of_file(file, "an empty file is no ledger")));
    };
    let version = serde_json::from_str::<serde_json::Value>(first)
        .ok()
        .and_then(|value| value.get("ledger").and_then(serde_json::Value::as_u64));
    match version {
        Some(FORMAT) => {}
        Some(version) => {
            let message = format!("ledger format {version} is not known; this lab reads format {FORMAT}");
            return Err(LedgerError(
                Diagnostic::at_line(file, 1, message)
                    .with_help("read it with the version that wrote it, or a newer one"),
            ));
        }
        None => return Err(fail(1, "the first line is no ledger header".to_owned())),
    }
    let header: Header =
        serde_json::from_str(first).map_err(|error| fail(1, format!("bad header: {error}")))?;
    let mut ledger = Ledger::new(header);
    for (number, line) in lines {
        if line.len() > LINE_BYTES_MAX {
            return Err(fail(
                number,
                format!("a line of {} bytes; the longest allowed is {LINE_BYTES_MAX}", line.len()),
            ));
        }
        let event: Event =
            serde_json::from_str(line).map_err(|error| fail(number, format!("not an event: {error}")))?;
        let expected = ledger.events.len() as u64 + 1;
        if event.n != expected {
            return Err(fail(number, format!("event number {} where {expected} is due", event.n)));
        }
        ledger.events.push(event);
    }
    if !text.ends_with('\n') {
        let message = "the file ends inside a line; the ledger is truncated";
        return Err(fail(text.lines().count(), message.to_owned()));
    }
    Ok(ledger)
}

//! Recorded traffic with a provider: requests, replies with their timing, usage.
//!
//! A cassette is JSON Lines: a header with a version, then one exchange a line. A request stands there in its normal
//! form or, when bodies are hashed, as digests of its parts. Of the headers only what the replay needs is kept: the
//! type of the answer, and how long to wait. Keys and cookies are never looked at.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diag::Diagnostic;

/// Version of the format; a reader refuses others.
pub const FORMAT: u64 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CassetteHeader {
    /// Version of the format.
    pub cassette: u64,
    /// Version of the lab that wrote it.
    pub lab: String,
    /// Where the requests went, without credentials.
    pub upstream: String,
    /// True when request bodies are digests.
    pub hashed: bool,
}

/// One part of a request: a parameter, a tool, a part of the system prompt, a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartDigest {
    /// Where it stands: a JSON pointer into the normal form.
    pub at: String,
    /// Digest of it.
    pub digest: String,
    /// Its length in bytes of compact JSON.
    pub bytes: u64,
}

/// A request and what was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Number, from 1.
    pub n: u64,
    /// When the request came, in milliseconds since the Unix epoch.
    pub at: i64,
    /// Path and query.
    pub path: String,
    /// Digest of the normal form.
    pub key: String,
    /// The normal form; `null` when bodies are hashed.
    pub request: Value,
    /// Digests of its parts; empty when the body is there.
    pub parts: Vec<PartDigest>,
    /// Status of the answer.
    pub status: u16,
    /// Type of the answer.
    pub content_type: String,
    /// Seconds to wait before another attempt, where the answer names them.
    pub retry_after: Option<u64>,
    /// Milliseconds until the head of the answer.
    pub head_ms: u64,
    /// Pieces of the answer: milliseconds since its head, text.
    pub reply: Vec<(u64, String)>,
    /// True when the connection broke before the answer was whole.
    pub cut: bool,
    /// Usage as the provider reported it; `null` when it did not.
    pub usage: Value,
}

/// A whole cassette.
#[derive(Debug, Clone, PartialEq)]
pub struct Cassette {
    /// Name for reports: the file's.
    pub name: String,
    /// The first line.
    pub header: CassetteHeader,
    /// What was exchanged, in order.
    pub exchanges: Vec<Exchange>,
}

/// True when a text begins as a cassette does.
pub fn is_cassette(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    serde_json::from_str::<Value>(first).is_ok_and(|value| value.get("cassette").is_some())
}

/// Reads a cassette; `file` names it in diagnostics.
///
/// # Errors
/// A missing or newer header, a line that is no exchange, a file that ends inside a line.
pub fn read(file: &str, text: &str) -> Result<Cassette, Diagnostic> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let value: Value = serde_json::from_str(first).unwrap_or_default();
    match value.get("cassette").and_then(Value::as_u64) {
        Some(FORMAT) => {}
        Some(other) => {
            let message = format!("cassette format {other} is not known; this lab reads format {FORMAT}");
            return Err(Diagnostic::at_line(file, 1, message)
                .with_help("read it with the version that wrote it, or a newer one"));
        }
        None => return Err(Diagnostic::at_line(file, 1, "the first line is no header of a cassette")),
    }
    let header = serde_json::from_value(value)
        .map_err(|error| Diagnostic::at_line(file, 1, format!("bad header: {error}")))?;
    let mut exchanges = Vec::new();
    for (number, line) in lines {
        let exchange: Exchange = serde_json::from_str(line)
            .map_err(|error| Diagnostic::at_line(file, number, format!("not an exchange: {error}")))?;
        exchanges.push(exchange);
    }
    if !text.ends_with('\n') {
        let message = "the file ends inside a line; the cassette is truncated";
        return Err(Diagnostic::at_line(file, text.lines().count(), message));
    }
    Ok(Cassette { name: file.to_owned(), header, exchanges })
}

/// What a provider reported as usage, from the whole text of its answer.
pub fn usage_of(content_type: &str, text: &str) -> Value {
    if !content_type.starts_with("text/event-stream") {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        return value.get("usage").cloned().unwrap_or_default();
    }
    let mut usage = Value::Null;
    for data in text.lines().filter_map(|line| line.strip_prefix("data:")) {
        // Most events say nothing about usage and need not be parsed.
        if !data.contains("\"usage\"") {
            continue;
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else { continue };
        let found = ["/usage", "/message/usage", "/response/usage"].iter().find_map(|at| value.pointer(at));
        let Some(Value::Object(found)) = found else { continue };
        match &mut usage {
            // The first event counts the prompt, the last one the answer.
            Value::Object(known) => {
                known.extend(found.iter().map(|(name, count)| (name.clone(), count.clone())));
            }
            _ => usage = Value::Object(found.clone()),
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_found_in_every_protocol() {
        let plain = r#"{"usage":{"prompt_tokens":3}}"#;
        assert_eq!(usage_of("application/json", plain)["prompt_tokens"], 3);
        let messages = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
                        data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
        let usage = usage_of("text/event-stream; charset=utf-8", messages);
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&3.into(), &9.into()));
        let responses = "data: {\"response\":{\"usage\":null}}\n\ndata: {\"response\":{\"usage\":{\"input_tokens\":4}}}\n\n";
        assert_eq!(usage_of("text/event-stream", responses)["input_tokens"], 4);
        assert_eq!(usage_of("text/event-stream", "data: [DONE]\n\n"), Value::Null);
    }

    #[test]
    fn a_cassette_that_cannot_be_read_says_where() {
        let header = r#"{"cassette":1,"lab":"0","upstream":"u","hashed":false}"#;
        assert!(read("c", &format!("{header}\n")).unwrap().exchanges.is_empty());
        assert_eq!(read("c", "{}\n").unwrap_err().line, 1);
        assert!(read("c", r#"{"cassette":2}"#).unwrap_err().message.contains("format 2 is not known"));
        assert_eq!(read("c", &format!("{header}\n{{\n")).unwrap_err().line, 2);
        assert!(read("c", header).unwrap_err().message.contains("truncated"));
        assert!(is_cassette(header) && !is_cassette("format = 1"));
    }
}

//! Recorded traces: recognised by content, checked line by line.
//!
//! Three kinds are known: requests as block ids (Mooncake), agent sessions as blocks (packed or in their original
//! form), and rounds with the provider's own usage figures (TraceLab). A fault names its line; all faults that can be
//! found are reported, up to a limit.

use serde_json::Value;

use crate::diag::Diagnostic;

use super::rounds::{self, Round};
use super::sessions::{self, Session};

/// Tokens of a block in Mooncake traces.
const MOONCAKE_BLOCK: u64 = 512;
/// Largest prompt that is believed, in tokens.
pub(super) const TOKENS_MAX: u64 = 100_000_000;
/// Faults after which a file is not read further.
const FAULTS_MAX: usize = 20;

/// A sound trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Trace {
    /// Requests as block ids.
    Blocks(Blocks),
    /// Agent sessions.
    Sessions(Vec<Session>),
    /// Rounds with usage figures.
    Rounds(Vec<Round>),
}

impl Trace {
    /// Name of the format.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Blocks(_) => "mooncake",
            Self::Sessions(_) => "agent-sessions",
            Self::Rounds(_) => "tracelab",
        }
    }
}

/// Requests as lists of blocks; ids are numbered from 0 in order of appearance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blocks {
    /// Blocks of all requests, one after the other.
    pub visits: Vec<u32>,
    /// End of each request in `visits`.
    pub ends: Vec<usize>,
    /// Prompt tokens of each request.
    pub tokens: Vec<u64>,
    /// Number of different blocks.
    pub distinct: usize,
    /// Tokens of a full block.
    pub block_tokens: u64,
}

impl Blocks {
    /// The requests, each as its blocks and its tokens.
    pub fn requests(&self) -> impl Iterator<Item = (&[u32], u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, &end)| &self.visits[start..end]);
        ranges.zip(self.tokens.iter().copied())
    }

    /// Prompt tokens of all requests.
    pub fn tokens_total(&self) -> u64 {
        self.tokens.iter().sum()
    }
}

/// Faults of one file.
#[derive(Debug)]
pub(super) struct Faults<'a> {
    file: &'a str,
    found: Vec<Diagnostic>,
}

impl Faults<'_> {
    pub(super) fn at(&mut self, line: usize, message: impl Into<String>) {
        self.found.push(Diagnostic::at_line(self.file, line, message));
    }

    pub(super) fn full(&self) -> bool {
        self.found.len() >= FAULTS_MAX
    }
}

/// A number that may not be negative; a fault is noted otherwise.
pub(super) fn count(value: &Value, key: &str, line: usize, faults: &mut Faults<'_>) -> Option<u64> {
    let Some(found) = value.get(key) else {
        faults.at(line, format!("`{key}` is missing"));
        return None;
    };
    match found.as_u64() {
        Some(number) if number <= TOKENS_MAX => Some(number),
        Some(number) => {
            faults.at(line, format!("`{key}` is {number}; more than {TOKENS_MAX} is not believed"));
            None
        }
        None => {
            faults.at(line, format!("`{key}` is {found}; expected a whole number from 0 on"));
            None
        }
    }
}

/// Reads a trace; `file` names it in diagnostics.
///
/// # Errors
/// Every fault that is found, at most twenty.
pub fn read(file: &str, text: &str) -> Result<Trace, Vec<Diagnostic>> {
    let mut faults = Faults { file, found: Vec::new() };
    let trace = recognise(text, &mut faults);
    match trace {
        Some(trace) if faults.found.is_empty() => Ok(trace),
        _ => Err(faults.found),
    }
}

fn recognise(text: &str, faults: &mut Faults<'_>) -> Option<Trace> {
    // A session in its original form is one document, which may well be spread over many lines.
    let first_line = text.lines().find(|line| !line.trim().is_empty());
    let Some(first_line) = first_line else {
        faults.at(1, "the file is empty; expected a trace");
        return None;
    };
    let first: Value = match serde_json::from_str(first_line) {
        Ok(value) => value,
        Err(error) => {
            let Ok(value) = serde_json::from_str(text) else {
                faults.at(1, format!("not JSON: {error}"));
                return None;
            };
            value
        }
    };
    let has = |key: &str| first.get(key).is_some();
    if has("requests") {
        let packed = first.pointer("/requests/0").is_none_or(Value::is_array);
        let read = if packed { sessions::packed(text, faults) } else { sessions::original(&first, faults) };
        return Some(Trace::Sessions(read));
    }
    if has("round_index") || has("prefix_tokens") {
        return Some(Trace::Rounds(rounds::read(text, faults)));
    }
    if has("hash_ids") || has("timestamp") || has("input_length") {
        return Some(Trace::Blocks(mooncake(text, faults)));
    }
    let keys: Vec<&str> =
        first.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).take(8).collect();
    faults.at(
        1,
        format!(
            "no known trace: found the keys {}; expected `hash_ids` (Mooncake), `requests` (agent sessions) or \
             `round_index` (TraceLab)",
            if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
        ),
    );
    None
}

/// Every line that is not blank, as JSON, with its number.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Result<Value, serde_json::Error>)> {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered.map(|(index, line)| (index + 1, serde_json::from_str(line)))
}

fn mooncake(text: &str, faults: &mut Faults<'_>) -> Blocks {
    let mut blocks = Blocks { block_tokens: MOONCAKE_BLOCK, ..Blocks::default() };
    let mut numbers = indexmap::IndexSet::new();
    // For each block, the last request that named it, so that one named twice is seen at once.
    let mut named_in: Vec<usize> = Vec::new();
    let mut before = 0;
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
        if let Some(at) = count_unbounded(&value, "timestamp", line, faults) {
            if at < before {
                faults.at(line, format!("time runs backwards: {at} after {before}"));
            }
            before = at;
        }
        let tokens = count(&value, "input_length", line, faults);
        count(&value, "output_length", line, faults);
        let Some(ids) = value.get("hash_ids").and_then(Value::as_array) else {
            faults.at(line, "`hash_ids` is missing; expected a list of block ids");
            continue;
        };
        let Some(tokens) = tokens else { continue };
        let wanted = tokens.div_ceil(MOONCAKE_BLOCK);
        if ids.len() as u64 != wanted {
            faults.at(
                line,
                format!(
                    "{} block ids for {tokens} tokens; expected {wanted} of {MOONCAKE_BLOCK} tokens",
                    ids.len()
                ),
            );
            continue;
        }
        let request = line;
        for id in ids {
            let Some(id) = id.as_u64() else {
                faults.at(line, format!("block id {id}; expected a whole number from 0 on"));
                break;
            };
            let (number, new) = numbers.insert_full(id);
            if new {
                named_in.push(request);
            } else if named_in[number] == request {
                faults.at(line, format!("block id {id} stands twice in one request"));
                break;
            }
            named_in[number] = request;
            blocks.visits.push(u32::try_from(number).unwrap_or(u32::MAX));
        }
        blocks.ends.push(blocks.visits.len());
        blocks.tokens.push(tokens);
    }
    blocks.distinct = numbers.len();
    blocks
}

/// A point in time: any whole number from 0 on.
fn count_unbounded(value: &Value, key: &str, line: usize, faults: &mut Faults<'_>) -> Option<u64> {
    match value.get(key) {
        None => faults.at(line, format!("`{key}` is missing")),
        Some(found) => match found.as_u64() {
            Some(number) => return Some(number),
            None => faults.at(line, format!("`{key}` is {found}; expected a whole number from 0 on")),
        },
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        match read("t.jsonl", text) {
            Ok(trace) => panic!("read as {}", trace.format()),
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_fault_of_a_file_names_its_line() {
        let text = concat!(
            "{\"timestamp\": 5, \"input_length\": 513, \"output_length\": 1, \"hash_ids\": [1, 2]}\n",
            "{\"timestamp\": 4, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [1]}\n",
            "\n",
            "{\"timestamp\": 5, \"input_length\": -3, \"output_length\": 1, \"hash_ids\": []}\n",
            "{\"timestamp\": 6, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [7, 7]}\n",
            "{\"timestamp\": 6, \"input_length\": 600, \"output_length\": 1}\n",
            "{\"timestamp\": 6, \"input_length\": 900000000000, \"output_length\": 1, \"hash_ids\": [1]}\n",
            "{\"timestamp\": 6, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1]}\n",
            "nonsense\n",
        );
        let found = faults(text);
        let expected = [
            "t.jsonl:2: time runs backwards: 4 after 5",
            "t.jsonl:4: `input_length` is -3; expected a whole number from 0 on",
            "t.jsonl:5: block id 7 stands twice in one request",
            "t.jsonl:6: `hash_ids` is missing; expected a list of block ids",
            "t.jsonl:7: `input_length` is 900000000000; more than 100000000 is not believed",
            "t.jsonl:8: 1 block ids for 600 tokens; expected 2 of 512 tokens",
        ];
        assert_eq!(found[..6], expected);
        assert!(found[6].starts_with("t.jsonl:9: not JSON"), "{}", found[6]);
    }

    #[test]
    fn a_file_that_is_no_trace_says_what_was_expected() {
        assert!(faults("")[0].contains("empty"));
        assert!(faults("{\"a\": 1}")[0].contains("found the keys a; expected `hash_ids`"));
        assert!(faults("[1, 2")[0].contains("not JSON"));
    }
}

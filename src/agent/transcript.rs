//! The live conversation of one session: rows, their bytes on the wire, and the running digest over the prompt.
//!
//! Appending costs the new row alone. Only a planned break (a new system prompt, a compaction) pays for the whole
//! history again. Used by the turn loop and by everything that sends requests.

use std::sync::Arc;

use serde_json::Value;

use crate::wire::{Chain, Content, Level, Role, Row, Segment};

/// Private key of rows that are kept but never sent: reasoning that waits for words.
pub const PREFILL: &str = "_thinking_prefill";
/// Private key of rows that the loop wrote to move the model on, and takes back when it has.
pub const SCAFFOLD: &str = "_scaffold";
/// Keys of rows that are the harness's own business and never sent.
const LOCAL_KEYS: [&str; 10] = [
    "api_content",
    "display_kind",
    "display_metadata",
    "finish_reason",
    "message_id",
    "message_uid",
    "observed",
    "reasoning",
    "timestamp",
    "token_count",
];
/// What is sent in place of an early empty row, which providers refuse.
const EMPTY_PLACEHOLDER: &str = "(empty)";

/// The live conversation of one session.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// Tools, then the system prompt.
    prefix: Vec<Segment>,
    rows: Vec<Row>,
    /// Wire form of every row that is sent.
    messages: Vec<Segment>,
    /// For each row, how many messages stand up to and including it.
    message_count: Vec<usize>,
    /// Running digest after each segment of prefix and messages.
    chain: Vec<Chain>,
    /// Sizes summed up to and including each segment.
    sizes: Vec<u64>,
}

/// Size of a text in the run's unit.
pub type Measure = fn(&str) -> u64;

impl Transcript {
    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The last row.
    pub fn last(&self) -> Option<&Row> {
        self.rows.last()
    }

    /// Tools and system prompt as segments.
    pub fn prefix(&self) -> &[Segment] {
        &self.prefix
    }

    /// The messages as segments.
    pub fn messages(&self) -> &[Segment] {
        &self.messages
    }

    /// Number of segments of the next request.
    pub fn segment_count(&self) -> usize {
        self.prefix.len() + self.messages.len()
    }

    /// A segment of the next request.
    pub fn segment(&self, index: usize) -> &Segment {
        index
            .checked_sub(self.prefix.len())
            .map_or_else(|| &self.prefix[index], |index| &self.messages[index])
    }

    /// Running digest after the first `count` segments.
    pub fn chain_at(&self, count: usize) -> Chain {
        count.checked_sub(1).map_or(Chain::EMPTY, |index| self.chain[index])
    }

    /// Running digests after each segment.
    pub fn chains(&self) -> &[Chain] {
        &self.chain
    }

    /// Sizes summed up to and including each segment, in the unit of `measure`.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Size of the next request.
    pub fn size(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(0)
    }

    /// Index of the segment of a row, counted over the whole request; `None` for rows that are not sent.
    pub fn segment_of_row(&self, row: usize) -> Option<usize> {
        let upto = self.message_count[row];
        let before = row.checked_sub(1).map_or(0, |row| self.message_count[row]);
        (upto > before).then(|| self.prefix.len() + upto - 1)
    }

    /// Puts tools and system prompt in front; everything is digested anew if they changed.
    ///
    /// `system` are the parts of the system prompt in order; the stable one has a segment of its own.
    pub fn set_prefix(&mut self, tools: &[Segment], system: &[&str], measure: Measure) {
        let parts = || system.iter().filter(|part| !part.is_empty());
        let same = self.prefix.len() == tools.len() + parts().count()
            && self.prefix[..tools.len()] == *tools
            && self.prefix[tools.len()..].iter().zip(parts()).all(|(old, new)| &*old.text == *new);
        if same {
            return;
        }
        self.prefix = tools.to_vec();
        self.prefix.extend(parts().map(|part| Segment::new(Level::System, *part)));
        self.redigest(0, measure);
    }

    /// Appends a row.
    pub fn push(&mut self, row: Row, measure: Measure) {
        self.fill_empty_last(measure);
        if !row.flag(PREFILL) {
            let segment = segment_of(&row, true);
            self.messages.push(segment);
            self.redigest(self.segment_count() - 1, measure);
        }
        self.rows.push(row);
        self.message_count.push(self.messages.len());
    }

    /// Removes the rows from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
        self.message_count.truncate(len);
        self.messages.truncate(self.message_count.last().copied().unwrap_or(0));
        self.chain.truncate(self.segment_count());
        self.sizes.truncate(self.segment_count());
    }

    /// Replaces all rows: a compaction or a resume.
    pub fn replace(&mut self, rows: Vec<Row>, measure: Measure) {
        self.truncate(0);
        for row in rows {
            self.push(row, measure);
        }
    }

    /// Changes one row in place; what follows is digested anew.
    pub fn edit(&mut self, index: usize, change: impl FnOnce(&mut Row), measure: Measure) {
        change(&mut self.rows[index]);
        if let Some(at) = self.segment_of_row(index) {
            let last = index + 1 == self.rows.len();
            self.messages[at - self.prefix.len()] = segment_of(&self.rows[index], last);
            self.redigest(at, measure);
        }
    }

    /// A row that was last and is empty must not stay empty when another follows.
    fn fill_empty_last(&mut self, measure: Measure) {
        let Some(row) = self.rows.last() else { return };
        if row.content.is_empty() && !row.has_calls() && !row.is_tool() && !row.flag(PREFILL) {
            let at = self.messages.len() - 1;
            self.messages[at] = segment_of(row, false);
            self.redigest(self.prefix.len() + at, measure);
        }
    }

    fn redigest(&mut self, from: usize, measure: Measure) {
        self.chain.truncate(from);
        self.sizes.truncate(from);
        let mut chain = self.chain_at(from);
        let mut size = from.checked_sub(1).map_or(0, |index| self.sizes[index]);
        for index in from..self.segment_count() {
            chain = chain.then(self.segment(index));
            size += measure(&self.segment(index).text);
            self.chain.push(chain);
            self.sizes.push(size);
        }
    }
}

fn segment_of(row: &Row, last: bool) -> Segment {
    Segment { level: Level::Messages, text: wire_text(row, last) }
}

/// A row as JSON text the way it is sent: without private keys, text trimmed, arguments in canonical form.
pub fn wire_text(row: &Row, last: bool) -> Arc<str> {
    if let (Role::User | Role::Assistant, Some(sent)) =
        (&row.role, row.extra.get("api_content").and_then(Value::as_str).filter(|text| !text.is_empty()))
    {
        let mut plain = row.clone();
        plain.extra.retain(|key, _| !LOCAL_KEYS.contains(&key.as_str()));
        plain.content = Content::Text(sent.to_owned());
        return plain.to_wire().to_string().into();
    }
    let mut value = row.to_wire();
    let empty = row.content.is_empty() && !row.has_calls() && !row.is_tool();
    if let Some(object) = value.as_object_mut() {
        if let Some(Value::String(text)) = object.get_mut("content") {
            let trimmed = text.trim();
            if trimmed.len() != text.len() {
                *text = trimmed.to_owned();
            }
        }
        if empty && !last && !matches!(row.role, Role::System | Role::Other(_)) {
            object.insert("content".to_owned(), Value::from(EMPTY_PLACEHOLDER));
        }
        object.retain(|key, _| !LOCAL_KEYS.contains(&key.as_str()));
        if object.get("tool_calls").is_some_and(|calls| calls.as_array().is_some_and(Vec::is_empty)) {
            object.shift_remove("tool_calls");
        }
        for call in object.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::String(arguments)) = call.pointer_mut("/function/arguments") {
                *arguments = canonical(arguments);
            }
        }
    }
    value.to_string().into()
}

/// JSON text with sorted keys and no blanks; text that does not parse stays as it is.
pub fn canonical(json: &str) -> String {
    match serde_json::from_str::<Value>(json) {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        Err(_) => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ToolCall;

    fn chars(text: &str) -> u64 {
        text.chars().count() as u64
    }

    #[test]
    fn appending_keeps_every_earlier_digest() {
        let mut transcript = Transcript::default();
        transcript.set_prefix(&[Segment::new(Level::Tools, "{}")], &["system"], chars);
        transcript.push(Row::user("a"), chars);
        let before = transcript.chains().to_vec();
        transcript.push(Row::calls("", vec![ToolCall::new("1", "t", "{\"b\":1,\"a\":2}")]), chars);
        assert_eq!(transcript.chains()[..3], before[..]);
        assert!(transcript.segment(3).text.contains(r#"{\"a\":2,\"b\":1}"#));
        assert_eq!(transcript.size(), transcript.sizes().last().copied().unwrap());
    }

    #[test]
    fn a_new_system_prompt_changes_every_digest_from_there() {
        let mut transcript = Transcript::default();
        transcript.set_prefix(&[], &["one"], chars);
        transcript.push(Row::user("a"), chars);
        let before = transcript.chains().to_vec();
        transcript.set_prefix(&[], &["two"], chars);
        assert!(transcript.chains().iter().zip(&before).all(|(a, b)| a != b));
    }

    #[test]
    fn truncating_forgets_rows_and_segments_together() {
        let mut transcript = Transcript::default();
        transcript.push(Row::user("a"), chars);
        transcript.push(Row::assistant("").with(PREFILL, true), chars);
        transcript.push(Row::assistant("b"), chars);
        assert_eq!(transcript.segment_count(), 2);
        transcript.truncate(2);
        assert_eq!((transcript.rows().len(), transcript.segment_count()), (2, 1));
    }
}

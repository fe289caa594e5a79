//! The live conversation of one session: rows, their bytes on the wire, and the running digest over the prompt.
//!
//! Appending costs the new row alone. Only a planned break (a new system prompt, a compaction) pays for the whole
//! history again. Used by the turn loop and by everything that sends requests.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::cache::{Facts, Kind, Speaker};
use crate::wire::{Chain, Content, Level, Role, Row, Segment, ToolCall};

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
    /// What a cache may have to know of each of them.
    message_facts: Vec<Facts>,
    /// For each row, how many messages stand up to and including it.
    message_count: Vec<usize>,
    /// Running digest after each segment of prefix and messages.
    chain: Vec<Chain>,
    /// Sizes summed up to and including each segment.
    sizes: Vec<u64>,
    /// What a cache may have to know of each segment.
    facts: Vec<Facts>,
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

    /// What a cache may have to know of each segment: a message is one position of several blocks.
    pub fn facts(&self) -> &[Facts] {
        &self.facts
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

    /// [`digest_of`] a row of the conversation, whose bytes are at hand here.
    pub fn digest(&self, row: usize) -> Chain {
        match self.segment_of_row(row) {
            Some(at) if !is_bare(&self.rows[row]) => Chain::EMPTY.then(self.segment(at)),
            _ => digest_of(&self.rows[row]),
        }
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
            self.message_facts.push(facts_of(&row));
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
        self.message_facts.truncate(self.messages.len());
        self.chain.truncate(self.segment_count());
        self.sizes.truncate(self.segment_count());
        self.facts.truncate(self.segment_count());
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
            self.message_facts[at - self.prefix.len()] = facts_of(&self.rows[index]);
            self.redigest(at, measure);
        }
    }

    /// A row that was last and is empty must not stay empty when another follows.
    fn fill_empty_last(&mut self, measure: Measure) {
        let Some(row) = self.rows.last() else { return };
        if is_bare(row) && !row.flag(PREFILL) {
            let at = self.messages.len() - 1;
            self.messages[at] = segment_of(row, false);
            self.redigest(self.prefix.len() + at, measure);
        }
    }

    fn redigest(&mut self, from: usize, measure: Measure) {
        self.chain.truncate(from);
        self.sizes.truncate(from);
        self.facts.truncate(from);
        let mut chain = self.chain_at(from);
        let mut size = from.checked_sub(1).map_or(0, |index| self.sizes[index]);
        for index in from..self.segment_count() {
            chain = chain.then(self.segment(index));
            size += measure(&self.segment(index).text);
            self.chain.push(chain);
            self.sizes.push(size);
            let fact = match index.checked_sub(self.prefix.len()) {
                Some(message) => self.message_facts[message],
                None => {
                    Facts { level: self.prefix[index].level, speaker: Speaker::Developer, ..Facts::default() }
                }
            };
            self.facts.push(fact);
        }
    }
}

fn facts_of(row: &Row) -> Facts {
    let calls = row.call_list().len();
    let (speaker, kind) = match row.role {
        Role::Assistant if calls > 0 => (Speaker::Assistant, Kind::ToolUse),
        Role::Assistant => (Speaker::Assistant, Kind::Text),
        Role::Tool => (Speaker::Tool, Kind::ToolResult),
        Role::System => (Speaker::Developer, Kind::Text),
        Role::User | Role::Other(_) => (Speaker::User, Kind::Text),
    };
    let words = match (verbatim(row), &row.content) {
        (Some(_), _) => 1,
        (None, Content::Text(text)) => usize::from(!text.trim().is_empty()),
        (None, Content::Parts(parts)) => parts.len(),
        (None, _) => 0,
    };
    let blocks = u32::try_from((words + calls).max(1)).unwrap_or(u32::MAX);
    Facts { level: Level::Messages, kind, speaker, markable: true, blocks }
}

fn segment_of(row: &Row, last: bool) -> Segment {
    Segment { level: Level::Messages, text: wire_text(row, last) }
}

/// Nothing is said and nothing called: what is sent in place of such a row depends on whether another follows.
fn is_bare(row: &Row) -> bool {
    row.content.is_empty() && !row.has_calls() && !row.is_tool()
}

/// Digest of one row alone, as it goes over the wire when others follow it.
pub fn digest_of(row: &Row) -> Chain {
    Chain::EMPTY.then(&segment_of(row, false))
}

/// A row as JSON text the way it is sent: without private keys, text trimmed, arguments in canonical form.
pub fn wire_text(row: &Row, last: bool) -> Arc<str> {
    let verbatim = verbatim(row);
    let filled = is_bare(row) && !last && !matches!(row.role, Role::System | Role::Other(_));
    serde_json::to_string(&Outgoing { row, verbatim, filled }).unwrap_or_default().into()
}

/// What was sent when the row was new, and is sent again as it is.
fn verbatim(row: &Row) -> Option<&str> {
    let kept = match row.role {
        Role::User | Role::Assistant => row.extra.get("api_content").and_then(Value::as_str),
        _ => None,
    };
    kept.filter(|text| !text.is_empty())
}

/// A row as it is sent. Written straight to text: every row passes here, most of them once.
struct Outgoing<'a> {
    row: &'a Row,
    /// What was sent when the row was new; sent again as it is.
    verbatim: Option<&'a str>,
    /// The row is empty and another follows.
    filled: bool,
}

impl Serialize for Outgoing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.row;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("role", row.role.word())?;
        match (self.verbatim, &row.content) {
            (Some(text), _) => object.serialize_entry("content", text)?,
            (None, Content::Absent) => {}
            (None, _) if self.filled => object.serialize_entry("content", EMPTY_PLACEHOLDER)?,
            (None, Content::Null) => object.serialize_entry("content", &())?,
            (None, Content::Text(text)) => object.serialize_entry("content", text.trim())?,
            (None, Content::Parts(parts)) => object.serialize_entry("content", parts)?,
            (None, Content::Other(other)) => object.serialize_entry("content", other)?,
        }
        if row.has_calls() {
            let calls: Vec<OutgoingCall<'_>> = row
                .call_list()
                .iter()
                .map(|call| OutgoingCall { call, as_is: self.verbatim.is_some() })
                .collect();
            object.serialize_entry("tool_calls", &calls)?;
        }
        if let Some(id) = &row.tool_call_id {
            object.serialize_entry("tool_call_id", id)?;
        }
        if let Some(name) = &row.name {
            object.serialize_entry("name", name)?;
        }
        let sent = |key: &str| !key.starts_with('_') && !LOCAL_KEYS.contains(&key);
        for (key, value) in row.extra.iter().filter(|(key, _)| sent(key)) {
            object.serialize_entry(key, value)?;
        }
        if self.filled && self.verbatim.is_none() && row.content == Content::Absent {
            object.serialize_entry("content", EMPTY_PLACEHOLDER)?;
        }
        object.end()
    }
}

struct OutgoingCall<'a> {
    call: &'a ToolCall,
    as_is: bool,
}

impl Serialize for OutgoingCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: Cow<'a, str>,
        }
        let call = self.call;
        let arguments =
            if self.as_is { Cow::from(&call.arguments) } else { Cow::from(canonical(&call.arguments)) };
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("id", &call.id)?;
        object.serialize_entry("type", "function")?;
        object.serialize_entry("function", &Function { name: &call.name, arguments })?;
        for (key, value) in &call.extra {
            object.serialize_entry(key, value)?;
        }
        object.end()
    }
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

    fn chars(text: &str) -> u64 {
        text.chars().count() as u64
    }

    #[test]
    fn a_row_is_sent_in_the_order_of_its_keys_without_what_is_local() {
        let call = ToolCall {
            extra: [("call_id".to_owned(), Value::from("c"))].into_iter().collect(),
            ..ToolCall::new("1", "t", "{\"b\": 1, \"a\": 2}")
        };
        let row = Row::calls(" on it ", vec![call])
            .with("_private", 1)
            .with("timestamp", 2)
            .with("refusal", Value::Null);
        assert_eq!(
            &*wire_text(&row, true),
            r#"{"role":"assistant","content":"on it","tool_calls":[{"id":"1","type":"function","function":{"name":"t","arguments":"{\"a\":2,\"b\":1}"},"call_id":"c"}],"refusal":null}"#
        );
        let bare = Row {
            content: Content::Absent,
            tool_calls: Some(Vec::new()),
            ..Row::assistant("").with("refusal", 1)
        };
        assert_eq!(&*wire_text(&bare, true), r#"{"role":"assistant","refusal":1}"#);
        assert_eq!(&*wire_text(&bare, false), r#"{"role":"assistant","refusal":1,"content":"(empty)"}"#);
        assert_eq!(&*wire_text(&Row::assistant(""), false), r#"{"role":"assistant","content":"(empty)"}"#);
        let noted = Row::user(" hi ").with("api_content", " hi, and a note ");
        assert_eq!(&*wire_text(&noted, true), r#"{"role":"user","content":" hi, and a note "}"#);
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

//! Readers of logs: bytes in, [`Record`]s out.
//!
//! A log is recognised by its content, line by line; compressed ones are read as they are. What cannot be read is
//! counted and named with its line. Memory holds one line at a time, and a line has a limit.

mod claude_code;
mod codex;
mod compose;
mod har;
mod ledger;
mod lines;
mod litellm;
mod otel;
pub mod state_db;
mod wrapped;

use std::io::Read;
use std::ops::Range;

pub use lines::LINE_MAX;
pub(crate) use wrapped::time_of;

use crate::audit::json::{self, Fields};
use crate::audit::judge::{Auditor, BodyFault};
use crate::audit::record::Record;
use lines::{Piece, Pieces};

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Raw request bodies, one a line.
    Bodies,
    /// Requests wrapped by a gateway, one a line.
    Wrapped,
    /// Token counts without bodies.
    UsageOnly,
    /// HTTP archive.
    Har,
    /// Transcript of Claude Code.
    ClaudeCode,
    /// Rollout of Codex CLI.
    Codex,
    /// Log of a LiteLLM gateway.
    LiteLlm,
    /// Export of Langfuse.
    Langfuse,
    /// OpenTelemetry spans with `gen_ai` attributes.
    Otel,
    /// ShareGPT data.
    ShareGpt,
    /// A ledger of this lab.
    Ledger,
    /// A `state.db` of Hermes.
    StateDb,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 12] = [
        Self::Bodies,
        Self::Wrapped,
        Self::UsageOnly,
        Self::Har,
        Self::ClaudeCode,
        Self::Codex,
        Self::LiteLlm,
        Self::Langfuse,
        Self::Otel,
        Self::ShareGpt,
        Self::Ledger,
        Self::StateDb,
    ];

    /// The word for `--format`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Wrapped => "wrapped",
            Self::UsageOnly => "usage",
            Self::Har => "har",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::LiteLlm => "litellm",
            Self::Langfuse => "langfuse",
            Self::Otel => "otel",
            Self::ShareGpt => "sharegpt",
            Self::Ledger => "ledger",
            Self::StateDb => "state-db",
        }
    }

    /// What a log of this format cannot show, and so is not judged.
    pub fn blind(self) -> &'static str {
        match self {
            Self::Bodies => "no times and no token counts: lifetimes and the provider's part are not judged",
            Self::UsageOnly => "no bodies: which bytes changed is not judged",
            Self::ClaudeCode => {
                "tools, system prompt and the bytes as sent are not in a transcript: causes are inferred from token counts"
            }
            Self::Codex => {
                "the bytes as sent are not in a rollout: causes are inferred from token counts; reads are best effort"
            }
            Self::LiteLlm => "the gateway may have changed the body before sending it",
            Self::Langfuse => "input as the tracer saw it, which need not be the bytes as sent",
            Self::Otel => "messages as the tracer saw them, which need not be the bytes as sent",
            Self::ShareGpt => "conversations without requests: only their histories are judged",
            Self::Wrapped | Self::Har | Self::Ledger => "",
            Self::StateDb => "the store holds what was said, not what was sent: only histories are judged",
        }
    }

    /// The format of a name.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Line or element, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// What reading a log gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Name of the source.
    pub source: String,
    /// Its format; `None` when nothing was recognised.
    pub format: Option<Format>,
    /// Lines or elements.
    pub pieces: u64,
    /// Bytes, decompressed.
    pub bytes: u64,
    /// Lines that could not be read, the first ones.
    pub skipped: Vec<Skipped>,
    /// How many they are.
    pub skipped_count: u64,
    /// Lines that are no requests, such as other traffic.
    pub other: u64,
}

/// Skipped lines that are shown.
const SHOWN_MAX: usize = 20;

impl Reading {
    fn skip(&mut self, line: u64, reason: impl Into<String>) {
        self.skipped_count += 1;
        if self.skipped.len() < SHOWN_MAX {
            self.skipped.push(Skipped { line, reason: reason.into() });
        }
    }
}

/// Where readers put their records.
pub(crate) struct Sink<'a> {
    auditor: &'a mut Auditor,
    reading: &'a mut Reading,
}

impl Sink<'_> {
    /// Gives one record to the audit; `line` is what its body span points into.
    fn put(&mut self, record: &Record, line: &[u8]) {
        match self.auditor.take(record, line) {
            Ok(()) => {}
            Err(BodyFault::NothingToJudge) => self.reading.other += 1,
            Err(fault) => self.reading.skip(record.line, fault.to_string()),
        }
    }

    fn skip(&mut self, line: u64, reason: impl Into<String>) {
        self.reading.skip(line, reason);
    }

    fn other(&mut self) {
        self.reading.other += 1;
    }
}

/// A reader of one format.
trait Reader {
    /// One line or element.
    fn piece(&mut self, line: u64, bytes: &[u8], sink: &mut Sink<'_>);
    /// The end of the log.
    fn end(&mut self, _: &mut Sink<'_>) {}
}

/// A log being read: give it bytes as they come.
pub struct LogReader {
    reader: Option<(Format, Box<dyn Reader>)>,
    forced: Option<Format>,
    /// What the log has been so far.
    pub reading: Reading,
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("reading", &self.reading).finish_non_exhaustive()
    }
}

impl LogReader {
    /// A reader that recognises the format, or is told.
    pub fn new(source: &str, forced: Option<Format>) -> Self {
        let reading = Reading { source: source.to_owned(), ..Reading::default() };
        Self { reader: None, forced, reading }
    }

    /// One line or element.
    pub fn piece(&mut self, line: u64, bytes: &[u8], auditor: &mut Auditor) {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let start = json::skip_space(bytes, 0);
        if start == bytes.len() {
            return;
        }
        self.reading.pieces += 1;
        if let Err(error) = std::str::from_utf8(bytes) {
            self.reading.skip(line, format!("not UTF-8 from byte {} on", error.valid_up_to()));
            return;
        }
        if self.reader.is_none() {
            let Some(format) = self.forced.or_else(|| recognise(bytes)) else {
                let reason = match json::skip_value(bytes, start) {
                    Ok(_) => "JSON of no known format".to_owned(),
                    Err(fault) => fault.to_string(),
                };
                self.reading.skip(line, reason);
                return;
            };
            self.reading.format = Some(format);
            self.reader = Some((format, reader_of(format)));
        }
        if let Some((_, reader)) = &mut self.reader {
            let mut sink = Sink { auditor, reading: &mut self.reading };
            reader.piece(line, bytes, &mut sink);
        }
    }

    /// A line that was too long, or the like.
    pub fn fault(&mut self, line: u64, reason: &str) {
        self.reading.pieces += 1;
        self.reading.skip(line, reason);
    }

    /// The end of the log.
    pub fn end(mut self, auditor: &mut Auditor) -> Reading {
        if let Some((_, mut reader)) = self.reader.take() {
            reader.end(&mut Sink { auditor, reading: &mut self.reading });
        }
        self.reading
    }
}

/// Reads a whole log.
///
/// # Errors
/// When the source itself cannot be read.
pub fn read(
    source: &str,
    input: Box<dyn Read>,
    forced: Option<Format>,
    auditor: &mut Auditor,
) -> std::io::Result<Reading> {
    let mut log = LogReader::new(source, forced);
    let mut pieces = Pieces::open(input)?;
    while let Some(piece) = pieces.next()? {
        match piece {
            Piece::Whole(line, bytes) => log.piece(line, bytes, auditor),
            Piece::Fault(line, reason) => log.fault(line, &reason),
        }
    }
    log.reading.bytes = pieces.bytes();
    Ok(log.end(auditor))
}

fn reader_of(format: Format) -> Box<dyn Reader> {
    match format {
        // A database is no stream of lines; whoever forces it on one gets faults.
        Format::Bodies | Format::Wrapped | Format::UsageOnly | Format::StateDb => Box::new(wrapped::Wrapped),
        Format::Har => Box::new(har::Har),
        Format::ClaudeCode => Box::<claude_code::ClaudeCode>::default(),
        Format::Codex => Box::<codex::Codex>::default(),
        Format::LiteLlm => Box::new(litellm::LiteLlm),
        Format::Langfuse => Box::new(litellm::Langfuse),
        Format::Otel => Box::new(otel::Otel),
        Format::ShareGpt => Box::new(compose::ShareGpt),
        Format::Ledger => Box::<ledger::LedgerReader>::default(),
    }
}

/// Top-level keys of a JSON object.
fn keys(bytes: &[u8]) -> Option<Vec<(&[u8], Range<usize>)>> {
    let mut fields = Fields::of(bytes, json::skip_space(bytes, 0)).ok()?;
    let mut found = Vec::new();
    while let Some(field) = fields.next_field().ok()? {
        found.push(field);
    }
    Some(found)
}

/// The format that one line or element shows.
pub fn recognise(bytes: &[u8]) -> Option<Format> {
    let keys = keys(bytes)?;
    let has = |name: &str| keys.iter().any(|(key, _)| *key == name.as_bytes());
    let value =
        |name: &str| keys.iter().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value.clone());
    if has("ledger") && has("lab") {
        return Some(Format::Ledger);
    }
    if has("resourceSpans")
        || has("scopeSpans")
        || has("attributes") && (has("spanId") || has("span_id") || has("name"))
    {
        return Some(Format::Otel);
    }
    if has("payload") && has("type") {
        return Some(Format::Codex);
    }
    let own = has("sessionId") && !has("traceId") && !has("request");
    if has("type") && (own || has("uuid") || has("leafUuid") || has("parentUuid")) {
        return Some(Format::ClaudeCode);
    }
    if let Some(request) = value("request")
        && bytes[request.start] == b'{'
        && json::field(bytes, &request, "method").is_some()
        && json::field(bytes, &request, "url").is_some()
    {
        return Some(Format::Har);
    }
    if has("call_type") || has("proxy_server_request") || has("model_group") && has("startTime") {
        return Some(Format::LiteLlm);
    }
    let traced = has("traceId") || has("trace_id");
    if traced && (has("usageDetails") || has("usage_details") || has("input") && has("output")) {
        return Some(Format::Langfuse);
    }
    if has("conversations") && !has("model") {
        return Some(Format::ShareGpt);
    }
    // The header of a cassette stands before its requests.
    if has("cassette") && has("upstream") {
        return Some(Format::Wrapped);
    }
    if wrapped::REQUEST.iter().any(|name| has(name)) {
        return Some(Format::Wrapped);
    }
    if has("messages") || has("contents") || has("input") && (has("model") || has("instructions")) {
        return Some(Format::Bodies);
    }
    if has("usage") || has("response") {
        return Some(Format::UsageOnly);
    }
    None
}

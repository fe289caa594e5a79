//! One request as a reader hands it over, and the judgement that the audit gives back.

use std::ops::Range;

use serde_json::{Value, json};

use crate::audit::prompt::Shape;
use crate::audit::text_kind::TextKind;
use crate::audit::usage::Usage;
use crate::audit::words::{Cause, Evidence, Place, Verdict};
use crate::world::Millis;

/// What a transcript shows of a request beside its token counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grown {
    /// Blocks that came since the request before, calls included.
    pub blocks: usize,
    /// Bytes that came.
    pub bytes: u64,
    /// Results among them.
    pub answers: usize,
    /// The log itself says that the history was compacted.
    pub compacted: bool,
}

/// One request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Line or element of the source, from 1.
    pub line: u64,
    /// Start, in milliseconds since the Unix epoch.
    pub at: Option<Millis>,
    /// End of the answer.
    pub done_at: Option<Millis>,
    /// Shape that the log names.
    pub shape: Option<Shape>,
    /// Conversation that the log names.
    pub conversation: Option<String>,
    /// Part that the request plays: `main`, `summary`, `title`.
    pub role: Option<String>,
    /// Event before it: `after_compaction`.
    pub event: Option<String>,
    /// Where it was sent to.
    pub route: Option<String>,
    /// Model, where the body does not name it.
    pub model: Option<String>,
    /// Place of the body in the line; empty when the log holds none.
    pub body: Range<usize>,
    /// Body that is not a part of the line.
    pub own_body: Option<Vec<u8>>,
    /// Token counts of the answer.
    pub usage: Option<Usage>,
    /// The answer was an error.
    pub failed: bool,
    /// The body is what was said, not what was sent: only its history is judged.
    pub said_only: bool,
    /// What came since the request before, in transcripts.
    pub grown: Option<Grown>,
}

/// Tokens of one request, counted or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of the whole prompt.
    pub prompt: u64,
    /// Of the prefix shared with the request before.
    pub matched: u64,
    /// Readable but not read.
    pub lost: u64,
    /// Read: as billed, else as predicted.
    pub read: u64,
    /// Written: as billed, else as predicted.
    pub written: u64,
    /// Neither.
    pub uncached: u64,
    /// Read as predicted from the bytes.
    pub predicted_read: u64,
    /// True when a provider counted them.
    pub billed: bool,
}

/// A further fact about a finding, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Cause that it explains.
    pub cause: Cause,
    /// Where.
    pub level: Option<Place>,
    /// Pointer.
    pub pointer: String,
    /// Every pointer.
    pub pointers: Vec<String>,
    /// First differing byte of the segment's text.
    pub byte: Option<u64>,
    /// Kind of text.
    pub kind: TextKind,
    /// One sentence.
    pub what: String,
    /// Before, cut around the difference.
    pub before: String,
    /// After, cut around the difference.
    pub after: String,
    /// Names, ids, fields.
    pub names: Vec<String>,
    /// From where to where a block moved.
    pub moved: Option<(String, String)>,
    /// How it is known.
    pub evidence: Evidence,
}

/// A fault of a history: what a provider refuses or a model stumbles over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFault {
    /// The word: `orphan_result`, `orphan_use`, …
    pub kind: &'static str,
    /// Where.
    pub pointer: String,
    /// Id that it is about.
    pub id: String,
}

/// The judgement of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Place in the log, from 0.
    pub index: usize,
    /// Line or element, from 1.
    pub line: u64,
    /// Number of its conversation.
    pub conversation: usize,
    /// Start.
    pub at: Option<Millis>,
    /// Verdict.
    pub verdict: Verdict,
    /// Decisive cause.
    pub cause: Cause,
    /// Causes behind it.
    pub latent: Vec<Cause>,
    /// Place of the decisive cause.
    pub level: Option<Place>,
    /// Pointer of the first differing segment.
    pub pointer: String,
    /// First differing byte of its text.
    pub byte: Option<u64>,
    /// True when the segments of the request before are not a prefix of its own.
    pub broken: bool,
    /// True when the break is allowed.
    pub planned: bool,
    /// Index of the request that it extends or breaks; `None` for a first one.
    pub base: Option<usize>,
    /// Tokens.
    pub tokens: Tokens,
    /// Dollars lost, where the price is known.
    pub money_lost: Option<f64>,
    /// Dollars paid for the prompt, where price and usage are known.
    pub money: Option<f64>,
    /// How the verdict is known.
    pub evidence: Evidence,
    /// Other causes that fit as well, where the log does not decide.
    pub candidates: Vec<Cause>,
    /// What differs.
    pub details: Vec<Detail>,
    /// Faults of the history that appear here for the first time.
    pub faults: Vec<HistoryFault>,
    /// Sentences about disagreements between prediction and bill.
    pub notes: Vec<String>,
}

impl Judged {
    /// A judgement that nothing is wrong.
    pub fn fine(index: usize, line: u64, conversation: usize, at: Option<Millis>) -> Self {
        Self {
            index,
            line,
            conversation,
            at,
            verdict: Verdict::Extends,
            cause: Cause::None,
            latent: Vec::new(),
            level: None,
            pointer: String::new(),
            byte: None,
            broken: false,
            planned: false,
            base: None,
            tokens: Tokens::default(),
            money_lost: None,
            money: None,
            evidence: Evidence::BytesSeen,
            candidates: Vec::new(),
            details: Vec::new(),
            faults: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// True when somebody should look at it.
    pub fn finding(&self) -> bool {
        !self.faults.is_empty()
            || self.verdict == Verdict::Refused
            || self.verdict == Verdict::UnplannedBreak
            || self.latent.iter().any(|cause| !matches!(cause, Cause::TtlExpired))
            || !matches!(
                self.cause,
                Cause::None
                    | Cause::ColdStart
                    | Cause::TtlExpired
                    | Cause::PlannedCompaction
                    | Cause::Unexplained
            )
    }

    /// As one JSON object.
    pub fn to_json(&self, conversation: &str, mask: &dyn Fn(&str) -> Value) -> Value {
        let tokens = &self.tokens;
        json!({
            "index": self.index, "line": self.line, "conversation": conversation, "at": self.at,
            "verdict": self.verdict, "cause": self.cause, "latent": self.latent,
            "diagnosis": self.diagnosis(),
            "level": self.level.map(Place::word), "pointer": (!self.pointer.is_empty()).then_some(&self.pointer),
            "byte": self.byte, "broken": self.broken, "planned": self.planned, "base": self.base,
            "tokens": {
                "prompt": tokens.prompt, "matched": tokens.matched, "lost": tokens.lost, "read": tokens.read,
                "written": tokens.written, "uncached": tokens.uncached,
                "predicted_read": tokens.predicted_read, "billed": tokens.billed,
            },
            "money_lost": self.money_lost, "evidence": self.evidence.word(),
            "candidates": self.candidates,
            "mend": self.cause.mend(),
            "findings": self.details.iter().map(|detail| detail.to_json(mask)).collect::<Vec<_>>(),
            "history": self.faults.iter().map(|fault| json!({
                "kind": fault.kind, "pointer": fault.pointer, "id": mask(&fault.id),
            })).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// The provider's word for the decisive cause; `null` where there is nothing to diagnose.
    pub fn diagnosis(&self) -> Option<&'static str> {
        match (self.cause, self.level) {
            (Cause::None, _) => None,
            (Cause::ColdStart, _) => Some("previous_message_not_found"),
            (cause, Some(level)) if cause.diagnosis().ends_with("_changed") => match level {
                Place::Tools => Some("tools_changed"),
                Place::System => Some("system_changed"),
                Place::Messages => Some("messages_changed"),
                Place::Request | Place::All => Some(cause.diagnosis()),
            },
            (cause, _) => Some(cause.diagnosis()),
        }
    }
}

impl Detail {
    fn to_json(&self, mask: &dyn Fn(&str) -> Value) -> Value {
        json!({
            "cause": self.cause, "level": self.level.map(Place::word), "pointer": self.pointer,
            "pointers": self.pointers, "byte": self.byte, "kind": self.kind.word(), "what": mask(&self.what),
            "before": mask(&self.before), "after": mask(&self.after),
            "names": self.names.iter().map(|name| mask(name)).collect::<Vec<_>>(),
            "moved": self.moved.as_ref().map(|(from, to)| json!({"from": from, "to": to})),
            "evidence": self.evidence.word(), "mend": self.cause.mend(),
        })
    }
}

//! A reply before it is put into the shape of a protocol.

use crate::audit::prompt::{Prompt, hash_of_id};
use crate::cache::usage::Parts;
use crate::ledger::Lane;
use crate::model::Finish;
use crate::model::placed::Due;
use crate::scenario::ReplySpec;
use crate::wire::ToolCall;

/// A reply, its ids, and what it cost.
#[derive(Debug, Clone)]
pub(super) struct Spoken {
    /// Lane and place, the middle of every id.
    pub(super) place: String,
    /// The model that was asked for.
    pub(super) model: String,
    /// When, in seconds since the Unix epoch.
    pub(super) created: i64,
    /// Visible text.
    pub(super) text: String,
    /// Reasoning beside it.
    pub(super) reasoning: Option<String>,
    /// Tool calls; ids without the prefix of a protocol.
    pub(super) calls: Vec<ToolCall>,
    /// Why it ends.
    pub(super) finish: Finish,
    /// Tokens as the protocol reports them.
    pub(super) usage: Parts,
}

/// Bytes of text in one piece of a stream; cut at characters.
const PIECE: usize = 24;

impl Spoken {
    /// What a line of the script says.
    pub(super) fn of(due: &Due, reply: &ReplySpec, id_prefix: &str, prompt: &Prompt) -> Self {
        let place = unused(&due.id(), id_prefix, prompt);
        let calls: Vec<ToolCall> = reply
            .all_calls()
            .into_iter()
            .enumerate()
            .map(|(nth, call)| {
                let id = call.id.unwrap_or_else(|| format!("{id_prefix}{place}-c{nth}"));
                let arguments = call.raw.unwrap_or_else(|| {
                    serde_json::to_string(&call.args).expect("a table of a scenario has text keys only")
                });
                ToolCall::new(id, call.tool, arguments)
            })
            .collect();
        let finish = match reply.finish.as_deref() {
            Some("length") => Finish::Length,
            Some("tool_calls") => Finish::ToolCalls,
            Some(_) => Finish::Stop,
            None if calls.is_empty() => Finish::Stop,
            None => Finish::ToolCalls,
        };
        Self {
            place,
            model: String::new(),
            created: 0,
            text: reply.say.clone().unwrap_or_default(),
            reasoning: reply.reasoning.clone(),
            calls,
            finish,
            usage: Parts::default(),
        }
    }

    /// Tokens that it takes, estimated.
    pub(super) fn tokens(&self) -> u64 {
        let count = crate::cache::tokens::estimate;
        count(&self.text)
            + self.reasoning.as_deref().map_or(0, count)
            + self.calls.iter().map(|call| count(&call.name) + count(&call.arguments)).sum::<u64>()
    }
}

/// The place with a number behind it when a conversation comes to it a second time: no id is used twice.
fn unused(place: &str, id_prefix: &str, prompt: &Prompt) -> String {
    let taken = |place: &str| {
        let id = hash_of_id(&format!("{id_prefix}{place}-c0"));
        prompt.ids.iter().any(|fact| fact.id == id)
    };
    let mut found = place.to_owned();
    let mut number = 1;
    while taken(&found) {
        number += 1;
        found = format!("{place}-x{number}");
    }
    found
}

/// What stands in for lines that a scenario need not write.
pub(super) fn unscripted(due: &Due, messages: usize) -> Option<String> {
    match due.lane {
        Lane::Title => Some("A session of the lab".to_owned()),
        Lane::Summary => Some(format!("Summary of the conversation so far ({messages} messages).")),
        Lane::Review => Some("Nothing to save.".to_owned()),
        _ => None,
    }
}

/// A text in pieces, as a stream brings it.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = PIECE.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    })
}

/// One event of a stream.
pub(super) fn event(name: Option<&str>, data: &serde_json::Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

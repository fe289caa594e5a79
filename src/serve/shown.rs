//! A request as the script sees it.

use serde_json::Value;

use crate::audit::json;
use crate::audit::prompt::{Kind, Piece, Prompt, Seg, Shape, Speaker};
use crate::model::placed::{Due, Shown, Who};
use crate::model::{Ask, Sent};
use crate::serve::learning::name_of;
use crate::wire::{Level, Row, ToolCall};

/// A prompt with its pieces.
#[derive(Debug)]
pub(super) struct Showing<'a> {
    prompt: &'a Prompt,
    pieces: &'a [Piece],
    first: usize,
}

impl<'a> Showing<'a> {
    pub(super) fn new(prompt: &'a Prompt, pieces: &'a [Piece]) -> Self {
        let first = pieces.partition_point(|piece| piece.level < Level::Messages);
        Self { prompt, pieces, first }
    }

    fn segs(&self, at: usize) -> &'a [Seg] {
        let piece = &self.pieces[self.first + at];
        &self.prompt.segs[piece.first..piece.first + piece.count]
    }
}

impl Shown for Showing<'_> {
    fn len(&self) -> usize {
        self.pieces.len() - self.first
    }

    fn who(&self, at: usize) -> Who {
        let segs = self.segs(at);
        let kind = segs.first().map_or(Kind::Other, |seg| seg.kind);
        match segs.first().map_or(Speaker::Unknown, |seg| seg.speaker) {
            // Results come back inside messages of the user.
            Speaker::User if segs.iter().all(|seg| seg.kind == Kind::Answer) => Who::Tool,
            Speaker::User => Who::User,
            Speaker::Assistant => Who::Assistant,
            Speaker::Tool => Who::Tool,
            Speaker::Unknown if self.prompt.shape == Shape::Responses => match kind {
                Kind::Answer => Who::Tool,
                // Calls and reasoning of the Responses interface name no speaker.
                _ => Who::Assistant,
            },
            Speaker::System | Speaker::Nobody | Speaker::Unknown => Who::System,
        }
    }

    fn key(&self, at: usize) -> u128 {
        self.pieces[self.first + at].hash
    }

    fn text(&self, at: usize) -> String {
        let (body, piece) = (&self.prompt.body, &self.pieces[self.first + at]);
        let lone = self.prompt.element_span(piece).filter(|span| body[span.start] == b'"');
        let Some(content) = lone.or_else(|| self.prompt.piece_field(piece, "content")) else {
            return String::new();
        };
        if let Some(text) = json::text(body, &content) {
            return text.into_owned();
        }
        let Ok((parts, _)) = json::elements(body, content.start) else { return String::new() };
        let texts = parts.iter().filter_map(|part| {
            let text = json::field(body, part, "text")?;
            json::text(body, &text).map(std::borrow::Cow::into_owned)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    fn calls(&self, at: usize) -> Vec<String> {
        call_ids(self.prompt, &self.pieces[self.first + at])
    }

    fn system_key(&self) -> u128 {
        let system = self.prompt.segs.iter().filter(|seg| seg.level == Level::System);
        // A lone part with the words of a message has another key than the message.
        system.fold(1, |key: u128, seg| key.rotate_left(7) ^ seg.hash)
    }

    fn system(&self) -> String {
        let system = (0..self.prompt.segs.len()).filter(|at| self.prompt.segs[*at].level == Level::System);
        system.map(|at| self.prompt.text(at)).collect::<Vec<_>>().join("\n")
    }

    fn has_tools(&self) -> bool {
        self.prompt.segs.first().is_some_and(|seg| seg.level == Level::Tools)
    }
}

/// Ids of the calls that a message makes.
fn call_ids(prompt: &Prompt, piece: &Piece) -> Vec<String> {
    let segs = &prompt.segs[piece.first..piece.first + piece.count];
    if segs.iter().all(|seg| seg.kind != Kind::Call) {
        return Vec::new();
    }
    let body = &prompt.body;
    let text = |object: &std::ops::Range<usize>, name: &str| {
        let value = json::field(body, object, name)?;
        json::text(body, &value).map(std::borrow::Cow::into_owned)
    };
    let list = match prompt.shape {
        Shape::Responses => {
            let span = prompt.element_span(piece);
            return span.iter().filter_map(|span| text(span, "call_id")).collect();
        }
        Shape::Anthropic => prompt.piece_field(piece, "content"),
        Shape::Chat | Shape::Gemini => prompt.piece_field(piece, "tool_calls"),
    };
    let items = list.and_then(|list| json::elements(body, list.start).ok());
    items.map_or_else(Vec::new, |(items, _)| items.iter().filter_map(|item| text(item, "id")).collect())
}

/// A request as the rules of a scenario see it: conversation rows, names of tools.
pub(super) struct RuleAsk {
    tools: Vec<String>,
    system: String,
    rows: Vec<Row>,
}

impl RuleAsk {
    pub(super) fn of(prompt: &Prompt, pieces: &[Piece]) -> Self {
        let showing = Showing::new(prompt, pieces);
        let system = showing.system();
        let mut found = Self { tools: Vec::new(), system, rows: Vec::new() };
        for piece in pieces {
            let text = prompt.piece_text(piece);
            let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
            match piece.level {
                Level::Tools => found.tools.extend(name_of(&value).map(|name| name.to_string())),
                Level::System => {}
                Level::Messages => rows(&value, &mut found.rows),
            }
        }
        found
    }

    pub(super) fn ask<'a>(&'a self, due: &'a Due) -> Ask<'a> {
        Ask {
            lane: due.lane,
            session: &due.session,
            turn: due.turn,
            tools: &self.tools,
            system: &self.system,
            rows: &self.rows,
            sent: Sent::default(),
        }
    }
}

/// A message of any protocol as rows of a conversation.
fn rows(message: &Value, out: &mut Vec<Row>) {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match message["type"].as_str() {
        Some("function_call") => {
            let call =
                ToolCall::new(text(message, "call_id"), text(message, "name"), text(message, "arguments"));
            out.push(Row::calls("", vec![call]));
            return;
        }
        Some("function_call_output") => {
            out.push(Row::result(text(message, "call_id"), "", words(&message["output"])));
            return;
        }
        _ => {}
    }
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let of_type = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    for result in of_type("tool_result") {
        out.push(Row::result(text(result, "tool_use_id"), "", words(&result["content"])));
    }
    let calls: Vec<ToolCall> = of_type("tool_use")
        .map(|call| ToolCall::new(text(call, "id"), text(call, "name"), call["input"].to_string()))
        .collect();
    if !calls.is_empty() {
        out.push(Row::calls(words(&message["content"]), calls));
    } else if blocks.is_empty() || blocks.iter().any(|block| block["type"] != "tool_result") {
        out.push(Row::from_json(message));
    }
}

/// All text in a content of any protocol.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

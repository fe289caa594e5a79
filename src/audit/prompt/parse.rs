//! Taking bodies apart: spans first, and only what was not seen before in full.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_128;

use crate::audit::json::{self, Fields, JsonFault};
use crate::audit::prompt::{
    ByHash, IdFact, Kind, Param, Part, Prompt, Seg, Shape, Speaker, Turn, hash_of_id,
};
use crate::cache::Ttl;
use crate::wire::Level;

/// What is remembered of one element.
#[derive(Debug)]
struct Element {
    parts: Vec<Seg>,
    ids: Vec<IdFact>,
    /// Something of a shape that no provider takes, in words.
    odd: Option<&'static str>,
}

/// How many elements a generation of the memory holds.
const REMEMBERED: usize = 1 << 15;

/// Takes bodies apart, remembering the elements that it has seen.
#[derive(Debug, Default)]
pub struct Parser {
    young: ByHash<Rc<Element>>,
    old: ByHash<Rc<Element>>,
    /// A string equals one text block.
    fold: bool,
    scratch: Vec<u8>,
}

/// Spans of the parts of a body that make the prefix.
#[derive(Debug, Default)]
struct Outline {
    tools: Option<Range<usize>>,
    system: Option<Range<usize>>,
    messages: Option<Range<usize>>,
    auto_mark: Option<Ttl>,
    model: String,
    params: Vec<Param>,
    continues: bool,
    route_key: String,
    has_max_tokens: bool,
    fields: [&'static str; 3],
}

/// Names under which Gemini holds its function declarations.
pub(super) const DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// Parameters that belong to the key of message entries (provider-caching 2.4), beside those of nested objects.
const PARAMS: &[&str] = &[
    "tool_choice",
    "thinking",
    "disable_parallel_tool_use",
    "parallel_tool_calls",
    "reasoning_effort",
    "reasoning",
    "response_format",
    "text",
    "verbosity",
    "speed",
    "output_config",
    "toolConfig",
];

impl Parser {
    /// A parser; with `fold`, a string and one text block are the same.
    pub fn new(fold: bool) -> Self {
        Self { fold, ..Self::default() }
    }

    /// Takes one body apart.
    ///
    /// # Errors
    /// When the bytes are no JSON object.
    pub fn parse(&mut self, body: &[u8], shape: Option<Shape>) -> Result<Option<Prompt>, JsonFault> {
        let start = json::skip_space(body, 0);
        let outline = outline(body, start)?;
        let Some(shape) = shape.filter(|shape| fits(*shape, &outline)).or_else(|| guess(body, &outline))
        else {
            return Ok(None);
        };
        let mut prompt = Prompt {
            shape,
            model: outline.model,
            segs: Vec::new(),
            chain: Vec::new(),
            keys: Vec::new(),
            sizes: Vec::new(),
            marks: Vec::new(),
            params: outline.params,
            turns: Vec::new(),
            ids: Vec::new(),
            continues: outline.continues,
            route_key: outline.route_key,
            body: Rc::from(body),
            fields: outline.fields,
            elements: [Vec::new(), Vec::new(), Vec::new()],
            spans: std::array::from_fn(|_| OnceCell::new()),
        };
        if let Some(tools) = &outline.tools {
            self.array(&mut prompt, body, tools, Level::Tools)?;
        }
        if let Some(system) = &outline.system {
            self.array(&mut prompt, body, system, Level::System)?;
        }
        if let Some(messages) = &outline.messages {
            self.array(&mut prompt, body, messages, Level::Messages)?;
        }
        lead(&mut prompt);
        chain(&mut prompt);
        marks(&mut prompt, outline.auto_mark);
        Ok(Some(prompt))
    }

    fn array(
        &mut self,
        prompt: &mut Prompt,
        body: &[u8],
        span: &Range<usize>,
        level: Level,
    ) -> Result<(), JsonFault> {
        if body[span.start] != b'[' {
            if body[span.start] == b'n' {
                return Ok(());
            }
            let element = self.element(body, span, level, prompt.shape);
            append(prompt, &element, 0, true);
            prompt.elements[level as usize] = vec![span.clone()];
            return Ok(());
        }
        let (items, _) = json::elements(body, span.start)?;
        for (index, item) in items.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if level == Level::Tools
                && prompt.shape == Shape::Gemini
                && self.declarations(prompt, body, item, index)
            {
                continue;
            }
            let element = self.element(body, item, level, prompt.shape);
            append(prompt, &element, index, false);
        }
        prompt.elements[level as usize] = items;
        Ok(())
    }

    /// Gemini: one declaration is one segment. False when the tool declares no functions.
    fn declarations(&mut self, prompt: &mut Prompt, body: &[u8], tool: &Range<usize>, index: u32) -> bool {
        let list = DECLARATIONS.iter().find_map(|name| json::field(body, tool, name));
        let Some((items, _)) = list.and_then(|list| json::elements(body, list.start).ok()) else {
            return false;
        };
        for (place, item) in items.iter().enumerate() {
            let element = self.element(body, item, Level::Tools, prompt.shape);
            let part = Part::Block(u32::try_from(place).unwrap_or(u32::MAX));
            prompt.segs.extend(element.parts.iter().map(|seg| Seg { element: index, part, ..*seg }));
        }
        true
    }

    fn element(&mut self, body: &[u8], span: &Range<usize>, level: Level, shape: Shape) -> Rc<Element> {
        let raw = xxh3_128(&body[span.clone()]);
        let key = raw ^ ((level as u128 + 1) << 8 | (shape as u128 + 1));
        if let Some(found) = self.young.get(&key) {
            return found.clone();
        }
        if let Some(found) = self.old.get(&key).cloned() {
            self.remember(key, found.clone());
            return found;
        }
        let element = Rc::new(self.look(body, span, level, shape));
        self.remember(key, element.clone());
        element
    }

    fn remember(&mut self, key: u128, element: Rc<Element>) {
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, element);
    }

    fn look(&mut self, body: &[u8], span: &Range<usize>, level: Level, shape: Shape) -> Element {
        match (level, shape) {
            (Level::Messages, Shape::Anthropic) => self.message_blocks(body, span),
            (Level::Messages, _) => self.message_whole(body, span, shape),
            (Level::System, _) => {
                let mut seg = self.seg(body, span, Level::System, Speaker::System, Part::Whole);
                seg.kind = Kind::Text;
                Element { parts: vec![seg], ids: Vec::new(), odd: None }
            }
            (Level::Tools, _) => {
                let mut seg = self.seg(body, span, Level::Tools, Speaker::Nobody, Part::Whole);
                seg.kind = Kind::Tool;
                Element { parts: vec![seg], ids: Vec::new(), odd: None }
            }
        }
    }

    /// Anthropic: one content block is one segment.
    fn message_blocks(&mut self, body: &[u8], span: &Range<usize>) -> Element {
        let speaker = speaker_of(body, span);
        let mut element = Element { parts: Vec::new(), ids: Vec::new(), odd: None };
        let content = json::field(body, span, "content");
        match content {
            Some(content) if body[content.start] == b'[' => {
                let (items, _) = json::elements(body, content.start).unwrap_or_default();
                for (index, item) in items.iter().enumerate() {
                    let part = Part::Block(u32::try_from(index).unwrap_or(u32::MAX));
                    let seg = self.block(body, item, speaker, part);
                    if seg.id != 0 {
                        element.ids.push(IdFact { id: seg.id, answers: seg.kind == Kind::Answer });
                    }
                    element.parts.push(seg);
                }
                if items.is_empty() {
                    element.parts.push(self.seg(body, span, Level::Messages, speaker, Part::Whole));
                }
            }
            Some(content) if body[content.start] == b'"' => {
                element.parts.push(self.seg(body, &content, Level::Messages, speaker, Part::Content));
            }
            _ => {
                element.odd = Some("a message without content");
                element.parts.push(self.seg(body, span, Level::Messages, speaker, Part::Whole));
            }
        }
        element
    }

    fn block(&mut self, body: &[u8], span: &Range<usize>, speaker: Speaker, part: Part) -> Seg {
        let mut seg = self.seg(body, span, Level::Messages, speaker, part);
        let kind = json::field(body, span, "type").and_then(|kind| json::text(body, &kind));
        let id_field = match kind.as_deref() {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                seg.kind = Kind::Call;
                "id"
            }
            Some("tool_result" | "mcp_tool_result") => {
                seg.kind = Kind::Answer;
                "tool_use_id"
            }
            Some("thinking" | "redacted_thinking") => {
                seg.kind = Kind::Thinking;
                seg.unmarkable = true;
                return seg;
            }
            Some("image") => {
                seg.kind = Kind::Image;
                return seg;
            }
            Some("text") => {
                seg.kind = Kind::Text;
                return seg;
            }
            _ => return seg,
        };
        // Calls that the provider runs itself are answered inside the same message.
        if matches!(kind.as_deref(), Some("tool_use" | "tool_result")) {
            seg.id = id_hash(body, span, id_field);
        }
        seg
    }

    /// Everybody else: one message is one segment.
    fn message_whole(&mut self, body: &[u8], span: &Range<usize>, shape: Shape) -> Element {
        let mut speaker = speaker_of(body, span);
        let kind = json::field(body, span, "type").and_then(|kind| json::text(body, &kind));
        let mut ids = Vec::new();
        let mut what = Kind::Text;
        match kind.as_deref() {
            Some("reasoning") => (speaker, what) = (Speaker::Assistant, Kind::Thinking),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                (speaker, what) = (Speaker::Assistant, Kind::Call);
                ids.push(IdFact { id: id_hash(body, span, "call_id"), answers: false });
            }
            Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
                (speaker, what) = (Speaker::Tool, Kind::Answer);
                ids.push(IdFact { id: id_hash(body, span, "call_id"), answers: true });
            }
            _ => {}
        }
        if shape == Shape::Chat {
            if speaker == Speaker::Tool {
                what = Kind::Answer;
                ids.push(IdFact { id: id_hash(body, span, "tool_call_id"), answers: true });
            }
            for call in calls_of(body, span) {
                what = Kind::Call;
                ids.push(IdFact { id: id_hash(body, &call, "id"), answers: false });
            }
        }
        if shape == Shape::Gemini {
            let raw = &body[span.clone()];
            let has = |name: &str| memchr::memmem::find(raw, name.as_bytes()).is_some();
            if has("\"functionResponse\"") || has("\"function_response\"") {
                what = Kind::Answer;
            } else if has("\"functionCall\"") || has("\"function_call\"") {
                what = Kind::Call;
            }
        }
        if body[span.start] == b'"' {
            speaker = Speaker::User;
        }
        let mut seg = self.seg(body, span, Level::Messages, speaker, Part::Whole);
        seg.kind = what;
        seg.id = ids.first().map_or(0, |fact| fact.id);
        if seg.mark.is_none() {
            seg.mark = parts_mark(body, span);
        }
        Element { parts: vec![seg], ids, odd: None }
    }

    /// A segment over a span: hash of its compact bytes, size, marker.
    fn seg(&mut self, body: &[u8], span: &Range<usize>, level: Level, speaker: Speaker, part: Part) -> Seg {
        self.scratch.clear();
        self.scratch.push(level as u8);
        self.scratch.push(if part == Part::Whole && level == Level::Messages { 9 } else { speaker as u8 });
        let mut size_off = 2;
        let folded = self.fold && self.folded(body, span, level, part);
        if !folded {
            let without: &[&str] = match (level, part) {
                // Ids and states of items are bookkeeping of the interface, not part of the prompt.
                (Level::Messages, Part::Whole) if is_item(body, span) => &["cache_control", "id", "status"],
                _ => &["cache_control"],
            };
            let mut out = std::mem::take(&mut self.scratch);
            json::compact(body, span, without, &mut out);
            self.scratch = out;
        }
        if folded {
            size_off = 2;
        }
        let (mark, empty) = if body[span.start] == b'{' { mark_of(body, span) } else { (None, false) };
        Seg {
            level,
            element: 0,
            lone: false,
            part,
            hash: xxh3_128(&self.scratch),
            size: u32::try_from(self.scratch.len() - size_off).unwrap_or(u32::MAX),
            kind: if part == Part::Content { Kind::Text } else { Kind::Other },
            speaker,
            mark,
            unmarkable: empty,
            id: 0,
            lead: false,
        }
    }

    /// Writes a lone text in its one form; true when the span was one.
    fn folded(&mut self, body: &[u8], span: &Range<usize>, level: Level, part: Part) -> bool {
        let mut out = std::mem::take(&mut self.scratch);
        let done = match body[span.start] {
            // The whole input as one string is the user's only message.
            b'"' if level == Level::Messages && part == Part::Whole => {
                user_words(body, span, &mut out);
                true
            }
            b'"' => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                json::compact(body, span, &[], &mut out);
                out.push(b'}');
                true
            }
            b'{' if part == Part::Whole => fold_message(body, span, &mut out),
            b'{' => fold_block(body, span, &mut out),
            _ => false,
        };
        self.scratch = out;
        done
    }
}

/// An element in its one form: without markers and bookkeeping, a lone text as a string.
pub(super) fn canonical(body: &[u8], span: &Range<usize>, level: Level, out: &mut Vec<u8>) {
    if level != Level::Tools && body[span.start] == b'{' && fold_message(body, span, out) {
        return;
    }
    out.clear();
    if level == Level::Messages && body[span.start] == b'"' {
        user_words(body, span, out);
        return;
    }
    let without: &[&str] = match level {
        Level::Messages if is_item(body, span) => &["cache_control", "id", "status"],
        _ => &["cache_control"],
    };
    json::compact(body, span, without, out);
}

/// A string as the message of a user.
fn user_words(body: &[u8], span: &Range<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"role\":\"user\",\"content\":");
    json::compact(body, span, &[], out);
    out.push(b'}');
}

/// A block that is a text and nothing else.
fn fold_block(body: &[u8], span: &Range<usize>, out: &mut Vec<u8>) -> bool {
    let Ok(mut fields) = Fields::of(body, span.start) else { return false };
    let (mut text, mut typed) = (None, false);
    while let Ok(Some((key, value))) = fields.next_field() {
        match key {
            b"type" => typed = &body[value] == b"\"text\"",
            b"text" if body[value.start] == b'"' => text = Some(value),
            b"cache_control" => {}
            _ => return false,
        }
    }
    let Some(text) = text.filter(|_| typed) else { return false };
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    json::compact(body, &text, &[], out);
    out.push(b'}');
    true
}

/// A whole message whose content is one text block is written as if the content were a string.
fn fold_message(body: &[u8], span: &Range<usize>, out: &mut Vec<u8>) -> bool {
    let Some(content) = json::field(body, span, "content").filter(|content| body[content.start] == b'[')
    else {
        return false;
    };
    let Ok((items, _)) = json::elements(body, content.start) else { return false };
    let [only] = items.as_slice() else { return false };
    let kind = json::field(body, only, "type").and_then(|kind| json::text(body, &kind));
    if kind.as_deref() != Some("text") {
        return false;
    }
    let Some(text) = json::field(body, only, "text") else { return false };
    let Ok(mut fields) = Fields::of(body, span.start) else { return false };
    out.push(b'{');
    let mut first = true;
    while let Ok(Some((key, inner))) = fields.next_field() {
        if key == b"cache_control" {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.push(b'"');
        out.extend_from_slice(key);
        out.extend_from_slice(b"\":");
        json::compact(body, if key == b"content" { &text } else { &inner }, &[], out);
    }
    out.push(b'}');
    true
}

fn is_item(body: &[u8], span: &Range<usize>) -> bool {
    body[span.start] == b'{' && json::field(body, span, "type").is_some()
}

fn speaker_of(body: &[u8], span: &Range<usize>) -> Speaker {
    let role = json::field(body, span, "role").and_then(|role| json::text(body, &role));
    match role.as_deref() {
        Some("user") => Speaker::User,
        Some("assistant" | "model") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::System,
        Some("tool" | "function") => Speaker::Tool,
        _ => Speaker::Unknown,
    }
}

/// Spans of the calls that a Chat Completions message makes.
fn calls_of(body: &[u8], span: &Range<usize>) -> Vec<Range<usize>> {
    json::field(body, span, "tool_calls")
        .and_then(|calls| json::elements(body, calls.start).ok())
        .map_or_else(Vec::new, |(calls, _)| calls)
}

/// Hash of an id field; 0 when it is missing.
fn id_hash(body: &[u8], span: &Range<usize>, name: &str) -> u64 {
    json::field(body, span, name).and_then(|id| json::text(body, &id)).map_or(0, |id| hash_of_id(&id))
}

/// Marker on an object, and whether it is an empty text.
fn mark_of(body: &[u8], span: &Range<usize>) -> (Option<Ttl>, bool) {
    let Ok(mut fields) = Fields::of(body, span.start) else { return (None, false) };
    let (mut mark, mut empty) = (None, false);
    while let Ok(Some((key, value))) = fields.next_field() {
        match key {
            b"cache_control" => mark = ttl_of(body, &value),
            b"text" => empty = json::text(body, &value).is_some_and(|text| text.is_empty()),
            _ => {}
        }
    }
    (mark, empty)
}

/// Lifetime that a marker asks for; `None` for a null marker.
fn ttl_of(body: &[u8], value: &Range<usize>) -> Option<Ttl> {
    if body[value.start] != b'{' {
        return None;
    }
    let ttl = json::field(body, value, "ttl").and_then(|ttl| json::text(body, &ttl));
    Some(if ttl.as_deref() == Some("1h") { Ttl::Hour1 } else { Ttl::Minutes5 })
}

/// Marker on a content part of a whole message, as routes that pass markers through take it.
fn parts_mark(body: &[u8], span: &Range<usize>) -> Option<Ttl> {
    let content = json::field(body, span, "content").filter(|content| body[content.start] == b'[')?;
    let (items, _) = json::elements(body, content.start).ok()?;
    items.iter().filter(|item| body[item.start] == b'{').find_map(|item| mark_of(body, item).0)
}

impl Outline {
    fn hold(&mut self, field: usize, name: &'static str, value: Range<usize>) {
        self.fields[field] = name;
        let place = match field {
            0 => &mut self.tools,
            1 => &mut self.system,
            _ => &mut self.messages,
        };
        *place = Some(value);
    }
}

fn outline(body: &[u8], start: usize) -> Result<Outline, JsonFault> {
    let mut fields = Fields::of(body, start)?;
    let mut found = Outline { fields: ["tools", "system", "messages"], ..Outline::default() };
    while let Some((key, value)) = fields.next_field()? {
        match key {
            b"tools" => found.hold(0, "tools", value),
            b"functions" => found.hold(0, "functions", value),
            b"system" => found.hold(1, "system", value),
            b"instructions" => found.hold(1, "instructions", value),
            b"systemInstruction" => found.hold(1, "systemInstruction", value),
            b"system_instruction" => found.hold(1, "system_instruction", value),
            b"messages" => found.hold(2, "messages", value),
            b"input" => found.hold(2, "input", value),
            b"contents" => found.hold(2, "contents", value),
            b"model" => found.model = json::text(body, &value).map_or_else(String::new, Cow::into_owned),
            b"cache_control" => found.auto_mark = ttl_of(body, &value),
            b"max_tokens" => found.has_max_tokens = true,
            b"previous_response_id" | b"conversation" => found.continues |= body[value.start] != b'n',
            b"prompt_cache_key" => {
                found.route_key = json::text(body, &value).map_or_else(String::new, Cow::into_owned);
            }
            _ => param(&mut found.params, body, key, &value),
        }
    }
    found.params.sort_by_key(|param| param.name);
    Ok(found)
}

fn param(params: &mut Vec<Param>, body: &[u8], key: &[u8], value: &Range<usize>) {
    let Some(&name) = PARAMS.iter().find(|name| name.as_bytes() == key) else { return };
    let mut out = Vec::new();
    json::compact(body, value, &[], &mut out);
    let value = String::from_utf8_lossy(&out).into_owned();
    // An explicit default equals omission.
    let default = match name {
        "thinking" => value.contains("\"disabled\""),
        "tool_choice" => value == "\"auto\"" || value == "{\"type\":\"auto\"}",
        "parallel_tool_calls" => value == "true",
        "disable_parallel_tool_use" => value == "false",
        "speed" => value == "\"standard\"",
        _ => false,
    };
    if !default && value != "null" {
        params.push(Param { name, value });
    }
}

fn fits(shape: Shape, outline: &Outline) -> bool {
    outline.messages.is_some()
        && match shape {
            Shape::Anthropic | Shape::Chat => outline.fields[2] == "messages",
            Shape::Responses => outline.fields[2] == "input",
            Shape::Gemini => outline.fields[2] == "contents",
        }
}

/// The shape of a body without a name: by its own fields.
fn guess(body: &[u8], outline: &Outline) -> Option<Shape> {
    let messages = outline.messages.as_ref()?;
    match outline.fields[2] {
        "input" => return Some(Shape::Responses),
        "contents" => return Some(Shape::Gemini),
        _ => {}
    }
    if outline.system.is_some() && outline.fields[1] == "system" || outline.auto_mark.is_some() {
        return Some(Shape::Anthropic);
    }
    if let Some(tools) = &outline.tools
        && let Ok((tools, _)) = json::elements(body, tools.start)
        && let Some(first) = tools.first()
    {
        let nested = json::field(body, first, "function").is_some();
        return Some(if nested { Shape::Chat } else { Shape::Anthropic });
    }
    let raw = &body[messages.clone()];
    let has = |needle: &str| memchr::memmem::find(raw, needle.as_bytes()).is_some();
    if has("\"tool_use_id\"") || has("\"tool_use\"") || has("\"cache_control\"") {
        return Some(Shape::Anthropic);
    }
    let chat = has("\"tool_call_id\"") || has("\"tool_calls\"") || has("\"system\"") || has("\"developer\"");
    let claude = outline.model.contains("claude") && outline.has_max_tokens;
    Some(if claude && !chat { Shape::Anthropic } else { Shape::Chat })
}

fn append(prompt: &mut Prompt, element: &Element, index: u32, lone: bool) {
    let first = u32::try_from(prompt.segs.len()).unwrap_or(u32::MAX);
    let mut speaker = Speaker::Nobody;
    let mut level = Level::Messages;
    for part in &element.parts {
        prompt.segs.push(Seg { element: index, lone, ..*part });
        speaker = part.speaker;
        level = part.level;
    }
    if level == Level::Messages {
        prompt.turns.push(Turn {
            speaker,
            first,
            count: u32::try_from(element.parts.len()).unwrap_or(u32::MAX),
            ids: u32::try_from(prompt.ids.len()).unwrap_or(u32::MAX),
            id_count: u32::try_from(element.ids.len()).unwrap_or(u32::MAX),
        });
        prompt.ids.extend_from_slice(&element.ids);
    }
}

/// Leading system and developer messages are the system prompt.
fn lead(prompt: &mut Prompt) {
    if prompt.shape == Shape::Anthropic {
        return;
    }
    for seg in prompt.segs.iter_mut().filter(|seg| seg.level == Level::Messages) {
        if seg.speaker != Speaker::System {
            break;
        }
        seg.level = Level::System;
        seg.lead = true;
    }
}

pub(super) fn mix(a: u128, b: u128) -> u128 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&a.to_le_bytes());
    bytes[16..].copy_from_slice(&b.to_le_bytes());
    xxh3_128(&bytes)
}

fn chain(prompt: &mut Prompt) {
    let model = xxh3_128(prompt.model.as_bytes());
    let params = prompt
        .params
        .iter()
        .fold(0, |sum, param| mix(sum, xxh3_128(format!("{}={}", param.name, param.value).as_bytes())));
    let (mut content, mut size) = (0, 0_u64);
    let count = prompt.segs.len();
    prompt.chain.reserve(count);
    prompt.keys.reserve(count);
    prompt.sizes.reserve(count);
    for seg in &prompt.segs {
        content = mix(content, seg.hash);
        size += u64::from(seg.size);
        prompt.chain.push(content);
        prompt.keys.push(content ^ model ^ if seg.level == Level::Messages { params } else { 0 });
        prompt.sizes.push(size);
    }
}

fn marks(prompt: &mut Prompt, auto: Option<Ttl>) {
    prompt.marks =
        prompt.segs.iter().enumerate().filter_map(|(at, seg)| seg.mark.map(|ttl| (at, ttl))).collect();
    if let Some(ttl) = auto
        && let Some(last) = prompt.segs.iter().rposition(|seg| !seg.unmarkable)
        && prompt.marks.iter().all(|(at, _)| *at != last)
    {
        prompt.marks.push((last, ttl));
        prompt.marks.sort_unstable_by_key(|(at, _)| *at);
    }
}

//! A request body as a cache sees it: segments in cache order, each with a hash, a size and its marker.
//!
//! What repeats is hashed instead of parsed again: the parts of an element (a tool, a system block, a message) are
//! remembered under the hash of its raw bytes. The body itself is kept by whoever wants to show text later.

use std::borrow::Cow;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::rc::Rc;

use indexmap::IndexMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::audit::json::{self, Fields, JsonFault};
use crate::cache::Ttl;
use crate::wire::Level;

/// Whose request shape a body has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions and everything that copies it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini generateContent.
    Gemini,
}

impl Shape {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai",
            Self::Responses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    /// The shape that a provider's name stands for.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if name.contains("anthropic") || name.contains("claude") {
            return Some(Self::Anthropic);
        }
        if name.contains("responses") {
            return Some(Self::Responses);
        }
        if name.contains("gemini") || name.contains("google") || name.contains("vertex") {
            return Some(Self::Gemini);
        }
        name.contains("openai").then_some(Self::Chat)
    }
}

/// What kind of thing a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A tool definition.
    Tool,
    /// Text, or a whole message without calls and results.
    Text,
    /// A call, or a message that makes calls.
    Call,
    /// A result of a call.
    Answer,
    /// Thinking or reasoning.
    Thinking,
    /// An image.
    Image,
    /// Anything else.
    Other,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speaker {
    /// Nobody: tools.
    Nobody,
    /// The system or the developer.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A word that is no role.
    Unknown,
}

/// Which piece of an element a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The whole element.
    Whole,
    /// The element's `content`, a string.
    Content,
    /// A block of the element's `content`.
    Block(u32),
}

/// A call that is made or answered, by the hash of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdFact {
    /// Hash of the id.
    pub id: u64,
    /// True for an answer, false for a call.
    pub answers: bool,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seg {
    /// Tools, system or messages.
    pub level: Level,
    /// Place of its element in its array; 0 where there is no array.
    pub element: u32,
    /// True when the level is one string, not an array.
    pub lone: bool,
    /// Which piece of the element.
    pub part: Part,
    /// Hash of its compact bytes without markers.
    pub hash: u128,
    /// Size of its compact bytes.
    pub size: u32,
    /// What it is.
    pub kind: Kind,
    /// Who speaks.
    pub speaker: Speaker,
    /// Marker on it.
    pub mark: Option<Ttl>,
    /// True when a marker may not sit on it.
    pub unmarkable: bool,
    /// Hash of the call's id that it makes or answers; 0 without.
    pub id: u64,
}

/// What is remembered of one element.
#[derive(Debug)]
struct Element {
    parts: Vec<Seg>,
    ids: Vec<IdFact>,
    /// Something of a shape that no provider takes, in words.
    odd: Option<&'static str>,
}

/// A parameter that belongs to the key of cache entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its compact value.
    pub value: String,
}

/// One message as the checks of histories see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Who speaks.
    pub speaker: Speaker,
    /// Place of its first segment.
    pub first: u32,
    /// Number of its segments.
    pub count: u32,
    /// Place of its first id in [`Prompt::ids`].
    pub ids: u32,
    /// Number of its ids.
    pub id_count: u32,
}

/// A request body, taken apart.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Its shape.
    pub shape: Shape,
    /// The model asked for.
    pub model: String,
    /// Segments in cache order.
    pub segs: Vec<Seg>,
    /// Running hash after each segment: content only.
    pub chain: Vec<u128>,
    /// Running hash after each segment as the key of an entry: with model and parameters.
    pub keys: Vec<u128>,
    /// Sizes summed up.
    pub sizes: Vec<u64>,
    /// Markers: place and lifetime, in order.
    pub marks: Vec<(usize, Ttl)>,
    /// Parameters that belong to the key of message entries.
    pub params: Vec<Param>,
    /// Messages in order.
    pub turns: Vec<Turn>,
    /// Ids of calls and answers, in order.
    pub ids: Vec<IdFact>,
    /// True when it continues an earlier answer that the provider keeps.
    pub continues: bool,
    /// The cache key that routes it, where it names one.
    pub route_key: String,
    /// The compact body without white space is not kept: these are the bytes as they were read.
    pub body: Rc<[u8]>,
}

/// A hasher that passes a hash through.
#[derive(Debug, Default, Clone, Copy)]
pub struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        let taken = bytes.len().min(8);
        word[..taken].copy_from_slice(&bytes[..taken]);
        self.0 ^= u64::from_le_bytes(word);
    }
}

/// Keyed by a hash.
pub type ByHash<V> = IndexMap<u128, V, BuildHasherDefault<PassThrough>>;

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
    system: Option<(Range<usize>, &'static str)>,
    messages: Option<Range<usize>>,
    auto_mark: Option<Ttl>,
    model: String,
    params: Vec<Param>,
    continues: bool,
    route_key: String,
    has_max_tokens: bool,
    array: &'static str,
}

/// Names under which Gemini holds its function declarations.
const DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

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
        };
        if let Some(tools) = &outline.tools {
            self.array(&mut prompt, body, tools, Level::Tools)?;
        }
        if let Some((system, _)) = &outline.system {
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
        let folded = self.fold && self.folded(body, span, part);
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
        }
    }

    /// Writes a lone text in its one form; true when the span was one.
    fn folded(&mut self, body: &[u8], span: &Range<usize>, part: Part) -> bool {
        let mut out = std::mem::take(&mut self.scratch);
        let done = match body[span.start] {
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

/// The hash by which an id is compared.
pub fn hash_of_id(id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(id.as_bytes()) | 1
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

fn outline(body: &[u8], start: usize) -> Result<Outline, JsonFault> {
    let mut fields = Fields::of(body, start)?;
    let mut found = Outline { array: "messages", ..Outline::default() };
    while let Some((key, value)) = fields.next_field()? {
        match key {
            b"tools" | b"functions" => found.tools = Some(value),
            b"system" => found.system = Some((value, "system")),
            b"instructions" => found.system = Some((value, "instructions")),
            b"systemInstruction" | b"system_instruction" => {
                found.system = Some((value, "systemInstruction"));
            }
            b"messages" => found.messages = Some(value),
            b"input" => {
                found.array = "input";
                found.messages = Some(value);
            }
            b"contents" => {
                found.array = "contents";
                found.messages = Some(value);
            }
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
            Shape::Anthropic | Shape::Chat => outline.array == "messages",
            Shape::Responses => outline.array == "input",
            Shape::Gemini => outline.array == "contents",
        }
}

/// The shape of a body without a name: by its own fields.
fn guess(body: &[u8], outline: &Outline) -> Option<Shape> {
    let messages = outline.messages.as_ref()?;
    match outline.array {
        "input" => return Some(Shape::Responses),
        "contents" => return Some(Shape::Gemini),
        _ => {}
    }
    if outline.system.as_ref().is_some_and(|(_, name)| *name == "system") || outline.auto_mark.is_some() {
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
    }
}

fn mix(a: u128, b: u128) -> u128 {
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

impl Prompt {
    /// How many leading segments can have been cached: up to the last marker where markers decide, else all.
    pub fn cacheable(&self) -> usize {
        match self.marks.last() {
            Some((last, _)) => last + 1,
            None => self.segs.len(),
        }
    }

    /// Size of everything, in bytes of compact JSON.
    pub fn size(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(0)
    }

    /// Size of the first `count` segments.
    pub fn size_of(&self, count: usize) -> u64 {
        count.checked_sub(1).map_or(0, |last| self.sizes[last.min(self.sizes.len() - 1)])
    }

    /// How many leading segments two prompts share.
    pub fn shared(&self, other: &Self) -> usize {
        // Chains agree up to a place and nowhere behind it.
        let most = self.chain.len().min(other.chain.len());
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = usize::midpoint(low, high + 1);
            if self.chain[middle - 1] == other.chain[middle - 1] {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// JSON pointer of a segment.
    pub fn pointer(&self, at: usize) -> String {
        let Some(seg) = self.segs.get(at) else { return String::new() };
        let message = seg.level == Level::Messages || seg.speaker == Speaker::System && self.in_messages(at);
        let array = match (seg.level, self.shape) {
            (Level::Tools, _) => self.name_of(&["tools", "functions"]),
            (Level::System, _) if !message => {
                self.name_of(&["system", "instructions", "systemInstruction", "system_instruction"])
            }
            _ => self.name_of(&["messages", "input", "contents"]),
        };
        let element = if seg.lone { String::new() } else { format!("/{}", seg.element) };
        match seg.part {
            Part::Block(place) if seg.level == Level::Tools => {
                let list = format!("/{array}{element}/{}", DECLARATIONS[0]);
                let found = json::at_pointer(&self.body, &self.root(), &list).is_some();
                format!("/{array}{element}/{}/{place}", DECLARATIONS[usize::from(!found)])
            }
            Part::Whole => format!("/{array}{element}"),
            Part::Content => format!("/{array}{element}/content"),
            Part::Block(block) => format!("/{array}{element}/content/{block}"),
        }
    }

    /// True when a system segment stands in the array of messages.
    fn in_messages(&self, at: usize) -> bool {
        self.turns.iter().any(|turn| turn.first as usize == at)
    }

    fn name_of(&self, names: &[&'static str]) -> &'static str {
        names
            .iter()
            .find(|name| json::field(&self.body, &self.root(), name).is_some())
            .copied()
            .unwrap_or(names[0])
    }

    fn root(&self) -> Range<usize> {
        json::skip_space(&self.body, 0)..self.body.len()
    }

    /// Span of a segment in the body.
    pub fn span(&self, at: usize) -> Option<Range<usize>> {
        json::at_pointer(&self.body, &self.root(), &self.pointer(at))
    }

    /// The segment as compact JSON without markers.
    pub fn compact(&self, at: usize) -> String {
        let Some(span) = self.span(at) else { return String::new() };
        let mut out = Vec::new();
        json::compact(&self.body, &span, &["cache_control"], &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The segment as a value; `None` when the body is no longer held.
    pub fn value(&self, at: usize) -> Option<serde_json::Value> {
        serde_json::from_str(&self.compact(at)).ok()
    }

    /// The segment's text: what a person would read of it, else its compact JSON.
    pub fn text(&self, at: usize) -> String {
        match self.value(at) {
            Some(value) => text_of(&value).unwrap_or_else(|| self.compact(at)),
            None => self.compact(at),
        }
    }

    /// True when the body is still held.
    pub fn held(&self) -> bool {
        !self.body.is_empty()
    }
}

/// The one text of a value: a string, a text block, a message or a result whose content is text.
pub fn text_of(value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => match items.as_slice() {
            [only] => text_of(only),
            _ => None,
        },
        Value::Object(object) => {
            if object.contains_key("tool_calls") || object.contains_key("input_schema") {
                return None;
            }
            ["text", "content", "output", "thinking"]
                .iter()
                .find_map(|name| object.get(*name))
                .or_else(|| object.get("parts"))
                .and_then(text_of)
        }
        _ => None,
    }
}

//! A request body as a cache sees it: segments in cache order, each with a hash, a size and its marker.
//!
//! What repeats is hashed instead of parsed again: the parts of an element (a tool, a system block, a message) are
//! remembered under the hash of its raw bytes. The body itself is kept by whoever wants to show text later.

mod parse;
mod pieces;

use std::cell::OnceCell;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::rc::Rc;

use indexmap::IndexMap;

use crate::audit::json;
use crate::cache::Ttl;
use crate::wire::{Level, PassThrough};

pub use parse::Parser;
pub use pieces::Piece;

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
    /// A part of the system prompt that stands among the messages.
    pub lead: bool,
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
    /// The body as it was read; empty when it is no longer held.
    pub body: Rc<[u8]>,
    /// Names of the fields that hold tools, system prompt and messages.
    fields: [&'static str; 3],
    /// Where the elements of these fields lie in the body.
    elements: [Vec<Range<usize>>; 3],
    /// Where each segment lies in the body, by the field that it stands in; looked up when the first text of that
    /// field is shown.
    spans: [OnceCell<Vec<Range<usize>>>; 3],
}

/// Keyed by a hash.
pub type ByHash<V> = IndexMap<u128, V, BuildHasherDefault<PassThrough>>;

/// The hash by which an id is compared.
pub fn hash_of_id(id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(id.as_bytes()) | 1
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
        let field = self.fields[field_of(seg)];
        let element = if seg.lone { String::new() } else { format!("/{}", seg.element) };
        match seg.part {
            Part::Block(place) if seg.level == Level::Tools => {
                format!("/{field}{element}/{}/{place}", self.declarations(seg.element))
            }
            Part::Whole => format!("/{field}{element}"),
            Part::Content => format!("/{field}{element}/content"),
            Part::Block(block) => format!("/{field}{element}/content/{block}"),
        }
    }

    /// Name under which a tool of Gemini holds its declarations.
    fn declarations(&self, element: u32) -> &'static str {
        let list = format!("/{}/{element}/{}", self.fields[0], parse::DECLARATIONS[0]);
        let found = json::at_pointer(&self.body, &self.root(), &list).is_some();
        parse::DECLARATIONS[usize::from(!found)]
    }

    fn root(&self) -> Range<usize> {
        json::skip_space(&self.body, 0)..self.body.len()
    }

    /// Span of a segment in the body.
    pub fn span(&self, at: usize) -> Option<Range<usize>> {
        let field = field_of(self.segs.get(at)?);
        let spans = self.spans[field].get_or_init(|| self.spans_in(field));
        spans.get(at).cloned().filter(|span| !span.is_empty())
    }

    /// One walk over a field of the body for all segments in it; the others stay empty.
    fn spans_in(&self, field: usize) -> Vec<Range<usize>> {
        let mut found = vec![0..0; self.segs.len()];
        let elements = &self.elements[field];
        let mut parts: Option<(u32, Vec<Range<usize>>)> = None;
        for (seg, place) in self.segs.iter().zip(&mut found).filter(|(seg, _)| field_of(seg) == field) {
            let Some(element) = elements.get(seg.element as usize) else { continue };
            let span = match seg.part {
                Part::Whole => Some(element.clone()),
                Part::Content => json::field(&self.body, element, "content"),
                Part::Block(block) => {
                    if parts.as_ref().is_none_or(|(at, _)| *at != seg.element) {
                        parts = Some((seg.element, self.parts(seg, element)));
                    }
                    parts.as_ref().and_then(|(_, parts)| parts.get(block as usize).cloned())
                }
            };
            *place = span.unwrap_or(0..0);
        }
        found
    }

    fn parts(&self, seg: &Seg, element: &Range<usize>) -> Vec<Range<usize>> {
        let name = if seg.level == Level::Tools { self.declarations(seg.element) } else { "content" };
        json::field(&self.body, element, name)
            .and_then(|list| json::elements(&self.body, list.start).ok())
            .map_or_else(Vec::new, |(items, _)| items)
    }

    /// The segment as compact JSON without markers.
    pub fn compact(&self, at: usize) -> String {
        let Some(span) = self.span(at) else { return String::new() };
        let mut out = Vec::new();
        json::compact(&self.body, &span, &["cache_control"], &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The segment as a value without markers; `None` when the body is no longer held.
    pub fn value(&self, at: usize) -> Option<serde_json::Value> {
        let mut value: serde_json::Value = serde_json::from_slice(&self.body[self.span(at)?]).ok()?;
        let Some(object) = value.as_object_mut() else { return Some(value) };
        object.shift_remove("cache_control");
        for part in object.get_mut("content").and_then(serde_json::Value::as_array_mut).into_iter().flatten()
        {
            if let Some(part) = part.as_object_mut() {
                part.shift_remove("cache_control");
            }
        }
        Some(value)
    }

    /// True when the segment's bytes hold a word; a quick look before a slow one.
    pub fn holds(&self, at: usize, word: &str) -> bool {
        self.span(at).is_some_and(|span| memchr::memmem::find(&self.body[span], word.as_bytes()).is_some())
    }

    /// The segment's text: what a person would read of it, else its compact JSON.
    pub fn text(&self, at: usize) -> String {
        match self.value(at) {
            Some(value) => text_of(&value).unwrap_or_else(|| self.compact(at)),
            None => self.compact(at),
        }
    }

    /// Markers on tools, system, messages.
    pub fn mark_counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for (at, _) in &self.marks {
            counts[self.segs[*at].level as usize] += 1;
        }
        counts
    }

    /// The same without its bytes: it can be compared, not shown.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self { body: Rc::from(&[][..]), spans: std::array::from_fn(|_| OnceCell::new()), ..self.clone() }
    }

    /// True when the body is still held.
    pub fn held(&self) -> bool {
        !self.body.is_empty()
    }
}

/// Which field of the body a segment stands in.
fn field_of(seg: &Seg) -> usize {
    match seg.level {
        Level::Tools => 0,
        Level::System if !seg.lead => 1,
        _ => 2,
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

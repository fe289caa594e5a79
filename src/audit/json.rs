//! JSON looked at as bytes: spans instead of values, so that what repeats is never parsed again.
//!
//! Lenient where a provider would be (it does not check numbers), strict where a mistake would mislead (brackets,
//! strings, ends). Depth is bounded and nothing recurses without bound, so that hostile nesting costs nothing.

use std::borrow::Cow;
use std::ops::Range;

/// Deepest nesting that is followed.
pub const DEPTH_MAX: usize = 512;

/// Why bytes are no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text ends inside a value.
    #[error("ends inside a value (cut off?)")]
    CutOff,
    /// A byte that cannot stand there.
    #[error("not JSON at byte {0}")]
    Unexpected(usize),
    /// Nested too deeply.
    #[error("nested deeper than 512 levels")]
    TooDeep,
}

/// Place of the first byte from `at` on that is no white space.
pub fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// End of the string that begins with the quote at `at`.
///
/// # Errors
/// [`JsonFault::CutOff`] when it has no end.
pub fn skip_string(bytes: &[u8], at: usize) -> Result<usize, JsonFault> {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).ok_or(JsonFault::CutOff)?;
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return Err(JsonFault::CutOff),
            Some(found) if rest[found] == b'"' => return Ok(at + found + 1),
            Some(found) => at += found + 2,
        }
    }
}

/// End of the value that begins at `at`.
///
/// # Errors
/// When there is no whole value.
pub fn skip_value(bytes: &[u8], at: usize) -> Result<usize, JsonFault> {
    match bytes.get(at) {
        None => Err(JsonFault::CutOff),
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => skip_nested(bytes, at),
        Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => Ok(skip_scalar(bytes, at)),
        Some(_) => Err(JsonFault::Unexpected(at)),
    }
}

fn skip_scalar(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')) {
        at += 1;
    }
    at
}

fn skip_nested(bytes: &[u8], mut at: usize) -> Result<usize, JsonFault> {
    // One bit a level: set for an object.
    let mut kinds = [0_u64; DEPTH_MAX / 64];
    let mut depth = 0;
    loop {
        match bytes.get(at) {
            None => return Err(JsonFault::CutOff),
            Some(b'"') => {
                at = skip_string(bytes, at)?;
                continue;
            }
            Some(open @ (b'{' | b'[')) => {
                if depth == DEPTH_MAX {
                    return Err(JsonFault::TooDeep);
                }
                let bit = 1 << (depth % 64);
                if *open == b'{' {
                    kinds[depth / 64] |= bit;
                } else {
                    kinds[depth / 64] &= !bit;
                }
                depth += 1;
            }
            Some(close @ (b'}' | b']')) => {
                depth -= 1;
                let object = kinds[depth / 64] >> (depth % 64) & 1 == 1;
                if object != (*close == b'}') {
                    return Err(JsonFault::Unexpected(at));
                }
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            Some(0..=0x1f) if !matches!(bytes[at], b'\n' | b'\r' | b'\t') => {
                return Err(JsonFault::Unexpected(at));
            }
            Some(_) => {}
        }
        at += 1;
    }
}

/// A key without quotes, as written, and the span of its value.
pub type Field<'a> = (&'a [u8], Range<usize>);

/// Walks the fields of an object without building it.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    first: bool,
}

impl<'a> Fields<'a> {
    /// The fields of the object that begins at `at`.
    ///
    /// # Errors
    /// [`JsonFault::Unexpected`] when no object begins there.
    pub fn of(bytes: &'a [u8], at: usize) -> Result<Self, JsonFault> {
        match bytes.get(at) {
            Some(b'{') => Ok(Self { bytes, at: at + 1, first: true }),
            Some(_) => Err(JsonFault::Unexpected(at)),
            None => Err(JsonFault::CutOff),
        }
    }

    /// The next key (without quotes, as written) and the place where its value begins; `None` at the end.
    /// The caller says with [`Fields::resume`] where the value ended.
    ///
    /// # Errors
    /// When the bytes are no object.
    pub fn next_key(&mut self) -> Result<Option<(&'a [u8], usize)>, JsonFault> {
        let mut at = skip_space(self.bytes, self.at);
        match self.bytes.get(at) {
            Some(b'}') => {
                self.at = at + 1;
                return Ok(None);
            }
            Some(b',') if !self.first => at = skip_space(self.bytes, at + 1),
            Some(b'"') if self.first => {}
            Some(_) => return Err(JsonFault::Unexpected(at)),
            None => return Err(JsonFault::CutOff),
        }
        self.first = false;
        if self.bytes.get(at) != Some(&b'"') {
            return Err(if at < self.bytes.len() { JsonFault::Unexpected(at) } else { JsonFault::CutOff });
        }
        let end = skip_string(self.bytes, at)?;
        let colon = skip_space(self.bytes, end);
        match self.bytes.get(colon) {
            Some(b':') => Ok(Some((&self.bytes[at + 1..end - 1], skip_space(self.bytes, colon + 1)))),
            Some(_) => Err(JsonFault::Unexpected(colon)),
            None => Err(JsonFault::CutOff),
        }
    }

    /// Goes on behind a value.
    pub fn resume(&mut self, end: usize) {
        self.at = end;
    }

    /// The next key and the span of its value.
    ///
    /// # Errors
    /// When the bytes are no object.
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, JsonFault> {
        let Some((key, start)) = self.next_key()? else { return Ok(None) };
        let end = skip_value(self.bytes, start)?;
        self.at = end;
        Ok(Some((key, start..end)))
    }

    /// Where the walk stands; after the last field, the end of the object.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// Spans of an array's elements, and its end.
///
/// # Errors
/// When no whole array begins there.
pub fn elements(bytes: &[u8], at: usize) -> Result<(Vec<Range<usize>>, usize), JsonFault> {
    match bytes.get(at) {
        Some(b'[') => {}
        Some(_) => return Err(JsonFault::Unexpected(at)),
        None => return Err(JsonFault::CutOff),
    }
    let mut found = Vec::new();
    let mut at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return Ok((found, at + 1));
    }
    loop {
        let end = skip_value(bytes, at)?;
        found.push(at..end);
        at = skip_space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return Ok((found, at + 1)),
            Some(_) => return Err(JsonFault::Unexpected(at)),
            None => return Err(JsonFault::CutOff),
        }
    }
}

/// Span of a field's value; the last one of equal names counts, as with every common parser.
pub fn field(bytes: &[u8], object: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut fields = Fields::of(bytes, object.start).ok()?;
    let mut found = None;
    while let Ok(Some((key, value))) = fields.next_field() {
        if key == name.as_bytes() {
            found = Some(value);
        }
    }
    found
}

/// The text of a string value; `None` when it is no string. Lone surrogates become U+FFFD.
pub fn text<'a>(bytes: &'a [u8], value: &Range<usize>) -> Option<Cow<'a, str>> {
    let raw = bytes.get(value.clone())?;
    if raw.len() < 2 || raw[0] != b'"' {
        return None;
    }
    Some(unescape(&raw[1..raw.len() - 1]))
}

/// A string's inside without escapes.
pub fn unescape(raw: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', raw) else { return String::from_utf8_lossy(raw) };
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut at = first;
    while at < raw.len() {
        if raw[at] != b'\\' {
            let next = memchr::memchr(b'\\', &raw[at..]).map_or(raw.len(), |found| at + found);
            out.extend_from_slice(&raw[at..next]);
            at = next;
            continue;
        }
        at += 2;
        let plain = match raw.get(at - 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'u') => {
                let (found, end) = unicode(raw, at);
                out.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
                at = end;
                continue;
            }
            Some(&other) => other,
            None => break,
        };
        out.push(plain);
    }
    Cow::Owned(
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()),
    )
}

fn unicode(raw: &[u8], at: usize) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(raw.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(high) = unit(at) else { return (char::REPLACEMENT_CHARACTER, at.min(raw.len())) };
    let end = at + 4;
    if (0xD800..0xDC00).contains(&high)
        && raw.get(end..end + 2) == Some(b"\\u")
        && let Some(low) = unit(end + 2)
        && (0xDC00..0xE000).contains(&low)
    {
        let point = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        return (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), end + 6);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), end)
}

/// A whole number; `None` for anything else, also out of range.
pub fn number(bytes: &[u8], value: &Range<usize>) -> Option<u64> {
    std::str::from_utf8(bytes.get(value.clone())?).ok()?.parse().ok()
}

/// Appends a value without white space outside strings, escapes in their shortest form, without the named fields.
///
/// The fields are dropped from the value itself and, as cache markers, from elements of an array named `content`;
/// the same name deeper down is somebody's data.
pub fn compact(bytes: &[u8], value: &Range<usize>, without: &[&str], out: &mut Vec<u8>) {
    if bytes.get(value.start) != Some(&b'{') {
        return compact_flat(bytes, value, out);
    }
    out.push(b'{');
    let Ok(mut fields) = Fields::of(bytes, value.start) else { return };
    let mut first = true;
    while let Ok(Some((key, inner))) = fields.next_field() {
        if without.iter().any(|name| name.as_bytes() == key) {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        compact_string(key, out);
        out.push(b':');
        if key == b"content" && bytes.get(inner.start) == Some(&b'[') {
            compact_parts(bytes, &inner, out);
        } else {
            compact_flat(bytes, &inner, out);
        }
    }
    out.push(b'}');
}

fn compact_parts(bytes: &[u8], value: &Range<usize>, out: &mut Vec<u8>) {
    out.push(b'[');
    let (items, _) = elements(bytes, value.start).unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let marked = field(bytes, item, "cache_control").is_some();
        if marked {
            // One level only: a part of a part carries no marker.
            let mut fields = Vec::new();
            if let Ok(mut walk) = Fields::of(bytes, item.start) {
                while let Ok(Some((key, inner))) = walk.next_field() {
                    if key != b"cache_control" {
                        fields.push((key, inner));
                    }
                }
            }
            out.push(b'{');
            for (place, (key, inner)) in fields.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                compact_string(key, out);
                out.push(b':');
                compact_flat(bytes, inner, out);
            }
            out.push(b'}');
        } else {
            compact_flat(bytes, item, out);
        }
    }
    out.push(b']');
}

/// Appends the bytes of a value without white space outside strings: one pass, whatever the nesting.
fn compact_flat(bytes: &[u8], value: &Range<usize>, out: &mut Vec<u8>) {
    let mut at = value.start;
    while at < value.end {
        match bytes[at] {
            b'"' => {
                let end = skip_string(bytes, at).unwrap_or(value.end).min(value.end);
                compact_string(&bytes[at + 1..end - 1], out);
                at = end;
                continue;
            }
            b' ' | b'\n' | b'\r' | b'\t' => {}
            other => out.push(other),
        }
        at += 1;
    }
}

/// True when every escape has its shortest form, so that the bytes can stand as they are.
fn shortest(raw: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &raw[at..]) {
        if !matches!(raw.get(at + found + 1), Some(b'n' | b'"' | b'\\' | b't' | b'r')) {
            return false;
        }
        at += found + 2;
    }
    true
}

fn compact_string(raw: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if shortest(raw) {
        out.extend_from_slice(raw);
    } else {
        for &byte in unescape(raw).as_bytes() {
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => out.push(byte),
            }
        }
    }
    out.push(b'"');
}

/// Span of the value that a JSON pointer names.
pub fn at_pointer(bytes: &[u8], root: &Range<usize>, pointer: &str) -> Option<Range<usize>> {
    let mut here = root.clone();
    for step in pointer.split('/').skip(1) {
        here = match bytes.get(here.start)? {
            b'[' => elements(bytes, here.start).ok()?.0.get(step.parse::<usize>().ok()?)?.clone(),
            b'{' => field(bytes, &here, &step.replace("~1", "/").replace("~0", "~"))?,
            _ => return None,
        };
    }
    Some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(text: &str) -> String {
        let mut out = Vec::new();
        compact(text.as_bytes(), &(0..text.len()), &["cache_control"], &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_marker_is_dropped_where_it_is_one_and_kept_where_it_is_data() {
        assert_eq!(
            compacted(
                r#"{"type": "text", "cache_control": {"type": "ephemeral"}, "x": {"cache_control": 1}}"#
            ),
            r#"{"type":"text","x":{"cache_control":1}}"#
        );
        assert_eq!(
            compacted(
                r#"{"content": [{"text": "a", "cache_control": {}}], "input": [{"cache_control": 2}]}"#
            ),
            r#"{"content":[{"text":"a"}],"input":[{"cache_control":2}]}"#
        );
    }

    #[test]
    fn escapes_that_mean_the_same_compact_to_the_same() {
        assert_eq!(compacted(r#""é\u000a""#), compacted(r#""\u00e9\n""#));
        assert_eq!(text(br#""\ud83d\ude00 \ud83d""#, &(0..21)).unwrap(), "😀 \u{fffd}");
    }

    #[test]
    fn hostile_nesting_and_cut_off_text_are_faults() {
        let deep = "[".repeat(100_000);
        assert_eq!(skip_value(deep.as_bytes(), 0), Err(JsonFault::TooDeep));
        assert_eq!(skip_value(br#"{"a": "b"#, 0), Err(JsonFault::CutOff));
        assert_eq!(skip_value(br#"{"a": [1}"#, 0), Err(JsonFault::Unexpected(8)));
        assert_eq!(skip_value(b"\"\\", 0), Err(JsonFault::CutOff));
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let bytes = br#"{"a": 1, "a": 2}"#;
        let span = field(bytes, &(0..bytes.len()), "a").unwrap();
        assert_eq!(number(bytes, &span), Some(2));
        assert_eq!(number(b"99999999999999999999999", &(0..23)), None);
    }
}

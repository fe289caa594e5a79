//! YAML 1.1 as the reference reads it, on top of an event parser.
//!
//! Plain scalars follow the 1.1 rules (`n`, `yes`, `on` are switches, a leading zero is octal), a key that occurs
//! twice is an error, a tag that would construct an object is an error. Called for skill front matter and for the
//! curator's block. Never: a value that grows out of proportion to the text (aliases are counted).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// The text is no YAML that we accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct YamlError(pub String);

/// Most values that one document may hold, copies made by aliases included.
const VALUES_MAX: usize = 100_000;
/// Deepest nesting.
const DEPTH_MAX: usize = 200;

enum Frame {
    List { items: Vec<Value>, anchor: usize },
    Map { map: Map<String, Value>, key: Option<(String, bool)>, merges: Vec<Value>, anchor: usize },
}

struct Builder {
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Value>,
    root: Option<Value>,
    documents: usize,
    values: usize,
}

/// Reads one document; an empty text is null.
///
/// # Errors
/// [`YamlError`] for anything that is no single well-formed document under the rules above.
///
/// ```
/// use hermes_lab::agent::yaml::parse;
/// assert_eq!(parse("a: n\nb: 010").unwrap(), serde_json::json!({"a": false, "b": 8}));
/// assert!(parse("a: 1\na: 2").is_err());
/// ```
pub fn parse(text: &str) -> Result<Value, YamlError> {
    // The event parser wants a blank behind the colon of a key; the reference also takes a tab.
    static TAB_BEHIND_KEY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?m)^([ ]*(?:- +)*[^\s#'"\[\]{}:-][^:#'"\n]*:)\t"#).expect("a fixed pattern")
    });
    read(text).or_else(|error| {
        if TAB_BEHIND_KEY.is_match(text) {
            read(&TAB_BEHIND_KEY.replace_all(text, "$1 "))
        } else {
            Err(error)
        }
    })
}

fn read(text: &str) -> Result<Value, YamlError> {
    let mut builder =
        Builder { frames: Vec::new(), anchors: BTreeMap::new(), root: None, documents: 0, values: 0 };
    let open_end = if text.ends_with('\n') { usize::MAX } else { text.chars().count() };
    for event in Parser::new_from_str(text) {
        let (mut event, span) = event.map_err(|error| YamlError(error.to_string()))?;
        // A block that ends with the text has no line break that the text does not have.
        if let Event::Scalar(scalar, ScalarStyle::Literal | ScalarStyle::Folded, ..) = &mut event
            && span.end.index() >= open_end
            && scalar.ends_with('\n')
        {
            scalar.to_mut().pop();
        }
        builder.take(event)?;
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(YamlError("more than one document".to_owned()));
                }
                Ok(())
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or_else(|| YamlError("an alias inside its own anchor".to_owned()))?;
                self.values += count(&value);
                self.put(value, 0, false)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let merge = plain && tag.is_none() && text == "<<";
                let value = scalar(&text, plain, tag.as_deref())?;
                self.put(value, anchor, merge)
            }
            Event::SequenceStart(anchor, tag) => {
                check_collection(tag.as_deref(), &["seq", "omap", "pairs"])?;
                self.open(Frame::List { items: Vec::new(), anchor })
            }
            Event::MappingStart(anchor, tag) => {
                check_collection(tag.as_deref(), &["map", "set"])?;
                self.open(Frame::Map { map: Map::new(), key: None, merges: Vec::new(), anchor })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.frames.pop() {
                Some(Frame::List { items, anchor }) => self.put(Value::Array(items), anchor, false),
                Some(Frame::Map { map, merges, anchor, .. }) => {
                    self.put(Value::Object(merged(map, merges)), anchor, false)
                }
                None => Err(YamlError("an end without a start".to_owned())),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), YamlError> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(YamlError("nested too deeply".to_owned()));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn put(&mut self, value: Value, anchor: usize, merge: bool) -> Result<(), YamlError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(YamlError("too many values".to_owned()));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.frames.last_mut() {
            None => self.root = Some(value),
            Some(Frame::List { items, .. }) => items.push(value),
            Some(Frame::Map { map, key, merges, .. }) => match key.take() {
                None if value.is_array() || value.is_object() => {
                    return Err(YamlError("a collection as key".to_owned()));
                }
                None => {
                    let name = show(&value);
                    if !merge && map.contains_key(&name) {
                        return Err(YamlError(format!("the key `{name}` occurs twice")));
                    }
                    *key = Some((name, merge));
                }
                Some((_, true)) => merges.push(value),
                Some((name, false)) => {
                    map.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// A mapping with what its merge keys bring in; own keys win.
fn merged(mut map: Map<String, Value>, merges: Vec<Value>) -> Map<String, Value> {
    let sources = merges.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        other => vec![other],
    });
    for source in sources {
        if let Value::Object(source) = source {
            for (key, value) in source {
                map.entry(key).or_insert(value);
            }
        }
    }
    map
}

fn check_collection(tag: Option<&Tag>, known: &[&str]) -> Result<(), YamlError> {
    match tag {
        None => Ok(()),
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(()),
        Some(tag) if tag.is_yaml_core_schema() && known.contains(&tag.suffix.as_str()) => Ok(()),
        Some(tag) => Err(YamlError(format!("the tag `{tag}` constructs an object"))),
    }
}

fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, YamlError> {
    match tag {
        None if plain => Ok(resolve(text)),
        None => Ok(Value::from(text)),
        Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
            "str" | "binary" => Ok(Value::from(text)),
            "null" | "bool" | "int" | "float" | "timestamp" => Ok(resolve(text)),
            other => Err(YamlError(format!("the tag `!!{other}` constructs an object"))),
        },
        Some(tag) if tag.suffix == "!" || (tag.handle == "!" && tag.suffix.is_empty()) => {
            Ok(Value::from(text))
        }
        Some(tag) => Err(YamlError(format!("the tag `{tag}` constructs an object"))),
    }
}

/// The value of a plain scalar under the rules of YAML 1.1.
fn resolve(text: &str) -> Value {
    static INT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[-+]?(?:0b[01_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])*)$")
            .expect("a fixed pattern")
    });
    static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?$")
            .expect("a fixed pattern")
    });
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return true.into();
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return false.into();
        }
        _ => {}
    }
    if INT.is_match(text)
        && let Some(number) = integer(text)
    {
        return number.into();
    }
    if FLOAT.is_match(text)
        && let Some(number) = text.replace('_', "").parse().ok().and_then(Number::from_f64)
    {
        return Value::Number(number);
    }
    text.into()
}

/// Decimal, octal, hexadecimal, binary and base sixty; `None` when it does not fit.
fn integer(text: &str) -> Option<i64> {
    let clean = text.replace('_', "");
    let (sign, digits) = match clean.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, clean.strip_prefix('+').unwrap_or(&clean)),
    };
    let value = if let Some(hexadecimal) = digits.strip_prefix("0x") {
        i64::from_str_radix(hexadecimal, 16).ok()?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        i64::from_str_radix(binary, 2).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.split(':').try_fold(0_i64, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?
    };
    Some(sign * value)
}

/// A value as text, the way the reference prints it (`None`, `True`, `['a']`).
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => quoted(other),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.contains('\'') && !text.contains('"') => format!("\"{text}\""),
        Value::String(text) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("'{key}': {}", quoted(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_follow_yaml_1_1() {
        let read = parse("[y, Off, 0x1F, 1:30, 1_000, 1.5, 1e5, 2.0.0, ~, 2026-01-01, 'no']").unwrap();
        assert_eq!(read, json!([true, false, 31, 90, 1000, 1.5, "1e5", "2.0.0", null, "2026-01-01", "no"]));
    }

    #[test]
    fn anchors_merge_keys_and_tags() {
        assert_eq!(parse("a: &x {b: 1}\nc: {<<: *x, d: 2}").unwrap()["c"], json!({"d": 2, "b": 1}));
        assert!(parse("a: !!python/object:os.system x").is_err());
        assert_eq!(parse("a: !!str 12").unwrap(), json!({"a": "12"}));
    }

    #[test]
    fn a_tab_behind_a_key_and_a_block_at_the_end_are_read_as_the_reference_does() {
        assert_eq!(parse("a:\tb\nc: |\n  x").unwrap(), json!({"a": "b", "c": "x"}));
        assert_eq!(parse("c: |\n  x\n").unwrap(), json!({"c": "x\n"}));
    }

    #[test]
    fn aliases_cannot_blow_a_document_up() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..8 {
            let before = format!("*a{},", level - 1).repeat(10);
            text.extend(["a", &level.to_string(), ": &a", &level.to_string(), " [", &before, "]\n"]);
        }
        assert!(parse(&text).is_err());
    }
}

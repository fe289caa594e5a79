//! Equality of an answer with what was observed.

use serde_json::Value;

/// The first place where `got` does not answer what `expect` names, or `None` when it all agrees.
///
/// At the top level `got` may hold more than `expect`; below it both must be equal. Numbers are compared by value,
/// so 3 equals 3.0. At the top level `shows` and `hides` list fragments that the answer's `line` must or must not
/// contain, for texts whose exact words are free.
pub fn first_difference(expect: &Value, got: &Value) -> Option<String> {
    match (expect, got) {
        (Value::Object(expect), Value::Object(got)) => {
            expect.iter().find_map(|(key, value)| match got.get(key) {
                None if key == "shows" || key == "hides" => fragments(key, value, got.get("line")),
                Some(found) => difference(value, found, key),
                None => Some(format!("{key}: expected {}, found nothing", short(value))),
            })
        }
        _ => difference(expect, got, "answer"),
    }
}

fn fragments(key: &str, wanted: &Value, line: Option<&Value>) -> Option<String> {
    let line = line.and_then(Value::as_str).unwrap_or("");
    wanted
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .find(|fragment| line.contains(*fragment) != (key == "shows"))
        .map(|fragment| format!("{key}: `{fragment}` in {}", short(&Value::from(line))))
}

fn difference(expect: &Value, got: &Value, at: &str) -> Option<String> {
    match (expect, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let place = format!("{at}.{key}");
                match b.get(key) {
                    Some(found) => {
                        if let Some(first) = difference(value, found, &place) {
                            return Some(first);
                        }
                    }
                    None => return Some(format!("{place}: expected {}, found nothing", short(value))),
                }
            }
            b.iter()
                .find(|(key, _)| !a.contains_key(*key))
                .map(|(key, value)| format!("{at}.{key}: expected nothing, found {}", short(value)))
        }
        (Value::Array(a), Value::Array(b)) => {
            for (index, (left, right)) in a.iter().zip(b).enumerate() {
                if let Some(first) = difference(left, right, &format!("{at}[{index}]")) {
                    return Some(first);
                }
            }
            (a.len() != b.len()).then(|| format!("{at}: expected {} items, found {}", a.len(), b.len()))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (a, b) if a == b => None,
        (a, b) => Some(format!("{at}: expected {}, found {}", short(a), short(b))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 200 { text } else { text.chars().take(197).chain("...".chars()).collect() }
}

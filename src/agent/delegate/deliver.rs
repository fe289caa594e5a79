//! When a call runs in the background, and which results come back together. Source: Hermes tools/delegate_tool.py:777.

use serde_json::Value;

/// True for a call by the root: its results arrive later, whatever the call says. A child waits.
pub fn runs_in_background(depth: u64) -> bool {
    depth == 0
}

/// The tasks whose results come back in one message, by place.
///
/// All together, unless completions are independent: then one message per distinct group and per task without one.
pub fn completion_units(groups: &[Value], independent: bool) -> Vec<Vec<usize>> {
    if !independent {
        return vec![(0..groups.len()).collect()];
    }
    let mut units: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        let name = match group {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
        .filter(|name| !name.is_empty());
        match units.iter_mut().find(|(known, _)| name.is_some() && *known == name) {
            Some((_, places)) => places.push(place),
            None => units.push((name, vec![place])),
        }
    }
    units.into_iter().map(|(_, places)| places).collect()
}

//! How a tool result names the call that it answers.
//!
//! Providers and adapters spell one call in several ways: `call_id`, `id`, `response_item_id`, each possibly as a
//! composite `call|item`. Two rows belong together when any spelling of one is a spelling of the other. The history
//! repair, the compressor and the request sanitiser all match through here. Never: a change of a row.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::wire::{Row, ToolCall};

/// Every spelling of one id: the id and the parts of a composite `call|item`, trimmed, empty ones dropped.
///
/// ```
/// use hermes_lab::wire::ids::spellings;
/// assert_eq!(spellings(" call_1|fc_1 ").collect::<Vec<_>>(), ["call_1|fc_1", "call_1", "fc_1"]);
/// ```
pub fn spellings(id: &str) -> impl Iterator<Item = &str> {
    let whole = id.trim();
    let parts = whole.contains('|').then(|| whole.split('|').map(str::trim)).into_iter().flatten();
    std::iter::once(whole).chain(parts).filter(|part| !part.is_empty())
}

/// Every spelling of the ids of a call: `call_id`, `id`, `response_item_id`.
pub fn of_call(call: &ToolCall) -> BTreeSet<&str> {
    let extra = |key: &str| call.extra.get(key).and_then(Value::as_str).unwrap_or_default();
    [extra("call_id"), call.id.as_str(), extra("response_item_id")].into_iter().flat_map(spellings).collect()
}

/// Every spelling of the id that a tool row answers; empty when it names none.
pub fn of_result(row: &Row) -> BTreeSet<&str> {
    row.tool_call_id.as_deref().map(|id| spellings(id).collect()).unwrap_or_default()
}

/// True when the row answers the call.
pub fn answers(row: &Row, call: &ToolCall) -> bool {
    !of_call(call).is_disjoint(&of_result(row))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_result_answers_a_call_under_any_spelling() {
        let mut call = ToolCall::new("fc_1", "t", "{}");
        call.extra.insert("call_id".to_owned(), Value::from("call_1"));
        for id in ["call_1", " fc_1 ", "call_1|x", "y|fc_1"] {
            assert!(answers(&Row::result(id, "t", ""), &call), "{id}");
        }
        for id in ["call_2", "", "|", "fc"] {
            assert!(!answers(&Row::result(id, "t", ""), &call), "{id}");
        }
    }
}

//! The system prompt before and after: which block, which run of text, what kind of text.

use crate::audit::compare::pair::{self, of_runs};
use crate::audit::compare::{Finding, first_of};
use crate::audit::prompt::{Kind, Prompt};
use crate::audit::text_kind::{self, TextKind};
use crate::audit::words::Cause;
use crate::wire::Level;

pub(super) fn compare(before: &Prompt, after: &Prompt, limit: usize, out: &mut Vec<Finding>) {
    let old = first_of(before, Level::System)..first_of(before, Level::Messages).min(limit);
    let new = first_of(after, Level::System)..first_of(after, Level::Messages);
    if old.is_empty() && limit <= old.start {
        return;
    }
    let same = old.len() == new.len()
        && old.clone().zip(new.clone()).all(|(a, b)| before.segs[a].hash == after.segs[b].hash);
    let cut = limit < first_of(before, Level::Messages);
    if same || cut && old.clone().zip(new.clone()).all(|(a, b)| before.segs[a].hash == after.segs[b].hash) {
        return;
    }
    if old.len() != new.len() {
        let texts = (joined(before, old.clone()), joined(after, new.clone()));
        let at = first_difference(before, after, &old, &new);
        if texts.0.split_whitespace().eq(texts.1.split_whitespace()) {
            let what = "the same text, divided into other blocks";
            out.push(Finding::new(Cause::RepresentationDrift, after, at, what));
            return;
        }
        for edit in of_runs(&text_kind::runs(&texts.0, &texts.1), "") {
            let mut finding = Finding::new(at_system(edit.cause), after, at, edit.what.clone());
            finding.kind = edit.kind;
            finding.byte = Some(edit.byte);
            (finding.before, finding.after) = texts.clone();
            explain(&mut finding, after);
            out.push(finding);
        }
        return;
    }
    for (a, b) in old.zip(new) {
        if before.segs[a].hash != after.segs[b].hash {
            block(before, after, a, b, out);
        }
    }
}

fn block(before: &Prompt, after: &Prompt, a: usize, b: usize, out: &mut Vec<Finding>) {
    let (Some(old), Some(new)) = (before.value(a), after.value(b)) else { return };
    for edit in pair::judge(&old, &new, false) {
        let mut finding = Finding::new(at_system(edit.cause), after, b, edit.what.clone());
        finding.kind = edit.kind;
        finding.byte = Some(edit.byte);
        finding.before = before.text(a);
        finding.after = after.text(b);
        explain(&mut finding, after);
        out.push(finding);
    }
}

fn at_system(cause: Cause) -> Cause {
    if cause == Cause::HistoryRewritten { Cause::SystemChanged } else { cause }
}

fn joined(prompt: &Prompt, range: std::ops::Range<usize>) -> String {
    range.map(|at| prompt.text(at)).collect::<Vec<_>>().join("\n")
}

fn first_difference(
    before: &Prompt,
    after: &Prompt,
    old: &std::ops::Range<usize>,
    new: &std::ops::Range<usize>,
) -> usize {
    let shared =
        old.clone().zip(new.clone()).take_while(|(a, b)| before.segs[*a].hash == after.segs[*b].hash).count();
    new.start + shared
}

/// A write to memory inside the session explains new text in the system prompt, whatever it looks like.
fn explain(finding: &mut Finding, after: &Prompt) {
    // A clock is a clock whoever writes; looking for writes costs a walk over the whole history.
    if !matches!(finding.cause, Cause::SystemChanged | Cause::MemoryLiveRead) {
        return;
    }
    let writes = memory_writes(after);
    let explaining: Vec<String> = writes
        .iter()
        .filter(|(_, text)| finding.after.contains(text) && !finding.before.contains(text))
        .map(|(id, _)| id.clone())
        .collect();
    if !explaining.is_empty() {
        finding.cause = Cause::MemoryLiveRead;
        finding.kind = TextKind::Memory;
        finding.names = explaining;
    }
}

/// Ids and texts of the calls that write memory.
pub(crate) fn memory_writes(prompt: &Prompt) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for at in 0..prompt.segs.len() {
        if prompt.segs[at].kind != Kind::Call || !prompt.holds(at, "emory") {
            continue;
        }
        let Some(value) = prompt.value(at) else { continue };
        for (id, name, input) in calls(&value) {
            if !name.to_lowercase().contains("memory") {
                continue;
            }
            let mut texts = Vec::new();
            collect(&input, &mut texts);
            found.extend(texts.into_iter().map(|text| (id.clone(), text)));
        }
    }
    found
}

/// Calls in a segment: id, name, input.
pub(crate) fn calls(value: &serde_json::Value) -> Vec<(String, String, serde_json::Value)> {
    let text = |value: &serde_json::Value, name: &str| {
        value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    if let Some(calls) = value.get("tool_calls").and_then(serde_json::Value::as_array) {
        let of = |call: &serde_json::Value| {
            let function = call.get("function")?;
            let input = serde_json::from_str(&text(function, "arguments")).unwrap_or_default();
            Some((text(call, "id"), text(function, "name"), input))
        };
        return calls.iter().filter_map(of).collect();
    }
    let id = if value.get("call_id").is_some() { "call_id" } else { "id" };
    let input = match value.get("input") {
        Some(input) => input.clone(),
        None => serde_json::from_str(&text(value, "arguments")).unwrap_or_default(),
    };
    vec![(text(value, id), text(value, "name"), input)]
}

/// Texts of some length anywhere in a value; words such as `add` or `user` prove nothing.
fn collect(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.len() >= 8 => out.push(text.trim().to_owned()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        serde_json::Value::Object(object) => object.values().for_each(|item| collect(item, out)),
        _ => {}
    }
}

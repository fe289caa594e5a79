//! Facts about histories: pairs of calls and results, cuts, what a compaction lost.

use serde_json::{Value, json};

use crate::audit::case::{CASE_FILE, Facts, Files};
use crate::audit::history::{standing_instructions, survives};
use crate::audit::prompt::{Parser, Shape};
use crate::audit::words::Cause;

/// A call or a result, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    id: String,
    message: usize,
    pointer: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pairs {
    orphan_results: Vec<Mention>,
    orphan_uses: Vec<Mention>,
}

fn messages(value: &Value) -> Option<&[Value]> {
    value.get("messages").or(Some(value)).and_then(Value::as_array).map(Vec::as_slice)
}

fn is_tool(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("tool")
}

/// Calls (or results) of one message.
fn mentions(message: &Value, at: usize, results: bool) -> Vec<Mention> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut found = Vec::new();
    let mut push = |id: Option<String>, pointer: String| {
        found.extend(id.map(|id| Mention { id, message: at, pointer }));
    };
    if results && is_tool(message) {
        push(text(message, "tool_call_id"), format!("/messages/{at}"));
    }
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_array).filter(|_| !results) {
        for (place, call) in calls.iter().enumerate() {
            push(text(call, "id"), format!("/messages/{at}/tool_calls/{place}"));
        }
    }
    for (place, block) in message.get("content").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let pointer = format!("/messages/{at}/content/{place}");
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") if !results => push(text(block, "id"), pointer),
            Some("tool_result") if results => push(text(block, "tool_use_id"), pointer),
            _ => {}
        }
    }
    found
}

/// The messages that may answer the calls of message `at`: the next one, or the run of tool messages behind it.
fn answering(messages: &[Value], at: usize) -> std::ops::Range<usize> {
    let start = at + 1;
    if !messages.get(start).is_some_and(is_tool) {
        return start..(start + 1).min(messages.len()).max(start);
    }
    let end = messages[start..]
        .iter()
        .position(|message| !is_tool(message))
        .map_or(messages.len(), |run| start + run);
    start..end
}

/// The message whose calls the results of message `at` must answer.
fn asked_by(messages: &[Value], at: usize) -> Option<usize> {
    if !is_tool(&messages[at]) {
        return at.checked_sub(1);
    }
    (0..at).rev().find(|before| !is_tool(&messages[*before]))
}

fn pairs(messages: &[Value]) -> Pairs {
    let mut found = Pairs::default();
    for at in 0..messages.len() {
        let calls: Vec<String> = asked_by(messages, at)
            .map(|before| {
                mentions(&messages[before], before, false).into_iter().map(|call| call.id).collect()
            })
            .unwrap_or_default();
        let results = mentions(&messages[at], at, true);
        found.orphan_results.extend(results.into_iter().filter(|result| !calls.contains(&result.id)));
        let answers: Vec<String> = answering(messages, at)
            .flat_map(|next| mentions(&messages[next], next, true))
            .map(|result| result.id)
            .collect();
        let uses = mentions(&messages[at], at, false);
        found.orphan_uses.extend(uses.into_iter().filter(|call| !answers.contains(&call.id)));
    }
    found
}

fn ids(mentions: &[Mention]) -> Vec<&str> {
    mentions.iter().map(|mention| mention.id.as_str()).collect()
}

fn pointers(mentions: &[Mention]) -> Vec<&str> {
    mentions.iter().map(|mention| mention.pointer.as_str()).collect()
}

/// Facts about the histories of a folder; `None` when there are none.
pub(super) fn facts(files: &Files) -> Option<Facts> {
    let values: Vec<(String, Value)> = files
        .iter()
        .filter(|(name, _)| name.as_str() != CASE_FILE && name.strip_suffix(".json").is_some())
        .filter_map(|(name, bytes)| {
            Some((name.trim_end_matches(".json").to_owned(), serde_json::from_slice(bytes).ok()?))
        })
        .collect();
    let histories: Vec<(&str, &[Value])> = values
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), messages(value)?)))
        .filter(|(_, messages)| messages.iter().any(|message| message.get("role").is_some()))
        .collect();
    if histories.is_empty() {
        return None;
    }
    let mut facts = Facts::new();
    let mut bad = false;
    for (name, messages) in &histories {
        let found = pairs(messages);
        bad |= found != Pairs::default();
        facts.insert(
            (*name).to_owned(),
            json!({"orphan_results": ids(&found.orphan_results), "orphan_uses": ids(&found.orphan_uses)}),
        );
    }
    facts.insert("verdict".into(), if bad { "violation" } else { "ok" }.into());
    let get =
        |wanted: &str| histories.iter().find(|(name, _)| *name == wanted).map(|(_, messages)| *messages);
    let cuts = values.iter().find_map(|(_, value)| value.get("keep_from")?.as_array());
    if let (Some(history), Some(cuts)) = (get("history"), cuts) {
        facts.insert("cuts".into(), Value::Object(cut(history, cuts)));
    }
    if let (Some(before), Some(after)) = (get("before"), get("after")) {
        compaction(before, after, &mut facts);
    } else if let [(_, only)] = histories.as_slice() {
        let found = pairs(only);
        facts.insert("orphan_results".into(), json!(ids(&found.orphan_results)));
        facts.insert("orphan_uses".into(), json!(ids(&found.orphan_uses)));
        facts.insert("orphan_result_pointers".into(), json!(pointers(&found.orphan_results)));
        facts.insert("orphan_use_pointers".into(), json!(pointers(&found.orphan_uses)));
    }
    Some(facts)
}

/// For each proposed first kept message: what a cut there orphans, and the nearest legal one at or before it.
fn cut(history: &[Value], cuts: &[Value]) -> Facts {
    cuts.iter()
        .filter_map(Value::as_u64)
        .filter_map(|at| usize::try_from(at).ok())
        .map(|at| {
            let at = at.min(history.len());
            let orphans = pairs(&history[at..]).orphan_results;
            let legal = (0..=at)
                .rev()
                .find(|at| pairs(&history[*at..]).orphan_results.len() <= pairs(history).orphan_results.len())
                .unwrap_or(0);
            (at.to_string(), json!({"orphan_results": ids(&orphans), "aligned_backward": legal}))
        })
        .collect()
}

fn all(messages: &[Value], results: bool) -> Vec<String> {
    messages
        .iter()
        .enumerate()
        .flat_map(|(at, message)| mentions(message, at, results))
        .map(|mention| mention.id)
        .collect()
}

fn compaction(before: &[Value], after: &[Value], facts: &mut Facts) {
    let found = pairs(after);
    facts.insert("orphan_result_pointers".into(), json!(pointers(&found.orphan_results)));
    facts.insert("orphan_use_pointers".into(), json!(pointers(&found.orphan_uses)));
    let kept = all(after, true);
    let lost: Vec<String> = all(before, true).into_iter().filter(|id| !kept.contains(id)).collect();
    // A result whose call stayed was not summarised: it is simply gone.
    let calls = all(after, false);
    let silent = lost.iter().rev().find(|id| calls.contains(id)).cloned();
    let instructions = lost_instructions(before, after);
    let rejected = !found.orphan_results.is_empty() || !found.orphan_uses.is_empty();
    let violated = !instructions.is_empty() || silent.is_some();
    facts.insert("lost_results".into(), json!(lost));
    facts.insert("silently_lost_recent_result".into(), json!(silent));
    facts.insert("lost_instructions".into(), json!(instructions));
    let cause = if instructions.is_empty() { Cause::None } else { Cause::InstructionLost };
    facts.insert("cause".into(), json!(cause));
    let verdict = match (rejected, violated) {
        (true, _) => "rejected",
        (_, true) => "violation",
        _ => "ok",
    };
    facts.insert("verdict".into(), verdict.into());
}

fn lost_instructions(before: &[Value], after: &[Value]) -> Vec<String> {
    let body = json!({"messages": before}).to_string();
    let text = json!({"messages": after}).to_string();
    let Ok(Some(prompt)) = Parser::new(true).parse(body.as_bytes(), Some(Shape::Chat)) else {
        return Vec::new();
    };
    standing_instructions(&prompt).into_iter().filter(|instruction| !survives(instruction, &text)).collect()
}

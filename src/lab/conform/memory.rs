//! Adapter of the family `memory`.

use serde_json::{Map, Value, json};

use super::{Fixtures, ReplayError};
use crate::agent::memory::{
    Answer, Block, Caller, Change, MemoryStore, Operation, RefusalKind, Staged, Target, ToolAnswer,
};
use crate::policy::{Policy, preset};
use crate::world::{Files, MemFiles, Millis};

const NOW: Millis = 1_790_000_000_000;

/// Replays one script against the stores.
///
/// # Errors
/// When the function is unknown or a step makes no sense.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    if function != "script" {
        return Err(ReplayError::UnknownFunction(format!("memory.{function}")));
    }
    let mut policy = policy_of(given["rev"].as_str().unwrap_or("any"));
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    policy.memory.chars_max = number(&given["limits"]["memory"]);
    policy.memory.user_chars_max = number(&given["limits"]["user"]);
    policy.memory.memory_enabled = given["enabled"]["memory"].as_bool().unwrap_or(true);
    policy.memory.user_enabled = given["enabled"]["user"].as_bool().unwrap_or(true);
    let mut files = MemFiles::new();
    for (name, content) in given["files"].as_object().into_iter().flatten() {
        put(&mut files, name, content);
    }
    let mut store = MemoryStore::new(&policy.memory, &policy.threats);
    let steps = given["steps"].as_array().ok_or_else(|| ReplayError::Missing("steps".to_owned()))?;
    let steps: Result<Vec<Value>, ReplayError> =
        steps.iter().map(|step| run_step(&mut store, &mut files, step)).collect();
    let names: Vec<String> = files.list("memories").into_iter().map(|(name, _)| name).collect();
    let (kept, other): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| Target::BOTH.iter().any(|target| target.file_name() == name.as_str()));
    let (backups, leftovers): (Vec<&String>, Vec<&String>) =
        other.into_iter().partition(|name| name.contains(".bak."));
    let backups: Vec<String> = backups
        .iter()
        .map(|name| format!("{}.bak.<seconds>", name.split_once(".bak.").map_or("", |(file, _)| file)))
        .collect();
    let texts: Map<String, Value> =
        kept.into_iter().map(|name| (name.clone(), show_file(&files, name))).collect();
    Ok(json!({"steps": steps?, "files": texts, "backups": backups, "leftovers": leftovers}))
}

fn policy_of(revision: &str) -> Policy {
    let name = match revision {
        "current" => "hermes-0.22",
        "older" => "hermes-0.19",
        "hardened" => "hardened",
        _ => "hermes-pinned",
    };
    preset::policy(name).and_then(Result::ok).unwrap_or_default()
}

fn path(name: &str) -> String {
    format!("memories/{name}")
}

fn put(files: &mut MemFiles, name: &str, content: &Value) {
    let bytes = match content {
        Value::String(text) => text.as_bytes().to_vec(),
        other => other["b64"].as_str().map(decode).unwrap_or_default(),
    };
    // A vector's tree has no clashes.
    let _ = files.write(&path(name), &bytes);
}

fn show_file(files: &MemFiles, name: &str) -> Value {
    let bytes = files.read(&path(name)).unwrap_or_default();
    match String::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(error) => json!({"b64": encode(error.as_bytes())}),
    }
}

fn run_step(store: &mut MemoryStore, files: &mut MemFiles, step: &Value) -> Result<Value, ReplayError> {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let target = || Target::parse(text("target")).ok_or_else(|| ReplayError::Missing("target".to_owned()));
    let before: Vec<_> = Target::BOTH.map(|target| files.read(target.path()).ok()).into();
    let answer: Answer = match text("op") {
        "load" => {
            store.load(files);
            let count = |target| store.live(target).len();
            return Ok(json!({"loaded": {"memory": count(Target::Memory), "user": count(Target::User)}}));
        }
        "new_turn" => {
            store.new_turn();
            return Ok(json!({}));
        }
        "external_write" => {
            put(files, text("file"), &step["text"]);
            return Ok(json!({}));
        }
        "external_delete" => {
            let _ = files.remove_file(&path(text("file")));
            return Ok(json!({}));
        }
        "entries" => {
            return Ok(json!({"memory": store.live(Target::Memory), "user": store.live(Target::User)}));
        }
        "snapshot" => {
            let show = |target| store.snapshot(target).map(|block| show_block(&block));
            return Ok(json!({"memory": show(Target::Memory), "user": show(Target::User)}));
        }
        "add" => store.add(files, target()?, text("content")),
        "replace" => store.replace(files, NOW, target()?, text("old_text"), text("content")),
        "remove" => store.remove(files, NOW, target()?, text("old_text")),
        "patch" => store.patch(files, NOW, target()?, text("old_text"), text("content")),
        "batch" => {
            let operations = operations(store, &step["operations"]);
            store.batch(files, NOW, target()?, &operations)
        }
        "tool" | "tool_raw" => match store.tool_call(files, NOW, &step["args"], Caller::Attended) {
            ToolAnswer::Applied(receipt) => Ok(receipt),
            ToolAnswer::Refused(refusal) => Err(refusal),
            ToolAnswer::Staged(_) => return Ok(json!({"ok": true, "staged": true})),
        },
        "approve" => {
            let payload = &step["payload"];
            let batch = payload["action"] == "batch";
            let staged = Staged {
                target: Target::parse(payload["target"].as_str().unwrap_or_default())
                    .ok_or_else(|| ReplayError::Missing("target".to_owned()))?,
                operations: if batch {
                    operations(store, &payload["operations"])
                } else {
                    vec![store.operation(payload)]
                },
                batch,
            };
            store.approve(files, NOW, &staged)
        }
        other => return Err(ReplayError::Missing(format!("op {other}"))),
    };
    let after: Vec<_> = Target::BOTH.map(|target| files.read(target.path()).ok()).into();
    let batch = [step, &step["args"], &step["payload"]]
        .into_iter()
        .any(|call| call["operations"].as_array().is_some_and(|operations| !operations.is_empty()));
    Ok(show_answer(answer, before != after, batch))
}

fn operations(store: &MemoryStore, items: &Value) -> Vec<Operation> {
    items.as_array().into_iter().flatten().map(|item| store.operation(item)).collect()
}

fn show_block(block: &Block) -> Value {
    let masked: Vec<Value> = block
        .entries
        .iter()
        .enumerate()
        .filter(|(_, shown)| !shown.masked_for.is_empty())
        .map(|(index, shown)| {
            let categories: Vec<&str> = shown.masked_for.iter().map(|finding| finding.id()).collect();
            json!({"index": index, "categories": categories})
        })
        .collect();
    let entries: Vec<Option<&str>> = block
        .entries
        .iter()
        .map(|shown| shown.masked_for.is_empty().then_some(shown.text.as_str()))
        .collect();
    let plain = masked.is_empty();
    let mut shown = json!({"entries": entries, "masked": masked, "limit": block.limit});
    if plain {
        shown["percent"] = block.percent.into();
        shown["current"] = block.size.into();
    }
    shown
}

fn show_answer(answer: Answer, changed: bool, batch: bool) -> Value {
    let mut shown = json!({"ok": answer.is_ok(), "changed": changed});
    match answer {
        Ok(receipt) => {
            shown["usage"] = json!([receipt.percent, receipt.size, receipt.limit]);
            shown["entry_count"] = receipt.entry_count.into();
            for taken in receipt.taken {
                let (single, many) = match taken.change {
                    Change::Replaced => ("replaced_entry", "replaced_entries"),
                    Change::Removed => ("removed_entry", "removed_entries"),
                    Change::Patched => ("patched_entry_before", "patched_entries"),
                };
                let after = (taken.change == Change::Patched).then_some(taken.after);
                if batch {
                    let number = taken.operation.to_string();
                    shown[many][&number] = taken.before.into();
                    if let Some(after) = after {
                        shown["patched_entries_after"][&number] = after.into();
                    }
                } else {
                    shown[single] = taken.before.into();
                    if let Some(after) = after {
                        shown["patched_entry_after"] = after.into();
                    }
                }
            }
        }
        Err(refusal) => {
            let kind = if refusal.kind == RefusalKind::Unpinned {
                "other".to_owned()
            } else {
                refusal.kind.to_string()
            };
            shown["kind"] = kind.into();
            shown["terminal"] = refusal.is_terminal().into();
            if refusal.details.entries.is_some() {
                shown["lists_entries"] = true.into();
            }
            if let Some((size, limit)) = refusal.details.usage {
                shown["usage"] = json!([size, limit]);
            }
            if !refusal.details.closest.is_empty() {
                shown["closest"] = json!(refusal.details.closest);
            }
            if !refusal.details.candidates.is_empty() {
                shown["candidates"] = refusal.details.candidates.len().into();
                let lengths: Vec<usize> =
                    refusal.details.candidates.iter().map(|text| text.chars().count()).collect();
                shown["preview_lengths"] = json!(lengths);
            }
            if refusal.kind == RefusalKind::Drift {
                shown["backup"] = refusal.details.backup.is_some().into();
            }
        }
    }
    shown
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn decode(text: &str) -> Vec<u8> {
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for value in text.bytes().filter_map(|byte| ALPHABET.iter().position(|known| *known == byte)) {
        bits = (bits << 6) | u32::try_from(value).unwrap_or(0);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xFF).unwrap_or(0));
        }
    }
    bytes
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            if place <= chunk.len() {
                let index = usize::try_from((word >> (18 - 6 * place)) & 63).unwrap_or(0);
                text.push(char::from(ALPHABET[index]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

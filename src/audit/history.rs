//! Faults of a history that providers refuse: results without calls, calls without results, ids used twice, roles out
//! of order, thinking where it may not stand.
//!
//! Works on hashes of ids; only a fault that is reported reads the text again.

use std::collections::BTreeSet;

use crate::audit::prompt::{IdFact, Kind, Prompt, Shape, Speaker};
use crate::audit::record::HistoryFault;
use crate::wire::Level;

/// A fault by place: the kind, the segment, the hash of the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The word.
    pub kind: &'static str,
    /// Segment.
    pub at: usize,
    /// Hash of the id; 0 without.
    pub id: u64,
}

/// Faults of a prompt from message `from` on; the one before it is looked at for context only.
pub fn faults(prompt: &Prompt, from: usize) -> Vec<Fault> {
    let mut found = Vec::new();
    let spoken: Vec<usize> = (0..prompt.turns.len()).collect();
    match prompt.shape {
        Shape::Anthropic => anthropic(prompt, from, &spoken, &mut found),
        Shape::Chat => chat(prompt, from, &mut found),
        Shape::Responses => responses(prompt, from, &mut found),
        Shape::Gemini => {}
    }
    doubles(prompt, from, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn ids(prompt: &Prompt, turn: usize, answers: bool) -> Vec<u64> {
    let Some(turn) = prompt.turns.get(turn) else { return Vec::new() };
    let first = turn.ids as usize;
    prompt.ids[first..first + turn.id_count as usize]
        .iter()
        .filter(|fact| fact.answers == answers)
        .map(|fact| fact.id)
        .collect()
}

/// The segment of a turn that carries an id.
fn place(prompt: &Prompt, turn: usize, id: u64, kind: Kind) -> usize {
    let turn = &prompt.turns[turn];
    let first = turn.first as usize;
    (first..first + turn.count as usize)
        .find(|at| prompt.segs[*at].id == id && prompt.segs[*at].kind == kind)
        .unwrap_or(first)
}

fn anthropic(prompt: &Prompt, from: usize, spoken: &[usize], out: &mut Vec<Fault>) {
    let last = spoken.len().saturating_sub(1);
    for &turn in &spoken[from.min(spoken.len())..] {
        let calls = turn.checked_sub(1).map_or_else(Vec::new, |before| ids(prompt, before, false));
        for id in ids(prompt, turn, true) {
            if !calls.contains(&id) {
                out.push(Fault { kind: "orphan_result", at: place(prompt, turn, id, Kind::Answer), id });
            }
        }
        let answers = ids(prompt, turn + 1, true);
        for id in ids(prompt, turn, false) {
            // The newest calls wait for their results.
            if turn < last && !answers.contains(&id) {
                out.push(Fault { kind: "orphan_use", at: place(prompt, turn, id, Kind::Call), id });
            }
        }
        let facts = &prompt.turns[turn];
        let segs = &prompt.segs[facts.first as usize..(facts.first + facts.count) as usize];
        if let Some(behind) =
            segs.iter().position(|seg| seg.kind == Kind::Thinking && seg.speaker == Speaker::User)
        {
            out.push(Fault { kind: "thinking_out_of_place", at: facts.first as usize + behind, id: 0 });
        }
        if facts.speaker == Speaker::Unknown || facts.speaker == Speaker::Tool {
            out.push(Fault { kind: "illegal_role", at: facts.first as usize, id: 0 });
        }
    }
}

fn chat(prompt: &Prompt, from: usize, out: &mut Vec<Fault>) {
    // Begin at the message that made the calls which the first one may answer.
    let start = (0..from.min(prompt.turns.len()))
        .rev()
        .find(|turn| prompt.turns[*turn].speaker != Speaker::Tool)
        .unwrap_or(0);
    let mut open: Vec<(u64, usize)> = Vec::new();
    let mut known: BTreeSet<u64> = BTreeSet::new();
    let mut report = |fault: Fault, turn: usize| {
        if turn >= from {
            out.push(fault);
        }
    };
    for turn in start..prompt.turns.len() {
        let facts = prompt.turns[turn];
        if facts.speaker == Speaker::Tool {
            for id in ids(prompt, turn, true) {
                if !known.contains(&id) {
                    report(Fault { kind: "orphan_result", at: facts.first as usize, id }, turn);
                }
                open.retain(|(call, _)| *call != id);
            }
            continue;
        }
        for (id, made) in open.drain(..) {
            report(Fault { kind: "orphan_use", at: prompt.turns[made].first as usize, id }, turn);
        }
        known = ids(prompt, turn, false).into_iter().collect();
        open = known.iter().map(|id| (*id, turn)).collect();
        if facts.speaker == Speaker::Unknown {
            report(Fault { kind: "illegal_role", at: facts.first as usize, id: 0 }, turn);
        }
    }
}

fn responses(prompt: &Prompt, from: usize, out: &mut Vec<Fault>) {
    if prompt.continues {
        return;
    }
    let calls: BTreeSet<u64> = prompt.ids.iter().filter(|fact| !fact.answers).map(|fact| fact.id).collect();
    for turn in from..prompt.turns.len() {
        for id in ids(prompt, turn, true) {
            if !calls.contains(&id) {
                out.push(Fault { kind: "orphan_result", at: prompt.turns[turn].first as usize, id });
            }
        }
    }
}

/// An id that two calls carry, or two results answer.
fn doubles(prompt: &Prompt, from: usize, out: &mut Vec<Fault>) {
    let Some(first) = prompt.turns.get(from).map(|turn| turn.ids as usize) else { return };
    if first == prompt.ids.len() {
        return;
    }
    // A few new ids are looked for; many are sorted in.
    let few = prompt.ids.len() - first <= 16;
    let earlier: &[IdFact] = &prompt.ids[..first];
    let mut seen: BTreeSet<(u64, bool)> =
        if few { BTreeSet::new() } else { earlier.iter().map(|fact| (fact.id, fact.answers)).collect() };
    for turn in from..prompt.turns.len() {
        let facts = prompt.turns[turn];
        let start = facts.ids as usize;
        for fact in &prompt.ids[start..start + facts.id_count as usize] {
            let known = few && earlier.contains(fact);
            if fact.id != 0 && (known || !seen.insert((fact.id, fact.answers))) {
                let kind = if fact.answers { Kind::Answer } else { Kind::Call };
                let at = place(prompt, turn, fact.id, kind);
                out.push(Fault {
                    kind: if fact.answers { "duplicate_result" } else { "duplicate_use" },
                    at,
                    id: fact.id,
                });
            }
        }
    }
}

/// A fault with its words: reads the prompt again.
pub fn told(prompt: &Prompt, fault: &Fault) -> HistoryFault {
    let id = prompt.value(fault.at).map_or_else(String::new, |value| {
        let mut ids = Vec::new();
        names(&value, &mut ids);
        ids.into_iter().find(|id| crate::audit::prompt::hash_of_id(id) == fault.id).unwrap_or_default()
    });
    HistoryFault { kind: fault.kind, pointer: prompt.pointer(fault.at), id }
}

fn names(value: &serde_json::Value, out: &mut Vec<String>) {
    for name in ["id", "tool_use_id", "tool_call_id", "call_id"] {
        if let Some(id) = value.get(name).and_then(serde_json::Value::as_str) {
            out.push(id.to_owned());
        }
    }
    if let Some(calls) = value.get("tool_calls").and_then(serde_json::Value::as_array) {
        for call in calls {
            names(call, out);
        }
    }
}

/// Message (by place among the turns) from which on two prompts may differ in their faults.
pub fn first_new_turn(prompt: &Prompt, shared: usize) -> usize {
    let place = prompt.turns.partition_point(|turn| (turn.first + turn.count) as usize <= shared);
    // The last shared message may have got, or lost, the answers to its calls.
    let mut from = place.saturating_sub(1);
    while from > 0 && prompt.turns[from].speaker == Speaker::Tool {
        from -= 1;
    }
    from
}

/// User sentences that are meant to stand: word for word, from the messages of a prompt.
pub fn standing_instructions(prompt: &Prompt) -> Vec<String> {
    let mut found = Vec::new();
    for (at, seg) in prompt.segs.iter().enumerate() {
        if seg.level != Level::Messages || seg.speaker != Speaker::User || seg.kind == Kind::Answer {
            continue;
        }
        let text = prompt.text(at);
        for sentence in text.split(['.', '\n', '!']).map(str::trim).filter(|part| part.len() >= 12) {
            let lower = sentence.to_lowercase();
            let standing = [
                "always ",
                "never ",
                "from now on",
                "standing instruction",
                "in every answer",
                "at all times",
                "until i say",
            ];
            if sentence.len() <= 300 && standing.iter().any(|word| lower.contains(word)) {
                found.push(sentence.to_owned());
            }
        }
    }
    found
}

/// True when an instruction is still in a text: word for word, or most of its words of substance.
pub fn survives(instruction: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    let instruction = instruction.to_lowercase();
    if text.contains(&instruction) {
        return true;
    }
    let words: Vec<&str> =
        instruction.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 4).collect();
    let kept = words.iter().filter(|word| text.contains(**word)).count();
    !words.is_empty() && kept * 10 >= words.len() * 6
}

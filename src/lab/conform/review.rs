//! Adapter of the family `review`.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::{Fixtures, ReplayError};
use crate::agent::harness::{Harness, Origin, Parts};
use crate::agent::review::{self, Admission, IdleQueue, Request, Scope, Slot};
use crate::cache;
use crate::ledger::{Header, Lane, What};
use crate::model::{Ask, Model, ModelError, Reply};
use crate::policy::{self, Defer, Notify, Policy};
use crate::store::Store;
use crate::wire::{Row, ToolCall};
use crate::world::clock::SECOND;
use crate::world::{Clock, MemFiles, Millis, Streams, Terminal};

const NOW: Millis = 1_790_000_000_000;

/// Replays one vector.
pub(super) fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    Ok(match function {
        "nudge" => {
            nudge(given).ok_or_else(|| ReplayError::Missing("a turn that can be played".to_owned()))?
        }
        "fork" => fork(given, Policy::default())
            .ok_or_else(|| ReplayError::Missing("a turn that can be played".to_owned()))?,
        "spawn_gate" => spawn_gate(given),
        "enabled" => {
            let config = match given.get("config") {
                Some(config) => config.clone(),
                None if given["config_unreadable"] == true => Value::Null,
                None => json!({ "auxiliary": { "background_review": { "enabled": given["value"] } } }),
            };
            json!({ "enabled": review::enabled(&config) })
        }
        "handshake" => handshake(given),
        "caps" => json!({
            "max_iterations": policy::Review::default().iterations_max,
            "token_ceiling": review::input_budget(&Value::Null, &json!(u32::MAX)),
            "window_fraction": review::input_budget(&Value::Null, &json!(1000)).map(|part| part as f64 / 1000.0),
            "unknown_window": review::input_budget(&Value::Null, &Value::Null),
            "cancel_wait_seconds": review::CANCEL_WAIT as f64 / SECOND as f64,
        }),
        "input_budget" => {
            json!({ "tokens": review::input_budget(&given["configured"], &given["context_window"]) })
        }
        "prompt_scope" => {
            let scope =
                Scope { memory: given["review_memory"] == true, skills: given["review_skills"] == true };
            let plain = review::instruction(scope, &[], None);
            let text = review::instruction(scope, &[], given["focus"].as_str());
            json!({ "scope": scope.word(), "focus_appended": text != plain })
        }
        "whitelist" => whitelist(given),
        "dispatch_decision" => {
            let scope = Scope { memory: given["review_memory"] == true, skills: true };
            let allowed =
                review::allowed_tools(&policy::Review::default(), &policy::Memory::default(), scope);
            let tool = given["tool"].as_str().unwrap_or_default();
            let denied = !allowed.iter().any(|known| known == tool);
            let receipt = if denied { review::denial(tool, &allowed) } else { String::new() };
            json!({ "denied": denied, "receipt_names_tool": denied && receipt.contains(tool) })
        }
        "digest" => digest(given),
        "report" => report(given),
        "defer_mode" => json!({ "mode": review::defer(&given["value"]).word() }),
        "defer_max_age" => {
            json!({ "seconds": review::defer_max_age(&given["value"]) as f64 / SECOND as f64 })
        }
        "idle_queue" => idle_queue(given),
        _ => return Err(ReplayError::UnknownFunction(format!("review.{function}"))),
    })
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn spawn_gate(given: &Value) -> Value {
    let request = Request {
        depth: given["delegate_depth"].as_u64().unwrap_or(0),
        focus: given["focus"].as_str(),
        explicit: given["explicit"] == true,
        local: given["runtime_is_local_and_busy"] == true,
    };
    let admission = review::admit(&request, given["enabled"] == true, Defer::Auto);
    let started = admission == Admission::Start;
    json!({
        "spawned": u8::from(started), "queued": u8::from(admission == Admission::Queue),
        "snapshot_is_a_copy": started,
    })
}

fn handshake(given: &Value) -> Value {
    let mut slot = Slot::new();
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let (mut results, mut done, mut cancelled) = (Vec::new(), Map::new(), Map::new());
    let name_of = |numbers: &BTreeMap<String, u64>, run: u64| {
        numbers.iter().find(|(_, number)| **number == run).map(|(name, _)| name.clone())
    };
    for op in texts(&given["ops"]) {
        let (verb, name) = op.split_once(':').unwrap_or((&op, ""));
        let next = numbers.len() as u64 + 1;
        let known = numbers.get(name).copied();
        results.push(match verb {
            "prepare" => {
                let run = known.unwrap_or(next);
                let taken = slot.prepare(run);
                if taken {
                    numbers.insert(name.to_owned(), run);
                }
                json!(taken)
            }
            "begin" => json!(known.and_then(|run| slot.begin(run))),
            "finish" => {
                if let Some(run) = known {
                    slot.finish(run);
                }
                Value::Null
            }
            _ => {
                let hit: Vec<String> =
                    slot.new_turn().and_then(|run| name_of(&numbers, run)).into_iter().collect();
                json!({ "interrupted": hit })
            }
        });
        for (name, run) in &numbers {
            // What the slot has forgotten was done.
            done.insert(name.clone(), json!(slot.is_done(*run) || slot.current() != Some(*run)));
            if slot.current() == Some(*run) || !cancelled.contains_key(name) {
                cancelled.insert(name.clone(), json!(slot.is_cancelled(*run)));
            }
        }
    }
    let current = slot.current().and_then(|run| name_of(&numbers, run));
    json!({ "results": results, "current": current, "done": done, "cancelled": cancelled })
}

fn whitelist(given: &Value) -> Value {
    let policy = policy::Review { extra_tools: texts(&given["extra_tools"]), ..policy::Review::default() };
    let memory = policy::Memory {
        memory_enabled: given["memory_enabled"] == true,
        user_enabled: given["profile_enabled"] == true,
        ..policy::Memory::default()
    };
    let scope = Scope { memory: given["review_memory"] == true, skills: true };
    let extra: Vec<&str> = review::extra_tools(&policy).collect();
    json!({ "allowed": review::allowed_tools(&policy, &memory, scope), "extra": extra })
}

fn digest(given: &Value) -> Value {
    let results: Vec<u64> =
        given["tool_result_positions"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let row = |at: u64| {
        if results.contains(&at) {
            Row::result(format!("c{at}"), "terminal", "result")
        } else if at.is_multiple_of(2) {
            Row::user(format!("question {at} {}", "u".repeat(400)))
        } else {
            let text = format!("answer {at} {}", "a".repeat(300));
            let call = ToolCall::new(format!("c{at}"), "terminal", "{}");
            if at.is_multiple_of(3) { Row::calls(text, vec![call]) } else { Row::assistant(text) }
        }
    };
    let rows: Vec<Row> = (0..given["messages"].as_u64().unwrap_or(0)).map(row).collect();
    let short = review::digest(&rows);
    let kept = short.iter().rev().zip(rows.iter().rev()).take_while(|(a, b)| a == b).count();
    let has_digest = kept < short.len();
    let text = if has_digest { short[0].content.flat() } else { String::new() };
    let lines: Vec<usize> = text.lines().skip(1).map(|line| line.chars().count()).collect();
    let first_kept = short.get(short.len() - kept).map(|row| row.role.word());
    json!({
        "length": short.len(), "has_digest": has_digest,
        "digest_role": has_digest.then(|| short[0].role.word()), "kept_verbatim": kept,
        "first_kept_role": first_kept, "digest_lines": lines.len(),
        "longest_digest_line": lines.iter().max().copied().unwrap_or(0),
    })
}

/// Rows of the tool calls and results that a list of events stands for.
fn event_rows(events: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, event) in events.as_array().into_iter().flatten().enumerate() {
        let text = |key: &str| event[key].as_str();
        let tool = text("tool").unwrap_or_default();
        let id = text("id").map_or_else(|| format!("c{index}"), str::to_owned);
        if event["call"] != false {
            let keys = ["action", "name", "target", "content", "old_string", "new_string", "operations"];
            let arguments: Map<String, Value> = keys
                .iter()
                .filter_map(|key| event.get(key).map(|value| ((*key).to_owned(), value.clone())))
                .collect();
            let call = ToolCall::new(id.clone(), tool, Value::Object(arguments).to_string());
            rows.push(Row::calls("", vec![call]));
        }
        let result = text("raw").map_or_else(
            || {
                let word = text("word").unwrap_or_default();
                let message = if tool == "memory" {
                    format!("Entry {word}.")
                } else {
                    format!("Skill '{}' {word}.", text("name").unwrap_or_default())
                };
                let mut result = json!({ "success": event["ok"] != false, "message": message });
                for (key, value) in event["extra"].as_object().into_iter().flatten() {
                    result[key] = value.clone();
                }
                result.to_string()
            },
            str::to_owned,
        );
        rows.push(Row::result(text("result_id").unwrap_or(&id), tool, result));
    }
    rows
}

fn mode_of(word: Option<&str>) -> Notify {
    match word.map(str::to_lowercase).as_deref() {
        Some("off") => Notify::Off,
        Some("verbose") => Notify::Verbose,
        _ => Notify::On,
    }
}

fn report(given: &Value) -> Value {
    let rows = event_rows(&given["review_events"]);
    let before = event_rows(&given["prior_events"]);
    let report = review::report(&rows, &before, mode_of(given["mode"].as_str()));
    let distinct: std::collections::BTreeSet<&String> = report.lines.iter().collect();
    json!({
        "lines": report.lines.len(), "distinct_lines": distinct.len(),
        "classified_as": report.learned.word(),
    })
}

fn idle_queue(given: &Value) -> Value {
    let mut queue = IdleQueue::new(review::defer_max_age(&Value::Null));
    let (mut now, mut busy, mut popped) = (0, false, Vec::new());
    for op in texts(&given["ops"]) {
        let parts: Vec<&str> = op.split(':').collect();
        match parts[..] {
            ["t", at] => now = at.parse::<Millis>().unwrap_or(0) * SECOND,
            ["start"] => queue.turn_begins(),
            ["end"] => queue.turn_ends(now),
            ["enqueue", session, tag] => queue.enqueue(session, tag.to_owned(), now),
            ["busy"] => busy = true,
            ["quiet"] => busy = false,
            _ => {
                let item = queue.pop(now, busy);
                popped.push(item.map(|(session, tag)| json!({ "session": session, "tag": tag })));
            }
        }
    }
    json!({ "popped": popped, "left": queue.len() })
}

/// What one request looked like.
pub(super) struct Seen {
    pub(super) lane: Lane,
    pub(super) tools: Vec<String>,
    pub(super) system: String,
    rows: Vec<Row>,
}

/// A model that gives prepared replies and remembers what it was asked.
#[derive(Default)]
pub(super) struct Prepared {
    main: VecDeque<Reply>,
    review: VecDeque<Reply>,
    pub(super) seen: Vec<Seen>,
}

impl Model for Prepared {
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        self.seen.push(Seen {
            lane: ask.lane,
            tools: ask.tools.to_vec(),
            system: ask.system.to_owned(),
            rows: ask.rows.to_vec(),
        });
        let list = if ask.lane == Lane::Review { &mut self.review } else { &mut self.main };
        Ok(list
            .pop_front()
            .unwrap_or_else(|| Reply::say("This is done and there is nothing else to report.")))
    }
}

const SKILL: &str =
    "---\nname: learned\ndescription: What was learned.\n---\n\n# Learned\n\nDo it this way.\n";

/// One reply that calls these tools; none is a text.
fn reply(tools: &[String], ids: &mut u64) -> Reply {
    if tools.is_empty() {
        return Reply::say("This is done and there is nothing else to report.");
    }
    let calls = tools.iter().map(|tool| {
        *ids += 1;
        let arguments = match tool.as_str() {
            "skill_manage" => json!({ "action": "create", "name": "learned", "content": SKILL }),
            "memory" => json!({ "action": "add", "target": "memory", "content": "a fact to keep" }),
            "terminal" => json!({ "command": format!("echo {ids}") }),
            _ => json!({ "path": format!("notes-{ids}.txt") }),
        };
        ToolCall::new(format!("call-{ids}"), tool.as_str(), arguments.to_string())
    });
    Reply::call(calls.collect())
}

/// A fresh runtime with such a model.
pub(super) fn harness_with(policy: Policy) -> Option<Harness<Prepared>> {
    let parts = Parts {
        faults: crate::world::Faults::default(),
        clock: Clock::at(NOW),
        streams: Streams::new(1),
        home: Box::new(MemFiles::new()),
        store: Store::open_in_memory(&policy.store).ok()?,
        cache: cache::for_policy(&policy),
        terminal: Terminal::new(Vec::new()),
        header: Header::default(),
        policy,
    };
    Some(Harness::new(parts, Prepared::default()))
}

fn harness(policy: Policy) -> Option<Harness<Prepared>> {
    let mut harness = harness_with(policy)?;
    harness.begin("s", None).ok()?;
    Some(harness)
}

/// Empty replies in a row that no retry of the loop outlasts.
const EMPTY_REPLIES: usize = 16;

/// The tools of the toolsets that the vectors name.
fn in_toolset(set: &str, tool: &str) -> bool {
    match set {
        "skills" => matches!(tool, "skill_manage" | "skill_view" | "skills_list"),
        "memory" | "terminal" => tool == set,
        "file" => matches!(tool, "read_file" | "write_file" | "patch" | "search_files"),
        _ => false,
    }
}

fn nudge(given: &Value) -> Option<Value> {
    let mut policy = Policy::default();
    let interval = |key: &str| u64::try_from(given[key].as_i64().unwrap_or(0)).unwrap_or(0);
    policy.review.skill_interval = interval("skill_interval");
    policy.review.memory_interval = interval("memory_interval");
    policy.turn.iterations_max = given["max_iterations"].as_u64();
    let store = given["memory_store_present"] == true;
    (policy.memory.memory_enabled, policy.memory.user_enabled) = (store, store);
    let mut harness = harness(policy)?;
    let earlier = given["resumed_user_turns"].as_u64().unwrap_or(0);
    if earlier > 0 {
        for _ in 0..earlier {
            harness.user_turn("s", "before").ok()?;
        }
        harness.forget("s");
        harness.resume("s").ok()?;
    }
    let sets = texts(&given["toolsets"]);
    let session = harness.session_mut("s")?;
    session.keep_tools(|tool| sets.iter().any(|set| in_toolset(set, tool)));
    session.skip_review = given["skip_background_review"] == true;
    let mut ids = 0;
    let mut turns = Vec::new();
    for turn in given["turns"].as_array().into_iter().flatten() {
        harness.model.main = turn["iterations"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|tools| reply(&texts(tools), &mut ids))
            .collect();
        if turn["end"] == "interrupt" {
            let last = reply(&["read_file".to_owned()], &mut ids);
            harness.model.main.push_back(Reply { interrupted: true, ..last });
        }
        if turn["end"] == "empty" {
            harness.model.main.extend((0..EMPTY_REPLIES).map(|_| Reply::say("")));
        }
        let from = harness.ledger().events.len();
        let done = harness.user_turn("s", "go on").ok()?;
        let events = &harness.ledger().events[from..];
        let due = |kind: &str| {
            events.iter().any(|event| matches!(&event.what, What::NudgeDue(due) if &*due.kind == kind))
        };
        let reviewed = events.iter().any(|event| matches!(event.what, What::ReviewStarted(_)));
        let fired = reviewed.then(|| json!({ "memory": due("memory"), "skills": due("skills") }));
        let counters = &harness.session("s")?.agent.counters;
        turns.push(json!({
            "fired": fired, "iters_since_skill": counters.since_skill,
            "turns_since_memory": counters.turns_since_memory, "interrupted": done.interrupted,
            "api_calls": done.requests,
        }));
    }
    Some(json!({ "turns": turns }))
}

/// Written to the home by another process while the parent runs; only who reads memory itself can show it.
const UNSEEN: &str = "another process wrote this";

fn fork(given: &Value, mut policy: Policy) -> Option<Value> {
    let earlier = given["earlier_turns"].as_u64().unwrap_or(0);
    let due = texts(&given["due"]);
    let interval = |kind: &str| if due.iter().any(|due| due == kind) { earlier + 1 } else { 0 };
    policy.review.skill_interval = interval("skills");
    policy.review.memory_interval = interval("memory");
    policy.review.notify = mode_of(given["notification_mode"].as_str());
    policy.compress.window = 256_000;
    if given["different_model"] == true {
        policy.review.model.push_str("another-model");
        policy.review.provider.push_str("another");
    }
    let mut harness = harness(policy)?;
    for _ in 0..earlier {
        harness.user_turn("s", "before").ok()?;
    }
    let mut ids = 0;
    harness.model.review =
        given["fork_script"].as_array()?.iter().map(|tools| reply(&texts(tools), &mut ids)).collect();
    let written = harness.remember("memory", UNSEEN);
    let from = harness.ledger().events.len();
    harness.user_turn("s", "go on").ok()?;
    let events = &harness.ledger().events[from..];
    let ended = events.iter().find_map(|event| match &event.what {
        What::ReviewEnded(ended) => Some(ended),
        _ => None,
    });
    let origins: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::SkillChanged(changed) => Some(&*changed.origin),
            What::MemoryWrite(write) => Some(&*write.origin),
            _ => None,
        })
        .collect();
    let started: Vec<&What> = events
        .iter()
        .map(|event| &event.what)
        .skip_while(|what| !matches!(what, What::ReviewStarted(_)))
        .collect();
    let stored_by_review =
        events.iter().any(|event| matches!(&event.what, What::Stored(stored) if stored.lane == Lane::Review));
    let seen = &harness.model.seen;
    let parent = seen.iter().rfind(|seen| seen.lane == Lane::Main)?;
    let asked: Vec<&Seen> = seen.iter().filter(|seen| seen.lane == Lane::Review).collect();
    let first = asked.first()?;
    let prefix = first.rows.starts_with(&parent.rows) && first.system == parent.system;
    let after: Vec<&str> = first.rows.iter().skip(parent.rows.len()).map(|row| row.role.word()).collect();
    let session = harness.session("s")?;
    let live = session.agent.transcript.rows();
    // The parent ends with its own answer, whatever the fork said since.
    let unchanged = live.starts_with(&parent.rows) && live.len() == parent.rows.len() + 1;
    let shown = ended.map_or(0, |ended| ended.shown.len());
    let configured = harness.policy().review.input_tokens_max.map_or(Value::Null, Value::from);
    let budget = review::input_budget(&configured, &json!(harness.policy().compress.window));
    Some(json!({
        "reviewed": ended.is_some(), "requests": asked.len(),
        "last_request_has_tools": asked.last().is_some_and(|seen| !seen.tools.is_empty()),
        "tools_identical": first.tools == parent.tools, "system_identical": first.system == parent.system,
        "parent_request_is_prefix": prefix, "messages_after_prefix": prefix.then_some(after),
        "max_iterations": ended.map(|ended| ended.iterations_max),
        // The fork works with its parent's store and reads none of its own: what is new on disk is not in its prompt.
        "skip_memory": written && !asked.iter().any(|seen| seen.system.contains(UNSEEN)),
        "session_shared": events.iter().all(|event| &*event.session == "s"),
        "persistence_off": !stored_by_review,
        "nudges_off": !started.iter().any(|what| matches!(what, What::NudgeDue(_))),
        "write_origin": if origins.iter().all(|origin| *origin == Origin::Review.word()) { "background_review" } else { "foreground" },
        "parent_history_unchanged": unchanged, "shown_to_user": shown, "callback_calls": shown,
        "input_budget": budget,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_that_reads_memory_itself_is_noticed() {
        for different in [false, true] {
            let given = json!({
                "earlier_turns": 1, "due": ["skills"], "different_model": different,
                "notification_mode": "on", "fork_script": [[]],
            });
            let skips = |policy: Policy| fork(&given, policy).unwrap()["skip_memory"] == true;
            assert!(skips(Policy::default()), "{different}");
            let mut live = Policy::default();
            live.memory.live_prompt = true;
            assert!(!skips(live), "{different}");
        }
    }
}

//! Faults that users reported, as small inputs of one mechanism each: the runtime must come out as the case says.
//!
//! Each case is put into the words of a vector, and so runs through the functions that the runtime runs.

use std::collections::BTreeSet;

use hermes_lab::agent::delegate::{self, BLOCKED, Call};
use hermes_lab::agent::guard::{Homes, classify};
use hermes_lab::lab::conform::{Fixtures, Vector, deliberate};
use hermes_lab::laws::judge;
use hermes_lab::ledger::{Delegation, Event, What};
use hermes_lab::policy::{self, preset};
use serde_json::{Map, Value, json};

use crate::support::Lab;

/// A file of a case.
#[expect(clippy::disallowed_methods, reason = "tests read the cases from disk")]
fn text(case: &str, file: &str) -> String {
    let path = format!("{}/tests/cases/{case}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn whole(case: &str, file: &str) -> Value {
    serde_json::from_str(&text(case, file)).unwrap()
}

fn lines(case: &str, file: &str) -> Vec<Value> {
    text(case, file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn expected(case: &str) -> Value {
    whole(case, "case.json")["expected"].clone()
}

fn vector(mechanism: &str, given: &Value) -> Vector {
    let line = json!({ "id": "case", "mechanism": mechanism, "given": given, "expect": {} });
    Vector::parse(&line.to_string()).unwrap()
}

/// What the runtime answers: the vector claims something that no answer has, so that the answer is told.
fn answer_with(mechanism: &str, given: &Value, fixtures: &Fixtures) -> Value {
    let mut vector = vector(mechanism, given);
    vector.expect = json!({ "no such key": 0 });
    match vector.run(fixtures).unwrap() {
        hermes_lab::lab::conform::Outcome::Differs { got, .. } => got,
        hermes_lab::lab::conform::Outcome::Agrees => panic!("{mechanism} agreed to anything"),
    }
}

fn answer(mechanism: &str, given: &Value) -> Value {
    answer_with(mechanism, given, &Fixtures::default())
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn schedules_keep_their_hour_when_the_clocks_change() {
    let case = "cron-clock-change";
    let expected = expected(case);
    for row in lines(case, "schedules.jsonl") {
        let schedule = match row["expr"].as_str() {
            Some(expr) => json!({ "kind": "cron", "expr": expr }),
            None => json!({ "kind": "interval", "minutes": row["interval_minutes"] }),
        };
        let given = json!({
            "schedule": schedule, "now": row["after"], "timezone": row["tz"], "last_run_at": row["after"],
        });
        let got = answer("cron.next_run", &given)["next_run_at"].as_str().unwrap().to_owned();
        let instant = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
        let id = row["id"].as_str().unwrap();
        let allowed = names(&expected["next"][id]);
        assert!(allowed.iter().any(|next| instant(next) == instant(&got)), "{id}: {got}, not in {allowed:?}");
    }
}

#[test]
fn the_curator_moves_only_what_is_old_and_its_own() {
    let case = "curator-clock-and-ownership";
    let expected = expected(case);
    let config = whole(case, "config.json");
    let inventory = whole(case, "inventory.json");
    let (mut records, mut on_disk, mut hub) = (Map::new(), Vec::new(), Vec::new());
    for skill in inventory.as_array().unwrap() {
        let name = skill["name"].as_str().unwrap().to_owned();
        let mut record = skill.clone();
        record["last_used_at"] = skill["last_activity_at"].clone();
        if skill["hub"] == true {
            hub.push(name.clone());
        }
        records.insert(name.clone(), record);
        on_disk.push(name);
    }
    let scheduled: Vec<String> = whole(case, "cron_jobs.json")
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|job| names(&job["skills"]))
        .collect();
    let given = json!({
        "now": config["now"],
        "config": { "stale_after_days": config["stale_after_days"], "archive_after_days": config["archive_after_days"], "prune_builtins": false },
        "skills_on_disk": on_disk, "records": records, "hub": hub, "bundled": [], "external": [], "cron_referenced": scheduled,
    });
    let got = answer("curator.transitions", &given);
    let sorted = |list: &Value| names(list).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&got["archived"]), sorted(&expected["archived"]));
    assert_eq!(got["counts"]["marked_stale"], names(&expected["marked_stale"]).len());
    for name in names(&expected["marked_stale"]) {
        assert_eq!(got["states"][&name], "stale", "{name}");
    }
    for name in names(&expected["reactivated"]) {
        assert_eq!(got["states"][&name], "active", "{name}");
    }
    for (name, why) in expected["untouched"].as_object().unwrap() {
        let was = &records_state(&inventory, name);
        assert_eq!(&got["states"][name], was, "{name} is left alone: {why}");
    }
}

fn records_state(inventory: &Value, name: &str) -> Value {
    inventory.as_array().unwrap().iter().find(|skill| skill["name"] == name).unwrap()["state"].clone()
}

#[test]
fn children_neither_delegate_nor_get_what_is_blocked_and_no_call_spawns_too_many() {
    let case = "delegation-spawn-tree";
    let expected = expected(case);
    let policy = policy::Delegate::default();
    let mut accepted = Vec::new();
    let mut spawned: Vec<(u64, u64)> = Vec::new();
    for event in lines(case, "events.jsonl") {
        let child = event["by"] != "root";
        let tool = event["call"].as_str().unwrap();
        let n = event["n"].to_string();
        let refusal = if tool == "delegate_task" {
            let tasks: Vec<Value> = names(&event["tasks"])
                .iter()
                .map(|name| json!({ "goal": format!("Look into part {name} of it.") }))
                .collect();
            let arguments = json!({ "tasks": tasks });
            let call = Call {
                arguments: &arguments,
                has_parent: true,
                depth: u64::from(child),
                paused: false,
                spawned_this_turn: 0,
                oneshot_children: None,
            };
            let admitted = delegate::admit(&call, &policy);
            if let Ok(tasks) = &admitted {
                let turn = event["turn"].as_str().unwrap().trim_start_matches('t').parse().unwrap();
                spawned.push((turn, tasks.len() as u64));
            }
            admitted.err().map(|refusal| match refusal {
                delegate::Refusal::DepthLimit => "depth",
                delegate::Refusal::TooManyTasks => "too_many_at_once",
                _ => "another",
            })
        } else {
            (child && BLOCKED.contains(&tool)).then_some("tool_blocked_for_child")
        };
        match refusal {
            Some(why) => assert_eq!(expected["refused"][&n], why, "event {n}"),
            None => accepted.push(event["n"].clone()),
        }
    }
    assert_eq!(Value::Array(accepted), expected["accepted"]);
    let runaways: Vec<Value> =
        runaway_turns(&spawned).into_iter().map(|turn| json!(format!("t{turn}"))).collect();
    assert_eq!(Value::Array(runaways), expected["runaway_turns"]);
}

/// The turns that the law calls runaways in a ledger of these spawns: turn and number of children.
fn runaway_turns(spawned: &[(u64, u64)]) -> BTreeSet<u64> {
    let mut ledger = Lab::scenario("swarm").run();
    let sample = ledger.events.iter().find_map(|event| match &event.what {
        What::Delegation(asked) if asked.accepted => Some((event.clone(), asked.clone())),
        _ => None,
    });
    let (event, asked) = sample.unwrap();
    ledger.events = spawned
        .iter()
        .map(|(turn, children)| {
            let what = What::Delegation(Delegation { turn: *turn, children: *children, ..asked.clone() });
            Event { what, ..event.clone() }
        })
        .collect();
    let verdict = judge(&ledger);
    let found = verdict.findings().filter(|finding| finding.check == "L5.spawns-per-turn");
    found.map(|finding| finding.place.trim_start_matches("turn ").parse().unwrap()).collect()
}

/// The commands that are judged otherwise than the case says.
fn misjudged(knobs: &policy::Guard) -> Vec<String> {
    let case = "guard-shell-spellings";
    let expected = expected(case);
    let homes = Homes { user: "/home/lab".to_owned(), agent: "/home/lab/.hermes".to_owned() };
    let listed = |list: &str, id: &Value| expected[list].as_array().unwrap().contains(id);
    let mut faults = Vec::new();
    for row in lines(case, "commands.jsonl") {
        let (id, command) = (&row["id"], row["command"].as_str().unwrap());
        let found = classify(command, &homes, knobs);
        let judged = match (found.hardline.is_some(), found.rule.is_some()) {
            (true, _) => "block",
            (false, true) => "ask",
            (false, false) => "allow",
        };
        let wanted: Vec<&str> = if listed("block", id) {
            vec!["block"]
        } else if listed("ask", id) {
            vec!["ask"]
        } else if listed("not_block", id) {
            vec!["ask", "allow"]
        } else {
            vec!["allow"]
        };
        if !wanted.contains(&judged) {
            faults.push(format!("{id}: `{command}` is {judged}, wanted {wanted:?}"));
        }
    }
    faults
}

#[test]
fn a_command_is_judged_by_what_the_shell_would_run() {
    let hardened = policy::Guard { hardened: true, ..policy::Guard::default() };
    assert_eq!(misjudged(&hardened), [""; 0]);
}

/// The entries that are accepted and do not come back, or that must be accepted and are not.
fn lost_entries(rev: &str) -> Vec<String> {
    let case = "memory-delimiter-inside-entry";
    let limits = whole(case, "store.json")["limits"].clone();
    let ops = lines(case, "ops.jsonl");
    let mut steps = vec![json!({ "op": "load" })];
    let mut wanted: Vec<(String, String)> = Vec::new();
    for op in ops.iter().filter(|op| op["op"] == "add") {
        steps.push(op.clone());
        wanted.push((op["target"].as_str().unwrap().to_owned(), op["content"].as_str().unwrap().to_owned()));
    }
    let given = json!({
        "rev": rev, "pinned": "yes", "limits": limits, "enabled": { "memory": true, "user": true }, "files": {}, "steps": steps,
    });
    let got = answer("memory.script", &given);
    let must: Vec<u64> =
        expected(case)["must_accept"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    let mut faults = Vec::new();
    for (index, (target, content)) in wanted.iter().enumerate() {
        let accepted = got["steps"][index + 1]["ok"] == true;
        let file = if target == "user" { "USER.md" } else { "MEMORY.md" };
        let stored = got["files"][file].as_str().unwrap_or_default();
        let comes_back = stored.split("\n§\n").any(|entry| entry == content);
        if accepted && !comes_back {
            faults.push(format!("`{content}` was accepted and does not come back"));
        } else if !accepted && must.contains(&(index as u64 + 1)) {
            faults.push(format!("`{content}` must be accepted"));
        }
    }
    faults
}

#[test]
fn an_entry_with_the_separator_in_it_is_refused_or_comes_back_whole() {
    assert_eq!(lost_entries("hardened"), [""; 0]);
}

#[test]
fn a_full_store_refuses_and_the_fourth_failure_of_a_turn_ends_the_tries() {
    let case = "memory-full-store-turns";
    let expected = expected(case);
    let limit = expected["limit"].clone();
    let mut steps = vec![json!({ "op": "load" }), json!({ "op": "new_turn" })];
    let (mut places, mut turn) = (Vec::new(), json!(1));
    for op in lines(case, "ops.jsonl") {
        if op["turn"] != turn {
            turn = op["turn"].clone();
            steps.push(json!({ "op": "new_turn" }));
        }
        places.push((op["n"].to_string(), steps.len()));
        steps.push(op);
    }
    let given = json!({
        "rev": "any", "pinned": "yes", "limits": { "memory": limit, "user": 1375 },
        "enabled": { "memory": true, "user": true }, "files": {}, "steps": steps,
    });
    let got = answer("memory.script", &given);
    for (n, place) in places {
        let step = &got["steps"][place];
        let outcome = match (step["ok"] == true, step["changed"] == true) {
            (true, true) => "ok",
            (true, false) => "ok_duplicate",
            _ => step["kind"].as_str().unwrap_or("none"),
        };
        assert_eq!(expected["outcomes"][&n], outcome, "operation {n}: {step}");
    }
    let stored = got["files"]["MEMORY.md"].as_str().unwrap();
    assert_eq!(expected["final_chars"], stored.chars().count());
    assert_eq!(expected["final_entry_count"], stored.split("\n§\n").count());
}

#[test]
fn a_review_starts_when_its_nudge_is_due_and_an_answer_was_given() {
    let case = "review-when-it-fires";
    let expected = expected(case);
    let turns: Vec<Value> =
        lines(case, "turns.jsonl").into_iter().filter(|turn| turn.get("source").is_none()).collect();
    let given = json!({
        "skill_interval": 10, "memory_interval": 10, "toolsets": ["skills", "memory", "file", "terminal"],
        "resumed_user_turns": 0, "max_iterations": 60, "skip_background_review": false, "memory_store_present": true,
        "turns": turns.iter().map(|turn| {
            let steps = names(&turn["iterations"]);
            let tools: Vec<Vec<String>> = steps.iter().filter(|step| *step != "final").map(|step| vec![step.clone()]).collect();
            json!({ "iterations": tools, "end": if turn["interrupted"] == true { "interrupt" } else if turn["final_text"] == "" { "empty" } else { "text" } })
        }).collect::<Vec<_>>(),
    });
    let got = answer("review.nudge", &given);
    for (turn, outcome) in turns.iter().zip(got["turns"].as_array().unwrap()) {
        let name = turn["turn"].as_str().unwrap();
        let fired: Vec<&str> =
            ["skills", "memory"].into_iter().filter(|kind| outcome["fired"][kind] == true).collect();
        assert_eq!(json!(fired), *expected["reviews"].get(name).unwrap_or(&json!([])), "{name}");
        if let Some(after) = expected["skill_counter_after"].get(name) {
            assert_eq!(&outcome["iters_since_skill"], after, "skill counter after {name}");
        }
        if let Some(after) = expected["memory_counter_after"].get(name) {
            assert_eq!(&outcome["turns_since_memory"], after, "memory counter after {name}");
        }
    }
}

/// The calls of a review that are answered otherwise than the case says.
fn mistaken_calls(skills: &policy::Skills) -> Vec<String> {
    let case = "review-tool-gate";
    let (expected, context) = (expected(case), whole(case, "context.json"));
    let body = |description: &str| {
        format!("---\nname: NAME\ndescription: {description}\n---\n\nUse npm, tab, a, rye.\n")
    };
    let (mut tree, mut records) = (Map::new(), Map::new());
    let mut bundled = Vec::new();
    for (name, facts) in context["skills"].as_object().unwrap() {
        let text = body("Use when it fits. Does it.").replace("NAME", name);
        tree.insert(format!("{name}/SKILL.md"), json!(text));
        records.insert(name.clone(), facts.clone());
        if facts["bundled"] == true {
            bundled.push(name.clone());
        }
    }
    let (mut steps, mut places) = (Vec::new(), Vec::new());
    let mut refused_at_dispatch = Map::new();
    for call in lines(case, "calls.jsonl") {
        let (n, tool, args) = (call["n"].to_string(), call["tool"].as_str().unwrap(), &call["args"]);
        let given = json!({ "tool": tool, "review_memory": context["memory_nudge_due"] });
        if answer("review.dispatch_decision", &given)["denied"] == true {
            refused_at_dispatch.insert(n, json!("tool_not_in_review_set"));
            continue;
        }
        let mut step = args.clone();
        step["op"] = json!(match tool {
            "skill_manage" => "manage",
            "skill_view" => "view",
            _ => continue,
        });
        for (from, to) in [("old", "old_string"), ("new", "new_string")] {
            if let Some(value) = args.get(from) {
                step[to] = value.clone();
            }
        }
        if let Some(description) = args["description"].as_str() {
            step["content"] = json!(body(description).replace("NAME", args["name"].as_str().unwrap()));
        }
        places.push((n, steps.len()));
        steps.push(step);
    }
    let given = json!({
        "tree": tree, "usage": records, "bundled": bundled, "hub": [], "origin": "background_review",
        "steps": steps, "policy": "managed_only",
        "config": { "skills.review_delete_absorbs": skills.review_delete_absorbs },
    });
    let got = answer("skills.scenario", &given);
    let allowed: BTreeSet<String> =
        expected["allowed"].as_array().unwrap().iter().map(Value::to_string).collect();
    let mut faults = Vec::new();
    for (n, place) in places {
        let outcome = &got["results"][place];
        let done = outcome["success"] == true || outcome["viewed"] == true;
        if done != allowed.contains(&n) {
            faults.push(format!("call {n}: {outcome}"));
        }
    }
    for (n, why) in refused_at_dispatch {
        if expected["refused"][&n] != why {
            faults.push(format!("call {n}: {why}"));
        }
    }
    faults
}

#[test]
fn a_review_changes_only_what_the_agent_made_and_what_it_has_read() {
    let hardened = preset::policy("hardened").unwrap().unwrap();
    assert_eq!(mistaken_calls(&hardened.skills), [""; 0]);
}

/// One session per document, each with one message.
fn corpus(documents: &Value) -> Fixtures {
    let sessions: Vec<Value> = documents
        .as_object()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, (name, text))| {
            let at = 1_788_000_000 + index * 60;
            let message = json!({ "role": "user", "content": text, "id": index + 1, "timestamp": at, "active": 1, "compacted": 0 });
            json!({ "id": name, "source": "cli", "title": name, "messages": [message], "started_at": at })
        })
        .collect();
    Fixtures::of(&[vector("search.corpus", &json!({ "corpus": "case", "sessions": sessions }))])
}

const INDEXES: [&str; 3] = ["unicode61", "trigram", "cjk_bigram"];

fn indexes() -> Value {
    INDEXES.iter().map(|index| ((*index).to_owned(), json!(true))).collect::<Map<_, _>>().into()
}

/// The queries that find other documents than the case says.
fn misled_queries(rev: &str) -> Vec<String> {
    let case = "search-literal-queries";
    let expected = expected(case);
    let fixtures = corpus(&whole(case, "documents.json"));
    let mut faults = Vec::new();
    for (query, wanted) in expected["hits"].as_object().unwrap() {
        let given = json!({ "corpus": "case", "indexes": indexes(), "query": query, "rev": rev });
        let got = answer_with("search.query", &given, &fixtures);
        let found: BTreeSet<String> = got["hits"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|hit| hit[1].as_str())
            .map(str::to_owned)
            .collect();
        if found != names(wanted).into_iter().collect() {
            faults.push(format!("`{query}`: {found:?}"));
        }
    }
    faults
}

#[test]
fn a_query_finds_its_own_words_whatever_signs_are_in_them() {
    assert_eq!(misled_queries("hardened"), [""; 0]);
}

#[test]
fn the_index_cuts_what_is_too_long_and_a_strict_loader_refuses_it() {
    let case = "skills-index-lines";
    let expected = expected(case);
    let skills = whole(case, "skills.json");
    let (mut shortened, mut refused) = (Vec::new(), BTreeSet::new());
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut collisions = Vec::new();
    for skill in skills.as_array().unwrap() {
        let (name, description) = (skill["name"].as_str().unwrap(), skill["description"].as_str().unwrap());
        if !seen.insert(name.to_owned()) {
            collisions.push(name.to_owned());
            continue;
        }
        let content = format!("---\nname: {name}\ndescription: \"{description}\"\n---\n\nBody text.\n");
        let bad_name =
            !name.is_ascii() || answer("skills.validate_name", &json!({ "name": name }))["error"].is_null();
        let bad_text =
            answer("skills.validate_frontmatter", &json!({ "content": content, "new_skill": false }));
        if !bad_name || !bad_text["error"].is_null() {
            refused.insert(name.to_owned());
            continue;
        }
        let shown = answer("skills.index_description", &json!({ "description": description }));
        if shown["truncated"] == true {
            shortened.push(name.to_owned());
        }
        if let Some(length) = expected["shown_length"].get(name) {
            assert_eq!(*length, shown["text"].as_str().unwrap().chars().count(), "{name}");
        }
        for word in names(&expected["lost_trigger_words"][name]) {
            assert!(
                description.contains(&word) && !shown["text"].as_str().unwrap().contains(&word),
                "{name}: {word}"
            );
        }
    }
    assert_eq!(json!(shortened), expected["shortened"]);
    assert_eq!(refused, names(&expected["refused_by_strict_loader"]).into_iter().collect());
    assert_eq!(json!(collisions), expected["name_collisions"]);
}

#[test]
fn a_result_slot_belongs_to_a_conversation_and_quotes_the_part_that_matched() {
    let case = "search-one-slot-per-conversation";
    let (expected, query) = (expected(case), whole(case, "query.json"));
    let hits = whole(case, "hits.json");
    // The longer a text, the lower it ranks; so the index ranks as the case says.
    let ranked = |hit: &Value| {
        let words = hit["text"].as_str().unwrap().split(' ').count();
        let wanted = usize::try_from(hit["rank"].as_u64().unwrap()).unwrap() * 10;
        format!("{}{}", hit["text"].as_str().unwrap(), " and".repeat(wanted - words))
    };
    let sessions: Vec<Value> = whole(case, "sessions.json")
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, session)| {
            let at = 1_788_000_000 + index * 3600;
            let own = hits.as_array().unwrap().iter().filter(|hit| hit["session"] == session["id"]);
            let messages: Vec<Value> = own
                .map(|hit| json!({ "role": "user", "content": ranked(hit), "id": hit["message"], "timestamp": at, "active": 1, "compacted": 0 }))
                .collect();
            let mut session = session.clone();
            session["messages"] = json!(messages);
            session["started_at"] = json!(at);
            session
        })
        .collect();
    let fixtures =
        Fixtures::of(&[vector("search.corpus", &json!({ "corpus": "case", "sessions": sessions }))]);
    let given = json!({
        "corpus": "case", "indexes": indexes(), "query": query["query"], "limit": query["limit"],
        "current_session_id": query["current_session"],
    });
    let got = answer_with("search.discover", &given, &fixtures);
    let results: Vec<Value> = got["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            // The answer names the conversation only where it is another session than the quoted part.
            let conversation = result.get("lineage_root").unwrap_or(&result["session_id"]);
            json!({ "conversation": conversation, "matched_session": result["session_id"], "message": result["anchor"] })
        })
        .collect();
    assert_eq!(Value::Array(results), expected["results"]);
}

/// The list that `conform` prints is the truth: each case on it fails by default, and no other of these does.
#[test]
fn the_default_fails_just_the_cases_that_are_listed_as_deliberate() {
    let by_default: [(&str, Vec<String>); 4] = [
        ("guard-shell-spellings", misjudged(&policy::Guard::default())),
        ("memory-delimiter-inside-entry", lost_entries("any")),
        ("review-tool-gate", mistaken_calls(&policy::Skills::default())),
        ("search-literal-queries", misled_queries("any")),
    ];
    let listed = deliberate().cases;
    for (case, difference) in &listed {
        let (_, faults) = by_default.iter().find(|(name, _)| name == case).unwrap();
        assert!(!faults.is_empty(), "{case} holds by default now; strike it from the list");
        assert!(difference.real.len() > 20, "{case} needs a reason");
        let hardened = preset::policy("hardened").unwrap().unwrap();
        let (knob, default) = (&difference.mended_by, policy::Policy::default());
        let turned = hardened.get(knob).is_some_and(|value| default.get(knob) != Some(value));
        assert!(turned, "{case}: the preset does not turn `{knob}`");
    }
    for (case, faults) in &by_default {
        assert!(faults.is_empty() || listed.contains_key(*case), "{case}: {faults:?} is not listed");
    }
}

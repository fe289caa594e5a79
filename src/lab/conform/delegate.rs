//! Adapter of the family `delegate`.

use serde_json::{Map, Value, json};

use super::review::{Prepared, harness_with};
use super::{Fixtures, ReplayError};
use crate::agent::delegate::{
    self, Asked, BLOCKED, Beat, Call, Catalogue, DEFAULT_TOOLSETS, Ended, Heartbeat, Role, SchemaOutcome,
    Toolset,
};
use crate::agent::harness::Harness;
use crate::cache::Ttl;
use crate::ledger::{Lane, What};
use crate::policy::{self, Policy};
use crate::wire::Row;
use crate::world::Files as _;
use crate::world::clock::SECOND;

/// Replays one vector.
pub(super) fn replay(function: &str, given: &Value, fixtures: &Fixtures) -> Result<Value, ReplayError> {
    let with = |config: &Value| delegate::with_settings(&policy::Delegate::default(), config);
    Ok(match function {
        "catalog" => json!({ "blocked_tools": BLOCKED, "default_toolsets": DEFAULT_TOOLSETS }),
        "child_toolsets" => child_toolsets(given, fixtures)?,
        "admission" => admission(given),
        "child_construction" => {
            built(given).ok_or_else(|| ReplayError::Missing("a child that can be built".to_owned()))?
        }
        "child_cache_ttl" => {
            let inherited = [Ttl::Minutes5, Ttl::Minutes30, Ttl::Hour1]
                .into_iter()
                .find(|ttl| ttl.word() == given["inherited"]);
            json!({ "effective": inherited.map(|ttl| delegate::child_ttl(ttl).word()) })
        }
        "role" => {
            let policy = with(&given["config"]);
            let depth = given["parent_depth"].as_u64().unwrap_or(0) + 1;
            let role = Role::at(depth, &policy);
            json!({ "child_depth": depth, "role": role.word(), "may_delegate": role == Role::Orchestrator })
        }
        "background" => {
            json!({ "background": delegate::runs_in_background(given["depth"].as_u64().unwrap_or(0)) })
        }
        "child_timeout" => json!({ "seconds": delegate::child_timeout(&given["value"]) }),
        "concurrency" => {
            json!({ "limit": delegate::concurrency(&given["value"], given["env"].as_str()) })
        }
        "compression_cap" => json!({ "tokens": delegate::compression_cap(&given["value"]) }),
        "summary_budget" => {
            let number = |key: &str| given[key].as_u64().unwrap_or(0);
            let used = Some(number("prompt_tokens")).filter(|used| *used > 0);
            let used = used.unwrap_or_else(|| number("last_usage_prompt_tokens"));
            let window = &given["context_length"];
            json!({ "chars_per_summary": delegate::budget(window, used, number("output_reserve"), number("summaries")) })
        }
        "summary_trim" => summary_trim(given),
        "summary_apply" => summary_apply(given, &with(&given["config"])),
        "result_entry" => result_entry(given),
        "error_preview" => {
            json!({ "is_error": delegate::is_error(given["content"].as_str().unwrap_or_default()) })
        }
        "argument_summary" => {
            let (keys, targets) = delegate::argument_summary(given["arguments"].as_str().unwrap_or_default());
            json!({ "argument_keys": keys, "targets": targets })
        }
        "tool_trace" => {
            let rows: Vec<Row> = rows(&given["messages"]);
            let trace = delegate::trace(&rows).into_iter().map(|call| {
                let mut call = call.to_json();
                if let Some(fields) = call.as_object_mut() {
                    fields.retain(|key, _| !matches!(key.as_str(), "argument_keys" | "targets"));
                }
                call
            });
            json!({ "trace": trace.collect::<Vec<_>>() })
        }
        "json_candidate" => {
            json!({ "candidate": delegate::candidate(given["text"].as_str().unwrap_or_default()) })
        }
        "schema_check" => {
            let checked = delegate::check(given["text"].as_str().unwrap_or_default(), &given["schema"]);
            let paths: Vec<&String> = checked.errors.iter().map(|(path, _)| path).collect();
            json!({ "valid": checked.valid, "error_paths": paths })
        }
        "heartbeat" => heartbeat(given),
        "completion_units" => {
            let groups = given["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
            let independent = given["independent_completions"] == true;
            json!({ "units": delegate::completion_units(groups, independent) })
        }
        _ => return Err(ReplayError::UnknownFunction(format!("delegate.{function}"))),
    })
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn rows(list: &Value) -> Vec<Row> {
    list.as_array().into_iter().flatten().map(Row::from_json).collect()
}

/// Sets that only the catalogue's corner cases use: no tool is at home in them.
const NOBODYS_HOME: [&str; 5] = ["full", "debugging", "safe", "blockedmix", "halfmix"];

fn child_toolsets(given: &Value, fixtures: &Fixtures) -> Result<Value, ReplayError> {
    let table = fixtures
        .of_mechanism("delegate.catalog")
        .iter()
        .find(|table| table["name"] == given["catalog"])
        .ok_or_else(|| ReplayError::Missing("the catalogue of toolsets".to_owned()))?;
    let sets: Vec<(String, Toolset)> = table["toolsets"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, set)| {
            (name.clone(), Toolset { tools: texts(&set["tools"]), includes: texts(&set["includes"]) })
        })
        .collect();
    let home = |tool: &String| {
        sets.iter()
            .filter(|(name, _)| !NOBODYS_HOME.contains(&name.as_str()))
            .find(|(_, set)| set.tools.contains(tool))
            .map(|(name, _)| name.clone())
    };
    let asked = Asked {
        enabled: given["parent_enabled"].is_array().then(|| texts(&given["parent_enabled"])),
        loaded: texts(&given["parent_tool_names"]).iter().filter_map(home).collect(),
        disabled: texts(&given["parent_disabled"]),
        requested: texts(&given["requested"]),
        inherit_external: given["inherit_external"] == true,
    };
    let role = if given["role"] == "orchestrator" { Role::Orchestrator } else { Role::Leaf };
    let child = delegate::child_tools(&asked, role, &Catalogue(sets.iter().cloned().collect()));
    Ok(json!({ "enabled": child.enabled, "disabled": child.disabled, "effective_tools": child.tools }))
}

fn admission(given: &Value) -> Value {
    let policy = delegate::with_settings(&policy::Delegate::default(), &given["config"]);
    let mut arguments = Map::new();
    for key in ["goal", "tasks", "action", "background"] {
        arguments.insert(key.to_owned(), given[key].clone());
    }
    arguments.extend(given["top"].as_object().cloned().unwrap_or_default());
    let call = Call {
        arguments: &Value::Object(arguments),
        has_parent: given["has_parent"] == true,
        depth: given["depth"].as_u64().unwrap_or(0),
        paused: given["paused"] == true,
        spawned_this_turn: 0,
        oneshot_children: given["oneshot_children_already"].as_u64(),
    };
    match delegate::admit(&call, &policy) {
        Ok(tasks) => json!({
            "accepted": true, "error": null, "task_count": tasks.len(), "iteration_budget": policy.max_iterations,
        }),
        Err(refusal) => json!({
            "accepted": false, "error": refusal.to_string(), "task_count": null, "iteration_budget": null,
        }),
    }
}

/// Spawns a child through the runtime and looks at what was built.
fn built(given: &Value) -> Option<Value> {
    let mut policy = Policy {
        delegate: delegate::with_settings(&policy::Delegate::default(), &given["config"]),
        ..Policy::default()
    };
    policy.turn.iterations_max = Some(7);
    let mut harness: Harness<Prepared> = harness_with(policy)?;
    harness.workspace().write("AGENTS.md", b"The project's own rule.").ok()?;
    harness.remember("memory", "A fact of the parent.");
    harness.begin("parent", None).ok()?;
    let tools = harness.session("parent")?.tools.clone();
    harness.delegate_outside(given["parent_depth"].as_u64().unwrap_or(0), "Look into it.", &tools).ok()?;
    let asked = harness.model.seen.iter().find(|seen| seen.lane == Lane::Child)?;
    let parent = harness.session("parent")?;
    let events = &harness.ledger().events;
    let name = events.iter().find_map(|event| match &event.what {
        What::SessionStarted(started) if &*started.why == "delegate" => Some(event.session.clone()),
        _ => None,
    })?;
    let stored = harness.store().session(&name).ok()??;
    let reported = events.iter().any(
        |event| matches!(&event.what, What::Delegation(done) if done.accepted && &*event.session == "parent"),
    );
    // Beside the prompt proper a child is told of its work, context files included; that part is not stored.
    let proper = harness.store().read_prompt(&name).ok()??;
    let shows = |prompt: &str, text: &str| prompt.contains(text);
    Some(json!({
        "platform": stored.source,
        "skip_memory": shows(&parent.system, "A fact of the parent.") && !shows(&asked.system, "A fact of the parent."),
        "skip_context_files": shows(&parent.system, "own rule") && !shows(&proper, "own rule"),
        "max_iterations": harness.policy().delegate.max_iterations,
        "own_iteration_budget": harness.policy().turn.iterations_max != Some(harness.policy().delegate.max_iterations),
        "parent_session_linked": stored.parent.as_deref() == Some("parent"),
        "lineage_marker": stored.model_config.contains_key("_delegate_from"),
        "quiet": !events.iter().any(|event| matches!(event.what, What::Delivered(_)) && event.session == name),
        "clarify_callback": asked.tools.iter().find(|tool| *tool == "clarify"),
        "registered_with_parent": reported,
    }))
}

fn summary_trim(given: &Value) -> Value {
    const EDGE: usize = 12;
    let spec = &given["text_spec"];
    let times = spec["times"].as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or(0);
    let text =
        spec["unit"].as_str().unwrap_or_default().repeat(times) + spec["suffix"].as_str().unwrap_or_default();
    let Some(cut) = delegate::trim(&text, given["cap"].as_u64().unwrap_or(0)) else { return Value::Null };
    let head: Vec<char> = cut.head.chars().collect();
    json!({
        "head_chars": head.len(), "tail_chars": cut.tail.chars().count(),
        "head_ends_with": head[head.len().saturating_sub(EDGE)..].iter().collect::<String>(),
        "tail_starts_with": cut.tail.chars().take(EDGE).collect::<String>(),
        "head_newlines": cut.head.matches('\n').count(), "resume_line": cut.resume_line,
    })
}

fn summary_apply(given: &Value, policy: &policy::Delegate) -> Value {
    let lengths: Vec<Option<u64>> =
        given["summary_lengths"].as_array().into_iter().flatten().map(Value::as_u64).collect();
    let said = lengths.iter().flatten().filter(|chars| **chars > 0).count() as u64;
    let parent = &given["parent"];
    let used = parent["prompt_tokens"].as_u64().unwrap_or(0);
    let cap =
        delegate::cap(delegate::budget(&parent["context_length"], used, 0, said), policy.max_summary_chars);
    let cut = |chars: &Option<u64>| {
        let text = "x".repeat(usize::try_from(chars.unwrap_or(0)).unwrap_or(0));
        cap.is_some_and(|cap| delegate::trim(&text, cap).is_some())
    };
    let truncated: Vec<bool> = lengths.iter().map(cut).collect();
    let untouched: Vec<bool> = truncated.iter().map(|cut| !cut).collect();
    json!({ "truncated": truncated, "untouched": untouched })
}

fn result_entry(given: &Value) -> Value {
    let result = &given["result"];
    let text = |key: &str| result[key].as_str().map(str::to_owned);
    let ended = Ended {
        text: text("final_response").unwrap_or_default(),
        completed: result["completed"] == true,
        failed: result["failed"] == true,
        error: text("error"),
        failure_reason: text("failure_reason"),
        interrupted: result["interrupted"] == true,
        api_calls: result["api_calls"].as_u64().unwrap_or(0),
        rows: rows(&result["messages"]),
        missed_steer: text("pending_steer"),
        model: "m".to_owned(),
        tokens: (11, 5),
        cost: Some(0.012_345_678_9),
        seconds: 0.0,
    };
    let schema = (given["schema"]["declared"] == true).then(|| SchemaOutcome {
        valid: given["schema"]["valid"] == true,
        errors: texts(&given["schema"]["errors"]),
        retries: given["schema"]["retries"].as_u64().unwrap_or(0),
    });
    let mut entry = delegate::entry(3, &ended, schema.as_ref()).0;
    let mut fields: Vec<String> =
        entry.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    fields.sort();
    entry["fields"] = json!(fields);
    entry["has_error"] = json!(entry.get("error").is_some());
    entry["summary_is_final_text"] = json!(entry["summary"] == ended.text.as_str());
    entry
}

fn heartbeat(given: &Value) -> Value {
    let mut watch = Heartbeat::default();
    let (mut tick, mut touches) = (0_u64, 0_u64);
    for sample in given["samples"].as_array().into_iter().flatten() {
        for _ in 0..sample["ticks"].as_u64().unwrap_or(0) {
            tick += 1;
            let calls = sample["api_calls"].as_u64().unwrap_or(0);
            match watch.tick(calls, sample["tool"].as_str(), sample["activity"].as_f64()) {
                Beat::Alive => touches += 1,
                Beat::Stale(after) => {
                    let seconds = after / SECOND;
                    return json!({
                        "stale_at_tick": tick, "stale_threshold_seconds": seconds, "parent_touches": touches,
                    });
                }
            }
        }
    }
    json!({ "stale_at_tick": null, "stale_threshold_seconds": null, "parent_touches": touches })
}

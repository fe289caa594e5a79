//! Adapter for the context compressor's vectors. Translates words; behaves in no way of its own.

use serde_json::{Map, Value, json};

use crate::agent::compress::carry::{self, Anchor, Todo};
use crate::agent::compress::estimate::{self, Sizer};
use crate::agent::compress::failure::{FailureKind, SummaryFailure};
use crate::agent::compress::gate::{self, Block, Rest, State};
use crate::agent::compress::prune::{self, Decision, Proactive, ProactiveLimits, Tail};
use crate::agent::compress::tool_summary::{self, CallOutcome};
use crate::agent::compress::window::{self, Limits, Past};
use crate::agent::compress::{
    Ask, Compressor, ModelFacts, Outcome, SummaryRequest, assemble, handoff, history, micro, pairs, snapshot,
    threshold,
};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::{Compress, TailMode};
use crate::wire::{Role, Row, ToolCall};

type Answer = Result<Value, ReplayError>;

/// Answers one vector.
///
/// # Errors
/// An unknown function, or an input that lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Answer {
    let given = Given(given);
    match function {
        "threshold" => Ok(threshold_figures(given)),
        "aux_ceiling" => Ok(aux_ceiling(given)),
        "model_threshold" => model_threshold(given),
        "model_switch" => Ok(model_switch(given)),
        "estimate_tokens" => Ok(json!({"tokens": estimate::text_tokens(given.text("text")?)})),
        "message_tokens" => Ok(message_tokens(given)),
        "align" => align(given),
        "tail_cut" => Ok(tail_cut(given)),
        "head_size" => Ok(head_size(given)),
        "window" => Ok(window_of(given)),
        "sanitize_pairs" => Ok(sanitize_pairs(given)),
        "prune" => Ok(prune_rows(given)),
        "proactive_prune" => Ok(proactive_prune(given)),
        "tool_summary" => tool_line(given),
        "summary_placement" => Ok(placement(given)),
        "summary_budget" => {
            let (window, content) = (given.size("context_length"), given.size("content_tokens"));
            Ok(json!({"tokens": threshold::summary_budget(window, content, &Compress::default())}))
        }
        "gate" => gate_ops(given),
        "preflight_gate" => Ok(preflight_gate(given)),
        "made_progress" => {
            let rows = (given.size("rows_before"), given.size("rows_after"));
            let tokens = (given.size("tokens_before"), given.size("tokens_after"));
            Ok(json!({"progress": gate::made_progress(rows, tokens, &Compress::default())}))
        }
        "another_pass" => {
            let (before, after) = (given.size("tokens_before"), given.size("tokens_after"));
            let threshold = given.size("threshold_tokens");
            Ok(json!({"again": gate::another_pass(before, after, threshold, &Compress::default())}))
        }
        "idle_compact" => Ok(idle_compact(given)),
        "micro_exchange" => {
            let rows = given.rows("messages");
            let found = micro::exchange(&rows, given.index("start"), given.index("tail_start"));
            Ok(json!({"exchange": found.map(|found| [found.start, found.end])}))
        }
        "last_rows" => Ok(last_rows(given)),
        "pending" => Ok(pending(given)),
        "verbatim_users" => Ok(verbatim_users(given)),
        "todo_carry" => Ok(todo_carry(given)),
        "user_anchor" => Ok(user_anchor(given)),
        "summary_failure" => Ok(summary_failure(given)),
        "run" => Ok(run(given)),
        other => Err(ReplayError::UnknownFunction(format!("compress.{other}"))),
    }
}

#[derive(Clone, Copy)]
struct Given<'a>(&'a Value);

impl<'a> Given<'a> {
    fn value(self, key: &str) -> &'a Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    fn text(self, key: &str) -> Result<&'a str, ReplayError> {
        self.value(key).as_str().ok_or_else(|| ReplayError::Missing(key.to_owned()))
    }

    fn size(self, key: &str) -> u64 {
        self.value(key).as_u64().unwrap_or(0)
    }

    fn index(self, key: &str) -> usize {
        usize::try_from(self.size(key)).unwrap_or(usize::MAX)
    }

    fn flag(self, key: &str) -> bool {
        self.value(key).as_bool().unwrap_or(false)
    }

    /// A positive integer, or nothing.
    fn positive(self, key: &str) -> Option<u64> {
        self.value(key).as_u64().filter(|number| *number > 0)
    }

    fn items(self, key: &str) -> &'a [Value] {
        self.value(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn rows(self, key: &str) -> Vec<Row> {
        self.items(key).iter().map(Row::from_json).collect()
    }

    fn sizes(self, key: &str) -> Vec<u64> {
        self.items(key).iter().filter_map(Value::as_u64).collect()
    }

    /// A policy with those knobs turned that the vector names.
    fn policy(self) -> Compress {
        let mut policy = Compress { threshold_tokens: self.positive("cap"), ..Compress::default() };
        for (word, knob) in [
            ("threshold", "threshold"),
            ("floor", "threshold_floor"),
            ("protect_first_n", "protect_first_n"),
            ("protect_last_n", "protect_last_n"),
            ("min_tail_user_messages", "min_tail_user_messages"),
            ("abort_on_summary_failure", "abort_on_summary_failure"),
            ("tail_token_budget", "tail_budget"),
            ("trigger_tokens", "proactive_prune_tokens"),
            ("min_result_chars", "proactive_prune_min_result_chars"),
            ("min_reclaim_tokens", "proactive_prune_min_reclaim_tokens"),
            ("enabled", "enabled"),
            ("idle_after_seconds", "idle_compact_after_seconds"),
        ] {
            // A value that does not fit means that the knob keeps its default, as the agent's own reading does.
            let _ = policy.set(knob, self.value(word));
        }
        if let Some(options) = self.value("options").as_object() {
            for (knob, value) in options {
                let _ = policy.set(knob, value);
            }
        }
        policy
    }
}

fn threshold_figures(given: Given<'_>) -> Value {
    let policy = given.policy();
    let window = given.size("context_length");
    let found = threshold::threshold(window, policy.threshold, given.positive("max_tokens"), None, &policy);
    let lean = threshold::tail_budget(window, found.tokens, TailMode::Lean, &policy);
    json!({
        "effective_ratio": found.ratio,
        "threshold_tokens": found.tokens,
        "tail_budget_lean": lean,
        "tail_budget_legacy": threshold::tail_budget(window, found.tokens, TailMode::Legacy, &policy),
        "tail_soft_ceiling_lean": threshold::soft_ceiling(lean, window, &policy),
        "max_summary_tokens": threshold::summary_max(window, &policy),
    })
}

fn compressor(given: Given<'_>, window: u64, name: &str) -> Compressor {
    let model = ModelFacts { name: name.to_owned(), window, ..ModelFacts::default() };
    Compressor::new(&given.policy(), model, State::default())
}

fn aux_ceiling(given: Given<'_>) -> Value {
    let mut compressor = compressor(given, given.size("context_length"), "m");
    let before = compressor.threshold().tokens;
    compressor.learn_summary_window(given.size("aux_context"));
    json!({"before": before, "after": compressor.threshold().tokens})
}

fn model_threshold(given: Given<'_>) -> Answer {
    let table: Vec<(String, f64)> = given
        .value("table")
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, ratio)| Some((key.clone(), ratio.as_f64()?)))
        .collect();
    let provider = given.value("provider").as_str().unwrap_or("");
    let default = given.value("default").as_f64().unwrap_or(0.5);
    Ok(json!({"ratio": threshold::model_ratio(given.text("model")?, provider, &table, default)}))
}

fn model_switch(given: Given<'_>) -> Value {
    let mut steps = Vec::new();
    let windows = given.sizes("windows");
    let mut compressor = compressor(given, windows.first().copied().unwrap_or(0), "m0");
    let before = Given(given.value("before_each_switch"));
    for (place, window) in windows.iter().enumerate() {
        if place > 0 {
            compressor.state.strikes = before.size("ineffective");
            compressor.state.fallback_streak = before.size("fallback_streak");
            compressor.state.last_prompt_tokens = before.value("last_prompt_tokens").as_i64().unwrap_or(0);
            let name = if given.flag("model_name_changes") { format!("m{place}") } else { "m0".to_owned() };
            compressor.switch_model(ModelFacts { name, window: *window, ..ModelFacts::default() });
        }
        let mut step = json!({"threshold_tokens": compressor.threshold().tokens});
        // A vector that sets no usage asks for fewer figures.
        let sized = before.value("last_prompt_tokens").is_number();
        if sized {
            step["tail_budget"] = json!(compressor.tail_budget());
        }
        if place > 0 {
            step["ineffective"] = json!(compressor.state.strikes);
            step["fallback_streak"] = json!(compressor.state.fallback_streak);
            if sized {
                step["last_prompt_tokens"] = json!(compressor.state.last_prompt_tokens);
            }
        }
        steps.push(step);
    }
    json!({"steps": steps})
}

fn message_tokens(given: Given<'_>) -> Value {
    let policy = Compress::default();
    let sizer = Sizer::new(&policy);
    let row = Row::from_json(given.value("message"));
    json!({"tokens": sizer.row(&row, true), "tokens_without_stale_thinking": sizer.row(&row, false)})
}

fn rows_of_roles(roles: &str) -> Vec<Row> {
    let roles: Vec<char> = roles.chars().collect();
    let mut rows = Vec::new();
    for (index, role) in roles.iter().enumerate() {
        rows.push(match role {
            's' => Row::new(Role::System, "s"),
            'a' => Row::assistant("a"),
            'A' => {
                let results = roles[index + 1..].iter().take_while(|role| **role == 't').count();
                let calls =
                    (1..=results.max(1)).map(|next| ToolCall::new((index + next).to_string(), "t", "{}"));
                Row::calls("", calls.collect())
            }
            't' => Row::result(index.to_string(), "t", "r"),
            _ => Row::user("u"),
        });
    }
    rows
}

fn align(given: Given<'_>) -> Answer {
    let rows = rows_of_roles(given.text("roles")?);
    let index = given.index("index");
    Ok(json!({
        "forward": history::align_forward(&rows, index),
        "backward": history::align_backward(&rows, index),
    }))
}

fn limits(given: Given<'_>, budget: &str) -> Limits {
    Limits {
        tail_budget: given.size(budget),
        window: given.size("context_length"),
        may_split_turn: given.value("allow_split_turn").as_bool().unwrap_or(true),
    }
}

fn tail_cut(given: Given<'_>) -> Value {
    let policy = given.policy();
    let limits = limits(given, "token_budget");
    let (rows, prices) = (given.rows("messages"), given.sizes("prices"));
    let cut = window::tail_cut(&rows, &prices, given.index("head_end"), limits, &policy);
    let ceiling = threshold::soft_ceiling(limits.tail_budget, limits.window, &policy);
    json!({"cut": cut, "soft_ceiling": ceiling})
}

fn past(given: Given<'_>) -> Past {
    Past { compressions: given.size("compression_count"), has_summary: given.flag("has_previous_summary") }
}

fn head_size(given: Given<'_>) -> Value {
    let summaries = given.sizes("summary_rows");
    let rows: Vec<Row> = (0..given.size("n_messages"))
        .map(|index| match index {
            0 if given.flag("has_system") => Row::new(Role::System, "s"),
            index if summaries.contains(&index) => Row::user("sum").with(handoff::SUMMARY_FLAG, true),
            index if index % 2 == 1 => Row::user("u"),
            _ => Row::assistant("a"),
        })
        .collect();
    json!({"protected": window::head_size(&rows, past(given), &given.policy())})
}

fn window_of(given: Given<'_>) -> Value {
    let (rows, prices) = (given.rows("messages"), given.sizes("prices"));
    let found =
        window::window(&rows, &prices, past(given), limits(given, "tail_token_budget"), &given.policy());
    json!({"start": found.start, "end": found.end, "has_content": found.has_content()})
}

/// Rows that remember their index under a private key.
fn tagged(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().enumerate().map(|(index, row)| row.with("_index", index)).collect()
}

fn tag(row: &Row) -> Value {
    row.extra.get("_index").cloned().unwrap_or(Value::Null)
}

fn sanitize_pairs(given: Given<'_>) -> Value {
    let rows = tagged(given.rows("messages"));
    let (kept, _) = pairs::clean(rows.clone());
    let kept: Vec<Value> = kept
        .iter()
        .map(|row| {
            let calls: Option<Vec<&str>> =
                row.tool_calls.as_ref().map(|calls| calls.iter().map(|call| call.id.as_str()).collect());
            let index = tag(row).as_u64().and_then(|index| usize::try_from(index).ok());
            let before = index.and_then(|index| rows.get(index));
            let replaced = before.is_some_and(|before| before.content != row.content);
            json!({"i": tag(row), "calls": calls, "content_replaced": replaced})
        })
        .collect();
    json!({"kept": kept})
}

fn decision_word(decision: Decision) -> &'static str {
    match decision {
        Decision::Keep => "keep",
        Decision::Duplicate => "duplicate",
        Decision::Summarized => "summarized",
        Decision::ImageStripped => "image_stripped",
    }
}

fn prune_rows(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let window = given.size("context_length");
    let tail = Tail {
        rows: given.index("protect_tail_count"),
        budget: given.value("protect_tail_tokens").as_u64(),
        window,
        input_budget: window,
        min_chars: given.size("min_prune_chars"),
    };
    let done = prune::prune(&rows, tail, &Compress::default());
    let decisions: Vec<&str> = done.decisions.iter().copied().map(decision_word).collect();
    let calls_same = rows.iter().zip(&done.rows).all(|(old, new)| old.tool_calls == new.tool_calls);
    json!({
        "pruned": done.count,
        "decisions": decisions,
        "input_untouched": rows == given.rows("messages"),
        "arguments_untouched": calls_same,
    })
}

fn proactive_prune(given: Given<'_>) -> Value {
    let mut rows = vec![Row::new(Role::System, "s"), Row::user("go")];
    for (round, letter) in (0..given.index("tool_rounds")).zip(('a'..='z').cycle()) {
        let id = format!("c{round}");
        rows.push(Row::calls("", vec![ToolCall::new(id.as_str(), "terminal", "{\"command\": \"ls\"}")]));
        rows.push(Row::result(id, "terminal", letter.to_string().repeat(given.index("result_chars"))));
    }
    let policy = given.policy();
    let window = given.size("context_length");
    let threshold = threshold::threshold(window, policy.threshold, None, None, &policy);
    let limits = ProactiveLimits {
        current: given.value("current_tokens").as_u64(),
        threshold: threshold.tokens,
        head: window::head_size(&rows, Past::default(), &policy),
        window,
        input_budget: threshold.input_budget,
        runway: given.size("rearm_tokens"),
    };
    match prune::proactive(&rows, limits, &policy) {
        Proactive::Idle => {
            json!({"pruned": 0, "same_object": true, "committed": false, "rearm_is_set": false})
        }
        Proactive::Committed { count, runway, .. } => json!({
            "pruned": count, "same_object": false, "committed": true, "rearm_is_set": runway > limits.runway,
        }),
    }
}

fn tool_line(given: Given<'_>) -> Answer {
    let arguments = given.value("arguments").as_str().unwrap_or("");
    let content = given.value("content").as_str().unwrap_or("");
    let tool = given.text("tool")?;
    let line = tool_summary::summarize(tool, arguments, content);
    // The vector's own fragments are looked for; the answer lists those that are as they should be.
    let probe = |text: &str| line.text.contains(text);
    Ok(json!({
        "single_line": line.text.lines().count() == 1,
        "under_200_chars": line.text.chars().count() < 200,
        "starts_with_tool_tag": line.text.starts_with(&format!("[{tool}]")),
        "says_failed": line.outcome == CallOutcome::Failed,
        "says_skipped": line.outcome == CallOutcome::Skipped,
        "says_refused": matches!(line.outcome, CallOutcome::Refused { .. }),
        "says_no_consent": line.outcome == (CallOutcome::Refused { no_consent: true }),
        "carries_skill_marker": probe(tool_summary::SKILL_MARKER),
        "line": line.text,
    }))
}

fn role_word(role: &Role) -> &str {
    role.word()
}

fn placement(given: Given<'_>) -> Value {
    let (head, tail) = (given.rows("head"), given.rows("tail"));
    let place = assemble::placement(&head, &tail, given.index("compress_start"), &Compress::default());
    json!({
        "role": role_word(&place.role),
        "merge_into_tail": place.merge,
        "must_lead_as_user": place.lead,
        "first_visible_tail_index": place.first_visible,
    })
}

fn gate_ops(given: Given<'_>) -> Answer {
    let policy = Compress::default();
    let threshold = given.size("threshold_tokens");
    let mut state = State::default();
    let mut now = 1_000_000_000_i64;
    let mut results = Vec::new();
    for op in given.items("ops") {
        let word = op.get(0).and_then(Value::as_str).unwrap_or("");
        let argument = op.get(1).unwrap_or(&Value::Null);
        let number = argument.as_u64().unwrap_or(0);
        results.push(match word {
            "ask" => {
                let verdict = state.ask(number, threshold, now, &policy);
                let blocked = verdict.blocked_by.map(|block| match block {
                    Block::Cooldown => "cooldown",
                    Block::Backoff => "structural_backoff",
                    Block::Breaker => "ineffective",
                });
                json!({"compress": verdict.compress, "blocked_by": blocked, "seconds": verdict.seconds})
            }
            "advance" => {
                now += argument.as_i64().unwrap_or(0) * 1_000;
                Value::Null
            }
            "done" => {
                state.completed(argument.as_bool().unwrap_or(false), false);
                Value::Null
            }
            "usage" => {
                state.usage(number, threshold);
                json!({"ineffective": state.strikes})
            }
            "rejected" => {
                state.refused();
                json!({"ineffective": state.strikes})
            }
            "noop" => {
                state.back_off(now, &policy);
                Value::Null
            }
            "cooldown" => {
                state.cool_down(number, "", now);
                Value::Null
            }
            "manual" => {
                state.lift_pauses();
                Value::Null
            }
            "bench" => json!({"skip_summary_model": state.benches_model(now, &policy)}),
            "streak" => json!({"fallback_streak": state.fallback_streak}),
            "timeout" => json!({"cooldown": state.timeout_pause(&policy)}),
            "truncated" => json!({"cooldown": state.truncated_pause(&policy)}),
            "defer" => json!({"defer": state.defers(number, threshold)}),
            "arm_defer" => {
                state.awaits_usage = true;
                Value::Null
            }
            "no_usage" => {
                state.no_usage();
                Value::Null
            }
            "reset" => {
                state = State::default();
                Value::Null
            }
            other => return Err(ReplayError::UnknownFunction(format!("gate op {other}"))),
        });
    }
    Ok(json!({"results": results}))
}

fn preflight_gate(given: Given<'_>) -> Value {
    let due = gate::preflight_due(
        given.size("n_messages"),
        given.size("rough_tokens"),
        given.size("threshold_tokens"),
        &given.policy(),
    );
    json!({"run_estimate": due})
}

fn idle_compact(given: Given<'_>) -> Value {
    let rest = Rest {
        gap_seconds: given.size("idle_gap_seconds"),
        tokens: given.size("tokens"),
        floor: given.size("floor_tokens"),
        last_result: given.size("last_compaction_tokens"),
        cooling: given.flag("cooldown_active"),
    };
    json!({"compact": gate::idle_due(rest, &given.policy())})
}

fn place(index: Option<usize>) -> Value {
    index.map_or_else(|| json!(-1), |index| json!(index))
}

fn last_rows(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let head = given.index("head_end");
    json!({
        "last_user": place(history::last_human(&rows, head)),
        "last_assistant": place(history::last_assistant(&rows, head)),
    })
}

fn pending(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    json!({
        "unfinished_request": history::unfinished_request(&rows),
        "pending_round": history::pending_round(&rows).map(|round| [round.start, round.end]),
        "blank_echoes": history::blank_echoes(&rows),
    })
}

fn verbatim_users(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let quotes = snapshot::quotes(&rows);
    let places: Vec<Option<usize>> =
        quotes.rows.iter().rev().map(|index| quotes.text.find(rows[*index].content.flat().trim())).collect();
    json!({
        "present": !quotes.text.is_empty(),
        "quoted": quotes.rows,
        "newest_first": places.is_sorted(),
    })
}

fn todo_carry(given: Given<'_>) -> Value {
    let items: Vec<Todo> = given
        .items("items")
        .iter()
        .map(|item| {
            let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
            Todo {
                id: text("id").unwrap_or_default(),
                content: text("content").unwrap_or_default(),
                status: text("status").unwrap_or_default(),
                parent: text("parent"),
            }
        })
        .collect();
    let lines: Vec<Value> = carry::todo_lines(&items)
        .iter()
        .map(|line| json!({"id": line.id, "depth": line.depth, "mark": line.mark}))
        .collect();
    json!({"injected": carry::todo_text(&items, &[]).is_some(), "lines": lines})
}

fn user_anchor(given: Given<'_>) -> Value {
    let mut rows = tagged(given.rows("compressed"));
    let outcome = match carry::anchor_human(&mut rows, &given.rows("original")) {
        Anchor::Present => "already_present",
        Anchor::Inserted(_) => "inserted",
        Anchor::Merged => "merged",
        Anchor::Placeholder(_) => "placeholder_appended",
        Anchor::PlaceholderMerged => "placeholder_merged",
    };
    let order: Vec<Value> =
        rows.iter().map(|row| if tag(row).is_null() { json!("new") } else { tag(row) }).collect();
    let roles: Vec<&str> = rows.iter().map(|row| row.role.word()).collect();
    json!({"outcome": outcome, "order": order, "roles": roles})
}

fn scripted(step: &Value) -> Result<String, SummaryFailure> {
    if let Some(error) = step.get("error") {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("");
        let status = error.get("status").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let kind = match error.get("kind").and_then(Value::as_str) {
            Some("http") => FailureKind::Http,
            Some("connection") => FailureKind::Connection,
            Some("timeout") => FailureKind::Timeout,
            Some("json" | "json_decode") => FailureKind::NotJson,
            _ => FailureKind::Other,
        };
        return Err(SummaryFailure { kind, status, message: message.to_owned() });
    }
    if step.get("finish").and_then(Value::as_str) == Some("length") {
        return Err(SummaryFailure::new(FailureKind::Truncated, "cut by the output limit"));
    }
    Ok(step.get("reply").and_then(Value::as_str).unwrap_or("").to_owned())
}

fn summary_failure(given: Given<'_>) -> Value {
    let mut rows = vec![Row::new(Role::System, "s")];
    for round in 0..12 {
        rows.push(Row::user(format!("ask {round} {}", "q".repeat(400))));
        rows.push(Row::assistant(format!("reply {round} {}", "r".repeat(400))));
    }
    let policy = Compress { tail_budget: Some(300), ..given.policy() };
    let model = ModelFacts {
        window: 200_000,
        distinct_summary_model: given.flag("distinct_summary_model"),
        ..ModelFacts::default()
    };
    let state = State {
        timeout_streak: given.size("prior_timeouts"),
        overload_streak: given.size("prior_overload_aborts"),
        ..State::default()
    };
    let mut compressor = Compressor::new(&policy, model, state);
    let script = given.items("script");
    let mut calls = 0;
    let mut answer = |_: &SummaryRequest| {
        let step = script.get(calls).or(script.last()).unwrap_or(&Value::Null);
        calls += 1;
        scripted(step)
    };
    let now = 1_000_000;
    let outcome = compressor.compress(&rows, Ask { now, ..Ask::default() }, &mut answer);
    let by_rule = matches!(&outcome, Outcome::Compacted { report, .. }
        if report.origin != crate::agent::compress::SummaryOrigin::Model);
    json!({
        "summary_calls": calls,
        "aborted": matches!(outcome, Outcome::Aborted { .. }),
        "history_unchanged": !matches!(outcome, Outcome::Compacted { .. }),
        "used_fallback": by_rule,
        "cooldown_seconds": compressor.state.cooldown_left(now).unwrap_or(0),
        "compression_count": compressor.state.compressions,
        "fell_back_to_main_model": compressor.fell_back_to_main,
    })
}

fn generation(text: &str) -> Option<u64> {
    let (_, after) = text.split_once("ZZ-SUMMARY-BODY")?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

fn shown(row: &Row, input: &[Row]) -> Value {
    let mut object = Map::new();
    let from = tag(row);
    let summary = handoff::is_handoff(row);
    object.insert("role".to_owned(), json!(row.role.word()));
    object.insert("from".to_owned(), from.clone());
    object.insert("summary".to_owned(), json!(summary));
    if summary {
        object.insert("carries_live_text".to_owned(), json!(!from.is_null()));
        object.insert("generation".to_owned(), json!(generation(&row.content.flat())));
    } else if row.is_tool() {
        let before = from.as_u64().and_then(|at| usize::try_from(at).ok()).and_then(|at| input.get(at));
        object.insert(
            "shortened".to_owned(),
            json!(before.is_some_and(|before| before.content != row.content)),
        );
    }
    Value::Object(object)
}

fn run(given: Given<'_>) -> Value {
    let state = State {
        compressions: given.size("compression_count"),
        previous_summary: given.value("previous_summary").as_str().map(str::to_owned),
        ..State::default()
    };
    let model = ModelFacts { window: given.size("context_length"), ..ModelFacts::default() };
    let mut compressor = Compressor::new(&given.policy(), model, state);
    let reply = given.value("summary_reply").as_str().unwrap_or("").to_owned();
    let mut rows = given.rows("messages");
    let mut passes = Vec::new();
    let (mut calls, mut carried) = (0_u64, false);
    for pass in 0..given.size("passes") {
        if pass > 0 {
            let place = usize::try_from(pass - 1).unwrap_or(usize::MAX);
            let more = given.items("appended_before_pass").get(place);
            rows.extend(more.and_then(Value::as_array).into_iter().flatten().map(Row::from_json));
        }
        let input = tagged(rows);
        let before = calls;
        let mut answer = |request: &SummaryRequest| {
            calls += 1;
            carried = request.previous.is_some();
            Ok(reply.replace("{n}", &calls.to_string()))
        };
        let ask = Ask { now: 1_000_000, session: "s1", ..Ask::default() };
        let outcome = compressor.compress(&input, ask, &mut answer);
        if before == calls {
            carried = false;
        }
        let (out, orphans, by_rule, unchanged) = match outcome {
            Outcome::Compacted { rows, report } => (
                rows,
                report.orphan_results,
                report.origin != crate::agent::compress::SummaryOrigin::Model,
                false,
            ),
            _ => (input.clone(), pairs::orphan_results(&input), false, true),
        };
        passes.push(json!({
            "unchanged": unchanged,
            "rows": out.iter().map(|row| shown(row, &input)).collect::<Vec<_>>(),
            "compression_count": compressor.state.compressions,
            "used_fallback": by_rule,
            "summary_calls": calls,
            "prompt_carried_previous_summary": carried,
            "system_note_added": out.first().is_some_and(handoff::has_system_note),
            "orphan_results": orphans,
        }));
        rows = out
            .into_iter()
            .map(|mut row| {
                row.extra.remove("_index");
                row
            })
            .collect();
    }
    json!({"passes": passes})
}

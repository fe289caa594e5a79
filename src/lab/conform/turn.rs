//! Vectors of the turn loop (`loop.*`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::agent::threats::Scanner;
use crate::agent::transcript::Measure;
use crate::agent::turn::guardrails::{Decision, Guardrails, hard_stop_default};
use crate::agent::turn::results::{self, ResultBudget};
use crate::agent::turn::{
    Agent, Host, StoreFault, ToolOutcome, budget, calls, close_interrupted, run, sanitize,
};
use crate::agent::turn::{segments, text};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::model::{Finish, ModelError, Reply};
use crate::policy::{self, Parallel};
use crate::wire::{Chain, Row, ToolCall, repair};

/// Replays one vector.
pub(super) fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    let policy = policy::Turn::default();
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    Ok(match function {
        "turn" => whole_turn(given),
        "segments" => split(given),
        "destructive" => json!({ "destructive": results::is_destructive(text("command")) }),
        "mutation_targets" => json!({ "paths": segments::mutation_targets(text("tool"), &given["args"]) }),
        "untrusted" => untrusted(given),
        "result_id" => json!({ "id": calls::result_id(text("id")) }),
        "result_budget" => {
            let limits = ResultBudget::for_window(given["context_tokens"].as_i64(), &policy);
            let tools = ["read_file", "mcp_x_y", "no_such_tool"];
            let each: BTreeMap<_, _> = tools.iter().map(|tool| (*tool, limits.for_tool(tool))).collect();
            json!({
                "result_chars": limits.result_chars, "turn_chars": limits.round_chars,
                "preview_chars": policy.preview_chars, "server_tool_chars": limits.server_chars, "for": each,
            })
        }
        "preview" => {
            let (kept, more) = results::preview(text("content"), number(&given["max"]));
            json!({ "kept": kept.chars().count(), "more": more })
        }
        "spill_name" => {
            let name = results::spill_name(text("id"));
            let suffixed =
                name.len() > 16 && name.strip_suffix(".txt").is_some_and(|stem| stem != text("id"));
            json!({ "length": name.len(), "suffixed": suffixed, "name": name })
        }
        "persist" => persist(given, &policy),
        "turn_budget" => {
            let sizes: Vec<u64> = numbers(&given["sizes"]);
            let limits = ResultBudget::for_window(given["context_tokens"].as_i64(), &policy);
            let spilled = vec![false; sizes.len()];
            let chosen = results::over_budget(&sizes, &spilled, limits.round_chars, policy.preview_chars);
            json!({ "spilled": chosen })
        }
        "iteration_budget" => iteration_budget(given),
        "warning_ratio" => json!({ "ratio": budget::warning_ratio(&given["value"]) }),
        "repair" => {
            let repaired = repair::repair(rows(&given["messages"]));
            let messages: Vec<Value> = repaired.rows.iter().map(Row::to_json).collect();
            json!({ "repairs": repaired.report.repairs(), "messages": messages })
        }
        "sanitize" => {
            let messages: Vec<Value> =
                sanitize::sanitize(&rows(&given["messages"])).iter().map(marked).collect();
            json!({ "messages": messages })
        }
        "unique_ids" => {
            let taken: BTreeSet<String> = texts(&given["taken"]).into_iter().collect();
            json!({ "ids": calls::unique_ids(&texts(&given["ids"]), &taken) })
        }
        "provider_ids" => json!({ "ids": calls::provider_ids(&texts(&given["ids"])) }),
        "repair_name" => json!({ "name": calls::repair_name(text("name"), &texts(&given["valid"])) }),
        "dedupe" => json!({ "kept": calls::dedupe(&call_list(&given["calls"])) }),
        "close_interrupted" => {
            let (closed, hidden, content) =
                close_interrupted(&rows(&given["messages"]), given["text"].as_str());
            json!({ "closed": closed, "hidden": hidden, "content": content })
        }
        "guardrail" => guardrail(given, &policy),
        "loop_cap" => loop_cap(given),
        "hard_stop_default" => json!({ "hard_stop": hard_stop_default(text("platform")) }),
        "trailing_intent" => json!({ "continues": text::announces_a_step(text("text"), &policy) }),
        "degenerate_final" => json!({ "fragment": text::is_fragment(text("text"), text("user"), &policy) }),
        other => return Err(ReplayError::UnknownFunction(format!("loop.{other}"))),
    })
}

fn number(value: &Value) -> usize {
    value.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn rows(value: &Value) -> Vec<Row> {
    value.as_array().into_iter().flatten().map(Row::from_json).collect()
}

fn call_list(value: &Value) -> Vec<ToolCall> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| ToolCall::new(text(&call["id"]), text(&call["name"]), text(&call["args"])))
        .collect()
}

fn split(given: &Value) -> Value {
    let rules = if given["rev"] == "older" { Parallel::Older } else { Parallel::Current };
    let cwd = given["cwd"].as_str().unwrap_or("/");
    let runs =
        segments::runs(&call_list(&given["calls"]), cwd, &texts(&given["parallel_server_tools"]), rules);
    let shown: Vec<Value> = runs
        .into_iter()
        .map(|run| json!([if run.parallel { "parallel" } else { "sequential" }, run.calls]))
        .collect();
    json!({ "segments": shown })
}

fn untrusted(given: &Value) -> Value {
    let (tool, content) =
        (given["tool"].as_str().unwrap_or_default(), given["content"].as_str().unwrap_or_default());
    let fenced = results::fence(tool, content);
    let scanner = Scanner::new(&policy::Threats::default());
    let risk = results::risk(tool, content, &scanner);
    json!({
        "risk": risk.as_ref().map(|risk| if risk.high { "high" } else { "low" }),
        "findings": risk.map(|risk| risk.ids),
        "wrapped": fenced.wrapped, "elision_noted": fenced.elision_noted,
        "inner_delimiters": results::fence_words(&fenced.text),
    })
}

fn persist(given: &Value, policy: &policy::Turn) -> Value {
    let chars = number(&given["chars"]);
    let lines = given["lines"].as_bool().unwrap_or(false);
    let line = if lines { format!("{}\n", "x".repeat(99)) } else { "x".repeat(100) };
    let text: String = line.chars().cycle().take(chars).collect();
    let limits = ResultBudget::for_window(given["context_tokens"].as_i64(), policy);
    let over =
        limits.for_tool(given["tool"].as_str().unwrap_or_default()).is_some_and(|max| chars as u64 > max);
    let (kept, _) = results::preview(&text, number(&json!(policy.preview_chars)));
    json!({
        "persisted": over,
        "saved_chars": over.then_some(chars),
        "preview_chars": over.then_some(kept.chars().count()),
    })
}

fn iteration_budget(given: &Value) -> Value {
    let mut budget = budget::IterationBudget::new(given["max"].as_u64());
    let steps: Vec<Value> = given["ops"]
        .as_str()
        .unwrap_or_default()
        .chars()
        .map(|op| {
            let granted = if op == 'c' {
                Some(budget.consume())
            } else {
                budget.refund();
                None
            };
            json!([granted, budget.used(), budget.left()])
        })
        .collect();
    json!({ "steps": steps })
}

/// A row whose text is the sanitiser's own is shown as such.
fn marked(row: &Row) -> Value {
    let mut value = row.to_json();
    if matches!(row.content.text(), Some(sanitize::STUB | sanitize::PLACEHOLDER)) {
        value["content"] = json!({ "synthetic": true });
    }
    value
}

fn shown(decision: &Decision) -> Value {
    json!([decision.action, decision.code, decision.count])
}

fn guardrail(given: &Value, policy: &policy::Turn) -> Value {
    let hard = given["config"]["hard_stop_enabled"].as_bool().unwrap_or(false);
    let mut guardrails = Guardrails::new(hard);
    let steps: Vec<Value> = given["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| {
            if step == "turn" {
                guardrails = Guardrails::new(hard);
                return json!({});
            }
            let (tool, arguments) = (step["tool"].as_str().unwrap_or_default(), step["args"].to_string());
            let before = guardrails.before(tool, &arguments, policy);
            if before.blocks() {
                return json!({ "before": shown(&before), "halted": guardrails.halted() });
            }
            let failed = step["failed"].as_bool().unwrap_or(false);
            let result = step["result"].as_str().unwrap_or_default();
            let after = guardrails.after(tool, &arguments, result, failed, policy);
            json!({
                "before": shown(&before), "after": shown(&after.decision), "notice": after.notice,
                "stub": after.stub, "halted": guardrails.halted(),
            })
        })
        .collect();
    json!({ "steps": steps })
}

fn loop_cap(given: &Value) -> Value {
    let mut policy = policy::Turn::default();
    if let Some(max) = given["cap"]["max_web_searches"].as_u64() {
        policy.web_searches_max = max;
    }
    if let Some(max) = given["cap"]["max_subagents"].as_u64() {
        policy.spawns_max = max;
    }
    let mut guardrails = Guardrails::default();
    let steps: Vec<Value> = given["calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| {
            let tool = call["tool"].as_str().unwrap_or_default();
            let decision = guardrails.caps(tool, &call["args"].to_string(), &policy);
            json!([decision.action, decision.code])
        })
        .collect();
    json!({ "steps": steps })
}

/// A host with a scripted model and scripted tools.
struct Scripted<'a> {
    given: &'a Value,
    next: usize,
    dispatched: BTreeSet<String>,
    request_roles: Vec<Vec<String>>,
    stop: bool,
}

impl Host for Scripted<'_> {
    fn measure(&self) -> Measure {
        |text| text.len() as u64
    }

    fn tools(&self) -> Vec<String> {
        texts(&self.given["tools"])
    }

    fn before_request(&mut self, _: &mut Agent) -> bool {
        true
    }

    fn ask(&mut self, agent: &mut Agent, _: u64) -> Result<Reply, ModelError> {
        let sent = agent.transcript.rows().iter().filter(|row| !row.flag(crate::agent::transcript::PREFILL));
        self.request_roles.push(sent.map(|row| row.role.word().to_owned()).collect());
        let script = self.given["script"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(step) = script.get(self.next.min(script.len().saturating_sub(1))) else {
            return Err(ModelError::Script("an empty script".to_owned()));
        };
        self.next += 1;
        Ok(Reply {
            text: step["text"].as_str().map(str::to_owned),
            calls: call_list(&step["calls"]),
            finish: match step["finish"].as_str() {
                Some("tool_calls") => Finish::ToolCalls,
                Some("length") => Finish::Length,
                _ => Finish::Stop,
            },
            reasoning: step["reasoning"].as_str().map(str::to_owned),
            output_tokens: Some(2),
            interrupted: false,
        })
    }

    fn dispatch(&mut self, _: &mut Agent, call: &ToolCall) -> ToolOutcome {
        self.dispatched.insert(call.id.clone());
        let plan = &self.given["results"][&call.id];
        let raised = plan["raise"].as_bool().unwrap_or(false);
        self.stop |= plan["interrupt"].as_bool().unwrap_or(false);
        ToolOutcome {
            text: if raised {
                "{\"error\": \"the tool raised\"}".to_owned()
            } else {
                scripted_result(self.given, &call.id)
            },
            failed: raised,
            dispatched: true,
            interrupt: plan["interrupt"].as_bool().unwrap_or(false),
            steer: plan["steer"].as_str().map(str::to_owned),
        }
    }

    fn refused(&mut self, _: &Agent, _: &ToolCall, _: &'static str, _: &str) {}

    fn store(&mut self, _: &[Row], _: &[Chain]) -> Result<(), StoreFault> {
        Ok(())
    }

    fn spill(&mut self, name: &str, _: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn interrupted(&mut self) -> bool {
        self.stop
    }
}

fn scripted_result(given: &Value, id: &str) -> String {
    given["results"][id]["result"].as_str().map_or_else(|| json!({ "ok": id }).to_string(), str::to_owned)
}

fn whole_turn(given: &Value) -> Value {
    let policy = policy::Turn { iterations_max: given["max_iterations"].as_u64(), ..policy::Turn::default() };
    let mut host =
        Scripted { given, next: 0, dispatched: BTreeSet::new(), request_roles: Vec::new(), stop: false };
    let counts_iterations = host.tools().iter().any(|tool| tool == "skill_manage");
    let mut agent = Agent { counts_iterations, ..Agent::default() };
    agent.transcript.replace(rows(&given["history"]), host.measure());
    agent.stored = agent.transcript.rows().len();
    agent.dirty = true;
    let user = Row::user(given["user"].as_str().unwrap_or_default());
    let report = match run(&mut host, &mut agent, &policy, user) {
        Ok(report) => report,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    if agent.counters.since_skill >= policy::Review::default().skill_interval {
        agent.counters.since_skill = 0;
    }
    let scripted: Vec<&str> =
        given["script"].as_array().into_iter().flatten().filter_map(|step| step["text"].as_str()).collect();
    let known = |text: &str| {
        scripted.iter().any(|script| text::visible(script) == text || *script == text)
            || (!text.is_empty() && scripted.concat().contains(text))
    };
    let shown: Vec<Value> = agent.transcript.rows().iter().map(|row| shown_row(row, given, &known)).collect();
    let synthetic = json!({ "synthetic": true });
    let mut got = json!({
        "exit": report.exit, "api_calls": report.iterations, "requests": report.requests,
        "request_roles": host.request_roles, "completed": report.completed, "failed": report.failed,
        "partial": report.partial, "interrupted": report.interrupted, "rows": shown,
        "dispatched": host.dispatched, "budget_used": report.budget_used,
        "final": if report.answer_is_synthetic { synthetic } else { json!(report.answer) },
        "skill_iterations": agent.counters.since_skill,
    });
    if let Some(steer) = &agent.pending_steer {
        got["pending_steer"] = json!(steer);
    }
    got
}

fn shown_row(row: &Row, given: &Value, known: &dyn Fn(&str) -> bool) -> Value {
    let mut shown = json!({ "role": row.role.word() });
    if let Some(id) = row.tool_call_id.as_ref().filter(|_| row.is_tool()) {
        shown["for"] = json!(id);
        shown["given"] = json!(row.content.flat() == scripted_result(given, id));
        return shown;
    }
    if row.has_calls() {
        shown["calls"] = row.call_list().iter().map(|call| call.id.as_str()).collect();
    }
    let text = row.content.flat();
    let from_history =
        given["history"].as_array().into_iter().flatten().any(|old| old["content"] == json!(text));
    let from_user = given["user"].as_str() == Some(text.as_str());
    if text.is_empty() || from_history || from_user || known(&text) {
        shown["text"] = json!(text);
    } else {
        shown["synthetic"] = json!(true);
    }
    shown
}

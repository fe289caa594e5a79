//! Repeated and fruitless calls within one turn: warnings, stubs, blocks, halts.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::agent::transcript::canonical;
use crate::policy;

/// What a guardrail decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// `allow`, `warn`, `block` or `halt`.
    pub action: &'static str,
    /// Identifier of the rule; `None` when it allows.
    pub code: Option<&'static str>,
    /// The count that it rests on.
    pub count: u64,
}

impl Decision {
    fn allow(count: u64) -> Self {
        Self { action: "allow", code: None, count }
    }

    fn of(action: &'static str, code: &'static str, count: u64) -> Self {
        Self { action, code: Some(code), count }
    }

    /// True when the call must not run.
    pub fn blocks(&self) -> bool {
        self.action == "block"
    }
}

/// What follows from a finished call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// The decision about the result.
    pub decision: Decision,
    /// `identical_call_streak` or `call_cycle`.
    pub notice: Option<&'static str>,
    /// True when the row holds a reference to the earlier, equal result.
    pub stub: bool,
}

/// Cycle history: calls looked back over; Hermes agent/tool_guardrails.py.
const HISTORY_MAX: usize = 64;
const CYCLE_LENGTHS: std::ops::RangeInclusive<usize> = 2..=4;
const READ_ONLY: [&str; 9] = [
    "read_file",
    "search_files",
    "web_search",
    "web_extract",
    "session_search",
    "skill_view",
    "skills_list",
    "browser_snapshot",
    "vision_analyze",
];
const MUTATING: [&str; 2] = ["write_file", "patch"];
const FAILING_IS_WORK: [&str; 5] =
    ["terminal", "execute_code", "process_manage", "browser_navigate", "web_extract"];

/// A tool and its arguments in canonical form.
type Key = Arc<(String, String)>;

/// What a call gave back. Few results are ever compared with one another, so a result is brought into a comparable form
/// only where one of other bytes stands against it.
#[derive(Debug)]
struct Outcome {
    tool: String,
    text: String,
    comparable: OnceLock<String>,
}

impl Outcome {
    fn comparable(&self) -> &str {
        self.comparable.get_or_init(|| comparable(&self.tool, &self.text))
    }
}

impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        (self.tool == other.tool && self.text == other.text) || self.comparable() == other.comparable()
    }
}

/// The guardrails of one turn.
#[derive(Debug, Clone, Default)]
pub struct Guardrails {
    hard_stop: bool,
    exact_failures: BTreeMap<Key, u64>,
    tool_failures: BTreeMap<String, u64>,
    fruitless: BTreeMap<Key, (Arc<Outcome>, u64)>,
    streak: Option<(Key, Arc<Outcome>, u64)>,
    history: Vec<(Key, Arc<Outcome>)>,
    searches: u64,
    spawns: u64,
    halted: Option<&'static str>,
}

impl Guardrails {
    /// Fresh guardrails for one turn.
    pub fn new(hard_stop: bool) -> Self {
        Self { hard_stop, ..Self::default() }
    }

    /// The rule that ended the turn, if one did.
    pub fn halted(&self) -> Option<&'static str> {
        self.halted
    }

    /// Asked before a call runs.
    pub fn before(&mut self, tool: &str, arguments: &str, policy: &policy::Turn) -> Decision {
        let capped = self.caps(tool, arguments, policy);
        if capped.blocks() {
            return capped;
        }
        if self.hard_stop {
            let key = (tool.to_owned(), canonical(arguments));
            let failures = self.exact_failures.get(&key).copied().unwrap_or(0);
            if failures >= policy.repeat_block_from {
                self.halted = Some("repeated_exact_failure_block");
                return Decision::of("block", "repeated_exact_failure_block", failures);
            }
            let fruitless = self.fruitless.get(&key).map_or(0, |(_, count)| *count);
            if fruitless >= policy.repeat_block_from {
                self.halted = Some("idempotent_no_progress_block");
                return Decision::of("block", "idempotent_no_progress_block", fruitless);
            }
        }
        Decision::allow(0)
    }

    /// The caps on searches and spawned children, always on; counts the call when it passes.
    pub fn caps(&mut self, tool: &str, arguments: &str, policy: &policy::Turn) -> Decision {
        if tool == "web_search" {
            if policy.web_searches_max > 0 && self.searches >= policy.web_searches_max {
                return Decision::of("block", "loop_web_search_cap", self.searches);
            }
            self.searches += 1;
        }
        if tool == "delegate_task" {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let action =
                arguments.get("action").and_then(Value::as_str).unwrap_or_default().trim().to_lowercase();
            if matches!(action.as_str(), "list" | "steer" | "stop") {
                return Decision::allow(0);
            }
            if policy.spawns_max > 0 && self.spawns >= policy.spawns_max {
                return Decision::of("block", "loop_subagent_cap", self.spawns);
            }
            let tasks = arguments.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
            self.spawns += tasks.max(1) as u64;
        }
        Decision::allow(0)
    }

    /// Told after a call ran.
    pub fn after(
        &mut self,
        tool: &str,
        arguments: &str,
        result: &str,
        failed: bool,
        policy: &policy::Turn,
    ) -> After {
        let key = Arc::new((tool.to_owned(), canonical(arguments)));
        let text = result.to_owned();
        let value = Arc::new(Outcome { tool: tool.to_owned(), text, comparable: OnceLock::new() });
        let decision = if failed {
            self.count_failure(tool, &key, policy)
        } else {
            self.count_success(tool, &key, &value, policy)
        };
        let streak = match &mut self.streak {
            Some((last, last_value, count)) if *last == key && *last_value == value => {
                *count += 1;
                *count
            }
            _ => {
                self.streak = Some((key.clone(), value.clone(), 1));
                1
            }
        };
        self.history.push((key, value));
        if self.history.len() > HISTORY_MAX {
            self.history.remove(0);
        }
        let poller = tool == "process_manage" || tool.ends_with("_get_result") || tool.ends_with("_poll");
        let mut notice = None;
        if !poller && streak >= policy.streak_notice_from {
            notice = Some("identical_call_streak");
            if self.hard_stop && streak >= policy.streak_halt_at {
                self.halted = Some("identical_call_streak_halt");
            }
        } else if !poller {
            let laps = self.cycle_laps();
            if laps >= policy.cycle_laps_notice {
                notice = Some("call_cycle");
                if self.hard_stop && laps >= policy.cycle_laps_halt {
                    self.halted = Some("call_cycle_halt");
                }
            }
        }
        let stub = streak >= 2 && !failed && result.chars().count() as u64 >= policy.stub_chars_min;
        After { decision, notice, stub }
    }

    fn count_failure(&mut self, tool: &str, key: &Key, policy: &policy::Turn) -> Decision {
        let exact = self.exact_failures.entry(key.clone()).or_insert(0);
        *exact += 1;
        let exact = *exact;
        let of_tool = self.tool_failures.entry(tool.to_owned()).or_insert(0);
        *of_tool += 1;
        let of_tool = *of_tool;
        self.fruitless.remove(key);
        if self.hard_stop && of_tool >= policy.tool_failures_halt_at && !FAILING_IS_WORK.contains(&tool) {
            self.halted = Some("same_tool_failure_halt");
            return Decision::of("halt", "same_tool_failure_halt", of_tool);
        }
        if exact >= policy.repeat_warn_from {
            Decision::of("warn", "repeated_exact_failure_warning", exact)
        } else if of_tool >= policy.tool_failures_warn_from {
            Decision::of("warn", "same_tool_failure_warning", of_tool)
        } else {
            Decision::allow(exact)
        }
    }

    fn count_success(
        &mut self,
        tool: &str,
        key: &Key,
        value: &Arc<Outcome>,
        policy: &policy::Turn,
    ) -> Decision {
        self.tool_failures.remove(tool);
        if MUTATING.contains(&tool) {
            self.exact_failures.clear();
            self.tool_failures.clear();
            self.fruitless.clear();
        } else {
            self.exact_failures.remove(key);
        }
        if !READ_ONLY.contains(&tool) {
            return Decision::allow(0);
        }
        let entry = self.fruitless.entry(key.clone()).or_insert_with(|| (Arc::clone(value), 0));
        if entry.0 == *value {
            entry.1 += 1;
        } else {
            *entry = (Arc::clone(value), 1);
        }
        let count = entry.1;
        if count >= policy.repeat_warn_from {
            Decision::of("warn", "idempotent_no_progress_warning", count)
        } else {
            Decision::allow(count)
        }
    }

    /// Laps of the shortest cycle of two to four different calls at the end of the history.
    fn cycle_laps(&self) -> u64 {
        CYCLE_LENGTHS
            .filter_map(|length| {
                let (from, all) = (self.history.len().checked_sub(length)?, &self.history);
                let last = &all[from..];
                if last.iter().all(|call| *call == last[0]) {
                    return None;
                }
                let laps = (1..=all.len() / length)
                    .take_while(|lap| all[all.len() - lap * length..][..length] == *last)
                    .count();
                Some(laps as u64)
            })
            .max()
            .unwrap_or(0)
    }
}

/// A result in a form in which equal results are equal texts.
fn comparable(tool: &str, result: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(result) else { return result.to_owned() };
    if tool == "execute_code" {
        if let Some(object) = value.as_object_mut() {
            object.shift_remove("duration_seconds");
        }
        if let Some(kernel) = value.get_mut("kernel").and_then(Value::as_object_mut) {
            kernel.shift_remove("execution_count");
        }
    }
    value.sort_all_objects();
    value.to_string()
}

/// True on surfaces where nobody watches: a repeated call is stopped there instead of warned about.
pub fn hard_stop_default(platform: &str) -> bool {
    let attended = ["", "cli", "tui", "desktop", "acp", "subagent", "api_server"];
    !attended.contains(&platform.trim().to_lowercase().as_str())
}

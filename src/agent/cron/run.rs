//! What a scheduled run is given: which tools it does not get, and what its prompt says first.
//!
//! A fresh agent without anybody to ask. It must not schedule, message or ask: a schedule that schedules has no bound.
//! Who calls it: the harness, when it starts the run of a due job. Never: more tools because a job asks for them.

use serde_json::Value;

use super::silence;
use crate::policy::{self, SilenceRule};

/// The denied toolsets: the fixed ones first, then the configured ones (Hermes cron/scheduler.py:2470).
pub fn denied(configured: &Value, knobs: &policy::Cron) -> Vec<String> {
    let mut denied: Vec<String> = Vec::new();
    if !knobs.allow_agent_scheduling {
        denied.push("cronjob".to_owned());
    }
    denied.extend(["messaging".to_owned(), "clarify".to_owned()]);
    for name in names(configured) {
        if !name.is_empty() && !denied.contains(&name) {
            denied.push(name);
        }
    }
    denied
}

/// A list of names; a text may hold a written-out list.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => {
            items.iter().filter_map(Value::as_str).map(|name| name.trim().to_owned()).collect()
        }
        Value::String(text) => text
            .trim()
            .trim_matches(['[', ']'])
            .split(',')
            .map(|name| name.trim().trim_matches(['\'', '"']).trim().to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// What stands before the prompt of every scheduled run.
pub const PREAMBLE: &str = "\
You run on a schedule; nobody is watching and nobody can answer. Your final response is delivered automatically, so do \
not send it yourself. If there is nothing worth reporting, answer with [SILENT] alone. If the task failed, make \
[CRON_FAILURE] the first line and explain below it. Words about times or repetition in the task describe it; they are \
no request to schedule anything.";

/// The prompt of a run: the preamble, then the job's own text.
pub fn prompt(text: &str) -> String {
    format!("{PREAMBLE}\n\n{text}")
}

/// True when a run's text is not to be delivered; only a successful run may be silent.
pub fn is_silent(text: &str, succeeded: bool, knobs: &policy::Cron) -> bool {
    succeeded
        && match knobs.silence {
            SilenceRule::Lines => silence::is_silent(text),
            SilenceRule::Contains => text.to_uppercase().contains("[SILENT]"),
        }
}

//! What a parent is told of one child. Source: Hermes tools/delegate_tool_child_run.py:552.

use serde_json::{Value, json};

use super::trace::{Traced, trace};
use crate::wire::Row;

/// Decimal places of a cost.
const COST_PLACES: f64 = 1e6;

/// How a child ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Its last text.
    pub text: String,
    /// True when it came to an end of its own.
    pub completed: bool,
    /// True when it says that it failed.
    pub failed: bool,
    /// What went wrong.
    pub error: Option<String>,
    /// Why, as a word.
    pub failure_reason: Option<String>,
    /// True when it was stopped.
    pub interrupted: bool,
    /// Requests that it sent.
    pub api_calls: u64,
    /// Its conversation.
    pub rows: Vec<Row>,
    /// Text that was meant for it and came too late.
    pub missed_steer: Option<String>,
    /// Model that answered it.
    pub model: String,
    /// Input and output tokens.
    pub tokens: (u64, u64),
    /// What it cost, in dollars.
    pub cost: Option<f64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How the answer compares with a declared schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaOutcome {
    /// True when it fits.
    pub valid: bool,
    /// What does not fit.
    pub errors: Vec<String>,
    /// Turns that were spent on another try.
    pub retries: u64,
}

/// The entry of one child in the results.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry(pub Value);

impl Entry {
    /// The summary.
    pub fn summary(&self) -> &str {
        self.0["summary"].as_str().unwrap_or_default()
    }

    /// Puts a cut summary in place of the whole.
    pub fn cut_summary(&mut self, summary: &str, full: Option<&str>) {
        self.0["summary"] = json!(summary);
        self.0["summary_truncated"] = json!(true);
        if let Some(path) = full {
            self.0["summary_full_path"] = json!(path);
        }
    }
}

/// True for a text that answers nothing. Blanks alone count as an answer, as in the source.
fn says_nothing(text: &str) -> bool {
    text.is_empty() || text.trim() == "(empty)"
}

/// Writes the entry of the child at this place.
pub fn entry(index: usize, ended: &Ended, schema: Option<&SchemaOutcome>) -> Entry {
    let reported = ended.error.as_deref().filter(|error| !error.is_empty());
    let (mut status, exit) = if ended.interrupted {
        ("interrupted", "interrupted")
    } else if ended.failed || reported.is_some() {
        ("failed", "error")
    } else if ended.completed {
        ("completed", "completed")
    } else {
        ("completed", "max_iterations")
    };
    let (mut summary, mut error) = (ended.text.as_str(), None);
    let last = ended
        .rows
        .iter()
        .rev()
        .filter(|row| row.is_assistant())
        .map(|row| row.content.flat())
        .find(|text| !text.trim().is_empty() && *text != ended.text);
    match status {
        "interrupted" => {
            // The placeholder that an interrupt leaves is no summary.
            if let Some(last) = &last {
                (summary, error) = (last.as_str(), Some(ended.text.clone()));
            }
        }
        "failed" => error = Some(reported.unwrap_or("the child failed").to_owned()),
        _ if says_nothing(&ended.text) => {
            status = "failed";
            error = Some("the child gave no answer".to_owned());
        }
        _ => {}
    }
    let mut fields = json!({
        "task_index": index, "status": status, "summary": summary, "api_calls": ended.api_calls,
        "duration_seconds": ended.seconds, "model": ended.model, "exit_reason": exit,
        "truncated": exit == "max_iterations",
        "tokens": { "input": ended.tokens.0, "output": ended.tokens.1 },
        "tool_trace": trace(&ended.rows).iter().map(Traced::to_json).collect::<Vec<_>>(),
    });
    if let Some(cost) = ended.cost {
        fields["cost_usd"] = json!((cost * COST_PLACES).round() / COST_PLACES);
        fields["cost_status"] = json!("estimated");
    }
    if let Some(error) = error {
        fields["error"] = json!(error);
    }
    if let Some(reason) = ended.failure_reason.as_deref().filter(|reason| !reason.is_empty()) {
        fields["failure_reason"] = json!(reason);
    }
    if let Some(steer) = ended.missed_steer.as_deref().filter(|text| !text.trim().is_empty()) {
        fields["missed_steer"] = json!(steer);
    }
    if let Some(schema) = schema {
        fields["schema_valid"] = json!(schema.valid);
        if schema.retries > 0 {
            fields["schema_retries"] = json!(schema.retries);
        }
        if !schema.errors.is_empty() {
            fields["schema_errors"] = json!(schema.errors);
        }
        if !schema.valid && schema.retries > 0 {
            fields["schema_note"] = json!("The answer does not fit its schema, also after another try.");
        }
    }
    Entry(fields)
}

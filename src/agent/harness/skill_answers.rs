//! What the tool for skills answers: what was done and what the lint says of it, or what would do better.

use serde_json::{Value, json};

use crate::agent::skills::{Action, Applied, Done, Finding, Operation, Refusal};

use super::dispatch::ToolResult;

/// The answer to a call that was carried out or waits for the user.
pub(super) fn done(operations: &[Operation], done: &Done) -> ToolResult {
    let told = match done {
        Done::Staged => json!({ "success": true, "staged": true }),
        Done::Single(applied) => {
            let mut told = json!({
                "success": true, "staged": false,
                "message": format!("Skill '{}' {}.", applied.name, past(applied)), "path": applied.path,
            });
            add_lint(&mut told, &applied.findings);
            told
        }
        Done::Batch(all) => {
            let rows: Vec<Value> =
                all.iter().zip(operations).map(|(applied, asked)| row(applied, asked)).collect();
            json!({ "success": true, "staged": false, "operations_applied": rows.len(), "results": rows })
        }
    };
    ToolResult::done(told.to_string())
}

fn row(applied: &Applied, asked: &Operation) -> Value {
    let mut row = json!({ "name": applied.name, "action": applied.action.word(), "success": true });
    if let Some(file) = &asked.file_path {
        row["file_path"] = file.as_str().into();
    }
    add_lint(&mut row, &applied.findings);
    row
}

fn past(applied: &Applied) -> &'static str {
    match applied.action {
        Action::Create => "created",
        Action::Patch => "patched",
        Action::Delete if applied.archived => "archived",
        Action::Delete => "deleted",
        Action::WriteFile => "written",
        Action::RemoveFile => "removed",
        Action::Edit | Action::Unknown(_) => "updated",
    }
}

fn add_lint(told: &mut Value, findings: &[Finding]) {
    let level = |finding: &Finding| if finding.error { "error" } else { "warning" };
    if !findings.is_empty() {
        told["lint"] =
            findings.iter().map(|finding| json!({ "rule": finding.rule, "level": level(finding) })).collect();
    }
}

/// The answer to a call that was refused, with what the model needs to do better.
pub(super) fn refused(refusal: &Refusal) -> ToolResult {
    let mut told = json!({ "error": refusal.to_string() });
    let id = refusal.reason.id();
    if id == "bg_read_first" {
        told["read_first"] = true.into();
    }
    if let Some(index) = refusal.failed_index {
        told["failed_index"] = index.into();
    }
    if let Some(cause) = &refusal.cause {
        told["cause"] = cause.id().into();
    }
    if let Some(files) = &refusal.available_files {
        told["available_files"] = json!(files);
    }
    if let Some(preview) = &refusal.preview {
        told["file_preview"] = preview.as_str().into();
    }
    // Because of who asks, not because of what is asked.
    let guard = id.starts_with("bg_").then_some("provenance");
    ToolResult { ok: false, refused_by: guard, ..ToolResult::done(told.to_string()) }
}

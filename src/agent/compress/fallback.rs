//! The deterministic summary: same sections, filled from the rows alone, when no model may or can be asked
//! (Hermes agent/context_compressor.py:3608).
//!
//! Bounded whatever the stretch is. Says that it was made by rule.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::agent::compress::snapshot;
use crate::agent::compress::summary::{SECTIONS, SNAPSHOT};
use crate::agent::compress::{history, redact, tool_summary};
use crate::wire::Row;

const ACTIONS: usize = 12;
const BLOCKERS: usize = 5;
const PATHS: usize = 12;
const WISHES: usize = 8;
const LAST_ROWS: usize = 8;
const LAST_ROW_CHARS: usize = 700;
const PREVIOUS_CHARS: usize = 3_000;
const TOTAL_CHARS: usize = 8_000;

fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        text.to_owned()
    } else {
        format!("{}...", text.chars().take(limit.saturating_sub(3)).collect::<String>())
    }
}

fn actions(rows: &[Row]) -> (Vec<String>, Vec<String>) {
    let calls: std::collections::BTreeMap<&str, (&str, &str)> = rows
        .iter()
        .flat_map(Row::call_list)
        .map(|call| (call.id.as_str(), (call.name.as_str(), call.arguments.as_str())))
        .collect();
    let (mut done, mut blocked) = (Vec::new(), Vec::new());
    for row in rows.iter().rev().filter(|row| row.is_tool()) {
        let known = row.tool_call_id.as_deref().and_then(|id| calls.get(id));
        let (tool, arguments) = known.copied().unwrap_or((row.name.as_deref().unwrap_or("tool"), ""));
        let line = tool_summary::summarize(tool, arguments, &row.content.flat());
        let list = match line.outcome {
            tool_summary::CallOutcome::Done => &mut done,
            _ => &mut blocked,
        };
        let limit = if line.outcome == tool_summary::CallOutcome::Done { ACTIONS } else { BLOCKERS };
        if list.len() < limit {
            list.push(redact::secrets(&line.text));
        }
        if done.len() >= ACTIONS && blocked.len() >= BLOCKERS {
            break;
        }
    }
    done.reverse();
    blocked.reverse();
    (done, blocked)
}

fn paths(rows: &[Row]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for call in rows.iter().rev().flat_map(Row::call_list) {
        let Some(arguments) = call.parsed_arguments() else { continue };
        for key in ["path", "file_path"] {
            if let Some(path) = arguments.get(key).and_then(serde_json::Value::as_str)
                && found.len() < PATHS
                && seen.insert(path.to_owned())
            {
                found.push(path.to_owned());
            }
        }
    }
    found.reverse();
    found
}

fn list(lines: &[String]) -> String {
    if lines.is_empty() {
        "None known.".to_owned()
    } else {
        lines.iter().flat_map(|line| ["- ", line, "\n"]).collect()
    }
}

/// The lines by which a person asked for something that is to last, in the summary before and in these rows.
fn wishes(rows: &[Row], previous: Option<&str>) -> Vec<String> {
    let texts = rows.iter().filter(|row| history::is_human(row)).map(|row| row.content.flat());
    let texts: Vec<String> = previous.map(str::to_owned).into_iter().chain(texts).collect();
    let mut seen = BTreeSet::new();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .map(|line| line.trim().trim_start_matches("- ").trim_start())
        .filter(|line| history::is_standing(line) && seen.insert(*line))
        .take(WISHES)
        .map(|line| cut(&redact::secrets(line), LAST_ROW_CHARS))
        .collect()
}

/// Summarises rows by rule. `request` is the newest human request, `previous` the body of the summary before; lasting
/// wishes are kept if `keep_wishes` says so.
pub fn summarize(rows: &[Row], request: Option<&str>, previous: Option<&str>, keep_wishes: bool) -> String {
    let (done, blocked) = actions(rows);
    let newest = request.map_or_else(|| "None known.".to_owned(), |text| cut(text.trim(), LAST_ROW_CHARS));
    let last: Vec<String> = rows[rows.len().saturating_sub(LAST_ROWS)..]
        .iter()
        .map(|row| {
            let text = redact::secrets(&row.content.flat());
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{}: {}", row.role.word(), cut(&text, LAST_ROW_CHARS))
        })
        .collect();
    let mut out = String::new();
    for section in SECTIONS {
        let content = match *section {
            SNAPSHOT => newest.clone(),
            "Constraints & Preferences" if keep_wishes => list(&wishes(rows, previous)),
            "Completed Actions" => list(&done),
            "Blocked" => list(&blocked),
            "Relevant Files" => list(&paths(rows)),
            "Critical Context" => {
                let mut text = format!(
                    "This summary was made by rule; {} rows are gone. Their last ones:\n{}",
                    rows.len(),
                    list(&last)
                );
                if let Some(previous) = previous {
                    let _ = write!(text, "Before that:\n{}", cut(previous.trim(), PREVIOUS_CHARS));
                }
                text
            }
            _ => continue,
        };
        let _ = write!(out, "## {section}\n{}\n\n", content.trim_end());
    }
    let out = cut(out.trim_end(), TOTAL_CHARS);
    snapshot::set_snapshot(&out, request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_by_rule_is_bounded() {
        let rows: Vec<Row> = (0..100).map(|_| Row::user("x".repeat(10_000))).collect();
        let text = summarize(&rows, Some(&"y".repeat(10_000)), Some(&"z".repeat(10_000)), true);
        assert!(text.chars().count() <= TOTAL_CHARS + 1_400, "{}", text.chars().count());
        assert!(text.contains("## Historical Task Snapshot"));
    }

    #[test]
    fn nothing_can_be_summarised() {
        assert!(summarize(&[], None, None, false).contains("made by rule"));
    }

    #[test]
    fn lasting_wishes_are_said_again_and_again() {
        let rows = [Row::user("Do it.\nAlways answer in metres."), Row::assistant("Never mind.")];
        let once = summarize(&rows, None, None, true);
        assert!(once.contains("## Constraints & Preferences\n- Always answer in metres.\n"), "{once}");
        let twice = summarize(&[Row::user("Go on.")], None, Some(&once), true);
        assert_eq!(twice.matches("- Always answer in metres.").count(), 2, "{twice}");
        assert!(!summarize(&rows, None, None, false).contains("Constraints"));
    }
}

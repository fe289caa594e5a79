//! One line in place of a tool result: what was called and what came of it.
//!
//! Always one line. A refusal says that nothing ran, a failure says why, so that a shortened history never claims
//! more than happened.

use serde_json::{Map, Value};

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallOutcome {
    /// Nothing speaks against success.
    #[default]
    Done,
    /// The payload reports an error.
    Failed,
    /// The user left the question open.
    Skipped,
    /// The call was not run; `no_consent` when the user had not agreed.
    Refused {
        /// The refusal says that consent was withheld.
        no_consent: bool,
    },
}

/// A result as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLine {
    /// The line.
    pub text: String,
    /// What the call came to.
    pub outcome: CallOutcome,
    /// The line says that a long skill text was dropped and must be loaded again.
    pub skill_marker: bool,
}

/// Marks a skill whose text was dropped.
pub const SKILL_MARKER: &str = "SKILL TEXT PRUNED, reload it with skill_view";
/// Longest skill text whose loss goes unmentioned.
const SKILL_CHARS: usize = 5_000;

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, keep: usize) -> String {
    text.chars().take(keep).collect()
}

/// At most `limit` characters, the last three being dots when something is missing.
fn dotted(text: &str, limit: usize) -> String {
    if chars(text) <= limit { text.to_owned() } else { format!("{}...", cut(text, limit.saturating_sub(3))) }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

struct Call<'a> {
    tool: &'a str,
    arguments: Map<String, Value>,
    payload: Map<String, Value>,
    content: &'a str,
}

impl Call<'_> {
    fn argument(&self, key: &str) -> Option<String> {
        self.arguments.get(key).filter(|value| !value.is_null()).map(plain)
    }

    fn text(&self, key: &str, missing: &str) -> String {
        self.argument(key).map_or_else(|| missing.to_owned(), |text| one_line(&text))
    }

    fn size(&self) -> String {
        format!("{} chars", thousands(chars(self.content)))
    }

    fn lines(&self) -> usize {
        if self.content.trim().is_empty() { 0 } else { self.content.matches('\n').count() + 1 }
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.payload.get(key).and_then(Value::as_i64)
    }
}

fn object_of(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// The one-line form of a result (Hermes agent/context_compressor.py:1946).
///
/// `arguments` is what the model wrote, usually JSON; `content` the result.
pub fn summarize(tool: &str, arguments: &str, content: &str) -> ToolLine {
    let call = Call { tool, arguments: object_of(arguments), payload: object_of(content), content };
    let line = if let Some(line) = refusal(&call) { line } else { described(&call) };
    ToolLine { text: one_line(&line.text), ..line }
}

fn refusal(call: &Call<'_>) -> Option<ToolLine> {
    let status = call.payload.get("status").and_then(Value::as_str).unwrap_or("");
    let error = call.payload.get("error").and_then(Value::as_str).unwrap_or("");
    let blocked = |text: &str| text.trim_start().starts_with("BLOCKED");
    if !matches!(status, "blocked" | "pending_approval") && !blocked(call.content) && !blocked(error) {
        return None;
    }
    let reason = if error.is_empty() { call.content } else { error }.to_lowercase();
    let no_consent = ["not consented", "no consent", "denied by the user", "user denied", "withheld consent"]
        .iter()
        .any(|words| reason.contains(words));
    let target = ["command", "path", "code", "url", "goal"]
        .iter()
        .find_map(|key| call.argument(key))
        .map(|text| format!(" `{}`", dotted(&one_line(&text), 60)))
        .unwrap_or_default();
    let why = if no_consent {
        "; the user has not consented"
    } else if status == "pending_approval" {
        "; waiting for approval"
    } else {
        ""
    };
    let text = format!("[{}]{target} was refused and did not run{why}", cut(call.tool, 60));
    Some(ToolLine {
        text: cut(&text, 199),
        outcome: CallOutcome::Refused { no_consent },
        skill_marker: false,
    })
}

/// The reason of a failure, on one line, or `None` when the payload reports none.
fn failure(call: &Call<'_>) -> Option<String> {
    let error = call.payload.get("error").filter(|error| !is_empty(error));
    let failed = error.is_some() || call.payload.get("success") == Some(&Value::Bool(false));
    failed.then(|| error.map_or_else(String::new, |error| cut(&one_line(&plain(error)), 80)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

fn described(call: &Call<'_>) -> ToolLine {
    let tool = call.tool;
    let mut failed = failure(call);
    let mut outcome = CallOutcome::Done;
    let mut skill_marker = false;
    let body = match tool {
        "terminal" => terminal(call),
        "read_file" => {
            let from = call.text("offset", "1");
            format!("read {} from line {from}, {}", call.text("path", "?"), call.size())
        }
        "write_file" if failed.is_some() => format!("write to {}", call.text("path", "?")),
        "write_file" => {
            let written = call.argument("content").unwrap_or_default();
            let lines = if written.is_empty() { 0 } else { written.matches('\n').count() + 1 };
            format!("wrote {}, {lines} lines", call.text("path", "?"))
        }
        "search_files" => {
            let count = call
                .number("total_count")
                .or_else(|| call.number("count"))
                .map_or_else(|| call.size(), |count| format!("{count} matches"));
            format!("search for '{}' in {}, {count}", call.text("pattern", "?"), call.text("path", "."))
        }
        "patch" => format!("{} in {}, {}", call.text("mode", "replace"), call.text("path", "?"), call.size()),
        "web_search" => format!("query '{}', {}", call.text("query", "?"), call.size()),
        "web_extract" => format!("{}, {}", urls(call), call.size()),
        "delegate_task" => format!("'{}', {}", dotted(&call.text("goal", "?"), 60), call.size()),
        "execute_code" => {
            let code = cut(&one_line(&call.text("code", "?")), 60);
            format!("`{code}`, {} lines of output", call.lines())
        }
        "skill_view" => {
            skill_marker = chars(call.content) > SKILL_CHARS;
            let marker = if skill_marker { format!(" [{SKILL_MARKER}]") } else { String::new() };
            format!("name={}, {}{marker}", call.text("name", "?"), call.size())
        }
        "skill_manage" => skill_manage(call),
        "skills_list" => {
            let count = call.number("count").map_or_else(|| call.size(), |count| format!("{count} skills"));
            format!("category {}, {count}", call.text("category", "any"))
        }
        "memory" => format!("{} on {}", call.text("action", "?"), call.text("target", "memory")),
        "clarify" => {
            let (text, skipped) = clarify(call);
            if skipped {
                outcome = CallOutcome::Skipped;
            }
            text
        }
        "cronjob" | "cronjob_manage" => {
            failed = failed.or_else(|| cron_failure(call));
            format!("{} {}", call.text("action", "?"), call.text("name", ""))
        }
        "process" | "process_manage" => {
            let (text, failure) = process(call);
            failed = failed.or(failure);
            text
        }
        _ => generic(call),
    };
    let mut text = format!("[{tool}] {body}");
    if let Some(reason) = failed {
        outcome = CallOutcome::Failed;
        text.push_str(" FAILED");
        if !reason.is_empty() {
            text.push_str(": ");
            text.push_str(&reason);
        }
    }
    ToolLine { text, outcome, skill_marker }
}

fn terminal(call: &Call<'_>) -> String {
    let command = dotted(&call.text("command", "?"), 80);
    let exit = call
        .number("exit_code")
        .or_else(|| number_after(call.content, "\"exit_code\":"))
        .map_or_else(|| "?".to_owned(), |code| code.to_string());
    let lines = match call.payload.get("output").and_then(Value::as_str) {
        Some(output) if output.trim().is_empty() => 0,
        Some(output) => output.matches('\n').count() + 1,
        None => call.lines(),
    };
    format!("`{command}` -> exit {exit}, {lines} lines")
}

/// The integer right behind a key in a text that is not JSON as a whole.
fn number_after(text: &str, key: &str) -> Option<i64> {
    let (_, after) = text.split_once(key)?;
    let after = after.trim_start();
    let end = after
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')))
        .map_or(after.len(), |(at, _)| at);
    after[..end].parse().ok()
}

fn urls(call: &Call<'_>) -> String {
    let Some(urls) = call.arguments.get("urls") else { return call.text("url", "?") };
    match urls {
        Value::Array(urls) => {
            let first = urls
                .first()
                .map_or_else(|| "?".to_owned(), |url| url.get("url").map_or_else(|| plain(url), plain));
            if urls.len() > 1 { format!("{first} (+{} more)", urls.len() - 1) } else { first }
        }
        other => dotted(&one_line(&plain(other)), 80),
    }
}

fn skill_manage(call: &Call<'_>) -> String {
    let Some(Value::Array(operations)) = call.arguments.get("operations") else {
        return format!("{} {}", call.text("action", "?"), call.text("name", "?"));
    };
    let word = |operation: &Value, key: &str| operation.get(key).map_or_else(|| "?".to_owned(), plain);
    let shown: Vec<String> = operations
        .iter()
        .take(3)
        .map(|operation| format!("{} {}", word(operation, "action"), word(operation, "name")))
        .collect();
    let more = operations.len().saturating_sub(3);
    let more = if more > 0 { format!(", +{more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// What the user answered, kept as far as one line allows; the second value says that a question was left open.
fn clarify(call: &Call<'_>) -> (String, bool) {
    let mut answers = Vec::new();
    let mut skipped = false;
    let responses = call.payload.get("responses").and_then(Value::as_array);
    for response in responses.into_iter().flatten() {
        let status = response.get("status").and_then(Value::as_str).unwrap_or("answered");
        skipped |= status != "answered";
        answers.extend(response.get("user_response").map(plain));
    }
    answers.extend(call.payload.get("user_response").map(plain));
    answers.retain(|answer| !answer.trim().is_empty());
    let text = if answers.is_empty() && skipped {
        "the question was skipped".to_owned()
    } else if answers.is_empty() {
        format!("asked, {}", call.size())
    } else {
        let tail = if skipped { "; some questions were skipped" } else { "" };
        format!("the user answered: {}{tail}", dotted(&one_line(&answers.join(" | ")), 140))
    };
    (text, skipped)
}

fn cron_failure(call: &Call<'_>) -> Option<String> {
    let job = call.payload.get("job")?;
    (job.get("execution_success") == Some(&Value::Bool(false))).then(|| {
        job.get("execution_error").map_or_else(String::new, |error| cut(&one_line(&plain(error)), 80))
    })
}

fn process(call: &Call<'_>) -> (String, Option<String>) {
    let text = format!("{} {}", call.text("action", "?"), call.text("session_id", ""));
    let killed = call.payload.get("completion_reason").and_then(Value::as_str) == Some("killed");
    match call.number("exit_code") {
        Some(code) if code != 0 && !killed => (text, Some(format!("exit code {code}"))),
        _ => (text, None),
    }
}

fn generic(call: &Call<'_>) -> String {
    let shown: Vec<String> = call
        .arguments
        .iter()
        .take(2)
        .map(|(key, value)| format!("{key}={}", cut(&one_line(&plain(value)), 40)))
        .collect();
    if shown.is_empty() { call.size() } else { format!("{}, {}", shown.join(" "), call.size()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_one_characters_of_a_command_end_in_dots() {
        let arguments = format!("{{\"command\": \"{}\"}}", "x".repeat(81));
        let line = summarize("terminal", &arguments, "");
        assert!(line.text.contains(&format!("{}...", "x".repeat(77))), "{}", line.text);
    }

    #[test]
    fn an_error_of_several_lines_becomes_one() {
        let line = summarize("t", "no json", "{\"error\": \"a\\nb\"}");
        assert_eq!(line.text.lines().count(), 1);
        assert_eq!(line.outcome, CallOutcome::Failed);
    }

    #[test]
    fn a_skipped_question_is_no_answer() {
        let line = summarize("clarify", "{}", r#"{"responses": [{"status": "skipped"}]}"#);
        assert_eq!(line.outcome, CallOutcome::Skipped);
    }
}

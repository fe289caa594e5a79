//! Which calls of a batch may run side by side.

use serde_json::Value;

use crate::policy::Parallel;
use crate::wire::ToolCall;

/// A run of neighbouring calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// True when its calls may be under way at once.
    pub parallel: bool,
    /// Places of the calls.
    pub calls: Vec<usize>,
}

/// Tools that touch nothing a neighbour could see.
const FREE: [&str; 10] = [
    "connectors__execute",
    "image_generate",
    "session_search",
    "skill_view",
    "skills_list",
    "vision_analyze",
    "web_extract",
    "web_search",
    "tool_search",
    "tool_describe",
];
/// The same before image and look-up tools joined them.
const FREE_OLDER: [&str; 7] = [
    "session_search",
    "skill_view",
    "skills_list",
    "vision_analyze",
    "web_extract",
    "web_search",
    "search_files",
];
/// Reads of a home automation server, free in the older rules.
const FREE_OLDER_PREFIX: &str = "ha_";
const FREE_OLDER_READS: [&str; 3] = ["ha_get_state", "ha_list_entities", "ha_list_services"];

enum Class {
    Barrier,
    Free,
    Path { paths: Vec<Vec<String>>, writes: bool },
}

/// Splits a batch into runs; the order of calls never changes.
///
/// `server_tools` names tools of servers that agreed to run in parallel.
pub fn runs(calls: &[ToolCall], cwd: &str, server_tools: &[String], rules: Parallel) -> Vec<Run> {
    if rules == Parallel::Never || calls.len() == 1 {
        return if calls.is_empty() { Vec::new() } else { vec![serial((0..calls.len()).collect())] };
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut reserved: Vec<(Vec<String>, bool)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        match classify(call, cwd, server_tools, rules) {
            Class::Barrier => {
                close(&mut runs, &mut open, &mut reserved);
                append(&mut runs, serial(vec![index]));
            }
            Class::Free => open.push(index),
            Class::Path { paths, writes } => {
                let strict = rules == Parallel::Older;
                let conflict = paths.iter().any(|path| {
                    reserved.iter().any(|(other, other_writes)| {
                        (strict || writes || *other_writes) && overlaps(path, other)
                    })
                });
                if conflict {
                    close(&mut runs, &mut open, &mut reserved);
                }
                open.push(index);
                reserved.extend(paths.into_iter().map(|path| (path, writes)));
            }
        }
    }
    close(&mut runs, &mut open, &mut reserved);
    runs
}

fn serial(calls: Vec<usize>) -> Run {
    Run { parallel: false, calls }
}

fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if !last.parallel && !run.parallel => last.calls.extend(run.calls),
        _ => runs.push(run),
    }
}

fn close(runs: &mut Vec<Run>, open: &mut Vec<usize>, reserved: &mut Vec<(Vec<String>, bool)>) {
    reserved.clear();
    if !open.is_empty() {
        let calls = std::mem::take(open);
        append(runs, Run { parallel: calls.len() > 1, calls });
    }
}

fn classify(call: &ToolCall, cwd: &str, server_tools: &[String], rules: Parallel) -> Class {
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(&call.arguments) else {
        return Class::Barrier;
    };
    let older = rules == Parallel::Older;
    let name = call.name.as_str();
    let path = |key: &str| {
        arguments
            .get(key)
            .and_then(Value::as_str)
            .filter(|path| !path.trim().is_empty())
            .map(|path| absolute(path, cwd))
    };
    match name {
        "read_file" => {
            path("path").map_or(Class::Barrier, |path| Class::Path { paths: vec![path], writes: false })
        }
        "search_files" if !older => {
            let path = path("path").unwrap_or_else(|| absolute(".", cwd));
            Class::Path { paths: vec![path], writes: false }
        }
        "write_file" | "patch" => {
            let body =
                (name == "patch" && !older && arguments.get("mode").and_then(Value::as_str) == Some("patch"))
                    .then(|| arguments.get("patch").and_then(Value::as_str).unwrap_or_default());
            let paths: Vec<_> = match body {
                Some(body) => patch_paths(body).iter().map(|path| absolute(path, cwd)).collect(),
                None => path("path").into_iter().collect(),
            };
            if paths.is_empty() { Class::Barrier } else { Class::Path { paths, writes: true } }
        }
        _ if server_tools.iter().any(|tool| tool == name) => Class::Free,
        _ if older && (FREE_OLDER.contains(&name) || FREE_OLDER_READS.contains(&name)) => Class::Free,
        _ if !older && FREE.contains(&name) => Class::Free,
        _ if older && name.starts_with(FREE_OLDER_PREFIX) && name.contains("_get_") => Class::Free,
        _ => Class::Barrier,
    }
}

/// The files that a call changes: the path of a write, or what the headers of a patch name.
pub fn mutation_targets(tool: &str, arguments: &Value) -> Vec<String> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "patch" if text("mode") == "patch" => patch_paths(text("patch")),
        "write_file" | "patch" if !text("path").is_empty() => vec![text("path").to_owned()],
        _ => Vec::new(),
    }
}

/// The paths in the headers of a multi-file patch, both ends of a move.
fn patch_paths(body: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in body.lines() {
        let Some(header) = line.strip_prefix("***").map(str::trim_start) else { continue };
        let rest =
            ["Update File:", "Add File:", "Delete File:"].iter().find_map(|kind| header.strip_prefix(kind));
        if let Some(path) = rest {
            paths.push(path.trim().to_owned());
        } else if let Some((from, to)) =
            header.strip_prefix("Move File:").and_then(|pair| pair.split_once("->"))
        {
            paths.extend([from.trim().to_owned(), to.trim().to_owned()]);
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

/// Components of a path, relative ones against `cwd`, dots resolved, the home written out.
fn absolute(path: &str, cwd: &str) -> Vec<String> {
    let path = path.trim();
    let full = if let Some(rest) = path.strip_prefix("~/") {
        format!("/~/{rest}")
    } else if path == "~" {
        "/~".to_owned()
    } else if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    let mut parts: Vec<String> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name.to_owned()),
        }
    }
    parts
}

fn overlaps(a: &[String], b: &[String]) -> bool {
    let shorter = a.len().min(b.len());
    a[..shorter] == b[..shorter]
}

//! What each tool does.

use serde_json::{Value, json};

use crate::agent::compress::carry::Todo;
use crate::agent::turn::Agent;
use crate::ledger::{Effect, What};
use crate::model::Model;
use crate::wire::ToolCall;
use crate::world::terminal::{Place, Ran, Reach};
use crate::world::{Files, Millis, clock};

use super::dispatch::ToolResult;
use super::host::Run;

/// Where long results are put aside in the home; Hermes tools/tool_result_storage.py.
pub(super) const SPILLED: &str = "cache/spillover/";
/// Lines that a search of files gives back; Hermes tools/file_tools.py.
const SEARCH_LINES_MAX: usize = 200;

impl<M: Model> Run<'_, M> {
    pub(super) fn run_tool(&mut self, agent: &mut Agent, call: &ToolCall, arguments: &Value) -> ToolResult {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match call.name.as_str() {
            "terminal" => self.terminal(agent.turns, text("command")),
            "execute_code" => self.execute_code(agent.turns, text("code")),
            "read_file" => self.read_file(text("path")),
            "write_file" => self.write_file(text("path"), text("content")),
            "patch" => self.patch(text("path"), text("old_string"), text("new_string")),
            "search_files" => self.search_files(text("pattern"), text("path")),
            "memory" => self.memory(arguments),
            "skills_list" => self.skills_list(),
            "skill_view" => self.skill_view(arguments),
            "skill_manage" => self.skill_manage(agent, arguments),
            "session_search" => self.session_search(arguments),
            "delegate_task" => self.delegate_task(agent, arguments),
            "cronjob_manage" => self.cronjob_manage(arguments),
            "send_message" => self.send_message(text("to"), text("text")),
            "todo_list" => self.todo_list(arguments),
            "web_search" => self.web(&format!("web_search {}", text("query"))),
            "web_extract" => {
                let urls = arguments["urls"].as_array().map(Vec::as_slice).unwrap_or_default();
                let urls: Vec<&str> = urls.iter().filter_map(Value::as_str).collect();
                self.web_pages(&urls)
            }
            other => ToolResult::failed(format!("`{other}` has no implementation")),
        }
    }

    fn effect(&mut self, kind: &str, detail: &str) {
        let effect = Effect { lane: self.session.lane, kind: kind.into(), detail: detail.into() };
        self.event(What::Effect(effect));
    }

    /// Runs a command line over what this session can reach.
    fn shell(&mut self, command: &str) -> Ran {
        let harness = &mut *self.harness;
        let outside = (!harness.policy.terminal.confined).then_some(&harness.machine as &dyn Files);
        let directory = self.session.directory.as_str();
        let mut reach = Reach { files: &mut harness.workspace, outside, directory };
        let ran = harness.terminal.run(&mut reach, command);
        if ran.timed_out {
            let waited = harness.policy.terminal.timeout_seconds.map_or(clock::DAY, |seconds| {
                Millis::try_from(seconds).unwrap_or(Millis::MAX / clock::SECOND).saturating_mul(clock::SECOND)
            });
            harness.clock.advance(waited);
            harness.recorder.set_now(harness.clock.now());
        }
        ran
    }

    fn terminal(&mut self, turn: u64, command: &str) -> ToolResult {
        if let Some(refusal) = self.judge_command(turn, command) {
            return refusal;
        }
        let ran = self.shell(command);
        self.effect("command", command);
        let result = if ran.timed_out {
            json!({ "error": "the command did not answer in time; whether it took effect is unknown", "exit_code": 124 })
        } else {
            json!({ "output": ran.output, "exit_code": ran.exit })
        };
        let ok = ran.exit == 0 && !ran.timed_out;
        if !ok {
            self.session.followed.values_mut().for_each(|failed| *failed = true);
        }
        ToolResult { text: result.to_string(), ok, outcome_unknown: ran.timed_out, refused_by: None }
    }

    /// Runs shell lines one after another; what a line prints is kept only when it begins with `print `.
    fn execute_code(&mut self, turn: u64, code: &str) -> ToolResult {
        if let Some(refusal) = self.judge_code(code) {
            return refusal;
        }
        let mut printed = String::new();
        for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (shown, command) =
                line.strip_prefix("print ").map_or((false, line), |command| (true, command));
            if let Some(refusal) = self.judge_command(turn, command) {
                return refusal;
            }
            let ran = self.shell(command);
            self.effect("command", command);
            if shown {
                printed.push_str(&ran.output);
            }
            if ran.timed_out {
                let why = format!("`{command}` did not answer in time; whether it took effect is unknown");
                return ToolResult { outcome_unknown: true, ..ToolResult::failed(why) };
            }
            if ran.exit != 0 {
                return ToolResult::failed(format!("`{command}` exited with {}", ran.exit));
            }
        }
        ToolResult::done(json!({ "output": printed }).to_string())
    }

    /// The workspace path that a tool names, or a refusal where it leads out.
    fn workspace_path(&self, path: &str) -> Result<String, ToolResult> {
        match Place::of(path, &self.session.directory) {
            Place::Inside(path) if !path.is_empty() => Ok(path),
            _ => Err(ToolResult::refused("workspace", format!("`{path}` lies outside the workspace"))),
        }
    }

    fn read_file(&mut self, path: &str) -> ToolResult {
        // Skills are readable by path; that counts as reading them.
        if path.starts_with("skills/") {
            return self.read_skill_file(path);
        }
        if let Some(name) = path.strip_prefix(SPILLED).filter(|name| !name.contains('/')) {
            let name = format!("{SPILLED}{name}");
            return match self.harness.home.read_text(&name) {
                Ok(content) => ToolResult::done(json!({ "content": content }).to_string()),
                Err(error) => ToolResult::failed(error.to_string()),
            };
        }
        let read = match (Place::of(path, &self.session.directory), self.harness.policy.terminal.confined) {
            (Place::Outside(path), false) => self.harness.machine.read_text(&path),
            _ => match self.workspace_path(path) {
                Ok(clean) => self.harness.workspace.read_text(&clean),
                Err(refusal) => return refusal,
            },
        };
        match read {
            Ok(content) => ToolResult::done(json!({ "content": content }).to_string()),
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }

    fn write_file(&mut self, path: &str, content: &str) -> ToolResult {
        let clean = match self.workspace_path(path) {
            Ok(clean) => clean,
            Err(refusal) => return refusal,
        };
        match self.harness.workspace.write(&clean, content.as_bytes()) {
            Ok(()) => {
                self.effect("file_written", &clean);
                ToolResult::done(json!({ "success": true, "bytes": content.len() }).to_string())
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }

    fn patch(&mut self, path: &str, old: &str, new: &str) -> ToolResult {
        let clean = match self.workspace_path(path) {
            Ok(clean) => clean,
            Err(refusal) => return refusal,
        };
        let content = match self.harness.workspace.read_text(&clean) {
            Ok(content) => content,
            Err(error) => return ToolResult::failed(error.to_string()),
        };
        match crate::agent::skills::fuzzy::replace(&content, old, new, false) {
            Ok(replaced) => self.write_file(path, &replaced.content),
            Err(reason) => ToolResult::failed(reason.id()),
        }
    }

    fn search_files(&mut self, pattern: &str, path: &str) -> ToolResult {
        let Ok(regex) = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() else {
            return ToolResult::failed(format!("`{pattern}` is not a valid pattern"));
        };
        let root = match Place::of(path, &self.session.directory) {
            Place::Inside(root) => root,
            Place::Outside(_) => {
                return ToolResult::refused("workspace", format!("`{path}` lies outside the workspace"));
            }
        };
        let mut lines = Vec::new();
        for file in self.harness.workspace.walk(&root) {
            let Ok(content) = self.harness.workspace.read_text(&file) else { continue };
            let found = content.lines().enumerate().filter(|(_, line)| regex.is_match(line));
            lines.extend(found.map(|(number, line)| format!("{file}:{}: {line}", number + 1)));
            if lines.len() >= SEARCH_LINES_MAX {
                lines.truncate(SEARCH_LINES_MAX);
                break;
            }
        }
        ToolResult::done(json!({ "matches": lines }).to_string())
    }

    /// Writes the list anew, or tells it when none is given.
    fn todo_list(&mut self, arguments: &Value) -> ToolResult {
        if !arguments["todos"].is_null() {
            self.session.todos = match arguments["merge"].as_bool() {
                Some(true) => Todo::merged(std::mem::take(&mut self.session.todos), &arguments["todos"]),
                _ => Todo::list(&arguments["todos"]),
            };
        }
        let items = self.session.todos.iter().map(|item| {
            let mut shown = json!({ "id": item.id, "content": item.content, "status": item.status });
            if let Some(parent) = &item.parent {
                shown["parent"] = json!(parent);
            }
            shown
        });
        ToolResult::done(json!({ "todos": items.collect::<Vec<_>>() }).to_string())
    }

    fn send_message(&mut self, to: &str, text: &str) -> ToolResult {
        if let Err(reason) = self.harness.hand_over(to) {
            self.effect("delivery_failed", &format!("{to}: {reason}"));
            return ToolResult::failed(format!("the platform refused the message: {reason}"));
        }
        self.effect("message_sent", &format!("{to}: {text}"));
        ToolResult::done(json!({ "success": true }).to_string())
    }

    /// Several pages come one after another; one that is not found does not take the others along.
    fn web_pages(&mut self, urls: &[&str]) -> ToolResult {
        let pages: Vec<ToolResult> = urls.iter().map(|url| self.web(&format!("web_extract {url}"))).collect();
        let found: Vec<&str> = pages.iter().filter(|page| page.ok).map(|page| page.text.as_str()).collect();
        if found.is_empty() {
            ToolResult::failed("nothing was found")
        } else {
            ToolResult::done(found.join("\n\n"))
        }
    }

    /// Pages and searches are declared like commands; nothing reaches a network.
    fn web(&mut self, request: &str) -> ToolResult {
        let ran = self.shell(request);
        if ran.exit == 0 { ToolResult::done(ran.output) } else { ToolResult::failed("nothing was found") }
    }
}

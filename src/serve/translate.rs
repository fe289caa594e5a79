//! One scenario, any agent: the tool that runs commands has another name, and another argument, in each of them.
//!
//! A call of a tool that the request offers is left alone. Otherwise, if it is one of the known names of the command
//! tool and the request offers another, the call is made under that name.

use serde_json::{Map, Value};

use crate::ledger::Name;
use crate::wire::ToolCall;

/// Names of the tool that runs commands, and of the argument that holds the command.
const COMMAND_TOOLS: [(&str, &str); 6] = [
    ("terminal", "command"),
    ("Bash", "command"),
    ("bash", "command"),
    ("exec_command", "cmd"),
    ("run_shell_command", "command"),
    ("execute_command", "command"),
];

/// The call as an agent with these tools knows it.
pub(super) fn translated(call: ToolCall, tools: &[Name]) -> ToolCall {
    let offered = |name: &str| tools.iter().any(|tool| &**tool == name);
    let Some((_, from)) = COMMAND_TOOLS.iter().find(|(name, _)| *name == call.name) else { return call };
    if offered(&call.name) {
        return call;
    }
    let Some((name, to)) = COMMAND_TOOLS.iter().find(|(name, _)| offered(name)) else { return call };
    let arguments = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(arguments) => renamed(arguments, from, to).to_string(),
        // Malformed arguments stay malformed.
        Err(_) => call.arguments,
    };
    ToolCall { name: (*name).to_owned(), arguments, ..call }
}

fn renamed(mut arguments: Map<String, Value>, from: &str, to: &str) -> Value {
    if let Some(command) = arguments.shift_remove(from) {
        // Some agents insist on a word about it.
        arguments.entry("description").or_insert_with(|| command.clone());
        arguments.shift_insert(0, to.to_owned(), command);
    }
    Value::Object(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &str, offered: &[&str]) -> (String, String) {
        let tools: Vec<Name> = offered.iter().map(|name| Name::from(*name)).collect();
        let call = translated(ToolCall::new("c", tool, arguments), &tools);
        (call.name, call.arguments)
    }

    #[test]
    fn the_command_tool_goes_by_the_name_that_the_agent_knows() {
        let ls = r#"{"command":"ls"}"#;
        assert_eq!(call("terminal", ls, &["Read", "Bash"]).0, "Bash");
        let codex = call("terminal", ls, &["exec_command"]);
        assert_eq!(codex, ("exec_command".to_owned(), r#"{"cmd":"ls","description":"ls"}"#.to_owned()));
        assert_eq!(call("terminal", ls, &["terminal", "Bash"]), ("terminal".to_owned(), ls.to_owned()));
        assert_eq!(call("terminal", ls, &["Read"]).0, "terminal", "nothing fits");
        assert_eq!(call("memory", ls, &["Bash"]).0, "memory");
        assert_eq!(call("terminal", "{\"comm", &["bash"]), ("bash".to_owned(), "{\"comm".to_owned()));
    }
}

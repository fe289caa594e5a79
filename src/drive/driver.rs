//! The file format of drivers: how one agent is started, spoken to and left.
//!
//! Texts may hold places: `{home}`, `{work}`, `{install}`, `{host}` (`http://127.0.0.1:PORT`), `{model}`, `{window}`,
//! and in the commands of a turn `{prompt}` and `{session}`. A file checks itself; nothing is started here.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::diag::Diagnostic;
use crate::scenario::{Act, ReplySpec, Scenario};

/// The version of the format that this lab reads.
pub const FORMAT: i64 = 1;

/// Name and text of every driver that ships with the lab.
pub const SHIPPED: &[(&str, &str)] = &[
    ("hermes-acp", include_str!("../../drivers/hermes-acp.toml")),
    ("hermes-acp-anthropic", include_str!("../../drivers/hermes-acp-anthropic.toml")),
    ("hermes-chat", include_str!("../../drivers/hermes-chat.toml")),
    ("claude-code", include_str!("../../drivers/claude-code.toml")),
    ("codex", include_str!("../../drivers/codex.toml")),
    ("opencode", include_str!("../../drivers/opencode.toml")),
    ("openai-sdk", include_str!("../../drivers/openai-sdk.toml")),
];

/// How to drive one agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// Version of the format.
    pub format: i64,
    /// Name, also the file's stem.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What must be installed under `{install}`, and how.
    pub install: String,
    /// How it is spoken to.
    pub way: Way,
    /// Name of the model that it asks for.
    #[serde(default = "mock_model")]
    pub model: String,
    /// Milliseconds without a request after which its background work counts as done.
    #[serde(default = "quiet")]
    pub quiet_ms: u64,
    /// Longest time of a turn, in seconds.
    #[serde(default = "patience")]
    pub turn_seconds: u64,
    /// The environment, besides `PATH`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files of the fresh home.
    #[serde(default, rename = "file")]
    pub files: Vec<DriverFile>,
    /// Where the agent keeps what a scenario states as known at the start.
    pub places: Option<Places>,
    /// The tools of the scenario under the agent's names.
    #[serde(default, rename = "tool")]
    pub tools: BTreeMap<String, Tool>,
}

/// How an agent is spoken to.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Way {
    /// One process for many sessions: JSON-RPC on standard input and output, one object a line.
    Acp {
        /// Program and arguments.
        command: Vec<String>,
    },
    /// One process a turn.
    Once {
        /// The first turn of a session.
        first: Vec<String>,
        /// Every later one, and the first after a session is opened again.
        next: Vec<String>,
        /// Pattern whose first group is the session's id in what the process prints; not needed when `next` goes on
        /// with the newest session by itself.
        session: Option<String>,
    },
}

/// A file that is written into the fresh home.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverFile {
    /// Path below the home, or below the working folder when it begins with `{work}/`.
    pub path: String,
    /// Text.
    pub text: String,
}

/// Paths below the home.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// Entries about the work.
    pub memory: String,
    /// Entries about the user.
    pub user: String,
    /// A skill; `{name}` stands for its name.
    pub skill: String,
}

/// A tool under another name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The agent's name for it.
    pub name: String,
    /// Arguments under other names: the scenario's, then the agent's.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// Arguments that the agent demands besides.
    #[serde(default)]
    pub add: toml::Table,
}

fn mock_model() -> String {
    "mock-model".to_owned()
}

/// Longer than the pause between two requests of one background run; a review follows 40 to 210 ms after its turn.
fn quiet() -> u64 {
    1_500
}

fn patience() -> u64 {
    180
}

/// Reads a driver.
///
/// # Errors
/// The first fault of its text, then every fault of what it says.
pub fn load(file: &str, text: &str) -> Result<Driver, Vec<Diagnostic>> {
    let driver: Driver = toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        vec![match error.span() {
            Some(span) => Diagnostic::at_byte(file, text, span.start, message),
            None => Diagnostic::of_file(file, message),
        }]
    })?;
    let mut faults = Vec::new();
    let mut fault = |needle: &str, message: String| {
        faults.push(Diagnostic::at_byte(file, text, text.find(needle).unwrap_or(0), message));
    };
    if driver.format != FORMAT {
        fault("format", format!("format {} is not known; this lab reads format {FORMAT}", driver.format));
    }
    match &driver.way {
        Way::Acp { command } if command.is_empty() => fault("command", "no command".to_owned()),
        Way::Acp { .. } => {}
        Way::Once { first, next, session } => {
            for (key, command) in [("first", first), ("next", next)] {
                if !command.iter().any(|word| word.contains("{prompt}")) {
                    fault(key, format!("`{key}` hands over no `{{prompt}}`"));
                }
            }
            if next.iter().any(|word| word.contains("{session}")) && session.is_none() {
                fault("next", "`next` wants a `{session}`, and no `session` pattern finds one".to_owned());
            }
            if let Some(pattern) = session {
                match regex::Regex::new(pattern) {
                    Ok(pattern) if pattern.captures_len() > 1 => {}
                    Ok(_) => fault("session", "the pattern has no group for the session's id".to_owned()),
                    Err(error) => fault("session", error.to_string()),
                }
            }
        }
    }
    for written in &driver.files {
        if written.path.split('/').any(|part| part == "..") || written.path.starts_with('/') {
            fault(&written.path, format!("`{}` lies outside the home", written.path));
        }
    }
    if faults.is_empty() { Ok(driver) } else { Err(faults) }
}

/// A shipped driver by name.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn shipped(name: &str) -> Option<Driver> {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    Some(load(name, text).expect("a shipped driver is valid, a test reads them all"))
}

impl Driver {
    /// The scenario with the calls of its scripts under the agent's names.
    pub fn translate(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if self.tools.is_empty() {
            return scenario;
        }
        for act in &mut scenario.acts {
            if let Act::Turn(turn) = act {
                let lists = [&mut turn.replies, &mut turn.review, &mut turn.summary, &mut turn.child];
                lists.into_iter().flatten().for_each(|reply| self.translate_reply(reply));
            }
        }
        for rule in &mut scenario.rules {
            if let Some(reply) = &mut rule.reply {
                self.translate_reply(reply);
            }
        }
        scenario
    }

    fn translate_reply(&self, reply: &mut ReplySpec) {
        if let Some(tool) = reply.call.as_ref().and_then(|call| self.tools.get(call)) {
            reply.call = Some(tool.name.clone());
            tool.arguments(&mut reply.args);
        }
        for call in &mut reply.calls {
            if let Some(tool) = self.tools.get(&call.tool) {
                call.tool.clone_from(&tool.name);
                tool.arguments(&mut call.args);
            }
        }
    }
}

impl Tool {
    fn arguments(&self, arguments: &mut toml::Table) {
        let renamed = std::mem::take(arguments).into_iter().map(|(name, value)| {
            let name = self.args.get(&name).cloned().unwrap_or(name);
            (name, value)
        });
        *arguments = renamed.chain(self.add.clone()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_driver_is_valid_and_named_after_its_file() {
        for (name, text) in SHIPPED {
            let driver = load(name, text).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
            assert_eq!(driver.name, *name);
        }
    }

    #[test]
    fn what_a_driver_lacks_is_said_with_its_line() {
        let text = "format = 1\nname = \"x\"\ntitle = \"x\"\ninstall = \"x\"\n\n[way.once]\nfirst = [\"x\"]\nnext = [\"x\", \"{prompt}\", \"{session}\"]\n";
        let faults: Vec<String> = load("x.toml", text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("x.toml:7") && faults[0].contains("{prompt}"), "{faults:?}");
        assert!(faults[1].contains("x.toml:8") && faults[1].contains("{session}"), "{faults:?}");
    }

    #[test]
    fn calls_are_translated_into_the_agents_words() {
        let driver = shipped("opencode").unwrap();
        let text = "format = 1\nname = \"t\"\n[[act]]\nopen.name = \"s\"\n[[act]]\n[act.turn]\nsay = \"go\"\n\
                    replies = [{ call = \"terminal\", args = { command = \"ls\" } }, { say = \"done\" }]\n";
        let scenario = crate::scenario::load("t.toml", text).unwrap();
        let translated = driver.translate(&scenario);
        let Act::Turn(turn) = &translated.acts[1] else { panic!("a turn") };
        assert_eq!(turn.replies[0].call.as_deref(), Some("bash"));
        assert!(
            turn.replies[0].args.contains_key("command") && turn.replies[0].args.contains_key("description")
        );
    }
}

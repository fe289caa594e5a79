//! Agents that speak the Agent Client Protocol: JSON-RPC over standard input and output, one object a line.
//!
//! What the agent asks of its client is answered: leave to run a tool is given, anything else is refused, since nothing
//! else was offered.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::process::Stream;
use crate::world::{Process, ProcessSpec};

use super::agent::{AgentError, Tail, environment, patience};
use super::driver::Driver;
use super::place::Place;

/// Version of the protocol.
const PROTOCOL: u64 = 1;
/// JSON-RPC's code for a method that is not there.
const NO_METHOD: i64 = -32601;

/// One agent process.
pub(super) struct Acp<'a> {
    driver: &'a Driver,
    place: &'a Place,
    command: &'a [String],
    process: Process,
    ids: u64,
    /// The agent's id of each session.
    sessions: BTreeMap<String, String>,
    /// Text of the answer that is being given.
    answer: String,
    tail: Tail,
}

impl<'a> Acp<'a> {
    pub(super) fn start(
        driver: &'a Driver,
        place: &'a Place,
        command: &'a [String],
    ) -> Result<Self, AgentError> {
        let process = spawn(driver, place, command)?;
        let mut agent = Self {
            driver,
            place,
            command,
            process,
            ids: 0,
            sessions: BTreeMap::new(),
            answer: String::new(),
            tail: Tail::default(),
        };
        agent.greet()?;
        Ok(agent)
    }

    fn greet(&mut self) -> Result<(), AgentError> {
        let hello = json!({ "protocolVersion": PROTOCOL, "clientCapabilities": {} });
        self.call("initialize", "starting", &hello).map(|_| ())
    }

    pub(super) fn open(&mut self, name: &str) -> Result<(), AgentError> {
        let at = self.place.work.display().to_string();
        let answer =
            self.call("session/new", "opening a session", &json!({ "cwd": at, "mcpServers": [] }))?;
        let id = answer["sessionId"].as_str().unwrap_or_default().to_owned();
        self.sessions.insert(name.to_owned(), id);
        Ok(())
    }

    pub(super) fn reopen(&mut self, name: &str) -> Result<(), AgentError> {
        let id = self.id_of(name)?;
        self.process.end();
        self.process = spawn(self.driver, self.place, self.command)?;
        self.greet()?;
        let at = self.place.work.display().to_string();
        let load = json!({ "sessionId": id, "cwd": at, "mcpServers": [] });
        self.call("session/load", "opening a session again", &load).map(|_| ())
    }

    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Result<String, AgentError> {
        let id = self.id_of(session)?;
        self.answer.clear();
        let prompt = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": text }] });
        self.call("session/prompt", "a turn", &prompt)?;
        Ok(std::mem::take(&mut self.answer))
    }

    pub(super) fn printed(&self) -> String {
        self.tail.text()
    }

    fn id_of(&self, name: &str) -> Result<String, AgentError> {
        self.sessions.get(name).cloned().ok_or_else(|| AgentError::UnknownSession(name.to_owned()))
    }

    fn call(&mut self, method: &str, doing: &'static str, params: &Value) -> Result<Value, AgentError> {
        self.ids += 1;
        let id = self.ids;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), doing)?;
        let mut left = patience(self.driver);
        let tick = Duration::from_secs(1);
        loop {
            let Some((stream, line)) = self.process.next_line(tick) else {
                if self.process.wait(Duration::ZERO).is_some() {
                    return Err(AgentError::Ended(doing, self.printed()));
                }
                left = left.saturating_sub(tick);
                if left.is_zero() {
                    let (seconds, printed) = (self.driver.turn_seconds, self.printed());
                    return Err(AgentError::Slow { seconds, doing, printed });
                }
                continue;
            };
            let message = match stream {
                Stream::Out => serde_json::from_str::<Value>(&line).ok(),
                Stream::Err => None,
            };
            let Some(message) = message else {
                self.tail.push(line);
                continue;
            };
            if message.get("method").is_some() {
                self.hear(&message, doing)?;
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(AgentError::Refused(doing, error.to_string())),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Takes in what the agent says or asks in between.
    fn hear(&mut self, message: &Value, doing: &'static str) -> Result<(), AgentError> {
        let params = &message["params"];
        if params["update"]["sessionUpdate"] == "agent_message_chunk" {
            self.answer.push_str(params["update"]["content"]["text"].as_str().unwrap_or_default());
        }
        let Some(id) = message.get("id") else { return Ok(()) };
        let reply = if message["method"] == "session/request_permission" {
            let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
            let allows =
                |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
            let outcome = match options.iter().find(allows) {
                Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
                None => json!({ "outcome": "cancelled" }),
            };
            json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } })
        } else {
            let error = json!({ "code": NO_METHOD, "message": "not offered" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        };
        self.write(&reply, doing)
    }

    fn write(&mut self, message: &Value, doing: &'static str) -> Result<(), AgentError> {
        self.process.write_line(&message.to_string()).map_err(|_| AgentError::Ended(doing, self.tail.text()))
    }
}

fn spawn(driver: &Driver, place: &Place, command: &[String]) -> Result<Process, AgentError> {
    let command: Vec<String> = command.iter().map(|word| place.fill(word)).collect();
    let program = command.first().cloned().unwrap_or_default();
    let spec =
        ProcessSpec { command, environment: environment(driver, place), directory: place.work.clone() };
    Process::start(&spec).map_err(|source| AgentError::Start { program, source })
}

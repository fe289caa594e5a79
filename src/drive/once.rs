//! Agents that are one process a turn: the prompt is an argument, the answer is what is printed.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;

use crate::world::process::Stream;
use crate::world::{Process, ProcessSpec};

use super::agent::{AgentError, Tail, environment};
use super::driver::Driver;
use super::place::Place;

/// Time that output may trail behind the end of its process.
const TRAILING: Duration = Duration::from_millis(300);

/// An agent without a process between turns.
pub(super) struct Once<'a> {
    driver: &'a Driver,
    place: &'a Place,
    first: &'a [String],
    next: &'a [String],
    pattern: Option<Regex>,
    /// The agent's id of each session that had a turn.
    sessions: BTreeMap<String, String>,
    tail: Tail,
}

impl<'a> Once<'a> {
    pub(super) fn new(
        driver: &'a Driver,
        place: &'a Place,
        first: &'a [String],
        next: &'a [String],
        pattern: Option<&str>,
    ) -> Self {
        // A driver file is checked when it is read.
        let pattern = pattern.and_then(|pattern| Regex::new(pattern).ok());
        Self { driver, place, first, next, pattern, sessions: BTreeMap::new(), tail: Tail::default() }
    }

    pub(super) fn open(&mut self, name: &str) {
        self.sessions.remove(name);
    }

    pub(super) fn reopen(&mut self, name: &str) -> Result<(), AgentError> {
        // Every turn is a process of its own, so nothing has to be done.
        if self.sessions.contains_key(name) {
            Ok(())
        } else {
            Err(AgentError::UnknownSession(name.to_owned()))
        }
    }

    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Result<String, AgentError> {
        let words = if self.sessions.contains_key(session) { self.next } else { self.first };
        let id = self.sessions.get(session).cloned().unwrap_or_default();
        let command = self.place.command(words, text, &id);
        let program = command.first().cloned().unwrap_or_default();
        let spec = ProcessSpec {
            command,
            environment: environment(self.driver, self.place),
            directory: self.place.work.clone(),
        };
        let mut process = Process::start(&spec).map_err(|source| AgentError::Start { program, source })?;
        process.close_input();
        let mut heard = Heard { pattern: self.pattern.as_ref(), answer: String::new(), session: None };
        let mut waited = Duration::ZERO;
        let tick = Duration::from_millis(100);
        let code = loop {
            match process.next_line(tick) {
                Some((stream, line)) => self.tail.push(heard.line(stream, line)),
                None => waited += tick,
            }
            if let Some(code) = process.wait(Duration::ZERO) {
                while let Some((stream, line)) = process.next_line(TRAILING) {
                    self.tail.push(heard.line(stream, line));
                }
                break code;
            }
            if waited.as_secs() >= self.driver.turn_seconds {
                let (seconds, printed) = (self.driver.turn_seconds, self.printed());
                return Err(AgentError::Slow { seconds, doing: "a turn", printed });
            }
        };
        let Heard { answer, session: named, .. } = heard;
        if code != 0 {
            return Err(AgentError::Refused("a turn", format!("exit code {code}\n{}", self.printed())));
        }
        self.sessions.insert(session.to_owned(), named.unwrap_or(id));
        Ok(answer.trim_end().to_owned())
    }

    pub(super) fn printed(&self) -> String {
        self.tail.text()
    }
}

/// What a process has printed so far.
struct Heard<'a> {
    pattern: Option<&'a Regex>,
    answer: String,
    session: Option<String>,
}

impl Heard<'_> {
    fn line(&mut self, stream: Stream, line: String) -> String {
        if let Some(groups) = self.pattern.and_then(|pattern| pattern.captures(&line)) {
            self.session = groups.get(1).map(|id| id.as_str().to_owned());
        }
        if stream == Stream::Out {
            self.answer.push_str(&line);
            self.answer.push('\n');
        }
        line
    }
}

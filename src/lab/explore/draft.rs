//! A drawn run before it is a scenario: parts that can be taken away one by one, and the file that they make.
//!
//! The file is the truth: what is played is what the text says, so a failing draft is a scenario that anybody replays.

use std::fmt::Write as _;

/// One thing that happens in a drawn run, with what goes wrong in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub act: Move,
    /// Bodies of faults, as `crash.after_event = 4`.
    pub faults: Vec<String>,
}

/// What happens in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// A user turn: rounds of calls, each call as TOML, then an answer.
    Turn {
        /// The session; the open one when absent.
        session: Option<String>,
        /// What the user says.
        say: String,
        /// Rounds of calls.
        rounds: Vec<Vec<String>>,
        /// The answer.
        answer: String,
        /// Keys beside, as `reconnect = true`.
        beside: Vec<String>,
    },
    /// Any other act, as the body of its table.
    Other(String),
}

/// A drawn run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// The seed that it was drawn from, and that its own draws use.
    pub seed: u64,
    /// Knobs that every run turns: gaps of the real mechanism that are known and closed.
    pub base: Vec<(String, String)>,
    /// Turned knobs, as name and TOML value.
    pub knobs: Vec<(String, String)>,
    /// What there is at the start: whole tables, as `[[skill]]` and its lines.
    pub things: Vec<String>,
    /// Rules that a law counts on, which a shrunk run keeps: whole tables.
    pub manners: Vec<String>,
    /// What the model does in the lanes beside the user's: whole tables.
    pub rules: Vec<String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// A text as a TOML string.
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl Draft {
    /// The scenario file, with a line of explanation for people.
    pub fn to_toml(&self, name: &str, about: &str) -> String {
        let mut text = format!("format = 1\nname = {}\nseed = {}\n", quoted(name), self.seed);
        if !about.is_empty() {
            let _ = writeln!(text, "about = {}", quoted(about));
        }
        if !self.base.is_empty() || !self.knobs.is_empty() {
            text.push_str("\n[policy]\n");
        }
        for (knob, value) in self.base.iter().chain(&self.knobs) {
            let _ = writeln!(text, "\"{knob}\" = {value}");
        }
        for table in self.things.iter().chain(&self.manners).chain(&self.rules) {
            let _ = write!(text, "\n{}\n", table.trim_end());
        }
        for step in &self.steps {
            text.push_str("\n[[act]]\n");
            step.act.write(&mut text);
        }
        for (place, step) in self.steps.iter().enumerate() {
            for fault in &step.faults {
                let _ = write!(text, "\n[[fault]]\nact = {}\n{fault}\n", place + 1);
            }
        }
        text
    }

    /// How much there is that could be taken away.
    pub fn weight(&self) -> usize {
        let steps = self.steps.iter().map(|step| step.act.weight() + step.faults.len());
        self.knobs.len() + self.things.len() + self.rules.len() + steps.sum::<usize>()
    }
}

impl Move {
    fn write(&self, text: &mut String) {
        match self {
            Self::Other(body) => {
                let _ = writeln!(text, "{}", body.trim_end());
            }
            Self::Turn { session, say, rounds, answer, beside } => {
                text.push_str("[act.turn]\n");
                if let Some(session) = session {
                    let _ = writeln!(text, "session = {}", quoted(session));
                }
                let _ = writeln!(text, "say = {}", quoted(say));
                for line in beside {
                    let _ = writeln!(text, "{line}");
                }
                text.push_str("replies = [\n");
                for calls in rounds {
                    let _ = writeln!(text, "  {{ calls = [{}] }},", calls.join(", "));
                }
                let _ = writeln!(text, "  {{ say = {} }},\n]", quoted(answer));
            }
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Other(_) => 1,
            Self::Turn { rounds, beside, .. } => {
                1 + rounds.iter().map(|calls| 1 + calls.len()).sum::<usize>() + beside.len()
            }
        }
    }
}

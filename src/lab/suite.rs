//! Suites: a fixed set of tasks, each with expectations on outside evidence, played and recorded in full.
//!
//! [`regression`] plays the set under a plan and gives one record a task; [`compare`](mod@compare) sets two such
//! records side by side; [`prove`] shows that every expectation can fail; [`learning`] measures what the learning loop
//! buys and what each of its links is worth; [`ablation`] sets every break beside what it costs.

pub mod ablation;
pub mod compare;
pub mod learning;
pub mod prove;
mod record;

pub use record::{Call, End, FileEnd, Found, TaskRun, Tokens};

use serde::{Deserialize, Serialize};

use crate::diag::Diagnostic;
use crate::lab::play::{Plan, play_to_end};
use crate::scenario::{self, Scenario};

/// Version of the record's shape.
pub const SCHEMA: u64 = 1;

/// A played suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Version of the shape.
    pub schema: u64,
    /// Name of the suite.
    pub suite: String,
    /// Version of the lab that played it.
    pub version: String,
    /// What was turned, in the words of the command line.
    pub turned: Vec<String>,
    /// True when every task holds.
    pub holds: bool,
    /// One record a task, in order.
    pub tasks: Vec<TaskRun>,
}

/// A scenario of the suites by name.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn task(name: &str) -> Option<Scenario> {
    let all = scenario::suite().iter().chain(scenario::learning());
    let (name, text) = all.into_iter().find(|(known, _)| *known == name)?;
    let file = format!("scenarios/suite/{name}.toml");
    Some(scenario::load(&file, text).unwrap_or_else(|faults| panic!("{faults:?}")))
}

/// Plays the regression set.
///
/// `turned` says in words what the plan turns. A task that cannot be played under the plan does not hold; its record
/// says why.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn regression(plan: &Plan, turned: &[String]) -> Suite {
    let tasks: Vec<TaskRun> = scenario::suite()
        .iter()
        .map(|(name, _)| {
            let scenario = task(name).expect("a shipped task");
            TaskRun::of(&scenario, plan, play_to_end(&scenario, plan))
        })
        .collect();
    Suite {
        schema: SCHEMA,
        suite: "regression".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        turned: turned.to_vec(),
        holds: tasks.iter().all(|task| task.holds),
        tasks,
    }
}

impl Suite {
    /// Reads a saved suite; `file` names it in diagnostics.
    ///
    /// # Errors
    /// When it is no suite of a known shape.
    pub fn read(file: &str, text: &str) -> Result<Self, Diagnostic> {
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| Diagnostic::at_line(file, error.line(), format!("not JSON: {error}")))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(SCHEMA) => {}
            Some(other) => {
                let message = format!("schema {other} is not known; this lab reads schema {SCHEMA}");
                return Err(Diagnostic::of_file(file, message));
            }
            None => {
                let message = "no saved suite: expected an object with `schema` and `tasks`";
                return Err(Diagnostic::of_file(file, message)
                    .with_help("`hermes-lab suite regression --save FILE` writes one"));
            }
        }
        serde_json::from_value(value)
            .map_err(|error| Diagnostic::of_file(file, format!("no saved suite: {error}")))
    }
}

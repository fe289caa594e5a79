//! How tests play scenarios and call the command.

use std::process::{Command, Output};

use hermes_lab::lab::breaks::{shipped_break, shipped_scenario};
use hermes_lab::lab::play::{Plan, play};
use hermes_lab::ledger::rebuild::Rebuild;
use hermes_lab::ledger::{Lane, Ledger};
use hermes_lab::policy::Overlay;
use hermes_lab::scenario::{self, Scenario};
use serde_json::Value;

/// A run under construction; reads like a sentence.
pub struct Lab {
    scenario: Scenario,
    plan: Plan,
}

impl Lab {
    /// Plays a shipped scenario.
    pub fn scenario(name: &str) -> Self {
        let scenario = shipped_scenario(name).unwrap_or_else(|| panic!("no scenario {name}"));
        Self { scenario, plan: Plan::default() }
    }

    /// Plays a scenario given as text.
    pub fn text(text: &str) -> Self {
        let scenario =
            scenario::load("test.toml", text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
        Self { scenario, plan: Plan::default() }
    }

    /// With a break switched on.
    pub fn break_(mut self, id: &str) -> Self {
        let found = shipped_break(id).unwrap_or_else(|| panic!("no break {id}"));
        self.plan.above.push(Overlay::from_table(&found.with));
        self.plan.above.push(found.overlay());
        self
    }

    /// With a knob turned.
    pub fn set(mut self, knob: &str, value: impl Into<toml::Value>) -> Self {
        let turn = toml::Table::from_iter([(knob.to_owned(), value.into())]);
        self.plan.above.push(Overlay::from_table(&turn));
        self
    }

    /// Plays it.
    pub fn run(&self) -> Ledger {
        play(&self.scenario, &self.plan).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Plays a small scenario of these acts under these knobs.
pub fn played(knobs: &str, acts: &str) -> Ledger {
    Lab::text(&format!(
        "format = 1\nname = \"t\"\ntitle = \"t\"\nabout = \"t\"\nstart = \"2026-09-01T09:00:00Z\"\n{knobs}\n{acts}"
    ))
    .run()
}

/// One request as it was sent.
pub struct Request {
    pub session: String,
    pub system: String,
    pub messages: Vec<Value>,
}

impl Request {
    /// The texts of its messages.
    pub fn texts(&self) -> Vec<&str> {
        self.messages.iter().filter_map(|message| message["content"].as_str()).collect()
    }

    /// True when one of them contains this.
    pub fn says(&self, text: &str) -> bool {
        self.texts().iter().any(|said| said.contains(text))
    }
}

/// The requests of a lane, in order.
pub fn sent(ledger: &Ledger, lane: Lane) -> Vec<Request> {
    let mut rebuild = Rebuild::default();
    let mut all = Vec::new();
    for event in &ledger.events {
        let Some(seen) = rebuild.apply(event).filter(|seen| seen.key.1 == lane) else { continue };
        let state = rebuild.conversation(&seen.key).unwrap();
        let messages = state.segments[state.first_message()..].iter();
        let messages = messages.map(|segment| serde_json::from_str(&segment.text).unwrap()).collect();
        all.push(Request { session: event.session.to_string(), system: state.system(), messages });
    }
    all
}

/// Knobs under which a history of half so many characters is compacted when a turn ends.
pub fn small_window(window: u64) -> String {
    format!(
        "[policy.compress]\nunit = \"characters\"\nwindow = {window}\nthreshold = 0.5\nthreshold_floor = 0\n\
         threshold_tokens = \"none\"\nsmall_window = 0\ncheck_at = \"turn_end\"\ntail_rows = 4\nrows_beyond_head = 0\n"
    )
}

/// Calls the command in an empty environment.
#[expect(clippy::disallowed_methods, reason = "an end-to-end test starts the binary")]
pub fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hermes-lab"))
        .args(arguments)
        .env_clear()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the binary starts")
}

/// Standard output of a call, which must end with this code.
pub fn stdout(arguments: &[&str], code: i32) -> String {
    let output = lab(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Standard error of a call that must be refused as bad input, with nothing on standard output.
pub fn refused(arguments: &[&str]) -> String {
    let output = lab(arguments);
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
    assert!(!error.contains("panicked"), "{error}");
    error
}

//! What a real agent did with a scenario, beside other versions of it and beside the lab's own runtime.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json as object};

use super::{Driven, Driver};
use crate::lab::figures;
use crate::laws::{Finding, Verdict};
use crate::ledger::{Lane, Ledger, What};
use crate::scenario::Scenario;

use crate::report::table::Table;

/// The version of the JSON shape.
pub const SCHEMA: u64 = 1;

/// Figures that requests alone show, so that a real agent has them as well as the runtime.
const SHARED: [&str; 10] = [
    "cold_requests",
    "compactions",
    "effects",
    "hit_rate",
    "orphan_results",
    "output_tokens",
    "prefix_breaks",
    "prompt_tokens",
    "system_prompt_changes",
    "tools_ran",
];

/// One run: the runtime, or one installation of an agent.
#[derive(Debug)]
pub struct Column {
    /// What ran.
    pub name: String,
    /// True when it was played to the end and no law found anything.
    pub holds: bool,
    figures: BTreeMap<String, Value>,
    findings: Vec<Finding>,
    digest: String,
    turns: Vec<Value>,
    left: Vec<String>,
    broken_off: Option<String>,
}

impl Column {
    /// The lab's own runtime.
    pub fn of_runtime(ledger: &Ledger, verdict: &Verdict) -> Self {
        Self {
            name: "runtime".to_owned(),
            holds: verdict.holds(),
            figures: figures_of(ledger),
            findings: verdict.findings().cloned().collect(),
            digest: ledger.digest(),
            turns: Vec::new(),
            left: Vec::new(),
            broken_off: None,
        }
    }

    /// A real agent.
    pub fn of_agent(install: &Path, driven: &Driven) -> Self {
        let name =
            install.file_name().map_or_else(|| "agent".to_owned(), |name| name.to_string_lossy().into());
        let turns = driven.turns.iter().map(|turn| {
            object!({
                "session": turn.session, "turn": turn.turn, "said": turn.said, "answer": turn.answer,
                "changed": turn.changed, "changed_behind": turn.changed_behind,
            })
        });
        Self {
            name,
            holds: driven.holds(),
            figures: figures_of(&driven.outcome.ledger),
            findings: driven.outcome.verdict.findings().cloned().collect(),
            digest: driven.outcome.ledger.digest(),
            turns: turns.collect(),
            left: driven.left.iter().map(|left| format!("act {}: {}", left.act, left.kind)).collect(),
            broken_off: driven.broken_off.as_ref().map(ToString::to_string),
        }
    }
}

fn figures_of(ledger: &Ledger) -> BTreeMap<String, Value> {
    let mut figures: BTreeMap<String, Value> = figures::all(ledger)
        .into_iter()
        .filter(|(name, _)| SHARED.contains(name))
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let mut lanes: BTreeMap<Lane, u64> = BTreeMap::new();
    for event in &ledger.events {
        if let What::Request(request) = &event.what {
            *lanes.entry(request.lane).or_insert(0) += 1;
        }
    }
    for (lane, requests) in lanes {
        figures.insert(format!("requests: {}", lane.word()), requests.into());
    }
    figures
}

/// The result for people.
pub fn text(driver: &Driver, scenario: &Scenario, columns: &[Column]) -> String {
    let mut text = format!("{}\n{}\n\n", driver.title, scenario.title);
    let mut head = vec!["figure"];
    head.extend(columns.iter().map(|column| column.name.as_str()));
    let mut table = Table::new(&head).right(&(1..head.len()).collect::<Vec<_>>());
    let mut names: Vec<&String> = columns.iter().flat_map(|column| column.figures.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let cell = |column: &Column| match column.figures.get(name) {
            None => "0".to_owned(),
            Some(Value::Array(list)) => list.len().to_string(),
            Some(value) => value.to_string(),
        };
        table.row(std::iter::once(name.clone()).chain(columns.iter().map(cell)));
    }
    text.push_str(&table.render());
    for column in columns {
        let _ = writeln!(text, "\n{}", column.name);
        for finding in &column.findings {
            let _ = writeln!(
                text,
                "  {} at event {}, session {}: {}: {}",
                finding.check, finding.event, finding.session, finding.place, finding.evidence
            );
        }
        if column.findings.is_empty() {
            text.push_str("  no law found anything\n");
        }
        if !column.left.is_empty() {
            let _ = writeln!(text, "  a real agent cannot be given {}", column.left.join(", "));
        }
        if let Some(why) = &column.broken_off {
            let _ = writeln!(text, "  broken off: {why}");
        }
    }
    text
}

/// The same for programs.
pub fn json(driver: &str, scenario: &str, columns: &[Column]) -> Value {
    let runs: Vec<Value> = columns
        .iter()
        .map(|column| {
            object!({
                "name": column.name, "holds": column.holds, "digest": column.digest, "figures": column.figures,
                "findings": column.findings, "turns": column.turns, "left_out": column.left,
                "broken_off": column.broken_off,
            })
        })
        .collect();
    object!({ "schema": SCHEMA, "driver": driver, "scenario": scenario, "runs": runs })
}

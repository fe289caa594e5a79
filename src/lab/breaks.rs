//! Breaks: an overlay that turns a mechanism off, and a claim of what degrades.
//!
//! A break is a TOML file. It is played twice, intact and broken; the claim holds when exactly the promised checks
//! newly fail and every figure moves from its intact to its broken value.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diag::{Diagnostic, did_you_mean};
use crate::lab::figures::{FIGURES, figure};
use crate::lab::play::PlayError;
use crate::lab::runs::{self, Judged};
use crate::laws;
use crate::ledger::Ledger;
use crate::policy::{Overlay, Policy};
use crate::scenario::{Scenario, live, shipped};

/// Version of the file format.
const FORMAT: i64 = 1;

/// A figure that a break moves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name of the figure.
    pub name: String,
    /// Its value in the intact run.
    pub intact: toml::Value,
    /// Its value in the broken run.
    pub broken: toml::Value,
}

/// A break as its file gives it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Break {
    /// Version of the format.
    pub format: i64,
    /// `D1`, …
    pub id: String,
    /// One line for lists.
    pub title: String,
    /// What the break shows, and why the figures are what they are.
    #[serde(default)]
    pub about: String,
    /// The law that it violates.
    pub law: String,
    /// The scenario that shows it.
    pub scenario: String,
    /// Knobs that the break turns.
    pub turn: toml::Table,
    /// Knobs that both runs turn, beside the scenario's own.
    #[serde(default)]
    pub with: toml::Table,
    /// Checks that must newly fail.
    pub caught_by: Vec<String>,
    /// Figures that must move.
    #[serde(default)]
    pub figure: Vec<Claim>,
}

/// How a figure moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Name of the figure.
    pub name: String,
    /// Its value in the intact run.
    pub intact: Value,
    /// Its value in the broken run.
    pub broken: Value,
    /// What was claimed, when something else was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<(Value, Value)>,
}

/// What playing a break showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The break.
    pub id: String,
    /// One line for lists.
    pub title: String,
    /// What the break shows.
    pub about: String,
    /// The law that it violates.
    pub law: String,
    /// True when the claim holds.
    pub holds: bool,
    /// Checks that fail in the broken run and not in the intact one.
    pub caught_by: Vec<String>,
    /// Checks that fail in the intact run; there must be none.
    pub intact_findings: Vec<String>,
    /// Figures.
    pub figures: Vec<Moved>,
    /// Digest of the broken run's ledger.
    pub digest: String,
}

/// Name and text of every break that ships with the lab, in order.
pub const SHIPPED: &[(&str, &str)] = &[
    ("D1", include_str!("../../breaks/D1.toml")),
    ("D2", include_str!("../../breaks/D2.toml")),
    ("D3", include_str!("../../breaks/D3.toml")),
    ("D4", include_str!("../../breaks/D4.toml")),
    ("D5", include_str!("../../breaks/D5.toml")),
    ("D6", include_str!("../../breaks/D6.toml")),
    ("D7", include_str!("../../breaks/D7.toml")),
    ("D8", include_str!("../../breaks/D8.toml")),
    ("D9", include_str!("../../breaks/D9.toml")),
    ("D10", include_str!("../../breaks/D10.toml")),
    ("D11", include_str!("../../breaks/D11.toml")),
    ("D12", include_str!("../../breaks/D12.toml")),
    ("D13", include_str!("../../breaks/D13.toml")),
    ("D14", include_str!("../../breaks/D14.toml")),
    ("D15", include_str!("../../breaks/D15.toml")),
    ("D16", include_str!("../../breaks/D16.toml")),
    ("D17", include_str!("../../breaks/D17.toml")),
    ("D18", include_str!("../../breaks/D18.toml")),
    ("D19", include_str!("../../breaks/D19.toml")),
    ("D20", include_str!("../../breaks/D20.toml")),
    ("D21", include_str!("../../breaks/D21.toml")),
    ("D22", include_str!("../../breaks/D22.toml")),
    ("D23", include_str!("../../breaks/D23.toml")),
    ("D24", include_str!("../../breaks/D24.toml")),
    ("D25", include_str!("../../breaks/D25.toml")),
    ("D26", include_str!("../../breaks/D26.toml")),
    ("D27", include_str!("../../breaks/D27.toml")),
    ("D28", include_str!("../../breaks/D28.toml")),
    ("D29", include_str!("../../breaks/D29.toml")),
    ("D30", include_str!("../../breaks/D30.toml")),
    ("D31", include_str!("../../breaks/D31.toml")),
    ("D32", include_str!("../../breaks/D32.toml")),
    ("D33", include_str!("../../breaks/D33.toml")),
    ("D34", include_str!("../../breaks/D34.toml")),
    ("D35", include_str!("../../breaks/D35.toml")),
    ("D36", include_str!("../../breaks/D36.toml")),
    ("D37", include_str!("../../breaks/D37.toml")),
    ("D38", include_str!("../../breaks/D38.toml")),
    ("D39", include_str!("../../breaks/D39.toml")),
    ("D40", include_str!("../../breaks/D40.toml")),
    ("D41", include_str!("../../breaks/D41.toml")),
    ("D42", include_str!("../../breaks/D42.toml")),
];

/// Loads a break; `file` names it in diagnostics.
///
/// # Errors
/// Every fault that can be found: bad TOML, unknown keys, knobs, checks, figures and scenarios.
pub fn load(file: &str, text: &str) -> Result<Break, Vec<Diagnostic>> {
    let read: Break = toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        vec![match error.span() {
            Some(span) => Diagnostic::at_byte(file, text, span.start, message),
            None => Diagnostic::of_file(file, message),
        }]
    })?;
    let mut faults = Vec::new();
    let mut fault = |needle: &str, message: String| {
        let at = text.find(needle).unwrap_or(0);
        faults.push(Diagnostic::at_byte(file, text, at, message));
    };
    if read.format != FORMAT {
        fault("format", format!("format {} is not known; this lab reads format {FORMAT}", read.format));
    }
    for table in [&read.turn, &read.with] {
        if let Err(errors) = Overlay::from_table(table).apply(&mut Policy::default()) {
            for error in errors {
                fault("[turn", error.to_string());
            }
        }
    }
    let checks = laws::checks();
    for check in &read.caught_by {
        if !checks.iter().any(|known| known.id == check) {
            let near = did_you_mean(check, checks.iter().map(|known| known.id));
            fault(check, format!("unknown check `{check}`{near}"));
        }
    }
    for claim in &read.figure {
        if figure(&claim.name).is_none() {
            let near = did_you_mean(&claim.name, FIGURES.iter().map(|figure| figure.name));
            fault(&claim.name, format!("unknown figure `{}`{near}", claim.name));
        }
    }
    if !laws::LAWS.iter().any(|(law, _)| *law == read.law) {
        fault("law", format!("unknown law `{}`; expected L1 to L5", read.law));
    }
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

/// A break that ships with the lab.
///
/// # Panics
/// When its file is broken, which a test forbids.
pub fn shipped_break(id: &str) -> Option<Break> {
    let (name, text) = SHIPPED.iter().find(|(known, _)| known.eq_ignore_ascii_case(id))?;
    Some(load(&format!("breaks/{name}.toml"), text).unwrap_or_else(|faults| panic!("{faults:?}")))
}

/// A scenario that ships with the lab; each is read once.
///
/// # Panics
/// When its file is broken, which a test forbids.
pub fn shipped_scenario(name: &str) -> Option<Scenario> {
    static READ: Mutex<BTreeMap<&'static str, Scenario>> = Mutex::new(BTreeMap::new());
    let (name, text) = shipped().iter().chain(live()).find(|(known, _)| *known == name)?;
    // Whoever panicked while holding the lock had not put anything in.
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scenario) = read.get(name) {
        return Some(scenario.clone());
    }
    let file = format!("{name}.toml");
    // A live run puts its seeds in; anywhere else the scenario is that of its first one.
    let text = text.replace("{seed}", "0");
    let scenario = crate::scenario::load(&file, &text).unwrap_or_else(|faults| panic!("{faults:?}"));
    read.insert(name, scenario.clone());
    Some(scenario)
}

impl Break {
    /// The overlay of the broken run.
    pub fn overlay(&self) -> Overlay {
        Overlay::from_table(&self.turn)
    }

    /// Compares an intact and a broken run with the claim.
    pub fn compare(&self, intact: &Judged, broken: &Judged) -> Shown {
        let before = intact.verdict.caught_by();
        let after = broken.verdict.caught_by();
        let newly: Vec<String> =
            after.iter().filter(|check| !before.contains(check)).map(|check| (*check).to_owned()).collect();
        let figures: Vec<Moved> =
            self.figure.iter().map(|claim| moved(claim, &intact.ledger, &broken.ledger)).collect();
        let promised = self.caught_by.iter().all(|check| newly.contains(check));
        let holds = before.is_empty() && promised && figures.iter().all(|figure| figure.claimed.is_none());
        Shown {
            id: self.id.clone(),
            title: self.title.clone(),
            about: self.about.clone(),
            law: self.law.clone(),
            holds,
            caught_by: newly,
            intact_findings: before.iter().map(|check| (*check).to_owned()).collect(),
            figures,
            digest: broken.ledger.digest(),
        }
    }
}

/// Plays breaks, each with its scenario, and compares every one with its claim.
///
/// # Errors
/// When a run cannot be played.
pub fn show_all(breaks: &[(Break, Scenario)]) -> Result<Vec<Shown>, PlayError> {
    let listed: Vec<(&Break, Scenario)> =
        breaks.iter().map(|(found, scenario)| (found, scenario.clone())).collect();
    let runs = runs::play_all(&listed, runs::threads())?;
    Ok(runs::each(&runs.pairs, |pair| pair.of.compare(&runs.intact[pair.intact], &pair.broken)))
}

fn moved(claim: &Claim, intact: &Ledger, broken: &Ledger) -> Moved {
    let read = |ledger: &Ledger| figure(&claim.name).map_or(Value::Null, |figure| figure.of(ledger));
    let (was, is) = (read(intact), read(broken));
    let json = |value: &toml::Value| serde_json::to_value(value).unwrap_or(Value::Null);
    let claimed = (json(&claim.intact), json(&claim.broken));
    let wrong = (claimed.0 != was || claimed.1 != is).then_some(claimed);
    Moved { name: claim.name.clone(), intact: was, broken: is, claimed: wrong }
}

//! `hermes-lab run`

use serde_json::json;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::play::{Plan, PlayError, Played, play, play_in, play_to_end};
use crate::lab::{expect, figures};
use crate::laws;
use crate::ledger::first_difference;
use crate::policy::Overlay;
use crate::report::run as report;
use crate::scenario::Scenario;
use crate::world::DirFiles;

/// Play one scenario and judge its ledger
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a shipped scenario, or path of a scenario file
    scenario: String,
    /// Switch a break on; may be repeated
    #[arg(long = "break", value_name = "ID")]
    breaks: Vec<String>,
    /// Turn one knob; may be repeated
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    sets: Vec<String>,
    /// Begin from a preset of knobs instead of the default
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Seed of the run, instead of the scenario's
    #[arg(long)]
    seed: Option<u64>,
    /// Write the ledger to a file
    #[arg(long, value_name = "FILE")]
    ledger: Option<String>,
    /// Work on a real directory: memories, skills, state.db
    #[arg(long, value_name = "DIR")]
    home: Option<String>,
    /// Play twice and name the first differing event
    #[arg(long)]
    twice: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    super::warm_up();
    let scenario = input::scenario(&args.scenario)?;
    let plan = plan(args)?;
    let played = match &args.home {
        Some(home) => at_home(&scenario, &plan, home)?,
        None => play_to_end(&scenario, &plan).map_err(|error| bad(&args.scenario, &error))?,
    };
    let ledger = &played.ledger;
    if args.twice && args.home.is_none() {
        let again = play(&scenario, &plan).map_err(|error| bad(&args.scenario, &error))?;
        if let Some(difference) = first_difference(ledger, &again) {
            return Ok(Answer::of(report::difference(&difference), false));
        }
    }
    if let Some(path) = &args.ledger {
        input::write(path, &ledger.to_jsonl())?;
    }
    let verdict = laws::judge(ledger);
    let wrong = expectations(&scenario, &played);
    let holds = verdict.holds() && wrong.is_empty();
    if args.json {
        let value = json!({
            "schema": laws::SCHEMA, "scenario": scenario.name, "digest": ledger.digest(),
            "twice": args.twice.then_some("equal"), "findings": verdict.findings().collect::<Vec<_>>(),
            "figures": figures::all(ledger), "expectations_failed": wrong,
        });
        return Ok(Answer::of(json_text(&value), holds));
    }
    Ok(Answer::of(report::text(&scenario, ledger, &verdict, &wrong, args.twice), holds))
}

fn plan(args: &Args) -> Result<Plan, BadInput> {
    let mut plan = Plan { seed: args.seed, ..Plan::default() };
    if let Some(name) = &args.policy {
        plan.beneath = input::preset_overlay(name)?;
    }
    for id in args.breaks.iter().flat_map(|list| list.split(',')) {
        let found = input::break_(id)?;
        plan.above.push(Overlay::from_table(&found.with));
        plan.above.push(found.overlay());
    }
    for set in &args.sets {
        let overlay = Overlay::parse_turn(set).map_err(|message| Diagnostic::of_file("--set", message))?;
        plan.above.push(overlay);
    }
    Ok(plan)
}

fn at_home(scenario: &Scenario, plan: &Plan, home: &str) -> Result<Played, BadInput> {
    let path = std::path::Path::new(home);
    let files = DirFiles::open(path).map_err(|error| Diagnostic::of_file(home, error.to_string()))?;
    play_in(scenario, plan, Box::new(files), Some(&path.join("state.db"))).map_err(|error| bad(home, &error))
}

fn bad(file: &str, error: &PlayError) -> BadInput {
    match error {
        PlayError::Knobs(errors) => {
            BadInput(errors.iter().map(|error| Diagnostic::of_file("--set", error.to_string())).collect())
        }
        other => Diagnostic::of_file(file, other.to_string()).into(),
    }
}

/// Expectations of the scenario that do not hold, as sentences.
fn expectations(scenario: &Scenario, played: &Played) -> Vec<String> {
    expect::judge(scenario, played)
        .into_iter()
        .filter(|judged| !judged.holds)
        .map(|judged| format!("{}: expected {}, found {}", judged.name, judged.expected, judged.found))
        .collect()
}

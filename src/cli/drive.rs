//! `hermes-lab drive`

use std::path::{Path, PathBuf};

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::drive::report::{Column, json, text};
use crate::drive::{self, Driver, Plan};
use crate::lab::play;
use crate::laws;
use crate::policy::{CacheModel, KnobValue as _};
use crate::scenario::Scenario;
use crate::serve::Options;

/// Play a scenario's user turns on a real agent, with the mock provider behind it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a shipped driver, or path of a driver file
    driver: String,
    /// Name of a shipped scenario, or path of a scenario file
    scenario: String,
    /// Where the agent is installed
    #[arg(long, value_name = "DIR", required_unless_present = "agent_versions")]
    install: Option<PathBuf>,
    /// Several installations, side by side
    #[arg(long, value_name = "DIR,DIR", value_delimiter = ',', conflicts_with = "install")]
    agent_versions: Vec<PathBuf>,
    /// Play the scenario on the lab's own runtime as well
    #[arg(long)]
    compare_runtime: bool,
    /// Cache model, as `list models` names them; by default each protocol's own
    #[arg(long, value_name = "MODEL")]
    provider: Option<String>,
    /// Window of the models in tokens
    #[arg(long, default_value_t = 200_000, value_name = "TOKENS")]
    context_length: u64,
    /// Answer what a provider would refuse, and report it
    #[arg(long)]
    lenient: bool,
    /// Let the agent run commands that the lab's guard calls dangerous; it runs them on this machine
    #[arg(long)]
    allow_dangerous: bool,
    /// Write the ledger to a file; with several installations their number is put before the ending
    #[arg(long, value_name = "FILE")]
    ledger: Option<String>,
    /// Keep home and working folder below this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let driver = input::driver(&args.driver)?;
    let scenario = input::scenario(&args.scenario)?;
    let risky = drive::risky_calls(&scenario);
    if !risky.is_empty() && !args.allow_dangerous {
        let fault = Diagnostic::of_file(
            &args.scenario,
            format!("its scripts have a real agent run what the guard calls dangerous: {}", risky.join("; ")),
        );
        return Err(fault.with_help("`--allow-dangerous` runs it all the same, on this machine").into());
    }
    let options = options(args)?;
    let installs: Vec<&Path> =
        args.install.iter().chain(&args.agent_versions).map(PathBuf::as_path).collect();
    let mut columns = Vec::new();
    if args.compare_runtime {
        columns.push(runtime(&scenario)?);
    }
    for (number, install) in installs.iter().enumerate() {
        columns.push(one(
            args,
            &driver,
            &scenario,
            install,
            &options,
            (installs.len() > 1).then_some(number),
        )?);
    }
    let holds = columns.iter().all(|column| column.holds);
    let answer = if args.json {
        json_text(&json(&driver.name, &scenario.name, &columns))
    } else {
        text(&driver, &scenario, &columns)
    };
    Ok(Answer::of(answer, holds))
}

fn runtime(scenario: &Scenario) -> Result<Column, BadInput> {
    let ledger = play::play(scenario, &play::Plan::default())
        .map_err(|error| Diagnostic::of_file(&scenario.name, error.to_string()))?;
    let verdict = laws::judge(&ledger);
    Ok(Column::of_runtime(&ledger, &verdict))
}

fn one(
    args: &Args,
    driver: &Driver,
    scenario: &Scenario,
    install: &Path,
    options: &Options,
    number: Option<usize>,
) -> Result<Column, BadInput> {
    let fault = |error: &dyn std::fmt::Display| {
        let name = install.display().to_string();
        BadInput::from(Diagnostic::of_file(&name, error.to_string()).with_help(driver.install.clone()))
    };
    let install = install.canonicalize().map_err(|error| fault(&input::reason(&error)))?;
    let fresh;
    let root = if let Some(keep) = &args.keep {
        match number {
            Some(number) => keep.join((number + 1).to_string()),
            None => keep.clone(),
        }
    } else {
        fresh = tempfile::tempdir().map_err(|error| fault(&error))?;
        fresh.path().to_path_buf()
    };
    if root.join("home").exists() || root.join("work").exists() {
        return Err(fault(&format!("{} holds a home or a working folder already", root.display())));
    }
    let root = std::path::absolute(&root).map_err(|error| fault(&error))?;
    let plan = Plan { driver, scenario, install: &install, root: &root, options: options.clone() };
    let driven = drive::drive(&plan).map_err(|error| fault(&error))?;
    if let Some(path) = &args.ledger {
        input::write(&numbered(path, number), &driven.outcome.ledger.to_jsonl())?;
    }
    Ok(Column::of_agent(&install, &driven))
}

/// `a.jsonl` as `a.2.jsonl`.
fn numbered(path: &str, number: Option<usize>) -> String {
    let Some(number) = number else { return path.to_owned() };
    match path.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}.{}.{ending}", number + 1),
        None => format!("{path}.{}", number + 1),
    }
}

fn options(args: &Args) -> Result<Options, BadInput> {
    let provider = match &args.provider {
        None => None,
        Some(name) => Some(CacheModel::read(&name.as_str().into(), None).map_err(|_| {
            let known = crate::cache::MODELS.iter().map(|(name, _)| *name);
            input::unknown("cache model", name, known, "`hermes-lab list models` says more")
        })?),
    };
    Ok(Options { provider, lenient: args.lenient, context_length: args.context_length, ..Options::default() })
}

//! `hermes-lab crash`

use std::num::NonZeroUsize;

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::crash::{closed, crash_every_step};
use crate::lab::play::Plan;
use crate::lab::runs;
use crate::report::crash as report;
use crate::scenario::shipped;

/// Kill a scenario after every event, and compare with the undisturbed run
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Names of shipped scenarios or paths of scenario files; every shipped one when absent
    scenarios: Vec<String>,
    /// Die after every n-th event only
    #[arg(long, default_value_t = 1)]
    step: u64,
    /// Leave the known gaps of the real mechanism open
    #[arg(long)]
    open_gaps: bool,
    /// Begin from a preset of knobs instead of the default
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Threads; as many as the machine has when absent
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let names: Vec<String> = if args.scenarios.is_empty() {
        shipped().iter().map(|(name, _)| (*name).to_owned()).collect()
    } else {
        args.scenarios.clone()
    };
    let mut plan = Plan::default();
    if let Some(name) = &args.policy {
        plan.beneath = input::preset_overlay(name)?;
    }
    if !args.open_gaps {
        plan.above.push(closed());
    }
    let threads = args.threads.unwrap_or_else(runs::threads);
    let mut all = Vec::new();
    for name in &names {
        let scenario = input::scenario(name)?;
        let crashes = crash_every_step(&scenario, &plan, args.step, threads)
            .map_err(|error| Diagnostic::of_file(name, error.to_string()))?;
        all.push(crashes);
    }
    let holds = all.iter().all(|one| one.problems.is_empty());
    Ok(Answer::of(if args.json { json_text(&all) } else { report::text(&all) }, holds))
}

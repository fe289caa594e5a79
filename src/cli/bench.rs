//! `hermes-lab bench`

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::bench::policies::Policy;
use crate::lab::bench::replay::{self, Plan};
use crate::lab::bench::trace;
use crate::report::bench as report;

/// Measure what caches read of a workload, and what it costs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Put a recorded trace through caches: Mooncake, agent sessions, TraceLab rounds
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Policy of eviction; may be repeated
    #[arg(long = "policy", value_name = "NAME", requires = "trace")]
    policies: Vec<Policy>,
    /// Capacity in blocks, or `unlimited`; may be repeated
    #[arg(long = "capacity", value_name = "BLOCKS", requires = "trace")]
    capacities: Vec<String>,
    /// Visit the blocks of a request last to first, so that tails leave before heads
    #[arg(long, requires = "trace")]
    reverse_touch: bool,
    /// Set figures that others printed about this trace beside ours
    #[arg(long, requires = "trace")]
    published: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    if let Some(file) = &args.trace {
        return of_trace(args, file);
    }
    Err(Diagnostic::of_file("bench", "name a trace with `--trace`").into())
}

fn of_trace(args: &Args, file: &str) -> CommandResult {
    let mut plan = Plan { reverse: args.reverse_touch, ..Plan::default() };
    if !args.policies.is_empty() {
        plan.policies.clone_from(&args.policies);
    }
    if !args.capacities.is_empty() {
        plan.capacities = args.capacities.iter().map(|text| capacity(text)).collect::<Result<_, _>>()?;
    }
    let trace = trace::read(file, &input::text(file)?)?;
    let replay = replay::replay(&trace, &plan, args.published);
    Ok(Answer::holds(if args.json { json_text(&replay) } else { report::replay(&replay) }))
}

fn capacity(text: &str) -> Result<Option<u64>, Diagnostic> {
    if text == "unlimited" {
        return Ok(None);
    }
    let number = text.replace([',', '_'], "").parse().ok().filter(|number| *number > 0);
    let wrong = || Diagnostic::of_file("--capacity", format!("`{text}` is no number of blocks from 1 on"));
    number.map(Some).ok_or_else(|| wrong().with_help("`unlimited` is a capacity, too"))
}

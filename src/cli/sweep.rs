//! `hermes-lab sweep`

use std::num::NonZeroUsize;
use std::path::Path;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::life::Kind;
use crate::lab::play::Plan;
use crate::lab::runs;
use crate::lab::sweep::shipped::QUESTIONS;
use crate::lab::sweep::{Axis, Sweep, World};
use crate::report::sweep as report;

/// Turn knobs through ranges, and show what each value costs and buys
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A knob and its range, both ends included, or its values; may be repeated
    #[arg(long = "set", value_name = "KNOB=A..B:STEP", required_unless_present = "shipped")]
    sets: Vec<String>,
    /// Seeds at each point, from 1 on
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Name of a shipped scenario, or path of a scenario file
    #[arg(long, default_value = "seed", conflicts_with = "life")]
    scenario: String,
    /// Sweep over a life instead
    #[arg(long)]
    life: Option<Kind>,
    /// Days of that life
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_650))]
    days: u64,
    /// Begin from a preset of knobs instead of the default
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Threads; as many as the machine has when absent
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Play only the i-th of n parts; `hermes-lab merge` puts them together
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Write the results to a file as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<String>,
    /// Write a picture of these two measures
    #[arg(long, value_name = "FILE", requires = "cost", requires = "benefit")]
    plot: Option<String>,
    /// Measure that is paid, for the picture
    #[arg(long, value_name = "MEASURE")]
    cost: Option<String>,
    /// Measure that is bought, for the picture
    #[arg(long, value_name = "MEASURE")]
    benefit: Option<String>,
    /// Play the shipped sweeps instead, and write page and pictures into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sets", "shard", "save", "plot"])]
    shipped: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let threads = args.threads.unwrap_or_else(runs::threads);
    if let Some(dir) = &args.shipped {
        return shipped(dir, threads);
    }
    let axes = args
        .sets
        .iter()
        .map(|set| Axis::parse(set).map_err(|message| Diagnostic::of_file("--set", message)))
        .collect::<Result<Vec<_>, _>>()?;
    let world = match args.life {
        Some(kind) => World::Life(kind, args.days),
        None => World::Scenario(Box::new(input::scenario(&args.scenario)?)),
    };
    let mut plan = Plan::default();
    if let Some(name) = &args.policy {
        plan.beneath = input::preset_overlay(name)?;
    }
    let shard = args.shard.as_deref().map_or(Ok((1, 1)), shard_of)?;
    let sweep = Sweep { world, axes, seeds: args.seeds, plan };
    let results = sweep.run(shard, threads).map_err(|message| Diagnostic::of_file("sweep", message))?;
    if let Some(path) = &args.save {
        input::write(path, &json_text(&results))?;
    }
    if let (Some(path), Some(cost), Some(benefit)) = (&args.plot, &args.cost, &args.benefit) {
        input::write(path, &report::plot(&results, cost, benefit, &results.world))?;
    }
    Ok(Answer::holds(if args.json { json_text(&results) } else { report::text(&results, &[]) }))
}

fn shard_of(text: &str) -> Result<(u64, u64), BadInput> {
    let parts =
        text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
    match parts {
        Some((i, n)) if i >= 1 && i <= n => Ok((i, n)),
        _ => {
            Err(Diagnostic::of_file("--shard", format!("expected `i/n` with i from 1 to n, found `{text}`"))
                .into())
        }
    }
}

fn shipped(dir: &str, threads: NonZeroUsize) -> CommandResult {
    let mut all = Vec::new();
    for question in QUESTIONS {
        let results = question
            .sweep()
            .run((1, 1), threads)
            .map_err(|message| Diagnostic::of_file(question.name, message))?;
        let svg = report::plot(&results, question.cost, question.benefit, question.asks);
        input::write(
            &Path::new(dir).join(format!("sweep-{}.svg", question.name)).display().to_string(),
            &svg,
        )?;
        all.push((question, results));
    }
    let page = report::page(&all);
    input::write(&Path::new(dir).join("sweeps.md").display().to_string(), &page)?;
    Ok(Answer::holds(page))
}

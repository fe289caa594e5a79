//! `hermes-lab merge`

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::sweep::{Results, merge};
use crate::report::sweep as report;

/// Put the parts of a sweep together
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files that `sweep --shard … --save` wrote
    #[arg(required = true)]
    files: Vec<String>,
    /// Write the whole to a file as JSON
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
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let mut parts = Vec::new();
    for file in &args.files {
        let read: Results = serde_json::from_str(&input::text(file)?).map_err(|error| {
            Diagnostic::at_line(file, error.line(), format!("not the results of a sweep: {error}"))
        })?;
        parts.push((file.clone(), read));
    }
    let whole = merge(parts).map_err(|message| Diagnostic::of_file("merge", message))?;
    if let Some(path) = &args.save {
        input::write(path, &json_text(&whole))?;
    }
    if let (Some(path), Some(cost), Some(benefit)) = (&args.plot, &args.cost, &args.benefit) {
        input::write(path, &report::plot(&whole, cost, benefit, &whole.world))?;
    }
    Ok(Answer::holds(if args.json { json_text(&whole) } else { report::text(&whole, &[]) }))
}

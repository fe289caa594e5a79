//! `hermes-lab matrix`

use crate::cli::{Answer, CommandResult, json_text};
use crate::diag::Diagnostic;
use crate::lab::matrix;
use crate::report::matrix as report;

/// Play every break against every check of the laws
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    super::warm_up();
    let matrix = matrix::build().map_err(|error| Diagnostic::of_file("matrix", error.to_string()))?;
    let holds = matrix.holds();
    let text = if args.json { json_text(&matrix) } else { report::text(&matrix) };
    Ok(Answer::of(text, holds))
}

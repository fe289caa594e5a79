//! `hermes-lab selftest`

use crate::cli::{Answer, CommandResult, json_text};
use crate::diag::Diagnostic;
use crate::lab::selftest;
use crate::report::selftest as report;

/// Check the lab itself: laws, breaks, determinism, vacuous checks
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    super::warm_up();
    let result = selftest::run().map_err(|error| Diagnostic::of_file("selftest", error.to_string()))?;
    let holds = result.holds();
    let text = if args.json { json_text(&result) } else { report::text(&result) };
    Ok(Answer::of(text, holds))
}

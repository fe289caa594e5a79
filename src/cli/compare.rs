//! `hermes-lab compare`

use serde_json::json;

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::lab::bench::compare::{self, Saved, Tolerance};
use crate::report::bench as report;

/// Compare two saved benches and say what moved
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The earlier bench, written by `bench --save` or `bench --json`
    before: String,
    /// The later one
    after: String,
    /// How far figures may get worse: a TOML table such as `cost = 0.01`
    #[arg(long, value_name = "FILE")]
    tolerance: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let before = Saved::read(&args.before, &input::text(&args.before)?)?;
    let after = Saved::read(&args.after, &input::text(&args.after)?)?;
    let tolerance = match &args.tolerance {
        Some(file) => Tolerance::read(file, &input::text(file)?)?,
        None => Tolerance::default(),
    };
    let moves = compare::compare(&before, &after, &tolerance);
    let holds = !moves.iter().any(|moved| moved.worse);
    let text = if args.json {
        json_text(&json!({ "schema": 1, "holds": holds, "moves": moves }))
    } else {
        report::moves(&moves)
    };
    Ok(Answer::of(text, holds))
}

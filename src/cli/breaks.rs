//! `hermes-lab breaks`

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::breaks::{SHIPPED, show_all};
use crate::laws;
use crate::report::breaks as report;

/// Turn one mechanism off at a time and show what degrades
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Breaks to play: an id, a path to a break file, or `all`
    #[arg(default_value = "all", value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    super::warm_up();
    let mut ids: Vec<&str> = Vec::new();
    for id in args.ids.iter().flat_map(|list| list.split(',')) {
        if id == "all" { ids.extend(SHIPPED.iter().map(|(id, _)| *id)) } else { ids.push(id) }
    }
    let mut breaks = Vec::new();
    for id in ids {
        let found = input::break_(id)?;
        let scenario = input::scenario(&found.scenario)?;
        breaks.push((found, scenario));
    }
    let shown = show_all(&breaks)
        .map_err(|error| Diagnostic::of_file("breaks", format!("a break cannot be played: {error}")))?;
    let holds = shown.iter().all(|shown| shown.holds);
    if args.json {
        let value = serde_json::json!({ "schema": laws::SCHEMA, "breaks": shown });
        return Ok(Answer::of(json_text(&value), holds));
    }
    Ok(Answer::of(report::text(&shown), holds))
}

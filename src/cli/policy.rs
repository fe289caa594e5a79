//! `hermes-lab policy`

use serde_json::json;

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::laws;
use crate::policy::Policy;
use crate::report::table::Table;

/// Show every knob: value, default, unit, range, source, law
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only knobs whose name contains this
    filter: Option<String>,
    /// Show the values of a preset
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Only knobs that differ from their defaults
    #[arg(long)]
    turned: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let mut policy = Policy::default();
    if let Some(name) = &args.policy {
        let overlay = input::preset_overlay(name)?;
        overlay.apply(&mut policy).expect("shipped presets fit, which a test proves");
    }
    let wanted = |name: &str| args.filter.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let knobs: Vec<_> = Policy::knobs()
        .into_iter()
        .filter(|knob| wanted(knob.name))
        .map(|knob| {
            let value = policy.get(knob.name).expect("a listed knob has a value");
            (knob, value)
        })
        .filter(|(knob, value)| !args.turned || knob.default != *value)
        .collect();
    if args.json {
        let rows: Vec<_> = knobs
            .iter()
            .map(|(knob, value)| {
                json!({
                    "name": knob.name, "value": value, "default": knob.default, "type": knob.kind,
                    "unit": knob.unit, "range": knob.range, "source": knob.source, "law": knob.law, "doc": knob.doc,
                })
            })
            .collect();
        return Ok(Answer::holds(json_text(&json!({ "schema": laws::SCHEMA, "knobs": rows }))));
    }
    let mut table = Table::new(&["knob", "value", "default", "unit", "range", "law", "source"]);
    for (knob, value) in &knobs {
        let default = if knob.default == *value { String::new() } else { knob.default.to_string() };
        let cells = [knob.name, &value.to_string(), &default, knob.unit, &knob.range, knob.law, knob.source];
        table.row(cells.map(str::to_owned));
    }
    Ok(Answer::holds(table.render()))
}

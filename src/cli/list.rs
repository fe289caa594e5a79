//! `hermes-lab list`

use serde_json::json;

use crate::cli::{Answer, CommandResult, json_text};
use crate::lab::breaks::{SHIPPED, shipped_break, shipped_scenario};
use crate::lab::figures::FIGURES;
use crate::policy::{Policy, preset};
use crate::report::table::Table;
use crate::{cache, laws, scenario};

/// List scenarios, breaks, checks, figures, presets, cache models
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this: scenarios, breaks, checks, figures, knobs, policies or models
    #[arg(value_parser = ["scenarios", "breaks", "checks", "figures", "knobs", "policies", "models"])]
    what: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "every command answers in the same way")]
pub(super) fn run(args: &Args) -> CommandResult {
    let sections = sections();
    let wanted = |name: &str| args.what.as_deref().is_none_or(|what| what == name);
    let chosen: Vec<_> = sections.into_iter().filter(|(name, _)| wanted(name)).collect();
    if args.json {
        let mut value = json!({ "schema": laws::SCHEMA });
        for (name, rows) in &chosen {
            value[*name] = rows.iter().map(|(id, says)| json!({ "id": id, "says": says })).collect();
        }
        return Ok(Answer::holds(json_text(&value)));
    }
    let mut text = String::new();
    for (name, rows) in &chosen {
        let mut table = Table::new(&[name, ""]);
        for (id, says) in rows {
            table.row([id.clone(), says.clone()]);
        }
        text.push_str(&table.render());
        text.push('\n');
    }
    Ok(Answer::holds(text))
}

fn sections() -> Vec<(&'static str, Vec<(String, String)>)> {
    let scenarios =
        scenario::shipped().iter().chain(scenario::live()).filter_map(|(name, _)| shipped_scenario(name));
    let breaks = SHIPPED.iter().filter_map(|(id, _)| shipped_break(id));
    vec![
        ("scenarios", scenarios.map(|scenario| (scenario.name, scenario.title)).collect()),
        ("breaks", breaks.map(|found| (found.id, format!("{} ({})", found.title, found.law))).collect()),
        ("checks", laws::checks().iter().map(|check| (check.id.to_owned(), check.says.to_owned())).collect()),
        ("figures", FIGURES.iter().map(|figure| (figure.name.to_owned(), figure.says.to_owned())).collect()),
        ("knobs", Policy::knobs().into_iter().map(|knob| (knob.name.to_owned(), knob.doc)).collect()),
        (
            "policies",
            preset::PRESETS.iter().map(|(name, text)| ((*name).to_owned(), first_comment(text))).collect(),
        ),
        (
            "models",
            cache::MODELS.iter().map(|(name, says)| ((*name).to_owned(), (*says).to_owned())).collect(),
        ),
    ]
}

fn first_comment(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches('#').trim().to_owned()
}

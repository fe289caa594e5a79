//! `hermes-lab policy`

use serde_json::{Map, Value, json};

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::laws;
use crate::policy::preset::{self, PRESETS};
use crate::policy::{KnobInfo, Policy};
use crate::report::table::Table;

/// Show every knob: value, unit, range, law, other revisions, source
///
/// The default is the pinned revision of the real agent. With one knob left, everything known of it is shown.
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
    let revisions = Revisions::shipped();
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
                    "revisions": revisions.of(knob),
                })
            })
            .collect();
        return Ok(Answer::holds(json_text(&json!({ "schema": laws::SCHEMA, "knobs": rows }))));
    }
    if let [(knob, value)] = &*knobs {
        return Ok(Answer::holds(whole(knob, value, &revisions)));
    }
    let shifted = args.policy.is_some();
    let mut head = vec!["knob", "value", "unit", "range", "law", "other revisions", "source"];
    if shifted {
        head.insert(2, "default");
    }
    let mut table = Table::new(&head);
    for (knob, value) in &knobs {
        let others = revisions.others(knob).join(", ");
        let (value, default, range) = (value.to_string(), knob.default.to_string(), short(&knob.range));
        let mut cells = vec![knob.name, &value, knob.unit, &range, knob.law, &others, knob.source];
        if shifted {
            cells.insert(2, if default == value { "" } else { &default });
        }
        table.row(cells.into_iter().map(str::to_owned));
    }
    Ok(Answer::holds(table.render()))
}

/// What each preset makes of a knob. The default is the pinned revision of the real agent; the others are overlays.
struct Revisions(Vec<(&'static str, Policy)>);

impl Revisions {
    fn shipped() -> Self {
        let policy =
            |name| preset::policy(name).expect("it is listed").expect("it fits, which a test proves");
        Self(PRESETS.iter().map(|(name, _)| (*name, policy(*name))).collect())
    }

    /// The value of a knob in every preset.
    fn of(&self, knob: &KnobInfo) -> Map<String, Value> {
        self.0.iter().map(|(name, policy)| ((*name).to_owned(), policy.get(knob.name).into())).collect()
    }

    /// `preset value` of every preset that turns the knob.
    fn others(&self, knob: &KnobInfo) -> Vec<String> {
        let values = self.0.iter().filter_map(|(name, policy)| Some((name, policy.get(knob.name)?)));
        let turned = values.filter(|(_, value)| *value != knob.default);
        turned.map(|(name, value)| format!("{} {value}", name.trim_start_matches("hermes-"))).collect()
    }
}

/// A range as far as it fits a column.
fn short(range: &str) -> String {
    const CHARS_MAX: usize = 32;
    if range.chars().count() <= CHARS_MAX {
        return range.to_owned();
    }
    let kept: String = range.chars().take(CHARS_MAX - 1).collect();
    let whole = kept.rfind(", ").map_or(&*kept, |at| &kept[..=at]);
    format!("{whole} …")
}

/// One knob with everything that is known of it.
fn whole(knob: &KnobInfo, value: &Value, revisions: &Revisions) -> String {
    let mut table = Table::new(&[knob.name, ""]);
    let revisions: Vec<String> =
        revisions.of(knob).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let facts = [
        ("does", knob.doc.clone()),
        ("value", value.to_string()),
        ("default", knob.default.to_string()),
        ("type", knob.kind.to_owned()),
        ("unit", knob.unit.to_owned()),
        ("range", knob.range.clone()),
        ("law", knob.law.to_owned()),
        ("source", knob.source.to_owned()),
        ("revisions", revisions.join(", ")),
    ];
    for (fact, text) in facts {
        table.row([fact.to_owned(), text]);
    }
    table.render()
}

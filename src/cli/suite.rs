//! `hermes-lab suite`

use serde_json::json;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::play::{self, Plan};
use crate::lab::suite::{self, Suite, ablation, compare, learning, prove};
use crate::policy::{Overlay, Policy};
use crate::report::{ablation as report_ablation, learning as report_learning, suite as report, suite_html};

/// Play a suite: regression set, learning loop, ablation, proofs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, clap::Subcommand)]
enum Which {
    /// The minimum regression set, judged by outside evidence
    Regression(RegressionArgs),
    /// What the learning loop buys, and what each of its links is worth
    Learning(ReportArgs),
    /// Every break beside what catches it, which tasks it makes fail, and what it costs
    Ablation(ReportArgs),
    /// Make every expectation of the suites fail once
    Prove(JsonArgs),
    /// The JSON schema of a saved suite
    Schema,
}

#[derive(Debug, clap::Args)]
struct RegressionArgs {
    /// Compare with a saved run; exit 1 on a regression
    #[arg(long, value_name = "FILE")]
    against: Option<String>,
    /// Save the run as a baseline
    #[arg(long, value_name = "FILE")]
    save: Option<String>,
    /// Write a page that stands alone
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    /// Switch a break on; may be repeated
    #[arg(long = "break", value_name = "ID", value_delimiter = ',')]
    breaks: Vec<String>,
    /// Turn one knob; may be repeated
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    sets: Vec<String>,
    /// Begin from a preset of knobs instead of the default
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Seed of every run, instead of the scenario's
    #[arg(long)]
    seed: Option<u64>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// Write the table and the pictures into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<String>,
    /// Write JSON instead of text
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Write the table as Markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, clap::Args)]
struct JsonArgs {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    super::warm_up();
    match &args.which {
        Which::Regression(args) => regression(args),
        Which::Learning(args) => learning_loop(args),
        Which::Ablation(args) => ablated(args),
        Which::Prove(args) => {
            let proofs = prove::prove();
            let holds = proofs.iter().all(|proof| proof.problem.is_none());
            let value =
                json!({ "schema": suite::SCHEMA, "suite": "prove", "holds": holds, "proofs": proofs });
            Ok(Answer::of(if args.json { json_text(&value) } else { report::proofs(&proofs) }, holds))
        }
        Which::Schema => Ok(Answer::holds(report::SCHEMA_TEXT)),
    }
}

fn regression(args: &RegressionArgs) -> CommandResult {
    let baseline = args
        .against
        .as_ref()
        .map(|file| Suite::read(file, &input::text(file)?).map_err(BadInput::from))
        .transpose()?;
    let (plan, turned) = plan(args)?;
    let played = suite::regression(&plan, &turned);
    let moves = baseline.map(|baseline| compare::compare(&baseline, &played));
    let text = json_text(&played);
    if let Some(path) = &args.save {
        input::write(path, &text)?;
    }
    if let Some(path) = &args.html {
        input::write(path, &suite_html::page(&played, moves.as_deref()))?;
    }
    // Beside a baseline the question is what moved; what failed before is no news.
    let holds = match &moves {
        Some(moves) => !moves.iter().any(|moved| moved.worse),
        None => played.holds,
    };
    if args.json {
        let Some(moves) = moves else { return Ok(Answer::of(text, holds)) };
        let mut value = serde_json::to_value(&played).expect("a suite has text keys only");
        value["moves"] = json!(moves);
        return Ok(Answer::of(json_text(&value), holds));
    }
    Ok(Answer::of(report::regression(&played, moves.as_deref()), holds))
}

fn plan(args: &RegressionArgs) -> Result<(Plan, Vec<String>), BadInput> {
    let mut plan = Plan { seed: args.seed, ..Plan::default() };
    let mut turned = Vec::new();
    if let Some(name) = &args.policy {
        plan.beneath = input::preset_overlay(name)?;
        turned.push(format!("--policy {name}"));
    }
    for id in &args.breaks {
        let found = input::break_(id)?;
        plan.above.push(Overlay::from_table(&found.with));
        plan.above.push(found.overlay());
        turned.push(format!("--break {}", found.id));
    }
    for set in &args.sets {
        let overlay = Overlay::parse_turn(set).map_err(|message| Diagnostic::of_file("--set", message))?;
        let fits = overlay.apply(&mut Policy::default());
        fits.map_err(|errors| play::PlayError::Knobs(errors).to_string())
            .map_err(|message| Diagnostic::of_file("--set", message))?;
        plan.above.push(overlay);
        turned.push(format!("--set {set}"));
    }
    Ok((plan, turned))
}

fn ablated(args: &ReportArgs) -> CommandResult {
    let rows =
        ablation::ablation().map_err(|error| Diagnostic::of_file("suite ablation", error.to_string()))?;
    let holds = rows.iter().all(|row| row.shown.holds);
    if let Some(dir) = &args.out {
        for (name, text) in report_ablation::files(&rows) {
            input::write(&format!("{dir}/{name}"), &text)?;
        }
    }
    let text = if args.json {
        json_text(&json!({ "schema": suite::SCHEMA, "suite": "ablation", "holds": holds, "rows": rows }))
    } else if args.markdown {
        report_ablation::markdown(&rows)
    } else {
        report_ablation::text(&rows)
    };
    Ok(Answer::of(text, holds))
}

fn learning_loop(args: &ReportArgs) -> CommandResult {
    let measured =
        learning::measure().map_err(|error| Diagnostic::of_file("suite learning", error.to_string()))?;
    if let Some(dir) = &args.out {
        for (name, text) in report_learning::files(&measured) {
            input::write(&format!("{dir}/{name}"), &text)?;
        }
    }
    let text = if args.json {
        json_text(&measured)
    } else if args.markdown {
        report_learning::links_markdown(&measured)
    } else {
        report_learning::text(&measured)
    };
    Ok(Answer::of(text, measured.holds))
}

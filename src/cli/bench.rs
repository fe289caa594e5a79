//! `hermes-lab bench`

use serde_json::{Value, json};

use crate::cache::MODELS;
use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::bench::policies::Policy;
use crate::lab::bench::replay::{self, Plan};
use crate::lab::bench::tables::{self, BenchError};
use crate::lab::bench::trace;
use crate::lab::play;
use crate::policy::Overlay;
use crate::report::bench as report;

/// Measure what caches read of a workload, and what it costs
///
/// Without options: every shipped scenario under every cache model, at that provider's prices.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A scenario instead of all that ship, by name or path; may be repeated
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// A cache model instead of the usual ones; may be repeated
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// A model whose price is paid, instead of one that goes with the cache; may be repeated
    #[arg(long = "price", value_name = "MODEL")]
    prices: Vec<String>,
    /// Turn one knob; may be repeated
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    sets: Vec<String>,
    /// Compare layouts of cache markers on generated conversations
    #[arg(long, conflicts_with_all = ["mechanisms", "trace"])]
    layouts: bool,
    /// Show what each shipped break costs on a session of a hundred turns
    #[arg(long, conflicts_with = "trace")]
    mechanisms: bool,
    /// Put a recorded trace through caches: Mooncake, agent sessions, TraceLab rounds
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Policy of eviction; may be repeated
    #[arg(long = "policy", value_name = "NAME", requires = "trace")]
    policies: Vec<Policy>,
    /// Capacity in blocks, or `unlimited`; may be repeated
    #[arg(long = "capacity", value_name = "BLOCKS", requires = "trace")]
    capacities: Vec<String>,
    /// Look all blocks of a request up, then visit them last to first, so that tails leave before heads
    #[arg(long, requires = "trace")]
    reverse_touch: bool,
    /// Set figures that others printed about this trace beside ours
    #[arg(long, requires = "trace")]
    published: bool,
    /// Save the rows as a baseline for `compare`
    #[arg(long, value_name = "FILE")]
    save: Option<String>,
    /// Write JSON instead of text
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values instead of text
    #[arg(long)]
    csv: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let (text, value) = if let Some(file) = &args.trace {
        of_trace(args, file)?
    } else if args.layouts {
        let price = args.prices.first().map_or("claude-sonnet-4-6", String::as_str);
        let rows = tables::layouts(price).map_err(bad)?;
        (report::accounts(&rows), json!({ "schema": 1, "bench": "layouts", "rows": rows }))
    } else if args.mechanisms {
        let mechanisms = tables::mechanisms(&tables::shipped_breaks()).map_err(bad)?;
        let classic = tables::classic(&tables::pairs(&args.models, &args.prices).map_err(bad)?);
        let value = json!({
            "schema": 1, "bench": "mechanisms", "rows": mechanisms.iter().map(flat).collect::<Vec<_>>(),
            "classic": classic,
        });
        (report::mechanisms(&mechanisms, &classic), value)
    } else {
        of_scenarios(args)?
    };
    if let Some(path) = &args.save {
        input::write(path, &json_text(&value))?;
    }
    Ok(Answer::holds(if args.json {
        json_text(&value)
    } else if args.csv {
        report::csv(value["rows"].as_array().map_or(&[], Vec::as_slice))
    } else {
        text
    }))
}

/// A row whose lists are spread over columns, as tables and comparisons want it.
fn flat(row: &tables::Mechanism) -> Value {
    let mut flat = json!({
        "break": row.id, "unplanned_breaks": row.unplanned_breaks, "prompt_tokens": row.prompt_tokens,
    });
    for (cache, tokens) in &row.paid_tokens {
        flat[format!("paid_tokens {cache}")] = json!(tokens);
    }
    for (price, cost) in &row.cost {
        flat[format!("cost {price}")] = json!(cost);
    }
    flat
}

fn bad(error: BenchError) -> BadInput {
    match error {
        BenchError::Model(name) => input::unknown(
            "cache model",
            &name,
            MODELS.iter().map(|(name, _)| *name),
            "`hermes-lab list models`",
        ),
        BenchError::Price(error) => Diagnostic::of_file("--price", error.to_string()).into(),
        BenchError::Play { scenario, error } => Diagnostic::of_file(&scenario, error.to_string()).into(),
    }
}

fn of_scenarios(args: &Args) -> Result<(String, Value), BadInput> {
    let scenarios = if args.scenarios.is_empty() {
        tables::shipped_scenarios()
    } else {
        args.scenarios.iter().map(|name| input::scenario(name)).collect::<Result<_, _>>()?
    };
    let mut plan = play::Plan::default();
    for set in &args.sets {
        let overlay = Overlay::parse_turn(set).map_err(|message| Diagnostic::of_file("--set", message))?;
        plan.above.push(overlay);
    }
    let pairs = tables::pairs(&args.models, &args.prices).map_err(bad)?;
    let rows = tables::scenarios(&scenarios, &plan, &pairs).map_err(bad)?;
    Ok((report::accounts(&rows), json!({ "schema": 1, "bench": "scenarios", "rows": rows })))
}

fn of_trace(args: &Args, file: &str) -> Result<(String, Value), BadInput> {
    let mut plan = Plan { reverse: args.reverse_touch, ..Plan::default() };
    if !args.policies.is_empty() {
        plan.policies.clone_from(&args.policies);
    }
    if !args.capacities.is_empty() {
        plan.capacities = args.capacities.iter().map(|text| capacity(text)).collect::<Result<_, _>>()?;
    }
    let trace = trace::read(file, &input::text(file)?)?;
    let replay = replay::replay(&trace, &plan, args.published);
    Ok((report::replay(&replay), json!(replay)))
}

fn capacity(text: &str) -> Result<Option<u64>, Diagnostic> {
    if text == "unlimited" {
        return Ok(None);
    }
    let number = text.replace([',', '_'], "").parse().ok().filter(|number| *number > 0);
    let wrong = || Diagnostic::of_file("--capacity", format!("`{text}` is no number of blocks from 1 on"));
    number.map(Some).ok_or_else(|| wrong().with_help("`unlimited` is a capacity, too"))
}

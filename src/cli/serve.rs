//! `hermes-lab serve`

use std::net::IpAddr;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::policy::{CacheModel, KnobValue as _};
use crate::serve::{ClockKind, Options, Outcome, Server, wait_for_signal};

/// Serve a scenario as a model provider that real agents can be pointed at
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a shipped scenario, or path of a scenario file
    scenario: String,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Cache model, as `list models` names them; by default each protocol's own
    #[arg(long, value_name = "MODEL")]
    provider: Option<String>,
    /// Time of day, or a second a request from the scenario's start on
    #[arg(long, default_value = "real", value_name = "real|virtual")]
    clock: ClockKind,
    /// Answer what a provider would refuse, and report it
    #[arg(long)]
    lenient: bool,
    /// Write the ledger to a file
    #[arg(long, value_name = "FILE")]
    ledger: Option<String>,
    /// Window of the models in tokens
    #[arg(long, default_value_t = 200_000, value_name = "TOKENS")]
    context_length: u64,
    /// Name of a model; others are refused; may be repeated; every name is known without it
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Write the address to a file once the server listens
    #[arg(long, value_name = "FILE")]
    address_file: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let scenario = input::scenario(&args.scenario)?;
    let options = options(args)?;
    let fault =
        |error: &dyn std::fmt::Display| BadInput::from(Diagnostic::of_file("serve", error.to_string()));
    let running = Server::start(&scenario, options).map_err(|error| fault(&error))?;
    let address = running.address();
    if let Some(path) = &args.address_file {
        input::write(path, &format!("{address}\n"))?;
    }
    eprintln!("serving `{}` at http://{address}; Ctrl-C ends it", scenario.name);
    wait_for_signal().map_err(|error| fault(&error))?;
    let outcome = running.stop();
    if let Some(path) = &args.ledger {
        input::write(path, &outcome.ledger.to_jsonl())?;
    }
    answer(args, &outcome)
}

fn options(args: &Args) -> Result<Options, BadInput> {
    let provider = match &args.provider {
        None => None,
        Some(name) => Some(CacheModel::read(&name.as_str().into(), None).map_err(|_| {
            let known = crate::cache::MODELS.iter().map(|(name, _)| *name);
            input::unknown("cache model", name, known, "`hermes-lab list models` says more")
        })?),
    };
    Ok(Options {
        host: args.host,
        port: args.port,
        provider,
        clock: args.clock,
        lenient: args.lenient,
        context_length: args.context_length,
        models: args.models.clone(),
        ..Options::default()
    })
}

fn answer(args: &Args, outcome: &Outcome) -> CommandResult {
    let findings: Vec<_> = outcome.verdict.findings().collect();
    if args.json {
        let value = serde_json::json!({
            "requests": outcome.requests, "digest": outcome.ledger.digest(), "findings": findings,
        });
        return Ok(Answer::of(json_text(&value), outcome.holds()));
    }
    let mut text = format!("{} requests, {} events\n", outcome.requests, outcome.ledger.events.len());
    for finding in &findings {
        text.push_str(&format!(
            "{} at event {}, session {}: {}: {}\n",
            finding.check, finding.event, finding.session, finding.place, finding.evidence
        ));
    }
    Ok(Answer::of(text, outcome.holds()))
}

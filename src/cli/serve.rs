//! `hermes-lab serve`

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::serve::{ClockKind, EndSignal, Options, Running, Server, StartError, Teller, cassette, report};

/// Serve a scenario as a model provider that real agents can be pointed at
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a shipped scenario, path of a scenario file, or path of a cassette that `record` wrote
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
    /// Longest request body in bytes
    #[arg(long, default_value_t = 32 << 20, value_name = "BYTES")]
    body_max: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 4_096, value_name = "COUNT")]
    connections_max: usize,
    /// Seconds for the head of a request, idle time between requests included
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    head_timeout: u64,
    /// Seconds for the body of a request
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    body_timeout: u64,
    /// Give recorded answers the time that they took
    #[arg(long)]
    paced: bool,
    /// Write the address to a file once the server listens
    #[arg(long, value_name = "FILE")]
    address_file: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let options = options(args)?;
    let fault =
        |error: &dyn std::fmt::Display| BadInput::from(Diagnostic::of_file("serve", error.to_string()));
    let signal = EndSignal::listen().map_err(|error| fault(&error))?;
    let running = start(&args.scenario, options)?;
    let address = running.address();
    if let Some(path) = &args.address_file {
        input::write(path, &format!("{address}\n"))?;
    }
    eprintln!("serving `{}` at http://{address}; Ctrl-C ends it", args.scenario);
    signal.wait().map_err(|error| fault(&error))?;
    let outcome = running.stop();
    if let (Some(error), Some(path)) = (&outcome.write_failed, &args.ledger) {
        return Err(Diagnostic::of_file(path, format!("cannot be written: {}", input::reason(error))).into());
    }
    let text = if args.json { json_text(&outcome.to_json()) } else { report::summary(&outcome) };
    Ok(Answer::of(text, outcome.holds()))
}

/// Begins to serve what a name stands for.
fn start(name: &str, options: Options) -> Result<Running, BadInput> {
    let fault = |error: StartError| BadInput::from(Diagnostic::of_file("serve", error.to_string()));
    if std::path::Path::new(name).extension().is_some_and(|ending| ending == "jsonl") {
        let cassette = cassette::read(name, &input::text(name)?)?;
        return Server::replay(cassette, options).map_err(fault);
    }
    Server::start(&input::scenario(name)?, options).map_err(fault)
}

fn options(args: &Args) -> Result<Options, BadInput> {
    let provider = args.provider.as_deref().map(input::cache_model).transpose()?;
    Ok(Options {
        host: args.host,
        port: args.port,
        provider,
        clock: args.clock,
        lenient: args.lenient,
        context_length: args.context_length,
        models: args.models.clone(),
        paced: args.paced,
        body_max: args.body_max,
        connections_max: args.connections_max,
        head_timeout: Duration::from_secs(args.head_timeout),
        body_timeout: Duration::from_secs(args.body_timeout),
        // A server may run for days; what it saw is in the file.
        keep_events: false,
        ledger: args.ledger.as_ref().map(PathBuf::from),
        teller: Teller::new(|line| {
            // Whoever closed standard error does not want to know.
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }),
    })
}

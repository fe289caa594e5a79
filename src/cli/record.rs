//! `hermes-lab record`

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::serve::{EndSignal, Options, RecordOptions, Server};

/// Pass requests on to a real provider and write a cassette for `serve`
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The provider, such as https://api.anthropic.com
    #[arg(long, value_name = "URL")]
    upstream: String,
    /// PEM file with authorities that are trusted beside the public ones, such as a company's proxy
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<String>,
    /// The cassette that is written
    #[arg(long, default_value = "cassette.jsonl", value_name = "FILE")]
    cassette: String,
    /// Digests instead of request bodies
    #[arg(long)]
    hash_bodies: bool,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the address to a file once the proxy listens
    #[arg(long, value_name = "FILE")]
    address_file: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let fault =
        |error: &dyn std::fmt::Display| BadInput::from(Diagnostic::of_file("record", error.to_string()));
    let upstream = input::provider_address("--upstream", &args.upstream)?;
    let record = RecordOptions {
        upstream,
        upstream_ca: input::authorities(args.upstream_ca.as_deref())?,
        cassette: PathBuf::from(&args.cassette),
        hash_bodies: args.hash_bodies,
        limits: Options { host: args.host, port: args.port, ..Options::default() },
    };
    let signal = EndSignal::listen().map_err(|error| fault(&error))?;
    let running = Server::record(record).map_err(|error| fault(&error))?;
    let address = running.address();
    if let Some(path) = &args.address_file {
        input::write(path, &format!("{address}\n"))?;
    }
    eprintln!("recording at http://{address}; Ctrl-C ends it");
    signal.wait().map_err(|error| fault(&error))?;
    let recorded = running.stop();
    if let Some(error) = &recorded.write_failed {
        let message = format!("cannot be written: {}", input::reason(error));
        return Err(Diagnostic::of_file(&args.cassette, message).into());
    }
    let text = if args.json {
        json_text(&json!({
            "schema": "hermes-lab.record/1", "cassette": args.cassette, "exchanges": recorded.exchanges,
            "passed": recorded.passed, "failed": recorded.failed,
        }))
    } else {
        format!(
            "{}: {} exchanges; {} other requests passed on, {} failed\n",
            args.cassette, recorded.exchanges, recorded.passed, recorded.failed
        )
    };
    Ok(Answer::of(text, recorded.failed == 0))
}

//! What `hermes-lab live` does where it can.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::Args;
use crate::cache::prices::{Price, Prices};
use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::live::{self, Key, Options, Provider, Stop, Suite};
use crate::units::Usd;

pub(super) fn run(args: &Args) -> CommandResult {
    let options = options(args)?;
    let outcome = live::run(&options, |line| {
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    })?;
    let json = json_text(&outcome.to_json());
    input::write(&options.out.join("result.json").to_string_lossy(), &json)?;
    if let Some(stop @ (Stop::Refused(_) | Stop::Journal(_))) = &outcome.stopped {
        return Err(Diagnostic::of_file("live", stop.to_string()).into());
    }
    Ok(Answer::of(if args.json { json } else { outcome.text() }, outcome.holds()))
}

fn options(args: &Args) -> Result<Options, BadInput> {
    let missing = |flag: &str, message: &str| BadInput::from(Diagnostic::of_file(flag, message));
    if !args.live {
        return Err(missing(
            "--live",
            "real requests cost money; give --live to say that they are to be sent",
        ));
    }
    let Some(budget) = &args.max_usd else {
        return Err(missing("--max-usd", "a live run needs a limit; give --max-usd DOLLARS"));
    };
    let budget = Usd::of_text(budget).filter(|limit| *limit > Usd::ZERO).ok_or_else(|| {
        missing("--max-usd", "expected an amount above zero such as 0.50, with at most six decimals")
    })?;
    let provider = Provider::of_word(&args.provider).expect("the parser knows the words");
    let suite = Suite::of_word(&args.suite).expect("the parser knows the words");
    let base_url = match (&args.base_url, provider.base_url()) {
        (Some(url), _) => url.clone(),
        (None, Some(url)) => url.to_owned(),
        (None, None) => {
            return Err(missing("--base-url", "where is it? `compatible` has no address of its own"));
        }
    };
    let base_url = input::provider_address("--base-url", &base_url)?;
    let variable = args.key_env.as_deref().unwrap_or_else(|| provider.key_variable());
    let key = key(variable)?;
    let scenario = args.scenario.as_deref().map(input::scenario_text).transpose()?;
    Ok(Options {
        suite,
        provider,
        model: args.model.clone(),
        base_url,
        upstream_ca: input::authorities(args.upstream_ca.as_deref())?,
        key,
        budget,
        price: price(args)?,
        out: PathBuf::from(&args.out),
        seeds: args.seeds,
        resume: args.resume,
        max_tokens: args.max_tokens,
        timeout: Duration::from_secs(args.timeout),
        cache_model: args.cache_model.as_deref().map(input::cache_model).transpose()?,
        scenario,
        tolerance: args.tolerance * 10,
    })
}

fn key(variable: &str) -> Result<Key, BadInput> {
    let text = std::env::var(variable).unwrap_or_default();
    Key::new(&text).ok_or_else(|| {
        let message = if text.is_empty() {
            format!("no key: the variable {variable} is not set")
        } else {
            format!("what {variable} holds cannot be sent as a key")
        };
        Diagnostic::of_file(variable, message).with_help("--key-env names another variable").into()
    })
}

fn price(args: &Args) -> Result<Price, BadInput> {
    let Some(text) = &args.price else {
        let prices = Prices::shipped();
        let found = prices.of(&args.model, None).cloned();
        return found.map_err(|error| {
            Diagnostic::of_file("--model", error.to_string())
                .with_help("--price INPUT,READ,WRITE,OUTPUT gives it, in dollars per million tokens")
                .into()
        });
    };
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [input, read, write, output] = parts.as_slice() else {
        let message = "expected four prices in dollars per million tokens: input,read,write,output";
        return Err(Diagnostic::of_file("--price", message).into());
    };
    Price::per_million(&args.model, input, read, [Some(*write); 3], output)
        .map_err(|error| Diagnostic::of_file("--price", error.to_string()).into())
}

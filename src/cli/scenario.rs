//! `hermes-lab scenario`

use crate::cli::{Answer, BadInput, CommandResult, input};
use crate::lab::expect;
use crate::scenario;

/// Work with scenario files
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check scenario files and report every mistake
    Check {
        /// Files to check
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
    /// Print a shipped scenario, to begin one of your own from
    Print {
        /// Name of the scenario
        name: String,
    },
}

pub(super) fn run(args: &Args) -> CommandResult {
    match &args.command {
        Command::Check { files } => {
            let mut faults = Vec::new();
            let mut text = String::new();
            for file in files {
                match input::text(file) {
                    Ok(content) => match scenario::load(file, &content) {
                        Ok(scenario) => {
                            faults.extend(expect::unknown(&scenario));
                            text.push_str(&format!("{file}: {} acts, fine\n", scenario.acts.len()));
                        }
                        Err(more) => faults.extend(more),
                    },
                    Err(BadInput(more)) => faults.extend(more),
                }
            }
            if faults.is_empty() { Ok(Answer::holds(text)) } else { Err(faults.into()) }
        }
        Command::Print { name } => {
            let known = scenario::shipped();
            match known.iter().find(|(known, _)| known == name) {
                Some((_, text)) => Ok(Answer::holds(*text)),
                None => {
                    Err(input::unknown("scenario", name, known.iter().map(|(name, _)| *name), "see `list`"))
                }
            }
        }
    }
}

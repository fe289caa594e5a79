//! `hermes-lab completions`

use clap::CommandFactory as _;

use crate::cli::{Answer, Cli};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hermes-lab", &mut script);
    Answer::holds(String::from_utf8_lossy(&script).into_owned())
}

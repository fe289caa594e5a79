//! The command line: parses, calls, prints, exits. One file per subcommand.
//!
//! This room alone prints, reads arguments and the environment, and decides the exit code: 0 holds, 1 a law, claim or
//! baseline does not hold, 2 the input is bad, 3 the input does not show enough to be judged. What a command found goes to standard output, what it has to say about
//! itself to standard error.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line is where the lab meets files and people"
)]

mod audit;
mod bench;
mod breaks;
mod compare;
mod completions;
mod conform;
mod crash;
mod drive;
mod explore;
mod input;

mod life;
mod list;
mod live;
mod matrix;
mod merge;

mod policy;
mod record;
mod run;
mod scenario;
mod selftest;
mod serve;
mod show;
mod suite;
mod sweep;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::diag::Diagnostic;

/// A deterministic lab for self-learning agents: replay, break, judge.
#[derive(Debug, Parser)]
#[command(name = "hermes-lab", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Play every shipped scenario and break, and check the lab itself (same as `selftest`)
    #[arg(long)]
    selftest: bool,
    /// Play breaks: D1, D1,D4 or all (same as `breaks`)
    #[arg(long = "break", value_name = "ID", value_delimiter = ',')]
    breaks: Vec<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Selftest(selftest::Args),
    Breaks(breaks::Args),
    Run(run::Args),
    Matrix(matrix::Args),
    Explore(explore::Args),
    Crash(crash::Args),
    Life(life::Args),
    Sweep(sweep::Args),
    Merge(merge::Args),
    Bench(bench::Args),
    Compare(compare::Args),
    Show(show::Args),
    Suite(suite::Args),
    List(list::Args),
    Policy(policy::Args),
    Scenario(scenario::Args),
    Conform(conform::Args),
    Audit(audit::Args),
    Serve(serve::Args),
    Record(record::Args),
    Drive(drive::Args),
    Live(live::Args),
    Completions(completions::Args),
}

/// What a command has to say, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    text: String,
    code: u8,
}

impl Answer {
    fn holds(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    fn of(text: impl Into<String>, holds: bool) -> Self {
        Self { text: text.into(), code: if holds { 0 } else { DOES_NOT_HOLD } }
    }

    /// Nothing was wrong with the input, and it does not show enough to be judged.
    fn not_judged(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: NOT_JUDGED }
    }
}

/// Bad input: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadInput(Vec<Diagnostic>);

impl From<Vec<Diagnostic>> for BadInput {
    fn from(faults: Vec<Diagnostic>) -> Self {
        Self(faults)
    }
}

impl From<Diagnostic> for BadInput {
    fn from(fault: Diagnostic) -> Self {
        Self(vec![fault])
    }
}

type CommandResult = Result<Answer, BadInput>;

/// Exit code when a law, a claim or a baseline does not hold.
const DOES_NOT_HOLD: u8 = 1;
/// Exit code for bad input.
const BAD_INPUT: u8 = 2;
/// Exit code when the input does not show enough to be judged.
const NOT_JUDGED: u8 = 3;

/// Runs the command that the process was called with.
pub fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HERMES_LAB_LOG").unwrap_or_default();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; everything else is bad input.
            let code = if error.use_stderr() { BAD_INPUT } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match answer(cli) {
        Ok(answer) => {
            let mut out = std::io::stdout().lock();
            // A reader that closed its end has seen enough.
            let _ = out.write_all(answer.text.as_bytes()).and_then(|()| out.flush());
            ExitCode::from(answer.code)
        }
        Err(BadInput(faults)) => {
            for fault in &faults {
                eprintln!("error: {fault}");
            }
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Compiles patterns beside whatever else a short command does before it plays.
fn warm_up() {
    std::thread::spawn(crate::agent::warm_up);
}

fn answer(cli: Cli) -> CommandResult {
    match cli.command {
        Some(Command::Selftest(args)) => selftest::run(&args),
        Some(Command::Breaks(args)) => breaks::run(&args),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Matrix(args)) => matrix::run(&args),
        Some(Command::Explore(args)) => explore::run(&args),
        Some(Command::Crash(args)) => crash::run(&args),
        Some(Command::Life(args)) => life::run(&args),
        Some(Command::Sweep(args)) => sweep::run(&args),
        Some(Command::Merge(args)) => merge::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Show(args)) => show::run(&args),
        Some(Command::Suite(args)) => suite::run(&args),
        Some(Command::List(args)) => list::run(&args),
        Some(Command::Policy(args)) => policy::run(&args),
        Some(Command::Scenario(args)) => scenario::run(&args),
        Some(Command::Conform(args)) => conform::run(&args),
        Some(Command::Audit(args)) => audit::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Drive(args)) => drive::run(&args),
        Some(Command::Live(args)) => live::run(&args),
        Some(Command::Completions(args)) => Ok(completions::run(&args)),
        None if cli.selftest => selftest::run(&selftest::Args { json: cli.json }),
        None if !cli.breaks.is_empty() => breaks::run(&breaks::Args { ids: cli.breaks, json: cli.json }),
        None => {
            use clap::CommandFactory as _;
            Ok(Answer::holds(Cli::command().render_help().to_string()))
        }
    }
}

/// A JSON value as text with a line end.
fn json_text(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("answers have text keys only");
    text.push('\n');
    text
}

//! The command line: parses, calls, prints, exits. One file per subcommand.
//!
//! This room alone prints, reads arguments and the environment, and decides the exit code: 0 holds, 1 a law or claim
//! does not hold, 2 the input is bad.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the command line is where the lab speaks")]

use std::process::ExitCode;

/// Runs the command that the process was called with.
pub fn main() -> ExitCode {
    eprintln!("not yet");
    println!();
    ExitCode::from(2)
}

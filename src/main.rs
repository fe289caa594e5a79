//! The `hermes-lab` command: hands the arguments to the library and exits with its answer.

fn main() -> std::process::ExitCode {
    hermes_lab::cli::main()
}

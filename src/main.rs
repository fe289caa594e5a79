//! The `hermes-lab` command: hands the arguments to the library and exits with its answer.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    hermes_lab::cli::main()
}

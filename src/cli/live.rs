//! `hermes-lab live`

#[cfg(feature = "live")]
mod play;

use crate::cli::CommandResult;

/// Play a suite with a real provider, within a budget (feature `live`)
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What is measured: cache, prefix, compaction or learning
    #[arg(value_parser = ["cache", "prefix", "compaction", "learning"])]
    suite: String,
    /// Real requests are sent, and cost money
    #[arg(long)]
    live: bool,
    /// Stop before more than this was spent, in dollars
    #[arg(long, value_name = "DOLLARS")]
    max_usd: Option<String>,
    /// Whom to ask: anthropic, openai, openai-responses, or compatible for others that speak Chat Completions
    #[arg(long, value_parser = ["anthropic", "openai", "openai-responses", "compatible"])]
    provider: String,
    /// The model's name
    #[arg(long)]
    model: String,
    /// Where the provider is, if not at its own address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Variable of the environment that holds the key, if not the provider's usual one
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Prices in dollars per million tokens, for a model that the table lacks: input,read,write,output
    #[arg(long, value_name = "PRICES")]
    price: Option<String>,
    /// Directory for journal, accounts and results
    #[arg(long, default_value = "live", value_name = "DIR")]
    out: String,
    /// How often everything is played, as different conversations
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    /// Go on with the run in the directory; what was answered is not asked again
    #[arg(long)]
    resume: bool,
    /// A scenario of one's own instead of the suite's: a name, or a path
    #[arg(long, value_name = "FILE")]
    scenario: Option<String>,
    /// Longest answer in tokens
    #[arg(long, default_value_t = 4_096, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_tokens: u64,
    /// Seconds for one answer
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Cache model that predicts, as `list models` names them; by default the provider's own
    #[arg(long, value_name = "MODEL")]
    cache_model: Option<String>,
    /// Percent of a prompt by which prediction and bill may differ
    #[arg(long, default_value_t = 5, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    tolerance: u64,
    /// PEM file with authorities that are trusted beside the public ones, such as a company's proxy
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

#[cfg(feature = "live")]
pub(super) fn run(args: &Args) -> CommandResult {
    play::run(args)
}

#[cfg(not(feature = "live"))]
pub(super) fn run(_: &Args) -> CommandResult {
    let message = "this build cannot send requests to real providers: it was made without the feature `live`";
    Err(crate::diag::Diagnostic::of_file("live", message)
        .with_help("`cargo build --release --features live` makes one that can")
        .into())
}

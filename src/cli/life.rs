//! `hermes-lab life`

use std::path::Path;
use std::time::Instant;

use crate::cli::{Answer, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::life::{self, Kind};
use crate::lab::play::Plan;
use crate::policy::Overlay;
use crate::report::life as report;

/// Live months of an agent's life, and show what they cost and keep
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which life
    kind: Kind,
    /// Days [default: 90 on call, 180 of chat, 30 of load]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_650))]
    days: Option<u64>,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Turn one knob; may be repeated
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    sets: Vec<String>,
    /// Begin from a preset of knobs instead of the default
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Write pictures into this folder
    #[arg(long, value_name = "DIR")]
    plots: Option<String>,
    /// Show the scenario of the first variant instead of living it
    #[arg(long)]
    print: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let days = args.days.unwrap_or_else(|| args.kind.days());
    if args.print {
        return Ok(Answer::holds(life::variants(args.kind, days, args.seed)[0].text.clone()));
    }
    let mut plan = Plan::default();
    if let Some(name) = &args.policy {
        plan.beneath = input::preset_overlay(name)?;
    }
    for set in &args.sets {
        plan.above.push(Overlay::parse_turn(set).map_err(|message| Diagnostic::of_file("--set", message))?);
    }
    let began = Instant::now();
    let lived = life::whole(args.kind, days, args.seed, &plan)
        .map_err(|error| Diagnostic::of_file(args.kind.word(), error.to_string()))?;
    let requests: u64 = lived.variants.iter().flat_map(|lived| &lived.days).map(|day| day.requests).sum();
    let seconds = began.elapsed().as_secs_f64();
    eprintln!(
        "{requests} requests in {seconds:.1} s, {:.0} a second{}",
        requests as f64 / seconds.max(1e-9),
        resident_mib().map_or_else(String::new, |mib| format!(", {mib} MiB resident at most"))
    );
    if let Some(dir) = &args.plots {
        for (name, svg) in report::plots(&lived) {
            input::write(&Path::new(dir).join(format!("{name}.svg")).display().to_string(), &svg)?;
        }
    }
    Ok(Answer::holds(if args.json { json_text(&lived) } else { report::text(&lived) }))
}

/// The most memory that this process had at once, where the system tells.
fn resident_mib() -> Option<u64> {
    let status = input::text("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1_024)
}

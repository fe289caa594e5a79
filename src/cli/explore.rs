//! `hermes-lab explore`

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::Diagnostic;
use crate::lab::explore::{self, Search, hidden, prove, run_text};
use crate::lab::runs;
use crate::report::explore as report;

/// Draw runs with faults from seeds, and look for a law that fails
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after another [default: 200]
    #[arg(long, conflicts_with = "minutes")]
    seeds: Option<u64>,
    /// Go on for so many minutes instead
    #[arg(long)]
    minutes: Option<u64>,
    /// Play every seed twice and name the first differing event
    #[arg(long)]
    twice: bool,
    /// Threads; as many as the machine has when absent
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Folder of failing scenarios: tried first, and added to
    #[arg(long, value_name = "DIR")]
    corpus: Option<String>,
    /// Turn the knobs of a break in every run; the search is to find it
    #[arg(long, value_name = "ID")]
    hidden: Option<String>,
    /// Hide each of the breaks D1 to D20 in turn, and look for the check that its file promises
    #[arg(long, conflicts_with_all = ["hidden", "minutes", "corpus", "print", "twice"])]
    prove: bool,
    /// Show the scenario of one seed instead of searching
    #[arg(long)]
    print: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Seeds of a search that names no number.
const SEEDS: u64 = 200;
/// Seeds in which a break is looked for, when no number is named.
const PROOF_SEEDS: u64 = 40;
/// Seeds between two lines that say how far a long search has come.
const TELL_EVERY: u64 = 2_000;

pub(super) fn run(args: &Args) -> CommandResult {
    let hidden = match &args.hidden {
        Some(id) => hidden(&input::break_(id)?),
        None => Vec::new(),
    };
    if args.print {
        let draft = explore::draft_of(args.seed, &hidden);
        return Ok(Answer::holds(draft.to_toml(&format!("seed-{}", args.seed), "")));
    }
    let threads = args.threads.unwrap_or_else(runs::threads);
    if args.prove {
        let seeds = args.seeds.unwrap_or(PROOF_SEEDS);
        eprintln!("seed {}, at most {seeds} seeds a break", args.seed);
        let breaks = prove::PROVED.iter().map(|id| input::break_(id)).collect::<Result<Vec<_>, _>>()?;
        let proofs = prove::prove(&breaks, args.seed, seeds, threads);
        let holds = proofs.iter().all(|proof| proof.seed.is_some());
        return Ok(Answer::of(if args.json { json_text(&proofs) } else { report::proofs(&proofs) }, holds));
    }
    let search = Search {
        first: args.seed,
        seeds: if args.minutes.is_some() { u64::MAX } else { args.seeds.unwrap_or(SEEDS) },
        twice: args.twice,
        threads,
        hidden,
    };
    // The seed is known before anything can go wrong.
    match args.minutes {
        Some(minutes) => eprintln!("seed {}, for {minutes} minutes", search.first),
        None => eprintln!("seed {}, {} seeds", search.first, search.seeds),
    }
    let known = match &args.corpus {
        Some(dir) => retry(dir, args.twice)?,
        None => Vec::new(),
    };
    let began = Instant::now();
    let limit = args.minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
    let begun = AtomicU64::new(0);
    let found = explore::search(&search, &|| {
        let count = begun.fetch_add(1, Ordering::Relaxed);
        if count > 0 && count.is_multiple_of(TELL_EVERY) {
            eprintln!("{count} seeds in {:.0} s", began.elapsed().as_secs_f64());
        }
        limit.is_none_or(|limit| began.elapsed() < limit)
    });
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{:.0} requests a second in {seconds:.1} s", found.requests as f64 / seconds.max(1e-9));
    let mut files = Vec::new();
    for finding in &found.found {
        let stem = explore::file_stem(&finding.failure.check, finding.seed);
        let path = match &args.corpus {
            Some(dir) => Path::new(dir).join(format!("{stem}.toml")).display().to_string(),
            None => format!("{stem}.toml"),
        };
        if args.corpus.is_some() {
            input::write(&path, &finding.scenario)?;
        }
        files.push(path);
    }
    let holds = found.holds() && known.iter().all(|(_, failure)| failure.is_none());
    if args.json {
        let value = serde_json::json!({ "report": found, "corpus": known });
        return Ok(Answer::of(json_text(&value), holds));
    }
    Ok(Answer::of(report::text(&found, &known, &files, args), holds))
}

impl report::Asked for Args {
    fn again(&self, seed: u64) -> String {
        let hidden = self.hidden.as_ref().map_or_else(String::new, |id| format!(" --hidden {id}"));
        let twice = if self.twice { " --twice" } else { "" };
        format!("hermes-lab explore --seed {seed} --seeds 1{hidden}{twice}")
    }

    fn keeps(&self) -> bool {
        self.corpus.is_some()
    }
}

/// Plays every scenario of the folder again; answers each with what still fails.
fn retry(dir: &str, twice: bool) -> Result<Vec<(String, Option<explore::Failure>)>, BadInput> {
    let path = Path::new(dir);
    std::fs::create_dir_all(path).map_err(|error| Diagnostic::of_file(dir, input::reason(&error)))?;
    let entries = std::fs::read_dir(path).map_err(|error| Diagnostic::of_file(dir, input::reason(&error)))?;
    let mut files: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let failure = run_text(&input::text(&file)?, twice).failure().cloned();
            Ok((file, failure))
        })
        .collect()
}

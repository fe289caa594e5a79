//! `hermes-lab conform`

use std::path::Path;

use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::{Diagnostic, nearest};
use crate::lab::conform::{FAMILIES, Report, Vector, replay_all};
use crate::report::conform as report;

/// Replay observed outcomes of the real agent through the runtime
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Vector files, or folders of them
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<String>,
    /// Only this mechanism, such as `guard` or `guard.classify`
    #[arg(long, value_name = "NAME")]
    mechanism: Option<String>,
    /// Show one vector in full
    #[arg(long, value_name = "ID")]
    show: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let mut report = Report::default();
    for file in files(&args.paths)? {
        let vectors = read(&file)?;
        report.extend(replay_all(&vectors, |vector| wanted(args, vector)));
    }
    if let Some(mechanism) = &args.mechanism
        && report.is_empty()
    {
        let known = FAMILIES.iter().map(|(family, _)| *family);
        let help =
            nearest(mechanism, known).map_or_else(String::new, |near| format!("did you mean `{near}`?"));
        let message = format!("no vector of mechanism `{mechanism}` was found");
        return Err(Diagnostic::of_file("--mechanism", message).with_help(help).into());
    }
    if let Some(id) = &args.show {
        let Some(replayed) = report.find(id) else {
            return Err(input::unknown("vector", id, report.ids(), "ids stand in the vector files"));
        };
        return Ok(Answer::of(report::one(replayed), replayed.fine()));
    }
    let holds = report.undeclared().next().is_none();
    let text = if args.json { json_text(&report.to_json()) } else { report::text(&report) };
    Ok(Answer::of(text, holds))
}

fn wanted(args: &Args, vector: &Vector) -> bool {
    let by_mechanism =
        args.mechanism.as_ref().is_none_or(|wanted| vector.family() == wanted || vector.mechanism == *wanted);
    by_mechanism && args.show.as_ref().is_none_or(|id| vector.id == *id)
}

/// Vector files among the paths: files as they are, folders by the ending `.jsonl`, sorted.
fn files(paths: &[String]) -> Result<Vec<String>, BadInput> {
    let mut found = Vec::new();
    for path in paths {
        if !Path::new(path).is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries =
            std::fs::read_dir(path).map_err(|error| Diagnostic::of_file(path, input::reason(&error)))?;
        let mut inside: Vec<String> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .map(|path| path.display().to_string())
            .collect();
        inside.sort();
        if inside.is_empty() {
            return Err(Diagnostic::of_file(path, "there is no `.jsonl` file in this folder").into());
        }
        found.extend(inside);
    }
    Ok(found)
}

fn read(file: &str) -> Result<Vec<Vector>, BadInput> {
    let text = input::text(file)?;
    let mut vectors = Vec::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match Vector::parse(line) {
            Ok(vector) => vectors.push(vector),
            Err(message) => faults.push(Diagnostic::at_line(file, index + 1, message)),
        }
    }
    if faults.is_empty() { Ok(vectors) } else { Err(faults.into()) }
}

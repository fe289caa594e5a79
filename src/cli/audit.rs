//! `hermes-lab audit`

mod watch;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::audit::case::{self, CASE_FILE, Files};
use crate::audit::read::{self, Format, Reading, state_db};
use crate::audit::summary::{Summary, summarise};
use crate::audit::{Audit, Auditor, Judged, Options, SCHEMA};
use crate::cli::{Answer, BadInput, CommandResult, input, json_text};
use crate::diag::{Diagnostic, nearest};
use crate::report::{audit as report, audit_html as report_html};

/// Why did the prompt cache miss? One verdict a request, for any log
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Log files, folders of them, or `-` for standard input; .gz and .zst are read as they are
    #[arg(required = true, value_name = "FILE|DIR|-")]
    paths: Vec<String>,
    /// Take the logs to be of this format instead of recognising it
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// One line a request
    #[arg(long)]
    requests: bool,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write one self-contained page as well
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    /// Compare with another log of the same work
    #[arg(long, value_name = "OTHER", conflicts_with = "watch")]
    against: Option<String>,
    /// Follow a growing file, a line a request as they come
    #[arg(long, conflicts_with_all = ["json", "html", "requests"])]
    watch: bool,
    /// With --watch: stop after so many quiet seconds
    #[arg(long, value_name = "SECONDS", requires = "watch")]
    until_quiet: Option<u64>,
    /// Show hashes and lengths instead of texts and names
    #[arg(long)]
    redact: bool,
    /// A string and a lone text block are different bytes
    #[arg(long)]
    strict_bytes: bool,
}

/// What reading the paths gave.
struct Found {
    audit: Audit,
    readings: Vec<Reading>,
    /// Source of each request, by place.
    sources: Vec<usize>,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let format = format(args)?;
    if let [only] = args.paths.as_slice()
        && Path::new(only).join(CASE_FILE).is_file()
    {
        return folder(args, only);
    }
    if args.watch {
        return watch::run(args, format);
    }
    let found = audit(args, &args.paths, format)?;
    if let Some(other) = &args.against {
        let other = audit(args, std::slice::from_ref(other), format)?;
        return Ok(against(args, &found, &other));
    }
    answer(args, &found, None)
}

fn format(args: &Args) -> Result<Option<Format>, BadInput> {
    let Some(word) = &args.format else { return Ok(None) };
    if let Some(format) = Format::of_word(word) {
        return Ok(Some(format));
    }
    let known = Format::ALL.map(Format::word);
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.join(", ")),
    };
    Err(Diagnostic::of_file("--format", format!("unknown format `{word}`")).with_help(help).into())
}

fn answer(args: &Args, found: &Found, case: Option<&Value>) -> CommandResult {
    let summary = summarise(&found.audit);
    let view = report::View {
        audit: &found.audit,
        readings: &found.readings,
        summary: &summary,
        redact: args.redact,
    };
    if let Some(path) = &args.html {
        input::write(path, &report_html::page(&view))?;
    }
    let text = if args.json {
        let mut value = to_json(&view, found);
        if let Some(case) = case {
            value["case"] = case.clone();
        }
        json_text(&value)
    } else if args.requests {
        report::requests(&view)
    } else {
        report::summary(&view)
    };
    Ok(coded(text, &summary))
}

fn coded(text: String, summary: &Summary) -> Answer {
    if summary.blind { Answer::not_judged(text) } else { Answer::of(text, !summary.findings) }
}

fn view<'a>(args: &Args, found: &'a Found, summary: &'a Summary) -> report::View<'a> {
    report::View { audit: &found.audit, readings: &found.readings, summary, redact: args.redact }
}

/// Two logs of the same work side by side.
fn against(args: &Args, found: &Found, other: &Found) -> Answer {
    let sums = (summarise(&found.audit), summarise(&other.audit));
    let (this, that) = (view(args, found, &sums.0), view(args, other, &sums.1));
    let text = if args.json {
        json_text(&report::comparison_json(&this, &that))
    } else {
        report::comparison(&this, &that)
    };
    if sums.0.blind || sums.1.blind {
        return Answer::not_judged(text);
    }
    // The first log is the one under question: worse than the other is a finding.
    Answer::of(text, sums.0.lost <= sums.1.lost)
}

fn to_json(view: &report::View<'_>, found: &Found) -> Value {
    let mask = |text: &str| report::mask(view.redact, text);
    let conversations: Vec<Value> = report::conversations(view);
    let requests: Vec<Value> = view
        .audit
        .requests
        .iter()
        .map(|judged| {
            let name = &view.audit.name(judged.conversation);
            let mut value = judged.to_json(&report::shown(view.redact, name), &mask);
            value["source"] = json!(found.sources.get(judged.index));
            value
        })
        .collect();
    json!({
        "schema": SCHEMA, "summary": view.summary.to_json(view.readings),
        "conversations": conversations, "requests": requests,
    })
}

/// A folder with a question.
fn folder(args: &Args, path: &str) -> CommandResult {
    let files = case_files(path)?;
    let facts = case::answer(&files).map_err(|fault| Diagnostic::of_file(path, fault.to_string()))?;
    let options = Options { strict_bytes: true, by_name: true, fold: false };
    let mut found =
        Found { audit: Auditor::new(options).finish(), readings: Vec::new(), sources: Vec::new() };
    for name in ["requests.jsonl", "usage.jsonl"] {
        if let Some(bytes) = files.get(name) {
            let mut auditor = Auditor::new(options);
            let source = Box::new(std::io::Cursor::new(bytes.clone()));
            let reading = read::read(name, source, None, &mut auditor)
                .map_err(|error| Diagnostic::of_file(name, error.to_string()))?;
            add(&mut found, auditor.finish(), reading);
        }
    }
    let ok = facts.get("verdict").and_then(Value::as_str).is_none_or(|verdict| verdict == "ok");
    if args.json {
        let answer = answer(args, &found, Some(&facts))?;
        return Ok(Answer::of(answer.text, ok));
    }
    Ok(Answer::of(report::case(path, &facts), ok))
}

/// Largest folder that is taken for a case.
const CASE_BYTES_MAX: u64 = 64 << 20;

fn case_files(path: &str) -> Result<Files, BadInput> {
    let mut files = BTreeMap::new();
    let mut size = 0;
    for file in entries(Path::new(path)).map_err(|error| Diagnostic::of_file(path, input::reason(&error)))? {
        let meta =
            std::fs::metadata(&file).map_err(|error| Diagnostic::of_file(path, input::reason(&error)))?;
        if !meta.is_file() {
            continue;
        }
        size += meta.len();
        if size > CASE_BYTES_MAX {
            return Err(Diagnostic::of_file(path, "too large for a case: audit the log itself").into());
        }
        let bytes = std::fs::read(&file).map_err(|error| Diagnostic::of_file(path, input::reason(&error)))?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.insert(name, bytes);
    }
    Ok(files)
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    found.sort();
    Ok(found)
}

/// Audits every log among the paths; each file is a log of its own.
fn audit(args: &Args, paths: &[String], format: Option<Format>) -> Result<Found, BadInput> {
    // Only what shows single requests needs them all.
    let fold = !args.json && !args.requests && args.html.is_none() && args.against.is_none();
    let options = Options { strict_bytes: args.strict_bytes, by_name: false, fold };
    let mut found =
        Found { audit: Auditor::new(options).finish(), readings: Vec::new(), sources: Vec::new() };
    let mut files = Vec::new();
    for path in paths {
        if path == "-" {
            files.push(path.clone());
        } else if Path::new(path).is_dir() {
            let before = files.len();
            collect(Path::new(path), &mut files, 0);
            if files.len() == before {
                return Err(Diagnostic::of_file(path, "there is no log in this folder").into());
            }
        } else {
            files.push(path.clone());
        }
    }
    for file in files {
        let mut auditor = Auditor::new(options);
        let reading = log(&file, format, &mut auditor)?;
        add(&mut found, auditor.finish(), reading);
    }
    Ok(found)
}

/// Deepest folder that is looked into.
const FOLDERS_MAX: usize = 16;

/// Logs below a folder, sorted. Links to folders are not followed, so that a circle ends.
fn collect(folder: &Path, files: &mut Vec<String>, depth: usize) {
    let Ok(found) = entries(folder) else { return };
    for path in found {
        let link = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_symlink());
        if path.is_dir() {
            if !link && depth < FOLDERS_MAX {
                collect(&path, files, depth + 1);
            }
            continue;
        }
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let log = [".jsonl", ".ndjson", ".json", ".har", ".log", ".db"]
            .iter()
            .any(|ending| plain.ends_with(ending));
        let empty = path.metadata().is_ok_and(|meta| meta.len() == 0);
        if log && !empty {
            files.push(path.display().to_string());
        }
    }
}

fn log(file: &str, format: Option<Format>, auditor: &mut Auditor) -> Result<Reading, BadInput> {
    let fault = |error: std::io::Error| Diagnostic::of_file(file, input::reason(&error));
    if file == "-" {
        return Ok(read::read("standard input", Box::new(std::io::stdin()), format, auditor).map_err(fault)?);
    }
    let mut opened = std::fs::File::open(file).map_err(fault)?;
    let mut head = Vec::new();
    opened.by_ref().take(state_db::MAGIC.len() as u64).read_to_end(&mut head).map_err(fault)?;
    if head == state_db::MAGIC || format == Some(Format::StateDb) {
        return Ok(state_db::read(file, Path::new(file), auditor)
            .map_err(|error| Diagnostic::of_file(file, format!("no readable state.db: {error}")))?);
    }
    let source = std::io::Cursor::new(head).chain(opened);
    Ok(read::read(file, Box::new(source), format, auditor).map_err(fault)?)
}

/// Appends one log's judgements; places go on counting.
fn add(found: &mut Found, audit: Audit, reading: Reading) {
    let (requests, names) = (found.audit.count(), found.audit.conversations.len());
    found.sources.resize(requests + audit.count(), found.readings.len());
    found.readings.push(reading);
    found.audit.conversations.extend(audit.conversations);
    found.audit.pinned.extend(audit.pinned.into_iter().map(|(number, floor)| (number + names, floor)));
    let moved = |mut judged: Judged| {
        judged.index += requests;
        judged.conversation += names;
        judged.base = judged.base.map(|base| base + requests);
        judged
    };
    found.audit.tally.join(&audit.tally, requests);
    found.audit.samples.extend(audit.samples.into_iter().map(moved));
    found.audit.requests.extend(audit.requests.into_iter().map(moved));
}

//! `cron/jobs.json`: every job, written in one step.

use serde_json::{Map, Value, json};

use super::CronError;
use super::job::Job;
use super::moment::Moment;
use crate::world::Files;

/// Where the jobs are kept, below the agent's home.
pub const PATH: &str = "cron/jobs.json";

/// Every stored job; none when there is no file yet. Entries that are no records are dropped.
///
/// # Errors
/// When the file cannot be read or is not what it should be.
pub fn load(files: &dyn Files) -> Result<Vec<Job>, CronError> {
    if !files.exists(PATH) {
        return Ok(Vec::new());
    }
    let text = files.read_text(PATH)?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| CronError::Unreadable(error.to_string()))?;
    let jobs = match value {
        Value::Object(mut file) => file.remove("jobs").unwrap_or(Value::Null),
        list => list,
    };
    match jobs {
        Value::Array(jobs) => Ok(jobs.into_iter().filter_map(record).collect()),
        Value::Null => Ok(Vec::new()),
        _ => Err(CronError::Unreadable("`jobs` is no list".to_owned())),
    }
}

fn record(value: Value) -> Option<Job> {
    if let Value::Object(fields) = value { Some(Job { fields }) } else { None }
}

/// Writes every job.
///
/// # Errors
/// When the file cannot be written.
pub fn save(files: &mut dyn Files, jobs: &[Job]) -> Result<(), CronError> {
    let jobs: Vec<&Map<String, Value>> = jobs.iter().map(|job| &job.fields).collect();
    let text = serde_json::to_string_pretty(&json!({ "jobs": jobs }))
        .map_err(|error| CronError::Unreadable(error.to_string()))?;
    Ok(files.write(PATH, text.as_bytes())?)
}

/// Loads the jobs, lets `work` change them, and writes them when something changed.
///
/// # Errors
/// When the file cannot be read or written.
pub fn change<T>(files: &mut dyn Files, work: impl FnOnce(&mut Vec<Job>) -> T) -> Result<T, CronError> {
    let mut jobs = load(files)?;
    let before = jobs.clone();
    let outcome = work(&mut jobs);
    if jobs != before {
        save(files, &jobs)?;
    }
    Ok(outcome)
}

/// Keeps the text of a run under `cron/output/<id>/<time>.md`, and only the newest `kept` of a job.
///
/// # Errors
/// When the file cannot be written.
pub fn save_output(
    files: &mut dyn Files,
    id: &str,
    at: &Moment,
    text: &str,
    kept: u64,
) -> Result<String, CronError> {
    let time: String = at.wall.strftime("%Y-%m-%d_%H-%M-%S").to_string();
    let dir = format!("cron/output/{id}");
    let path = format!("{dir}/{time}.md");
    files.write(&path, text.as_bytes())?;
    let names: Vec<String> = files.list(&dir).into_iter().map(|(name, _)| name).collect();
    let doomed = names.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
    for name in names.iter().take(doomed) {
        files.remove_file(&format!("{dir}/{name}"))?;
    }
    Ok(path)
}

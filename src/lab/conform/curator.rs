//! Adapter of the family `curator`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::skills::{instant, plain_skill, put, put_owners};
use super::{Fixtures, ReplayError};
use crate::agent::curator::{self, Consolidation, JobSkills, RunOptions, ToolCall};
use crate::agent::skills::{Library, MoveError, Record, Usage, suppressed};
use crate::agent::stamp;
use crate::policy::{self, Policy};
use crate::world::clock::{DAY, SECOND};
use crate::world::{EntryKind, Files, MemFiles, Millis};

const EXTERNAL: &str = "external";
const NOW: Millis = 1_790_000_000_000;

/// Replays one vector of the curator's functions.
///
/// # Errors
/// When the function is unknown or the input lacks something.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    Ok(match function {
        "transitions" => transitions(given),
        "gate" => gate(given),
        "run" => run(given),
        "archive" | "restore" => moved(function, given),
        "purge" => purge(given),
        "classify_removals" => classify(given),
        "cron_refs" => cron_refs(given),
        "backup_retention" => {
            let ids = names(&given["ids"]);
            let protect = names(&given["protect"]).into_iter().collect();
            let gone = curator::expired_snapshots(&ids, given["keep"].as_u64().unwrap_or(2), &protect);
            let mut left: Vec<&String> = ids.iter().filter(|id| !gone.contains(id)).collect();
            left.sort();
            json!({"deleted": gone, "left": left})
        }
        "backup_keep" => {
            json!({"keep": curator::backup_keep(&given["value"], policy::Curator::default().backup_keep)})
        }
        "run_claim" => run_claim(given),
        _ => return Err(ReplayError::UnknownFunction(format!("curator.{function}"))),
    })
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A home as a vector describes it, and the library with its settings.
fn home(given: &Value, on_disk: &[String], below: &str) -> (Library, policy::Curator, MemFiles) {
    let mut policy = Policy::default();
    policy.curator = curator::with_settings(&policy.curator, &given["config"]);
    let mut files = MemFiles::new();
    for name in on_disk {
        put(&mut files, &format!("skills/{below}{name}/SKILL.md"), &plain_skill(name));
    }
    for name in names(&given["external"]) {
        put(&mut files, &format!("{EXTERNAL}/{name}/SKILL.md"), &plain_skill(&name));
    }
    put_owners(&mut files, &given["bundled"], &given["hub"]);
    let mut usage = Usage::default();
    for (name, record) in given["records"].as_object().into_iter().flatten() {
        usage.put(name, Record::of(record.as_object().cloned().unwrap_or_default()));
    }
    // A tree in memory takes every write.
    let _ = usage.save(&mut files, "skills");
    (Library::new(&policy, &[EXTERNAL.to_owned()]), policy.curator, files)
}

fn live(files: &MemFiles, library: &Library) -> Vec<String> {
    let mut live: Vec<String> = library.local(files).iter().map(|dir| dir.dir_name().to_owned()).collect();
    live.sort();
    live
}

fn archived(files: &MemFiles) -> Vec<String> {
    let dirs = files.list("skills/.archive").into_iter();
    dirs.filter(|(_, kind)| *kind == EntryKind::Dir).map(|(name, _)| name).collect()
}

fn show_counts(counts: curator::Counts, dry_run: bool) -> Value {
    let mut shown = json!({"checked": counts.checked, "marked_stale": counts.marked_stale,
        "archived": counts.archived, "reactivated": counts.reactivated});
    if !dry_run {
        shown["seeded"] = counts.seeded.into();
    }
    shown
}

fn transitions(given: &Value) -> Value {
    let now = instant(&given["now"]);
    let (library, knobs, mut files) = home(given, &names(&given["skills_on_disk"]), "");
    let scheduled = names(&given["cron_referenced"]).into_iter().collect();
    let pass = curator::run_transitions(&library, &knobs, &mut files, now, &scheduled);
    let usage = Usage::load(&files, "skills");
    let reanchored: Vec<&String> = usage
        .iter()
        .filter(|(_, record)| record.instant("first_seen_at") == Some(now))
        .map(|(name, _)| name)
        .collect();
    json!({
        "counts": show_counts(pass.counts, false),
        "live": live(&files, &library),
        "archived": archived(&files),
        "states": curator::states(&files, &library),
        "reanchored": reanchored,
        "suppressed": suppressed(&files, "skills"),
    })
}

fn put_state(files: &mut MemFiles, state: &Value) {
    if !state.is_null() {
        put(files, &curator::state_path("skills"), &state.to_string());
    }
}

fn raw_state(files: &MemFiles) -> Value {
    let text = files.read_text(&curator::state_path("skills")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn gate(given: &Value) -> Value {
    let (library, knobs, mut files) = home(given, &[], "");
    put_state(&mut files, &given["state"]);
    let idle = match &given["idle_seconds"] {
        Value::String(_) => Some(f64::INFINITY),
        other => other.as_f64(),
    };
    let decision = curator::gate(&library, &knobs, &mut files, instant(&given["now"]), idle);
    let state = raw_state(&files);
    json!({
        "runs": decision == curator::Gate::Due,
        "last_run_at_after": state["last_run_at"],
        "run_count_after": state["run_count"],
        "summary_set": state["last_run_summary"].is_string(),
    })
}

fn run(given: &Value) -> Value {
    let now = instant(&given["now"]);
    let on_disk: Vec<String> =
        given["records"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let (library, knobs, mut files) = home(given, &on_disk, "");
    put_state(&mut files, &given["state"]);
    let mut jobs: Vec<JobSkills> =
        vec![JobSkills { skills: Some(names(&given["cron_referenced"])), skill: None }];
    let options = RunOptions {
        dry_run: given["dry_run"].as_bool().unwrap_or(false),
        consolidate: given["consolidate"].as_bool(),
    };
    let begun = curator::begin(&library, &knobs, &mut files, now, options, &jobs);
    // A model that answers at once and calls nothing.
    let asked = begun.to_consolidate().map(|_| Consolidation::default());
    let report = begun.finish(&library, &mut files, now, &mut jobs, asked.as_ref());
    let state = raw_state(&files);
    let reports: Vec<String> = files.list(&report.report_dir).into_iter().map(|(name, _)| name).collect();
    json!({
        "counts": show_counts(report.counts, options.dry_run),
        "reviewer_called": u64::from(asked.is_some()),
        "snapshot_taken": u64::from(report.snapshot.is_some()),
        "last_run_bumped": state["last_run_at"].as_str().and_then(stamp::parse) == Some(now),
        "run_count": state["run_count"],
        "report_files": reports,
        "archived": archived(&files),
        "summaries": report.summaries.len(),
    })
}

fn moved(function: &str, given: &Value) -> Value {
    let nested = given["nested_in_category"].as_bool().unwrap_or(false);
    let (library, _, mut files) = home(given, &names(&given["skills"]), if nested { "cat/" } else { "" });
    for dir in names(&given["archive_dirs"]) {
        let stamped =
            dir.len() > 15 && dir.is_char_boundary(dir.len() - 15) && dir[dir.len() - 15..].starts_with('-');
        let name = if stamped { &dir[..dir.len() - 15] } else { dir.as_str() };
        put(&mut files, &format!("skills/.archive/{dir}/SKILL.md"), &plain_skill(name));
    }
    let name = given["name"].as_str().unwrap_or_default();
    let result = if function == "archive" {
        library.archive(&mut files, NOW, name)
    } else {
        library.restore(&mut files, NOW, name)
    };
    let mut paths: Vec<String> = library
        .local(&files)
        .into_iter()
        .map(|dir| dir.path.trim_start_matches("skills/").to_owned())
        .collect();
    paths.sort();
    let archive: Vec<String> = archived(&files).iter().map(|dir| mask_stamp(dir)).collect();
    let usage = Usage::load(&files, "skills");
    let record = usage.get(name);
    let raw = |key: &str| record.and_then(|record| record.fields().get(key).cloned()).unwrap_or_default();
    json!({
        "ok": result.is_ok(),
        "error": result.err().map(|error: MoveError| error.to_string()),
        "live": paths,
        "archive": archive,
        "state": raw("state"),
        "archived_at_set": !raw("archived_at").is_null(),
        "suppressed": suppressed(&files, "skills"),
    })
}

fn mask_stamp(dir: &str) -> String {
    match dir.rsplit_once('-') {
        Some((name, stamp)) if stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{name}-<stamp>")
        }
        _ => dir.to_owned(),
    }
}

fn purge(given: &Value) -> Value {
    let mut files = MemFiles::new();
    let mut usage = Usage::default();
    let days_ago = |value: &Value| value.as_i64().map(|days| NOW - days * DAY);
    for (name, entry) in given["entries"].as_object().into_iter().flatten() {
        put(&mut files, &format!("skills/.archive/{name}/SKILL.md"), &plain_skill(name));
        files.touch(&format!("skills/.archive/{name}"), days_ago(&entry["dir_age_days"]).unwrap_or(NOW));
        if let Some(state) = entry["record_state"].as_str() {
            let mut record = Record::fresh(NOW);
            record.set("state", state);
            record.set(
                "archived_at",
                days_ago(&entry["archived_at_age_days"]).map_or(Value::Null, |at| stamp::show(at).into()),
            );
            usage.put(name, record);
        }
    }
    let _ = usage.save(&mut files, "skills");
    let knobs = policy::Curator {
        archive_ttl_days: given["archive_ttl_days"].as_i64().unwrap_or(0),
        ..policy::Curator::default()
    };
    let library = Library::new(&Policy::default(), &[]);
    let dry_run = given["dry_run"].as_bool().unwrap_or(false);
    let result = curator::purge(&library, &knobs, &mut files, NOW, given["days"].as_i64(), dry_run);
    json!({"exit": i32::from(result.is_err()), "left": archived(&files)})
}

fn classify(given: &Value) -> Value {
    let set = |key: &str| names(&given[key]).into_iter().collect::<BTreeSet<String>>();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let calls: Vec<ToolCall> = given["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| ToolCall { name: text(&call["name"]), arguments: text(&call["arguments"]) })
        .collect();
    let outcome =
        curator::classify_removals(&set("before"), &set("after"), &calls, &text(&given["final_text"]));
    json!({"removed": outcome.removed, "added": outcome.added,
        "consolidated": outcome.consolidated, "pruned": outcome.pruned})
}

fn cron_refs(given: &Value) -> Value {
    let mut jobs: Vec<JobSkills> = given["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|job| JobSkills {
            skills: job.get("skills").filter(|list| list.is_array()).map(names),
            skill: job.get("skill").and_then(Value::as_str).map(str::to_owned),
        })
        .collect();
    let referenced = curator::referenced(&jobs);
    let consolidated: BTreeMap<String, String> = given["consolidated"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(from, into)| Some((from.clone(), into.as_str()?.to_owned())))
        .collect();
    let pruned = names(&given["pruned"]).into_iter().collect();
    let rewrites = curator::rewrite(&mut jobs, &consolidated, &pruned);
    let shown: Vec<Value> =
        jobs.iter().map(|job| json!({"skills": job.skills, "skill": job.skill})).collect();
    let rows: Vec<Map<String, Value>> = rewrites
        .iter()
        .map(|row| {
            let fields = json!({"before": row.before, "after": row.after, "mapped": row.mapped, "dropped": row.dropped});
            fields.as_object().cloned().unwrap_or_default()
        })
        .collect();
    json!({"referenced": referenced, "jobs_updated": rewrites.len(), "jobs": shown, "rewrites": rows})
}

fn run_claim(given: &Value) -> Value {
    let library = Library::new(&Policy::default(), &[]);
    let knobs = policy::Curator::default();
    let mut files = MemFiles::new();
    if let Some(age) = given["existing_claim_age_seconds"].as_i64() {
        put(&mut files, "skills/.locks/curator-run", &(NOW - age * SECOND).to_string());
    }
    let mut claim = || curator::claim(&library, &knobs, &mut files, NOW);
    json!({"claimed": claim(), "second_attempt": claim()})
}

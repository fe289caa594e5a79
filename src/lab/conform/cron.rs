//! Vectors of the scheduler (`cron.*`).

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::agent::cron::duration::{parse_clock, parse_duration, parse_repeat};
use crate::agent::cron::{
    CronError, FireClaim, Job, Lateness, Moment, NewJob, Outcome, Schedule, Scheduler, grace_seconds,
    lifecycle_guard, next_run, run, silence, store,
};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy::{self, SilenceRule};
use crate::world::{MemFiles, Millis, clock::SECOND};

const MACHINE: &str = "host:1";

/// Replays one vector.
pub(super) fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    // The vectors are of the current revision.
    let knobs = policy::Cron { silence: SilenceRule::Lines, ..policy::Cron::default() };
    let text = given["text"].as_str().unwrap_or_default();
    Ok(match function {
        "parse_duration" => answer(parse_duration(text), |minutes| json!({ "minutes": minutes })),
        "parse_clock" => {
            let clock = parse_clock(text);
            json!({ "hour": clock.map(|(hour, _)| hour), "minute": clock.map(|(_, minute)| minute) })
        }
        "repeat" => answer(parse_repeat(&given["value"]), |times| json!({ "times": times })),
        "parse_schedule" => answer(Schedule::parse(text, now(given), &zone(given)), |schedule| {
            schedule.map_or_else(|| json!({ "kind": null }), |schedule| schedule.to_value())
        }),
        "next_run" => next(given, &knobs),
        "grace" => {
            let schedule = Schedule::read(&given["schedule"]);
            json!({ "seconds": grace_seconds(schedule.as_ref(), now(given), &TimeZone::UTC, &knobs) })
        }
        "lateness" => {
            let late = given["late_seconds"].as_f64().unwrap_or(0.0);
            let grace = given["grace_seconds"].as_i64().unwrap_or(0);
            json!({ "class": Lateness::of(late, grace, &knobs).word() })
        }
        "silence" => json!({ "suppress": run::is_silent(text, true, &knobs) }),
        "failure_marker" => {
            let evidence = silence::declared_failure(text);
            json!({ "failed": evidence.is_some(), "evidence": evidence.filter(|text| !text.is_empty()) })
        }
        "disabled_toolsets" => {
            let config = &given["config"];
            let allow_agent_scheduling = config["cron"]["allow_agent_scheduling"] == true;
            let knobs = policy::Cron { allow_agent_scheduling, ..knobs };
            json!({ "disabled": run::denied(&config["agent"]["disabled_toolsets"], &knobs) })
        }
        "job_state" => {
            let job = job(&given["job"]);
            json!({
                "effective": job.shown_state(), "runnable": job.is_runnable(),
                "terminal": job.is_terminal(), "recoverable_error": job.is_recoverable_error(),
            })
        }
        "due_scan" => due_scan(given).unwrap_or_else(|error| json!({ "error": error.word() })),
        "sequence" => sequence(given).unwrap_or_else(|error| json!({ "error": error.word() })),
        "create" => create(given),
        "lifecycle_guard" => json!({ "blocked": lifecycle_guard::blocks(text) }),
        other => return Err(ReplayError::UnknownFunction(format!("cron.{other}"))),
    })
}

/// An outcome in the words of the vectors: its fields and `error`.
fn answer<T>(outcome: Result<T, CronError>, fields: impl FnOnce(Option<T>) -> Value) -> Value {
    let (value, error) = match outcome {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error.word())),
    };
    let mut answer = fields(value);
    answer["error"] = json!(error);
    answer
}

fn now(given: &Value) -> Millis {
    given["now"].as_str().and_then(Moment::parse).map_or(0, |now| now.millis())
}

fn zone(given: &Value) -> TimeZone {
    given["timezone"].as_str().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

fn job(value: &Value) -> Job {
    Job { fields: value.as_object().cloned().unwrap_or_default() }
}

fn next(given: &Value, knobs: &policy::Cron) -> Value {
    let Some(schedule) = Schedule::read(&given["schedule"]) else {
        return json!({ "next_run_at": null, "error": null });
    };
    let last = given["last_run_at"].as_str();
    answer(
        next_run(&schedule, now(given), &zone(given), last, knobs),
        |next| json!({ "next_run_at": next.flatten().map(|next| next.to_string()) }),
    )
}

fn scheduler(given: &Value) -> Result<(Scheduler, MemFiles), CronError> {
    let config = &given["config"];
    let default = policy::Cron::default();
    let knobs = policy::Cron {
        timezone: given["timezone"].as_str().unwrap_or("UTC").to_owned(),
        catch_up_missed: config["catch_up_missed"].as_bool().unwrap_or(default.catch_up_missed),
        retry_unreachable: config["retry_unreachable"].as_bool().unwrap_or(default.retry_unreachable),
        completed_retention_days: config["completed_retention_days"]
            .as_u64()
            .unwrap_or(default.completed_retention_days),
        ..default
    };
    let mut scheduler = Scheduler::new(&knobs, MACHINE)?;
    for id in given["running_here"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        scheduler.set_running(id, true);
    }
    for pair in given["completed_occurrences"].as_array().into_iter().flatten() {
        if let (Some(id), Some(at)) = (pair[0].as_str(), pair[1].as_str().and_then(Moment::parse)) {
            scheduler.record_finished(id, at.millis());
        }
    }
    let mut files = MemFiles::new();
    let jobs: Vec<Job> = given["jobs"].as_array().into_iter().flatten().map(job).collect();
    store::save(&mut files, &jobs)?;
    Ok((scheduler, files))
}

fn due_scan(given: &Value) -> Result<Value, CronError> {
    let (scheduler, mut files) = scheduler(given)?;
    let scan = scheduler.due(&mut files, now(given))?;
    let due: Vec<&str> = scan.due.iter().map(|due| due.job.id()).collect();
    let late = scan.due.iter().filter_map(|due| Some((due.job.id().to_owned(), json!(due.lateness?.word()))));
    let late: Map<String, Value> = late.collect();
    let jobs: Vec<Value> = scheduler.jobs(&files)?.into_iter().map(|job| scanned_job(job.fields)).collect();
    Ok(json!({ "due": due, "jobs": jobs, "lateness": late }))
}

/// The fields of a job that the vectors name after a scan.
fn scanned_job(mut fields: Map<String, Value>) -> Value {
    const ALWAYS: [&str; 6] = ["id", "enabled", "state", "next_run_at", "last_run_at", "repeat"];
    const IF_PRESENT: [&str; 4] = ["pending_slot", "last_dispatch", "run_claim", "manual_run_at"];
    if let Some(slot) = fields.get_mut("pending_slot").and_then(Value::as_object_mut) {
        slot.shift_remove("restored");
    }
    fields.retain(|key, value| {
        ALWAYS.contains(&key.as_str()) || (IF_PRESENT.contains(&key.as_str()) && !value.is_null())
    });
    Value::Object(fields)
}

fn sequence(given: &Value) -> Result<Value, CronError> {
    let (mut scheduler, mut files) = scheduler(given)?;
    let begin = now(given);
    let mut at = begin;
    let mut results = Vec::new();
    for step in given["steps"].as_array().into_iter().flatten() {
        if let Some(seconds) = step["at"].as_f64() {
            at = begin + millis(seconds);
        }
        results.push(one_step(&mut scheduler, &mut files, step, at)?);
    }
    let jobs: Vec<Value> = scheduler.jobs(&files)?.iter().map(final_job).collect();
    Ok(json!({ "results": results, "jobs": jobs }))
}

#[expect(clippy::cast_possible_truncation, reason = "vectors name whole seconds within a few days")]
fn millis(seconds: f64) -> Millis {
    (seconds * SECOND as f64) as Millis
}

fn one_step(
    scheduler: &mut Scheduler,
    files: &mut MemFiles,
    step: &Value,
    now: Millis,
) -> Result<Value, CronError> {
    let id = step["id"].as_str().unwrap_or("j1");
    let holder = step["as"].as_str();
    let edited = |outcome: Result<bool, CronError>| json!({ "ok": outcome == Ok(true), "error": outcome.err().map(|error| error.word()) });
    Ok(match step["op"].as_str().unwrap_or_default() {
        "claim_fire" => {
            let claim = FireClaim { holder, force: step["force"] == true, manual: step["manual"] == true };
            let claimed = scheduler.claim_fire(files, id, claim, now)?;
            let ok = claimed.is_some();
            json!({ "ok": ok, "scheduled_instant": claimed.and_then(|claimed| claimed.scheduled_instant) })
        }
        "heartbeat" => json!({ "ok": scheduler.heartbeat(files, id, holder.unwrap_or(MACHINE), now)? }),
        "dispatch" => json!({ "ok": scheduler.dispatch(files, id)? }),
        "advance" => json!({ "ok": scheduler.advance(files, id, now)? }),
        "mark" => json!({ "ok": scheduler.mark(files, id, &outcome(step), now)? }),
        "pause" => edited(scheduler.pause(files, id, step["reason"].as_str(), now)),
        "resume" => edited(scheduler.resume(files, id, now)),
        "trigger" => edited(scheduler.trigger(files, id, now)),
        "remove" => edited(scheduler.remove(files, id)),
        "rearm" => edited(scheduler.rearm(files, id, step["run_at"].as_str().unwrap_or_default(), now)),
        "update" => {
            let changes = step["fields"].as_object().cloned().unwrap_or_default();
            edited(scheduler.update(files, id, &changes, now))
        }
        "due" => {
            let scan = scheduler.due(files, now)?;
            json!({ "due": scan.due.iter().map(|due| due.job.id()).collect::<Vec<_>>() })
        }
        _ => Value::Null,
    })
}

fn outcome(step: &Value) -> Outcome {
    let text = |key: &str| step[key].as_str().map(str::to_owned);
    Outcome {
        success: step["success"] == true,
        error: text("error"),
        delivery_error: text("delivery_error"),
        status: text("status"),
        model_unreachable: step["model_unreachable"] == true,
        is_retry: step["ladder_rung"] == true,
        quota_wait_seconds: step["quota_hold_seconds"].as_u64(),
        holder: text("as"),
    }
}

/// A stored job with claims as flags and error texts as true.
fn final_job(job: &Job) -> Value {
    const NAMED: [&str; 15] = [
        "id",
        "enabled",
        "state",
        "next_run_at",
        "last_run_at",
        "repeat",
        "fire_claimed",
        "run_claimed",
        "manual_run_at",
        "retry_attempt",
        "quota_hold_until",
        "last_status",
        "last_error",
        "last_delivery_error",
        "failure_streak",
    ];
    let there = |key: &str| job.fields.get(key).is_some_and(|value| !value.is_null());
    let mut fields = job.fields.clone();
    for key in ["last_error", "last_delivery_error"] {
        if there(key) {
            fields.insert(key.to_owned(), Value::Bool(true));
        }
    }
    let attempt = fields.get("unreachable_retry").and_then(|retry| retry.get("attempt")).cloned();
    fields.insert("retry_attempt".to_owned(), json!(attempt));
    fields.insert("fire_claimed".to_owned(), json!(there("fire_claim")));
    fields.insert("run_claimed".to_owned(), json!(there("run_claim")));
    for key in ["manual_run_at", "quota_hold_until"] {
        fields.entry(key.to_owned()).or_insert(Value::Null);
    }
    fields.retain(|key, _| NAMED.contains(&key.as_str()));
    Value::Object(fields)
}

fn create(given: &Value) -> Value {
    let args = &given["args"];
    let text = |key: &str| args[key].as_str().map(str::to_owned);
    let new = NewJob {
        prompt: text("prompt"),
        schedule: text("schedule").unwrap_or_default(),
        name: text("name"),
        skills: args["skills"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        script: text("script"),
        no_agent: args["no_agent"] == true,
        repeat: args["repeat"].clone(),
        deliver: text("deliver"),
        origin: args.get("origin").filter(|origin| !origin.is_null()).cloned(),
        paused: args["paused"] == true,
        paused_reason: text("paused_reason"),
        more: Map::new(),
    };
    let created =
        scheduler(given).and_then(|(scheduler, mut files)| scheduler.create(&mut files, &new, now(given)));
    match created {
        Err(error) => json!({ "error": error.word() }),
        Ok(job) => {
            let kind = job.kind().map(str::to_owned);
            let mut fields = job.fields;
            fields.insert("error".to_owned(), Value::Null);
            fields.insert("kind".to_owned(), json!(kind));
            Value::Object(fields)
        }
    }
}

//! Vectors of the command guard (`guard.*`).

use std::cell::Cell;

use serde_json::{Value, json};

use crate::agent::guard::lists::{allowed, denied, is_compound};
use crate::agent::guard::variants::Budget;
use crate::agent::guard::{
    Answer, Context, Guard, Homes, Question, Request, ReviewRequest, ReviewerFailed, Tally, Verdict,
    classify, hardline, is_isolated, mode_of, normalize, reviewer, threshold_of, unattended_of, words,
};
use crate::lab::conform::{Fixtures, ReplayError};
use crate::policy;

/// Replays one vector.
pub(super) fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    let knobs = policy::Guard::default();
    let command = command_of(given);
    let homes = homes_of(given);
    Ok(match function {
        "classify" => {
            let found = classify(&command, &homes, &knobs);
            json!({
                "hardline": found.hardline.is_some(), "hardline_rule": found.hardline,
                "dangerous": found.rule.is_some(), "category": found.category(), "rule": found.rule,
            })
        }
        "normalize" => json!({ "normalized": normalize::normalize(&command, &homes) }),
        "command_words" => json!({ "words": words::command_words(&command) }),
        "sudo_stdin" => {
            let reads = hardline::sudo_reads_stdin(&normalize::normalize(&command, &homes));
            json!({ "blocked": reads && given["sudo_password_configured"] != true })
        }
        "allowlist_compound" => json!({ "compound": is_compound(&command) }),
        "allowlist_match" => json!({ "match": allowed(&command, &texts(&given["allowlist"])) }),
        "deny_match" => {
            let hit = denied(&command, &texts(&given["deny"]), &homes, Budget::of(&knobs));
            json!({ "matched": hit.as_ref().map(|hit| &hit.rule), "index": hit.as_ref().map(|hit| hit.index) })
        }
        "strip_comments" => json!({ "text": reviewer::strip_comments(&command) }),
        "smart_verdict" => {
            let failed = given["error"] == true || given["malformed"] == true;
            let answer = if failed { Err(ReviewerFailed) } else { Ok(text(given, "answer")) };
            json!({ "verdict": Verdict::of(answer).word() })
        }
        "mode" => json!({ "mode": mode_of(&given["value"]).word() }),
        "unattended_mode" => json!({ "mode": unattended_of(&given["value"]).word() }),
        "container_skip" => {
            json!({ "skip": is_isolated(text(given, "backend"), given["has_host_access"] == true, &knobs) })
        }
        "decide" => decide(given, &command),
        "breaker" => breaker(given),
        other => return Err(ReplayError::UnknownFunction(format!("guard.{other}"))),
    })
}

fn text<'a>(given: &'a Value, key: &str) -> &'a str {
    given[key].as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// `command`, or the joined `command_parts`.
fn command_of(given: &Value) -> String {
    let Some(parts) = given["command_parts"].as_array() else { return text(given, "command").to_owned() };
    parts
        .iter()
        .map(|part| match part {
            Value::String(text) => text.clone(),
            part => {
                let times = part["times"].as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or(0);
                text(part, "repeat").repeat(times)
            }
        })
        .collect()
}

fn homes_of(given: &Value) -> Homes {
    Homes { user: text(given, "home").to_owned(), agent: text(given, "agent_home").to_owned() }
}

fn decide(given: &Value, command: &str) -> Value {
    let unattended = unattended_of(&given["unattended_policy"]);
    let knobs = policy::Guard {
        mode: mode_of(&given["mode"]),
        cron_policy: unattended,
        single_query_policy: unattended,
        platform_policy: unattended,
        yolo: given["yolo"] == "process",
        deny: texts(&given["deny"]),
        allowlist: texts(&given["allowlist"]),
        // The vectors are of the current revision.
        deny_in_isolation: true,
        sudo_password_configured: given["sudo_password_configured"] == true,
        ..policy::Guard::default()
    };
    let session = "s";
    let mut guard = Guard::new(&knobs);
    guard.set_yolo(session, given["yolo"] == "session");
    for rule in texts(&given["session_approved_rules"]) {
        guard.approve_for_session(session, &rule);
    }
    let homes = homes_of(given);
    let request = Request {
        command,
        homes: &homes,
        session,
        context: context(text(given, "context")),
        backend: text(given, "backend"),
        reaches_host: given["has_host_access"] == true,
    };
    let (reviewed, asked) = (Cell::new(0u64), Cell::new(0u64));
    let offered: Cell<Option<bool>> = Cell::new(None);
    let mut reviewer = |_: &ReviewRequest| {
        reviewed.set(reviewed.get() + 1);
        given["smart_answer"]
            .as_str()
            .filter(|answer| *answer != "ERROR")
            .map(str::to_owned)
            .ok_or(ReviewerFailed)
    };
    let mut human = |question: &Question| {
        asked.set(asked.get() + 1);
        offered.set(Some(question.may_remember));
        answer(text(given, "human"))
    };
    let mut last = None;
    for _ in 0..given["repeat"].as_u64().unwrap_or(1).max(1) {
        last = Some(guard.decide(&request, &mut reviewer, &mut human));
    }
    let Some(last) = last else { return Value::Null };
    json!({
        "approved": last.approved, "kind": last.kind.word(),
        "reviewer_calls": reviewed.get(), "human_prompts": asked.get(), "permanent_offered": offered.get(),
        "session_rules": guard.session_rules(session).collect::<Vec<_>>(),
        "permanent_rules": guard.permanent_rules().collect::<Vec<_>>(),
        "consecutive_denials": last.denials, "breaker_tripped": last.breaker_tripped,
    })
}

fn context(word: &str) -> Context {
    match word {
        "interactive" => Context::Interactive,
        "chat" => Context::Chat,
        "chat_no_listener" => Context::ChatWithoutListener,
        "cron" => Context::Cron,
        "single_query" => Context::SingleQuery,
        "webhook" | "msgraph_webhook" | "api_server" => Context::Platform,
        _ => Context::Library,
    }
}

fn answer(word: &str) -> Answer {
    match word {
        "once" => Answer::Once,
        "session" => Answer::Session,
        "always" => Answer::Always,
        "timeout" => Answer::Timeout,
        "withdrawn" => Answer::Withdrawn,
        _ => Answer::Deny,
    }
}

fn breaker(given: &Value) -> Value {
    let mut tally = Tally::default();
    for event in texts(&given["events"]) {
        if event == "d" {
            tally.deny("s", policy::Guard::default().tallied_sessions_max);
        } else {
            tally.reset("s");
        }
    }
    json!({ "count": tally.count("s"), "tripped": tally.tripped("s", threshold_of(&given["threshold"])) })
}

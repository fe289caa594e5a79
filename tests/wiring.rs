//! What mechanisms do in a whole run: that they are called, with what they need, and that their state is kept.

use hermes_lab::lab::play::{Plan, play_in};
use hermes_lab::ledger::{Compaction, Event, Lane, Ledger, What};
use hermes_lab::policy::Policy;
use hermes_lab::scenario;
use hermes_lab::store::Store;
use hermes_lab::world::MemFiles;

use crate::support::{played, sent, small_window};

const OPEN: &str = "[[act]]\nopen.name = \"s\"\n\n";

/// A turn whose replies are these lines of TOML.
fn turn(say: &str, replies: &str) -> String {
    format!("[[act]]\nturn = {{ say = \"{say}\", replies = [{replies}] }}\n\n")
}

/// Turns that fill a window.
fn long_turns(count: u32, summary: &str) -> String {
    let (say, answer) = ("words ".repeat(60), "more words ".repeat(40));
    let one = |n: u32| {
        format!(
            "[[act]]\nturn = {{ say = \"Part {n}: {say}\", replies = [{{ say = \"{answer}\" }}], \
             summary = [{summary}] }}\n\n"
        )
    };
    (0..count).map(one).collect::<Vec<_>>().concat()
}

fn all<'a, T>(ledger: &'a Ledger, pick: impl Fn(&'a What) -> Option<T>) -> Vec<T> {
    ledger.events.iter().filter_map(|event| pick(&event.what)).collect()
}

fn compactions(ledger: &Ledger) -> Vec<&Compaction> {
    all(ledger, |what| match what {
        What::Compaction(done) => Some(done),
        _ => None,
    })
}

fn exits(ledger: &Ledger) -> Vec<String> {
    all(ledger, |what| match what {
        What::TurnEnded(ended) => Some(ended.exit.to_string()),
        _ => None,
    })
}

fn decisions(ledger: &Ledger) -> Vec<String> {
    all(ledger, |what| match what {
        What::GuardDecision(decision) => Some(decision.kind.to_string()),
        _ => None,
    })
}

/// The store that a run leaves behind.
fn store_of(knobs: &str, acts: &str) -> (Ledger, Store, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("state.db");
    let text = format!("format = 1\nname = \"t\"\nstart = \"2026-09-01T09:00:00Z\"\n{knobs}\n{acts}");
    let scenario = scenario::load("t.toml", &text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let played = play_in(&scenario, &Plan::default(), Box::new(MemFiles::new()), Some(&file)).unwrap();
    (played.ledger, Store::open_file(&file, &Policy::default().store).unwrap(), home)
}

#[test]
fn a_request_that_is_too_long_is_compacted_and_sent_again_in_the_same_iteration() {
    let acts = OPEN.to_owned()
        + &long_turns(8, "")
        + "[[act]]\nturn = { say = \"One more.\", replies = [{ fault = \"context_length\" }, { say = \"Good.\" }], summary = [{ say = \"Parts were read.\" }] }\n\n";
    let ledger = played(
        "[policy.review]\nenabled = false\n[policy.compress]\ntail_min = 200\ntail_mode = \"legacy\"\ntail_rows = 4\nwindow = 20_000\nthreshold_floor = 0\n",
        &acts,
    );
    assert_eq!(compactions(&ledger).iter().filter(|done| done.committed).count(), 1);
    assert_eq!(exits(&ledger).last().unwrap(), "text_response");
    let ended = all(&ledger, |what| match what {
        What::TurnEnded(ended) => Some(ended.iterations),
        _ => None,
    });
    assert_eq!(ended.last(), Some(&1));
    let verdict = hermes_lab::laws::judge(&ledger);
    assert!(verdict.holds(), "{:?}", verdict.findings().collect::<Vec<_>>());
    // Where nothing is left to compact, the turn ends.
    let acts = OPEN.to_owned() + &turn("Hi.", r#"{ fault = "context_length" }"#);
    assert_eq!(exits(&played("", &acts)), ["compression_exhausted"]);
}

#[test]
fn a_pause_after_a_failed_summary_outlives_the_process() {
    let knobs = small_window(4_000) + "abort_on_summary_failure = true\n[policy.review]\nenabled = false\n";
    let again = "[[act]]\nopen = { name = \"s\", resume = true }\n\n";
    let tries = |between: &str| {
        let acts = OPEN.to_owned()
            + &long_turns(3, "{ fault = \"overloaded\" }")
            + between
            + &long_turns(1, "{ say = \"Parts were read.\" }");
        let ledger = played(&knobs, &acts);
        compactions(&ledger).iter().map(|done| done.committed).collect::<Vec<_>>()
    };
    assert_eq!(tries(""), [false]);
    assert_eq!(tries(again), [false]);
    let later = again.to_owned() + "[[act]]\nwait.minutes = 20\n\n";
    assert_eq!(tries(&later), [false, true]);
}

#[test]
fn a_summary_that_the_output_limit_cut_is_not_taken() {
    let knobs = small_window(4_000) + "[policy.review]\nenabled = false\n";
    let acts = OPEN.to_owned() + &long_turns(3, "{ say = \"half a\", finish = \"length\" }");
    let ledger = played(&knobs, &acts);
    assert!(compactions(&ledger).iter().all(|done| !done.committed));
    assert!(!compactions(&ledger).is_empty());
}

#[test]
fn compactions_that_help_do_not_trip_the_breaker_at_toy_scale() {
    let knobs = small_window(10_000) + "[policy.review]\nenabled = false\n";
    let acts = OPEN.to_owned() + &long_turns(30, "{ say = \"Parts were read.\" }");
    let ledger = played(&knobs, &acts);
    let done = compactions(&ledger);
    assert!(done.iter().filter(|done| done.committed).count() > 4, "{done:#?}");
}

#[test]
fn the_first_request_of_a_resumed_session_is_weighed_with_its_prompt() {
    let knobs = "[policy.review]\nenabled = false\n[policy.compress]\nwindow = 14_000\nthreshold_floor = 0\n\
                 tail_min = 1_000\n";
    let summary = "{ say = \"Parts were read.\" }";
    // Turns that ended before the first compaction.
    let first = |acts: &str| {
        let ledger = played(knobs, acts);
        let at = ledger.events.iter().position(|event| matches!(event.what, What::Compaction(_)))?;
        let ended = |event: &&Event| matches!(event.what, What::TurnEnded(_));
        u32::try_from(ledger.events[..at].iter().filter(ended).count()).ok()
    };
    let turns = first(&(OPEN.to_owned() + &long_turns(40, summary))).expect("a window that fills");
    let resumed = OPEN.to_owned()
        + &long_turns(turns, summary)
        + "[[act]]\nopen = { name = \"s\", resume = true }\n\n"
        + &long_turns(3, summary);
    assert_eq!(first(&resumed), Some(turns));
}

#[test]
fn hints_are_those_of_the_directory_that_the_session_was_opened_in() {
    let file = |path: &str, text: &str| format!("[[file]]\npath = \"{path}\"\ntext = \"{text}\"\n\n");
    let acts = file("app/lib/AGENTS.md", "the rules of app/lib")
        + &file("app/lib/a.txt", "a")
        + &file("lib/AGENTS.md", "the rules of lib")
        + "[[act]]\nopen = { name = \"s\", directory = \"app\" }\n\n"
        + &turn("Read.", r#"{ call = "read_file", args = { path = "lib/a.txt" } }, { say = "Done." }"#);
    let last = sent(&played("", &acts), Lane::Main).pop().unwrap();
    assert!(last.says("the rules of app/lib") && !last.says("the rules of lib"), "{:?}", last.texts());
}

#[test]
fn repeated_calls_are_stopped_where_nobody_watches_whatever_the_user_speaks_through() {
    let look = "[[command]]\nrun = \"look\"\nprints = \"same\"\n\n";
    let calls = r#"{ call = "terminal", args = { command = "look" }, times = 9 }, { say = "Nothing." }"#;
    let cron = format!(
        "{look}[[job]]\nname = \"j\"\nschedule = \"every 1h\"\nprompt = \"Look.\"\n\n[[act]]\nwait.hours = 2\n\n[[act]]\ntick.cron = [{calls}]\n"
    );
    assert_eq!(exits(&played("", &cron)), ["guardrail_halt"]);
    let child = format!(
        "{look}{OPEN}[[act]]\nturn = {{ say = \"Go.\", replies = [{{ call = \"delegate_task\", args = {{ goal = \"Look.\" }} }}, {{ say = \"Sent.\" }}, {{ say = \"Fine.\" }}], child = [{calls}] }}\n"
    );
    let ledger = played("[policy.turn]\nplatform = \"telegram\"\n", &child);
    let looked =
        all(&ledger, |what| matches!(what, What::ToolRan(ran) if &*ran.tool == "terminal").then_some(()));
    assert_eq!(looked.len(), 9);
}

#[test]
fn a_resumed_session_knows_the_day_on_which_it_began() {
    let knobs = small_window(4_000) + "[policy.review]\nenabled = false\n";
    let acts = OPEN.to_owned()
        + &long_turns(1, "{ say = \"Read.\" }")
        + "[[act]]\nwait.days = 3\n\n[[act]]\nopen = { name = \"s\", resume = true }\n\n"
        + &long_turns(4, "{ say = \"Read.\" }");
    let ledger = played(&knobs, &acts);
    assert!(compactions(&ledger).iter().any(|done| done.committed));
    let last = sent(&ledger, Lane::Main).pop().unwrap().system;
    let day = last.lines().find(|line| line.contains("Started:")).unwrap_or_else(|| panic!("{last}"));
    assert!(day.contains("September 1") || day.contains("2026-09-01"), "{day}");
}

#[test]
fn the_catalogue_knows_tool_sets_and_channel() {
    let skill = |name: &str, gate: &str| {
        format!(
            r#"{{ call = "skill_manage", args = {{ action = "create", name = "{name}", content = "---\nname: {name}\ndescription: Use when {name} is asked for.\nmetadata:\n  hermes:\n    {gate}\n---\n\n1. Do it.\n" }} }}, "#
        )
    };
    let replies = skill("needs-terminal", "requires_toolsets: [terminal]")
        + &skill("in-its-place", "fallback_for_toolsets: [terminal]")
        + &skill("elsewhere", "session_platforms: [telegram]")
        + r#"{ say = "Done." }"#;
    let acts = OPEN.to_owned()
        + &turn("Write.", &replies)
        + "[[act]]\nend.reason = \"new_session\"\n\n[[act]]\nopen.name = \"next\"\n\n"
        + &turn("Hi.", r#"{ say = "Hi." }"#);
    let ledger = played("[policy.review]\nenabled = false\n", &acts);
    let prompt = sent(&ledger, Lane::Main).pop().unwrap().system;
    let listed = ["needs-terminal", "in-its-place", "elsewhere"].map(|name| prompt.contains(name));
    assert_eq!(listed, [true, false, false]);
}

#[test]
fn a_result_that_was_put_aside_can_be_read_and_arguments_that_are_no_object_run_nothing() {
    let acts = "[[command]]\nrun = \"big\"\nprints = \"0123456789\\n\"\ntimes = 20_000\n\n".to_owned()
        + OPEN
        + &turn(
            "Run.",
            r#"{ calls = [{ tool = "terminal", id = "c1", args = { command = "big" } }] }, { call = "read_file", args = { path = "cache/spillover/c1.txt" } }, { calls = [{ tool = "terminal", raw = "[1]" }] }, { say = "Done." }"#,
        );
    let ledger = played("", &acts);
    let ran = all(&ledger, |what| match what {
        What::ToolRan(ran) => Some((ran.tool.to_string(), ran.ok, ran.result_chars > 200_000)),
        _ => None,
    });
    assert_eq!(ran, [("terminal".to_owned(), true, true), ("read_file".to_owned(), true, true)]);
    let refused = all(&ledger, |what| match what {
        What::ToolRefused(refused) => Some(refused.by.to_string()),
        _ => None,
    });
    assert_eq!(refused, ["arguments"]);
}

#[test]
fn a_prompt_that_cannot_be_stored_is_used_all_the_same() {
    let acts = OPEN.to_owned()
        + &turn("Hi.", r#"{ say = "Hi." }"#)
        + "[[fault]]\nact = 1\ndisk_full = { write = 2 }\n";
    let ledger = played("", &acts);
    assert_eq!(exits(&ledger), ["text_response"]);
    let why = all(&ledger, |what| match what {
        What::PromptReady(ready) => Some(ready.why.to_string()),
        _ => None,
    });
    assert_eq!(why, ["first"]);
}

#[test]
fn delegations_beyond_the_cap_are_dropped() {
    let call = |n: u32| format!(r#"{{ tool = "delegate_task", args = {{ goal = "g{n}" }} }}"#);
    let calls: Vec<String> = (1..=4).map(call).collect();
    let acts = format!(
        "{OPEN}[[act]]\nturn = {{ say = \"Go.\", replies = [{{ calls = [{}] }}, {{ say = \"Sent.\", times = 3 }}], child = [{{ say = \"Done.\", times = 2 }}] }}\n",
        calls.join(", ")
    );
    let ledger =
        played("[policy.delegate]\nmax_concurrent_children = 2\n[policy.review]\nenabled = false\n", &acts);
    let last = sent(&ledger, Lane::Main).pop().unwrap();
    let calls: usize =
        last.messages.iter().filter_map(|row| row["tool_calls"].as_array()).map(Vec::len).sum();
    assert_eq!(calls, 2);
}

#[test]
fn what_the_user_says_too_late_belongs_to_the_next_turn() {
    let acts = OPEN.to_owned()
        + "[[act]]\nturn = { say = \"Go.\", steer = \"And mind the dog.\", replies = [{ say = \"Gone.\" }] }\n\n"
        + &turn("Next.", r#"{ say = "Yes." }"#);
    let last = sent(&played("", &acts), Lane::Main).pop().unwrap();
    assert_eq!(last.texts().pop(), Some("And mind the dog.\n\nNext."));
}

#[test]
fn of_rows_with_the_same_words_a_compaction_carries_over_those_that_it_keeps() {
    let knobs = small_window(4_000) + "protect_first_n = 0\n[policy.review]\nenabled = false\n";
    let say = format!(
        "[[act]]\nturn = {{ say = \"Go on.\", times = 9, replies = [{{ say = \"{}\" }}], summary = [{{ say = \"It went on.\" }}] }}\n",
        "more words ".repeat(40)
    );
    let (ledger, store, _home) = store_of(&knobs, &(OPEN.to_owned() + &say));
    assert!(compactions(&ledger).iter().any(|done| done.committed));
    let rows = store.all_rows("s").unwrap();
    let mut summed = Vec::new();
    let mut hidden = Vec::new();
    for row in rows.into_iter().filter(|row| !row.active) {
        let (id, archived) = (row.id, row.is_archived());
        if row.into_row().content.flat() == "Go on." {
            if archived { summed.push(id) } else { hidden.push(id) }
        }
    }
    // The oldest is summed up and can still be found; hidden are originals of rows that go on as copies.
    assert!(summed[0] < hidden[0], "{summed:?}, {hidden:?}");
    let live = store.live_rows("s").unwrap().into_iter().map(|row| row.into_row().content.flat());
    assert_eq!(summed.len() + live.filter(|text| text == "Go on.").count(), 9);
}

#[test]
fn a_session_that_goes_on_is_open_and_a_reset_is_written_over_an_accident() {
    let hi = turn("Hi.", r#"{ say = "Hi." }"#);
    let end = |reason: &str| format!("[[act]]\nend = {{ session = \"s\", reason = \"{reason}\" }}\n\n");
    let reason = |acts: String| store_of("", &acts).1.session("s").unwrap().unwrap().end_reason;
    let gone = OPEN.to_owned() + &hi + &end("agent_close");
    assert_eq!(reason(gone.clone()).as_deref(), Some("agent_close"));
    assert_eq!(reason(gone.clone() + &end("session_reset")).as_deref(), Some("session_reset"));
    assert_eq!(reason(gone.clone() + "[[act]]\nopen = { name = \"s\", resume = true }\n\n" + &hi), None);
    let (ledger, _, _home) = store_of("", &(gone + &end("idle_timeout")));
    let ends = all(&ledger, |what| matches!(what, What::SessionEnded(_)).then_some(()));
    assert_eq!(ends.len(), 1, "a second end is none");
}

#[test]
fn a_rotation_is_tried_again_while_the_store_is_busy_and_ends_with_the_run() {
    let knobs = small_window(4_000) + "store = \"rotation\"\n[policy.review]\nenabled = false\n";
    for write in 1..=14 {
        let acts = OPEN.to_owned()
            + &long_turns(5, "{ say = \"Read.\" }")
            + &format!("[[fault]]\nact = 4\nbusy = {{ write = {write}, times = 2 }}\n");
        let ledger = played(&knobs, &acts);
        assert!(exits(&ledger).iter().all(|exit| exit == "text_response"), "busy at write {write}");
        let refused = compactions(&ledger).into_iter().find(|done| !done.committed);
        assert!(refused.is_none(), "busy at write {write}: {refused:?}");
        let verdict = hermes_lab::laws::judge(&ledger);
        // The window is so small that one compaction follows the other.
        let found: Vec<_> = verdict.findings().filter(|found| found.check != "L1.breaks-rare").collect();
        assert!(found.is_empty(), "busy at write {write}: {found:?}");
    }
}

#[test]
fn the_guard_asks_whoever_is_there() {
    let run = r#"{ call = "terminal", args = { command = "rm -r dist" } }, { say = "Done." }"#;
    let acts = OPEN.to_owned() + &turn("Clean.", run);
    let kind = |knobs: &str| decisions(&played(knobs, &acts)).pop().unwrap();
    assert_eq!(kind(""), "user_approved");
    assert_eq!(kind("[policy.turn]\nplatform = \"discord\"\n"), "user_approved");
    assert_eq!(
        kind("[policy.turn]\nplatform = \"discord\"\n[policy.guard]\nchat_listens = false\n"),
        "pending"
    );
    assert_eq!(kind("[policy.turn]\nplatform = \"webhook\"\n"), "unattended_denied");
    assert_eq!(
        kind("[policy.turn]\nplatform = \"webhook\"\n[policy.guard]\nplatform_policy = \"approve\"\n"),
        "passed"
    );
    assert_eq!(kind("[policy.guard]\nsingle_query = true\n"), "unattended_denied");
    let child = format!(
        "{OPEN}[[act]]\nturn = {{ say = \"Go.\", replies = [{{ call = \"delegate_task\", args = {{ goal = \"Clean.\" }} }}, {{ say = \"Sent.\" }}, {{ say = \"Fine.\" }}], child = [{run}] }}\n"
    );
    let kind = |knobs: &str| decisions(&played(knobs, &child)).pop().unwrap();
    assert_eq!(kind("[policy.guard]\nplatform_policy = \"approve\"\n"), "unattended_denied");
    assert_eq!(kind("[policy.guard]\nchild_policy = \"approve\"\n"), "passed");
}

#[test]
fn code_is_refused_as_a_whole_where_nobody_can_be_asked_and_a_container_with_the_host_in_it_is_no_island() {
    let job = "[[job]]\nname = \"j\"\nschedule = \"every 1h\"\nprompt = \"Look.\"\n\n[[act]]\nwait.hours = 2\n\n[[act]]\ntick.cron = [{ call = \"execute_code\", args = { code = \"print echo 1\" } }, { say = \"Done.\" }]\n";
    assert_eq!(decisions(&played("", job)), ["unattended_denied"]);
    assert_eq!(decisions(&played("[policy.guard]\ncron_policy = \"approve\"\n", job)), ["passed"]);
    let acts = OPEN.to_owned()
        + &turn("Go.", r#"{ call = "terminal", args = { command = "rm -rf /" } }, { say = "Done." }"#);
    let inside = "[policy.guard]\nbackend = \"docker\"\n";
    assert_eq!(decisions(&played(inside, &acts)), ["passed"]);
    let mounted = inside.to_owned() + "[policy.terminal]\nconfined = false\n";
    assert_eq!(decisions(&played(&mounted, &acts)), ["hardline"]);
}

#[test]
fn a_question_that_nobody_answers_takes_its_time() {
    let acts = OPEN.to_owned()
        + &turn("Clean.", r#"{ call = "terminal", args = { command = "rm -r dist" } }, { say = "Done." }"#);
    let ledger = played("[policy.guard]\nuser_answer = \"timeout\"\n", &acts);
    let at = |pick: fn(&What) -> bool| ledger.events.iter().find(|event| pick(&event.what)).unwrap().at;
    let asked = at(|what| matches!(what, What::Response(_)));
    assert_eq!(at(|what| matches!(what, What::GuardDecision(_))) - asked, 300_000);
}

#[test]
fn a_resume_of_more_rows_than_the_limit_is_refused() {
    let acts = OPEN.to_owned()
        + &turn("Hi.", r#"{ say = "Hi." }"#)
        + "[[act]]\nopen = { name = \"s\", resume = true }\n";
    let text = format!(
        "format = 1\nname = \"t\"\nstart = \"2026-09-01T09:00:00Z\"\n[policy.store]\nresume_rows_max = 1\n\n{acts}"
    );
    let scenario = scenario::load("t.toml", &text).unwrap();
    let refused = play_in(&scenario, &Plan::default(), Box::new(MemFiles::new()), None).unwrap_err();
    assert!(refused.to_string().contains('2') && refused.to_string().contains('1'), "{refused}");
}

#[test]
fn a_compaction_soon_after_a_prompt_that_was_lost_is_not_one_too_many() {
    let knobs = small_window(4_000) + "[policy.review]\nenabled = false\n";
    let summary = "{ say = \"Parts were read.\" }";
    let acts = OPEN.to_owned()
        + &long_turns(2, summary)
        + "[[act]]\nopen = { name = \"s\", resume = true }\n\n"
        + &long_turns(1, summary)
        + &turn("And now?", r#"{ say = "Now." }"#)
        + "[[fault]]\nact = 1\ndisk_full = { write = 2 }\n";
    let ledger = played(&knobs, &acts);
    assert_eq!(compactions(&ledger).iter().filter(|done| done.committed).count(), 1);
    let lost = all(&ledger, |what| {
        matches!(what, What::PromptReady(ready) if &*ready.why == "lost_row").then_some(())
    });
    assert_eq!(lost.len(), 1);
    let verdict = hermes_lab::laws::judge(&ledger);
    assert!(verdict.holds(), "{:?}", verdict.findings().collect::<Vec<_>>());
}

#[test]
fn a_job_whose_model_cannot_be_reached_is_tried_again_within_minutes() {
    let job = |name: &str, schedule: &str| {
        format!("[[job]]\nname = \"{name}\"\nschedule = \"{schedule}\"\nprompt = \"Look.\"\n\n")
    };
    let tick = |cron: &str| format!("[[act]]\ntick.cron = [{cron}]\n\n");
    let lost = r#"{ fault = "timeout", times = 3 }"#;
    let acts = job("daily", "every 1440m")
        + "[[act]]\nwait.minutes = 1441\n\n"
        + &tick(lost)
        + "[[act]]\nwait.minutes = 6\n\n"
        + &tick(r#"{ say = "All is well." }"#);
    let outcomes = all(&played("", &acts), |what| match what {
        What::CronFired(fired) => Some(fired.outcome.to_string()),
        _ => None,
    });
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
}

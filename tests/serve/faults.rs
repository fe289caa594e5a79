//! Scripted faults as clients meet them, and that what comes after a fault is the next line of the script.
#![expect(clippy::disallowed_methods, reason = "patience is measured in real time")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{Answer, End, Mock, one_turn, read, request};

/// Asks three times the same: the answers, and the end of the run.
fn asked(replies: &str, protocol: Protocol, stream: bool, times: usize) -> (Vec<Answer>, End) {
    let mock = Mock::start(&one_turn(replies), &[]);
    let mut agent = Agent::new(protocol);
    agent.stream = stream;
    agent.user("Go on.");
    let answers = (0..times).map(|_| agent.ask(&mock)).collect();
    (answers, mock.stop())
}

#[test]
fn errors_carry_status_and_shape_of_their_protocol_and_the_next_attempt_succeeds() {
    for (fault, status, openai, anthropic) in [
        ("rate_limited", 429, "rate_limit_exceeded", "rate_limit_error"),
        ("server_error", 500, "server_error", "api_error"),
        ("overloaded", 529, "overloaded", "overloaded_error"),
        ("context_length", 400, "context_length_exceeded", "invalid_request_error"),
        ("refused", 403, "content_policy_violation", "permission_error"),
        ("unauthorized", 401, "invalid_api_key", "authentication_error"),
    ] {
        let replies = format!("{{ fault = \"{fault}\" }}, {{ say = \"Done.\" }}");
        for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
            let (answers, end) = asked(&replies, protocol, false, 3);
            let codes: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            assert_eq!(codes, [status, 200, 200], "{fault} {protocol:?}");
            let error = answers[0].json();
            if protocol == Protocol::Messages {
                assert_eq!(error["type"], "error");
                assert_eq!(error["error"]["type"], anthropic);
            } else {
                assert_eq!(error["error"]["code"], openai);
                assert!(error["error"].as_object().unwrap().contains_key("param"));
            }
            assert!(error["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
            assert_eq!(end.code, 0, "a fault of the script is no finding: {}", end.stdout);
            assert!(end.stdout.contains("1 faults of the script"), "{}", end.stdout);
            assert!(end.ledger.contains(&format!("\"fault\":{{\"kind\":\"{fault}\"")));
        }
    }
}

#[test]
fn a_rate_limit_says_how_long_to_wait_and_a_window_names_its_limit() {
    let (answers, _) =
        asked("{ fault = \"rate_limited\", retry_after = 7 }, { say = \"x\" }", Protocol::Chat, false, 1);
    assert_eq!(answers[0].header("retry-after"), Some("7"));
    let (answers, _) = asked(
        "{ fault = \"context_length\", prompt_tokens = 70000 }, { say = \"x\" }",
        Protocol::Chat,
        false,
        1,
    );
    let message = answers[0].json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("maximum context length is 70000 tokens"), "{message}");
}

#[test]
fn nobody_pays_for_what_failed() {
    let mock = Mock::start(&one_turn("{ fault = \"overloaded\" }, { say = \"Done.\" }"), &[]);
    let mut agent = Agent::new(Protocol::Messages);
    agent.system = "The lamp is lit at dusk and put out at dawn. ".repeat(300);
    agent.user("Go on.");
    agent.ask(&mock);
    assert_eq!(mock.get("/_lab/report").json()["audit"]["summary"]["tokens"]["prompt"], 0);
    let usage = agent.ask(&mock).json()["usage"].clone();
    let report = mock.get("/_lab/report").json();
    assert_eq!(report["audit"]["summary"]["tokens"]["prompt"], usage["input_tokens"]);
    assert_eq!(report["tokens"]["fresh"], usage["input_tokens"]);
    mock.stop();
}

#[test]
fn several_faults_in_a_row_are_met_one_by_one() {
    let replies =
        "{ fault = \"rate_limited\", times = 2 }, { fault = \"server_error\" }, { say = \"Done.\" }";
    let (answers, _) = asked(replies, Protocol::Chat, false, 5);
    let codes: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(codes, [429, 429, 500, 200, 200]);
    assert_eq!(answers[3].json()["id"], answers[4].json()["id"]);
}

#[test]
fn a_dropped_stream_breaks_in_its_middle() {
    let replies = "{ say = \"One two three four five six seven eight nine ten.\", fault = \"dropped\", after_chars = 24 }, \
                   { say = \"Whole.\" }";
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        let (answers, end) = asked(replies, protocol, true, 2);
        assert_eq!(answers[0].status, 200);
        assert!(!answers[0].whole, "{protocol:?}: the connection broke");
        assert!(answers[0].body.contains("One two three four five "), "{}", answers[0].body);
        assert!(!answers[0].body.contains("seven"), "{}", answers[0].body);
        for word in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!answers[0].body.contains(word));
        }
        assert!(answers[1].whole && answers[1].body.contains("Whole."));
        assert_eq!(end.code, 0);
    }
}

#[test]
fn a_dropped_plain_answer_is_cut_off() {
    let (answers, _) =
        asked("{ say = \"x\", fault = \"dropped\" }, { say = \"y\" }", Protocol::Chat, false, 2);
    assert!(!answers[0].whole && answers[1].whole);
}

#[test]
fn slow_pieces_come_one_by_one() {
    let begun = Instant::now();
    let replies = "{ say = \"One two three four five six seven eight nine ten.\", pause_ms = 60 }";
    let (answers, _) = asked(replies, Protocol::Chat, true, 1);
    // Three pieces of 24 bytes at most.
    assert!(begun.elapsed() >= Duration::from_millis(180));
    assert!(answers[0].whole && answers[0].body.contains("[DONE]"));
}

#[test]
fn a_hanging_provider_answers_nobody_and_holds_up_nobody_else() {
    let mock = Mock::start(&one_turn("{ fault = \"timeout\", hold_seconds = 1 }, { say = \"Done.\" }"), &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("Go on.");
    let mut waiting = mock.connect();
    let body = agent.body().to_string();
    let bytes =
        request("POST", "/v1/chat/completions", "content-type: application/json\r\n", body.as_bytes());
    std::io::Write::write_all(&mut waiting, &bytes).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| mock.get("/v1/models").status);
        assert_eq!(other.join().unwrap(), 200);
    });
    let held = read(&mut waiting);
    assert_eq!((held.status, held.whole), (0, false), "no answer, and then the end");
    assert_eq!(agent.ask(&mock).status, 200);
    assert_eq!(mock.stop().code, 0);
}

#[test]
fn malformed_arguments_reach_the_client_as_they_are_and_are_not_repeated() {
    let replies = "{ calls = [{ tool = \"terminal\", raw = '{\"command\": \"ls' }] }, \
                   { call = \"terminal\", args = { command = \"ls\" } }, { say = \"Done.\" }";
    let (answers, _) = asked(replies, Protocol::Chat, false, 2);
    let arguments = |answer: &Answer| {
        answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].clone()
    };
    assert_eq!(arguments(&answers[0]), json!("{\"command\": \"ls"));
    assert_eq!(arguments(&answers[1]), json!("{\"command\":\"ls\"}"));
    let (answers, _) = asked(replies, Protocol::Messages, true, 1);
    assert!(answers[0].body.contains(r#""partial_json":"{\"command\": \"ls""#), "{}", answers[0].body);
}

#[test]
fn an_empty_reply_is_given_once_whether_the_client_asks_again_or_adds_to_its_history() {
    let replies = "{ say = \"\" }, { say = \"Done.\" }";
    let (answers, _) = asked(replies, Protocol::Chat, false, 2);
    let content = |answer: &Answer| answer.json()["choices"][0]["message"]["content"].clone();
    assert_eq!((content(&answers[0]), content(&answers[1])), (json!(""), json!("Done.")));
    // With a scaffold: the empty answer and a nudge stand in the history.
    let mock = Mock::start(&one_turn(replies), &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("Go on.");
    agent.take(&agent.ask(&mock));
    agent.history.pop();
    agent.history.push(json!({"role": "assistant", "content": "(empty)"}));
    agent.user("You answered nothing. Please continue.");
    assert_eq!(agent.words(&agent.ask(&mock)), "Done.");
    mock.stop();
}

#[test]
fn a_truncated_reply_says_so_and_its_continuation_follows() {
    let replies = "{ say = \"The first half\", finish = \"length\" }, { say = \" and the second.\" }";
    let mock = Mock::start(&one_turn(replies), &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("Go on.");
    let first = agent.ask(&mock);
    assert_eq!(first.json()["choices"][0]["finish_reason"], "length");
    agent.take(&first);
    agent.user("Continue where you stopped.");
    assert_eq!(agent.words(&agent.ask(&mock)), " and the second.");
    mock.stop();
    let (answers, _) = asked(replies, Protocol::Messages, false, 1);
    assert_eq!(answers[0].json()["stop_reason"], "max_tokens");
    let (answers, _) = asked(replies, Protocol::Responses, false, 1);
    assert_eq!(answers[0].json()["status"], "incomplete");
}

#[test]
fn usage_can_be_scripted_and_the_ledger_keeps_what_was_counted() {
    let (answers, end) = asked("{ say = \"x\", prompt_tokens = 60000 }", Protocol::Chat, false, 1);
    assert_eq!(answers[0].json()["usage"]["prompt_tokens"], 60_000);
    assert_eq!(end.code, 0, "{}", end.stdout);
    assert!(!end.ledger.contains("\"uncached\":60000"));
}

#[test]
fn details_of_a_fault_stand_with_that_fault_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    let text = one_turn(
        "{ say = \"x\", retry_after = 1 }, { fault = \"dropd\" }, { fault = \"timeout\", after_chars = 3 }",
    );
    #[expect(clippy::disallowed_methods, reason = "a file for the command to read")]
    std::fs::write(&path, text).unwrap();
    let error = crate::support::refused(&["scenario", "check", path.to_str().unwrap()]);
    assert!(
        error.contains("`retry_after` goes with the fault `rate_limited` or `overloaded` only"),
        "{error}"
    );
    assert!(error.contains("unknown fault `dropd`, did you mean `dropped`?"), "{error}");
    assert!(error.contains("`after_chars` goes with the fault `dropped` only"), "{error}");
}

/// A turn of two lines, in the third act, with faults on schedule.
fn on_schedule(faults: &str) -> String {
    format!(
        "format = 1\nname = \"one\"\nstart = \"2026-09-01T09:00:00Z\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n\
         wait.minutes = 1\n[[act]]\n[act.turn]\nsay = \"Go on.\"\nreplies = [{{ call = \"terminal\", args = {{ \
         command = \"ls\" }} }}, {{ say = \"Done, all of it, from the first to the last.\" }}]\n{faults}"
    )
}

#[test]
fn a_scheduled_fault_meets_the_request_that_it_names_and_no_other() {
    let fault = "[[fault]]\nact = 3\nprovider = { fault = \"overloaded\", request = 2, times = 2 }\n";
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        let mock = Mock::start(&on_schedule(fault), &[]);
        let mut agent = Agent::new(protocol);
        agent.user("Go on.");
        assert_eq!(agent.ask(&mock).status, 200);
        // The same request again: the second, the third, and then one that passes.
        let again: Vec<u16> = (0..3).map(|_| agent.ask(&mock).status).collect();
        assert_eq!(again, [529, 529, 200], "{protocol:?}");
        let end = mock.stop();
        assert!(end.stdout.contains("2 faults of the script"), "{}", end.stdout);
        assert_eq!(end.code, 0, "{}", end.stdout);
    }
}

#[test]
fn a_scheduled_drop_cuts_the_stream_and_keeps_the_line_for_the_next_attempt() {
    let fault = "[[fault]]\nact = 3\nprovider = { fault = \"dropped\", request = 1 }\n";
    let mock = Mock::start(&on_schedule(fault), &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.stream = true;
    agent.user("Go on.");
    let (cut, whole) = (agent.ask(&mock), agent.ask(&mock));
    assert_eq!((cut.status, cut.whole, whole.status, whole.whole), (200, false, 200, true));
    assert!(whole.body.contains("terminal"), "{}", whole.body);
    mock.stop();
}

#[test]
fn a_fault_that_a_provider_cannot_have_is_named_and_left_out() {
    let mock = Mock::start(&on_schedule("[[fault]]\nact = 3\nclock.jump_minutes = -90\n"), &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("Go on.");
    assert_eq!(agent.ask(&mock).status, 200);
    let end = mock.stop();
    assert!(end.stderr.contains("1 scheduled faults are none of a provider's"), "{}", end.stderr);
}

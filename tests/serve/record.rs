//! Recording through the proxy, and playing back what was recorded.

use serde_json::{Value, json};

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{End, Mock, TWO_TURNS, one_turn, request};
use crate::support::refused;

const ALL: [Protocol; 3] = [Protocol::Chat, Protocol::Messages, Protocol::Responses];

/// A proxy in front of another server.
fn proxy(upstream: &Mock, arguments: &[&str]) -> Mock {
    let url = format!("http://{}", upstream.address);
    let fixed = ["record", "--upstream", &url, "--cassette", "cassette.jsonl"];
    Mock::command("empty", "", &[&fixed, arguments].concat())
}

fn played(mock: &Mock, protocol: Protocol, stream: bool) -> Vec<String> {
    let mut agent = Agent::new(protocol);
    let first = agent.turn(mock, "What is in the folder?");
    agent.user("Thank you.");
    agent.stream = stream;
    vec![first, agent.ask(mock).body]
}

fn recorded(protocol: Protocol, arguments: &[&str]) -> (Vec<String>, End) {
    let upstream = Mock::start(TWO_TURNS, &[]);
    let proxy = proxy(&upstream, arguments);
    let said = played(&proxy, protocol, true);
    let end = proxy.stop();
    assert_eq!(end.code, 0, "{}", end.stdout);
    assert!(end.stdout.contains("3 exchanges; 0 other requests passed on, 0 failed"), "{}", end.stdout);
    upstream.stop();
    (said, end)
}

fn replaying(cassette: &str) -> Mock {
    let arguments = ["serve", "./cassette.jsonl", "--clock", "virtual", "--ledger", "ledger.jsonl"];
    Mock::command("cassette.jsonl", cassette, &arguments)
}

#[test]
fn what_was_recorded_is_played_back_word_for_word_with_its_usage() {
    for protocol in ALL {
        let (said, end) = recorded(protocol, &[]);
        let mock = replaying(&end.file("cassette.jsonl"));
        assert_eq!(played(&mock, protocol, true), said, "{protocol:?}");
        // And once more: the last recording of a request stays.
        assert_eq!(played(&mock, protocol, true), said, "{protocol:?}");
        let end = mock.stop();
        assert_eq!(end.code, 0, "{}", end.stdout);
        assert!(end.ledger.contains("\"uncached\":"), "usage as recorded");
    }
}

#[test]
fn a_request_that_was_not_recorded_is_told_what_differs() {
    let (_, end) = recorded(Protocol::Messages, &[]);
    let mock = replaying(&end.file("cassette.jsonl"));
    let mut agent = Agent::new(Protocol::Messages);
    agent.system = agent.system.replace("careful", "careless");
    agent.user("What is in the folder?");
    let answer = agent.ask(&mock);
    assert_eq!(answer.status, 400);
    let error = answer.json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the nearest is request 1, from which it differs at /system: byte 14")
            && message.contains("was `You are a careful")
            && message.contains("is `You are a careless"),
        "{message}"
    );
    // Markers move and are no difference.
    let mut marked = Agent::new(Protocol::Messages);
    marked.user("What is in the folder?");
    let mut body = marked.body();
    body["system"] = json!([{"type": "text", "text": marked.system, "cache_control": {"type": "ephemeral"}}]);
    body["metadata"] = json!({"user_id": "somebody"});
    assert_eq!(mock.messages(&body).status, 200);
    let other = mock.chat(&json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}));
    assert!(other.body.contains("holds no request to /v1/chat/completions"), "{}", other.body);
    assert_eq!(mock.stop().code, 1, "a mismatch is a finding");
}

#[test]
fn hashed_bodies_say_nothing_and_still_match() {
    let (said, end) = recorded(Protocol::Chat, &["--hash-bodies"]);
    let cassette = end.file("cassette.jsonl");
    assert!(!cassette.contains("lighthouse") && !cassette.contains("What is in the folder?"), "{cassette}");
    let mock = replaying(&cassette);
    assert_eq!(played(&mock, Protocol::Chat, true), said);
    let mut agent = Agent::new(Protocol::Chat);
    agent.system.push('!');
    agent.user("What is in the folder?");
    let message = agent.ask(&mock).body;
    assert!(message.contains("request 1, from which it differs at /messages/0"), "{message}");
    mock.stop();
}

#[test]
fn keys_go_upstream_and_into_no_cassette() {
    let upstream = Mock::start(TWO_TURNS, &[]);
    let proxy = proxy(&upstream, &[]);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Thank you."}]}).to_string();
    let headers =
        "content-type: application/json\r\nauthorization: Bearer sk-secret-1\r\nx-api-key: sk-secret-2\r\n";
    assert_eq!(proxy.raw(&request("POST", "/v1/chat/completions", headers, body.as_bytes())).status, 200);
    assert_eq!(proxy.get("/v1/models").json()["data"][0]["id"], "mock-model");
    let end = proxy.stop();
    assert!(end.stdout.contains("1 exchanges; 1 other requests passed on"), "{}", end.stdout);
    let cassette = end.file("cassette.jsonl");
    for text in [&cassette, &end.stdout, &end.stderr] {
        assert!(!text.contains("sk-secret"), "{text}");
    }
    let exchange: Value = serde_json::from_str(cassette.lines().nth(1).unwrap()).unwrap();
    assert_eq!(exchange["usage"]["completion_tokens"], 4);
    assert_eq!((&exchange["status"], &exchange["path"]), (&json!(200), &json!("/v1/chat/completions")));
    upstream.stop();
}

#[test]
fn errors_and_broken_streams_are_recorded_and_happen_again() {
    let scenario = one_turn(
        "{ fault = \"rate_limited\", retry_after = 3 }, { say = \"One two three four five six seven eight.\", \
         fault = \"dropped\" }, { say = \"Done.\" }",
    );
    let upstream = Mock::start(&scenario, &[]);
    let proxy = proxy(&upstream, &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.stream = true;
    agent.user("Go on.");
    let seen = |mock: &Mock| {
        let answers: Vec<_> = (0..3).map(|_| agent.ask(mock)).collect();
        let wait = answers[0].header("retry-after").map(str::to_owned);
        (wait, answers.iter().map(|answer| (answer.status, answer.whole)).collect::<Vec<_>>())
    };
    let first = seen(&proxy);
    assert_eq!(first, (Some("3".to_owned()), vec![(429, true), (200, false), (200, true)]));
    let end = proxy.stop();
    upstream.stop();
    let mock = replaying(&end.file("cassette.jsonl"));
    assert_eq!(seen(&mock), first);
    mock.stop();
}

#[test]
fn a_cassette_is_a_log_that_an_audit_reads() {
    let (_, end) = recorded(Protocol::Messages, &[]);
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("cassette.jsonl");
    #[expect(clippy::disallowed_methods, reason = "a file for the command to read")]
    std::fs::write(&path, end.file("cassette.jsonl")).unwrap();
    let output = crate::support::lab(&["audit", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("3 requests in 1 conversation") && text.contains("as billed"), "{text}");
    assert!(!text.contains("unreadable"), "its header is no request: {text}");
}

#[test]
fn a_provider_that_is_not_there_is_named() {
    let proxy = Mock::command("empty", "", &["record", "--upstream", "http://127.0.0.1:1/v1"]);
    let answer = proxy.chat(&json!({"model": "m", "messages": []}));
    assert_eq!((answer.status, answer.json()["error"]["code"].clone()), (502, json!("upstream_unreachable")));
    assert_eq!(proxy.stop().code, 1);
    assert!(refused(&["record", "--upstream", "ftp://example"]).contains("expected an address such as"));
    assert!(refused(&["serve", "./none.jsonl"]).contains("there is no such file"));
}

//! Clients that do not behave: clean errors, bounded patience, and a ledger that stays whole.
#![expect(clippy::disallowed_methods, reason = "patience is measured in real time")]

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{Mock, TWO_TURNS, read, request};

/// The server still does its work, and its ledger is whole.
fn unharmed(mock: Mock) -> String {
    let mut agent = Agent::new(Protocol::Chat);
    assert_eq!(agent.turn(&mock, "What is in the folder?"), "Two files: a.txt and b.txt.");
    let end = mock.stop();
    let ledger = hermes_lab::ledger::read("ledger.jsonl", &end.ledger).expect("a whole ledger");
    assert!(hermes_lab::laws::judge(&ledger).holds());
    assert!(!end.stderr.contains("panicked"), "{}", end.stderr);
    end.stdout
}

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn bodies_that_are_no_json_get_an_error_that_says_so() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}",
        b"{\"model\":\"m\",\"messages\":{}}",
        b"{\"model\":\"m\",\"messages\":[1,2]}",
        b"\xff\xfe\x00",
        b"{\"model\":1,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
    ];
    for body in bodies {
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/messages/count_tokens"] {
            let answer = mock.raw(&request("POST", path, JSON, body));
            let shown = String::from_utf8_lossy(body);
            let counted = path.ends_with("count_tokens") && answer.status == 200;
            assert!(counted || (400..500).contains(&answer.status), "{path} {shown}: {}", answer.status);
            assert!(counted || answer.json()["error"]["message"].is_string());
        }
    }
    let deep = format!("{{\"model\":\"m\",\"messages\":{}", "[".repeat(100_000));
    assert_eq!(mock.post("/v1/chat/completions", &deep).status, 400);
    unharmed(mock);
}

#[test]
fn wrong_types_methods_and_encodings_are_named() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let path = "/v1/chat/completions";
    let ask = |headers: &str| mock.raw(&request("POST", path, headers, b"{}")).status;
    assert_eq!(ask("content-type: text/plain\r\n"), 415);
    assert_eq!(ask("content-type: application/json; charset=utf-8\r\n"), 400);
    assert_eq!(ask("content-type: application/json\r\ncontent-encoding: gzip\r\n"), 415);
    assert_eq!(mock.get(path).status, 405);
    assert_eq!(mock.raw(&request("DELETE", path, "", b"")).status, 405);
    assert_eq!(mock.raw(b"GARBAGE\r\n\r\n").status, 400);
    assert_eq!(mock.raw(b"GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n").status, 400);
    unharmed(mock);
}

#[test]
fn a_body_above_the_limit_is_refused_before_it_is_read() {
    let mock = Mock::start(TWO_TURNS, &["--body-max", "20000"]);
    let head = |length: &str| format!("POST /v1/messages HTTP/1.1\r\nhost: lab\r\n{JSON}{length}\r\n\r\n");
    let announced = mock.raw(head("content-length: 99999999999").as_bytes());
    assert_eq!(announced.status, 413);
    assert_eq!(announced.json()["error"]["type"], "request_too_large");
    // One that does not say how long it is.
    let mut stream = mock.connect();
    stream.write_all(head("transfer-encoding: chunked").as_bytes()).unwrap();
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    for _ in 0..3 {
        let _ = stream.write_all(chunk.as_bytes());
    }
    assert_eq!(read(&mut stream).status, 413);
    unharmed(mock);
}

#[test]
fn nothing_from_a_request_gets_into_the_headers_of_an_answer() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let body = r#"{"model":"m\r\nx-evil: 1","messages":[{"role":"user","content":"Thank you."}]}"#;
    let answer = mock.post("/v1/chat/completions", body);
    assert_eq!((answer.status, answer.header("x-evil")), (200, None));
    let answer = mock.get("/v1/models/a%0d%0ax-evil:%201");
    assert_eq!(answer.header("x-evil"), None);
    unharmed(mock);
}

#[test]
fn ids_from_elsewhere_are_ids_like_any_other() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let huge = u64::MAX;
    let ids = [
        "call_main-t9-r0-c0".to_owned(),
        format!("call_main-t{huge}-r{huge}-c{huge}"),
        format!("call_child-t1-k{huge}-r0-c0"),
        "call_main-t1-r7".to_owned(),
        "_-".to_owned(),
        String::new(),
    ];
    for id in ids {
        for say in ["What is in the folder?", "Something else."] {
            let call =
                json!({"id": id, "type": "function", "function": {"name": "terminal", "arguments": "{}"}});
            let messages = json!([{"role": "user", "content": say},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": id, "content": "x"}]);
            let answer = mock.chat(&json!({"model": "m", "messages": messages}));
            assert!(
                answer.status == 200 || answer.json()["error"]["code"] == "script_exhausted",
                "{id} {say}"
            );
        }
    }
    assert!(!mock.stop().stderr.contains("panicked"));
}

#[test]
fn half_a_request_is_waited_for_only_so_long() {
    let mock = Mock::start(TWO_TURNS, &["--head-timeout", "1", "--body-timeout", "1"]);
    let begun = Instant::now();
    let mut slow_head = mock.connect();
    slow_head.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: l").unwrap();
    let mut slow_body = mock.connect();
    slow_body
        .write_all(
            format!("POST /v1/messages HTTP/1.1\r\nhost: lab\r\n{JSON}content-length: 100\r\n\r\n{{")
                .as_bytes(),
        )
        .unwrap();
    let mut silent = mock.connect();
    assert_eq!(read(&mut slow_body).status, 408);
    assert!(!read(&mut slow_head).whole || begun.elapsed() < Duration::from_secs(10));
    read(&mut silent);
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody waits for ever");
    // Gone in the middle of a body.
    let mut gone = mock.connect();
    gone.write_all(
        format!("POST /v1/messages HTTP/1.1\r\nhost: lab\r\n{JSON}content-length: 100\r\n\r\n{{").as_bytes(),
    )
    .unwrap();
    drop(gone);
    unharmed(mock);
}

#[test]
fn idle_connections_beyond_the_limit_are_turned_away_and_the_others_served() {
    let mock = Mock::start(TWO_TURNS, &["--connections-max", "50", "--head-timeout", "3"]);
    let idle: Vec<TcpStream> = (0..50).map(|_| mock.connect()).collect();
    // They are taken in one by one; then there is no room.
    let deadline = Instant::now() + Duration::from_secs(5);
    while mock.get("/v1/models").status != 503 {
        assert!(Instant::now() < deadline, "the limit is never reached");
    }
    drop(idle);
    let deadline = Instant::now() + Duration::from_secs(10);
    while mock.get("/v1/models").status != 200 {
        assert!(Instant::now() < deadline, "no room again");
        std::thread::yield_now();
    }
    unharmed(mock);
}

#[test]
fn a_thousand_connections_that_say_nothing_harm_nobody() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let mut idle = Vec::new();
    for _ in 0..900 {
        // The test's own limit of open files may be lower.
        let Ok(stream) = TcpStream::connect(&mock.address) else { break };
        idle.push(stream);
    }
    assert!(idle.len() > 200);
    let mut agent = Agent::new(Protocol::Chat);
    assert_eq!(agent.turn(&mock, "What is in the folder?"), "Two files: a.txt and b.txt.");
    drop(idle);
    unharmed(mock);
}

#[test]
fn one_connection_serves_many_requests() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("Thank you.");
    let body = agent.body().to_string();
    let one = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\n{JSON}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = mock.connect();
    for _ in 0..9 {
        stream.write_all(one.as_bytes()).unwrap();
    }
    stream.write_all(&request("GET", "/v1/models", "", b"")).unwrap();
    // Answers come in order; the reader stops at the first, the rest stands behind it.
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut all).unwrap();
    let all = String::from_utf8(all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 10);
    assert_eq!(all.matches("You are welcome.").count(), 9);
    unharmed(mock);
}

//! Whole runs: the same twice, the ledger on disk, ends by signals, keys, bad input.

use serde_json::json;

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{End, Mock, TWO_TURNS, request};
use crate::support::refused;

fn played(protocol: Protocol) -> End {
    let mock = Mock::start(TWO_TURNS, &[]);
    let mut agent = Agent::new(protocol);
    agent.turn(&mock, "What is in the folder?");
    agent.turn(&mock, "Thank you.");
    mock.stop()
}

#[test]
fn two_runs_give_the_same_ledger_byte_for_byte() {
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        let (first, second) = (played(protocol), played(protocol));
        assert!(first.ledger.lines().count() > 8);
        assert_eq!(first.ledger, second.ledger, "{protocol:?}");
        assert_eq!(first.stdout, second.stdout);
    }
}

#[test]
fn the_ledger_on_disk_is_the_one_that_was_judged() {
    let end = played(Protocol::Messages);
    let ledger = hermes_lab::ledger::read("ledger.jsonl", &end.ledger).unwrap();
    assert!(end.stdout.contains(&ledger.digest()[..16]), "{}", end.stdout);
    let verdict = hermes_lab::laws::judge(&ledger);
    assert!(verdict.holds());
    for check in ["L1.prefix-extends", "L1.honest", "L1.usage-adds-up", "L4.no-orphans", "L4.no-unanswered"] {
        assert!(verdict.examined(check) > 0, "{check} looked at nothing");
    }
}

#[test]
fn a_summary_as_a_person_sees_it() {
    let end = played(Protocol::Chat);
    let ledger = hermes_lab::ledger::read("ledger.jsonl", &end.ledger).unwrap();
    // The digest depends on every knob that there is.
    insta::assert_snapshot!(end.stdout.replace(&ledger.digest()[..16], "DIGEST"));
}

#[test]
fn ctrl_c_ends_a_run_as_well() {
    let mock = Mock::start(TWO_TURNS, &["--json"]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.turn(&mock, "What is in the folder?");
    let end = mock.signal("INT");
    assert_eq!(end.code, 0);
    let report: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!((&report["schema"], &report["requests"]), (&json!("hermes-lab.serve/1"), &json!(2)));
    assert_eq!(report["holds"], true);
    assert!(report["audit"]["summary"]["requests"] == 2);
}

#[test]
fn a_prefix_that_changes_is_told_at_once_and_again_at_the_end() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.turn(&mock, "What is in the folder?");
    agent.system.push_str(" It is 09:15 now.");
    agent.turn(&mock, "Thank you.");
    let report = mock.get("/_lab/report").json();
    assert_eq!(report["findings"][0]["check"], "L1.prefix-extends");
    let page = mock.raw(&request("GET", "/_lab/report", "accept: text/html\r\n", b""));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.body.contains("<html"), "a page");
    let end = mock.stop();
    assert_eq!(end.code, 1);
    for text in [&end.stdout, &end.stderr] {
        assert!(text.contains("L1.prefix-extends") && text.contains("09:15"), "{text}");
    }
}

#[test]
fn a_compaction_is_a_planned_break() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let mut agent = Agent::new(Protocol::Chat);
    for turn in 0..6 {
        agent.user(&format!(
            "Tell me the story number {turn} of the light and of the sea, with every ship in it."
        ));
        agent.history.push(json!({"role": "assistant", "content": format!("Story {turn}: {}", "a ship came by. ".repeat(30))}));
    }
    agent.turn(&mock, "What is in the folder?");
    let tail = agent.history.split_off(agent.history.len() - 4);
    agent.history = vec![
        json!({"role": "user", "content": "[CONTEXT COMPACTION] Summary of the conversation: stories were told."}),
    ];
    agent.history.push(json!({"role": "assistant", "content": "Understood."}));
    agent.history.extend(tail);
    agent.turn(&mock, "Thank you.");
    let end = mock.stop();
    assert!(end.ledger.contains("\"compaction\":{\"committed\":true"), "{}", end.stdout);
    assert_eq!(end.code, 0, "{}", end.stdout);
}

#[test]
fn two_conversations_that_begin_alike_are_two() {
    let mock = Mock::start("format = 1\nname = \"any\"\n[[rule]]\nreply.say = \"ok\"\n", &[]);
    for number in 0..5 {
        let mut agent = Agent::new(Protocol::Chat);
        agent.turn(
            &mock,
            &format!("Question number {number} about the light of the tower that stands in the sea"),
        );
        agent.turn(&mock, "And then?");
    }
    let end = mock.stop();
    assert_eq!(end.code, 0, "{}", end.stdout);
    assert_eq!(end.ledger.matches("\"session_started\"").count(), 5);
}

#[test]
fn keys_are_written_nowhere() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Thank you."}]}).to_string();
    let headers = "content-type: application/json\r\nauthorization: Bearer sk-secret-1\r\nx-api-key: sk-secret-2\r\n\
                   cookie: sk-secret-3\r\n";
    assert_eq!(mock.raw(&request("POST", "/v1/chat/completions", headers, body.as_bytes())).status, 200);
    let report = mock.get("/_lab/report").body;
    let end = mock.stop();
    for text in [&end.ledger, &end.stdout, &end.stderr, &report] {
        assert!(!text.contains("sk-secret"), "{text}");
    }
}

#[test]
fn bad_input_is_named_before_anything_listens() {
    let unknown = refused(&["serve", "sed"]);
    assert!(unknown.contains("did you mean `seed`?"), "{unknown}");
    let model = refused(&["serve", "seed", "--provider", "antropic"]);
    assert!(model.contains("did you mean `anthropic`?"), "{model}");
    refused(&["serve", "seed", "--clock", "sundial"]);
    refused(&["serve", "seed", "--host", "192.0.2.1"]);
    let ledger = refused(&["serve", "seed", "--ledger", "/no/such/folder/l.jsonl"]);
    assert!(ledger.contains("cannot be written"), "{ledger}");
}

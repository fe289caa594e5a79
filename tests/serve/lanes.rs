//! Whose request is it? Told from its content, whatever comes first.

use serde_json::json;

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::Mock;

const LANES: &str = r#"
format = 1
name = "lanes"
start = "2026-09-01T09:00:00Z"
[[act]]
open.name = "s1"
[[act]]
[act.turn]
say = "Deploy the site."
replies = [
  { call = "delegate_task", args = { tasks = [{ goal = "check the north light" }, { goal = "check the south light" }] } },
  { say = "It is deployed." },
]
review = [{ call = "memory", args = { action = "add", target = "memory", content = "The site has two lights." } }, { say = "Saved." }]
child = [{ call = "terminal", args = { command = "north" } }, { say = "North is on." }, { say = "South is on." }]
summary = [{ say = "We deployed the site." }]
title = [{ say = "Two lights" }]
[[act]]
[act.turn]
say = "And now?"
replies = [{ say = "Nothing more." }]
"#;

fn ids(agent: &mut Agent, mock: &Mock) -> Vec<String> {
    let answer = agent.ask(mock);
    agent.take(&answer)
}

#[test]
fn main_children_review_title_and_summary_each_get_their_own_lines() {
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        let mock = Mock::start(LANES, &[]);
        let mut main = Agent::new(protocol);
        main.user("Deploy the site.");
        // The title is asked for before anything else.
        let mut title = Agent { tools: Vec::new(), ..Agent::new(protocol) };
        title.system = "Generate a short title for the conversation.".to_owned();
        title.user("Deploy the site.");
        assert_eq!(title.words(&title.ask(&mock)), "Two lights");
        let dispatched = ids(&mut main, &mock);
        // The second child is quicker than the first.
        let child = |goal: &str| {
            let mut child = Agent::new(protocol);
            child.system = format!("You are a helper. Your goal: {goal}");
            child.user(goal);
            child
        };
        let (south, mut north) = (child("check the south light"), child("check the north light"));
        assert_eq!(south.words(&south.ask(&mock)), "South is on.");
        assert_eq!(north.go_on(&mock), "North is on.");
        main.results(&dispatched, "dispatched");
        assert_eq!(main.go_on(&mock), "It is deployed.");
        // The review copies the conversation and speaks last.
        let mut review = Agent { history: main.history.clone(), ..Agent::new(protocol) };
        review.user("Look back at the conversation and save what is worth keeping.");
        let saved = ids(&mut review, &mock);
        assert_eq!(saved.len(), 1, "{protocol:?}");
        // Meanwhile the user goes on.
        assert_eq!(main.turn(&mock, "And now?"), "Nothing more.");
        review.results(&saved, "{\"success\": true}");
        assert_eq!(review.words(&review.ask(&mock)), "Saved.");
        let mut summary = Agent { tools: Vec::new(), ..Agent::new(protocol) };
        summary
            .user("Write a summary of these messages:\nUSER: Deploy the site.\nASSISTANT: It is deployed.");
        assert_eq!(summary.words(&summary.ask(&mock)), "We deployed the site.");
        let report = mock.get("/_lab/report").json();
        assert_eq!(
            report["lanes"],
            json!({"main": 3, "review": 2, "summary": 1, "child": 3, "title": 1}),
            "{protocol:?}"
        );
        let end = mock.stop();
        assert_eq!(end.code, 0, "{protocol:?}: {}{}", end.stdout, end.stderr);
        for kind in
            ["\"review_started\"", "\"review_ended\"", "\"delivered\"", "\"memory_write\"", "\"tool_ran\""]
        {
            assert!(end.ledger.contains(kind), "{protocol:?}: no {kind}");
        }
        assert!(end.ledger.contains("\"session\":\"s1/t1k1\""), "children have sessions of their own");
    }
}

#[test]
fn a_review_that_runs_a_tool_which_is_no_knowledge_is_found() {
    let scenario = LANES.replace(
        "call = \"memory\", args = { action = \"add\", target = \"memory\", content = \"The site has two lights.\" }",
        "call = \"terminal\", args = { command = \"rm -rf ./dist\" }",
    );
    for (result, code) in [("removed", 1), ("{\"error\": \"terminal is not allowed in a review\"}", 0)] {
        let mock = Mock::start(&scenario, &[]);
        let mut main = Agent::new(Protocol::Chat);
        main.turn(&mock, "Deploy the site.");
        let mut review = Agent { history: main.history.clone(), ..Agent::new(Protocol::Chat) };
        review.user("Look back.");
        let calls = ids(&mut review, &mock);
        review.results(&calls, result);
        ids(&mut review, &mock);
        let end = mock.stop();
        assert_eq!(end.code, code, "{}", end.stdout);
        assert_eq!(end.stderr.contains("L3.review-tools"), code == 1, "{}", end.stderr);
    }
}

#[test]
fn the_same_request_gets_the_same_line_however_often_and_in_whatever_order() {
    let mock = Mock::start(LANES, &[]);
    let mut main = Agent::new(Protocol::Chat);
    main.user("Deploy the site.");
    let early = main.ask(&mock);
    let calls = main.take(&early);
    main.results(&calls, "dispatched");
    let late = main.ask(&mock);
    let mut again = Agent::new(Protocol::Chat);
    again.user("Deploy the site.");
    assert_eq!(again.ask(&mock).json()["id"], early.json()["id"]);
    assert_eq!(main.ask(&mock).json()["id"], late.json()["id"]);
    mock.stop();
}

#[test]
fn the_place_is_found_again_when_a_compaction_has_taken_the_user_s_words() {
    let mock = Mock::start(LANES, &[]);
    let mut main = Agent::new(Protocol::Chat);
    main.user("Deploy the site.");
    let calls = ids(&mut main, &mock);
    main.results(&calls, "dispatched");
    main.history[0] =
        json!({"role": "user", "content": "[CONTEXT COMPACTION] Earlier: a request to put things online."});
    assert_eq!(main.words(&main.ask(&mock)), "It is deployed.");
    mock.stop();
}

#[test]
fn the_words_of_a_turn_may_stand_among_others_and_the_same_words_mean_the_next_turn() {
    let scenario = "format = 1\nname = \"again\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n[act.turn]\nsay = \"More.\"\n\
                    times = 3\nreplies = [{ say = \"Number {i}.\" }]\n";
    let mock = Mock::start(scenario, &[]);
    let mut agent = Agent::new(Protocol::Messages);
    for number in 0..3 {
        let words = agent.turn(&mock, "<time>now</time>\n\nMore.");
        assert_eq!(words, format!("Number {number}."));
    }
    assert_eq!(mock.stop().code, 0);
}

#[test]
fn a_user_who_says_what_is_not_in_the_script_is_told_so_and_a_review_is_not() {
    let scenario = "format = 1\nname = \"plain\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n[act.turn]\nsay = \"Go on.\"\n\
                    replies = [{ say = \"Done.\" }]\n";
    let mock = Mock::start(scenario, &[]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.turn(&mock, "Go on.");
    let mut review = Agent { history: agent.history.clone(), ..Agent::new(Protocol::Chat) };
    review.user("Review the conversation above and save to memory what is worth keeping.");
    assert_eq!(review.words(&review.ask(&mock)), "Nothing to save.");
    agent.user("And what about the weather?");
    assert_eq!(agent.ask(&mock).json()["error"]["code"], "script_exhausted");
    mock.stop();
}

#[test]
fn the_command_tool_is_called_by_the_name_that_the_agent_offers() {
    let scenario = "format = 1\nname = \"ls\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n[act.turn]\nsay = \"Go on.\"\n\
                    replies = [{ call = \"terminal\", args = { command = \"ls\" } }, { say = \"Done.\" }]\n";
    let mock = Mock::start(scenario, &[]);
    for (protocol, tool, argument) in [
        (Protocol::Messages, "Bash", "command"),
        (Protocol::Responses, "exec_command", "cmd"),
        (Protocol::Chat, "bash", "command"),
    ] {
        let mut agent = Agent { tools: vec!["read", tool], ..Agent::new(protocol) };
        agent.user("Go on.");
        let answer = agent.ask(&mock).body;
        assert!(answer.contains(&format!("\"name\":\"{tool}\"")), "{answer}");
        assert!(answer.replace('\\', "").contains(&format!("\"{argument}\":\"ls\"")), "{answer}");
    }
    assert_eq!(mock.stop().code, 0);
}

#[test]
fn rules_answer_where_no_list_does() {
    let scenario = "format = 1\nname = \"rules\"\n[[rule]]\nwhen.last_role = \"tool\"\nreply.say = \"It said so.\"\n\
                    [[rule]]\nwhen.user_has = \"look\"\nreply.call = \"terminal\"\nreply.args.command = \"ls\"\n";
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        let mock = Mock::start(scenario, &[]);
        let mut agent = Agent::new(protocol);
        assert_eq!(agent.turn(&mock, "Have a look."), "It said so.", "{protocol:?}");
        mock.stop();
    }
}

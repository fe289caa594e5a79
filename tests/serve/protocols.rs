//! Each protocol as its clients want it: order of events, shapes, ids, usage.

use serde_json::{Value, json};

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{Answer, Mock, TWO_TURNS};

const ALL: [Protocol; 3] = [Protocol::Chat, Protocol::Messages, Protocol::Responses];

/// A reply with everything that a reply can have.
const RICH: &str = r#"
format = 1
name = "rich"
[[act]]
open.name = "s1"
[[act]]
[act.turn]
say = "Go on."
replies = [
  { reasoning = "Two things at once.", say = "I look at both places, north and south.", calls = [
      { tool = "terminal", args = { command = "ls north" } }, { tool = "terminal", args = { command = "ls" } } ] },
]
"#;

fn streamed(protocol: Protocol) -> Answer {
    let mock = Mock::start(RICH, &[]);
    let mut agent = Agent::new(protocol);
    agent.stream = true;
    agent.user("Go on.");
    let mut body = agent.body();
    if protocol == Protocol::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    let answer = match protocol {
        Protocol::Chat => mock.chat(&body),
        Protocol::Messages => mock.messages(&body),
        Protocol::Responses => mock.responses(&body),
    };
    assert_eq!(mock.stop().code, 0);
    assert_eq!((answer.status, answer.whole), (200, true), "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    answer
}

#[test]
fn chat_completions_stream_in_the_order_that_clients_want() {
    insta::assert_snapshot!(streamed(Protocol::Chat).body);
}

#[test]
fn messages_stream_in_the_order_that_clients_want() {
    let answer = streamed(Protocol::Messages);
    for (name, data) in answer.events() {
        assert_eq!(data["type"], name.as_str(), "an event is named as its data says");
    }
    insta::assert_snapshot!(answer.body);
}

#[test]
fn responses_stream_in_the_order_that_clients_want() {
    let answer = streamed(Protocol::Responses);
    for (number, (name, data)) in answer.events().iter().enumerate() {
        assert_eq!(data["type"], name.as_str());
        assert_eq!(data["sequence_number"], number);
    }
    insta::assert_snapshot!(answer.body);
}

/// Text and arguments of a stream, put together again.
fn joined(protocol: Protocol, answer: &Answer) -> (String, Vec<String>) {
    let (mut text, mut arguments) = (String::new(), vec![String::new(); 2]);
    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (_, data) in answer.events() {
        match protocol {
            Protocol::Chat => {
                let delta = &data["choices"][0]["delta"];
                text += &words(&delta["content"]);
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                    arguments[index] += &words(&call["function"]["arguments"]);
                }
            }
            Protocol::Messages => {
                text += &words(&data["delta"]["text"]);
                // Thinking and text come first.
                if let Some(json) = data["delta"]["partial_json"].as_str() {
                    let index = usize::try_from(data["index"].as_u64().unwrap()).unwrap();
                    arguments[index - 2] += json;
                }
            }
            Protocol::Responses => {
                if data["type"] == "response.output_text.delta" {
                    text += &words(&data["delta"]);
                }
                if data["type"] == "response.function_call_arguments.delta" {
                    let index = usize::try_from(data["output_index"].as_u64().unwrap()).unwrap();
                    arguments[index - 2] += &words(&data["delta"]);
                }
            }
        }
    }
    (text, arguments)
}

#[test]
fn a_stream_brings_what_the_plain_answer_says() {
    for protocol in ALL {
        let (text, arguments) = joined(protocol, &streamed(protocol));
        assert_eq!(text, "I look at both places, north and south.", "{protocol:?}");
        assert_eq!(arguments, [r#"{"command":"ls north"}"#, r#"{"command":"ls"}"#], "{protocol:?}");
    }
}

#[test]
fn plain_answers_have_the_shape_of_their_protocol() {
    for protocol in ALL {
        let mock = Mock::start(RICH, &[]);
        let mut agent = Agent::new(protocol);
        agent.user("Go on.");
        let answer = agent.ask(&mock);
        insta::with_settings!({snapshot_suffix => format!("{protocol:?}")}, {
            insta::assert_snapshot!(serde_json::to_string_pretty(&answer.json()).unwrap());
        });
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(mock.stop().code, 0);
    }
}

#[test]
fn a_tool_loop_runs_to_its_end_in_every_protocol() {
    for protocol in ALL {
        let mock = Mock::start(TWO_TURNS, &[]);
        let mut agent = Agent::new(protocol);
        assert_eq!(
            agent.turn(&mock, "What is in the folder?"),
            "Two files: a.txt and b.txt.",
            "{protocol:?}"
        );
        assert_eq!(agent.turn(&mock, "Thank you."), "You are welcome.", "{protocol:?}");
        let end = mock.stop();
        assert_eq!(end.code, 0, "{}{}", end.stdout, end.stderr);
        assert!(end.stdout.starts_with("3 requests, "), "{}", end.stdout);
    }
}

#[test]
fn what_was_sent_before_is_read_from_the_cache_and_reported_in_the_protocol_s_own_fields() {
    let long = "The lamp is lit at dusk and put out at dawn. ".repeat(300);
    for protocol in ALL {
        let mock = Mock::start(TWO_TURNS, &[]);
        let mut agent = Agent::new(protocol);
        agent.system.clone_from(&long);
        agent.user("What is in the folder?");
        let mut body = agent.body();
        if protocol == Protocol::Messages {
            body["system"] = json!([{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]);
        }
        let send = |body: &Value| match protocol {
            Protocol::Chat => mock.chat(body).json()["usage"].clone(),
            Protocol::Messages => mock.messages(body).json()["usage"].clone(),
            Protocol::Responses => mock.responses(body).json()["usage"].clone(),
        };
        let (first, second) = (send(&body), send(&body));
        match protocol {
            Protocol::Chat => {
                assert_eq!(first["prompt_tokens_details"]["cached_tokens"], 0);
                let cached = second["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
                let prompt = second["prompt_tokens"].as_u64().unwrap();
                // Steps of 128 from 1,024 on, never more than the prompt.
                assert!(cached >= 1_024 && cached % 128 == 0 && prompt - cached < 128, "{second}");
            }
            Protocol::Messages => {
                let written = first["cache_creation_input_tokens"].as_u64().unwrap();
                assert!(written > 1_024 && first["cache_read_input_tokens"] == 0, "{first}");
                assert_eq!(second["cache_read_input_tokens"], written);
                assert_eq!(second["cache_creation_input_tokens"], 0);
                assert_eq!(second["input_tokens"], first["input_tokens"], "what stands behind the marker");
            }
            Protocol::Responses => {
                let cached = second["input_tokens_details"]["cached_tokens"].as_u64().unwrap();
                assert!(cached >= 1_024 && cached % 128 == 0, "{second}");
            }
        }
        assert_eq!(mock.stop().code, 0);
    }
}

#[test]
fn a_chosen_provider_counts_by_its_own_rules_and_reports_in_its_own_fields() {
    let mock = Mock::start(TWO_TURNS, &["--provider", "deepseek-2024"]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.system = "The lamp is lit at dusk. ".repeat(40);
    agent.user("Thank you.");
    agent.ask(&mock);
    let usage = agent.ask(&mock).json()["usage"].clone();
    let (hit, miss) = (usage["prompt_cache_hit_tokens"].as_u64(), usage["prompt_cache_miss_tokens"].as_u64());
    // Units of 64 tokens, none of which is ready at once.
    assert_eq!(
        (hit.map(|hit| hit % 64), hit.zip(miss).map(|(hit, miss)| hit + miss)),
        (Some(0), usage["prompt_tokens"].as_u64())
    );
    mock.stop();
    let mock = Mock::start(TWO_TURNS, &["--provider", "off"]);
    agent.ask(&mock);
    assert_eq!(agent.ask(&mock).json()["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    mock.stop();
}

#[test]
fn cards_tell_the_window_and_probes_get_a_quick_no() {
    let mock = Mock::start(TWO_TURNS, &["--context-length", "70000", "--model", "a", "--model", "b"]);
    let list = mock.get("/v1/models").json();
    assert_eq!(list["data"][1]["id"], "b");
    assert_eq!(list["data"][0]["context_length"], 70_000);
    assert_eq!(mock.get("/v1/models/a").json()["context_length"], 70_000);
    assert_eq!(mock.get("/v1/models/c").status, 404);
    let unknown = mock.chat(&json!({"model": "c", "messages": [{"role": "user", "content": "x"}]}));
    assert_eq!((unknown.status, unknown.json()["error"]["code"].clone()), (404, json!("model_not_found")));
    for path in ["/api/v1/models", "/api/tags", "/v1/props", "/props", "/version", "/"] {
        let answer = mock.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    let count = mock.post(
        "/v1/messages/count_tokens?beta=true",
        &json!({"model": "a", "messages": [{"role": "user", "content": "How many?"}]}).to_string(),
    );
    assert!(count.json()["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    // An unknown model was asked for; nothing else was wrong.
    let end = mock.stop();
    assert_eq!(end.code, 1);
    assert!(end.stdout.contains("refused: request 1: The model `c` does not exist"), "{}", end.stdout);
}

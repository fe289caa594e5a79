//! What a real provider refuses is refused, in its shape, and reported; lenient servers report it only.

use serde_json::{Value, json};

use crate::serve::support::{Mock, one_turn};

fn call(id: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]})
}

fn chat(messages: &Value) -> Value {
    json!({"model": "m", "messages": messages})
}

fn anthropic(system: &Value, messages: &Value) -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 10, "system": system, "messages": messages})
}

fn marked(text: &str, ttl: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}})
}

/// Path, body, and words of the message.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let user = json!({"role": "user", "content": "Go on."});
    let result = json!({"role": "tool", "tool_call_id": "c9", "content": "x"});
    let used = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "terminal", "input": {}}]});
    let five: Vec<Value> = (0..5).map(|n| marked(&format!("part {n}"), "5m")).collect();
    vec![
        ("/v1/chat/completions", chat(&json!([user, result])), "response to a preceding message"),
        (
            "/v1/chat/completions",
            chat(&json!([user, call("c1"), user])),
            "did not have response messages: c1",
        ),
        ("/v1/chat/completions", chat(&json!([user, call("c1")])), "did not have response messages: c1"),
        ("/v1/chat/completions", chat(&json!([])), "Missing required parameter: 'messages'"),
        ("/v1/chat/completions", json!({"messages": [user]}), "you must provide a model parameter"),
        (
            "/v1/messages",
            anthropic(
                &json!("s"),
                &json!([{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}]),
            ),
            "unexpected `tool_use_id` found in `tool_result` blocks: t1",
        ),
        (
            "/v1/messages",
            anthropic(&json!("s"), &json!([user, used, {"role": "user", "content": "And?"}])),
            "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
        ),
        (
            "/v1/messages",
            anthropic(&json!(five), &json!([user])),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            "/v1/messages",
            anthropic(&json!([marked("a", "5m"), marked("b", "1h")]), &json!([user])),
            "a ttl='1h' cache_control block must not come after a ttl='5m'",
        ),
        (
            "/v1/messages",
            anthropic(&json!("s"), &json!([{"role": "user", "content": [marked("", "5m")]}])),
            "cache_control cannot be set for empty text blocks",
        ),
        (
            "/v1/messages",
            anthropic(&json!("s"), &json!([{"role": "user", "content": [{"type": "text", "text": ""}]}])),
            "text content blocks must be non-empty",
        ),
        ("/v1/messages", json!({"model": "m", "messages": [user]}), "max_tokens: Field required"),
        (
            "/v1/responses",
            json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}]}),
            "No tool call found for function call output with call_id c1",
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": [user,
                {"type": "function_call", "call_id": "c1", "name": "terminal", "arguments": "{}"}]}),
            "No tool output found for function call c1",
        ),
    ]
}

#[test]
fn a_strict_server_refuses_and_reports() {
    let mock = Mock::start(&one_turn("{ say = \"Done.\" }"), &[]);
    for (path, body, words) in cases() {
        let answer = mock.post(path, &body.to_string());
        assert_eq!(answer.status, 400, "{words}: {}", answer.body);
        let error = answer.json();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        assert_eq!(error["error"]["type"], "invalid_request_error");
        assert_eq!(error["type"] == "error", path == "/v1/messages", "the shape of the protocol");
    }
    let report = mock.get("/_lab/report").json();
    assert_eq!(report["refused"]["count"], cases().len());
    assert_eq!(report["holds"], false);
    let end = mock.stop();
    assert_eq!(end.code, 1);
    for (_, _, words) in cases() {
        assert!(end.stdout.contains(words), "{words}: {}", end.stdout);
        assert!(end.stderr.contains(words), "told at once: {words}");
    }
}

#[test]
fn a_lenient_server_answers_and_reports() {
    let mock = Mock::start(&one_turn("{ say = \"Done.\" }"), &["--lenient"]);
    let user = json!({"role": "user", "content": "Go on."});
    let orphan = chat(&json!([{"role": "tool", "tool_call_id": "c9", "content": "x"}, user]));
    assert_eq!(mock.chat(&orphan).status, 200);
    let five: Vec<Value> = (0..5).map(|n| marked(&format!("part {n}"), "5m")).collect();
    assert_eq!(mock.messages(&anthropic(&json!(five), &json!([user]))).status, 200);
    let end = mock.stop();
    assert_eq!(end.code, 1);
    assert!(end.stdout.contains("Found 5"), "{}", end.stdout);
    assert!(end.stdout.contains("L4.no-orphans"), "the laws see it too: {}", end.stdout);
}

#[test]
fn a_prompt_above_the_window_is_refused_with_the_limit_in_its_words() {
    let mock = Mock::start(&one_turn("{ say = \"Done.\" }"), &["--context-length", "1000"]);
    let long = "The lamp is lit at dusk. ".repeat(400);
    let body = chat(&json!([{"role": "system", "content": long}, {"role": "user", "content": "Go on."}]));
    let error = mock.chat(&body).json();
    assert_eq!(error["error"]["code"], "context_length_exceeded");
    assert!(error["error"]["message"].as_str().unwrap().contains("maximum context length is 1000 tokens"));
    mock.stop();
}

#[test]
fn a_refused_request_leaves_no_trace_in_the_cache() {
    let mock = Mock::start(&one_turn("{ say = \"Done.\" }"), &[]);
    let long = "The lamp is lit at dusk and put out at dawn. ".repeat(300);
    let user = json!({"role": "user", "content": "Go on."});
    let wrong = json!([marked(&long, "5m"), marked("b", "1h")]);
    assert_eq!(mock.messages(&anthropic(&wrong, &json!([user]))).status, 400);
    let right = json!([marked(&long, "5m")]);
    let usage = mock.messages(&anthropic(&right, &json!([user]))).json()["usage"].clone();
    assert_eq!(usage["cache_read_input_tokens"], 0);
    assert!(usage["cache_creation_input_tokens"].as_u64().is_some_and(|written| written > 1_024));
    mock.stop();
}

#[test]
fn a_request_that_the_script_has_no_line_for_is_told_what_there_is() {
    let mock = Mock::start(&one_turn("{ say = \"Done.\" }"), &[]);
    let error = mock.chat(&chat(&json!([{"role": "user", "content": "Something else."}]))).json();
    assert_eq!(error["error"]["code"], "script_exhausted");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("session `s1`, turn 1 has 1 for lane `main`"), "{message}");
    mock.stop();
}

//! The same session in other clothes: archives, exports, compressed files, ledgers.

use std::io::Write as _;

use hermes_lab::audit::read::{Format, LINE_MAX, recognise};
use hermes_lab::audit::{Cause, Verdict};
use serde_json::{Value, json};

use super::support::{Mutation, Session, Wire, audit_bytes, causes};

fn session(wire: Wire) -> Session {
    Session { wire, name: "s".to_owned(), salt: 7, tools: 4, steps: vec![1, 0, 2, 1], folded: 0 }
}

const CLOCK: &[(Mutation, usize)] = &[(Mutation::Clock, 3)];

fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn shows_the_clock(bytes: Vec<u8>, format: Format) {
    let (audit, reading) = audit_bytes(bytes, None);
    assert_eq!(reading.format, Some(format));
    assert_eq!(reading.skipped, vec![]);
    assert_eq!(audit.requests.len(), 5, "{format:?}");
    assert_eq!(causes(&audit), vec![(3, vec![Cause::VolatileTime])], "{format:?}");
}

#[test]
fn a_http_archive_is_read_entry_by_entry_with_its_streamed_usage() {
    let session = session(Wire::Anthropic);
    let entries: Vec<Value> = (0..session.count())
        .map(|turn| {
            json!({
                "startedDateTime": format!("2026-11-25T10:0{turn}:00.000Z"), "time": 1200.5,
                "request": {"method": "POST", "url": "https://api.anthropic.example/v1/messages?beta=true",
                    "postData": {"mimeType": "application/json", "text": session.request(turn, CLOCK).to_string()}},
                "response": {"status": 200, "content": {"text": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":2000,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":60}}\n"}},
            })
        })
        .collect();
    let mut all = vec![
        json!({"startedDateTime": "2026-11-25T09:00:00Z", "request": {"method": "GET", "url": "https://x.example/logo.png"}, "response": {"status": 200}}),
    ];
    all.extend(entries);
    let archive = json!({"log": {"version": "1.2", "creator": {"name": "t"}, "entries": all}});
    for text in [archive.to_string(), serde_json::to_string_pretty(&archive).unwrap()] {
        let (audit, reading) = audit_bytes(text.into_bytes(), None);
        assert_eq!(reading.format, Some(Format::Har));
        assert_eq!(reading.other, 1);
        assert_eq!(audit.requests[1].tokens.written, 2000);
        assert!(causes(&audit).iter().any(|(at, causes)| *at == 3 && causes.contains(&Cause::VolatileTime)));
    }
}

#[test]
fn compressed_logs_are_read_as_they_are() {
    let plain = lines(&session(Wire::Chat).log(CLOCK, true));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    shows_the_clock(gz.finish().unwrap(), Format::Wrapped);
    let zst =
        ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    shows_the_clock(zst, Format::Wrapped);
}

#[test]
fn bodies_of_every_shape_are_recognised() {
    for wire in [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini] {
        let session = session(wire);
        let bodies: Vec<Value> = (0..session.count()).map(|turn| session.request(turn, CLOCK)).collect();
        shows_the_clock(lines(&bodies), Format::Bodies);
        // One document: an array of bodies, over many lines.
        shows_the_clock(serde_json::to_vec_pretty(&Value::Array(bodies)).unwrap(), Format::Bodies);
    }
}

#[test]
fn gateway_and_tracer_exports_are_read() {
    let session = session(Wire::Chat);
    let part = |turn: usize, name: &str| session.request(turn, CLOCK)[name].clone();
    let turns = 0..session.count();
    let time = |turn: usize| format!("2026-11-25T10:0{turn}:00Z");
    let litellm: Vec<Value> = turns
        .clone()
        .map(|turn| json!({
            "id": format!("x{turn}"), "call_type": "acompletion", "model": "gpt-4o", "startTime": 1_780_000_000.5 + turn as f64 * 20.0,
            "messages": part(turn, "messages"), "model_parameters": {"tools": part(turn, "tools")},
            "response": {"choices": []}, "metadata": {"session_id": "a"},
        }))
        .collect();
    shows_the_clock(lines(&litellm), Format::LiteLlm);
    let proxied: Vec<Value> = turns
        .clone()
        .map(|turn| json!({
            "request_id": format!("x{turn}"), "call_type": "acompletion", "startTime": time(turn), "messages": {},
            "proxy_server_request": session.request(turn, CLOCK).to_string(), "session_id": "a",
        }))
        .collect();
    shows_the_clock(lines(&proxied), Format::LiteLlm);
    let langfuse: Vec<Value> = turns
        .clone()
        .map(|turn| json!({
            "id": format!("x{turn}"), "traceId": "t", "sessionId": "a", "type": "GENERATION", "startTime": time(turn), "model": "gpt-4o",
            "input": {"messages": part(turn, "messages"), "tools": part(turn, "tools")}, "output": {"role": "assistant", "content": "ok"},
            "usageDetails": {},
        }))
        .collect();
    shows_the_clock(lines(&langfuse), Format::Langfuse);
    let span = |turn: usize| {
        json!({
            "traceId": "t", "spanId": format!("s{turn}"), "name": "chat gpt-4o", "startTimeUnixNano": format!("{}", 1_780_000_000_000_000_000_u64 + turn as u64 * 20_000_000_000),
            "attributes": [
                {"key": "gen_ai.request.model", "value": {"stringValue": "gpt-4o"}},
                {"key": "gen_ai.conversation.id", "value": {"stringValue": "a"}},
                {"key": "gen_ai.input.messages", "value": {"stringValue": part(turn, "messages").to_string()}},
                {"key": "gen_ai.tool.definitions", "value": {"stringValue": part(turn, "tools").to_string()}},
            ],
        })
    };
    let spans: Vec<Value> = turns.map(span).collect();
    shows_the_clock(lines(&spans), Format::Otel);
    let document = json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]});
    shows_the_clock(document.to_string().into_bytes(), Format::Otel);
}

#[test]
fn a_rollout_of_codex_is_judged_by_its_counts() {
    let mut log = vec![
        json!({"timestamp": "2026-11-25T10:00:00Z", "type": "session_meta", "payload": {"id": "c1"}}),
        json!({"timestamp": "2026-11-25T10:00:00Z", "type": "turn_context", "payload": {"model": "gpt-5.4"}}),
    ];
    let mut total = 0;
    for (turn, (input, cached)) in
        [(9000, 0), (10_000, 8960), (11_000, 9984), (12_000, 3456)].into_iter().enumerate()
    {
        total += input;
        let event = json!({"timestamp": format!("2026-11-25T10:00:{:02}Z", turn * 10 + 5), "type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": 50},
        }}});
        log.push(event.clone());
        log.push(event);
    }
    let (audit, reading) = audit_bytes(lines(&log), None);
    assert_eq!(reading.format, Some(Format::Codex));
    assert_eq!(audit.requests.len(), 4);
    assert_eq!(causes(&audit), vec![(3, vec![Cause::Unexplained])]);
    assert!(!audit.requests[3].finding(), "an automatic cache's miss is nobody's fault");
}

#[test]
fn sharegpt_data_is_read_for_its_histories_only() {
    let data = json!([{"id": "a", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]}]);
    let (audit, reading) = audit_bytes(data.to_string().into_bytes(), None);
    assert_eq!(reading.format, Some(Format::ShareGpt));
    assert_eq!(audit.requests.len(), 1);
    assert_eq!(causes(&audit), vec![]);
    assert_eq!(audit.requests[0].verdict, Verdict::NotJudged);
}

#[test]
fn unreadable_lines_are_counted_with_number_and_reason() {
    let mut bytes = lines(&session(Wire::Chat).log(&[], true));
    bytes.extend_from_slice(b"{\"request\": {\"messages\": [\n\xff\xfe\n\n[1, 2]\n{\"a\": 1}\n");
    let (audit, reading) = audit_bytes(bytes, None);
    assert_eq!(audit.requests.len(), 5);
    let lines: Vec<u64> = reading.skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(lines, vec![6, 7, 9]);
    assert!(reading.skipped[0].reason.contains("cut off"));
    assert!(reading.skipped[1].reason.contains("UTF-8"));
    assert_eq!(reading.other, 1);
}

#[test]
fn a_line_over_the_limit_is_counted_and_the_next_one_read() {
    let mut bytes = vec![b'x'; LINE_MAX + 10];
    bytes.push(b'\n');
    bytes.extend(lines(&session(Wire::Chat).log(&[], true)));
    let (audit, reading) = audit_bytes(bytes, None);
    assert_eq!(audit.requests.len(), 5);
    assert_eq!(reading.skipped_count, 1);
}

#[test]
fn a_word_alone_is_no_format() {
    for text in ["{}", "[]", "1", "{\"model\": \"x\"}", "{\"type\": \"x\"}", ""] {
        assert_eq!(recognise(text.as_bytes()), None, "{text}");
    }
}

//! Requests and answers in the shapes of the providers.
//!
//! A request is made of the very texts whose digests are in the ledger; only the envelope is the protocol's.

use serde_json::{Map, Value, json};

use crate::agent::breakpoints::anthropic;
use crate::agent::breakpoints::strip::MARKER;
use crate::agent::transcript::wire_text;
use crate::cache::Ttl;
use crate::cache::usage::Parts;
use crate::live::provider::Provider;
use crate::model::{Ask, Finish, Reply};
use crate::wire::{Level, ToolCall};

/// A prompt in the shape that the runtime keeps, markers in place.
#[derive(Debug, Default)]
struct Plain {
    tools: Vec<Value>,
    system: Vec<(String, Option<Ttl>)>,
    messages: Vec<Value>,
}

impl Plain {
    fn of(ask: &Ask<'_>, marked: bool) -> Self {
        let mark_at = |at: usize| {
            let found = ask.sent.marks.iter().find(|(position, _)| *position == at);
            found.map(|(_, ttl)| *ttl).filter(|_| marked)
        };
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let mut plain = Self::default();
        if ask.sent.prefix.is_empty() && ask.sent.messages.is_empty() {
            plain.system.extend((!ask.system.is_empty()).then(|| (ask.system.to_owned(), None)));
            let last = ask.rows.len().saturating_sub(1);
            let rows = ask.rows.iter().enumerate();
            plain.messages = rows.map(|(at, row)| parsed(&wire_text(row, at == last))).collect();
            return plain;
        }
        for (at, segment) in ask.sent.prefix.iter().chain(ask.sent.messages).enumerate() {
            let mark = mark_at(at);
            if segment.level == Level::System {
                plain.system.push((segment.text.to_string(), mark));
                continue;
            }
            let mut value = parsed(&segment.text);
            if let (Some(object), Some(ttl)) = (value.as_object_mut(), mark) {
                object.insert(MARKER.to_owned(), marker(ttl));
            }
            if segment.level == Level::Tools { plain.tools.push(value) } else { plain.messages.push(value) }
        }
        plain
    }

    fn system_text(&self) -> String {
        self.system.iter().map(|(text, _)| text.as_str()).collect()
    }
}

fn marker(ttl: Ttl) -> Value {
    match ttl {
        Ttl::Hour1 => json!({"type": "ephemeral", "ttl": "1h"}),
        _ => json!({"type": "ephemeral"}),
    }
}

/// The body of a request.
pub(super) fn body(provider: Provider, ask: &Ask<'_>, model: &str, max_tokens: u64) -> Value {
    let plain = Plain::of(ask, provider == Provider::Anthropic);
    match provider {
        Provider::Anthropic => messages_body(&plain, model, max_tokens),
        Provider::OpenAiResponses => responses_body(&plain, model, max_tokens),
        Provider::OpenAi => chat_body(plain, model, ("max_completion_tokens", max_tokens)),
        Provider::Compatible => chat_body(plain, model, ("max_tokens", max_tokens)),
    }
}

fn chat_body(plain: Plain, model: &str, (limit, tokens): (&str, u64)) -> Value {
    let mut messages = Vec::with_capacity(plain.messages.len() + 1);
    let system = plain.system_text();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(plain.messages);
    let mut body = json!({"model": model, "messages": messages, limit: tokens});
    if !plain.tools.is_empty() {
        body["tools"] = plain.tools.into();
    }
    body
}

fn messages_body(plain: &Plain, model: &str, max_tokens: u64) -> Value {
    let converted = anthropic::convert(&plain.messages);
    let mut body = json!({"model": model, "max_tokens": max_tokens});
    if !plain.tools.is_empty() {
        body["tools"] = plain.tools.iter().map(anthropic::tool).collect();
    }
    if !plain.system.is_empty() {
        let block = |(text, mark): &(String, Option<Ttl>)| {
            let mut block = json!({"type": "text", "text": text});
            if let Some(ttl) = mark {
                block[MARKER] = marker(*ttl);
            }
            block
        };
        body["system"] = plain.system.iter().map(block).collect();
    }
    body["messages"] = converted.messages.into();
    body
}

fn responses_body(plain: &Plain, model: &str, max_tokens: u64) -> Value {
    let mut input = Vec::new();
    for message in &plain.messages {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("tool") => input.push(json!({
                "type": "function_call_output", "call_id": message["tool_call_id"], "output": content,
            })),
            Some(role) => {
                if content.as_str().is_none_or(|text| !text.is_empty()) && !content.is_null() {
                    input.push(json!({"role": role, "content": content}));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    input.push(json!({
                        "type": "function_call", "call_id": call["id"], "name": call["function"]["name"],
                        "arguments": call["function"]["arguments"],
                    }));
                }
            }
            None => {}
        }
    }
    // What is kept at the provider would be a second history.
    let mut body = json!({"model": model, "input": input, "max_output_tokens": max_tokens, "store": false});
    let system = plain.system_text();
    if !system.is_empty() {
        body["instructions"] = system.into();
    }
    if !plain.tools.is_empty() {
        let flat = |tool: &Value| {
            let mut flat = Map::new();
            flat.insert("type".to_owned(), "function".into());
            flat.extend(tool["function"].as_object().cloned().unwrap_or_default());
            // Left out, it means that every argument is required.
            flat.insert("strict".to_owned(), false.into());
            Value::Object(flat)
        };
        body["tools"] = plain.tools.iter().map(flat).collect();
    }
    body
}

/// The reply in a whole answer; `None` when it holds none.
pub(super) fn reply(provider: Provider, answer: &Value, billed: Option<&Parts>) -> Option<Reply> {
    let reply = match provider {
        Provider::Anthropic => of_messages(answer),
        Provider::OpenAiResponses => of_responses(answer),
        Provider::OpenAi | Provider::Compatible => of_chat(answer),
    }?;
    Some(Reply { output_tokens: billed.map(|parts| parts.output), ..reply })
}

fn finish(cut: bool, calls: &[ToolCall]) -> Finish {
    match (cut, calls.is_empty()) {
        (true, _) => Finish::Length,
        (false, true) => Finish::Stop,
        (false, false) => Finish::ToolCalls,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn spoken(words: String) -> Option<String> {
    (!words.is_empty()).then_some(words)
}

fn of_chat(answer: &Value) -> Option<Reply> {
    let choice = answer.pointer("/choices/0")?;
    let message = choice.get("message")?;
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls: Vec<ToolCall> = calls
        .map(|call| {
            let function = &call["function"];
            ToolCall::new(text(&call["id"]), text(&function["name"]), text(&function["arguments"]))
        })
        .collect();
    let reasoning = message.get("reasoning_content").or_else(|| message.get("reasoning"));
    Some(Reply {
        text: spoken(text(&message["content"])),
        finish: finish(choice["finish_reason"] == "length", &calls),
        reasoning: reasoning.and_then(Value::as_str).map(str::to_owned),
        calls,
        ..Reply::say("")
    })
}

fn of_messages(answer: &Value) -> Option<Reply> {
    let (mut words, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in answer.get("content")?.as_array()? {
        match block["type"].as_str() {
            Some("text") => words.push_str(block["text"].as_str().unwrap_or_default()),
            Some("thinking") => reasoning.push_str(block["thinking"].as_str().unwrap_or_default()),
            Some("tool_use") => {
                let input = block["input"].to_string();
                calls.push(ToolCall::new(text(&block["id"]), text(&block["name"]), input));
            }
            _ => {}
        }
    }
    Some(Reply {
        text: spoken(words),
        finish: finish(answer["stop_reason"] == "max_tokens", &calls),
        reasoning: spoken(reasoning),
        calls,
        ..Reply::say("")
    })
}

fn of_responses(answer: &Value) -> Option<Reply> {
    let (mut words, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    let texts = |item: &Value, list: &str| -> String {
        item[list].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
    };
    for item in answer.get("output")?.as_array()? {
        match item["type"].as_str() {
            Some("message") => words.push_str(&texts(item, "content")),
            Some("reasoning") => reasoning.push_str(&texts(item, "summary")),
            Some("function_call") => {
                let call =
                    ToolCall::new(text(&item["call_id"]), text(&item["name"]), text(&item["arguments"]));
                calls.push(call);
            }
            _ => {}
        }
    }
    Some(Reply {
        text: spoken(words),
        finish: finish(answer["status"] == "incomplete", &calls),
        reasoning: spoken(reasoning),
        calls,
        ..Reply::say("")
    })
}

/// What an error says, in any of the shapes: its code or type, and its message.
pub(super) fn error(answer: &str) -> (String, String) {
    let value: Value = serde_json::from_str(answer).unwrap_or_default();
    let error = &value["error"];
    let code = error["code"].as_str().or_else(|| error["type"].as_str()).unwrap_or_default();
    let message = error["message"].as_str().or_else(|| error.as_str());
    let message = message.map_or_else(|| answer.chars().take(200).collect(), str::to_owned);
    (code.to_owned(), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Lane;
    use crate::model::Sent;
    use crate::wire::{Row, Segment};

    fn asked(provider: Provider) -> Value {
        let rows = [
            Row::user("What is there?"),
            Row::calls("I look.", vec![ToolCall::new("call_1", "terminal", r#"{"command":"ls"}"#)]),
            Row::result("call_1", "terminal", "a.txt"),
        ];
        let tool = crate::wire::tools::spec("terminal").unwrap().definition().to_string();
        let prefix = [
            Segment::new(Level::Tools, tool),
            Segment::new(Level::System, "You are careful."),
            Segment::new(Level::System, " Today is Monday."),
        ];
        let messages =
            rows.each_ref().map(|row| Segment { level: Level::Messages, text: wire_text(row, true) });
        let marks = [(1, Ttl::Hour1), (5, Ttl::Minutes5)];
        let sent = Sent { prefix: &prefix, messages: &messages, marks: &marks };
        let ask = Ask { lane: Lane::Main, session: "s", turn: 1, tools: &[], system: "", rows: &rows, sent };
        body(provider, &ask, "m", 99)
    }

    #[test]
    fn a_request_to_anthropic_carries_its_markers_where_the_runtime_put_them() {
        let body = asked(Provider::Anthropic);
        assert_eq!(body["tools"][0]["input_schema"]["required"], json!(["command"]));
        assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
        assert!(body["system"][1].get("cache_control").is_none());
        assert_eq!(body["messages"][1]["content"][1]["input"], json!({"command": "ls"}));
        let result = &body["messages"][2]["content"][0];
        assert_eq!(
            (&result["tool_use_id"], &result["cache_control"]["type"]),
            (&json!("call_1"), &json!("ephemeral"))
        );
        assert_eq!(body["max_tokens"], 99);
    }

    #[test]
    fn a_request_to_openai_carries_none_and_the_same_words() {
        let chat = asked(Provider::OpenAi);
        assert!(!chat.to_string().contains("cache_control"));
        assert_eq!(
            chat["messages"][0],
            json!({"role": "system", "content": "You are careful. Today is Monday."})
        );
        assert_eq!(chat["messages"][2]["tool_calls"][0]["function"]["arguments"], r#"{"command":"ls"}"#);
        assert_eq!(
            (&chat["max_completion_tokens"], &asked(Provider::Compatible)["max_tokens"]),
            (&json!(99), &json!(99))
        );
        let responses = asked(Provider::OpenAiResponses);
        assert_eq!(responses["instructions"], "You are careful. Today is Monday.");
        let kinds: Vec<&str> =
            responses["input"].as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
        assert_eq!(kinds, ["function_call", "function_call_output"]);
        assert_eq!(responses["tools"][0]["name"], "terminal");
        assert_eq!(responses["tools"][0]["strict"], false);
    }

    #[test]
    fn an_answer_says_the_same_in_every_shape() {
        let billed = Parts { output: 7, ..Parts::default() };
        let call =
            json!({"id": "c", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}});
        for (provider, answer) in [
            (
                Provider::OpenAi,
                json!({"choices": [{"finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "Well.", "tool_calls": [call]}}]}),
            ),
            (
                Provider::Anthropic,
                json!({"stop_reason": "tool_use", "content": [{"type": "text", "text": "Well."},
                {"type": "tool_use", "id": "c", "name": "t", "input": {"a": 1}}]}),
            ),
            (
                Provider::OpenAiResponses,
                json!({"status": "completed", "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well."}]},
                {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{\"a\":1}"}]}),
            ),
        ] {
            let reply = reply(provider, &answer, Some(&billed)).unwrap();
            assert_eq!(reply.text.as_deref(), Some("Well."), "{provider:?}");
            assert_eq!(reply.calls, [ToolCall::new("c", "t", "{\"a\":1}")], "{provider:?}");
            assert_eq!((reply.finish, reply.output_tokens), (Finish::ToolCalls, Some(7)));
        }
        assert!(reply(Provider::OpenAi, &json!({"error": "x"}), None).is_none());
    }

    #[test]
    fn an_error_is_read_in_every_shape() {
        let pair = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        assert_eq!(
            error(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
            pair("overloaded_error", "busy")
        );
        assert_eq!(
            error(r#"{"error":{"message":"no","type":"t","code":"insufficient_quota"}}"#),
            pair("insufficient_quota", "no")
        );
        assert_eq!(error("<html>"), pair("", "<html>"));
    }
}

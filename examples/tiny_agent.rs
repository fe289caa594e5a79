//! The smallest agent that can be driven: one tool, a history in its home, Chat Completions over plain HTTP.
//!
//! `tiny_agent acp` speaks the Agent Client Protocol on standard input and output; `tiny_agent once PROMPT` answers one
//! prompt and ends, `tiny_agent next ID PROMPT` goes on with a session. `PROVIDER` is the address of the provider.
//! With `REVIEW=on` a review follows every answer and its commands run, as in a harness that does not limit it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "an agent is a program of its own; the lab's seams are not its concern"
)]

use std::io::{BufRead as _, Read as _, Write as _};

use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["acp"] => acp(),
        ["once", prompt] => {
            eprintln!("session: {}", fresh("once"));
            println!("{}", turn("once", prompt));
        }
        ["next", id, prompt] => println!("{}", turn(id, prompt)),
        _ => {
            eprintln!("usage: tiny_agent acp | once PROMPT | next ID PROMPT");
            std::process::exit(2);
        }
    }
}

fn acp() {
    let mut sessions = 0;
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let params = &asked["params"];
        let id = params["sessionId"].as_str().unwrap_or_default();
        let result = match asked["method"].as_str() {
            Some("session/new") => {
                sessions += 1;
                json!({ "sessionId": fresh(&format!("acp-{sessions}")) })
            }
            Some("session/prompt") => {
                let answer = turn(id, params["prompt"][0]["text"].as_str().unwrap_or_default());
                let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": answer } });
                say(
                    &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": id, "update": chunk } }),
                );
                json!({ "stopReason": "end_turn" })
            }
            _ => json!({ "protocolVersion": 1 }),
        };
        say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        if asked["method"] == "session/prompt" && std::env::var("REVIEW").is_ok() {
            review(id);
        }
    }
}

fn say(message: &Value) {
    println!("{message}");
    std::io::stdout().flush().unwrap();
}

fn path(id: &str) -> String {
    format!("{}/{id}.json", std::env::var("HOME").unwrap())
}

/// Begins a session; answers with its id.
fn fresh(id: &str) -> String {
    let system = json!([{ "role": "system", "content": "You are a tiny agent." }]);
    std::fs::write(path(id), system.to_string()).unwrap();
    id.to_owned()
}

fn turn(id: &str, prompt: &str) -> String {
    let mut messages: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path(id)).unwrap()).unwrap();
    messages.push(json!({ "role": "user", "content": prompt }));
    let answer = run(&mut messages);
    std::fs::write(path(id), Value::from(messages).to_string()).unwrap();
    answer
}

fn review(id: &str) {
    let mut messages: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path(id)).unwrap()).unwrap();
    messages.push(
        json!({ "role": "user", "content": "Review the conversation above and keep what is worth keeping." }),
    );
    run(&mut messages);
}

fn run(messages: &mut Vec<Value>) -> String {
    loop {
        let reply = ask(messages);
        let message = reply["choices"][0]["message"].clone();
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return message["content"].as_str().unwrap_or_default().to_owned();
        }
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let command = arguments["command"].as_str().unwrap_or_default();
            let done = std::process::Command::new("/bin/sh").args(["-c", command]).output().unwrap();
            let output = String::from_utf8_lossy(&done.stdout).into_owned();
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": output }));
        }
    }
}

fn ask(messages: &[Value]) -> Value {
    let tools = json!([{ "type": "function", "function": {
        "name": "terminal", "description": "Run a shell command.",
        "parameters": { "type": "object", "properties": { "command": { "type": "string" } } },
    } }]);
    let body = json!({ "model": "mock-model", "messages": messages, "tools": tools }).to_string();
    let provider = std::env::var("PROVIDER").unwrap();
    let address = provider.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

//! A small agent that speaks each of the three protocols: it asks, runs the tools it is told to, and asks again.

use serde_json::{Value, json};

use crate::serve::support::{Answer, Mock};

/// Which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Chat,
    Messages,
    Responses,
}

/// A conversation from the agent's side.
pub struct Agent {
    pub protocol: Protocol,
    pub stream: bool,
    pub history: Vec<Value>,
    pub tools: Vec<&'static str>,
    pub system: String,
}

impl Agent {
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            stream: false,
            history: Vec::new(),
            tools: vec!["terminal", "memory", "delegate_task"],
            system: "You are a careful assistant of the lighthouse keeper.".to_owned(),
        }
    }

    pub fn user(&mut self, text: &str) {
        self.history.push(json!({"role": "user", "content": text}));
    }

    /// The body of the next request.
    pub fn body(&self) -> Value {
        let schema = json!({"type": "object", "properties": {}});
        let tools: Vec<Value> = self
            .tools
            .iter()
            .map(|name| match self.protocol {
                Protocol::Chat => {
                    json!({"type": "function", "function": {"name": name, "parameters": schema}})
                }
                Protocol::Messages => json!({"name": name, "input_schema": schema}),
                Protocol::Responses => json!({"type": "function", "name": name, "parameters": schema}),
            })
            .collect();
        let mut body = json!({"model": "mock-model", "stream": self.stream});
        if !tools.is_empty() {
            body["tools"] = tools.into();
        }
        match self.protocol {
            Protocol::Chat => {
                let mut messages = vec![json!({"role": "system", "content": self.system})];
                messages.extend(self.history.iter().cloned());
                body["messages"] = messages.into();
            }
            Protocol::Messages => {
                body["system"] = self.system.as_str().into();
                body["max_tokens"] = 1_000.into();
                body["messages"] = self.history.clone().into();
            }
            Protocol::Responses => {
                body["instructions"] = self.system.as_str().into();
                body["input"] = self.history.clone().into();
            }
        }
        body
    }

    pub fn ask(&self, mock: &Mock) -> Answer {
        let path = match self.protocol {
            Protocol::Chat => "/v1/chat/completions",
            Protocol::Messages => "/v1/messages",
            Protocol::Responses => "/v1/responses",
        };
        mock.post(path, &self.body().to_string())
    }

    /// Takes a plain answer into the history; ids of the calls that it makes.
    pub fn take(&mut self, answer: &Answer) -> Vec<String> {
        assert_eq!(answer.status, 200, "{}", answer.body);
        let value = answer.json();
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        match self.protocol {
            Protocol::Chat => {
                let mut message = value["choices"][0]["message"].clone();
                message.as_object_mut().unwrap().remove("refusal");
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                self.history.push(message);
                calls.iter().map(|call| id(&call["id"])).collect()
            }
            Protocol::Messages => {
                let content = value["content"].clone();
                let calls = content.as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
                let calls = calls.map(|call| id(&call["id"])).collect();
                self.history.push(json!({"role": "assistant", "content": content}));
                calls
            }
            Protocol::Responses => {
                let items = value["output"].as_array().unwrap();
                self.history.extend(items.iter().cloned());
                let calls = items.iter().filter(|item| item["type"] == "function_call");
                calls.map(|call| id(&call["call_id"])).collect()
            }
        }
    }

    /// Gives the results of calls.
    pub fn results(&mut self, ids: &[String], text: &str) {
        match self.protocol {
            Protocol::Chat => self
                .history
                .extend(ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": text}))),
            Protocol::Messages => {
                let blocks: Vec<Value> = ids
                    .iter()
                    .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": text}))
                    .collect();
                self.history.push(json!({"role": "user", "content": blocks}));
            }
            Protocol::Responses => self.history.extend(
                ids.iter().map(|id| json!({"type": "function_call_output", "call_id": id, "output": text})),
            ),
        }
    }

    /// Plays a whole turn; the answer in words.
    pub fn turn(&mut self, mock: &Mock, say: &str) -> String {
        self.user(say);
        self.go_on(mock)
    }

    /// Asks until an answer calls nothing.
    pub fn go_on(&mut self, mock: &Mock) -> String {
        for _ in 0..50 {
            let answer = self.ask(mock);
            let calls = self.take(&answer);
            if calls.is_empty() {
                return self.words(&answer);
            }
            self.results(&calls, "a.txt b.txt");
        }
        panic!("the turn does not end");
    }

    pub fn words(&self, answer: &Answer) -> String {
        let value = answer.json();
        let pointer = match self.protocol {
            Protocol::Chat => "/choices/0/message/content",
            Protocol::Messages => "/content/0/text",
            Protocol::Responses => "/output/0/content/0/text",
        };
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

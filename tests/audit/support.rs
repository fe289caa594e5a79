//! Sessions for the tests of the audit: built clean, then mutated at one request.

#![expect(clippy::unwrap_used, reason = "a generator of tests may fail loudly")]

use hermes_lab::audit::read::{self, Format, Reading};
use hermes_lab::audit::{Audit, Auditor, Cause, Options};
use serde_json::{Value, json};

/// Runs the library over a log.
pub fn audit_bytes(bytes: Vec<u8>, format: Option<Format>) -> (Audit, Reading) {
    let mut auditor = Auditor::new(Options::default());
    let reading = read::read("log", Box::new(std::io::Cursor::new(bytes)), format, &mut auditor).unwrap();
    (auditor.finish(), reading)
}

/// Lines as a file.
pub fn log_bytes(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// Runs the library over lines.
pub fn audit(lines: &[Value]) -> Audit {
    audit_bytes(log_bytes(lines), None).0
}

/// Causes of each request, decisive and latent, without the harmless ones.
pub fn causes(audit: &Audit) -> Vec<(usize, Vec<Cause>)> {
    audit
        .requests
        .iter()
        .map(|judged| {
            let mut causes = vec![judged.cause];
            causes.extend(&judged.latent);
            causes.retain(|cause| !matches!(cause, Cause::None | Cause::ColdStart));
            causes.sort_unstable();
            (judged.index, causes)
        })
        .filter(|(_, causes)| !causes.is_empty())
        .collect()
}

/// Wire shapes that are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

/// What is done to a session from one request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    Clock,
    Id,
    Memory,
    ToolOrder,
    ToolAdded,
    ToolSchema,
    KeyOrder,
    ResultCut,
    UserEdit,
    ModelSwitch,
    Thinking,
    ResultOrder,
    ReasoningDropped,
    BlockMoved,
    Compacted,
    Idle,
}

impl Mutation {
    pub fn cause(self) -> Cause {
        match self {
            Self::Clock => Cause::VolatileTime,
            Self::Id => Cause::VolatileId,
            Self::Memory => Cause::MemoryLiveRead,
            Self::ToolOrder => Cause::ToolReorder,
            Self::ToolAdded => Cause::ToolSetChanged,
            Self::ToolSchema => Cause::ToolSchemaChanged,
            Self::KeyOrder => Cause::JsonKeyOrder,
            Self::ResultCut | Self::UserEdit => Cause::HistoryRewritten,
            Self::ModelSwitch => Cause::ModelChanged,
            Self::Thinking => Cause::ParamsChanged,
            Self::ResultOrder => Cause::ResultReorder,
            Self::ReasoningDropped => Cause::ReasoningDropped,
            Self::BlockMoved => Cause::BlockMigrated,
            Self::Compacted => Cause::PlannedCompaction,
            Self::Idle => Cause::TtlExpired,
        }
    }
}

/// A session to be sent turn by turn.
#[derive(Debug, Clone)]
pub struct Session {
    pub wire: Wire,
    pub name: String,
    /// Words that make its texts unlike those of other sessions.
    pub salt: u64,
    pub tools: usize,
    /// Calls of each step; 0 for a step of plain talk.
    pub steps: Vec<usize>,
    /// Each request writes a lone text as a string or as a block, as the bit says.
    pub folded: u64,
}

const WORDS: &[&str] = &[
    "harbour", "lantern", "quartz", "meadow", "timber", "saffron", "glacier", "orchard", "ripple", "velvet",
    "compass", "willow", "beacon", "copper", "granite", "thicket",
];

/// A text of so many words, unlike that of any other salt.
pub fn words(salt: u64, count: u64) -> String {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)) >> 59
    };
    (0..count).map(|_| WORDS[usize::try_from(next() % 16).unwrap()]).collect::<Vec<_>>().join(" ")
}

/// Places of the results of a step, in the order in which they are sent.
fn order(calls: usize, has: &dyn Fn(Mutation) -> bool) -> Vec<usize> {
    if has(Mutation::ResultOrder) { (0..calls).rev().collect() } else { (0..calls).collect() }
}

impl Session {
    /// Requests of the session.
    pub fn count(&self) -> usize {
        self.steps.len() + 1
    }

    /// The request of a turn under these mutations (each from its turn on).
    pub fn request(&self, turn: usize, mutations: &[(Mutation, usize)]) -> Value {
        let has =
            |wanted: Mutation| mutations.iter().any(|(mutation, from)| *mutation == wanted && turn >= *from);
        let model = match (self.wire, has(Mutation::ModelSwitch)) {
            (Wire::Anthropic, false) => "claude-sonnet-4-5",
            (Wire::Anthropic, true) => "claude-opus-4-5",
            (Wire::Gemini, false) => "gemini-2.5-pro",
            (Wire::Gemini, true) => "gemini-2.5-flash",
            (_, false) => "gpt-4o",
            (_, true) => "gpt-4.1",
        };
        let tools = self.tool_list(&has);
        let system = format!(
            "You keep the {}.\nLocal time is {}. Session {}.\n\n{}\n\nMEMORY\nThe bridge is closed until June.{}",
            words(self.salt, 12),
            if has(Mutation::Clock) { "09:15" } else { "09:14" },
            if has(Mutation::Id) { "9f31c2d7" } else { "4b80a6e1" },
            words(self.salt + 5, 40),
            if has(Mutation::Memory) { "\n§\nThe user wants metric units." } else { "" }
        );
        match self.wire {
            Wire::Anthropic => {
                let moved = mutations
                    .iter()
                    .find(|(mutation, from)| *mutation == Mutation::BlockMoved && turn >= *from);
                self.anthropic(turn, model, &tools, &system, &has, moved.map(|(_, from)| *from))
            }
            Wire::Chat => self.chat(turn, model, &tools, &system, &has),
            Wire::Responses => self.responses(turn, model, &tools, &system, &has),
            Wire::Gemini => self.gemini(turn, model, &tools, &system, &has),
        }
    }

    fn tool_list(&self, has: &dyn Fn(Mutation) -> bool) -> Vec<Value> {
        let schema = |at: usize| {
            let what = if has(Mutation::ToolSchema) && at == 0 { "A place, absolute." } else { "A place." };
            if has(Mutation::KeyOrder) && at == 1 {
                json!({"properties": {"place": {"type": "string", "description": what}}, "type": "object"})
            } else {
                json!({"type": "object", "properties": {"place": {"type": "string", "description": what}}})
            }
        };
        let describe = |at: usize| words(self.salt + at as u64 * 3, 9);
        let mut tools: Vec<Value> = (0..self.tools)
            .map(|at| match self.wire {
                Wire::Anthropic => json!({"name": format!("tool_{at}"), "description": describe(at), "input_schema": schema(at)}),
                Wire::Chat => json!({"type": "function", "function": {"name": format!("tool_{at}"), "description": describe(at), "parameters": schema(at)}}),
                Wire::Responses => json!({"type": "function", "name": format!("tool_{at}"), "description": describe(at), "parameters": schema(at)}),
                Wire::Gemini => json!({"name": format!("tool_{at}"), "description": describe(at), "parameters": schema(at)}),
            })
            .collect();
        if has(Mutation::ToolAdded) {
            let mut extra = tools[0].clone();
            let name = json!("zz_new");
            if self.wire == Wire::Chat {
                extra["function"]["name"] = name;
            } else {
                extra["name"] = name;
            }
            tools.push(extra);
        }
        if has(Mutation::ToolOrder) {
            let last = self.tools - 1;
            tools.swap(last - 1, last);
        }
        tools
    }

    fn user(&self, step: usize, edited: bool) -> String {
        let own = words(self.salt * 17 + step as u64 * 29 + 1, 14);
        if edited && step == 0 { format!("{own} and then some more of it") } else { format!("{own} {step}") }
    }

    fn result(&self, step: usize, call: usize, cut: bool) -> String {
        let own = words(self.salt * 13 + step as u64 * 5 + call as u64 * 3, 60);
        if cut {
            format!("{} [trimmed]", own.split(' ').next().unwrap_or_default())
        } else {
            format!("{own} {step} {call}")
        }
    }

    fn id(&self, step: usize, call: usize) -> String {
        format!("call_{}_{step}_{call}", self.salt)
    }

    /// The first step that makes calls, whose first result the mutation cuts.
    fn cut_step(&self) -> Option<usize> {
        self.steps.iter().position(|calls| *calls > 0)
    }

    /// True when a mutation can show at a turn.
    pub fn takes(&self, mutation: Mutation, turn: usize) -> bool {
        match mutation {
            Mutation::ResultCut => self.cut_step().is_some_and(|step| turn > step + 1),
            Mutation::UserEdit => turn >= 2,
            Mutation::ResultOrder => {
                let wide = self.steps.iter().position(|calls| *calls > 1);
                matches!(self.wire, Wire::Anthropic | Wire::Chat | Wire::Responses)
                    && wide.is_some_and(|step| turn > step + 1)
            }
            Mutation::ReasoningDropped => matches!(self.wire, Wire::Anthropic | Wire::Chat) && turn >= 2,
            Mutation::BlockMoved => self.wire == Wire::Anthropic && turn >= 2,
            Mutation::Compacted => matches!(self.wire, Wire::Anthropic | Wire::Chat) && turn >= 4,
            Mutation::ToolOrder => self.tools >= 3 && turn >= 1,
            Mutation::KeyOrder => self.tools >= 2 && turn >= 1,
            _ => turn >= 1,
        }
    }

    fn anthropic(
        &self,
        turn: usize,
        model: &str,
        tools: &[Value],
        system: &str,
        has: &dyn Fn(Mutation) -> bool,
        moved: Option<usize>,
    ) -> Value {
        let text = |text: String, place: usize| -> Value {
            if self.folded >> (place % 60) & 1 == (turn as u64 & 1) {
                json!(text)
            } else {
                json!([{"type": "text", "text": text}])
            }
        };
        let mut messages =
            vec![json!({"role": "user", "content": text(self.user(0, has(Mutation::UserEdit)), 0)})];
        for (step, &calls) in self.steps.iter().enumerate().take(turn) {
            let mut said = if has(Mutation::ReasoningDropped) {
                Vec::new()
            } else {
                vec![
                    json!({"type": "thinking", "thinking": words(self.salt + step as u64 * 37, 20), "signature": "s"}),
                ]
            };
            said.extend([json!({"type": "text", "text": words(self.salt + step as u64 * 11, 10)})]);
            said.extend((0..calls).map(|call| {
                json!({"type": "tool_use", "id": self.id(step, call), "name": "tool_0", "input": {"place": WORDS[call % 16]}})
            }));
            messages.push(json!({"role": "assistant", "content": said}));
            if calls == 0 {
                messages.push(json!({"role": "user", "content": text(self.user(step + 1, false), step + 1)}));
                continue;
            }
            let mut results: Vec<Value> = (0..calls)
                .map(|call| {
                    let cut = has(Mutation::ResultCut) && self.cut_step() == Some(step) && call == 0;
                    json!({"type": "tool_result", "tool_use_id": self.id(step, call), "content": self.result(step, call, cut)})
                })
                .collect();
            if has(Mutation::ResultOrder) {
                results.reverse();
            }
            messages.push(json!({"role": "user", "content": results}));
        }
        self.injected(&mut messages, moved);
        self.compacted(&mut messages, 0, has(Mutation::Compacted));
        let last = messages.last_mut().unwrap();
        if last["content"].is_string() {
            last["content"] = json!([{"type": "text", "text": last["content"]}]);
        }
        let blocks = last["content"].as_array_mut().unwrap();
        blocks.last_mut().unwrap()["cache_control"] = json!({"type": "ephemeral"});
        let mut body = json!({
            "model": model, "max_tokens": 1024,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "tools": tools, "messages": messages,
        });
        if has(Mutation::Thinking) {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
        }
        body
    }

    fn chat(
        &self,
        turn: usize,
        model: &str,
        tools: &[Value],
        system: &str,
        has: &dyn Fn(Mutation) -> bool,
    ) -> Value {
        let text = |text: String, place: usize| -> Value {
            if self.folded >> (place % 60) & 1 == (turn as u64 & 1) {
                json!(text)
            } else {
                json!([{"type": "text", "text": text}])
            }
        };
        let mut messages = vec![
            json!({"role": "system", "content": system}),
            json!({"role": "user", "content": text(self.user(0, has(Mutation::UserEdit)), 0)}),
        ];
        for (step, &calls) in self.steps.iter().enumerate().take(turn) {
            let said = words(self.salt + step as u64 * 11, 10);
            if calls == 0 {
                messages.push(self.thought(json!({"role": "assistant", "content": said}), step, has));
                messages.push(json!({"role": "user", "content": text(self.user(step + 1, false), step + 1)}));
                continue;
            }
            let made: Vec<Value> = (0..calls)
                .map(|call| json!({"id": self.id(step, call), "type": "function", "function": {"name": "tool_0", "arguments": "{\"place\":\"here\"}"}}))
                .collect();
            messages.push(self.thought(
                json!({"role": "assistant", "content": said, "tool_calls": made}),
                step,
                has,
            ));
            for call in order(calls, has) {
                let cut = has(Mutation::ResultCut) && self.cut_step() == Some(step) && call == 0;
                messages.push(json!({"role": "tool", "tool_call_id": self.id(step, call), "content": self.result(step, call, cut)}));
            }
        }
        self.compacted(&mut messages, 1, has(Mutation::Compacted));
        let mut body = json!({"model": model, "tools": tools, "messages": messages});
        if has(Mutation::Thinking) {
            body["reasoning_effort"] = json!("high");
        }
        body
    }

    fn responses(
        &self,
        turn: usize,
        model: &str,
        tools: &[Value],
        system: &str,
        has: &dyn Fn(Mutation) -> bool,
    ) -> Value {
        let said = |role: &str, kind: &str, text: String| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        let mut input = vec![said("user", "input_text", self.user(0, has(Mutation::UserEdit)))];
        for (step, &calls) in self.steps.iter().enumerate().take(turn) {
            input.push(said("assistant", "output_text", words(self.salt + step as u64 * 11, 10)));
            for call in 0..calls {
                input.push(json!({"type": "function_call", "id": format!("fc_{turn}_{call}"), "call_id": self.id(step, call), "name": "tool_0", "arguments": "{}"}));
            }
            for call in order(calls, has) {
                let cut = has(Mutation::ResultCut) && self.cut_step() == Some(step) && call == 0;
                input.push(json!({"type": "function_call_output", "call_id": self.id(step, call), "output": self.result(step, call, cut)}));
            }
            if calls == 0 {
                input.push(said("user", "input_text", self.user(step + 1, false)));
            }
        }
        let mut body = json!({"model": model, "instructions": system, "tools": tools, "input": input});
        if has(Mutation::Thinking) {
            body["reasoning"] = json!({"effort": "high"});
        }
        body
    }

    fn gemini(
        &self,
        turn: usize,
        model: &str,
        tools: &[Value],
        system: &str,
        has: &dyn Fn(Mutation) -> bool,
    ) -> Value {
        let said = |role: &str, text: String| json!({"role": role, "parts": [{"text": text}]});
        let mut contents = vec![said("user", self.user(0, has(Mutation::UserEdit)))];
        for (step, &calls) in self.steps.iter().enumerate().take(turn) {
            if calls == 0 {
                contents.push(said("model", words(self.salt + step as u64 * 11, 10)));
                contents.push(said("user", self.user(step + 1, false)));
                continue;
            }
            let made: Vec<Value> = (0..calls)
                .map(|call| json!({"functionCall": {"name": "tool_0", "args": {"place": call}}}))
                .collect();
            contents.push(json!({"role": "model", "parts": made}));
            let results: Vec<Value> = (0..calls)
                .map(|call| {
                    let cut = has(Mutation::ResultCut) && self.cut_step() == Some(step) && call == 0;
                    json!({"functionResponse": {"name": "tool_0", "response": {"text": self.result(step, call, cut)}}})
                })
                .collect();
            contents.push(json!({"role": "user", "parts": results}));
        }
        let tools = json!([{"functionDeclarations": tools}]);
        let mut body = json!({
            "model": model, "systemInstruction": {"parts": [{"text": system}]}, "tools": tools, "contents": contents,
        });
        if has(Mutation::Thinking) {
            body["toolConfig"] = json!({"functionCallingConfig": {"mode": "ANY"}});
        }
        body
    }

    /// A list that the client puts into the first user message, or, moved, into what was the newest one then.
    fn injected(&self, messages: &mut [Value], moved: Option<usize>) {
        let block = json!({"type": "text", "text": format!("<available-skills>{}</available-skills>", words(self.salt + 99, 8))});
        // Every step is an answer and what the user's side adds to it.
        let place = 2 * moved.unwrap_or(0);
        let content = &mut messages[place]["content"];
        if content.is_string() {
            *content = json!([{"type": "text", "text": *content}]);
        }
        content.as_array_mut().unwrap().insert(0, block);
    }

    /// A summary in the place of all but the newest message; in later requests it stays as it was.
    fn compacted(&self, messages: &mut Vec<Value>, head: usize, done: bool) {
        if !done {
            return;
        }
        let end = messages.len() - 1;
        let summary = json!({"role": "user", "content": format!("[summary] {}", words(self.salt + 7, 12))});
        let answer = json!({"role": "assistant", "content": "Understood."});
        messages.splice(head..end, [summary, answer]);
        // Results without their calls would be a fault of its own.
        let last = messages.last_mut().unwrap();
        *last = json!({"role": "user", "content": words(self.salt + 8, 6)});
    }

    fn thought(&self, mut message: Value, step: usize, has: &dyn Fn(Mutation) -> bool) -> Value {
        if !has(Mutation::ReasoningDropped) {
            message["reasoning_content"] = json!(words(self.salt + step as u64 * 37, 20));
        }
        message
    }

    /// The session as a gateway logs it, a request every twenty seconds.
    pub fn log(&self, mutations: &[(Mutation, usize)], named: bool) -> Vec<Value> {
        (0..self.count())
            .map(|turn| {
                let idle =
                    mutations.iter().any(|(mutation, from)| *mutation == Mutation::Idle && turn >= *from);
                let at = 1_780_000_000 + turn as u64 * 20 + if idle { 720 } else { 0 };
                let mut line = json!({"timestamp": at, "request": self.request(turn, mutations)});
                if named {
                    line["session_id"] = json!(self.name);
                }
                line
            })
            .collect()
    }
}

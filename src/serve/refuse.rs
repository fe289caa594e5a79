//! What a provider refuses, with its status and in its shape.

use serde_json::{Value, json};

use crate::audit::history;
use crate::audit::predict::Illegal;
use crate::audit::prompt::{Kind, Prompt, Shape, Speaker};
use crate::cache::Refusal;
use crate::wire::Level;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// HTTP status.
    pub(super) status: u16,
    /// Type of the error.
    pub(super) kind: &'static str,
    /// Code, in OpenAI's shape.
    pub(super) code: Option<&'static str>,
    /// The parameter that is wrong, in OpenAI's shape.
    pub(super) param: Option<String>,
    /// What is wrong, for people.
    pub(super) message: String,
    /// Seconds after which the client may try again.
    pub(super) retry_after: Option<u64>,
}

impl Refused {
    /// A request that is wrong.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::of(400, "invalid_request_error", message)
    }

    /// Any error.
    pub(super) fn of(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, code: None, param: None, message: message.into(), retry_after: None }
    }

    /// The same with a code.
    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same with the parameter that is wrong.
    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The body in the shape of a protocol.
    pub(super) fn body(&self, shape: Shape) -> Value {
        if shape == Shape::Anthropic {
            return json!({"type": "error", "error": {"type": anthropic_kind(self), "message": self.message}});
        }
        json!({"error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }

    /// The word for ledgers and reports.
    pub(super) fn word(&self) -> &'static str {
        self.code.unwrap_or(self.kind)
    }
}

fn anthropic_kind(refused: &Refused) -> &'static str {
    match refused.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The fault of a script as the answer that a provider gives; `None` for faults that are no answer.
pub(super) fn scripted(fault: &str, limit: u64, retry_after: Option<u64>) -> Option<Refused> {
    Some(match fault {
        "rate_limited" => Refused {
            retry_after: Some(retry_after.unwrap_or(1)),
            ..Refused::of(429, "rate_limit_error", "too many requests; try again later")
                .code("rate_limit_exceeded")
        },
        "overloaded" => Refused {
            retry_after,
            ..Refused::of(529, "overloaded_error", "the service is overloaded").code("overloaded")
        },
        "server_error" => Refused::of(500, "server_error", "the server had an error").code("server_error"),
        "unauthorized" => {
            Refused::of(401, "authentication_error", "the key is not valid").code("invalid_api_key")
        }
        "context_length" => too_long(limit + 1, limit),
        "refused" => Refused::of(403, "permission_error", "the request was refused by the provider's policy")
            .code("content_policy_violation"),
        _ => return None,
    })
}

/// A body that no parser takes.
pub(super) fn no_json(error: &dyn std::fmt::Display) -> Refused {
    Refused::invalid(format!("the body is not valid JSON: {error}")).code("invalid_json")
}

/// A body without a conversation.
pub(super) fn missing(shape: Shape) -> Refused {
    let name = if shape == Shape::Responses { "input" } else { "messages" };
    Refused::invalid(format!("Missing required parameter: '{name}'.")).param(name)
}

/// A model that nobody serves.
pub(super) fn no_model(name: &str) -> Refused {
    let message = format!("The model `{name}` does not exist");
    Refused::of(404, "not_found_error", message).code("model_not_found").param("model")
}

/// A prompt that does not fit into the window.
pub(super) fn too_long(tokens: u64, limit: u64) -> Refused {
    let message = format!(
        "prompt is too long: {tokens} tokens > {limit} maximum. This model's maximum context length is {limit} \
         tokens. Reduce the length of the messages."
    );
    Refused::invalid(message).code("context_length_exceeded").param("messages")
}

/// A history that no provider takes.
pub(super) fn history(prompt: &Prompt, from: usize) -> Option<Refused> {
    let fault = history::faults(prompt, from).into_iter().next().or_else(|| unanswered_at_end(prompt))?;
    let told = history::told(prompt, &fault);
    let (place, id) = (dotted(&told.pointer), &told.id);
    let anthropic = prompt.shape == Shape::Anthropic;
    let refused = match (fault.kind, prompt.shape) {
        ("orphan_result", Shape::Anthropic) => Refused::invalid(format!(
            "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
             have a corresponding `tool_use` block in the previous message."
        )),
        ("orphan_result", Shape::Responses) => {
            Refused::invalid(format!("No tool call found for function call output with call_id {id}."))
                .param("input")
        }
        ("orphan_result", _) => Refused::invalid(format!(
            "Invalid parameter: messages with role 'tool' must be a response to a preceding message with \
             'tool_calls' (tool_call_id {id})."
        ))
        .param(place),
        ("orphan_use", Shape::Anthropic) => Refused::invalid(format!(
            "{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message."
        )),
        ("orphan_use", Shape::Responses) => {
            Refused::invalid(format!("No tool output found for function call {id}.")).param("input")
        }
        ("orphan_use", _) => Refused::invalid(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
        ))
        .param(place),
        (kind, _) => {
            let what = kind.replace('_', " ");
            let refused = Refused::invalid(format!("{place}: {what} {id}").trim_end().to_owned());
            if anthropic { refused } else { refused.param(place) }
        }
    };
    Some(refused)
}

/// Calls at the very end of a history: nobody answered them, and the model is asked to go on.
fn unanswered_at_end(prompt: &Prompt) -> Option<history::Fault> {
    if prompt.continues {
        return None;
    }
    if prompt.shape == Shape::Responses {
        let answered: std::collections::BTreeSet<u64> =
            prompt.ids.iter().filter(|fact| fact.answers).map(|fact| fact.id).collect();
        let at = prompt
            .segs
            .iter()
            .position(|seg| seg.kind == Kind::Call && seg.id != 0 && !answered.contains(&seg.id))?;
        return Some(history::Fault { kind: "orphan_use", at, id: prompt.segs[at].id });
    }
    // Behind the newest message that makes calls only results may follow, one for each call.
    let last = prompt.turns.iter().rposition(|turn| turn.speaker == Speaker::Assistant)?;
    let ids = |turn: &crate::audit::prompt::Turn, answers: bool| {
        let first = turn.ids as usize;
        let facts = &prompt.ids[first..first + turn.id_count as usize];
        facts.iter().filter(move |fact| fact.answers == answers).map(|fact| fact.id).collect::<Vec<_>>()
    };
    let answered: Vec<u64> = prompt.turns[last + 1..].iter().flat_map(|turn| ids(turn, true)).collect();
    let open = ids(&prompt.turns[last], false).into_iter().find(|id| !answered.contains(id))?;
    Some(history::Fault { kind: "orphan_use", at: prompt.turns[last].first as usize, id: open })
}

/// An empty text where the provider wants words.
pub(super) fn empty_text(prompt: &Prompt) -> Option<Refused> {
    if prompt.shape != Shape::Anthropic {
        return None;
    }
    let marked = prompt.marks.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let at = prompt.segs.iter().enumerate().position(|(at, seg)| {
        seg.level != Level::Tools && seg.kind == Kind::Text && seg.unmarkable && !marked.contains(&at)
    })?;
    Some(Refused::invalid(format!("{}: text content blocks must be non-empty", dotted(&prompt.pointer(at)))))
}

/// Markers that no provider takes.
pub(super) fn markers(prompt: &Prompt, illegal: Illegal) -> Refused {
    match illegal {
        Illegal::Overflow(count) => Refused::invalid(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {count}."
        )),
        Illegal::Target(at) => {
            let what =
                if prompt.segs[at].kind == Kind::Thinking { "thinking blocks" } else { "empty text blocks" };
            Refused::invalid(format!(
                "{}: cache_control cannot be set for {what}",
                dotted(&prompt.pointer(at))
            ))
        }
        Illegal::Order(at) => Refused::invalid(format!(
            "{}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
             block. Blocks are processed in the order tools, system, messages.",
            dotted(&prompt.pointer(at))
        )),
    }
}

/// What the cache model itself refuses.
pub(super) fn by_cache(refusal: Refusal) -> Refused {
    let message = match refusal {
        Refusal::TooManyBreakpoints => "A maximum of 4 blocks with cache_control may be provided.",
        Refusal::TtlOrder => {
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        }
        Refusal::AutoNoSlot => {
            "cache_control: no slot is left for the automatic marker; four blocks carry one"
        }
        Refusal::AutoTtlConflict => "cache_control: the last block already carries a marker with another ttl",
        Refusal::AutoUnsupported => "cache_control: extra inputs are not permitted",
        Refusal::UnsupportedMarker => "cache_control cannot be set on this block",
    };
    Refused::invalid(message)
}

/// `/messages/2/content/0` as `messages.2.content.0`.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

//! What is shortened or taken out without a model: old output, loose pairs, one-line summaries of results.

use serde_json::{Value, json};

use super::{Answer, Given, tag, tagged};
use crate::agent::compress::prune::{Decision, Proactive, ProactiveLimits, Tail};
use crate::agent::compress::tool_summary::CallOutcome;
use crate::agent::compress::window::Past;
use crate::agent::compress::{pairs, prune, threshold, tool_summary, window};
use crate::policy::Compress;
use crate::wire::{Role, Row, ToolCall};

pub(super) fn sanitize_pairs(given: Given<'_>) -> Value {
    let rows = tagged(given.rows("messages"));
    let (kept, _) = pairs::clean(rows.clone());
    let kept: Vec<Value> = kept
        .iter()
        .map(|row| {
            let calls: Option<Vec<&str>> =
                row.tool_calls.as_ref().map(|calls| calls.iter().map(|call| call.id.as_str()).collect());
            let index = tag(row).as_u64().and_then(|index| usize::try_from(index).ok());
            let before = index.and_then(|index| rows.get(index));
            let replaced = before.is_some_and(|before| before.content != row.content);
            json!({"i": tag(row), "calls": calls, "content_replaced": replaced})
        })
        .collect();
    json!({"kept": kept})
}

fn decision_word(decision: Decision) -> &'static str {
    match decision {
        Decision::Keep => "keep",
        Decision::Duplicate => "duplicate",
        Decision::Summarized => "summarized",
        Decision::ImageStripped => "image_stripped",
    }
}

pub(super) fn prune_rows(given: Given<'_>) -> Value {
    let rows = given.rows("messages");
    let window = given.size("context_length");
    let tail = Tail {
        rows: given.index("protect_tail_count"),
        budget: given.value("protect_tail_tokens").as_u64(),
        window,
        input_budget: window,
        min_chars: given.size("min_prune_chars"),
    };
    let done = prune::prune(&rows, tail, &Compress::default());
    let decisions: Vec<&str> = done.decisions.iter().copied().map(decision_word).collect();
    let calls_same = rows.iter().zip(&done.rows).all(|(old, new)| old.tool_calls == new.tool_calls);
    json!({
        "pruned": done.count,
        "decisions": decisions,
        "input_untouched": rows == given.rows("messages"),
        "arguments_untouched": calls_same,
    })
}

pub(super) fn proactive_prune(given: Given<'_>) -> Value {
    let mut rows = vec![Row::new(Role::System, "s"), Row::user("go")];
    for (round, letter) in (0..given.index("tool_rounds")).zip(('a'..='z').cycle()) {
        let id = format!("c{round}");
        rows.push(Row::calls("", vec![ToolCall::new(id.as_str(), "terminal", "{\"command\": \"ls\"}")]));
        rows.push(Row::result(id, "terminal", letter.to_string().repeat(given.index("result_chars"))));
    }
    let policy = given.policy();
    let window = given.size("context_length");
    let threshold = threshold::threshold(window, policy.threshold, None, None, &policy);
    let limits = ProactiveLimits {
        current: given.value("current_tokens").as_u64(),
        threshold: threshold.tokens,
        head: window::head_size(&rows, Past::default(), &policy),
        window,
        input_budget: threshold.input_budget,
        runway: given.size("rearm_tokens"),
    };
    match prune::proactive(&rows, limits, &policy) {
        Proactive::Idle => {
            json!({"pruned": 0, "same_object": true, "committed": false, "rearm_is_set": false})
        }
        Proactive::Committed { count, runway, .. } => json!({
            "pruned": count, "same_object": false, "committed": true, "rearm_is_set": runway > limits.runway,
        }),
    }
}

pub(super) fn tool_line(given: Given<'_>) -> Answer {
    let arguments = given.value("arguments").as_str().unwrap_or("");
    let content = given.value("content").as_str().unwrap_or("");
    let tool = given.text("tool")?;
    let line = tool_summary::summarize(tool, arguments, content);
    // The vector's own fragments are looked for; the answer lists those that are as they should be.
    let probe = |text: &str| line.text.contains(text);
    Ok(json!({
        "single_line": line.text.lines().count() == 1,
        "under_200_chars": line.text.chars().count() < 200,
        "starts_with_tool_tag": line.text.starts_with(&format!("[{tool}]")),
        "says_failed": line.outcome == CallOutcome::Failed,
        "says_skipped": line.outcome == CallOutcome::Skipped,
        "says_refused": matches!(line.outcome, CallOutcome::Refused { .. }),
        "says_no_consent": line.outcome == (CallOutcome::Refused { no_consent: true }),
        "carries_skill_marker": probe(tool_summary::SKILL_MARKER),
        "line": line.text,
    }))
}

//! A shorter replay for a review on another model. Source: Hermes agent/background_review.py:324.

use crate::wire::Row;

/// Rows that are replayed as they are; Hermes agent/background_review.py:324.
const KEPT: usize = 24;
/// Characters of a user row in the digest.
const USER_CHARS: usize = 300;
/// Characters of an assistant row in the digest.
const ASSISTANT_CHARS: usize = 200;
/// First line of the digest.
const LEAD: &str = "What was said before, in short; the latest messages follow unchanged.";

/// The conversation as another model is given it: the latest rows verbatim, what came before as one user row.
///
/// Never begins the verbatim part with a tool result: its call stays with it.
pub fn digest(rows: &[Row]) -> Vec<Row> {
    let mut from = rows.len().saturating_sub(KEPT);
    while from > 0 && rows[from].is_tool() {
        from -= 1;
    }
    if from == 0 {
        return rows.to_vec();
    }
    let mut lines = vec![LEAD.to_owned()];
    rows[..from].iter().for_each(|row| add_lines(row, &mut lines));
    std::iter::once(Row::user(lines.join("\n"))).chain(rows[from..].iter().cloned()).collect()
}

fn add_lines(row: &Row, lines: &mut Vec<String>) {
    let text = row.content.flat();
    let cut = |max: usize| -> String {
        text.trim().chars().take(max).map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }).collect()
    };
    if row.is_user() {
        if !text.trim().is_empty() {
            lines.push(format!("USER: {}", cut(USER_CHARS)));
        }
    } else if row.is_assistant() {
        if row.has_calls() {
            let names: Vec<&str> = row.call_list().iter().map(|call| call.name.as_str()).collect();
            lines.push(format!("ASSISTANT[tools: {}]", names.join(", ")));
        }
        if !text.trim().is_empty() {
            lines.push(format!("ASSISTANT: {}", cut(ASSISTANT_CHARS)));
        }
    }
}

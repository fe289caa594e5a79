//! The tool list before and after: order, set, schemas, key order.

use serde_json::Value;

use crate::audit::compare::pair::{changed_path, order_path};
use crate::audit::compare::{Finding, first_of};
use crate::audit::prompt::Prompt;
use crate::audit::text_kind::{self, TextKind};
use crate::audit::words::Cause;
use crate::wire::Level;

struct Tool {
    name: String,
    at: usize,
}

fn tools(prompt: &Prompt) -> Vec<Tool> {
    (0..first_of(prompt, Level::System))
        .map(|at| Tool { name: prompt.value(at).map_or_else(String::new, |value| name(&value)), at })
        .collect()
}

/// The name of a tool definition, whatever its shape.
fn name(value: &Value) -> String {
    let own = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    own(value)
        .or_else(|| value.get("function").and_then(own))
        .or_else(|| value.get("type").and_then(Value::as_str).map(str::to_owned))
        .unwrap_or_else(|| value.to_string())
}

pub(super) fn compare(before: &Prompt, after: &Prompt, out: &mut Vec<Finding>) {
    let (count_b, count_a) = (first_of(before, Level::System), first_of(after, Level::System));
    let same = count_b == count_a
        && before.segs[..count_b].iter().zip(&after.segs[..count_a]).all(|(a, b)| a.hash == b.hash);
    if same {
        return;
    }
    let (old, new) = (tools(before), tools(after));
    set(&old, &new, after, out);
    order(&old, &new, before, after, out);
    for tool in &new {
        let earlier = old.iter().find(|earlier| earlier.name == tool.name);
        if let Some(earlier) =
            earlier.filter(|earlier| before.segs[earlier.at].hash != after.segs[tool.at].hash)
        {
            out.push(changed(before, after, earlier, tool));
        }
    }
}

fn set(old: &[Tool], new: &[Tool], after: &Prompt, out: &mut Vec<Finding>) {
    let lacks = |list: &[Tool], name: &str| list.iter().all(|tool| tool.name != name);
    let added: Vec<&Tool> = new.iter().filter(|tool| lacks(old, &tool.name)).collect();
    let removed: Vec<&Tool> = old.iter().filter(|tool| lacks(new, &tool.name)).collect();
    if added.is_empty() && removed.is_empty() && old.len() == new.len() {
        return;
    }
    let at = added.iter().chain(&removed).map(|tool| tool.at).min().unwrap_or(old.len().min(new.len()));
    let list = |tools: &[&Tool]| tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let what = match (added.is_empty(), removed.is_empty()) {
        (false, true) => format!("added: {}", list(&added)),
        (true, false) => format!("removed: {}", list(&removed)),
        _ => format!("added: {}; removed: {}", list(&added), list(&removed)),
    };
    let mut finding = Finding::new(Cause::ToolSetChanged, after, at, what);
    finding.names = added.iter().chain(&removed).map(|tool| tool.name.clone()).collect();
    finding.before = names(old);
    finding.after = names(new);
    out.push(finding);
}

fn names(tools: &[Tool]) -> String {
    tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join("\n")
}

fn order(old: &[Tool], new: &[Tool], before: &Prompt, after: &Prompt, out: &mut Vec<Finding>) {
    let common = |list: &[Tool], other: &[Tool]| -> Vec<(String, usize)> {
        list.iter()
            .filter(|tool| other.iter().any(|one| one.name == tool.name))
            .map(|tool| (tool.name.clone(), tool.at))
            .collect()
    };
    let (a, b) = (common(old, new), common(new, old));
    let Some(moved) = a.iter().zip(&b).find(|(a, b)| a.0 != b.0) else { return };
    let _ = before;
    let mut finding = Finding::new(
        Cause::ToolReorder,
        after,
        moved.1.1,
        format!("the same tools in another order: {} stands where {} stood", moved.1.0, moved.0.0),
    );
    finding.names = a.iter().zip(&b).filter(|(a, b)| a.0 != b.0).map(|(_, b)| b.0.clone()).collect();
    finding.before = names(old);
    finding.after = names(new);
    out.push(finding);
}

fn changed(before: &Prompt, after: &Prompt, earlier: &Tool, tool: &Tool) -> Finding {
    let (Some(a), Some(b)) = (before.value(earlier.at), after.value(tool.at)) else {
        return Finding::new(Cause::ToolSchemaChanged, after, tool.at, format!("{} changed", tool.name));
    };
    let (cause, path, what, kind) = if let Some(path) = order_path(&a, &b) {
        let what = format!("{}: the same keys in another order", tool.name);
        (Cause::JsonKeyOrder, path, what, TextKind::Spelling)
    } else {
        let path = changed_path(&a, &b).unwrap_or_default();
        let kind = match (a.pointer(&path).and_then(Value::as_str), b.pointer(&path).and_then(Value::as_str))
        {
            (Some(a), Some(b)) => text_kind::runs(a, b).first().map_or(TextKind::Other, |run| run.kind),
            _ => TextKind::Other,
        };
        let cause = match kind {
            TextKind::Clock => Cause::VolatileTime,
            TextKind::Counter if path.ends_with("/description") => Cause::VolatileId,
            _ => Cause::ToolSchemaChanged,
        };
        (cause, path.clone(), format!("{}: {} changed", tool.name, shown(&path)), kind)
    };
    let mut finding = Finding::new(cause, after, tool.at, what);
    finding.kind = kind;
    finding.before = before.compact(earlier.at);
    finding.after = after.compact(tool.at);
    finding.byte = Some(text_kind::common_head(&finding.before, &finding.after) as u64);
    finding.names = vec![format!("{}{path}", finding.pointer)];
    finding
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the whole definition" } else { path }
}

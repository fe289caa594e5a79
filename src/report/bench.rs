//! Benches as text and as comma-separated values.

use std::fmt::Write as _;

use serde_json::Value;

use crate::lab::bench::account::Row;
use crate::lab::bench::compare::Move;
use crate::lab::bench::replay::Replay;
use crate::lab::bench::tables::{Classic, Mechanism};
use crate::report::grouped;
use crate::report::table::Table;
use crate::units::Usd;

/// A share as it is read: four digits.
fn ratio(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{share:.4}"))
}

/// What a trace showed.
pub fn replay(replay: &Replay) -> String {
    let mut text = format!("{}: {} requests", replay.format, grouped(replay.requests));
    if let Some(sessions) = replay.sessions {
        let _ = write!(text, " in {} sessions", grouped(sessions));
    }
    if let Some((visits, different)) = replay.blocks {
        let _ = write!(text, ", {} blocks, {} of them different", grouped(visits), grouped(different));
    }
    let _ = write!(text, ", {} tokens\n\n", grouped(replay.tokens));
    let mut table =
        Table::new(&["policy", "capacity", "block", "prefix", "token", "request mean", "clairvoyant"])
            .right(&[1, 2, 3, 4, 5, 6]);
    for row in &replay.rows {
        table.row([
            row.policy.clone(),
            row.capacity.map_or_else(|| "unlimited".to_owned(), grouped),
            ratio(row.block_ratio),
            ratio(row.prefix_ratio),
            ratio(Some(row.token_ratio)),
            ratio(row.request_mean),
            ratio(row.bound),
        ]);
    }
    text.push_str(&table.render());
    for (session, held, transitions) in &replay.identities {
        let _ =
            writeln!(text, "\nread = read + written of the round before: {held} of {transitions}, {session}");
    }
    if !replay.published.is_empty() {
        text.push_str("\nPrinted by others\n\n");
        let mut table =
            Table::new(&["source", "figure", "printed", "ours", "reached", "note"]).right(&[2, 3]);
        for row in &replay.published {
            table.row([
                row.source.to_owned(),
                row.figure.clone(),
                row.printed.clone(),
                row.ours.clone().unwrap_or_else(|| "–".to_owned()),
                if row.reached { "yes" } else { "no" }.to_owned(),
                row.note.to_owned(),
            ]);
        }
        text.push_str(&table.render());
    }
    text
}

fn money(cost: Option<Usd>) -> String {
    cost.map_or_else(|| "–".to_owned(), Usd::six_decimals)
}

/// Accounts of runs under cache models.
pub fn accounts(rows: &[Row]) -> String {
    let with_layout = rows.iter().any(|row| !row.layout.is_empty());
    let mut head = vec!["scenario", "cache", "price"];
    if with_layout {
        head = vec!["session", "layout", "price"];
    }
    head.extend([
        "requests",
        "prompt",
        "read",
        "5m",
        "30m",
        "1h",
        "uncached",
        "hit",
        "at most",
        "cost $",
        "uncached $",
    ]);
    head.extend(["planned", "breaks", "wasted"]);
    let numbers: Vec<usize> = (3..head.len()).collect();
    let mut table = Table::new(&head).right(&numbers);
    for row in rows {
        table.row([
            row.scenario.clone(),
            if with_layout { row.layout.clone() } else { row.cache.to_owned() },
            if row.price.is_empty() { "–".to_owned() } else { row.price.clone() },
            grouped(row.requests),
            grouped(row.prompt_tokens),
            grouped(row.read),
            grouped(row.write_5m),
            grouped(row.write_30m),
            grouped(row.write_1h),
            grouped(row.uncached),
            ratio(Some(row.hit_rate)),
            ratio(Some(row.hit_rate_upper)),
            money(row.cost),
            money(row.cost_without_cache),
            grouped(row.planned_breaks),
            grouped(row.unplanned_breaks),
            grouped(row.wasted_tokens),
        ]);
    }
    table.render()
}

/// What breaks cost, and what a cache saves on the classic session.
pub fn mechanisms(mechanisms: &[Mechanism], classic: &[Classic]) -> String {
    let mut text = String::from(
        "What a break costs: a hundred turns, 4,000 tokens of system prompt, 200 tokens a turn\n\n",
    );
    let mut head = vec!["break".to_owned(), "breaks".to_owned(), "tokens paid anew".to_owned()];
    if let Some(first) = mechanisms.first() {
        head.extend(first.cost.iter().map(|(price, _)| format!("{price} $")));
    }
    head.push("title".to_owned());
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let numbers: Vec<usize> = (1..heads.len() - 1).collect();
    let mut table = Table::new(&heads).right(&numbers);
    let free =
        |row: &&Mechanism| row.paid_tokens.iter().all(|(_, tokens)| *tokens == 0) && row.prompt_tokens == 0;
    for row in mechanisms.iter().filter(|row| !free(row)) {
        let paid = row.paid_tokens.first().map_or(0, |(_, tokens)| *tokens);
        let mut cells = vec![row.id.clone(), signed(row.unplanned_breaks), signed(paid)];
        cells.extend(row.cost.iter().map(|(_, cost)| cost.six_decimals()));
        cells.push(row.title.clone());
        table.row(cells);
    }
    text.push_str(&table.render());
    let others = mechanisms.iter().filter(free).count();
    if others > 0 {
        let _ = writeln!(text, "\nThe other {others} breaks cost nothing on this session.");
    }
    text.push_str("\nThe classic session, cumulative\n\n");
    let mut table =
        Table::new(&["cache", "price", "turns", "prompt tokens", "cost $", "without cache $", "share"])
            .right(&[2, 3, 4, 5, 6]);
    for row in classic {
        let share = row.cost.dollars() / row.cost_without_cache.dollars();
        table.row([
            row.cache.to_owned(),
            row.price.clone(),
            row.turns.to_string(),
            grouped(row.prompt_tokens),
            row.cost.six_decimals(),
            row.cost_without_cache.six_decimals(),
            ratio(Some(share)),
        ]);
    }
    text.push_str(&table.render());
    text
}

fn signed(number: i64) -> String {
    let digits = grouped(number.unsigned_abs());
    if number < 0 { format!("-{digits}") } else { digits }
}

/// What moved between two benches.
pub fn moves(moves: &[Move]) -> String {
    if moves.is_empty() {
        return "nothing moved\n".to_owned();
    }
    let worse = moves.iter().filter(|moved| moved.worse).count();
    let mut table = Table::new(&["", "row", "figure", "before", "after", "change"]).right(&[3, 4, 5]);
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| value.to_string());
    for moved in moves {
        let change = moved.before.zip(moved.after).filter(|(before, _)| before.abs() > 0.0);
        table.row([
            if moved.worse { "worse" } else { "" }.to_owned(),
            moved.row.clone(),
            moved.figure.clone(),
            shown(moved.before),
            shown(moved.after),
            change.map_or_else(
                || "–".to_owned(),
                |(before, after)| format!("{:+.2} %", (after / before - 1.0) * 100.0),
            ),
        ]);
    }
    format!("{}\n{} moved, {worse} for the worse\n", table.render(), moves.len())
}

/// Rows of one shape as comma-separated values, the keys of the first row on top.
pub fn csv(rows: &[Value]) -> String {
    let field = |value: &Value| {
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    let Some(first) = rows.first().and_then(Value::as_object) else { return String::new() };
    let mut text = first.keys().map(String::as_str).collect::<Vec<_>>().join(",");
    text.push('\n');
    for row in rows {
        let cells: Vec<String> =
            first.keys().map(|key| field(row.get(key).unwrap_or(&Value::Null))).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

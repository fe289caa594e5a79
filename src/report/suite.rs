//! A played suite as text: one line a task, what failed, what moved.

use crate::lab::suite::compare::Moved;
use crate::lab::suite::prove::Proof;
use crate::lab::suite::{Suite, TaskRun};
use crate::report::grouped;
use crate::report::table::Table;

/// The JSON schema of a saved suite.
pub const SCHEMA_TEXT: &str = include_str!("suite.schema.json");

/// The table of tasks, failures in full, and what moved against a baseline.
pub fn regression(suite: &Suite, moves: Option<&[Moved]>) -> String {
    let mut text = String::new();
    if !suite.turned.is_empty() {
        text.push_str(&format!("turned: {}\n\n", suite.turned.join(" ")));
    }
    let mut table = Table::new(&[
        "task",
        "holds",
        "verdicts",
        "laws",
        "prompt tokens",
        "read",
        "output",
        "cost $",
        "repeated",
        "refused",
        "unknown",
    ])
    .right(&[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for task in &suite.tasks {
        let tokens = task.all_tokens();
        let held = task.verdicts.iter().filter(|judged| judged.holds).count();
        table.row([
            task.task.clone(),
            if task.holds { "yes".to_owned() } else { "no".to_owned() },
            format!("{held}/{}", task.verdicts.len()),
            task.findings.len().to_string(),
            grouped(tokens.prompt()),
            grouped(tokens.read),
            grouped(tokens.output),
            dollars(task.cost_microdollars),
            task.repeated_actions.to_string(),
            task.refusals.to_string(),
            task.unknown_outcomes.to_string(),
        ]);
    }
    text.push_str(&table.render());
    for task in &suite.tasks {
        for (name, mille) in &task.rates {
            text.push_str(&format!("\n{}: {} {}", task.task, name.replace('_', " "), percent(*mille)));
        }
    }
    text.push('\n');
    suite.tasks.iter().filter(|task| !task.holds).for_each(|task| text.push_str(&failures(task)));
    let held = suite.tasks.iter().filter(|task| task.holds).count();
    text.push_str(&format!("\n{held} of {} tasks hold\n", suite.tasks.len()));
    if let Some(moves) = moves {
        text.push_str(&moved(moves));
    }
    text
}

fn failures(task: &TaskRun) -> String {
    let mut text = format!("\n{}: {}\n", task.task, task.title);
    if let Some(error) = &task.error {
        text.push_str(&format!("  could not be played: {error}\n"));
    }
    for judged in task.verdicts.iter().filter(|judged| !judged.holds) {
        text.push_str(&format!("  {}: {}\n", judged.name, judged.says));
        text.push_str(&format!("    expected {}\n    found    {}\n", judged.expected, judged.found));
    }
    for found in &task.findings {
        text.push_str(&format!("  {} at event {}: {}\n", found.check, found.event, found.evidence));
    }
    text
}

fn moved(moves: &[Moved]) -> String {
    if moves.is_empty() {
        return "\nnothing moved against the baseline\n".to_owned();
    }
    let mut table = Table::new(&["task", "what", "before", "after", ""]);
    for moved in moves {
        table.row([
            moved.task.clone(),
            moved.what.clone(),
            moved.before.clone(),
            moved.after.clone(),
            if moved.worse { "regression".to_owned() } else { String::new() },
        ]);
    }
    let worse = moves.iter().filter(|moved| moved.worse).count();
    format!("\n{}\n{} moved, {worse} for the worse\n", table.render(), moves.len())
}

/// What every tamper did.
pub fn proofs(proofs: &[Proof]) -> String {
    let mut table = Table::new(&["scenario", "what is done", "fails", "problem"]);
    for proof in proofs {
        table.row([
            proof.scenario.clone(),
            proof.tamper.clone(),
            proof.fails.join(", "),
            proof.problem.clone().unwrap_or_default(),
        ]);
    }
    let problems = proofs.iter().filter(|proof| proof.problem.is_some()).count();
    let said = if problems == 0 {
        "every expectation can fail".to_owned()
    } else {
        format!("{problems} of {} prove nothing", proofs.len())
    };
    format!("{}\n{said}\n", table.render())
}

/// Millionths of a dollar as dollars.
pub fn dollars(micro: Option<u64>) -> String {
    micro.map_or_else(|| "none".to_owned(), |micro| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000))
}

/// Thousandths as per cent.
pub fn percent(mille: u64) -> String {
    format!("{}.{} %", mille / 10, mille % 10)
}

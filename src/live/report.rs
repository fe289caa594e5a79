//! Results of live runs for people.

use crate::cache::usage::Parts;
use crate::live::interval::Difference;
use crate::live::suites::{Calibration, Facts, Found, Learned, Outcome, Prefix};
use crate::report::table::Table;
use crate::units::Usd;

/// Rows of the calibration that are shown one by one; JSON has them all.
const ROWS_MAX: usize = 60;

/// The whole result as text.
pub(super) fn text(outcome: &Outcome) -> String {
    let replayed = outcome.asked.iter().filter(|asked| asked.replayed).count();
    let mut text = format!(
        "{} with {}: {} requests, {replayed} of them from the journal; ${} spent",
        outcome.suite.word(),
        outcome.asked_of,
        outcome.asked.len(),
        outcome.spent
    );
    if outcome.uncertain > Usd::ZERO {
        text.push_str(&format!(", up to ${} besides on answers that were lost", outcome.uncertain));
    }
    text.push_str("\n\n");
    match &outcome.found {
        Found::Cache(found) => cache(found, &mut text),
        Found::Prefix(found) => prefix(found, &mut text),
        Found::Compaction(found) => compaction(found, &mut text),
        Found::Learning(found) => learning(found, &mut text),
    }
    if let Some(stop) = &outcome.stopped {
        text.push_str(&format!("\n{stop}\n--resume goes on where this ended, and pays for nothing twice\n"));
    }
    text
}

fn cache(found: &Calibration, text: &mut String) {
    let head = [
        "request",
        "run",
        "lane",
        "prompt",
        "read",
        "predicted",
        "written",
        "predicted",
        "fresh",
        "predicted",
        "",
    ];
    let mut table = Table::new(&head).right(&[0, 3, 4, 5, 6, 7, 8, 9]);
    let cells = |billed: &Parts, predicted: &Parts| {
        [
            billed.prompt(),
            billed.read,
            predicted.read,
            billed.written(),
            predicted.written(),
            billed.fresh,
            predicted.fresh,
        ]
        .map(|tokens| tokens.to_string())
    };
    for row in found.rows.iter().take(ROWS_MAX) {
        let note = if row.agrees { String::new() } else { format!("off by {}", percent(row.off_mille)) };
        let front = [row.n.to_string(), row.run.clone(), row.lane.to_owned()];
        table.row(front.into_iter().chain(cells(&row.billed, &row.predicted)).chain([note]));
    }
    let front = ["all".to_owned(), String::new(), String::new()];
    table.row(front.into_iter().chain(cells(&found.billed, &found.predicted)).chain([String::new()]));
    text.push_str(&table.render());
    if found.rows.len() > ROWS_MAX {
        text.push_str(&format!("{} more requests are in the JSON\n", found.rows.len() - ROWS_MAX));
    }
    text.push_str(&format!(
        "\n{} of {} requests agree within {} of their prompt; a thousand estimated tokens are {} billed ones\n",
        found.agreed,
        found.rows.len(),
        percent(i64::try_from(found.tolerance_mille).unwrap_or(i64::MAX)),
        found.scale_mille
    ));
    if found.uncounted > 0 {
        text.push_str(&format!("{} requests were refused, or came without a bill\n", found.uncounted));
    }
}

fn prefix(found: &Prefix, text: &mut String) {
    text.push_str(&format!(
        "{} of {} pairs extend; {} planned breaks, {} unplanned; {:.1} % of the prompts were read, {:.1} % could have been\n",
        found.extend,
        found.pairs,
        found.planned,
        found.unplanned.len(),
        found.read_share * 100.0,
        found.reachable_share * 100.0,
    ));
    for line in &found.unplanned {
        text.push_str(&format!("unplanned: {line}\n"));
    }
    for broken in &found.laws {
        text.push_str(&format!("{}: {}: {}\n", broken.run, broken.check, broken.evidence));
    }
    if found.runs == 0 {
        text.push_str("no run was finished, so no law was asked\n");
    } else if found.laws.is_empty() {
        text.push_str(&format!("the laws hold in {} runs\n", found.runs));
    }
}

fn compaction(found: &Facts, text: &mut String) {
    text.push_str(&format!(
        "{} compactions, {} of them with a summary of the model\n\n",
        found.compactions, found.by_model
    ));
    let mut table = Table::new(&["run", "survived", "answered", "what was to last"]);
    for fact in &found.facts {
        let survived = match fact.lost_at {
            Some(nth) => format!("lost at {nth}"),
            None if fact.told => "yes".to_owned(),
            None => "not told".to_owned(),
        };
        let answered = if fact.answered { "yes" } else { "no" };
        table.row([fact.run.clone(), survived, answered.to_owned(), fact.line.clone()]);
    }
    text.push_str(&table.render());
    let survived = found.facts.iter().filter(|fact| fact.told && fact.lost_at.is_none()).count();
    text.push_str(&format!("\n{survived} of {} standing facts survived\n", found.facts.len()));
}

fn learning(found: &Learned, text: &mut String) {
    let head =
        ["seed", "arm", "iterations", "failed", "prompt", "output", "$", "skills", "loaded", "expected"];
    let mut table = Table::new(&head).right(&[0, 2, 3, 4, 5, 6, 7, 8, 9]);
    for arm in &found.arms {
        table.row([
            arm.seed.to_string(),
            arm.arm.clone(),
            arm.iterations.to_string(),
            arm.failures.to_string(),
            arm.prompt_tokens.to_string(),
            arm.output_tokens.to_string(),
            format!("{:.6}", arm.arm_microdollars / 1e6),
            arm.written.to_string(),
            arm.loaded.to_string(),
            format!("{} of {}", arm.holding, arm.expectations),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    let mut table =
        Table::new(&["figure", "pairs", "with", "without", "difference", "95 % interval", "shows"])
            .right(&[1, 2, 3, 4]);
    for measure in &found.measures {
        let Difference { pairs, with, without, mean, interval } = measure.difference;
        let interval =
            interval.map_or_else(|| "none".to_owned(), |(low, high)| format!("{low:.1} to {high:.1}"));
        table.row([
            measure.name.to_owned(),
            pairs.to_string(),
            format!("{with:.1}"),
            format!("{without:.1}"),
            format!("{mean:.1}"),
            interval,
            measure.says.to_owned(),
        ]);
    }
    text.push_str(&table.render());
    text.push_str(&format!(
        "\nin {} pairs a skill was written; method: {}\n",
        found.pairs_with_skill, found.method
    ));
}

fn percent(mille: i64) -> String {
    let sign = if mille < 0 { "-" } else { "" };
    format!("{sign}{}.{} %", mille.abs() / 10, mille.abs() % 10)
}

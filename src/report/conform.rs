//! What a conformance run showed.

use std::collections::BTreeMap;

use similar::TextDiff;

use crate::lab::conform::{CaseDifference, Outcome, Replayed, Report, deliberate};
use crate::report::table::Table;

/// Differences that are listed in full; the rest are counted.
const SHOWN_MAX: usize = 40;

/// A row per mechanism, then the differing vectors.
pub fn text(report: &Report) -> String {
    let mut table =
        Table::new(&["mechanism", "vectors", "agree", "differ", "deliberate"]).right(&[1, 2, 3, 4]);
    let mut sum = [0usize; 4];
    for (name, tally) in report.by_family() {
        let cells = [tally.vectors, tally.agree, tally.differ, tally.deliberate];
        for (total, cell) in sum.iter_mut().zip(cells) {
            *total += cell;
        }
        let mut row = vec![name];
        row.extend(cells.map(|cell| cell.to_string()));
        table.row(row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(sum.map(|cell| cell.to_string()));
    table.row(row);
    let mut text = table.render();
    let share = (sum[1] * 10_000).checked_div(sum[0]).unwrap_or(0);
    text.push_str(&format!("\nagreement {}.{:02} %\n", share / 100, share % 100));
    let undeclared: Vec<&Replayed> = report.undeclared().collect();
    for replayed in undeclared.iter().take(SHOWN_MAX) {
        text.push_str(&format!(
            "{}  {}  {}\n",
            replayed.vector.id,
            replayed.vector.mechanism,
            replayed.trouble()
        ));
    }
    if undeclared.len() > SHOWN_MAX {
        text.push_str(&format!("and {} more\n", undeclared.len() - SHOWN_MAX));
    }
    text.push_str(&cases(&deliberate().cases));
    text
}

/// The fault cases that the default gets wrong on purpose, as the real agent does.
fn cases(cases: &BTreeMap<String, CaseDifference>) -> String {
    let mut text = String::from("\nfault cases that the default gets wrong as the real agent does\n");
    for (case, difference) in cases {
        text.push_str(&format!("  {case}: it {}; `{}` mends it\n", difference.real, difference.mended_by));
    }
    text
}

/// One vector in full: given, expected, got, and where they part.
pub fn one(replayed: &Replayed) -> String {
    let vector = &replayed.vector;
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let mut text = format!(
        "{}  {}  {}\n\ngiven\n{}\n\n",
        vector.id,
        vector.mechanism,
        vector.note,
        pretty(&vector.given)
    );
    match &replayed.outcome {
        Ok(Outcome::Agrees) => {
            text.push_str(&format!("expected and got\n{}\n\nagrees\n", pretty(&vector.expect)));
        }
        Ok(Outcome::Differs { got, first }) => {
            let (expected, got) = (pretty(&vector.expect), pretty(got));
            let diff = TextDiff::from_lines(expected.as_str(), got.as_str());
            let shown = diff.unified_diff().context_radius(3).header("expected", "got").to_string();
            text.push_str(&format!("{shown}\nfirst difference: {first}\n"));
        }
        Err(error) => text.push_str(&format!("{error}\n")),
    }
    if let Some(reason) = &replayed.deliberate {
        text.push_str(&format!("deliberate: {reason}\n"));
    }
    text
}

//! What one run showed.

use crate::lab::figures;
use crate::laws::{Finding, Verdict};
use crate::ledger::{FirstDifference, Ledger};
use crate::report::table::Table;
use crate::report::{grouped, plain};
use crate::scenario::Scenario;

/// Summary, findings, figures.
pub fn text(
    scenario: &Scenario,
    ledger: &Ledger,
    verdict: &Verdict,
    wrong: &[String],
    twice: bool,
) -> String {
    let mut text = format!("{}: {}\n\n", scenario.name, scenario.title);
    let mut table = Table::new(&["figure", "value"]);
    for (name, value) in figures::all(ledger) {
        let empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if value.is_null() || value == 0 || empty {
            continue;
        }
        let shown = plain(&value);
        let shown =
            if shown.chars().count() > 90 { shown.chars().take(89).chain(['…']).collect() } else { shown };
        table.row([name.to_owned(), shown]);
    }
    text.push_str(&table.render());
    text.push('\n');
    text.push_str(&findings(verdict));
    for line in wrong {
        text.push_str(&format!("expectation failed: {line}\n"));
    }
    text.push_str(&format!("{} events, digest {}\n", grouped(ledger.events.len() as u64), ledger.digest()));
    if twice {
        text.push_str("played twice: equal byte for byte\n");
    }
    text
}

/// A finding in one line, without its end.
pub fn line(finding: &Finding) -> String {
    let session = if finding.session.is_empty() { String::new() } else { format!(" in {}", finding.session) };
    format!("{}  event {}{session}, {}: {}", finding.check, finding.event, finding.place, finding.evidence)
}

/// One line per finding, and how many checks held.
pub fn findings(verdict: &Verdict) -> String {
    let mut text = String::new();
    for finding in verdict.findings() {
        text.push_str(&line(finding));
        text.push('\n');
    }
    let examined = verdict.results.iter().filter(|result| result.examined > 0).count();
    let failing = verdict.caught_by().len();
    text.push_str(&format!(
        "{} checks had something to look at, {} hold, {failing} fail\n",
        examined,
        examined - failing.min(examined)
    ));
    text
}

/// Where two runs of one scenario part.
pub fn difference(difference: &FirstDifference) -> String {
    let side = |line: &Option<String>| line.clone().unwrap_or_else(|| "(the ledger has ended)".to_owned());
    format!(
        "not deterministic: the runs differ from line {} of the ledger\n  first   {}\n  second  {}\n",
        difference.line,
        side(&difference.left),
        side(&difference.right)
    )
}

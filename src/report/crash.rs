//! What the crashes of scenarios showed: a line for each scenario, and every problem.

use std::fmt::Write as _;

use crate::lab::crash::Crashes;
use crate::report::grouped;
use crate::report::table::Table;

/// Problems that are told one by one; more of the same say nothing new.
const PROBLEMS_MAX: usize = 20;

/// The report.
pub fn text(all: &[Crashes]) -> String {
    let mut table =
        Table::new(&["scenario", "crashes", "resumed", "rows accepted", "entries accepted", "problems"])
            .right(&[1, 2, 3, 4, 5]);
    for one in all {
        table.row([
            one.scenario.clone(),
            grouped(one.events),
            grouped(one.resumed),
            grouped(one.rows),
            grouped(one.entries),
            grouped(one.problems.len() as u64),
        ]);
    }
    let mut text = table.render();
    for one in all {
        for problem in one.problems.iter().take(PROBLEMS_MAX) {
            let _ = writeln!(
                text,
                "\n{}: dead after event {} ({}): {}: {}",
                one.scenario, problem.event, problem.kind, problem.what, problem.evidence
            );
        }
    }
    let wrong: usize = all.iter().map(|one| one.problems.len()).sum();
    let verdict = if wrong == 0 {
        "nothing accepted was lost, nothing stands twice, every prompt was kept, every law holds".to_owned()
    } else {
        format!("{wrong} problems")
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

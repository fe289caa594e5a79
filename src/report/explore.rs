//! A search as text: what was played, what was found, and how to see it again.

use std::fmt::Write as _;

use crate::lab::explore::prove::Proof;
use crate::lab::explore::{Failure, Report};
use crate::report::grouped;
use crate::report::table::Table;

/// What the caller had asked for, as far as a report repeats it.
pub trait Asked {
    /// The command that plays one seed again.
    fn again(&self, seed: u64) -> String;
    /// True when scenarios are kept.
    fn keeps(&self) -> bool;
}

/// The report.
pub fn text(
    report: &Report,
    corpus: &[(String, Option<Failure>)],
    files: &[String],
    asked: &dyn Asked,
) -> String {
    let mut text = String::new();
    for (file, failure) in corpus {
        match failure {
            Some(failure) => {
                let _ = writeln!(text, "still fails: {file}: {}: {}", failure.check, failure.evidence);
            }
            None => {
                let _ = writeln!(text, "mended: {file}");
            }
        }
    }
    let _ = writeln!(
        text,
        "seed {}: {} seeds, {} requests, {} events judged",
        report.first,
        grouped(report.seeds),
        grouped(report.requests),
        grouped(report.events)
    );
    if !report.faults.is_empty() {
        let mut table = Table::new(&["fault", "took effect"]).right(&[1]);
        for (kind, count) in &report.faults {
            table.row([kind.clone(), grouped(*count)]);
        }
        let _ = write!(text, "\n{}", table.render());
    }
    let unseen: Vec<&str> =
        report.examined.iter().filter(|(_, count)| **count == 0).map(|(check, _)| *check).collect();
    if !unseen.is_empty() {
        let _ = writeln!(text, "\nlooked at nothing: {}", unseen.join(", "));
    }
    for (found, file) in report.found.iter().zip(files) {
        let _ = writeln!(
            text,
            "\n{} fails, first at seed {} ({} of {} seeds); {} acts of {} are left\n  {}",
            found.failure.check,
            found.seed,
            found.seeds,
            report.seeds,
            found.acts,
            found.acts_before,
            found.failure.evidence
        );
        let replay = if asked.keeps() { format!("hermes-lab run {file}") } else { asked.again(found.seed) };
        let _ = writeln!(text, "  reproduce: {replay}");
        if !asked.keeps() {
            for line in found.scenario.lines() {
                let _ = writeln!(text, "  | {line}");
            }
        }
    }
    if !report.canary {
        text.push_str("\nthe canary was not found: this search is blind\n");
    }
    let _ = writeln!(
        text,
        "\n{}",
        if report.holds() {
            "every law holds".to_owned()
        } else {
            format!("{} checks fail", report.found.len())
        }
    );
    text
}

/// Which seed proves each break, and by which of its promised checks.
pub fn proofs(proofs: &[Proof]) -> String {
    let mut table =
        Table::new(&["break", "what it is", "first seed", "seeds played", "requests", "found by"])
            .right(&[2, 3, 4]);
    for proof in proofs {
        table.row([
            proof.id.clone(),
            proof.title.clone(),
            proof.seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string()),
            grouped(proof.seeds),
            grouped(proof.requests),
            if proof.seed.is_some() {
                proof.caught_by.join(", ")
            } else {
                format!("not by {}", proof.promised.join(", "))
            },
        ]);
    }
    let found = proofs.iter().filter(|proof| proof.seed.is_some()).count();
    let most = proofs.iter().map(|proof| proof.seeds).max().unwrap_or(0);
    format!(
        "{}\n{found} of {} breaks are found by a check that their file promises and that holds in the intact run, each \
         within {most} seeds\n",
        table.render(),
        proofs.len()
    )
}

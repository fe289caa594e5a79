//! Benches as text and as comma-separated values.

use std::fmt::Write as _;

use crate::lab::bench::replay::Replay;
use crate::report::grouped;
use crate::report::table::Table;

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

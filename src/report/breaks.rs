//! What breaks showed.

use crate::lab::breaks::Shown;
use crate::report::plain;
use crate::report::table::Table;

/// A block per break: claim, figures, checks.
pub fn text(shown: &[Shown]) -> String {
    let mut text = String::new();
    for one in shown {
        let verdict = if one.holds { "holds" } else { "DOES NOT HOLD" };
        text.push_str(&format!("{}  {}  ({}): claim {verdict}\n", one.id, one.title, one.law));
        for line in one.about.trim().lines() {
            text.push_str(&format!("  {line}\n"));
        }
        text.push('\n');
        let mut table = Table::new(&["figure", "intact", "broken", ""]);
        for figure in &one.figures {
            let claimed = figure.claimed.as_ref().map_or_else(String::new, |(intact, broken)| {
                format!("claimed {} → {}", plain(intact), plain(broken))
            });
            table.row([figure.name.clone(), plain(&figure.intact), plain(&figure.broken), claimed]);
        }
        for line in table.render().lines() {
            text.push_str(&format!("  {line}\n"));
        }
        let caught = if one.caught_by.is_empty() { "nothing".to_owned() } else { one.caught_by.join(", ") };
        text.push_str(&format!("\n  caught by {caught}\n"));
        if !one.intact_findings.is_empty() {
            text.push_str(&format!("  the intact run fails {}\n", one.intact_findings.join(", ")));
        }
        text.push('\n');
    }
    let held = shown.iter().filter(|one| one.holds).count();
    text.push_str(&format!("{held} of {} claims hold\n", shown.len()));
    text
}

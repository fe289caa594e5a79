//! Every break against every check: the mutation test of the laws.

use serde::Serialize;

use crate::lab::breaks::Break;
use crate::lab::play::PlayError;
use crate::lab::runs;
use crate::laws;
use crate::scenario::Scenario;

/// A column of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The break.
    pub id: String,
    /// The law that it violates.
    pub law: String,
}

/// A row of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The check.
    pub check: &'static str,
    /// True when an intact run fails it.
    pub intact: bool,
    /// For each break, whether the broken run fails it.
    pub caught: Vec<bool>,
    /// Why nothing trips it here, for checks that guard the lab itself.
    pub untripped: Option<&'static str>,
}

/// Every break against every check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// Version of the shape.
    pub schema: u64,
    /// The columns.
    pub breaks: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// Checks that no break of the harness can trip, since they guard the lab itself; tests trip them instead.
const GUARDS_OF_THE_LAB: [(&str, &str); 2] = [
    ("L1.honest", "trips only on a recorder that lies; a test forges such a ledger"),
    ("L1.usage-adds-up", "trips only on a counter that lies; a test forges such a ledger"),
];

/// Plays every shipped break.
///
/// # Errors
/// When a run cannot be played.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn build() -> Result<Matrix, PlayError> {
    let checks = laws::checks();
    let mut rows: Vec<Row> = checks
        .iter()
        .map(|check| Row {
            check: check.id,
            intact: false,
            caught: Vec::new(),
            untripped: GUARDS_OF_THE_LAB.iter().find(|(id, _)| *id == check.id).map(|(_, why)| *why),
        })
        .collect();
    let mut breaks = Vec::new();
    let shipped = runs::shipped();
    let listed: Vec<(&Break, Scenario)> =
        shipped.iter().map(|(found, scenario)| (found, scenario.clone())).collect();
    let played = runs::play_all(&listed, runs::threads())?;
    for pair in &played.pairs {
        let (before, after) =
            (played.intact[pair.intact].verdict.caught_by(), pair.broken.verdict.caught_by());
        for row in &mut rows {
            row.intact |= before.contains(&row.check);
            row.caught.push(after.contains(&row.check));
        }
        breaks.push(Column { id: pair.of.id.clone(), law: pair.of.law.clone() });
    }
    Ok(Matrix { schema: laws::SCHEMA, breaks, rows })
}

impl Matrix {
    /// Everything that is not as it must be, as sentences.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for row in &self.rows {
            if row.intact {
                problems.push(format!("{} finds something in an intact run", row.check));
            }
            if row.untripped.is_none() && !row.caught.contains(&true) {
                problems.push(format!("{} is tripped by no break", row.check));
            }
        }
        for (index, column) in self.breaks.iter().enumerate() {
            let caught =
                self.rows.iter().any(|row| row.caught[index] && row.check.starts_with(column.law.as_str()));
            if !caught {
                problems.push(format!("{} is not caught by {}", column.id, column.law));
            }
        }
        problems
    }

    /// True when every break is caught by its law, the intact runs by none, and every check can fail.
    pub fn holds(&self) -> bool {
        self.problems().is_empty()
    }
}

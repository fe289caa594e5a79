//! The matrix of breaks and checks.

use crate::lab::matrix::Matrix;
use crate::report::table::Table;

/// A row per check, a column per break.
pub fn text(matrix: &Matrix) -> String {
    let mut head = vec!["check", "intact"];
    head.extend(matrix.breaks.iter().map(|one| one.id.as_str()));
    let mut table = Table::new(&head);
    for row in &matrix.rows {
        let mark = |caught: bool| if caught { "●" } else { "·" }.to_owned();
        let mut cells = vec![row.check.to_owned(), mark(row.intact)];
        cells.extend(row.caught.iter().map(|&caught| mark(caught)));
        table.row(cells);
    }
    let mut text = table.render();
    text.push('\n');
    for problem in matrix.problems() {
        text.push_str(&format!("{problem}\n"));
    }
    let verdict = if matrix.holds() {
        "every break is caught by its law, the intact runs by none"
    } else {
        "does not hold"
    };
    text.push_str(&format!("{verdict}\n"));
    text
}

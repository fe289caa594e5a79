//! Where two ledgers part.

use crate::ledger::Ledger;

/// The first line in which two ledgers differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// Line, from 1; the header is line 1.
    pub line: usize,
    /// That line of the first ledger; `None` when it has ended.
    pub left: Option<String>,
    /// That line of the second ledger; `None` when it has ended.
    pub right: Option<String>,
}

/// The first difference of two ledgers, or `None` when they are equal byte for byte.
pub fn first_difference(left: &Ledger, right: &Ledger) -> Option<FirstDifference> {
    let (mut a, mut b) = (left.lines(), right.lines());
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (x, y) if x == y => {}
            (left, right) => return Some(FirstDifference { line, left, right }),
        }
    }
    None
}

//! The boolean subset of a query as substring conditions, for scans without an index.

use super::query::units;
use crate::store::titles::escape_like;

/// One condition: a row has the text somewhere, or has it nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The text itself.
    pub text: String,
    /// True when the text must not occur.
    pub negated: bool,
}

impl Term {
    /// The pattern for `LIKE … ESCAPE '\'`.
    pub fn pattern(&self) -> String {
        format!("%{}%", escape_like(&self.text))
    }
}

/// Groups of conditions: a row matches when all conditions of some group hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// The groups that have something to find.
    pub groups: Vec<Vec<Term>>,
}

impl Condition {
    /// The text that a snippet is cut around: the first that must occur.
    pub fn snippet_term(&self) -> Option<&str> {
        self.groups.iter().flatten().find(|term| !term.negated).map(|term| term.text.as_str())
    }
}

/// The conditions of a sanitised query (`Hermes hermes_state_search.py:971`).
pub fn compile(query: &str) -> Condition {
    let mut groups: Vec<Vec<Term>> = vec![Vec::new()];
    let mut negated = false;
    for unit in units(query) {
        let is = |word: &str| unit.eq_ignore_ascii_case(word);
        if is("OR") {
            if groups.last().is_some_and(|group| !group.is_empty()) {
                groups.push(Vec::new());
            }
            negated = false;
        } else if is("NOT") {
            negated = true;
        } else if !is("AND") && !is("NEAR") {
            let text = bare(unit);
            if let Some(group) = groups.last_mut().filter(|_| !text.is_empty()) {
                group.push(Term { text: text.to_owned(), negated });
                negated = false;
            }
        }
    }
    groups.retain(|group| group.iter().any(|term| !term.negated));
    Condition { groups }
}

/// The terms of a query, operators dropped, for a scan that wants all of them.
pub(super) fn all_terms(query: &str) -> Vec<Term> {
    let words = ["AND", "OR", "NOT", "NEAR"];
    units(query)
        .into_iter()
        .map(bare)
        .filter(|text| !text.is_empty() && !words.iter().any(|word| text.eq_ignore_ascii_case(word)))
        .map(|text| Term { text: text.to_owned(), negated: false })
        .collect()
}

fn bare(unit: &str) -> &str {
    super::query::trim(unit.trim_matches('"').trim_matches('*'))
}

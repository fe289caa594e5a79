//! Two saved benches side by side: what moved, and whether it moved for the worse.
//!
//! A bench is a list of rows. Texts and the capacity tell a row apart, numbers are its figures. A figure may move
//! within its tolerance, a share of its earlier value; beyond it a move in the bad direction is a regression. A row
//! that has gone is one, too.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::diag::{Diagnostic, nearest};

/// Figures that are better when they are higher.
const HIGHER: [&str; 6] = ["hit_rate", "read", "block_ratio", "prefix_ratio", "token_ratio", "request_mean"];
/// Figures that are better when they are lower.
const LOWER: [&str; 6] = ["cost", "refused", "uncached", "unplanned_breaks", "wasted_tokens", "paid_tokens"];
/// Figures that are neither.
const NEUTRAL: [&str; 11] = [
    "bound",
    "cost_without_cache",
    "hit_rate_upper",
    "output",
    "planned_breaks",
    "prompt_tokens",
    "requests",
    "turns",
    "write_1h",
    "write_30m",
    "write_5m",
];

/// A saved bench.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    rows: BTreeMap<String, BTreeMap<String, f64>>,
}

/// How far figures may move, as shares of their earlier value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tolerance {
    by_figure: BTreeMap<String, f64>,
}

/// A figure that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// The row.
    pub row: String,
    /// The figure.
    pub figure: String,
    /// Its value before; none for a row that is new.
    pub before: Option<f64>,
    /// Its value after; none for a row that has gone.
    pub after: Option<f64>,
    /// True when it is a regression.
    pub worse: bool,
}

impl Saved {
    /// Reads a saved bench; `file` names it in diagnostics.
    ///
    /// # Errors
    /// When it is no JSON with a list of rows.
    pub fn read(file: &str, text: &str) -> Result<Self, Diagnostic> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Diagnostic::at_line(file, error.line(), format!("not JSON: {error}")))?;
        let wrong = || Diagnostic::of_file(file, "no saved bench: expected an object with a list `rows`");
        let found = value.get("rows").and_then(Value::as_array).ok_or_else(wrong)?;
        let mut rows = BTreeMap::new();
        for (index, row) in found.iter().enumerate() {
            let object = row
                .as_object()
                .ok_or_else(|| Diagnostic::of_file(file, format!("row {index} is no object: {row}")))?;
            let mut name = Vec::new();
            let mut figures = BTreeMap::new();
            for (key, value) in object {
                match value {
                    Value::String(text) if !text.is_empty() => name.push(text.clone()),
                    Value::Number(number) if key == "capacity" || key == "turns" => {
                        name.push(format!("{key} {number}"));
                    }
                    Value::Number(number) => {
                        figures.insert(key.clone(), number.as_f64().unwrap_or(0.0));
                    }
                    _ => {}
                }
            }
            let name = name.join(", ");
            if rows.insert(name.clone(), figures).is_some() {
                return Err(Diagnostic::of_file(file, format!("two rows are called `{name}`")));
            }
        }
        Ok(Self { rows })
    }
}

impl Tolerance {
    /// Reads tolerances: a TOML table of figures, each with the share by which it may get worse.
    ///
    /// # Errors
    /// Every unknown figure and every value that is no share.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![Diagnostic::at_byte(file, text, at, error.message().trim())]
        })?;
        let known = || HIGHER.into_iter().chain(LOWER).chain(NEUTRAL);
        let mut faults = Vec::new();
        let mut tolerance = Self::default();
        for (figure, value) in &table {
            let at = text.find(figure.as_str()).unwrap_or(0);
            if !known().any(|name| name == figure) {
                let fault = Diagnostic::at_byte(file, text, at, format!("unknown figure `{figure}`"));
                faults.push(match nearest(figure, known()) {
                    Some(near) => fault.with_help(format!("did you mean `{near}`?")),
                    None => fault,
                });
            }
            let share = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
            if let Some(share) = share.filter(|share| *share >= 0.0) {
                tolerance.by_figure.insert(figure.clone(), share);
            } else {
                let message = format!("`{figure}` is {value}; expected a share such as 0.01");
                faults.push(Diagnostic::at_byte(file, text, at, message));
            }
        }
        if faults.is_empty() { Ok(tolerance) } else { Err(faults) }
    }

    fn worse(&self, figure: &str, before: f64, after: f64) -> bool {
        // `cost gpt-5.2` is a cost.
        let figure = figure.split(' ').next().unwrap_or(figure);
        let fell = match figure {
            _ if HIGHER.contains(&figure) => before - after,
            _ if LOWER.contains(&figure) => after - before,
            _ => return false,
        };
        // What was nothing may not become something, whatever its share.
        fell > self.by_figure.get(figure).copied().unwrap_or(0.0) * before.abs()
    }
}

/// Everything that moved, row by row.
pub fn compare(before: &Saved, after: &Saved, tolerance: &Tolerance) -> Vec<Move> {
    let mut moves = Vec::new();
    for (row, figures) in &before.rows {
        let Some(now) = after.rows.get(row) else {
            moves.push(Move {
                row: row.clone(),
                figure: "row".to_owned(),
                before: Some(1.0),
                after: None,
                worse: true,
            });
            continue;
        };
        for (figure, &was) in figures {
            let Some(&is) = now.get(figure) else { continue };
            if was.to_bits() != is.to_bits() {
                let worse = tolerance.worse(figure, was, is);
                moves.push(Move {
                    row: row.clone(),
                    figure: figure.clone(),
                    before: Some(was),
                    after: Some(is),
                    worse,
                });
            }
        }
    }
    let new = after.rows.keys().filter(|row| !before.rows.contains_key(*row));
    moves.extend(new.map(|row| Move {
        row: row.clone(),
        figure: "row".to_owned(),
        before: None,
        after: Some(1.0),
        worse: false,
    }));
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(rows: &str) -> Saved {
        Saved::read("b.json", &format!("{{\"rows\": [{rows}]}}")).unwrap()
    }

    #[test]
    fn a_move_within_tolerance_is_told_but_is_no_regression() {
        let before = saved(r#"{"scenario": "a", "cost": 100.0, "hit_rate": 0.5, "requests": 3}"#);
        let after = saved(r#"{"scenario": "a", "cost": 101.0, "hit_rate": 0.6, "requests": 4}"#);
        let worse = |share: &str| -> Vec<String> {
            let tolerance = Tolerance::read("t.toml", share).unwrap();
            let moves = compare(&before, &after, &tolerance);
            assert_eq!(moves.len(), 3);
            moves.into_iter().filter(|moved| moved.worse).map(|moved| moved.figure).collect()
        };
        assert_eq!(worse(""), ["cost"]);
        assert!(worse("cost = 0.01").is_empty());
        assert_eq!(worse("cost = 0.009"), ["cost"]);
    }

    #[test]
    fn a_row_that_has_gone_is_a_regression_and_a_new_one_is_not() {
        let moves =
            compare(&saved(r#"{"scenario": "a"}"#), &saved(r#"{"scenario": "b"}"#), &Tolerance::default());
        assert_eq!(
            moves.iter().map(|moved| (moved.row.as_str(), moved.worse)).collect::<Vec<_>>(),
            [("a", true), ("b", false)]
        );
    }

    #[test]
    fn an_unknown_figure_names_the_nearest() {
        let faults = Tolerance::read("t.toml", "hit_rat = 0.1\ncost = -1\n").unwrap_err();
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "t.toml:2:1: `cost` is -1; expected a share such as 0.01",
                "t.toml:1:1: unknown figure `hit_rat`\n  help: did you mean `hit_rate`?"
            ]
        );
    }
}

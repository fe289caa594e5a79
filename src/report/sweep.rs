//! A sweep as a table and as a picture.

use std::fmt::Write as _;

use serde_json::Value;

use crate::lab::sweep::shipped::Question;
use crate::lab::sweep::{Point, Results, points};
use crate::policy::Policy;
use crate::report::plot::{LineChart, Series};
use crate::report::table::Table;

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn mean(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Measures that differ between points, sorted; the rest says nothing.
fn moving(points: &[Point]) -> Vec<String> {
    let Some(first) = points.first() else { return Vec::new() };
    first
        .means
        .keys()
        .filter(|name| points.iter().any(|point| point.means.get(*name) != first.means.get(*name)))
        .cloned()
        .collect()
}

/// The table: a row a point; the default is marked.
pub fn text(results: &Results, only: &[&str]) -> String {
    let points = points(results);
    let defaults = Policy::default();
    let moving: Vec<String> =
        if only.is_empty() { moving(&points) } else { only.iter().map(|name| (*name).to_owned()).collect() };
    let mut head: Vec<&str> = results.axes.iter().map(|axis| axis.knob.as_str()).collect();
    head.extend(moving.iter().map(String::as_str));
    head.push("");
    let columns: Vec<usize> = (0..head.len() - 1).collect();
    let mut table = Table::new(&head).right(&columns);
    for point in &points {
        let mut cells: Vec<String> = point.point.iter().map(shown).collect();
        cells.extend(
            moving.iter().map(|name| point.means.get(name).map_or_else(String::new, |value| mean(*value))),
        );
        let default =
            results.axes.iter().zip(&point.point).all(|(axis, value)| {
                defaults.get(&axis.knob).and_then(|value| value.as_f64()) == value.as_f64()
            });
        cells.push(if default { "default".to_owned() } else { String::new() });
        table.row(cells);
    }
    let mut text = format!("{}, {} seeds a point\n\n", results.world, results.seeds);
    text.push_str(&table.render());
    if moving.is_empty() {
        text.push_str("no measure moves\n");
    }
    text
}

/// Cost and benefit over the first knob, each as a share of its largest value.
pub fn plot(results: &Results, cost: &str, benefit: &str, title: &str) -> String {
    let points = points(results);
    let knob = results.axes.first().map_or("", |axis| axis.knob.as_str());
    let default = Policy::default().get(knob).and_then(|value| value.as_f64());
    let series = |what: &str, name: &str| {
        let all: Vec<(f64, f64)> = points
            .iter()
            .filter_map(|point| Some((point.point.first()?.as_f64()?, *point.means.get(name)?)))
            .collect();
        let most = all.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let points =
            all.into_iter().map(|(x, y)| (x, if most > 0.0 { 100.0 * y / most } else { 0.0 })).collect();
        Series { name: format!("{what}: {name}, most {}", mean(most)), points }
    };
    LineChart {
        title: title.to_owned(),
        x_label: knob.to_owned(),
        y_label: "% of the largest".to_owned(),
        series: vec![series("cost", cost), series("benefit", benefit)],
        mark_x: default.map(|at| (at, "default".to_owned())),
    }
    .to_svg()
}

/// The page of all shipped sweeps.
pub fn page(all: &[(Question, Results)]) -> String {
    let mut text = String::from(
        "# Defaults in question\n\nEach knob is swept through a generated life; cost and benefit stand side by side, and the place of the\n\
         default is marked. `hermes-lab sweep --shipped reports` makes this page anew.\n",
    );
    for (question, results) in all {
        let _ = write!(
            text,
            "\n## {}\n\n`{}`: {}\n\n![{}](sweep-{}.svg)\n\n```text\n{}```\n",
            question.name,
            question.range,
            question.asks,
            question.asks,
            question.name,
            self::text(results, &[question.cost, question.benefit])
        );
        if !question.note.is_empty() {
            let _ = write!(text, "\n{}\n", question.note);
        }
    }
    text
}

//! A life as tables and pictures: what the catalogue takes, what survives, what a day costs, how large anything grows.

use std::fmt::Write as _;

use crate::lab::life::{Life, Lived, Where};
use crate::report::grouped;
use crate::report::plot::{LineChart, Series};
use crate::report::table::Table;

/// Rows of the table over time.
const MOMENTS: usize = 12;

fn dollars(micro: u64) -> String {
    format!("{}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}

fn percent(part: u64, whole: u64) -> String {
    (part * 1_000)
        .checked_div(whole)
        .map_or_else(|| "–".to_owned(), |share| format!("{}.{}", share / 10, share % 10))
}

/// The report.
pub fn text(life: &Life) -> String {
    let mut text = format!("{}, {} days, prices of {}\n", life.kind.word(), life.days, life.price);
    for lived in &life.variants {
        let _ = write!(text, "\n{}\n\n", lived.name);
        text.push_str(&over_time(lived));
        text.push('\n');
        text.push_str(&bounds(lived));
        if !lived.survival.is_empty() {
            text.push('\n');
            text.push_str(&survival(lived));
        }
    }
    text
}

fn over_time(lived: &Lived) -> String {
    let mut table = Table::new(&[
        "days",
        "requests",
        "prompt tokens",
        "hit %",
        "$ a day",
        "$ uncached",
        "compactions",
        "catalogue lines",
        "chars",
        "% of requests",
        "memory chars",
        "created",
        "used",
        "archived",
    ])
    .right(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    let size = lived.days.len().div_ceil(MOMENTS).max(1);
    for (index, days) in lived.days.chunks(size).enumerate() {
        let sum = |read: fn(&crate::lab::life::Day) -> u64| days.iter().map(read).sum::<u64>();
        let count = days.len() as u64;
        let last = &days[days.len() - 1];
        let share = sum(|day| day.catalogue_share) / count;
        table.row([
            format!("{}–{}", index * size + 1, index * size + days.len()),
            grouped(sum(|day| day.requests)),
            grouped(sum(|day| day.prompt_tokens)),
            percent(sum(|day| day.read), sum(|day| day.prompt_tokens)),
            dollars(sum(|day| day.cost_micro_usd) / count),
            dollars(sum(|day| day.uncached_micro_usd) / count),
            grouped(sum(|day| day.compactions)),
            grouped(last.catalogue_lines),
            grouped(last.catalogue_chars),
            format!("{}.{}", share / 10, share % 10),
            grouped(last.memory_chars),
            grouped(sum(|day| day.skills_created)),
            grouped(sum(|day| day.skills_used)),
            grouped(sum(|day| day.skills_archived)),
        ]);
    }
    table.render()
}

fn bounds(lived: &Lived) -> String {
    let bounds = &lived.bounds;
    let mut table = Table::new(&["the most of what is resident", "value"]).right(&[1]);
    for (name, value) in [
        ("system prompt, characters", bounds.system_chars),
        ("memory blocks, characters", bounds.memory_chars),
        ("catalogue, lines", bounds.catalogue_lines),
        ("catalogue, characters", bounds.catalogue_chars),
        ("one request, tokens", bounds.request_tokens),
        ("history at a compaction, rows", bounds.rows),
        ("compactions of one session", bounds.compactions),
        ("memory writes refused", bounds.memory_refused),
    ] {
        table.row([name.to_owned(), grouped(value)]);
    }
    table.render()
}

fn survival(lived: &Lived) -> String {
    let mut table = Table::new(&["facts put into", "compactions since", "facts", "still in the prompt", "%"])
        .right(&[1, 2, 3, 4]);
    for row in &lived.survival {
        table.row([
            row.place.word().to_owned(),
            grouped(row.compactions),
            grouped(row.facts),
            grouped(row.seen),
            percent(row.seen, row.facts),
        ]);
    }
    table.render()
}

/// The pictures, as name and SVG.
pub fn plots(life: &Life) -> Vec<(String, String)> {
    let word = life.kind.word();
    let over_days = |title: &str, y_label: &str, read: fn(&crate::lab::life::Day) -> f64| {
        let series = life.variants.iter().map(|lived| Series {
            name: lived.name.clone(),
            points: lived.days.iter().enumerate().map(|(day, it)| (day as f64 + 1.0, read(it))).collect(),
        });
        LineChart {
            title: title.to_owned(),
            x_label: "day".to_owned(),
            y_label: y_label.to_owned(),
            series: series.collect(),
            mark_x: None,
        }
        .to_svg()
    };
    let mut plots = vec![
        (
            format!("life-{word}-catalogue"),
            over_days("The catalogue's share of every request", "% of prompt tokens", |day| {
                day.catalogue_share as f64 / 10.0
            }),
        ),
        (
            format!("life-{word}-cost"),
            over_days("What a day costs", "dollars", |day| day.cost_micro_usd as f64 / 1e6),
        ),
    ];
    let survival: Vec<Series> = life
        .variants
        .iter()
        .flat_map(|lived| {
            Where::ALL.into_iter().filter_map(move |place| {
                let points: Vec<(f64, f64)> = lived
                    .survival
                    .iter()
                    .filter(|row| row.place == place && row.facts > 0)
                    .map(|row| (row.compactions as f64, 100.0 * row.seen as f64 / row.facts as f64))
                    .collect();
                (!points.is_empty())
                    .then(|| Series { name: format!("{}, {}", place.word(), lived.name), points })
            })
        })
        .collect();
    if !survival.is_empty() {
        let chart = LineChart {
            title: "Facts that are still in the prompt".to_owned(),
            x_label: "compactions since".to_owned(),
            y_label: "% of facts".to_owned(),
            series: survival,
            mark_x: None,
        };
        plots.push((format!("life-{word}-facts"), chart.to_svg()));
    }
    plots
}

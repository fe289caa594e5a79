//! The ablation table: one row a break, as text, Markdown, a page and a picture of what breaks cost.

use crate::lab::suite::ablation::Row;
use crate::report::plot::{Bar, BarChart};
use crate::report::suite_html::{document, escape, sentence};
use crate::report::table::Table;
use crate::report::{grouped, plain};

/// Columns of the table.
const HEAD: [&str; 7] = [
    "break",
    "law",
    "what is turned",
    "caught by",
    "figures, intact → broken",
    "tasks that fail",
    "tokens paid anew",
];

fn cells(row: &Row) -> [String; 7] {
    let figures = row.shown.figures.iter().map(|figure| {
        format!("{} {} → {}", figure.name, short(&plain(&figure.intact)), short(&plain(&figure.broken)))
    });
    [
        row.shown.id.clone(),
        row.shown.law.clone(),
        row.shown.title.clone(),
        row.shown.caught_by.join(", "),
        figures.collect::<Vec<_>>().join("; "),
        row.tasks.join(", "),
        tokens(row.paid_tokens),
    ]
}

fn tokens(count: i64) -> String {
    match count {
        0 => String::new(),
        count if count < 0 => format!("-{}", grouped(count.unsigned_abs())),
        count => grouped(count.unsigned_abs()),
    }
}

/// A value that fits a cell.
fn short(text: &str) -> String {
    /// Longest value, in characters.
    const CHARS_MAX: usize = 48;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX - 1).chain(['…']).collect()
}

/// The table as text.
pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new(&HEAD).right(&[6]);
    for row in rows {
        table.row(cells(row));
    }
    let silent = rows.iter().filter(|row| row.tasks.is_empty()).count();
    format!(
        "{}\n{} breaks, {} claims hold; the regression set notices {}, the laws catch all\n",
        table.render(),
        rows.len(),
        rows.iter().filter(|row| row.shown.holds).count(),
        rows.len() - silent
    )
}

/// The table as Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n| --- | --- | --- | --- | --- | --- | --: |\n", HEAD.join(" | "));
    for row in rows {
        text.push_str(&format!("| {} |\n", cells(row).map(|cell| cell.replace('|', "\\|")).join(" | ")));
    }
    text
}

/// Tokens paid anew on a hundred turns, for the breaks that cost something, dearest first.
pub fn bars(rows: &[Row]) -> String {
    let mut dear: Vec<&Row> = rows.iter().filter(|row| row.paid_tokens > 0).collect();
    dear.sort_by_key(|row| std::cmp::Reverse(row.paid_tokens));
    let bars = dear.into_iter().map(|row| Bar {
        name: format!("{} {}", row.shown.id, row.shown.title),
        value: row.paid_tokens as f64,
        reference: false,
    });
    BarChart {
        title: "What a break costs in a hundred turns".to_owned(),
        x_label: "prompt tokens paid anew, cache of Anthropic".to_owned(),
        bars: bars.collect(),
    }
    .to_svg()
}

/// The page.
pub fn page(rows: &[Row]) -> String {
    let mut body = format!(
        "<h1>Ablation</h1>\n<p>Each row takes one mechanism away. {} breaks; every one is caught by a check of a law.</p>\n<figure>{}</figure>\n<div class=\"scroll\"><table><thead><tr>",
        rows.len(),
        bars(rows)
    );
    for head in HEAD {
        body.push_str(&format!("<th>{head}</th>"));
    }
    body.push_str("</tr></thead><tbody>\n");
    for row in rows {
        let cells = cells(row);
        body.push_str("<tr>");
        for (place, cell) in cells.iter().enumerate() {
            let class = if place == 6 { " class=\"n\"" } else { "" };
            let cell = if place == 2 { sentence(cell) } else { cell.clone() };
            body.push_str(&format!("<td{class}>{}</td>", escape(&cell)));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
    document("Ablation", &body)
}

/// Every file of the report, by name.
pub fn files(rows: &[Row]) -> Vec<(&'static str, String)> {
    vec![("ablation.md", markdown(rows)), ("ablation.html", page(rows)), ("ablation-cost.svg", bars(rows))]
}

//! What the learning loop buys: the table of links, curves, bars, and a page of them.

use crate::lab::suite::learning::{Arm, Arms, Learning, TaskCost};
use crate::report::grouped;
use crate::report::plot::{Bar, BarChart, LineChart, Series};
use crate::report::suite::dollars;
use crate::report::suite_html::{document, escape, sentence};
use crate::report::table::Table;

/// Columns of the table of links.
const HEAD: [&str; 7] = [
    "arm",
    "iterations",
    "prompt tokens",
    "failed calls",
    "skill loaded",
    "tokens more",
    "what is different",
];

/// One row of the table of links: later tasks only.
fn link_row(arm: &Arm, reference: &Arm) -> [String; 7] {
    let more = share_more(arm, reference).map_or_else(String::new, |mille| format!("{} %", one_digit(mille)));
    [
        arm.name.clone(),
        arm.later.iterations.to_string(),
        grouped(arm.later.prompt_tokens),
        arm.later.failures.to_string(),
        arm.later.loaded.to_string(),
        more,
        arm.says.clone(),
    ]
}

/// Prompt tokens of the later tasks above the reference's, in thousandths of them.
fn share_more(arm: &Arm, reference: &Arm) -> Option<i64> {
    let (is, was) = (signed(arm.later.prompt_tokens), signed(reference.later.prompt_tokens));
    (arm.name != reference.name).then(|| (is - was) * 1_000 / was.max(1))
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn one_digit(mille: i64) -> String {
    let sign = if mille < 0 { "-" } else { "+" };
    format!("{sign}{}.{}", mille.abs() / 10, mille.abs() % 10)
}

/// Everything as text.
pub fn text(learning: &Learning) -> String {
    let mut text = format!("{}\n\n", learning.links.title);
    let mut table = Table::new(&HEAD).right(&[1, 2, 3, 4, 5]);
    for arm in &learning.links.arms {
        table.row(link_row(arm, &learning.links.arms[0]));
    }
    text.push_str(&table.render());
    text.push_str(
        "\nsums over the later sessions; the first, before which nothing was learned, is left out\n",
    );
    for hazard in &learning.hazards {
        text.push_str(&format!("\n{}\n\n", hazard.title));
        let mut table = Table::new(&["what must hold", "arms in which it does", "arms in which it does not"]);
        for (says, held, failed) in hazard_rows(hazard) {
            table.row([says, held, failed]);
        }
        text.push_str(&table.render());
    }
    let arms = learning.hazards.iter().chain([&learning.links]).flat_map(|arms| &arms.arms);
    let problems: Vec<String> = arms
        .flat_map(|arm| arm.problems.iter().map(move |problem| format!("{}: {problem}", arm.name)))
        .collect();
    for problem in &problems {
        text.push_str(&format!("\nproblem: {problem}"));
    }
    text.push_str(if problems.is_empty() { "\nevery arm is as its scenario says\n" } else { "\n" });
    text
}

fn hazard_rows(hazard: &Arms) -> Vec<(String, String, String)> {
    let Some(first) = hazard.arms.first() else { return Vec::new() };
    let rows = first.verdicts.iter().enumerate().map(|(place, judged)| {
        let arms = |holds: bool| {
            let names: Vec<&str> = hazard
                .arms
                .iter()
                .filter(|arm| arm.verdicts[place].holds == holds)
                .map(|arm| arm.name.as_str())
                .collect();
            if names.len() == hazard.arms.len() { "all".to_owned() } else { names.join(", ") }
        };
        (judged.says.clone(), arms(true), arms(false))
    });
    rows.collect()
}

/// The table of links as Markdown, for the README.
pub fn links_markdown(learning: &Learning) -> String {
    let mut text = format!("| {} |\n| --- | --: | --: | --: | --: | --: | --- |\n", HEAD.join(" | "));
    for arm in &learning.links.arms {
        text.push_str(&format!("| {} |\n", link_row(arm, &learning.links.arms[0]).join(" | ")));
    }
    text
}

/// One line an arm; arms whose lines would hide each other share one.
fn lines<'a>(arms: impl Iterator<Item = &'a Arm>, value: impl Fn(&TaskCost) -> u64) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for arm in arms {
        let points: Vec<(f64, f64)> =
            (1u32..).zip(&arm.tasks).map(|(week, task)| (f64::from(week), value(task) as f64)).collect();
        match lines.iter_mut().find(|line| line.points == points) {
            Some(line) => line.name = format!("{}; {}", line.name, arm.name),
            None => lines.push(Series { name: arm.name.clone(), points }),
        }
    }
    lines
}

/// Tokens of every session.
pub fn curve(learning: &Learning) -> String {
    let single = |arm: &&Arm| !["write refused", "write never approved"].contains(&arm.name.as_str());
    LineChart {
        title: "What the same task costs, week after week".to_owned(),
        x_label: "session".to_owned(),
        y_label: "prompt tokens of the session".to_owned(),
        series: lines(learning.links.arms.iter().filter(single), |task| task.prompt_tokens),
        mark_x: None,
    }
    .to_svg()
}

/// Tokens of the later sessions, by arm.
pub fn bars(learning: &Learning) -> String {
    let bars = learning.links.arms.iter().enumerate().map(|(place, arm)| Bar {
        name: arm.name.clone(),
        value: arm.later.prompt_tokens as f64,
        reference: place == 0,
    });
    BarChart {
        title: "What a missing link costs".to_owned(),
        x_label: "prompt tokens of the later sessions".to_owned(),
        bars: bars.collect(),
    }
    .to_svg()
}

/// Iterations with a wrong skill, week after week, by arm.
pub fn hazard_curve(hazard: &Arms) -> String {
    LineChart {
        title: "A wrong skill that is used every week".to_owned(),
        x_label: "session".to_owned(),
        y_label: "iterations of the session".to_owned(),
        series: lines(hazard.arms.iter(), |task| task.iterations),
        mark_x: None,
    }
    .to_svg()
}

/// The page: tables and pictures.
pub fn page(learning: &Learning) -> String {
    let mut body = format!("<h1>The learning loop</h1>\n<p>{}</p>\n", escape(&learning.links.about));
    body.push_str(&figure(&curve(learning)));
    body.push_str(&figure(&bars(learning)));
    body.push_str("<div class=\"scroll\"><table><thead><tr>");
    for (place, head) in HEAD.iter().enumerate() {
        body.push_str(&format!(
            "<th{}>{head}</th>",
            if (1..6).contains(&place) { " class=\"n\"" } else { "" }
        ));
    }
    body.push_str("</tr></thead><tbody>\n");
    for arm in &learning.links.arms {
        body.push_str("<tr>");
        for (place, cell) in link_row(arm, &learning.links.arms[0]).iter().enumerate() {
            let class = if (1..6).contains(&place) { " class=\"n\"" } else { "" };
            body.push_str(&format!("<td{class}>{}</td>", escape(cell)));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n<p class=\"dim\">Sums over the later sessions; the first, before which nothing was learned, is left out.</p>\n");
    let first = learning.links.arms.first();
    if let Some((with, without)) = first.zip(learning.links.arms.get(1)) {
        body.push_str(&format!(
            "<p>All six sessions, reviews included: {} $ with the loop, {} $ without.</p>\n",
            dollars(with.cost_microdollars),
            dollars(without.cost_microdollars)
        ));
    }
    for hazard in &learning.hazards {
        body.push_str(&format!(
            "<h2>{}</h2>\n<p>{}</p>\n",
            escape(&sentence(&hazard.title)),
            escape(&hazard.about)
        ));
        if hazard.scenario == "wrong-skill" {
            body.push_str(&figure(&hazard_curve(hazard)));
        }
        body.push_str("<div class=\"scroll\"><table><thead><tr><th>what must hold</th>");
        hazard.arms.iter().for_each(|arm| body.push_str(&format!("<th>{}</th>", escape(&arm.name))));
        body.push_str("</tr></thead><tbody>\n");
        let rows = hazard.arms.first().map_or(&[][..], |arm| &arm.verdicts);
        for (place, judged) in rows.iter().enumerate() {
            body.push_str(&format!("<tr><td>{}</td>", escape(&judged.says)));
            for arm in &hazard.arms {
                let (class, word) =
                    if arm.verdicts[place].holds { ("good", "✓ holds") } else { ("bad", "✗ fails") };
                body.push_str(&format!("<td><span class=\"{class}\">{word}</span></td>"));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div>\n");
    }
    document("The learning loop", &body)
}

fn figure(svg: &str) -> String {
    format!("<figure>{svg}</figure>\n")
}

/// Every file of the report, by name.
pub fn files(learning: &Learning) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("learning-curve.svg", curve(learning)),
        ("learning-links.svg", bars(learning)),
        ("learning-links.md", links_markdown(learning)),
        ("learning.html", page(learning)),
    ];
    let wrong = learning.hazards.iter().find(|hazard| hazard.scenario == "wrong-skill");
    files.extend(wrong.map(|hazard| ("wrong-skill.svg", hazard_curve(hazard))));
    files
}

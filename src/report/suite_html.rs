//! A played suite as a page that stands alone: no script, no address, light and dark.

use crate::lab::suite::compare::Moved;
use crate::lab::suite::{Suite, TaskRun};
use crate::report::grouped;
use crate::report::suite::{dollars, percent};

/// Style of pages of this lab.
pub const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(suite: &Suite, moves: Option<&[Moved]>) -> String {
    let held = suite.tasks.iter().filter(|task| task.holds).count();
    let mut body = format!(
        "<h1>Regression suite</h1>\n<p class=\"big\"><b class=\"{}\">{held} of {}</b> tasks hold</p>\n<p class=\"dim\">hermes-lab {}{}</p>\n",
        if suite.holds { "good" } else { "bad" },
        suite.tasks.len(),
        escape(&suite.version),
        if suite.turned.is_empty() {
            String::new()
        } else {
            format!(", {}", escape(&suite.turned.join(" ")))
        },
    );
    if let Some(moves) = moves {
        body.push_str(&moved(moves));
    }
    body.push_str("<div class=\"scroll\"><table><thead><tr><th>task</th><th></th><th class=\"n\">verdicts</th><th class=\"n\">prompt tokens</th><th class=\"n\">read</th><th class=\"n\">output</th><th class=\"n\">cost $</th><th class=\"n\">repeated</th><th class=\"n\">refused</th><th class=\"n\">unknown</th></tr></thead><tbody>\n");
    for task in &suite.tasks {
        let tokens = task.all_tokens();
        let verdicts = task.verdicts.iter().filter(|judged| judged.holds).count();
        body.push_str(&format!(
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td>",
            escape(&task.task),
            mark(task.holds)
        ));
        let cells = [
            format!("{verdicts}/{}", task.verdicts.len()),
            grouped(tokens.prompt()),
            grouped(tokens.read),
            grouped(tokens.output),
            dollars(task.cost_microdollars),
            task.repeated_actions.to_string(),
            task.refusals.to_string(),
            task.unknown_outcomes.to_string(),
        ];
        for cell in cells {
            body.push_str(&format!("<td class=\"n\">{cell}</td>"));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
    suite.tasks.iter().for_each(|task| body.push_str(&one(task)));
    document("Regression suite", &body)
}

fn moved(moves: &[Moved]) -> String {
    let mut text = "<h2>Against the baseline</h2>\n".to_owned();
    let (worse, other): (Vec<&Moved>, Vec<&Moved>) = moves.iter().partition(|moved| moved.worse);
    if worse.is_empty() {
        text.push_str("<p class=\"good\">✓ Nothing got worse.</p>\n");
    } else {
        text.push_str(&format!("<p class=\"bad\">✗ {} regressions</p>\n{}", worse.len(), rows(&worse)));
    }
    if !other.is_empty() {
        text.push_str(&format!(
            "<details><summary>{} others moved, none for the worse</summary>\n{}</details>\n",
            other.len(),
            rows(&other)
        ));
    }
    text + "<h2>Tasks</h2>\n"
}

fn rows(moves: &[&Moved]) -> String {
    let head = ["task", "what", "before", "after"].map(|head| format!("<th>{head}</th>")).concat();
    let mut text = format!("<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>\n");
    for moved in moves {
        let cells = [&moved.task, &moved.what, &moved.before, &moved.after].map(|text| escape(text));
        text.push_str(&format!("<tr><td>{}</td></tr>\n", cells.join("</td><td>")));
    }
    text + "</tbody></table></div>\n"
}

fn one(task: &TaskRun) -> String {
    let mut text = format!(
        "<section id=\"{}\"><h2>{} {}</h2>\n<p>{}</p>\n",
        escape(&task.task),
        mark(task.holds),
        escape(&sentence(&task.title)),
        escape(&task.about)
    );
    if let Some(error) = &task.error {
        text.push_str(&format!("<p class=\"bad\">Could not be played: {}</p>\n", escape(error)));
    }
    text.push_str("<ul class=\"verdicts\">\n");
    for judged in &task.verdicts {
        let says = if judged.says.is_empty() { &judged.name } else { &judged.says };
        text.push_str(&format!("<li>{} {}", mark(judged.holds), escape(says)));
        if !judged.holds {
            text.push_str(&format!(
                "<div class=\"dim\">expected {}<br>found {}</div>",
                escape(&judged.expected),
                escape(&judged.found)
            ));
        }
        text.push_str("</li>\n");
    }
    for found in &task.findings {
        text.push_str(&format!(
            "<li>{} {} at event {}: {}</li>\n",
            mark(false),
            escape(&found.check),
            found.event,
            escape(&found.evidence)
        ));
    }
    text.push_str("</ul>\n");
    for (name, mille) in &task.rates {
        text.push_str(&format!("<p>{}: {}</p>\n", escape(&name.replace('_', " ")), percent(*mille)));
    }
    let calls = task.tool_trace.len();
    text.push_str(&format!(
        "<details><summary>{calls} tool calls</summary>\n<div class=\"scroll\"><table><tbody>\n"
    ));
    for call in &task.tool_trace {
        let class = if call.outcome == "ok" { "" } else { " class=\"bad\"" };
        text.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td{class}>{}</td></tr>\n",
            escape(&call.session),
            escape(&call.lane),
            escape(&call.call),
            escape(&call.outcome)
        ));
    }
    text.push_str("</tbody></table></div></details>\n<details><summary>Tokens by lane, end state, digests</summary>\n<div class=\"scroll\"><table><thead><tr><th>lane</th><th class=\"n\">requests</th><th class=\"n\">read</th><th class=\"n\">written, 5 min</th><th class=\"n\">written, 1 h</th><th class=\"n\">uncached</th><th class=\"n\">output</th></tr></thead><tbody>\n");
    for (lane, tokens) in &task.tokens {
        let cells =
            [tokens.requests, tokens.read, tokens.write_5m, tokens.write_1h, tokens.uncached, tokens.output];
        text.push_str(&format!("<tr><td>{}</td>", escape(lane)));
        for count in cells {
            text.push_str(&format!("<td class=\"n\">{}</td>", grouped(count)));
        }
        text.push_str("</tr>\n");
    }
    let changed =
        if task.end.changed.is_empty() { "nothing".to_owned() } else { task.end.changed.join(", ") };
    text.push_str(&format!(
        "</tbody></table></div><p>Changed in the workspace: {}. Delivered {}, not delivered {}.</p>\n<p class=\"dim\">scenario {}<br>policy {}<br>ledger {}<br>seed {}</p></details>\n</section>\n",
        escape(&changed),
        task.end.delivered,
        task.end.undelivered,
        task.scenario_digest,
        task.policy_digest,
        task.ledger_digest,
        task.seed
    ));
    text
}

/// A sign and a word, so that colour is not all there is.
fn mark(holds: bool) -> &'static str {
    if holds { "<span class=\"good\">✓ holds</span>" } else { "<span class=\"bad\">✗ fails</span>" }
}

/// A whole document around a body.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// A line that begins with a capital letter, as headings do.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A text that is text in a page, whatever it holds.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

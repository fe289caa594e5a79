//! An audit as text: a summary that fits a screen, or a line a request.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::audit::Audit;
use crate::audit::read::{Format, Reading};
use crate::audit::record::{Detail, Judged};
use crate::audit::summary::{Summary, round};
use crate::audit::words::{Cause, Place, Verdict};
use crate::report::grouped;
use crate::report::table::Table;

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The judgements.
    pub audit: &'a Audit,
    /// The logs.
    pub readings: &'a [Reading],
    /// The numbers.
    pub summary: &'a Summary,
    /// Hashes and lengths instead of texts.
    pub redact: bool,
}

/// Appends formatted text.
fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    use std::fmt::Write as _;
    // A string takes everything.
    let _ = text.write_fmt(line);
}

/// A text, or its hash and length.
pub fn shown(redact: bool, text: &str) -> String {
    if !redact || text.is_empty() {
        return text.to_owned();
    }
    let digest = Sha256::digest(text.as_bytes());
    let [a, b, c, d, ..] = digest[..] else { return String::new() };
    format!("[{a:02x}{b:02x}{c:02x}{d:02x}, {} bytes]", text.len())
}

/// A text, or its hash and length, as JSON.
pub fn mask(redact: bool, text: &str) -> Value {
    Value::from(shown(redact, text))
}

/// Conversations with their numbers.
pub fn conversations(view: &View<'_>) -> Vec<Value> {
    let count = view.audit.conversations.len();
    let mut sums = vec![(0_usize, 0_u64, 0_u64, 0_u64, 0_usize); count];
    for judged in &view.audit.requests {
        let sum = &mut sums[judged.conversation];
        sum.0 += 1;
        sum.1 += judged.tokens.prompt;
        sum.2 += judged.tokens.read;
        sum.3 += judged.tokens.lost;
        sum.4 += usize::from(judged.finding());
    }
    sums.into_iter()
        .enumerate()
        .map(|(number, (requests, prompt, read, lost, findings))| {
            let floor =
                view.audit.pinned.iter().find(|(pinned, _)| *pinned == number).map(|(_, floor)| floor);
            json!({
                "id": shown(view.redact, &view.audit.name(number)), "number": number,
                "requests": requests, "prompt": prompt, "read": read, "lost": lost, "findings": findings,
                "cached_share": if prompt == 0 { 0.0 } else { round(read as f64 / prompt as f64) },
                "floor_pinned": floor,
            })
        })
        .collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with its noun.
fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// The summary.
pub fn summary(view: &View<'_>) -> String {
    let sum = view.summary;
    let mut text = String::new();
    for reading in view.readings {
        text.push_str(&source(reading, view.redact));
    }
    if sum.blind {
        if sum.requests > 0 {
            let count = counted(sum.requests as u64, "history", "histories");
            put(&mut text, format_args!("\n{count} without a fault; caching could not be judged.\n"));
        } else {
            text.push_str("\nNothing here could be judged.\n");
        }
        return text;
    }
    let basis = if sum.billed == sum.requests {
        "as billed"
    } else if sum.billed == 0 {
        "estimated from the bytes"
    } else {
        "partly billed, partly estimated"
    };
    put(
        &mut text,
        format_args!(
            "\n{} in {}\n",
            counted(sum.requests as u64, "request", "requests"),
            counted(sum.conversations as u64, "conversation", "conversations")
        ),
    );
    put(
        &mut text,
        format_args!(
            "hit rate {} ({basis}); {} if nothing had been lost\n",
            percent(sum.hit_rate()),
            percent(sum.hit_rate_reachable())
        ),
    );
    put(
        &mut text,
        format_args!(
            "{} prompt tokens: {} read, {} written, {} neither; {} paid again\n",
            grouped(sum.prompt),
            grouped(sum.read),
            grouped(sum.written),
            grouped(sum.uncached),
            grouped(sum.lost)
        ),
    );
    if let (Some(money), Some(lost)) = (sum.money, sum.money_lost) {
        put(
            &mut text,
            format_args!("prompts cost {}, of which {} was lost\n", dollars(money), dollars(lost)),
        );
    }
    let verdicts: Vec<String> =
        sum.verdicts.iter().map(|(verdict, count)| format!("{} {}", count, verdict.word())).collect();
    put(&mut text, format_args!("{}\n", verdicts.join(", ")));
    text.push_str(&causes(view));
    for (kind, count) in &sum.faults {
        put(&mut text, format_args!("history: {count} × {kind}\n"));
    }
    if let Some((cause, mend)) = sum.first_step() {
        put(&mut text, format_args!("\nfirst: {mend} ({})\n", cause.word()));
    } else if !sum.findings {
        text.push_str("\nnothing unplanned\n");
    }
    text
}

fn source(reading: &Reading, redact: bool) -> String {
    let format = reading.format.map_or("unknown format", Format::word);
    let mut text =
        format!("{}: {format}, {} pieces", shown(redact, &reading.source), grouped(reading.pieces));
    if reading.other > 0 {
        put(&mut text, format_args!(", {} of them no requests", grouped(reading.other)));
    }
    text.push('\n');
    if let Some(blind) = reading.format.map(Format::blind).filter(|blind| !blind.is_empty()) {
        put(&mut text, format_args!("  not judged: {blind}\n"));
    }
    if reading.skipped_count > 0 {
        put(&mut text, format_args!("  {} unreadable:\n", grouped(reading.skipped_count)));
        for skipped in reading.skipped.iter().take(3) {
            put(&mut text, format_args!("    line {}: {}\n", skipped.line, skipped.reason));
        }
    }
    text
}

/// The three costliest causes, each with its first place and what differs there.
fn causes(view: &View<'_>) -> String {
    let mut text = String::new();
    let shown_causes: Vec<_> = view.summary.causes.iter().take(3).collect();
    if shown_causes.is_empty() {
        return text;
    }
    let mut table =
        Table::new(&["cause", "requests", "behind others", "tokens lost", "first at"]).right(&[1, 2, 3]);
    for (cause, cost) in &shown_causes {
        table.row([
            cause.word().to_owned(),
            grouped(cost.requests as u64),
            grouped(cost.latent as u64),
            grouped(cost.lost),
            view.audit.find(cost.first).map_or_else(String::new, place),
        ]);
    }
    text.push('\n');
    text.push_str(&table.render());
    for (cause, cost) in &shown_causes {
        let Some(judged) = view.audit.find(cost.first) else { continue };
        if let Some(detail) = judged.details.iter().find(|detail| detail.cause == *cause) {
            put(
                &mut text,
                format_args!("\n{} at {}: {}\n", cause.word(), place(judged), told(view, &detail.what)),
            );
            text.push_str(&difference(view, detail));
        }
    }
    text
}

fn told(view: &View<'_>, what: &str) -> String {
    // Sentences may carry names of tools and models.
    if view.redact && what.contains(':') { shown(true, what) } else { what.to_owned() }
}

fn place(judged: &Judged) -> String {
    let level = judged.level.map_or("", Place::word);
    let pointer = if judged.pointer.is_empty() { level } else { &judged.pointer };
    format!("request {}, line {} {pointer}", judged.index, judged.line)
}

/// Lines of a difference that are shown.
const LINES_MAX: usize = 8;

/// Before and after as a difference by lines; long lines are cut around what changed, which stands in brackets.
pub fn difference(view: &View<'_>, detail: &Detail) -> String {
    if detail.before.is_empty() && detail.after.is_empty() {
        return String::new();
    }
    if view.redact {
        return format!("  - {}\n  + {}\n", shown(true, &detail.before), shown(true, &detail.after));
    }
    let mut text = String::new();
    let mut count = 0;
    let diff = similar::TextDiff::from_lines(detail.before.as_str(), detail.after.as_str());
    for op in diff.ops() {
        for change in diff.iter_inline_changes(op) {
            let sign = match change.tag() {
                similar::ChangeTag::Equal => continue,
                similar::ChangeTag::Delete => '-',
                similar::ChangeTag::Insert => '+',
            };
            count += 1;
            if count > LINES_MAX {
                text.push_str("  …\n");
                return text;
            }
            put(&mut text, format_args!("  {sign} {}\n", marked(change.iter_strings_lossy())));
        }
    }
    text
}

/// A line with its changed runs in brackets, cut to what is near them.
fn marked<'a>(parts: impl Iterator<Item = (bool, std::borrow::Cow<'a, str>)>) -> String {
    let mut line = String::new();
    let parts: Vec<(bool, String)> =
        parts.map(|(changed, part)| (changed, part.trim_end_matches('\n').to_owned())).collect();
    let whole = parts.iter().all(|(changed, _)| *changed) || parts.iter().all(|(changed, _)| !*changed);
    for (changed, part) in parts {
        let cut = |text: &str, keep: usize| -> String {
            let count = text.chars().count();
            if count <= 2 * keep {
                return text.to_owned();
            }
            let head: String = text.chars().take(keep).collect();
            let tail: String = text.chars().skip(count - keep).collect();
            format!("{head}…{tail}")
        };
        if changed && !whole {
            put(&mut line, format_args!("⟦{}⟧", cut(&part, 40)));
        } else {
            line.push_str(&cut(&part, 30));
        }
    }
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A line a request.
pub fn requests(view: &View<'_>) -> String {
    let mut table = Table::new(&[
        "#",
        "line",
        "conversation",
        "verdict",
        "cause",
        "where",
        "matched",
        "read",
        "predicted",
        "lost",
    ])
    .right(&[0, 1, 6, 7, 8, 9]);
    for judged in &view.audit.requests {
        let mut cause =
            if judged.cause == Cause::None { String::new() } else { judged.cause.word().to_owned() };
        for latent in &judged.latent {
            put(&mut cause, format_args!(" + {}", latent.word()));
        }
        for fault in &judged.faults {
            put(&mut cause, format_args!(" ! {}", fault.kind));
        }
        let verdict = match judged.verdict {
            Verdict::Extends => "extends".to_owned(),
            other => other.word().to_owned(),
        };
        let name = shown(view.redact, &view.audit.name(judged.conversation));
        table.row([
            judged.index.to_string(),
            judged.line.to_string(),
            if name.chars().count() > 24 { name.chars().take(23).chain(['…']).collect() } else { name },
            verdict,
            cause,
            if judged.pointer.is_empty() {
                judged.level.map_or_else(String::new, |level| level.word().to_owned())
            } else {
                judged.pointer.clone()
            },
            grouped(judged.tokens.matched),
            grouped(judged.tokens.read),
            grouped(judged.tokens.predicted_read),
            grouped(judged.tokens.lost),
        ]);
    }
    table.render()
}

/// One request as one line, as it is followed.
pub fn line(judged: &Judged, name: &str, redact: bool) -> String {
    let mut text = format!("#{} {} {}", judged.index, shown(redact, name), judged.verdict.word());
    if !matches!(judged.cause, Cause::None | Cause::ColdStart) {
        put(&mut text, format_args!(" {}", judged.cause.word()));
    }
    for latent in &judged.latent {
        put(&mut text, format_args!(" + {}", latent.word()));
    }
    if !judged.pointer.is_empty() {
        put(&mut text, format_args!(" at {}", judged.pointer));
    }
    put(&mut text, format_args!("  {} read", grouped(judged.tokens.read)));
    if judged.tokens.lost > 0 {
        put(&mut text, format_args!(", {} lost", grouped(judged.tokens.lost)));
    }
    text.push('\n');
    text
}

/// Figures of two logs: name, this, that.
fn figures(this: &View<'_>, that: &View<'_>) -> Vec<(String, f64, f64)> {
    let of = |name: &str, figure: &dyn Fn(&Summary) -> f64| {
        (name.to_owned(), figure(this.summary), figure(that.summary))
    };
    let mut rows = vec![
        of("requests", &|sum| sum.requests as f64),
        of("conversations", &|sum| sum.conversations as f64),
        of("hit rate, %", &|sum| sum.hit_rate() * 100.0),
        of("reachable hit rate, %", &|sum| sum.hit_rate_reachable() * 100.0),
        of("prompt tokens", &|sum| sum.prompt as f64),
        of("tokens read", &|sum| sum.read as f64),
        of("tokens lost", &|sum| sum.lost as f64),
        of("prompts, dollars", &|sum| sum.money.unwrap_or(0.0)),
        of("lost, dollars", &|sum| sum.money_lost.unwrap_or(0.0)),
    ];
    let mut causes: Vec<Cause> =
        this.summary.causes.iter().chain(&that.summary.causes).map(|(cause, _)| *cause).collect();
    causes.sort_unstable();
    causes.dedup();
    for cause in causes {
        let count = |sum: &Summary| {
            sum.causes
                .iter()
                .find(|(one, _)| *one == cause)
                .map_or(0, |(_, cost)| cost.requests + cost.latent) as f64
        };
        rows.push(of(cause.word(), &count));
    }
    rows
}

/// The first request that two logs judge differently.
fn parting(this: &View<'_>, that: &View<'_>) -> Option<usize> {
    this.audit
        .requests
        .iter()
        .zip(&that.audit.requests)
        .position(|(a, b)| (a.verdict, a.cause, &a.pointer) != (b.verdict, b.cause, &b.pointer))
}

/// Two logs of the same work side by side.
pub fn comparison(this: &View<'_>, that: &View<'_>) -> String {
    let mut table = Table::new(&["figure", "this", "other", "difference"]).right(&[1, 2, 3]);
    let number = |value: f64| {
        if value.fract().abs() < 1e-9 && value.abs() < 1e15 {
            format!("{value:.0}")
        } else {
            format!("{value:.4}")
        }
    };
    for (name, a, b) in figures(this, that) {
        let sign = if a > b { "+" } else { "" };
        table.row([name, number(a), number(b), format!("{sign}{}", number(a - b))]);
    }
    let mut text = table.render();
    if let Some(at) = parting(this, that) {
        let (a, b) = (&this.audit.requests[at], &that.audit.requests[at]);
        put(
            &mut text,
            format_args!(
                "\nthey part at request {at}: {} {} here, {} {} there\n",
                a.verdict.word(),
                a.cause.word(),
                b.verdict.word(),
                b.cause.word()
            ),
        );
    }
    text
}

/// The comparison as JSON.
pub fn comparison_json(this: &View<'_>, that: &View<'_>) -> Value {
    let rows: serde_json::Map<String, Value> = figures(this, that)
        .into_iter()
        .map(|(name, a, b)| (name, json!({"this": a, "other": b, "difference": a - b})))
        .collect();
    json!({
        "schema": crate::audit::SCHEMA, "figures": rows, "parting": parting(this, that),
        "this": this.summary.to_json(this.readings), "other": that.summary.to_json(that.readings),
    })
}

/// The facts of a case, a line each.
pub fn case(path: &str, facts: &Value) -> String {
    let mut text = format!("{path}\n");
    for (name, value) in facts.as_object().into_iter().flatten() {
        put(&mut text, format_args!("  {name}: {}\n", crate::report::plain(value)));
    }
    text
}

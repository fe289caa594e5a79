//! The compiled pattern table: rows of parts joined by bounded gaps, searched in time linear in the text.
//!
//! A long gap written as a repetition would cost the engine as many states as characters. Here the parts are
//! searched one by one and the gaps are checked by arithmetic. Called by the scanner only.

use std::cell::OnceCell;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::Scope;
use crate::agent::sieve::{Lazy, Sieved};

const SOURCE: &str = include_str!("patterns.toml");

/// One row as written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPattern {
    pub id: String,
    pub category: String,
    pub scope: String,
    pub parts: Vec<String>,
    #[serde(default)]
    pub gaps: Vec<usize>,
    #[serde(default)]
    pub stop: Stop,
    #[serde(default)]
    pub unless: String,
    pub example: String,
    pub near_miss: String,
    pub older: Option<Change>,
    pub hardened: Option<Change>,
}

/// What another revision or mode has instead.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    parts: Option<Vec<String>>,
    gaps: Option<Vec<usize>>,
    unless: Option<String>,
}

/// The character that no gap may cross.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stop {
    #[default]
    Newline,
    GreaterThan,
}

#[derive(Debug, Deserialize)]
struct RawTable {
    pattern: Vec<RawPattern>,
}

/// A row ready to search.
#[derive(Debug)]
pub(super) struct Row {
    pub id: String,
    pub scope: Scope,
    parts: Vec<Lazy<Regex>>,
    gaps: Vec<usize>,
    stop: Stop,
    unless: Option<Lazy<Regex>>,
}

/// The rows of a revision and mode.
pub(super) type Table = Sieved<Row>;

/// The rows as written.
pub(super) fn raw() -> Vec<RawPattern> {
    toml::from_str::<RawTable>(SOURCE).expect("the embedded table is valid, a test reads it").pattern
}

/// The table of a revision and mode; a pattern is compiled when it is first searched.
pub(super) fn of(older: bool, hardened: bool) -> Table {
    let rows = raw().into_iter().map(|row| row_of(row, older, hardened)).collect();
    Sieved::of(rows, |row: &Row| row.parts.iter().map(Lazy::source).collect())
}

fn row_of(mut raw: RawPattern, older: bool, hardened: bool) -> Row {
    let changes = [raw.older.take().filter(|_| older), raw.hardened.take().filter(|_| hardened)];
    for change in changes.into_iter().flatten() {
        raw.parts = change.parts.unwrap_or(raw.parts);
        raw.gaps = change.gaps.unwrap_or(raw.gaps);
        raw.unless = change.unless.unwrap_or(raw.unless);
    }
    let any_case = |source: &str| compiled(source, true);
    let as_written = |source: &str| compiled(source, false);
    let unless = (!raw.unless.is_empty())
        .then(|| Lazy::new(expand(&format!("^(?:{})", raw.unless)), as_written as fn(&str) -> Regex));
    Row {
        scope: Scope::parse(&raw.scope).expect("the embedded table names known scopes, a test reads it"),
        id: raw.id,
        parts: raw.parts.iter().map(|part| Lazy::new(expand(part), any_case as fn(&str) -> Regex)).collect(),
        gaps: raw.gaps,
        stop: raw.stop,
        unless,
    }
}

fn compiled(source: &str, any_case: bool) -> Regex {
    RegexBuilder::new(source)
        .unicode(false)
        .case_insensitive(any_case)
        .build()
        .expect("the embedded patterns compile, a test builds them")
}

/// Writes out the abbreviations of the table.
fn expand(pattern: &str) -> String {
    const WORD: &str = r"[0-9A-Za-z_\xFF]";
    const NO_WORD: &str = r"[^0-9A-Za-z_\xFF]";
    const SPACE: &str = r"[\s\x1c-\x1f]";
    pattern
        .replace("{F8}", "(?:{W}{S}){0,8}")
        .replace("{S}", &format!("{SPACE}+"))
        .replace("{s}", &format!("{SPACE}*"))
        .replace("{W}", &format!("{WORD}+"))
        .replace("{w}", &format!("{WORD}*"))
        .replace("{LA}", "(?:^|[^A-Za-z])")
        .replace("{RA}", "(?:$|[^A-Za-z])")
        .replace("{L}", &format!("(?:^|{NO_WORD})"))
        .replace("{R}", &format!("(?:$|{NO_WORD})"))
}

/// Where a part was found. White space at either side may be given up down to one character, hence the ranges.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    start_last: usize,
    end_first: usize,
    end: usize,
}

/// How many stop characters stand before each position; counted once for all rows, when a row first asks.
pub(super) struct Stops<'a> {
    text: &'a [u8],
    newlines: OnceCell<Vec<u32>>,
    greater: OnceCell<Vec<u32>>,
}

impl<'a> Stops<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, newlines: OnceCell::new(), greater: OnceCell::new() }
    }

    fn none_between(&self, stop: Stop, from: usize, to: usize) -> bool {
        let (counted, wanted) = match stop {
            Stop::Newline => (&self.newlines, b'\n'),
            Stop::GreaterThan => (&self.greater, b'>'),
        };
        let counts = counted.get_or_init(|| counts(self.text, wanted));
        counts.get(from) == counts.get(to)
    }
}

fn counts(text: &[u8], wanted: u8) -> Vec<u32> {
    let mut seen = 0;
    let mut counts = Vec::with_capacity(text.len() + 1);
    counts.push(0);
    for byte in text {
        seen += u32::from(*byte == wanted);
        counts.push(seen);
    }
    counts
}

impl Row {
    /// Compiles every pattern of the row; a wrong one panics.
    #[cfg(test)]
    pub(super) fn compile(&self) {
        self.parts.iter().chain(&self.unless).for_each(|pattern| {
            pattern.get();
        });
    }

    /// True when the row occurs anywhere in the folded text.
    pub(super) fn matches(&self, text: &[u8], stops: &Stops<'_>) -> bool {
        let Some((first, rest)) = self.parts.split_first() else { return false };
        if rest.is_empty() {
            return match &self.unless {
                None => first.get().is_match(text),
                Some(unless) => {
                    spans(first, text).iter().any(|span| !unless.get().is_match(&text[span.start..]))
                }
            };
        }
        let mut reached = spans(first, text);
        for (part, gap) in rest.iter().zip(&self.gaps) {
            if reached.is_empty() {
                return false;
            }
            reached = self.step(&reached, &spans(part, text), *gap, stops);
        }
        !reached.is_empty()
    }

    /// The later spans that follow an earlier one closely enough. The nearest earlier one is the best for both the
    /// distance and the stop characters, so one pass suffices.
    fn step(&self, earlier: &[Span], later: &[Span], gap: usize, stops: &Stops<'_>) -> Vec<Span> {
        let mut next = 0;
        let mut kept = Vec::new();
        for span in later {
            while next < earlier.len() && earlier[next].end_first <= span.start_last {
                next += 1;
            }
            let Some(before) = next.checked_sub(1).map(|at| earlier[at]) else { continue };
            let start = span.start.max(before.end_first);
            let touches = start <= before.end;
            if touches || (start - before.end <= gap && stops.none_between(self.stop, before.end, start)) {
                kept.push(*span);
            }
        }
        kept
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1C..=0x20)
}

/// Every place where a part is found. The search goes on where white space or an edge at the end of a find could
/// open the next one.
fn spans(part: &Lazy<Regex>, text: &[u8]) -> Vec<Span> {
    let part = part.get();
    let grouped = part.captures_len() > 1;
    let mut found = Vec::new();
    let mut from = 0;
    while from <= text.len() {
        let (whole_end, start, end) = if grouped {
            let Some(groups) = part.captures_at(text, from) else { break };
            let whole = groups.get_match();
            let extent = groups.iter().skip(1).flatten().next().unwrap_or(whole);
            (whole.end(), extent.start(), extent.end())
        } else {
            let Some(whole) = part.find_at(text, from) else { break };
            (whole.end(), whole.start(), whole.end())
        };
        let lead = text[start..end].iter().take_while(|byte| is_space(**byte)).count();
        let tail = text[start..end].iter().rev().take_while(|byte| is_space(**byte)).count();
        let trimmed = end - tail;
        found.push(Span {
            start,
            start_last: start + lead.saturating_sub(1),
            end_first: if tail > 0 { trimmed + 1 } else { end },
            end,
        });
        let resume = if tail > 0 && whole_end == end { trimmed } else { whole_end.saturating_sub(1) };
        from = resume.max(start + 1);
    }
    found
}

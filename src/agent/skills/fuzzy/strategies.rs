//! The nine ways to find an old text.

use super::Span;
use super::lines::Lines;
use super::similarity::similar;
use super::typography::Plain;
use crate::agent::text::{is_space, strip};

/// Similarity of the middle of the only block with the right first and last line.
const ONLY_BLOCK_SHARE: f64 = 0.50;
/// Similarity of the middle when several blocks have them.
const SEVERAL_BLOCKS_SHARE: f64 = 0.70;
/// Similarity of each line of a block that is found by its lines.
const LINE_SHARE: f64 = 0.80;

/// How an old text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// As it stands.
    Exact,
    /// Lines without outer blanks.
    LineTrimmed,
    /// Runs of blanks and tabs as one blank.
    WhitespaceNormalized,
    /// Lines without leading blanks.
    IndentationFlexible,
    /// Written-out control characters as such.
    EscapeNormalized,
    /// First and last line without outer blanks.
    TrimmedBoundary,
    /// Typographic characters as ASCII.
    UnicodeNormalized,
    /// First and last line equal, the middle similar.
    BlockAnchor,
    /// Every line similar.
    ContextAware,
}

impl Strategy {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 9] = [
        Self::Exact,
        Self::LineTrimmed,
        Self::WhitespaceNormalized,
        Self::IndentationFlexible,
        Self::EscapeNormalized,
        Self::TrimmedBoundary,
        Self::UnicodeNormalized,
        Self::BlockAnchor,
        Self::ContextAware,
    ];

    /// The word for this strategy.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "line_trimmed",
            Self::WhitespaceNormalized => "whitespace_normalized",
            Self::IndentationFlexible => "indentation_flexible",
            Self::EscapeNormalized => "escape_normalized",
            Self::TrimmedBoundary => "trimmed_boundary",
            Self::UnicodeNormalized => "unicode_normalized",
            Self::BlockAnchor => "block_anchor",
            Self::ContextAware => "context_aware",
        }
    }

    /// True when a find is only similar to what was asked for.
    pub fn is_approximate(self) -> bool {
        matches!(self, Self::BlockAnchor | Self::ContextAware)
    }

    /// The places where the old text is found; two stand for any number unless all are asked for.
    pub(super) fn find(self, content: &str, old: &str, all: bool) -> Vec<Span> {
        match self {
            Self::Exact => exact(content, old),
            Self::LineTrimmed => trimmed_lines(content, old, strip, all),
            Self::WhitespaceNormalized => blanks_as_one(content, old),
            Self::IndentationFlexible => {
                trimmed_lines(content, old, |line| line.trim_start_matches(is_space), all)
            }
            Self::EscapeNormalized => {
                let control = old.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r");
                if control == old { Vec::new() } else { exact(content, &control) }
            }
            Self::TrimmedBoundary => trimmed_boundary(content, old),
            Self::UnicodeNormalized => plain_typography(content, old, all),
            Self::BlockAnchor => block_anchor(content, old),
            Self::ContextAware => similar_lines(content, old),
        }
    }
}

/// Occurrences that do not overlap.
fn exact(content: &str, old: &str) -> Vec<Span> {
    content.match_indices(old).map(|(at, found)| (at, at + found.len())).collect()
}

fn trimmed_lines(content: &str, old: &str, trim: fn(&str) -> &str, all: bool) -> Vec<Span> {
    let wanted: Vec<&str> = old.split('\n').map(trim).collect();
    Lines::of(content).equal_windows(trim, &wanted.join("\n"), all)
}

fn blanks_as_one(content: &str, old: &str) -> Vec<Span> {
    let (text, places) = squeeze(content);
    let (wanted, _) = squeeze(old);
    exact(&text, &wanted)
        .into_iter()
        .map(|(start, end)| {
            let first = places.partition_point(|(place, _, _)| *place <= start).saturating_sub(1);
            let last = places.partition_point(|(place, _, _)| *place < end).saturating_sub(1);
            (places[first].1, places[last].2)
        })
        .collect()
}

/// The text with runs of blanks as one blank; for each character its place there, and start and end in the original.
fn squeeze(text: &str) -> (String, Vec<(usize, usize, usize)>) {
    let mut squeezed = String::with_capacity(text.len());
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    let mut in_run = false;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let blank = matches!(character, ' ' | '\t');
        if blank && in_run {
            if let Some(run) = places.last_mut() {
                run.2 = end;
            }
            continue;
        }
        in_run = blank;
        places.push((squeezed.len(), at, end));
        squeezed.push(if blank { ' ' } else { character });
    }
    (squeezed, places)
}

fn trimmed_boundary(content: &str, old: &str) -> Vec<Span> {
    let wanted: Vec<&str> = old.split('\n').collect();
    let count = wanted.len();
    let (first, last) = (strip(wanted[0]), strip(wanted[count - 1]));
    let lines = Lines::of(content);
    (0..lines.windows(count))
        .filter(|at| {
            let window = &lines.texts[*at..*at + count];
            strip(window[0]) == first
                && strip(window[count - 1]) == last
                && (count < 3 || window[1..count - 1] == wanted[1..count - 1])
        })
        .map(|at| lines.span(at, count))
        .collect()
}

fn plain_typography(content: &str, old: &str, all: bool) -> Vec<Span> {
    let (plain, wanted) = (Plain::of(content), Plain::of(old));
    if plain.text == content && wanted.text == old {
        return Vec::new();
    }
    let mut spans = exact(&plain.text, &wanted.text);
    if spans.is_empty() {
        spans = trimmed_lines(&plain.text, &wanted.text, strip, all);
    }
    spans.into_iter().filter_map(|span| plain.original(span)).collect()
}

fn block_anchor(content: &str, old: &str) -> Vec<Span> {
    let (plain, wanted) = (Plain::of(content), Plain::of(old));
    let wanted: Vec<&str> = wanted.text.split('\n').collect();
    let count = wanted.len();
    if count < 2 {
        return Vec::new();
    }
    let (first, last) = (strip(wanted[0]), strip(wanted[count - 1]));
    let (lines, original) = (Lines::of(&plain.text), Lines::of(content));
    let candidates: Vec<usize> = (0..lines.windows(count))
        .filter(|at| strip(lines.texts[*at]) == first && strip(lines.texts[*at + count - 1]) == last)
        .collect();
    let share = if candidates.len() == 1 { ONLY_BLOCK_SHARE } else { SEVERAL_BLOCKS_SHARE };
    let middle = wanted[1..count - 1].join("\n");
    candidates
        .into_iter()
        .filter(|at| count == 2 || similar(&lines.texts[*at + 1..*at + count - 1].join("\n"), &middle, share))
        .map(|at| original.span(at, count))
        .collect()
}

fn similar_lines(content: &str, old: &str) -> Vec<Span> {
    let wanted: Vec<&str> = old.split('\n').map(strip).collect();
    let count = wanted.len();
    // A blank line in the middle may be anything.
    let checked: Vec<(usize, &str)> = wanted
        .into_iter()
        .enumerate()
        .filter(|(line, text)| !text.is_empty() || *line == 0 || *line == count - 1)
        .collect();
    let lines = Lines::of(content);
    (0..lines.windows(count))
        .filter(|at| {
            checked.iter().all(|(line, text)| similar(strip(lines.texts[at + line]), text, LINE_SHARE))
        })
        .map(|at| lines.span(at, count))
        .collect()
}

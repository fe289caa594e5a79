//! Windows of whole lines.

use super::Span;

/// A text cut at line feeds, with the place of each line.
pub(super) struct Lines<'a> {
    pub texts: Vec<&'a str>,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let texts: Vec<&str> = text.split('\n').collect();
        let mut at = 0;
        let starts = texts
            .iter()
            .map(|line| {
                let start = at;
                at += line.len() + 1;
                start
            })
            .collect();
        Self { texts, starts }
    }

    /// The place of `count` lines from line `first` on, the last line feed left out.
    pub(super) fn span(&self, first: usize, count: usize) -> Span {
        let last = first + count - 1;
        (self.starts[first], self.starts[last] + self.texts[last].len())
    }

    /// Number of windows of that many lines.
    pub(super) fn windows(&self, count: usize) -> usize {
        (self.texts.len() + 1).saturating_sub(count)
    }

    /// Windows whose lines, each normalized, are the lines of `wanted`. At most two unless all are asked for; with
    /// all, those that overlap an earlier one are left out.
    pub(super) fn equal_windows(&self, normalize: fn(&str) -> &str, wanted: &str, all: bool) -> Vec<Span> {
        let mut joined = String::from("\n");
        let mut places = Vec::with_capacity(self.texts.len());
        for line in &self.texts {
            places.push(joined.len() - 1);
            joined.push_str(normalize(line));
            joined.push('\n');
        }
        let needle = format!("\n{wanted}\n");
        let count = wanted.split('\n').count();
        let mut spans = Vec::new();
        let mut from = 0;
        while let Some(at) = joined.get(from..).and_then(|rest| rest.find(&needle)).map(|at| at + from) {
            let Ok(line) = places.binary_search(&at) else { break };
            spans.push(self.span(line, count));
            if all {
                from = at + needle.len() - 1;
            } else if spans.len() > 1 {
                break;
            } else {
                from = at + 1;
            }
        }
        spans
    }
}

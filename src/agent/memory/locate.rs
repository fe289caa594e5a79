//! Which entry an old text means.
//!
//! Equal entries first, then entries that contain the text, then (if so configured) entries that contain it once
//! quotes, dashes and blanks are folded. Letter case is never folded. Called by the mutations.

use std::collections::BTreeSet;

use crate::agent::text::{is_space, preview, strip, words};

/// Longest preview of a candidate, in characters.
const PREVIEW_CHARS: usize = 80;
/// Most entries that a failed search proposes.
const CLOSEST_MAX: usize = 3;

/// How an old text is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    pub equality_first: bool,
    pub tolerant: bool,
}

/// What the search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Located {
    /// Index of the entry.
    At(usize),
    /// Previews of the different texts that match.
    Ambiguous(Vec<String>),
    /// Nothing matches; the entries that share the most words with the old text.
    Nothing(Vec<String>),
}

impl Search {
    /// Looks for an old text among the entries.
    pub(super) fn locate(self, entries: &[String], old: &str) -> Located {
        let select = |test: &dyn Fn(&String) -> bool| -> Vec<usize> {
            (0..entries.len()).filter(|at| test(&entries[*at])).collect()
        };
        let mut hits = if self.equality_first { select(&|entry| entry == old) } else { Vec::new() };
        if hits.is_empty() {
            hits = select(&|entry| entry.contains(old));
        }
        if hits.is_empty() && self.tolerant {
            let wanted = fold(old);
            if wanted.chars().any(char::is_alphanumeric) {
                hits = select(&|entry| fold(entry).contains(&wanted));
            }
        }
        let Some(first) = hits.first() else {
            return Located::Nothing(if self.tolerant { closest(entries, old) } else { Vec::new() });
        };
        let mut texts: Vec<&String> = Vec::new();
        let mut seen = BTreeSet::new();
        for at in &hits {
            if seen.insert(&entries[*at]) {
                texts.push(&entries[*at]);
            }
        }
        if texts.len() > 1 {
            return Located::Ambiguous(texts.into_iter().map(|text| preview(text, PREVIEW_CHARS)).collect());
        }
        Located::At(*first)
    }
}

/// Folds what people retype differently: quotes, dashes, written-out line breaks, runs of blanks.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.replace("\\n", " ").chars() {
        match character {
            '"' | '`' | '\u{2018}'..='\u{201F}' => folded.push('\''),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => folded.push('-'),
            c if is_space(c) => {
                if !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            c => folded.push(c),
        }
    }
    strip(&folded).to_owned()
}

/// The entries that hold at least three tenths of the old text's different words, best first.
fn closest(entries: &[String], old: &str) -> Vec<String> {
    let fold_case = |text: &str| -> BTreeSet<String> {
        words(&text.to_lowercase().replace('ß', "ss")).map(str::to_owned).collect()
    };
    let wanted = fold_case(old);
    let mut ranked: Vec<(usize, &String)> =
        entries.iter().map(|entry| (fold_case(entry).intersection(&wanted).count(), entry)).collect();
    ranked.retain(|(shared, _)| *shared > 0 && shared * 10 >= wanted.len() * 3);
    ranked.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    ranked.into_iter().take(CLOSEST_MAX).map(|(_, entry)| entry.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_maps_quotes_dashes_and_blanks() {
        assert_eq!(fold(" \u{201c}a\u{201f}\u{2014}\u{a0}\n b\\nc "), "'a'- b c");
    }

    #[test]
    fn equal_texts_are_one_candidate() {
        let entries = vec!["xa".to_owned(), "xa".to_owned()];
        let search = Search { equality_first: true, tolerant: false };
        assert_eq!(search.locate(&entries, "x"), Located::At(0));
    }
}

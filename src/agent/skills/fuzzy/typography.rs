//! Typographic characters as ASCII, with the way back to the original places.

use super::Span;

/// A text in ASCII typography.
pub(super) struct Plain {
    pub text: String,
    /// For each original character: where it begins in `text` and in the original, in bytes.
    places: Vec<(usize, usize)>,
    original_len: usize,
}

/// What a typographic character is written as; `None` for all others.
fn ascii(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{201C}'..='\u{201F}' => "\"",
        '\u{2018}'..='\u{201B}' => "'",
        '\u{2014}' => "--",
        '\u{2013}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => " ",
        _ => return None,
    })
}

impl Plain {
    pub(super) fn of(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut places = Vec::new();
        for (at, character) in original.char_indices() {
            places.push((text.len(), at));
            match ascii(character) {
                Some(plain) => text.push_str(plain),
                None => text.push(character),
            }
        }
        Self { text, places, original_len: original.len() }
    }

    /// Where each original character begins in the plain text, and the end of it.
    pub(super) fn starts(&self) -> Vec<usize> {
        self.places.iter().map(|(plain, _)| *plain).chain([self.text.len()]).collect()
    }

    /// The original place of a place in the plain text; `None` when it begins inside an original character.
    pub(super) fn original(&self, (start, end): Span) -> Option<Span> {
        let first = self.places.binary_search_by_key(&start, |(plain, _)| *plain).ok()?;
        let after = self.places.partition_point(|(plain, _)| *plain < end);
        let end = self.places.get(after).map_or(self.original_len, |(_, original)| *original);
        Some((self.places[first].1, end))
    }

    /// The original characters that lie wholly inside a range of the plain text, the others as plain text.
    pub(super) fn write_original(&self, original: &str, (start, end): Span, into: &mut String) {
        let mut at = start;
        while at < end {
            let index = self.places.partition_point(|(plain, _)| *plain <= at).saturating_sub(1);
            let Some((plain, place)) = self.places.get(index) else { break };
            let (next_plain, next_place) =
                self.places.get(index + 1).map_or((self.text.len(), self.original_len), |next| *next);
            if *plain >= start && next_plain <= end {
                into.push_str(&original[*place..next_place]);
                at = next_plain;
            } else {
                let stop = next_plain.min(end);
                into.push_str(&self.text[at..stop]);
                at = stop;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_to_the_original() {
        let plain = Plain::of("a—b…");
        assert_eq!(plain.text, "a--b...");
        assert_eq!(plain.original((1, 3)), Some((1, 4)));
        assert_eq!(plain.original((2, 3)), None);
        let mut text = String::new();
        plain.write_original("a—b…", (0, 2), &mut text);
        assert_eq!(text, "a-");
    }
}

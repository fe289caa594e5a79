//! The rule of the third full-text index: runs of Chinese, Japanese and Korean are cut into overlapping pairs.
//!
//! unicode61 makes one token of a whole sentence of Han; here each token is cut further. Called by the tokenizer for
//! every token of every indexed text and of every query, so a token without such a character must cost next to
//! nothing. Never: folding or splitting at punctuation, which unicode61 has done before.

use std::ops::Range;

/// True for a character that the third index cuts into pairs (the reference's native tokenizer).
///
/// The query side asks another question, see [`crate::store::search::query::is_cjk`].
pub fn is_paired(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x3040..=0x30FF | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7A3 | 0xD7B0..=0xD7FF | 0xF900..=0xFAFF
        | 0x20000..=0x2FA1F)
}

/// A token and the bytes of the text that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The token.
    pub token: &'a str,
    /// Its place in the text, in bytes.
    pub place: Range<usize>,
}

/// Cuts one folded token; `source` is the text that it came from, `start` the place of that text in bytes.
///
/// Runs of other characters are one piece each; a run of n ≥ 2 paired characters gives its n − 1 pairs, a single one
/// itself. Folding may shorten the Latin part of a token but never touches a paired character, so the n-th one of the
/// token is the n-th one of the source: that gives every piece its place.
pub fn cut<'a>(token: &'a str, source: &str, start: usize, mut emit: impl FnMut(Piece<'a>) -> bool) {
    let whole = || Piece { token, place: start..start + source.len() };
    if token.is_ascii() {
        emit(whole());
        return;
    }
    let of_token: Vec<Range<usize>> = paired(token).collect();
    let of_source: Vec<Range<usize>> = paired(source).collect();
    if of_token.is_empty() || of_token.len() != of_source.len() {
        emit(whole());
        return;
    }
    let place = |from: usize, to: usize| start + from..start + to;
    let mut at = (0, 0);
    let mut index = 0;
    while index < of_token.len() {
        let (first, shown) = (&of_token[index], &of_source[index]);
        if at.0 < first.start
            && !emit(Piece { token: &token[at.0..first.start], place: place(at.1, shown.start) })
        {
            return;
        }
        let mut last = index;
        while last + 1 < of_token.len() && of_token[last + 1].start == of_token[last].end {
            last += 1;
        }
        for pair in index..last.max(index + 1) {
            let to = (pair + 1).min(last);
            let piece = Piece {
                token: &token[of_token[pair].start..of_token[to].end],
                place: place(of_source[pair].start, of_source[to].end),
            };
            if !emit(piece) {
                return;
            }
        }
        at = (of_token[last].end, of_source[last].end);
        index = last + 1;
    }
    if at.0 < token.len() {
        emit(Piece { token: &token[at.0..], place: place(at.1, source.len()) });
    }
}

/// The places of the paired characters of a text, in bytes.
fn paired(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.char_indices().filter(|(_, c)| is_paired(*c)).map(|(at, c)| at..at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(token: &str, source: &str) -> Vec<(String, Range<usize>)> {
        let mut found = Vec::new();
        cut(token, source, 10, |piece| {
            found.push((piece.token.to_owned(), piece.place));
            true
        });
        found
    }

    #[test]
    fn a_run_becomes_its_pairs_and_a_lone_character_itself() {
        assert_eq!(pieces("你", "你"), [("你".to_owned(), 10..13)]);
        assert_eq!(pieces("你好吗", "你好吗"), [("你好".to_owned(), 10..16), ("好吗".to_owned(), 13..19)]);
        let tokens: Vec<String> = pieces("a你b好吗c", "a你b好吗c").into_iter().map(|p| p.0).collect();
        assert_eq!(tokens, ["a", "你", "b", "好吗", "c"]);
    }

    #[test]
    fn places_are_those_of_the_text_even_where_folding_shortened_it() {
        let source = "Cafe\u{301}你好";
        assert_eq!(pieces("cafe你好", source), [("cafe".to_owned(), 10..16), ("你好".to_owned(), 16..22)]);
    }
}

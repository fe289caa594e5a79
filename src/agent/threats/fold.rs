//! The text as the patterns read it: one byte for one character.
//!
//! Every key word of the table is ASCII, and of all other characters only their class matters. So the folded text
//! keeps ASCII, writes [`WORD`] for any other letter or number, a blank for any other white space and [`OTHER`]
//! for the rest. Distances in bytes are then distances in characters, and the pattern engine needs no Unicode tables.
//! Called by the scanner only. Never: a fold that turns one character into several.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization as _;

use crate::agent::text::is_word;

/// Stands for a letter or number outside ASCII.
pub(super) const WORD: u8 = 0xFF;
/// Stands for any other character outside ASCII.
pub(super) const OTHER: u8 = 0xFE;

/// Folds a text that has been cut to the cap.
pub(super) fn fold(text: &str, hardened: bool) -> Vec<u8> {
    if text.is_ascii() && !hardened {
        return text.as_bytes().to_vec();
    }
    let mut folded = Vec::with_capacity(text.len());
    if !hardened {
        folded.extend(text.nfkc().map(class));
        return folded;
    }
    // Differs: what a reader does not see is not read, and what looks like a Latin letter is one.
    let mut push = |byte: u8| {
        if byte.is_ascii_whitespace() && folded.last() == Some(&b',') {
            folded.pop();
        }
        folded.push(byte);
    };
    if text.is_ascii() {
        text.bytes().for_each(push);
    } else {
        text.nfkd().filter(|c| !is_unseen(*c)).for_each(|character| push(class(look_alike(character))));
    }
    folded
}

fn class(character: char) -> u8 {
    match character {
        // The reference's case folding takes both Turkish forms for an `i`.
        '\u{130}' | '\u{131}' => b'i',
        c if c.is_ascii() => u8::try_from(c).unwrap_or(OTHER),
        c if c.is_whitespace() => b' ',
        c if is_word(c) => WORD,
        _ => OTHER,
    }
}

fn is_unseen(character: char) -> bool {
    matches!(
        get_general_category(character),
        GeneralCategory::Format | GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
    )
}

/// The Latin letter or ASCII sign that a character of another script is drawn like.
fn look_alike(character: char) -> char {
    const PAIRS: &[(char, char)] = &[
        ('а', 'a'),
        ('с', 'c'),
        ('ԁ', 'd'),
        ('е', 'e'),
        ('һ', 'h'),
        ('і', 'i'),
        ('ј', 'j'),
        ('ӏ', 'l'),
        ('о', 'o'),
        ('р', 'p'),
        ('ԛ', 'q'),
        ('ѕ', 's'),
        ('ԝ', 'w'),
        ('х', 'x'),
        ('у', 'y'),
        ('А', 'a'),
        ('В', 'b'),
        ('С', 'c'),
        ('Е', 'e'),
        ('Н', 'h'),
        ('І', 'i'),
        ('К', 'k'),
        ('М', 'm'),
        ('О', 'o'),
        ('Р', 'p'),
        ('Ѕ', 's'),
        ('Т', 't'),
        ('Х', 'x'),
        ('У', 'y'),
        ('α', 'a'),
        ('ο', 'o'),
        ('ρ', 'p'),
        ('υ', 'u'),
        ('ι', 'i'),
        ('ν', 'v'),
        ('κ', 'k'),
        ('’', '\''),
        ('‘', '\''),
        ('ʼ', '\''),
        ('“', '"'),
        ('”', '"'),
        ('‐', '-'),
        ('‑', '-'),
    ];
    PAIRS.iter().find(|(from, _)| *from == character).map_or(character, |(_, to)| *to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_of_the_normal_form_is_one_byte() {
        assert_eq!(fold("aé中\u{85}·ı", false), [b'a', WORD, WORD, b' ', OTHER, b'i']);
        assert_eq!(fold("ﬆ", false), b"st");
    }

    #[test]
    fn hardened_reading_skips_what_is_not_seen() {
        assert_eq!(fold("ig\u{200b}nоre a\u{301}, b", true), b"ignore a b");
    }
}

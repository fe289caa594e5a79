//! Text rules that several mechanisms share: what counts as white space, as a word, and how texts are shortened.
//!
//! The reference takes U+001C to U+001F for white space and letters and numbers of any script for word characters;
//! Rust's own notions differ slightly. Never: anything that depends on a locale.

use unicode_general_category::{GeneralCategory, get_general_category};

/// White space as the reference knows it.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1C}'..='\u{1F}')
}

/// The text without white space at both ends.
///
/// ```
/// use hermes_lab::agent::text::strip;
/// assert_eq!(strip("\u{1f}likes tea\u{3000}"), "likes tea");
/// assert_eq!(strip("\u{200b}x"), "\u{200b}x");
/// ```
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Letters of any script, numbers and the underscore; marks and joiners are none.
pub fn is_word(character: char) -> bool {
    use GeneralCategory::{
        DecimalNumber, LetterNumber, LowercaseLetter, ModifierLetter, OtherLetter, OtherNumber,
        TitlecaseLetter, UppercaseLetter,
    };
    character == '_'
        || matches!(
            get_general_category(character),
            UppercaseLetter
                | LowercaseLetter
                | TitlecaseLetter
                | ModifierLetter
                | OtherLetter
                | DecimalNumber
                | LetterNumber
                | OtherNumber
        )
}

/// The runs of word characters in a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character| !is_word(character)).filter(|word| !word.is_empty())
}

/// Length in characters.
pub fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The first `limit` characters.
pub fn head(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

/// The text, or its first `limit` characters and three dots.
pub fn preview(text: &str, limit: usize) -> String {
    let kept = head(text, limit);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}...") }
}

/// A number with a comma between groups of three digits.
///
/// ```
/// assert_eq!(hermes_lab::agent::text::thousands(1_234_567), "1,234,567");
/// ```
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_marks_only_what_it_cut() {
        assert_eq!(preview("技技", 2), "技技");
        assert_eq!(preview("技技技", 2), "技技...");
    }

    #[test]
    fn words_end_at_joiners_and_marks() {
        assert_eq!(words("don't q\u{301}a_1 中文").collect::<Vec<_>>(), ["don", "t", "q", "a_1", "中文"]);
    }
}

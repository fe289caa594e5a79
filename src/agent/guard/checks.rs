//! What a pattern cannot say by itself: context that code looks at after a match.
//!
//! Each check gets the rule's pattern and the text and answers whether the rule holds. All are linear.

use regex::Regex;

/// A check: the rule's pattern and the text.
pub type Check = fn(&Regex, &str) -> bool;

/// The check of that name in `rules.toml`.
pub fn named(name: &str) -> Option<Check> {
    match name {
        "no_where" => Some(no_where),
        "invisible" => Some(invisible),
        "names_agent" => Some(names_agent),
        _ => None,
    }
}

/// A match that no `WHERE` follows on its line.
fn no_where(pattern: &Regex, text: &str) -> bool {
    let mut line_end = 0;
    let mut last_where = None;
    pattern.find_iter(text).any(|found| {
        if found.end() > line_end || line_end == 0 {
            line_end = text[found.end()..].find('\n').map_or(text.len(), |length| found.end() + length);
            last_where = last_word(&text[found.end()..line_end], "where").map(|at| found.end() + at);
        }
        last_where.is_none_or(|at| at < found.end())
    })
}

/// Where a word stands last in a line, in any case.
fn last_word(line: &str, word: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let inside = |ch: Option<char>| ch.is_some_and(|ch| ch.is_alphanumeric() || ch == '_');
    lower.rmatch_indices(word).map(|(at, _)| at).find(|at| {
        !inside(lower[..*at].chars().next_back()) && !inside(lower[at + word.len()..].chars().next())
    })
}

/// An invisible character; a joiner between two emoji makes one picture of them and is none.
fn invisible(pattern: &Regex, text: &str) -> bool {
    pattern.find_iter(text).any(|found| {
        found.as_str() != "\u{200D}"
            || !pictorial(text[..found.start()].chars().rev().find(|ch| *ch != '\u{FE0F}'))
            || !pictorial(text[found.end()..].chars().next())
    })
}

fn pictorial(ch: Option<char>) -> bool {
    ch.is_some_and(|ch| {
        matches!(ch, '\u{1F000}'..='\u{1FAFF}' | '\u{2190}'..='\u{21FF}' | '\u{2300}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}')
    })
}

fn names_agent(pattern: &Regex, text: &str) -> bool {
    pattern.is_match(text) && text.to_lowercase().contains("hermes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_counts_only_behind_the_delete_and_on_its_line() {
        let pattern = Regex::new("(?i)delete from").unwrap();
        assert!(!no_where(&pattern, "delete from t where a"));
        assert!(no_where(&pattern, "where a; delete from t\nwhere b"));
        assert!(no_where(&pattern, "delete from a where x; delete from b"));
    }

    #[test]
    fn a_joiner_between_letters_is_invisible() {
        let pattern = Regex::new("\u{200D}").unwrap();
        assert!(invisible(&pattern, "a\u{200D}b"));
        assert!(!invisible(&pattern, "❤\u{FE0F}\u{200D}🔥"));
    }
}

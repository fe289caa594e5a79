//! What a query looks like: sanitising it for FTS5, and the questions that decide its route.
//!
//! Pure functions over text. White space is everywhere what Unicode calls so and U+001C to U+001F; characters are code
//! points.

use unicode_general_category::{GeneralCategory, get_general_category};

/// White space as the reference splits and trims at.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// The text without white space at its ends.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// True for a character that sends a query to the substring indexes (`Hermes hermes_state_search.py:75`).
///
/// The third index pairs other ranges, see [`crate::store::bigram::is_paired`].
pub fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x3000..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0x20000..=0x2A6DF)
}

/// True when some character is CJK.
pub fn contains_cjk(text: &str) -> bool {
    text.chars().any(is_cjk)
}

/// Number of CJK characters.
pub fn cjk_chars(text: &str) -> usize {
    text.chars().filter(|c| is_cjk(*c)).count()
}

/// True for the words that combine terms, in any case.
pub fn is_operator(token: &str) -> bool {
    ["AND", "OR", "NOT"].iter().any(|operator| token.eq_ignore_ascii_case(operator))
}

fn tokens(query: &str) -> impl Iterator<Item = &str> {
    query.split(is_space).filter(|token| !token.is_empty())
}

/// The tokens between white space that are no operators.
pub fn plain_tokens(query: &str) -> impl Iterator<Item = &str> {
    tokens(query).filter(|token| !is_operator(token))
}

/// Every token in quotes, operators as they are.
///
/// ```
/// use hermes_lab::store::search::query::quote_tokens;
/// assert_eq!(quote_tokens("a or \"b"), "\"a\" or \"\"\"b\"");
/// ```
pub fn quote_tokens(query: &str) -> String {
    let quoted = tokens(query).map(|token| {
        if is_operator(token) { token.to_owned() } else { format!("\"{}\"", token.replace('"', "\"\"")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Every token without stars at its end; a token of nothing but stars stays.
pub fn strip_stars(query: &str) -> String {
    if !query.contains('*') {
        return query.to_owned();
    }
    let stripped = tokens(query).map(|token| {
        let bare = token.trim_end_matches('*');
        if is_operator(token) || bare.is_empty() { token } else { bare }
    });
    stripped.collect::<Vec<_>>().join(" ")
}

/// True when some longest run of CJK characters is a single one: the pair index cannot find it inside longer runs.
pub fn has_lone_cjk(query: &str) -> bool {
    let mut run = 0_usize;
    for c in query.chars() {
        if is_cjk(c) {
            run += 1;
        } else if std::mem::take(&mut run) == 1 {
            return true;
        }
    }
    run == 1
}

/// True when some token has CJK characters, but fewer than three.
pub fn has_short_cjk(query: &str) -> bool {
    plain_tokens(query).map(cjk_chars).any(|count| (1..3).contains(&count))
}

/// True when the trigram index can serve a CJK query.
pub fn suits_trigram(raw: &str) -> bool {
    cjk_chars(raw) >= 3 && !has_short_cjk(raw)
}

/// True when every term has the three characters that a trigram needs.
pub fn has_long_tokens(query: &str) -> bool {
    let mut tokens = plain_tokens(trim(query.trim_matches('"'))).peekable();
    tokens.peek().is_some() && tokens.all(|token| token.chars().count() >= 3)
}

/// Units of a query: phrases in quotes, or runs without white space.
pub(super) fn units(query: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let mut rest = query;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return units;
        }
        let phrase = rest.strip_prefix('"').and_then(|inner| inner.find('"')).filter(|length| *length > 0);
        let end = match phrase {
            Some(length) => length + 2,
            None => rest.find(is_space).unwrap_or(rest.len()),
        };
        units.push(&rest[..end]);
        rest = &rest[end..];
    }
}

/// The query with any of its units enough; `None` when it says OR or NOT itself, or has fewer than two units.
pub fn relax(query: &str) -> Option<String> {
    let units = units(query);
    let says = |word: &str| units.iter().any(|unit| unit.eq_ignore_ascii_case(word));
    if says("OR") || says("NOT") {
        return None;
    }
    let kept: Vec<&str> = units.into_iter().filter(|unit| !unit.eq_ignore_ascii_case("AND")).collect();
    (kept.len() >= 2).then(|| kept.join(" OR "))
}

/// Characters that FTS5 reads as syntax; `%` is spared for the substring scan.
const SPECIAL: &str = "+{}():\"^@/#&|~[]<>,;!?$=\\'";

/// A query that FTS5 can read (`Hermes hermes_state_search.py:818`).
///
/// ```
/// use hermes_lab::store::search::query::sanitize;
/// assert_eq!(sanitize("fix: chat-send AND \"a b\" OR", 2_048), "fix  \"chat-send\" AND \"a b\"");
/// ```
pub fn sanitize(query: &str, chars_max: u64) -> String {
    let most = usize::try_from(chars_max).unwrap_or(usize::MAX);
    let cut = query.char_indices().nth(most).map_or(query, |(end, _)| &query[..end]);
    let (held, phrases) = hold_phrases(cut);
    let keep_percent = contains_cjk(&held);
    let blanked: String = held
        .chars()
        .map(|c| if SPECIAL.contains(c) || (c == '%' && !keep_percent) { ' ' } else { c })
        .collect();
    let starred = drop_leading_stars(&blanked);
    let joined = quote_joined(drop_outer_operators(&starred));
    let restored = phrases
        .iter()
        .enumerate()
        .fold(joined, |text, (index, phrase)| text.replace(&placeholder(index), phrase));
    trim(&restored).to_owned()
}

/// A phrase is held as a text that a query can contain as well; the reference then puts the phrase there, too.
fn placeholder(index: usize) -> String {
    format!("\0Q{index}\0")
}

fn hold_phrases(query: &str) -> (String, Vec<&str>) {
    let mut held = String::with_capacity(query.len());
    let mut phrases = Vec::new();
    let mut rest = query;
    while let Some(open) = rest.find('"') {
        held.push_str(&rest[..open]);
        let Some(length) = rest[open + 1..].find('"') else {
            held.push(' ');
            rest = &rest[open + 1..];
            continue;
        };
        let end = open + length + 2;
        held.push_str(&placeholder(phrases.len()));
        phrases.push(&rest[open..end]);
        rest = &rest[end..];
    }
    held.push_str(rest);
    (held, phrases)
}

/// Runs of stars become one; a star that nothing precedes goes.
fn drop_leading_stars(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        if c == '*' && before.is_none_or(|b| b == '*' || is_space(b)) {
            // A dropped star leaves what stood before it; the next star of the run is dropped by the same token.
            continue;
        }
        kept.push(c);
        before = Some(c);
    }
    kept
}

fn drop_outer_operators(text: &str) -> &str {
    let text = trim(text);
    let first = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let text = if is_operator(&text[..first]) { trim(&text[first..]) } else { text };
    match text.rfind(is_space) {
        Some(at) if is_operator(trim(&text[at..])) => trim(&text[..at]),
        _ => text,
    }
}

fn is_word(c: char) -> bool {
    use GeneralCategory as G;
    c == '_'
        || matches!(
            get_general_category(c),
            G::UppercaseLetter
                | G::LowercaseLetter
                | G::TitlecaseLetter
                | G::ModifierLetter
                | G::OtherLetter
                | G::DecimalNumber
                | G::LetterNumber
                | G::OtherNumber
        )
}

/// Words joined by single `.`, `_` or `-` go into quotes, so that FTS5 reads them as phrases.
fn quote_joined(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        quoted.push_str(&rest[..start]);
        rest = &rest[start..];
        let first = word_end(rest);
        let mut end = first;
        while rest[end..].starts_with(['.', '-']) {
            let next = word_end(&rest[end + 1..]);
            if next == 0 {
                break;
            }
            end += 1 + next;
        }
        if end > first || has_inner_underscore(&rest[..first]) {
            quoted.push('"');
            quoted.push_str(&rest[..end]);
            quoted.push('"');
        } else {
            quoted.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    quoted.push_str(rest);
    quoted
}

fn word_end(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// An underscore with a word character on both sides joins; it is a word character itself.
fn has_inner_underscore(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next();
    chars.next_back();
    chars.any(|c| c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_cut_at_the_limit_and_not_before() {
        assert_eq!(sanitize(&"好".repeat(5), 5).chars().count(), 5);
        assert_eq!(sanitize(&"好".repeat(6), 5).chars().count(), 5);
    }

    #[test]
    fn underscores_join_only_between_word_characters() {
        assert_eq!(sanitize("a__ _a a_ __a a.b. -c", 99), "\"a__\" _a a_ \"__a\" \"a.b\". -c");
    }

    #[test]
    fn stars_that_nothing_precedes_go() {
        assert_eq!(sanitize("** *a b** c*d*", 99), "a b* c*d*");
    }

    #[test]
    fn a_query_of_operators_is_empty() {
        assert_eq!(sanitize(" and ", 99), "");
        assert_eq!(sanitize("OR OR a", 99), "OR a");
    }
}

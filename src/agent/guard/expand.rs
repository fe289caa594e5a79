//! What the shell would make of a word, as far as text alone can say.
//!
//! Quotes, escapes, `$'…'`, literal variables, defaults, `$IFS` and echoed texts are resolved. What cannot be known
//! stays as it is written. Used by the hardened reading only; the default reading has its own, observed rules.

use std::collections::BTreeMap;

use super::words::deobfuscate;

/// Stands for a blank or an operator that was quoted: part of a word, not between words.
pub(super) const INSIDE: char = '·';

/// A word in two forms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expanded {
    /// The text that the program would be given; blanks that split words are blanks.
    pub plain: String,
    /// The same, with quoted blanks and operators replaced, so that rules cannot mistake data for words.
    pub shown: String,
}

impl Expanded {
    fn push(&mut self, ch: char, quoted: bool) {
        self.plain.push(ch);
        let special = ch.is_whitespace() || matches!(ch, ';' | '|' | '&' | '<' | '>' | '\'' | '"' | '`');
        self.shown.push(if quoted && special { INSIDE } else { ch });
    }

    fn push_all(&mut self, text: &str, quoted: bool) {
        for ch in text.chars() {
            self.push(ch, quoted);
        }
    }
}

/// Expands one word with the variables that were given literal values before it.
pub(super) fn expand(word: &str, variables: &BTreeMap<String, String>) -> Expanded {
    let mut out = Expanded::default();
    let mut rest = word;
    let mut double = false;
    while let Some(ch) = rest.chars().next() {
        let tail = &rest[ch.len_utf8()..];
        rest = match ch {
            '\'' if !double => {
                let (inside, behind) = tail.split_once('\'').unwrap_or((tail, ""));
                out.push_all(inside, true);
                behind
            }
            '"' => {
                double = !double;
                tail
            }
            '\\' => {
                let next = tail.chars().next();
                if let Some(next) = next.filter(|next| *next != '\n') {
                    if double && !matches!(next, '"' | '\\' | '$' | '`') {
                        out.push('\\', true);
                    }
                    out.push(next, true);
                }
                &tail[next.map_or(0, char::len_utf8)..]
            }
            '$' => dollar(tail, double, variables, &mut out),
            '`' => substitution(rest, '`', &mut out).unwrap_or_else(|| {
                out.push('`', false);
                tail
            }),
            _ => {
                out.push(ch, double);
                tail
            }
        };
    }
    out
}

/// Expands what stands behind a `$` and answers what is left.
fn dollar<'a>(
    tail: &'a str,
    double: bool,
    variables: &BTreeMap<String, String>,
    out: &mut Expanded,
) -> &'a str {
    if let Some(body) = tail.strip_prefix('\'').filter(|_| !double) {
        return ansi_c(body, out);
    }
    if tail.starts_with('(') {
        // The dollar belongs to the substitution; one byte back is that dollar.
        let Some(rest) = parenthesised(tail, out) else {
            out.push('$', false);
            return tail;
        };
        return rest;
    }
    if let Some(body) = tail.strip_prefix('{')
        && let Some((inside, behind)) = body.split_once('}')
    {
        let name_end = inside.find(|ch: char| !is_name(ch)).unwrap_or(inside.len());
        let (name, operation) = inside.split_at(name_end);
        let known = value_of(name, variables);
        let literal = deobfuscate(&format!("${{{inside}}}"));
        match known {
            Some(value) => out.push_all(&value, double),
            None if !operation.is_empty() && !literal.starts_with('$') => out.push_all(&literal, double),
            None => out.push_all(&format!("${{{inside}}}"), false),
        }
        return behind;
    }
    let name_end = tail.find(|ch: char| !is_name(ch)).unwrap_or(tail.len());
    let (name, behind) = tail.split_at(name_end);
    match value_of(name, variables) {
        Some(value) if !name.is_empty() => out.push_all(&value, double),
        _ => out.push_all(&format!("${name}"), false),
    }
    behind
}

fn value_of(name: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    if name == "IFS" { Some(" ".to_owned()) } else { variables.get(name).cloned() }
}

fn is_name(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || ch == '_'
}

/// `(…)` behind a dollar: what it echoes, or the text as it is with its blanks made part of the word.
fn parenthesised<'a>(tail: &'a str, out: &mut Expanded) -> Option<&'a str> {
    let mut depth = 0usize;
    let end = tail.char_indices().find_map(|(at, ch)| {
        match ch {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })?;
    put_substitution(&format!("${}", &tail[..end]), out);
    Some(&tail[end..])
}

fn substitution<'a>(rest: &'a str, mark: char, out: &mut Expanded) -> Option<&'a str> {
    let end = rest[1..].find(mark)? + 2;
    put_substitution(&rest[..end], out);
    Some(&rest[end..])
}

fn put_substitution(written: &str, out: &mut Expanded) {
    let echoed = deobfuscate(written);
    if echoed.starts_with(['$', '`']) {
        for ch in written.chars() {
            out.plain.push(ch);
            out.shown.push(if ch.is_whitespace() || matches!(ch, ';' | '|' | '&' | '\'' | '"') {
                INSIDE
            } else {
                ch
            });
        }
    } else {
        out.push_all(&echoed, false);
    }
}

/// The body of `$'…'` with its escapes; answers what is left.
fn ansi_c<'a>(body: &'a str, out: &mut Expanded) -> &'a str {
    let mut chars = body.char_indices().peekable();
    while let Some((at, ch)) = chars.next() {
        if ch == '\'' {
            return &body[at + 1..];
        }
        if ch != '\\' {
            out.push(ch, true);
            continue;
        }
        let Some((_, kind)) = chars.next() else { break };
        let mut number = |radix: u32, most: usize, first: Option<u32>| {
            let mut value = first;
            let mut left = most;
            while left > 0
                && let Some(digit) = chars.peek().and_then(|(_, ch)| ch.to_digit(radix))
            {
                value = Some(value.unwrap_or(0) * radix + digit);
                chars.next();
                left -= 1;
            }
            value.and_then(char::from_u32)
        };
        let decoded = match kind {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\u{7}'),
            'e' | 'E' => Some('\u{1b}'),
            'x' => number(16, 2, None),
            'u' => number(16, 4, None),
            'U' => number(16, 8, None),
            '0'..='7' => number(8, 2, kind.to_digit(8)),
            other => Some(other),
        };
        if let Some(decoded) = decoded {
            out.push(decoded, true);
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(word: &str) -> String {
        let variables = BTreeMap::from([("a".to_owned(), "rm".to_owned())]);
        expand(word, &variables).shown
    }

    #[test]
    fn disguises_of_one_word_all_come_off() {
        for word in [
            "$'\\x72m'",
            "$'\\162m'",
            "${a}",
            "\"$a\"",
            "r''m",
            "\\rm",
            "$(echo rm)",
            "${q:-rm}",
            "`printf rm`",
        ] {
            assert_eq!(shown(word), "rm", "{word}");
        }
    }

    #[test]
    fn quoted_blanks_do_not_split() {
        assert_eq!(shown("'rm -rf /'"), "rm·-rf·/");
        assert_eq!(shown("rm${IFS}-rf"), "rm -rf");
        assert_eq!(shown("$(pgrep x)$unknown"), "$(pgrep·x)$unknown");
    }

    #[test]
    fn broken_words_are_survived() {
        for word in ["$'", "${", "$(", "`", "$'\\", "'", "\"", "\\", "$'\\U99999999'"] {
            expand(word, &BTreeMap::new());
        }
    }
}

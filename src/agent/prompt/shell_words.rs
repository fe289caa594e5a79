//! Words of a shell command, as far as finding directories needs them.
//!
//! Quotes and backslashes are understood, nothing is expanded. Never used to judge a command.

/// The words of a command by shell rules; `None` when a quote is not closed.
pub fn split(command: &str) -> Option<Vec<String>> {
    words(command, false).map(|words| words.into_iter().filter_map(Word::text).collect())
}

/// A word, or a sign that separates commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// A word without its quotes.
    Text(String),
    /// A separator: `;`, `&`, `|`, a parenthesis, a line end.
    Break,
}

impl Word {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Break => None,
        }
    }
}

/// Words and separators of a command; `None` when a quote is not closed.
pub fn segments(command: &str) -> Option<Vec<Word>> {
    words(command, true)
}

fn words(command: &str, breaks: bool) -> Option<Vec<Word>> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => text.push(c),
                    }
                }
            }
            '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => text.push(c),
                            c => text.extend(['\\', c]),
                        },
                        c => text.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            ';' | '&' | '|' | '(' | ')' | '\n' | '{' | '}' if breaks => {
                found.extend(word.take().map(Word::Text));
                found.push(Word::Break);
            }
            c if c.is_whitespace() => found.extend(word.take().map(Word::Text)),
            c => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word.map(Word::Text));
    Some(found)
}

/// Operands of `cd` and `pushd` at the start of a segment; options before them are skipped.
pub fn changed_directories(command: &str) -> Vec<String> {
    let Some(words) = segments(command) else { return Vec::new() };
    let mut found = Vec::new();
    for segment in words.split(|word| *word == Word::Break) {
        let mut texts = segment.iter().filter_map(|word| match word {
            Word::Text(text) => Some(text.as_str()),
            Word::Break => None,
        });
        if !matches!(texts.next(), Some("cd" | "pushd")) {
            continue;
        }
        let operand = texts.find(|text| !text.starts_with('-'));
        found.extend(operand.filter(|text| !text.is_empty()).map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_quote_cannot_be_split() {
        assert_eq!(split("a 'b"), None);
        assert_eq!(split("a \"b\\\"c\" d\\ e").unwrap(), ["a", "b\"c", "d e"]);
    }

    #[test]
    fn directories_are_changed_only_at_the_start_of_a_segment() {
        assert_eq!(changed_directories("cd a && echo cd b; (pushd c) | cd -P 'd e'"), ["a", "c", "d e"]);
        assert!(changed_directories("cd").is_empty());
    }
}

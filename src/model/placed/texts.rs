//! Which turn a user's words belong to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;

/// Answers that are remembered; the older half goes when there are more.
const REMEMBERED: usize = 1 << 14;

/// The words of the turns.
#[derive(Debug, Default)]
pub(super) struct Texts {
    exact: BTreeMap<String, Vec<usize>>,
    known: IndexMap<u128, Vec<usize>>,
    /// What messages and system prompts are about, by their hashes: long ones come again and again.
    about: IndexMap<u128, About>,
}

/// What a text is about, as far as lanes are told by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct About {
    /// A turn's words and nothing else.
    pub(super) exact: bool,
    /// A request for a title.
    pub(super) title: bool,
    /// Something about a summary.
    pub(super) speaks_of_summary: bool,
    /// A request for a summary.
    pub(super) asks_for_summary: bool,
}

impl Texts {
    pub(super) fn add(&mut self, say: &str, turn: usize) {
        self.exact.entry(squeezed(say).into_owned()).or_default().push(turn);
    }

    /// True when these words are a turn's words and nothing else.
    pub(super) fn is_exact(&self, text: &str) -> bool {
        self.exact.contains_key(&*squeezed(text))
    }

    /// What a text is about; it is looked at once.
    pub(super) fn about(&mut self, key: u128, text: impl FnOnce() -> String) -> About {
        if let Some(about) = self.about.get(&key) {
            return *about;
        }
        let text = text();
        let about = About {
            exact: self.is_exact(&text),
            title: asks_for_title(&text),
            speaks_of_summary: speaks_of_summary(&text),
            asks_for_summary: asks_for_summary(&text),
        };
        if self.about.len() >= REMEMBERED {
            self.about.drain(..REMEMBERED / 2);
        }
        self.about.insert(key, about);
        about
    }

    /// Turns whose words these are, or that are contained in them; the longest words win.
    pub(super) fn find(&mut self, key: u128, text: impl FnOnce() -> String) -> Vec<usize> {
        if let Some(found) = self.known.get(&key) {
            return found.clone();
        }
        let text = text();
        let text = squeezed(&text);
        let found = self.exact.get(&*text).cloned().unwrap_or_else(|| {
            self.exact
                .iter()
                .filter(|(say, _)| !say.is_empty() && contains_words(&text, say))
                .max_by_key(|(say, _)| say.len())
                .map_or_else(Vec::new, |(_, turns)| turns.clone())
        });
        if self.known.len() >= REMEMBERED {
            self.known.drain(..REMEMBERED / 2);
        }
        self.known.insert(key, found.clone());
        found
    }
}

/// Runs of white space as one blank. Most texts, and most long ones, are so already.
fn squeezed(text: &str) -> Cow<'_, str> {
    let mut blank = true;
    let plain = text.bytes().all(|byte| {
        let again = blank;
        blank = byte == b' ';
        // What is no ASCII may be white space of another script.
        byte.is_ascii_graphic() || blank && !again
    });
    if plain && (!blank || text.is_empty()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// True when `part` stands in `text` and no word is cut at its ends.
fn contains_words(text: &str, part: &str) -> bool {
    let word = |c: char| c.is_alphanumeric();
    text.match_indices(part).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + part.len()..].chars().next();
        let cut =
            |outer: Option<char>, inner: Option<char>| outer.is_some_and(word) && inner.is_some_and(word);
        !cut(before, part.chars().next()) && !cut(behind, part.chars().next_back())
    })
}

fn head(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect::<String>().to_lowercase()
}

/// A request for a title says so at once.
fn asks_for_title(text: &str) -> bool {
    let head = head(text, 600);
    head.contains("title")
        && ["generat", "short", "brief", "concise", "name"].iter().any(|word| head.contains(word))
}

/// A request for a summary, where nothing else is expected.
fn speaks_of_summary(text: &str) -> bool {
    let head = head(text, 3_000);
    head.contains("summar") || head.contains("handoff") || head.contains("context checkpoint")
}

/// A request for a summary among requests with tools.
fn asks_for_summary(text: &str) -> bool {
    let head = head(text, 300);
    [
        "summary of the conversation",
        "summarize the conversation",
        "summarise the conversation",
        "detailed summary",
    ]
    .iter()
    .any(|words| head.contains(words))
}

/// A request to look back and save something, where the script has no lines for it.
pub(super) fn asks_for_review(text: &str) -> bool {
    let head = head(text, 1_500);
    head.contains("review")
        && ["memory", "skill", "save", "conversation"].iter().any(|word| head.contains(word))
}

/// True for words that stand for no answer at all.
pub(super) fn is_blank(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == "(empty)"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_squeezed_wherever_it_stands_and_nothing_else_changes() {
        for text in [
            "",
            " ",
            "a",
            " a",
            "a ",
            "a b",
            "a  b",
            "a\nb",
            "a\u{a0}b",
            "é b",
            "字 字",
            "a\u{3000}b ",
            "x y z",
        ] {
            let expected = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeezed(text), expected, "{text:?}");
        }
        assert!(matches!(squeezed("x y z"), Cow::Borrowed(_)));
    }
}

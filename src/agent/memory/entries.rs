//! The file format: entries joined by a line with a section sign.
//!
//! Called by the store. Never: a change of an entry's inner text.

use std::collections::BTreeSet;

use crate::agent::text::{chars, strip};
use crate::world::{FileError, Files};

/// What stands between two entries (Hermes tools/memory_tool_store.py:25).
pub const DELIMITER: &str = "\n§\n";

/// A file could not be read or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// The content of a store's file with line ends unified; an absent file is empty.
///
/// # Errors
/// [`Unreadable`] when something is there that is no UTF-8 text file.
pub fn read(files: &dyn Files, path: &str, drop_mark: bool) -> Result<String, Unreadable> {
    let text = match files.read_text(path) {
        Ok(text) => text,
        Err(FileError::NotFound(_)) => return Ok(String::new()),
        Err(error) => return Err(Unreadable(error.to_string())),
    };
    let text = if drop_mark { text.strip_prefix('\u{FEFF}').unwrap_or(&text) } else { &text };
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The entries of a file's content, duplicates included.
pub fn split(text: &str) -> Vec<String> {
    text.split(DELIMITER).map(strip).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// True when an entry with this content is one entry, and the same, after the file was read again.
///
/// A mark at the first or last line meets the delimiter of a neighbour; a mark inside a line is harmless.
pub fn comes_back(content: &str) -> bool {
    let neighbour = || "x".to_owned();
    let content = strip(content);
    split(&join(&[neighbour(), content.to_owned(), neighbour()]))
        == [neighbour(), content.to_owned(), neighbour()]
}

/// Drops exact repetitions, the first stays.
pub fn distinct(entries: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    entries.into_iter().filter(|entry| seen.insert(entry.clone())).collect()
}

/// The text of the file that holds these entries.
pub fn join(entries: &[String]) -> String {
    entries.join(DELIMITER)
}

/// Length of the joined text, in characters.
pub fn size<'a>(entries: impl IntoIterator<Item = &'a String>) -> u64 {
    let (mut total, mut count) = (0, 0_u64);
    for entry in entries {
        total += chars(entry);
        count += 1;
    }
    total + 3 * count.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_counts_characters_and_delimiters() {
        let entries = vec!["茶".to_owned(), "b".to_owned()];
        assert_eq!(size(&entries), 5);
        assert_eq!(size(&entries), chars(&join(&entries)));
        assert_eq!(size(&[]), 0);
    }

    #[test]
    fn only_the_full_delimiter_splits() {
        assert_eq!(split("a § b\n§\n\n§\n c "), ["a § b", "c"]);
    }
}

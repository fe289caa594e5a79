//! Fixed parts of long user messages.
//!
//! Builders of such messages (skill bodies, webhook and scheduled prompts) register the part that stays the same, so
//! that it can be sent as a part of its own. The list is bounded; the least recently used leaves first.

use crate::policy::Breakpoints;

/// The registered texts, least recently used first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffolds {
    texts: Vec<(String, u64)>,
    entries_max: usize,
    chars_max: u64,
}

impl Scaffolds {
    /// An empty list with the bounds of a policy.
    pub fn new(knobs: &Breakpoints) -> Self {
        Self {
            texts: Vec::new(),
            entries_max: usize::try_from(knobs.scaffolds_max).unwrap_or(usize::MAX),
            chars_max: knobs.scaffold_chars_max,
        }
    }

    /// Number of registered texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True when nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Registers a text, or uses it again; an empty one is not kept. The newest stays even when it alone is too large.
    pub fn register(&mut self, text: &str) {
        if text.is_empty() || self.entries_max == 0 {
            return;
        }
        self.texts.retain(|(known, _)| known != text);
        self.texts.push((text.to_owned(), text.chars().count() as u64));
        let mut total: u64 = self.texts.iter().map(|(_, size)| size).sum();
        let mut gone = 0;
        while self.texts.len() - gone > 1
            && (self.texts.len() - gone > self.entries_max || total > self.chars_max)
        {
            total -= self.texts[gone].1;
            gone += 1;
        }
        self.texts.drain(..gone);
    }

    /// Length in bytes of the longest registered text that begins `text` and leaves more than blanks; counts as use.
    pub fn find(&mut self, text: &str) -> Option<usize> {
        let (at, length) = self
            .texts
            .iter()
            .enumerate()
            .filter(|(_, (known, _))| {
                text.strip_prefix(known.as_str()).is_some_and(|rest| !rest.trim().is_empty())
            })
            .map(|(at, (known, _))| (at, known.len()))
            .max_by_key(|(_, length)| *length)?;
        let used = self.texts.remove(at);
        self.texts.push(used);
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_keeps_a_text_from_leaving() {
        let mut scaffolds = Scaffolds::new(&Breakpoints { scaffolds_max: 2, ..Breakpoints::default() });
        scaffolds.register("a");
        scaffolds.register("b");
        assert_eq!(scaffolds.find("ax"), Some(1));
        scaffolds.register("c");
        assert_eq!((scaffolds.find("ax"), scaffolds.find("bx")), (Some(1), None));
    }
}

//! Spaces: entries of one space never answer requests of another.
//!
//! A space is made of whatever separates entries beside their content: model, organisation, workspace, key, and the
//! settings that belong to the key. Names are kept once and stand for a number from then on.

use std::collections::BTreeMap;

/// Number of a space.
pub(super) type Space = u32;

/// The spaces seen so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Spaces {
    numbers: BTreeMap<String, Space>,
    scratch: String,
}

impl Spaces {
    /// The number of the space with these parts and settings.
    pub(super) fn number<'a>(
        &mut self,
        parts: &[&str],
        params: impl Iterator<Item = &'a (&'a str, &'a str)>,
    ) -> Space {
        self.scratch.clear();
        for part in parts {
            self.scratch.push_str(part);
            // No name of a model or an organisation contains it, so that parts cannot run into each other.
            self.scratch.push('\0');
        }
        for (name, value) in params {
            self.scratch.push_str(name);
            self.scratch.push('=');
            self.scratch.push_str(value);
            self.scratch.push('\0');
        }
        if let Some(&number) = self.numbers.get(&self.scratch) {
            return number;
        }
        let number = Space::try_from(self.numbers.len()).unwrap_or(Space::MAX);
        self.numbers.insert(self.scratch.clone(), number);
        number
    }
}

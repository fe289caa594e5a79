//! Telling a running session that skills came or went, without touching its prompt
//! (Hermes agent/skills_index_delta.py:100).

use std::collections::BTreeSet;

/// What was told already about one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexDelta {
    in_prompt: Option<BTreeSet<String>>,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// A difference to be told; it is always the whole one against the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexNote {
    /// Names that came.
    pub added: Vec<String>,
    /// Names that went.
    pub removed: Vec<String>,
}

impl IndexNote {
    /// The note as it rides on a user message.
    pub fn text(&self) -> String {
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!(
            "[The skills have changed since this conversation began. New: {}. Gone: {}.]",
            list(&self.added),
            list(&self.removed)
        )
    }
}

impl IndexDelta {
    /// Starts from the names in a prompt; a prompt without a catalogue is never compared.
    pub fn new(in_prompt: Option<impl IntoIterator<Item = String>>) -> Self {
        Self { in_prompt: in_prompt.map(|names| names.into_iter().collect()), ..Self::default() }
    }

    /// Compares with the names of this turn; a note only when something is not told yet.
    pub fn turn<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Option<IndexNote> {
        let in_prompt = self.in_prompt.as_ref()?;
        let now: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        let told: BTreeSet<String> =
            in_prompt.union(&self.added).filter(|name| !self.removed.contains(*name)).cloned().collect();
        if told == now {
            return None;
        }
        self.added = now.difference(in_prompt).cloned().collect();
        self.removed = in_prompt.difference(&now).cloned().collect();
        Some(IndexNote {
            added: self.added.iter().cloned().collect(),
            removed: self.removed.iter().cloned().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_that_left_and_came_back_is_told_twice() {
        let mut delta = IndexDelta::new(Some(["a".to_owned()]));
        assert_eq!(delta.turn([]).unwrap().removed, ["a"]);
        assert_eq!(delta.turn([]), None);
        assert_eq!(delta.turn(["a"]).unwrap().removed, Vec::<String>::new());
    }
}

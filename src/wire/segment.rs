//! Segments: the pieces of a prompt that a prefix cache compares, and the running digest over them.
//!
//! A request is a list of segments in the order tools, system, messages. Each carries its bytes without cache
//! markers (markers move and are not content). A *chain* is the running digest over the segments so far: two
//! requests share their first `n` segments exactly when their chains agree at `n`.

use std::hash::Hasher;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Which part of the prompt a segment belongs to; the order is the cache's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A tool definition.
    Tools,
    /// The system prompt.
    System,
    /// A message.
    Messages,
}

impl Level {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::System => "system",
            Self::Messages => "messages",
        }
    }
}

/// One piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Where in the prompt it stands.
    pub level: Level,
    /// Its bytes as text, without cache markers.
    pub text: Arc<str>,
}

impl Segment {
    /// A segment of this level.
    pub fn new(level: Level, text: impl Into<Arc<str>>) -> Self {
        Self { level, text: text.into() }
    }
}

/// A hasher for keys that are hashes already: it only folds them.
#[derive(Debug, Default, Clone, Copy)]
pub struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        let taken = bytes.len().min(8);
        word[..taken].copy_from_slice(&bytes[..taken]);
        self.0 ^= u64::from_le_bytes(word);
    }
}

/// Digest of a sequence of segments: the first 16 bytes of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Chain([u8; 16]);

impl Chain {
    /// The digest of no segment at all.
    pub const EMPTY: Self = Self([0; 16]);

    /// The digest after one more segment.
    ///
    /// ```
    /// use hermes_lab::wire::{Chain, Level, Segment};
    /// let a = Chain::EMPTY.then(&Segment::new(Level::System, "you are"));
    /// let b = Chain::EMPTY.then(&Segment::new(Level::Messages, "you are"));
    /// assert_ne!(a, b);
    /// ```
    #[must_use]
    pub fn then(self, segment: &Segment) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update([segment.level as u8]);
        hasher.update(segment.text.as_bytes());
        let full: [u8; 32] = hasher.finalize().into();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Self(short)
    }

    /// A digest that was computed elsewhere, as a name for a prefix.
    pub fn of_number(number: u128) -> Self {
        Self(number.to_be_bytes())
    }

    /// The digest of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let full: [u8; 32] = Sha256::digest(bytes).into();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Self(short)
    }

    /// The digest of a whole sequence.
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Self {
        segments.into_iter().fold(Self::EMPTY, Self::then)
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain({self})")
    }
}

impl Serialize for Chain {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("expected 32 hexadecimal digits");
        if text.len() != 32 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

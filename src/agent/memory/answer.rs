//! What a write answers: a receipt or a refusal, as values; the tool's front turns them into a tool result.

use std::fmt;

/// One of the two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Notes about the environment, MEMORY.md.
    Memory,
    /// Who the user is, USER.md.
    User,
}

impl Target {
    /// Both, in the order in which the prompt shows them.
    pub const BOTH: [Self; 2] = [Self::Memory, Self::User];

    /// The word that the tool uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    /// The target of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|target| target.word() == word)
    }

    /// Name of the file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }

    /// Path of the file below the home.
    pub fn path(self) -> &'static str {
        match self {
            Self::Memory => "memories/MEMORY.md",
            Self::User => "memories/USER.md",
        }
    }
}

/// How an entry was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A whole entry was written anew.
    Replaced,
    /// An entry was deleted.
    Removed,
    /// A span of an entry was written anew.
    Patched,
}

/// A text that a write took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Number of the operation, from 1; 1 for a single write.
    pub operation: usize,
    /// What happened to the entry.
    pub change: Change,
    /// The entry before.
    pub before: String,
    /// The entry after a patch; empty otherwise.
    pub after: String,
}

/// A successful write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The store.
    pub target: Target,
    /// Percentage of the limit in use.
    pub percent: u64,
    /// Joined length, in characters.
    pub size: u64,
    /// Limit, in characters.
    pub limit: u64,
    /// Number of entries.
    pub entry_count: usize,
    /// False when everything was there already and nothing was written.
    pub changed: bool,
    /// The texts that are gone.
    pub taken: Vec<Taken>,
}

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusalKind {
    /// No content.
    #[error("missing_content")]
    MissingContent,
    /// No old text.
    #[error("missing_old_text")]
    MissingOldText,
    /// The scanner saw something in the new content.
    #[error("scan_blocked")]
    ScanBlocked,
    /// The new content holds what separates entries.
    #[error("delimiter")]
    Delimiter,
    /// The store would be over its limit.
    #[error("over_budget")]
    OverBudget,
    /// No entry matches the old text.
    #[error("no_match")]
    NoMatch,
    /// Several entries, or several places, match the old text.
    #[error("ambiguous")]
    Ambiguous,
    /// Arguments that make no sense.
    #[error("invalid_args")]
    InvalidArgs,
    /// A batch would leave the store empty.
    #[error("would_empty")]
    WouldEmpty,
    /// The file was written by somebody else.
    #[error("drift")]
    Drift,
    /// The file cannot be read or decoded.
    #[error("read_failed")]
    ReadFailed,
    /// The file cannot be written.
    #[error("write_failed")]
    WriteFailed,
    /// Too many failures in this turn.
    #[error("retry_cap")]
    RetryCap,
    /// The store is switched off.
    #[error("disabled")]
    Disabled,
    /// The entry that a staged write was made for is gone.
    #[error("stale_entry")]
    StaleEntry,
    /// A staged destructive write does not say which entry it was made for.
    #[error("unpinned")]
    Unpinned,
}

/// A refused write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// What the model is told.
    pub message: String,
    /// What the answer shows besides.
    pub details: Box<Details>,
}

/// What a refusal shows besides its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Size and limit of the store, where the answer shows them.
    pub usage: Option<(u64, u64)>,
    /// The live entries, where the answer lists them.
    pub entries: Option<Vec<String>>,
    /// Entries close to an old text that was not found.
    pub closest: Vec<String>,
    /// Previews of the entries that match.
    pub candidates: Vec<String>,
    /// The copy of a file that was written by somebody else.
    pub backup: Option<String>,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), details: Box::default() }
    }

    /// True when the model is told to stop trying in this turn.
    pub fn is_terminal(&self) -> bool {
        self.kind == RefusalKind::RetryCap
    }
}

/// The answer to a write.
pub type Answer = Result<Receipt, Refusal>;

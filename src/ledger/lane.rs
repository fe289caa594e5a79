//! Who asks the model. Lanes keep the scripts of a scenario, the caches and the conversations of a session apart.

use serde::{Deserialize, Serialize};

/// Which part of the harness asked the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// The user's own turn.
    Main,
    /// The background review.
    Review,
    /// The summary of a compaction.
    Summary,
    /// A delegated child.
    Child,
    /// A scheduled run.
    Cron,
    /// The reviewer of commands.
    Approver,
    /// The consolidation of the curator.
    Curator,
    /// A title for a session.
    Title,
}

impl Lane {
    /// Every lane.
    pub const ALL: [Self; 8] = [
        Self::Main,
        Self::Review,
        Self::Summary,
        Self::Child,
        Self::Cron,
        Self::Approver,
        Self::Curator,
        Self::Title,
    ];

    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Review => "review",
            Self::Summary => "summary",
            Self::Child => "child",
            Self::Cron => "cron",
            Self::Approver => "approver",
            Self::Curator => "curator",
            Self::Title => "title",
        }
    }
}

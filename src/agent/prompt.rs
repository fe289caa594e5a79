//! The system prompt: assembled once, kept, stored, sent again byte for byte.
//!
//! [`build`] makes it from [`PromptInputs`]; [`restore`](restore::restore) decides whether a stored one is sent
//! instead. The planned breaks are a compaction, another model, provider or working directory, and a lost row.
//!
//! - `assembly`, `texts`, `gates`: parts, tiers, decisions;
//! - `date_line`, `identity`: the trailer, and whether a stored prompt fits;
//! - `restore`: kept, stored or new; the static prefix;
//! - `catalogue`, `index_delta`, `front_matter`: the skills;
//! - `context_files`, `subdir_hints`, `truncate`, `workspace`, `shell_words`: the project.
//!
//! Never: a clock, a file or a setting that the caller did not hand in.
//!
//! The real agent builds it the same way and keeps it on the agent. Differs: the runtime gives no identity file, no look
//! at a repository and no plugin sections; those parts are assembled for the vectors. It decides about a stored prompt
//! from [`identity`] alone and rebuilds the catalogue from files, so [`restore`](restore::restore) and
//! [`CatalogueCache`] are held against observed outcomes and called by nobody else.

pub mod assembly;
pub mod catalogue;
pub mod context_files;
pub mod date_line;
pub mod front_matter;
pub mod gates;
pub mod identity;
pub mod index_delta;
pub mod restore;
pub mod shell_words;
pub mod subdir_hints;
pub mod texts;
pub mod truncate;
pub mod workspace;

pub use assembly::{Block, BuiltPrompt, Profile, PromptInputs, build, with_ephemeral};
pub use catalogue::{Catalogue, CatalogueCache, Offer, Root};
pub use date_line::DateInputs;
pub use identity::{Environment, Runtime};
pub use restore::{BuildReason, Restored, StaticPart, Stored, restore};

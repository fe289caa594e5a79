//! Why an operation on a skill is refused, each reason with the identifier that the tool reports.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $id:literal),* $(,)?) => {
        /// A reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// The identifier.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }
        }
    };
}

reasons! {
    /// A name is needed.
    NameRequired = "name_required",
    /// The name is too long.
    NameTooLong = "name_too_long",
    /// The name has a wrong form.
    NameInvalid = "name_invalid",
    /// The category is no text.
    CategoryType = "category_type",
    /// The category has a wrong form.
    CategoryInvalid = "category_invalid",
    /// The category is too long.
    CategoryTooLong = "category_too_long",
    /// Blank content.
    ContentEmpty = "content_empty",
    /// No front matter at the start.
    FrontmatterMissing = "frontmatter_missing",
    /// The front matter does not end.
    FrontmatterUnclosed = "frontmatter_unclosed",
    /// The front matter is no YAML.
    FrontmatterYaml = "frontmatter_yaml",
    /// The front matter is no mapping.
    FrontmatterNotMapping = "frontmatter_not_mapping",
    /// No `name` in the front matter.
    NameFieldMissing = "name_field_missing",
    /// No `description` in the front matter.
    DescriptionFieldMissing = "description_field_missing",
    /// The description is too long.
    DescriptionTooLong = "description_too_long",
    /// The description of a new skill does not fit a catalogue line.
    DescriptionOverPromptBudget = "description_over_prompt_budget",
    /// Nothing behind the front matter.
    BodyEmpty = "body_empty",
    /// A text is too long.
    ContentTooLarge = "content_too_large",
    /// A support file is too large.
    FileTooLargeBytes = "file_too_large_bytes",
    /// A path is needed.
    PathRequired = "path_required",
    /// The path climbs.
    PathTraversal = "path_traversal",
    /// The path is in no support directory.
    PathDirNotAllowed = "path_dir_not_allowed",
    /// The path names a directory.
    PathIsDirectory = "path_is_directory",
    /// The path leaves the skill through a link.
    PathEscape = "path_escape",
    /// Create and rewrite need the content.
    ContentRequired = "content_required",
    /// A file's content is needed.
    FileContentRequired = "file_content_required",
    /// A patch needs the old text.
    OldTextRequired = "old_text_required",
    /// A patch needs the new text.
    NewTextRequired = "new_text_required",
    /// A patch is either a rewrite or a replacement.
    PatchShapeConflict = "patch_shape_conflict",
    /// A skill of that name exists.
    AlreadyExists = "already_exists",
    /// Something stands where the skill would go.
    TargetOccupied = "target_occupied",
    /// There is no such skill.
    SkillNotFound = "skill_not_found",
    /// There is no such file.
    FileNotFound = "file_not_found",
    /// The patched SKILL.md would no longer be valid.
    PatchBreaksStructure = "patch_breaks_structure",
    /// The skill must not be deleted.
    Essential = "essential",
    /// The user pinned the skill.
    Pinned = "pinned",
    /// The skill that takes over is the same or does not exist.
    AbsorbedTargetInvalid = "absorbed_target_invalid",
    /// What would be deleted is no skill directory below a root.
    UnsafeDeleteTarget = "unsafe_delete_target",
    /// No such action.
    UnknownAction = "unknown_action",
    /// The scanner saw something in the text.
    ScanBlocked = "scan_blocked",
    /// The disk said no.
    WriteFailed = "write_failed",
    /// The old text is empty.
    OldTextEmpty = "old_text_empty",
    /// The old text is blank.
    OldTextBlank = "old_text_blank",
    /// Old and new text are the same.
    Identical = "identical",
    /// Several places match.
    AmbiguousMatch = "ambiguous_match",
    /// Several places match only roughly.
    ApproximateReplaceAll = "approximate_replace_all",
    /// The texts carry escapes that the file does not.
    EscapeDrift = "escape_drift",
    /// No place matches.
    NoMatch = "no_match",
    /// Review: the skill is pinned.
    BgPinned = "bg_pinned",
    /// Review: the skill lives in a foreign directory.
    BgExternal = "bg_external",
    /// Review: automation never touches the skill.
    BgProtected = "bg_protected",
    /// Review: the skill was installed from a hub.
    BgHub = "bg_hub",
    /// Review: the skill is part of the distribution.
    BgBundled = "bg_bundled",
    /// Review: the agent did not make the skill.
    BgNotManaged = "bg_not_managed",
    /// Review: the record of who made the skill cannot be read.
    BgUnverifiable = "bg_unverifiable",
    /// Review: the file was not read before.
    BgReadFirst = "bg_read_first",
    /// Review: nothing takes the content over.
    BgNoAbsorption = "bg_no_absorption",
    /// A batch without operations.
    BatchEmpty = "batch_empty",
    /// A batch with too many operations.
    BatchTooMany = "batch_too_many",
    /// A delete among other operations.
    BatchDeleteNotSole = "batch_delete_not_sole",
    /// An operation without action.
    BatchOpNoAction = "batch_op_no_action",
    /// An operation with an unknown action.
    BatchOpAction = "batch_op_action",
    /// An operation without name.
    BatchOpNoName = "batch_op_no_name",
    /// A create behind other operations on the same skill.
    BatchCreateOrder = "batch_create_order",
    /// An operation would overwrite what an earlier one wrote.
    BatchClobber = "batch_clobber",
    /// An operation failed and everything was put back.
    BatchAborted = "batch_aborted",
}

/// A refused operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", self.id())]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// True for an operation of a batch whose shape was found wrong before anything ran.
    pub in_batch: bool,
    /// What the model is told.
    pub message: String,
    /// Why the failing operation of an aborted batch was refused.
    pub cause: Option<Reason>,
    /// Index of the failing operation of an aborted batch, from 0.
    pub failed_index: Option<usize>,
    /// Support files that exist, where one was not found.
    pub available_files: Option<Vec<String>>,
    /// Beginning of the file, where a patch found no place.
    pub preview: Option<String>,
}

impl Refusal {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            in_batch: false,
            message: message.into(),
            cause: None,
            failed_index: None,
            available_files: None,
            preview: None,
        }
    }

    /// The identifier that the tool reports.
    pub fn id(&self) -> String {
        if self.in_batch { format!("batch_op:{}", self.reason.id()) } else { self.reason.id().to_owned() }
    }

    /// True when reading the file first would have made the difference.
    pub fn wants_read_first(&self) -> bool {
        self.cause.unwrap_or(self.reason) == Reason::BgReadFirst
    }

    /// True when the refusal exists because a review could not prove that nothing is lost.
    pub fn is_fail_closed(&self) -> bool {
        matches!(self.reason, Reason::BgNoAbsorption | Reason::BgUnverifiable)
    }
}

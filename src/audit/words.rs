//! The words of an audit: verdicts, causes, grades of evidence. One list each; reports and files use these words only.

use serde::{Serialize, Serializer};

/// What became of the prefix at one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything that could have been cached stands unchanged in front.
    Extends,
    /// The first request of a conversation: there was nothing to read.
    ColdStart,
    /// The prefix broke where it may: a compaction.
    PlannedBreak,
    /// The prefix broke where it should not.
    UnplannedBreak,
    /// The provider refuses the request as it stands.
    Refused,
    /// The prefix stands, its entry had outlived its lifetime.
    Expired,
    /// The prefix stands, the provider read less, and nothing in the log says why.
    EvictedOrUnexplained,
    /// The log does not show enough to judge.
    NotJudged,
}

impl Verdict {
    /// Every verdict, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Extends,
        Self::ColdStart,
        Self::PlannedBreak,
        Self::UnplannedBreak,
        Self::Refused,
        Self::Expired,
        Self::EvictedOrUnexplained,
        Self::NotJudged,
    ];

    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Extends => "extends",
            Self::ColdStart => "cold_start",
            Self::PlannedBreak => "planned_break",
            Self::UnplannedBreak => "unplanned_break",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::EvictedOrUnexplained => "evicted_or_unexplained",
            Self::NotJudged => "not_judged",
        }
    }
}

/// How a statement is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The differing bytes are in the log.
    BytesSeen,
    /// Only the provider's token counts are.
    UsageOnly,
    /// Concluded from shape, size or time.
    Inferred,
}

impl Evidence {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::BytesSeen => "bytes_seen",
            Self::UsageOnly => "usage_only",
            Self::Inferred => "inferred",
        }
    }
}

macro_rules! causes {
    ($($name:ident $word:literal $diagnosis:literal $mend:literal;)+) => {
        /// Why a request could not read what the request before it had written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each word is explained by its own mend")]
        pub enum Cause { $($name,)+ }

        impl Cause {
            /// Every cause.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word for people and files.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// The word that providers' own cache diagnosis uses for the same thing.
            pub fn diagnosis(self) -> &'static str {
                match self { $(Self::$name => $diagnosis,)+ }
            }

            /// The knob or habit that mends it; empty where there is nothing to mend.
            pub fn mend(self) -> &'static str {
                match self { $(Self::$name => $mend,)+ }
            }
        }
    };
}

causes! {
    None "none" "unavailable" "";
    ColdStart "cold_start" "previous_message_not_found" "";
    VolatileTime "volatile_time" "system_changed" "take the clock out of the prompt, or round it to the day and put it behind the last marker";
    VolatileId "volatile_id" "system_changed" "take the id or counter out of the prompt, or put it behind the last marker";
    MemoryLiveRead "memory_live_read" "system_changed" "freeze memory when the session starts; let writes show at the next compaction or session";
    SystemChanged "system_changed" "system_changed" "build the system prompt once per session and store it; put what changes into the newest user message";
    RecallInjection "recall_injection" "messages_changed" "put recalled text into the newest message only, and send it again unchanged from then on";
    ToolReorder "tool_reorder" "tools_changed" "sort the tools by name before sending";
    ToolSetChanged "tool_set_changed" "tools_changed" "keep the tool list of a session fixed; load further tools by search or at the next compaction";
    ToolSchemaChanged "tool_schema_changed" "tools_changed" "freeze the tool definitions when the session starts";
    JsonKeyOrder "json_key_order" "tools_changed" "serialise with ordered maps: the provider compares bytes";
    RepresentationDrift "representation_drift" "messages_changed" "store what was sent and send it again byte for byte; do not rebuild it from parts";
    HistoryRewritten "history_rewritten" "messages_changed" "do not edit what was sent; clear old results in rare large batches or at a compaction";
    ResultReorder "result_reorder" "messages_changed" "append parallel results in the order of their calls, always";
    BlockMigrated "block_migrated" "messages_changed" "save injected blocks with the transcript, so that a resume puts them where they were";
    ReasoningDropped "reasoning_dropped" "messages_changed" "send reasoning back as it came, until a compaction";
    ParamsChanged "params_changed" "messages_changed" "keep tool choice, thinking and effort the same for a whole session";
    ModelChanged "model_changed" "model_changed" "keep to one model per conversation, or accept one cold start per switch";
    RouteChanged "route_changed" "previous_message_not_found" "keep a conversation on one route: pin the provider and its cache key";
    TtlExpired "ttl_expired" "previous_message_not_found" "ask for the one-hour lifetime where people pause, or send a keep-alive before it ends";
    LookbackExceeded "lookback_exceeded" "previous_message_not_found" "put a further marker at most 20 blocks behind the last one when a step adds many blocks";
    BreakpointStatic "breakpoint_static" "unavailable" "move the last marker to the newest block with every request";
    BreakpointOverflow "breakpoint_overflow" "unavailable" "at most four markers: drop the one of the tools, the system prompt's covers it";
    BreakpointIllegalTarget "breakpoint_illegal_target" "unavailable" "mark a block that may carry a marker: no empty text, no thinking";
    TtlOrderIllegal "ttl_order_illegal" "unavailable" "longer lifetimes first: one hour before five minutes in the order tools, system, messages";
    EntryNotReady "entry_not_ready" "previous_message_not_found" "wait for the first answer to begin before sending requests that share its prefix";
    UnalignedSummarizer "unaligned_summarizer" "messages_changed" "let the summariser send the conversation's own tools and system prompt and append its instruction";
    PlannedCompaction "planned_compaction" "messages_changed" "";
    FloorPinned "floor_pinned" "previous_message_not_found" "something behind the first cached tokens changes with every request: record the bodies to see what";
    CompactionIneffective "compaction_ineffective" "messages_changed" "stop compacting after two passes that do not get under the threshold";
    SummaryFailureDropsHistory "summary_failure_drops_history" "messages_changed" "keep the history when the summary fails";
    InstructionLost "instruction_lost" "messages_changed" "carry standing instructions over word for word";
    DelimiterCollision "delimiter_collision" "unavailable" "refuse entries that contain the delimiter";
    LostUpdate "lost_update" "unavailable" "lock, read again and merge before writing";
    PersistedInjection "persisted_injection" "messages_changed" "strip injected text before storing a message";
    StoreResolvedAtWriteTime "store_resolved_at_write_time" "unavailable" "resolve the store when the session starts";
    ReviewLeak "review_leak" "messages_changed" "run the review on a copy of the conversation";
    ReviewOverlap "review_overlap" "unavailable" "one review at a time";
    OccurrenceNotRecordedBeforeRun "occurrence_not_recorded_before_run" "unavailable" "record the occurrence before it runs";
    Unexplained "unexplained" "previous_message_not_found" "nothing in the prompt: ask the provider, pin the route, or set a cache key";
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Where in a request a fault lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Tool definitions.
    Tools,
    /// The system prompt.
    System,
    /// The messages.
    Messages,
    /// The request as a whole is refused.
    Request,
    /// No segment differs: the loss lies in time, route or model.
    All,
}

impl Place {
    /// The word for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::System => "system",
            Self::Messages => "messages",
            Self::Request => "request",
            Self::All => "all",
        }
    }
}

impl From<crate::wire::Level> for Place {
    fn from(level: crate::wire::Level) -> Self {
        match level {
            crate::wire::Level::Tools => Self::Tools,
            crate::wire::Level::System => Self::System,
            crate::wire::Level::Messages => Self::Messages,
        }
    }
}

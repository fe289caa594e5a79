//! The provider's prefix cache.
//!
//! Where two pages of a provider contradict each other, or none says anything, a knob chooses; its default is the
//! first-party page of August 2026.

use super::{choice, knobs};

choice! {
    /// Which rules of which provider the cache follows.
    CacheModel {
        /// Anthropic Messages.
        Anthropic = "anthropic",
        /// Claude on Amazon Bedrock, older endpoint.
        Bedrock = "bedrock",
        /// Claude on Vertex AI.
        Vertex = "vertex",
        /// Claude through OpenRouter.
        OpenRouter = "openrouter",
        /// OpenAI up to GPT-5.5.
        OpenAi = "openai",
        /// OpenAI from GPT-5.6 on.
        OpenAi56 = "openai-5.6",
        /// Gemini, implicit.
        Gemini = "gemini",
        /// Gemini, named cache objects.
        GeminiExplicit = "gemini-explicit",
        /// DeepSeek from 2024 on.
        DeepSeek2024 = "deepseek-2024",
        /// DeepSeek from 2026 on.
        DeepSeek2026 = "deepseek-2026",
        /// Qwen, explicit.
        Qwen = "qwen",
        /// Qwen, implicit.
        QwenImplicit = "qwen-implicit",
        /// Qwen4, explicit.
        Qwen4 = "qwen4",
        /// Moonshot, automatic.
        Moonshot = "moonshot",
        /// MiniMax, explicit.
        MiniMax = "minimax",
        /// MiniMax, passive.
        MiniMaxPassive = "minimax-passive",
        /// Mistral.
        Mistral = "mistral",
        /// xAI.
        Xai = "xai",
        /// vLLM V1.
        Vllm = "vllm",
        /// SGLang.
        Sglang = "sglang",
        /// llama.cpp server.
        LlamaCpp = "llamacpp",
        /// Everything that was ever sent is read: the upper bound.
        Ideal = "ideal",
        /// Nothing is ever read: the lower bound.
        Off = "off",
    }
}

choice! {
    /// Where a request with markers leaves entries.
    EntriesAt {
        /// At its markers.
        Markers = "markers",
        /// At every block up to the last marker, as the page read until March 2026.
        EveryBlock = "every_block",
    }
}

choice! {
    /// Who shares entries.
    Isolation {
        /// Requests of one workspace.
        Workspace = "workspace",
        /// Requests of one organisation.
        Organization = "organization",
    }
}

choice! {
    /// From when on a new entry can be read.
    VisibleFrom {
        /// When the first token of the writing request has come.
        FirstToken = "first_token",
        /// When the answer to the writing request has ended.
        ResponseEnd = "response_end",
    }
}

choice! {
    /// The lifetime that a hit gives to an entry.
    RenewedWith {
        /// The entry's own.
        Entry = "entry",
        /// The one that the reading marker asks for.
        Request = "request",
    }
}

choice! {
    /// From when on a lifetime counts.
    LifetimeFrom {
        /// The start of the request.
        RequestStart = "request_start",
        /// The end of its answer.
        ResponseEnd = "response_end",
    }
}

choice! {
    /// What a change of thinking or effort invalidates.
    ThinkingBreaks {
        /// Messages.
        Messages = "messages",
        /// System and messages.
        System = "system",
        /// Everything.
        All = "all",
    }
}

choice! {
    /// Which leaf a radix tree gives up first.
    Eviction {
        /// The least recently used.
        Lru = "lru",
        /// The least often used.
        Lfu = "lfu",
        /// The oldest.
        Fifo = "fifo",
        /// The most recently used.
        Mru = "mru",
        /// The youngest.
        Filo = "filo",
        /// Used once before used again, then the least recently used.
        Slru = "slru",
    }
}

knobs! {
    /// The provider's prefix cache.
    Cache, "cache" {
        /// Rules that the cache follows.
        model: CacheModel = CacheModel::Anthropic, "provider", "provider-caching 11", "-";
        /// Shortest prefix that is cached; none takes the provider's own, by model where it has a table.
        tokens_min: Option<u64> = None, [0, 1_000_000], "tokens", "provider-caching 2.3", "-";
        /// Markers that a request may carry.
        breakpoints_max: u64 = 4, [0, 1_000], "markers", "provider-caching 2.1", "-";
        /// Positions that a marker looks at, its own included.
        lookback: u64 = 20, [1, 100_000], "positions", "provider-caching 2.1", "-";
        /// A run of tool calls, and a run of tool results, is one position.
        collapse_tool_runs: bool = false, "switch", "provider-caching 12", "-";
        /// The tool list is one position instead of one for each definition.
        tool_list_one_position: bool = false, "switch", "provider-caching 13", "-";
        /// Where a request leaves entries.
        entries_at: EntriesAt = EntriesAt::Markers, "place", "provider-caching 12", "-";
        /// Who shares entries on the first-party API.
        isolation: Isolation = Isolation::Workspace, "scope", "provider-caching 2.6", "-";
        /// From when on a new entry can be read.
        visible_from: VisibleFrom = VisibleFrom::FirstToken, "moment", "provider-caching 2.1", "-";
        /// Lifetime that a hit gives.
        renewed_with: RenewedWith = RenewedWith::Entry, "lifetime", "provider-caching 13", "-";
        /// From when on a lifetime counts.
        lifetime_from: LifetimeFrom = LifetimeFrom::RequestStart, "moment", "provider-caching 2.1, 13", "-";
        /// Life of a five-minute entry without use; a report measured about 180.
        lifetime_5m: u64 = 300, [0, 31_536_000], "seconds", "provider-caching 2.1, 12", "-";
        /// Life of a one-hour entry without use.
        lifetime_1h: u64 = 3_600, [0, 31_536_000], "seconds", "provider-caching 2.1", "-";
        /// Hitting a long entry also refreshes the shorter ones on its way.
        refreshes_shorter: bool = false, "switch", "provider-caching 13", "-";
        /// A marker inside the part that was read leaves an entry of its own.
        entry_inside_hit: bool = true, "switch", "provider-caching 13", "-";
        /// What a change of thinking or effort invalidates.
        thinking_breaks: ThinkingBreaks = ThinkingBreaks::Messages, "level", "provider-caching 2.4", "-";
        /// Earlier thinking blocks are dropped when a user's turn begins.
        strips_prior_thinking: bool = false, "switch", "provider-caching 2.4", "-";
        /// Idle time after which a router forgets which provider it used; other copies of its page say 300.
        router_idle: u64 = 600, [0, 31_536_000], "seconds", "provider-caching 9, 12", "-";
        /// OpenAI up to GPT-5.5: life without use, the lower end of five to ten minutes; 86400 for extended retention.
        openai_idle: u64 = 300, [0, 31_536_000], "seconds", "provider-caching 4.1", "-";
        /// OpenAI from GPT-5.6: life of a boundary without use; an SDK also knows 43200.
        openai_lifetime: u64 = 1_800, [0, 31_536_000], "seconds", "provider-caching 4.2, 12", "-";
        /// OpenAI from GPT-5.6: only marked blocks are boundaries.
        openai_explicit: bool = false, "switch", "provider-caching 4.2", "-";
        /// OpenAI from GPT-5.6: boundaries written by a request.
        openai_writes_max: u64 = 4, [0, 1_000], "boundaries", "provider-caching 4.2", "-";
        /// OpenAI from GPT-5.6: earlier message ends that are looked up.
        openai_earlier_ends: u64 = 20, [0, 100_000], "message ends", "provider-caching 4.2", "-";
        /// OpenAI from GPT-5.6: first markers that are looked up.
        openai_markers_first: u64 = 2, [0, 100_000], "markers", "provider-caching 4.2", "-";
        /// OpenAI from GPT-5.6: latest markers that are looked up; an SDK says 80.
        openai_markers_latest: u64 = 50, [0, 100_000], "markers", "provider-caching 12", "-";
        /// Gemini, implicit: life without use; documented nowhere, a router measured three to five minutes.
        gemini_idle: u64 = 240, [0, 31_536_000], "seconds", "provider-caching 5", "-";
        /// Gemini, implicit: step of a hit; documented nowhere.
        gemini_granule: u64 = 1, [1, 1_000_000], "tokens", "provider-caching 5", "-";
        /// Gemini, named objects: life from creation, without refresh.
        gemini_object_life: u64 = 3_600, [0, 31_536_000], "seconds", "provider-caching 5", "-";
        /// DeepSeek: life without use, hours to days.
        deepseek_idle: u64 = 7_200, [0, 31_536_000], "seconds", "provider-caching 6", "-";
        /// DeepSeek 2024: time until a write can be read.
        deepseek_settle: u64 = 6, [0, 86_400], "seconds", "provider-caching 6", "-";
        /// DeepSeek 2026: fixed interval of units in long texts; not published.
        deepseek_interval: Option<u64> = None, [1, 100_000_000], "tokens", "provider-caching 6", "-";
        /// Life without use of the other automatic caches (Qwen, Moonshot, MiniMax, Mistral, xAI).
        passive_idle: u64 = 300, [0, 31_536_000], "seconds", "provider-caching 8", "-";
        /// Moonshot: step of a hit.
        moonshot_granule: u64 = 256, [1, 1_000_000], "tokens", "provider-caching 8", "-";
        /// Mistral: the prompt cache key of all requests; without one nothing is read.
        key: String = "conversation".to_owned(), "text", "provider-caching 9", "-";
        /// vLLM: tokens of a block.
        block_size: u64 = 16, [1, 1_000_000], "tokens", "provider-caching 10", "-";
        /// vLLM: blocks that the device holds.
        capacity_blocks: u64 = 20_000, [1, 100_000_000], "blocks", "hermes-lab", "-";
        /// SGLang: tokens of a page.
        page_size: u64 = 1, [1, 1_000_000], "tokens", "provider-caching 10", "-";
        /// SGLang: tokens that the device holds.
        capacity_tokens: u64 = 320_000, [1, 2_000_000_000], "tokens", "hermes-lab", "-";
        /// SGLang: leaf that leaves first.
        eviction: Eviction = Eviction::Lru, "policy", "provider-caching 10", "-";
        /// llama.cpp: slots.
        slots: u64 = 4, [1, 100_000], "slots", "provider-caching 10", "-";
        /// llama.cpp: share of the prompt that must agree before a slot is claimed by likeness.
        slot_similarity: f64 = 0.10, [0, 1], "share", "provider-caching 10", "-";
    }
}

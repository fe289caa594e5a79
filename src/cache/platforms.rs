//! The markers of Anthropic as other platforms have them: what each does differently.

use crate::cache::anthropic::{ExtraMarks, Rules};
use crate::cache::minimum::Minimum;
use crate::policy::{self, Isolation, RenewedWith, VisibleFrom};
use crate::world::{Millis, clock};

/// Shortest explicit prefix at Qwen, in tokens.
const QWEN_MIN: u64 = 1_024;
/// Shortest prefix at MiniMax, in tokens.
pub(super) const MINIMAX_MIN: u64 = 512;

fn fixed(knobs: &policy::Cache, tokens: u64) -> Minimum {
    Minimum::Fixed(knobs.tokens_min.unwrap_or(tokens))
}

/// Claude on Bedrock, older endpoint: a table of minimums of its own, no automatic marker, shared by organisation.
pub fn bedrock(knobs: &policy::Cache) -> Rules {
    Rules {
        tokens_min: knobs.tokens_min.map_or(Minimum::Bedrock, Minimum::Fixed),
        isolation: Isolation::Organization,
        auto_supported: false,
        ..Rules::of(knobs)
    }
}

/// Claude on Vertex AI: shared by organisation.
pub fn vertex(knobs: &policy::Cache) -> Rules {
    Rules { isolation: Isolation::Organization, ..Rules::of(knobs) }
}

/// Claude through OpenRouter: after an idle while another provider may be asked, which holds nothing.
pub fn openrouter(knobs: &policy::Cache) -> Rules {
    let idle = Millis::try_from(knobs.router_idle).unwrap_or(Millis::MAX / clock::SECOND);
    Rules { router_idle: Some(idle * clock::SECOND), isolation: Isolation::Organization, ..Rules::of(knobs) }
}

/// Qwen, explicit: more markers than four are cut from the front, markers on tools are ignored, an entry is made
/// after the answer.
pub fn qwen(knobs: &policy::Cache) -> Rules {
    Rules {
        extra_marks: ExtraMarks::LastCount,
        tokens_min: fixed(knobs, QWEN_MIN),
        isolation: Isolation::Organization,
        visible_from: VisibleFrom::ResponseEnd,
        auto_supported: false,
        ignores_tool_marks: true,
        ..Rules::of(knobs)
    }
}

/// Qwen4, explicit: automatic marker, and a hit renews with the lifetime of the reading request.
pub fn qwen4(knobs: &policy::Cache) -> Rules {
    Rules { auto_supported: true, renewed_with: RenewedWith::Request, ..qwen(knobs) }
}

/// MiniMax, explicit: from 512 tokens, five minutes.
pub fn minimax(knobs: &policy::Cache) -> Rules {
    Rules { tokens_min: fixed(knobs, MINIMAX_MIN), ..Rules::of(knobs) }
}

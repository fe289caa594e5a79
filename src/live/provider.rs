//! Whom one can ask.

use crate::audit::prompt::Shape;
use crate::policy::CacheModel;

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic, Messages.
    Anthropic,
    /// OpenAI, Chat Completions.
    OpenAi,
    /// OpenAI, Responses.
    OpenAiResponses,
    /// Anybody else who speaks Chat Completions.
    Compatible,
}

impl Provider {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Compatible];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Compatible => "compatible",
        }
    }

    /// The kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.word() == word)
    }

    /// Where it is, if it is in one place.
    pub fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAi | Self::OpenAiResponses => Some("https://api.openai.com/v1"),
            Self::Compatible => None,
        }
    }

    /// The variable of the environment that usually holds its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            _ => "OPENAI_API_KEY",
        }
    }

    /// Where requests go, below its address.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::OpenAiResponses => "/v1/responses",
            Self::OpenAi | Self::Compatible => "/v1/chat/completions",
        }
    }

    /// The shape of its requests.
    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Anthropic => Shape::Anthropic,
            Self::OpenAiResponses => Shape::Responses,
            Self::OpenAi | Self::Compatible => Shape::Chat,
        }
    }

    /// Its wire as the runtime's policy names it.
    pub(super) fn api_mode(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic_messages",
            Self::OpenAiResponses => "codex_responses",
            Self::OpenAi | Self::Compatible => "chat_completions",
        }
    }

    /// The cache model that it is predicted with.
    pub(super) fn cache_model(self, model: &str) -> CacheModel {
        match self {
            Self::Anthropic => CacheModel::Anthropic,
            Self::OpenAi | Self::OpenAiResponses if boundaries(model) => CacheModel::OpenAi56,
            _ => CacheModel::OpenAi,
        }
    }
}

/// True for the models from GPT-5.6 on, whose cache has boundaries.
fn boundaries(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u64>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_follows_the_models_generation() {
        for (model, expected) in [
            ("gpt-5.6-sol", CacheModel::OpenAi56),
            ("gpt-6", CacheModel::OpenAi56),
            ("gpt-5.5", CacheModel::OpenAi),
            ("gpt-4o-2024-08-06", CacheModel::OpenAi),
            ("o4-mini", CacheModel::OpenAi),
        ] {
            assert_eq!(Provider::OpenAi.cache_model(model), expected, "{model}");
        }
        assert!(Provider::ALL.into_iter().all(|kind| Provider::of_word(kind.word()) == Some(kind)));
    }
}

//! Does a route cache, and in which shape does it take markers (Hermes agent/agent_runtime_helpers.py:1780).
//!
//! Decided by names alone: provider, host, wire, model. Hosts are compared as hosts, never as parts of an address,
//! except where an older revision did so.

use crate::policy::Breakpoints;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// Where the turn comes from, `cli`, `telegram`, `cron`, …: it decides an automatic lifetime. `cli` when empty.
    pub source: String,
    /// Provider id.
    pub provider: String,
    /// Address.
    pub base_url: String,
    /// Wire: `anthropic_messages`, `chat_completions` or another.
    pub api_mode: String,
    /// Model.
    pub model: String,
    /// The operator switched caching off.
    pub disabled: bool,
    /// What a configured custom route declares about caching for this model.
    pub declares: Option<bool>,
    /// For a mixture of agents: the route of its aggregator, once it is known.
    pub aggregator: Option<Box<Route>>,
}

/// What a route does with markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caching {
    /// It takes markers.
    pub cache: bool,
    /// In Anthropic's own message format, not in the chat-completions envelope.
    pub native: bool,
}

impl Caching {
    const NO: Self = Self { cache: false, native: false };
    const NATIVE: Self = Self { cache: true, native: true };
    const ENVELOPE: Self = Self { cache: true, native: false };
}

const MESSAGES: &str = "anthropic_messages";
const CHAT: &str = "chat_completions";
const ANTHROPIC_HOST: &str = "api.anthropic.com";
/// Providers that take markers for Qwen models.
pub(super) const PLAIN_QWEN_PROVIDERS: [&str; 4] = ["opencode", "opencode-go", "opencode-zen", "alibaba"];

/// Host of an address, lower case; empty when there is none.
pub fn host(url: &str) -> String {
    let rest = url.trim().split_once("://").map_or(url.trim(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let authority = authority.rsplit('@').next().unwrap_or("");
    let name = if authority.starts_with('[') {
        authority.split(']').next().unwrap_or("").trim_start_matches('[')
    } else {
        authority.split(':').next().unwrap_or("")
    };
    name.trim_end_matches('.').to_lowercase()
}

fn host_is(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|front| front.ends_with('.'))
}

fn has_token(text: &str, separators: &[char], token: &str) -> bool {
    text.to_lowercase().split(|c| separators.contains(&c)).any(|part| part == token)
}

/// True when the route goes through LiteLLM.
pub fn is_litellm(route: &Route) -> bool {
    has_token(&route.provider, &[':', '-', '_', '/'], "litellm")
        || has_token(&host(&route.base_url), &['.', '-'], "litellm")
}

fn is_minimax(provider: &str, host: &str) -> bool {
    matches!(provider, "minimax" | "minimax-cn")
        || host_is(host, "api.minimax.io")
        || host_is(host, "api.minimaxi.com")
}

fn is_kimi(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or("");
    bare.starts_with("kimi") || model.contains("kimi-")
}

/// Whether and how a route takes markers. The first rule that fits decides.
pub fn caching(route: &Route, knobs: &Breakpoints) -> Caching {
    if route.disabled {
        return Caching::NO;
    }
    let provider = route.provider.trim().to_lowercase();
    if provider == "moa" {
        return match &route.aggregator {
            Some(inner) if inner.provider.trim().to_lowercase() != "moa" => caching(inner, knobs),
            _ => Caching::NO,
        };
    }
    let host = host(&route.base_url);
    let model = route.model.to_lowercase();
    let messages = route.api_mode == MESSAGES;
    let claude = model.contains("claude");
    if knobs.custom_capability
        && let Some(declares) = route.declares
        && (messages || route.api_mode == CHAT)
    {
        return Caching { cache: declares, native: declares && messages };
    }
    let minimax = is_minimax(&provider, &host);
    if knobs.minimax_m3_unmarked && messages && minimax && model.contains("minimax-m3") {
        return Caching::NO;
    }
    if messages && (route.provider == "anthropic" || host == ANTHROPIC_HOST) {
        return Caching::NATIVE;
    }
    let portal = if knobs.portal_by_substring {
        route.base_url.to_lowercase().contains("nousresearch")
    } else {
        host_is(&host, "nousresearch.com")
    };
    let marked_family = claude || is_kimi(&model) || model.contains("moonshot");
    let envelope_wire = !messages || knobs.envelope_on_messages_wire;
    if (host_is(&host, "openrouter.ai") || portal) && marked_family && envelope_wire {
        return Caching::ENVELOPE;
    }
    if portal && model.contains("qwen") {
        return Caching::ENVELOPE;
    }
    if messages && claude {
        return Caching::NATIVE;
    }
    if knobs.litellm && route.api_mode == CHAT && claude && is_litellm(route) {
        return Caching::ENVELOPE;
    }
    if messages && minimax {
        return Caching::NATIVE;
    }
    if PLAIN_QWEN_PROVIDERS.contains(&provider.as_str()) && model.contains("qwen") {
        return Caching::ENVELOPE;
    }
    Caching::NO
}

/// True when the route takes markers on tools (Hermes agent/agent_runtime_helpers.py:1611).
pub fn takes_tool_markers(route: &Route) -> bool {
    !route.disabled && route.api_mode == MESSAGES && host(&route.base_url) == ANTHROPIC_HOST
}

/// True when parts of tool messages may carry markers (Hermes agent/prompt_caching.py:23).
pub fn takes_tool_part_markers(route: &Route) -> bool {
    !is_litellm(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_from_any_address() {
        assert_eq!(host("https://user@API.Anthropic.com:443/v1?x#y"), "api.anthropic.com");
        assert_eq!(host("openrouter.ai/api"), "openrouter.ai");
        assert_eq!(host("http://[::1]:80/"), "::1");
        assert_eq!(host(""), "");
    }

    #[test]
    fn a_declared_route_is_obeyed_and_a_mixture_asks_its_aggregator() {
        let knobs = Breakpoints::default();
        let declared = Route { api_mode: CHAT.to_owned(), declares: Some(true), ..Route::default() };
        assert_eq!(caching(&declared, &knobs), Caching::ENVELOPE);
        let moa = Route { provider: "moa".to_owned(), ..Route::default() };
        assert_eq!(caching(&moa, &knobs), Caching::NO);
        let moa = Route { aggregator: Some(Box::new(declared)), ..moa };
        assert_eq!(caching(&moa, &knobs), Caching::ENVELOPE);
    }
}

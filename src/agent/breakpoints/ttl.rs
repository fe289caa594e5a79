//! How long a marker asks the provider to keep what stands before it.

use serde_json::{Value, json};

use crate::agent::breakpoints::policy::PLAIN_QWEN_PROVIDERS;

/// The two tiers that exist on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Five minutes; written without a field.
    #[default]
    FiveMinutes,
    /// One hour.
    OneHour,
}

impl Tier {
    /// The tier of a setting; everything but `1h` is five minutes.
    pub fn of(setting: &str) -> Self {
        if setting == "1h" { Self::OneHour } else { Self::FiveMinutes }
    }

    /// The marker (Hermes agent/prompt_caching.py:102).
    pub fn marker(self) -> Value {
        match self {
            Self::FiveMinutes => json!({"type": "ephemeral"}),
            Self::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
        }
    }

    /// The tier that a marker asks for.
    pub fn of_marker(marker: &Value) -> Self {
        Self::of(marker.get("ttl").and_then(Value::as_str).unwrap_or(""))
    }

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }
}

/// True for a setting that switches caching off (Hermes agent/agent_init.py:684).
pub fn disables(setting: &Value) -> bool {
    match setting {
        Value::Null | Value::Bool(false) => true,
        Value::String(word) => {
            matches!(word.trim().to_lowercase().as_str(), "off" | "false" | "disabled" | "no" | "none")
        }
        _ => false,
    }
}

/// The tier that `auto` means for a source of turns (Hermes agent/prompt_caching.py:140).
pub fn auto(source: &str) -> Tier {
    match source.trim().to_lowercase().as_str() {
        "subagent" | "cron" | "oneshot" | "webhook" | "kanban" | "api" | "tool" | "batch" => {
            Tier::FiveMinutes
        }
        _ => Tier::OneHour,
    }
}

/// What the route keeps of a wished tier (Hermes agent/prompt_caching.py:149). Unknown wishes pass.
pub fn effective(wish: &str, provider: &str, model: &str) -> String {
    if wish.is_empty() {
        return "5m".to_owned();
    }
    if wish != "1h" {
        return wish.to_owned();
    }
    let provider = provider.trim().to_lowercase();
    let model = model.to_lowercase();
    let bare = model.rsplit('/').next().unwrap_or("");
    let keeps = if provider == "opencode-go" {
        bare != "minimax-m2.5"
    } else {
        !model.contains("qwen") && !PLAIN_QWEN_PROVIDERS.contains(&provider.as_str())
    };
    if keeps { "1h" } else { "5m" }.to_owned()
}

/// The tier of a request, or `None` when the operator switched caching off.
pub fn resolve(setting: &Value, source: &str, provider: &str, model: &str) -> Option<Tier> {
    if disables(setting) {
        return None;
    }
    let wish = match setting.as_str() {
        Some("auto") => auto(source).word(),
        Some("1h") => "1h",
        _ => "5m",
    };
    Some(Tier::of(&effective(wish, provider, model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_setting_means_five_minutes() {
        for setting in [json!("2h"), json!(0), json!(true)] {
            assert_eq!(resolve(&setting, "cli", "anthropic", "claude"), Some(Tier::FiveMinutes));
        }
        assert_eq!(resolve(&json!("auto"), "cli", "anthropic", "claude"), Some(Tier::OneHour));
        assert_eq!(resolve(&json!("off"), "cli", "anthropic", "claude"), None);
    }
}

//! Small decisions of the prompt: which models get extra rules, which hint a platform gets.

use serde_json::Value;

/// Models that are told to use their tools instead of describing it (Hermes agent/prompt_builder.py:365).
pub const ENFORCED_MODELS: &[&str] =
    &["gpt", "codex", "gemini", "gemma", "grok", "glm", "qwen", "deepseek", "muse"];
/// Models that are told to go on until the work is done (Hermes agent/prompt_builder.py:379).
pub const EXECUTION_MODELS: &[&str] =
    &["gpt", "codex", "grok", "deepseek", "kimi", "qwen", "glm", "minimax", "mimo", "mistral", "muse"];

/// Whether a rule is on for a model (Hermes agent/system_prompt.py:41).
///
/// `setting` may be a switch, a word, a list of model parts; anything else leaves it to `defaults`.
pub fn model_gate<S: AsRef<str>>(setting: &Value, model: &str, defaults: &[S]) -> bool {
    let model = model.to_lowercase();
    match setting {
        Value::Bool(on) => *on,
        Value::Array(parts) => {
            parts.iter().filter_map(Value::as_str).any(|part| model.contains(&part.to_lowercase()))
        }
        Value::String(word) => match word.trim().to_lowercase().as_str() {
            "true" | "always" | "yes" | "on" => true,
            "false" | "never" | "no" | "off" => false,
            _ => by_default(&model, defaults),
        },
        _ => by_default(&model, defaults),
    }
}

fn by_default<S: AsRef<str>>(model: &str, defaults: &[S]) -> bool {
    defaults.iter().any(|word| model.contains(word.as_ref()))
}

/// The hint of a platform after the operator's overrides (Hermes agent/system_prompt.py:55).
pub fn platform_hint(overrides: &Value, platform: &str, default: &str) -> String {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).map(str::trim).unwrap_or_default();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let (replace, append) = match overrides.get(platform) {
        Some(Value::Object(fields)) => (text(fields.get("replace")), text(fields.get("append"))),
        Some(word @ Value::String(_)) => (None, text(Some(word))),
        _ => return default.to_owned(),
    };
    if replace.is_none() && append.is_none() {
        return default.to_owned();
    }
    let base = replace.unwrap_or_else(|| default.to_owned());
    match append {
        Some(append) => format!("{base}\n\n{append}").trim().to_owned(),
        None => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_malformed_override_leaves_the_default() {
        for overrides in [json!({"cli": 3}), json!([]), json!({"cli": {"replace": 1}}), json!(null)] {
            assert_eq!(platform_hint(&overrides, "cli", " base "), " base ", "{overrides}");
        }
    }
}

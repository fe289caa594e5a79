//! Which skills are offered in a session. All gates work at offer time only; a hidden skill is still on disk.

use std::collections::BTreeMap;

use crate::agent::prompt::catalogue::Entry;
use crate::agent::prompt::front_matter::words;

/// What a session offers skills for. `None` means that nothing is known, and the gate stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer<'a> {
    /// Tools of the session.
    pub tools: Option<&'a [String]>,
    /// Tool sets of the session.
    pub toolsets: Option<&'a [String]>,
    /// Channel of the session.
    pub channel: Option<&'a str>,
    /// Names or directories that the operator switched off.
    pub disabled: &'a [String],
    /// Categories that are listed by names alone.
    pub demoted: &'a [String],
    /// Environments whose presence is known.
    pub environments: Option<&'a BTreeMap<String, bool>>,
    /// Applications that are there.
    pub apps: Option<&'a [String]>,
}

/// The manual of the harness; it cannot be switched off.
const MANUAL: &str = "hermes-agent";

fn has_any(known: &[String], wanted: &[String]) -> bool {
    wanted.iter().any(|word| known.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

fn has_all(known: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|word| known.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

impl Offer<'_> {
    /// Whether a skill is offered on an operating system (Hermes agent/prompt_builder.py:1291).
    pub fn offers(&self, entry: &Entry, system: &str) -> bool {
        let fields = &entry.fields;
        let off = |name: &str| name != MANUAL && self.disabled.iter().any(|disabled| disabled == name);
        if (off(&entry.name) || off(&entry.folder)) && entry.name != MANUAL {
            return false;
        }
        let systems = words(fields.get("platforms"));
        if !systems.is_empty() && !has_any(&[system.to_owned()], &systems) {
            return false;
        }
        let environments = words(fields.get("environments"));
        let present =
            |word: &String| self.environments.is_none_or(|known| known.get(word).copied().unwrap_or(true));
        if !environments.is_empty() && !environments.iter().any(present) {
            return false;
        }
        let apps = words(fields.get("requires_apps"));
        if self.apps.is_some_and(|known| !has_all(known, &apps)) {
            return false;
        }
        let harness = fields.get("metadata").and_then(|metadata| metadata.get("hermes"));
        let field = |key: &str| words(harness.and_then(|fields| fields.get(key)));
        let channels = field("session_platforms");
        if !channels.is_empty()
            && self
                .channel
                .is_some_and(|channel| !channel.is_empty() && !has_any(&[channel.to_owned()], &channels))
        {
            return false;
        }
        self.tools_allow(&field)
    }

    fn tools_allow(&self, field: &dyn Fn(&str) -> Vec<String>) -> bool {
        if self.tools.is_none() && self.toolsets.is_none() {
            return true;
        }
        let (tools, toolsets) = (self.tools.unwrap_or_default(), self.toolsets.unwrap_or_default());
        has_all(tools, &field("requires_tools"))
            && has_all(toolsets, &field("requires_toolsets"))
            && !has_any(tools, &field("fallback_for_tools"))
            && !has_any(toolsets, &field("fallback_for_toolsets"))
    }
}

/// True when a tool that can read skills is there; without one the prompt has no catalogue.
pub fn can_read_skills<S: AsRef<str>>(tools: &[S]) -> bool {
    tools.iter().any(|tool| matches!(tool.as_ref(), "skills_list" | "skill_view" | "skill_manage"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_closes_no_gate() {
        assert!(words(Some(&serde_json::json!([]))).is_empty());
        assert!(has_all(&[], &[]) && !has_any(&[], &[]));
        assert!(can_read_skills(&["skill_view"]) && !can_read_skills(&["terminal"]));
    }
}

//! What a child may use. Source: Hermes tools/delegate_tool_toolsets.py.

use std::collections::{BTreeMap, BTreeSet};

use super::Role;

/// Tools that no child gets; Hermes tools/delegate_tool_toolsets.py:14.
pub const BLOCKED: [&str; 5] = ["clarify", "cronjob_manage", "delegate_task", "memory", "send_message"];
/// What a child gets when nothing is known of its parent's tools; Hermes tools/delegate_tool_toolsets.py:77.
pub const DEFAULT_TOOLSETS: [&str; 3] = ["terminal", "file", "web"];
/// The toolset that lets an agent delegate.
const DELEGATION: &str = "delegation";
/// A toolset that no child gets, whatever is in it.
const KANBAN: &str = "kanban";
/// How the names of external toolsets begin.
const EXTERNAL: &str = "mcp-";

/// One toolset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toolset {
    /// Its own tools.
    pub tools: Vec<String>,
    /// Toolsets that it takes in.
    pub includes: Vec<String>,
}

/// Every known toolset, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue(pub BTreeMap<String, Toolset>);

impl Catalogue {
    /// Every tool of these toolsets, what they include among it; unknown names give nothing.
    pub fn resolve<'a>(&'a self, names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut open: Vec<&str> = names.into_iter().collect();
        let (mut seen, mut tools) = (BTreeSet::new(), BTreeSet::new());
        while let Some(name) = open.pop() {
            if let Some(set) = self.0.get(name).filter(|_| seen.insert(name)) {
                tools.extend(set.tools.iter().map(String::as_str));
                open.extend(set.includes.iter().map(String::as_str));
            }
        }
        tools
    }

    /// The toolsets whose own tools are all among `blocked`; one without tools is none of them.
    fn all_blocked<'a>(&'a self, blocked: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(|(_, set)| {
                !set.tools.is_empty() && set.tools.iter().all(|tool| blocked.contains(&tool.as_str()))
            })
            .map(|(name, _)| name.as_str())
    }
}

/// What is known of the parent and the call.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The parent's enabled toolsets; `None` for all tools.
    pub enabled: Option<Vec<String>>,
    /// Toolsets that the parent's loaded tools belong to, when it has no list.
    pub loaded: Vec<String>,
    /// The parent's disabled toolsets.
    pub disabled: Vec<String>,
    /// Toolsets that the call asks for; none inherits.
    pub requested: Vec<String>,
    /// Whether a narrower request keeps the parent's external toolsets.
    pub inherit_external: bool,
}

/// What a child gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChildTools {
    /// Enabled toolsets.
    pub enabled: BTreeSet<String>,
    /// Disabled toolsets; they win, tool by tool.
    pub disabled: BTreeSet<String>,
    /// The tools that are left.
    pub tools: BTreeSet<String>,
}

/// Derives a child's toolsets from its parent's.
///
/// Unknown names pass through when they are inherited and are dropped when they are asked for.
pub fn child_tools(asked: &Asked, role: Role, catalogue: &Catalogue) -> ChildTools {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let parent = match &asked.enabled {
        Some(list) => list.clone(),
        None if asked.loaded.is_empty() => owned(&DEFAULT_TOOLSETS),
        None => asked.loaded.clone(),
    };
    let mut enabled: BTreeSet<String> = if asked.requested.is_empty() {
        parent.iter().cloned().collect()
    } else {
        narrowed(asked, &parent, catalogue)
    };
    let unusable: BTreeSet<&str> = catalogue.all_blocked(&BLOCKED).collect();
    enabled.retain(|name| name != DELEGATION && name != KANBAN && !unusable.contains(name.as_str()));

    let orchestrator = role == Role::Orchestrator;
    let blocked: Vec<&str> =
        BLOCKED.into_iter().filter(|tool| !(orchestrator && *tool == "delegate_task")).collect();
    let mut disabled: BTreeSet<String> = asked.disabled.iter().cloned().collect();
    disabled.extend(catalogue.all_blocked(&blocked).map(str::to_owned));
    disabled.insert(KANBAN.to_owned());
    if orchestrator {
        enabled.insert(DELEGATION.to_owned());
        disabled.remove(DELEGATION);
    }
    let denied = catalogue.resolve(disabled.iter().map(String::as_str));
    let tools = catalogue
        .resolve(enabled.iter().map(String::as_str))
        .difference(&denied)
        .map(|tool| (*tool).to_owned())
        .collect();
    ChildTools { enabled, disabled, tools }
}

/// A requested list, cut to what the parent has: its own sets and every known set whose tools are all its own.
fn narrowed(asked: &Asked, parent: &[String], catalogue: &Catalogue) -> BTreeSet<String> {
    let tools = catalogue.resolve(parent.iter().map(String::as_str));
    let has = |name: &String| {
        parent.contains(name)
            || (catalogue.0.contains_key(name) && catalogue.resolve([name.as_str()]).is_subset(&tools))
    };
    let external = parent.iter().filter(|name| asked.inherit_external && name.starts_with(EXTERNAL));
    asked.requested.iter().filter(|name| has(name)).chain(external).cloned().collect()
}

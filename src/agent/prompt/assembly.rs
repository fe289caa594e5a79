//! The order of the parts, and the three tiers (Hermes agent/system_prompt.py:730).
//!
//! The tiers are ordered by how seldom they change: stable, context, volatile. The stable tier is the static prefix
//! that gets a cache marker of its own. Everything comes from the inputs; nothing is looked up here.

use serde_json::Value;

use crate::agent::prompt::date_line::{self, DateInputs};
use crate::agent::prompt::gates;
use crate::agent::prompt::identity::Environment;
use crate::agent::prompt::texts;
use crate::agent::prompt::{catalogue, workspace};
use crate::policy::{Prompt, PromptTier};

/// A part of the prompt, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// The home's SOUL file.
    Soul,
    /// The built-in identity.
    Identity,
    /// Where to look for help.
    Help,
    /// Finish what you start.
    Finishing,
    /// Independent calls together.
    ParallelCalls,
    /// What memory is for.
    MemoryGuidance,
    /// What session search is for.
    SearchGuidance,
    /// What skills are for.
    SkillsGuidance,
    /// What a board worker does.
    BoardGuidance,
    /// The user may speak while tools run.
    Steering,
    /// Act, do not describe.
    Enforcement,
    /// Extra text for Gemini and Gemma.
    Gemini,
    /// Go on until it is done.
    Execution,
    /// A provider's wrong model name put right.
    ModelName,
    /// Skills that are always loaded.
    PinnedSkills,
    /// How to work in a repository.
    CodingBrief,
    /// What follows the coding brief.
    CodingTrailer,
    /// What the environment probe found.
    Probe,
    /// Rules among bots.
    BotProtocol,
    /// How the platform shows text.
    PlatformHint,
    /// The caller's system text.
    SystemMessage,
    /// Context files of the project.
    ContextFiles,
    /// A look at the repository.
    Workspace,
    /// The skills catalogue.
    Catalogue,
    /// The memory block.
    Memory,
    /// The user's profile.
    UserProfile,
    /// Memory of an outside provider.
    ExternalMemory,
    /// A plugin's section.
    Plugin,
    /// The active profile.
    Profile,
    /// Date and trailer.
    Date,
    /// Host, home, working directory.
    Environment,
}

/// The active profile of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its home.
    pub home: String,
}

/// Everything that a prompt is made of. Absent texts leave their part out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptInputs<'a> {
    /// Text of the SOUL file, as it was loaded.
    pub soul: Option<&'a str>,
    /// Names of the tools.
    pub tools: &'a [String],
    /// The caller's system text.
    pub system_message: Option<&'a str>,
    /// Text of the project context.
    pub context_files: Option<&'a str>,
    /// A coding workspace.
    pub workspace: Option<workspace::Workspace<'a>>,
    /// Text of the skills catalogue.
    pub catalogue: Option<&'a str>,
    /// Names of skills that are always loaded, with their texts.
    pub pinned_skills: &'a [String],
    /// Memory block as its snapshot shows it.
    pub memory: Option<&'a str>,
    /// Profile of the user as its snapshot shows it.
    pub user_profile: Option<&'a str>,
    /// The memory store is on.
    pub memory_enabled: bool,
    /// The profile store is on.
    pub user_enabled: bool,
    /// Block of an outside memory provider.
    pub external_memory: Option<&'a str>,
    /// Sections of plugins.
    pub plugins: &'a [String],
    /// The active profile.
    pub profile: Option<Profile>,
    /// Date, zone, model, provider, platform.
    pub date: DateInputs<'a>,
    /// Where the agent runs.
    pub environment: Option<Environment>,
    /// What the environment probe found.
    pub probe: Option<&'a str>,
    /// Rules among bots.
    pub bot_protocol: Option<&'a str>,
    /// A provider's wrong model name put right.
    pub model_name: Option<&'a str>,
    /// Setting of the enforcement gate.
    pub enforcement: Value,
    /// Setting of the execution gate.
    pub execution: Value,
    /// The operator's hints for platforms.
    pub hint_overrides: Value,
}

/// One tier under construction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tier {
    /// Its parts in order.
    pub blocks: Vec<Block>,
    /// Its text.
    pub text: String,
}

/// A built prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuiltPrompt {
    /// What hardly ever changes; the static prefix.
    pub stable: Tier,
    /// What depends on the project.
    pub context: Tier,
    /// What depends on the session.
    pub volatile: Tier,
    /// All of it.
    pub text: String,
}

/// Joins parts by one blank line; blank ones are left out, the others stripped (Hermes agent/system_prompt.py:725).
pub fn join<S: AsRef<str>>(parts: &[Option<S>]) -> String {
    let parts: Vec<&str> =
        parts.iter().flatten().map(|part| part.as_ref().trim()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

impl Tier {
    fn push(&mut self, block: Block, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.blocks.push(block);
    }

    fn push_some(&mut self, block: Block, text: Option<&str>) {
        self.push(block, text.unwrap_or(""));
    }

    /// Several blocks that make one part, joined by single spaces.
    fn push_line(&mut self, blocks: &[(Block, &str)]) {
        let Some(((first, _), rest)) = blocks.split_first() else { return };
        let text = blocks.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
        self.push(*first, &text);
        self.blocks.extend(rest.iter().map(|(block, _)| *block));
    }
}

impl PromptInputs<'_> {
    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    fn guidance(&self) -> Vec<(Block, &'static str)> {
        let mut parts = Vec::new();
        if self.has("memory") && (self.memory_enabled || self.user_enabled) {
            parts.push((Block::MemoryGuidance, texts::MEMORY));
        }
        if self.has("session_search") {
            parts.push((Block::SearchGuidance, texts::SEARCH));
        }
        if self.has("skill_manage") {
            parts.push((Block::SkillsGuidance, texts::SKILLS));
        }
        if self.tools.iter().any(|tool| tool.starts_with("kanban_")) {
            parts.push((Block::BoardGuidance, texts::BOARD));
        }
        parts
    }

    /// The catalogue's text, if a tool can read skills.
    fn shown_catalogue(&self) -> Option<&str> {
        self.catalogue.filter(|_| catalogue::can_read_skills(self.tools))
    }

    fn stable(&self) -> Tier {
        let mut tier = Tier::default();
        match self.soul.filter(|soul| !soul.trim().is_empty()) {
            Some(soul) => tier.push(Block::Soul, soul),
            None => tier.push(Block::Identity, texts::IDENTITY),
        }
        let manual = self.has("skill_view")
            && self
                .shown_catalogue()
                .and_then(catalogue::names_in)
                .is_some_and(|names| names.contains("hermes-agent"));
        tier.push(Block::Help, if manual { texts::HELP_WITH_MANUAL } else { texts::HELP });
        let tools = !self.tools.is_empty();
        if tools {
            tier.push(Block::Finishing, texts::FINISHING);
            tier.push(Block::ParallelCalls, texts::PARALLEL);
        }
        tier.push_line(&self.guidance());
        if tools {
            tier.push(Block::Steering, texts::STEERING);
            self.push_model_rules(&mut tier);
        }
        tier.push_some(Block::ModelName, self.model_name);
        if !self.pinned_skills.is_empty() {
            let text = format!("{}\n\n{}", texts::PINNED, self.pinned_skills.join("\n\n"));
            tier.push(Block::PinnedSkills, &text);
        }
        if let Some(workspace) = &self.workspace {
            tier.push_some(Block::CodingBrief, workspace.brief);
        }
        tier
    }

    fn push_model_rules(&self, tier: &mut Tier) {
        let model = self.date.model;
        if gates::model_gate(&self.enforcement, model, gates::ENFORCED_MODELS) {
            tier.push(Block::Enforcement, texts::ENFORCEMENT);
            let lower = model.to_lowercase();
            if lower.contains("gemini") || lower.contains("gemma") {
                tier.push(Block::Gemini, texts::GEMINI);
            }
        }
        if gates::model_gate(&self.execution, model, gates::EXECUTION_MODELS) {
            tier.push(Block::Execution, texts::EXECUTION);
        }
    }

    /// What ends the stable tier, or the context tier when there is a look at the repository.
    fn push_ending(&self, tier: &mut Tier) {
        tier.push_some(Block::CodingTrailer, self.workspace.as_ref().and_then(|workspace| workspace.trailer));
        tier.push_some(Block::Probe, self.probe);
        tier.push_some(Block::BotProtocol, self.bot_protocol);
        let platform = self.date.platform;
        let hint = gates::platform_hint(&self.hint_overrides, platform, texts::platform_hint(platform));
        tier.push(Block::PlatformHint, &hint);
    }

    fn snapshot(&self) -> Option<&str> {
        let snapshot = self.workspace.as_ref().and_then(|workspace| workspace.snapshot);
        snapshot.filter(|text| !text.trim().is_empty())
    }

    fn context(&self) -> Tier {
        let mut tier = Tier::default();
        tier.push_some(Block::SystemMessage, self.system_message);
        tier.push_some(Block::ContextFiles, self.context_files);
        if let Some(snapshot) = self.snapshot() {
            tier.push(Block::Workspace, snapshot);
            self.push_ending(&mut tier);
        }
        tier
    }

    fn push_movable(&self, tier: &mut Tier, place: PromptTier, block: Block, knobs: &Prompt) {
        let (wanted, text) = match block {
            Block::Catalogue => (knobs.catalogue_place, self.shown_catalogue().map(str::to_owned)),
            Block::Profile => (knobs.profile_place, self.profile.as_ref().map(profile_line)),
            _ => (knobs.environment_place, self.environment.as_ref().map(Environment::text)),
        };
        if wanted == place {
            tier.push_some(block, text.as_deref());
        }
    }
}

fn profile_line(profile: &Profile) -> String {
    format!("Active profile: {} (home {})", profile.name, profile.home)
}

/// Builds a prompt (Hermes agent/system_prompt.py:796).
pub fn build(inputs: &PromptInputs<'_>, knobs: &Prompt) -> BuiltPrompt {
    let mut stable = inputs.stable();
    for block in [Block::Catalogue, Block::Profile, Block::Environment] {
        inputs.push_movable(&mut stable, PromptTier::Stable, block, knobs);
    }
    if inputs.snapshot().is_none() {
        inputs.push_ending(&mut stable);
    }
    let context = inputs.context();
    let mut volatile = Tier::default();
    inputs.push_movable(&mut volatile, PromptTier::Volatile, Block::Catalogue, knobs);
    volatile.push_some(Block::Memory, inputs.memory.filter(|_| inputs.memory_enabled));
    volatile.push_some(Block::UserProfile, inputs.user_profile.filter(|_| inputs.user_enabled));
    volatile.push_some(Block::ExternalMemory, inputs.external_memory);
    for section in inputs.plugins {
        volatile.push(Block::Plugin, section);
    }
    inputs.push_movable(&mut volatile, PromptTier::Volatile, Block::Profile, knobs);
    volatile.push(Block::Date, &date_line::date_line(inputs.date, knobs).text());
    inputs.push_movable(&mut volatile, PromptTier::Volatile, Block::Environment, knobs);
    let text = join(&[Some(&stable.text), Some(&context.text), Some(&volatile.text)]);
    BuiltPrompt { stable, context, volatile, text }
}

/// A prompt with text for one request alone, which is neither kept nor stored (Hermes agent/turn_context.py:1344).
pub fn with_ephemeral(prompt: &str, ephemeral: Option<&str>) -> String {
    match ephemeral.filter(|text| !text.is_empty()) {
        Some(text) => format!("{prompt}\n\n{text}").trim().to_owned(),
        None => prompt.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_revision_keeps_the_catalogue_in_the_stable_tier() {
        let tools = ["skill_view".to_owned()];
        let inputs = PromptInputs { tools: &tools, catalogue: Some("C"), ..PromptInputs::default() };
        let knobs = Prompt { catalogue_place: PromptTier::Stable, ..Prompt::default() };
        assert!(build(&inputs, &knobs).stable.blocks.contains(&Block::Catalogue));
        assert_eq!(build(&inputs, &Prompt::default()).volatile.blocks[0], Block::Catalogue);
    }

    #[test]
    fn the_text_is_the_tiers_joined_and_begins_with_the_static_part() {
        let inputs =
            PromptInputs { system_message: Some(" s "), memory: Some("m"), ..PromptInputs::default() };
        let built = build(&PromptInputs { memory_enabled: true, ..inputs }, &Prompt::default());
        assert!(built.text.starts_with(&built.stable.text));
        assert_eq!(built.text, format!("{}\n\n{}\n\n{}", built.stable.text, "s", built.volatile.text));
    }

    #[test]
    fn ephemeral_text_is_stripped_with_the_whole() {
        assert_eq!(with_ephemeral("p", Some(" e ")), "p\n\n e");
        assert_eq!(with_ephemeral(" p ", None), " p ");
    }
}

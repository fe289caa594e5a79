//! One agent object: a conversation with everything that belongs to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::compress::carry::{Carried, Todo};
use crate::agent::compress::{Compressor, ModelFacts, State};
use crate::agent::memory::MemoryStore;
use crate::agent::prompt::Catalogue;
use crate::agent::prompt::index_delta::IndexDelta;
use crate::agent::prompt::subdir_hints::SubdirHints;
use crate::agent::skills::{Origin as WriterOrigin, Writer};
use crate::agent::{tools, turn};
use crate::ledger::{Conversation, Lane, Name};
use crate::policy::{Policy, WhitelistScope};
use crate::store::compressor::CompressorNotes;
use crate::wire::Segment;
use crate::wire::tools::SPECS;

/// On whose behalf a session writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user's own turn.
    Foreground,
    /// A background review.
    Review,
    /// A scheduled run.
    Cron,
    /// A delegated child.
    Child,
    /// The agent that merges skills for the curator.
    Curator,
}

impl Origin {
    /// The platform of such a run, where it is not the one that the user speaks through.
    pub fn platform(self) -> Option<&'static str> {
        match self {
            Self::Foreground | Self::Review => None,
            Self::Cron => Some("cron"),
            Self::Child => Some("subagent"),
            Self::Curator => Some("curator"),
        }
    }

    /// True when the prompt shows the context files of the project. A child is told of them in its brief.
    pub fn reads_project(self) -> bool {
        matches!(self, Self::Foreground | Self::Review)
    }

    /// The word in the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Review => "review",
            Self::Cron => "cron",
            Self::Child => "child",
            Self::Curator => "curator",
        }
    }
}

/// What a run may dispatch. Looked up where tools are dispatched, whatever the tool table shows.
#[derive(Debug, Clone, Default)]
pub struct Permits {
    /// Only these tools, when there is a list.
    whitelist: Option<BTreeSet<String>>,
    /// The same list as a faulty harness keeps it: by the thread that set it.
    by_thread: BTreeMap<&'static str, BTreeSet<String>>,
    /// Never these tools.
    denied: BTreeSet<String>,
}

/// The thread that a run was started on.
const HOME_THREAD: &str = "run";
/// The thread that single calls are handed to.
const WORKER_THREAD: &str = "worker";

impl Permits {
    /// A run that may dispatch only these tools.
    pub fn only(tools: impl IntoIterator<Item = String>, scope: WhitelistScope) -> Self {
        let tools: BTreeSet<String> = tools.into_iter().collect();
        match scope {
            WhitelistScope::Run => Self { whitelist: Some(tools), ..Self::default() },
            WhitelistScope::Thread => {
                Self { by_thread: BTreeMap::from([(HOME_THREAD, tools)]), ..Self::default() }
            }
            WhitelistScope::Off => Self::default(),
        }
    }

    /// A run that may dispatch everything but these tools.
    pub fn without(tools: impl IntoIterator<Item = String>) -> Self {
        Self { denied: tools.into_iter().collect(), ..Self::default() }
    }

    /// Who refuses a tool, if anybody does: `whitelist` or `toolset`.
    ///
    /// Calls run on a worker thread, as in the real agent; a list that is looked up by thread is not seen there.
    pub fn refuses(&self, tool: &str) -> Option<&'static str> {
        if self.denied.contains(tool) {
            return Some("toolset");
        }
        let list = self.whitelist.as_ref().or_else(|| self.by_thread.get(WORKER_THREAD));
        list.filter(|list| !list.contains(tool)).map(|_| "whitelist")
    }

    /// The tools that may be dispatched out of `table`.
    pub fn allowed<'a>(&'a self, table: &'a [String]) -> impl Iterator<Item = &'a String> {
        table.iter().filter(|tool| self.refuses(tool).is_none())
    }
}

/// One agent object.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its name.
    pub name: Name,
    /// What approvals are kept under: the name that it was opened by, whatever a rotation calls it.
    pub approved_as: Name,
    /// Who asks the model.
    pub lane: Lane,
    /// Which of its kind in the session: reviews are numbered.
    pub instance: u64,
    /// 0 for a root.
    pub depth: u64,
    /// True when its rows go to the store.
    pub persisted: bool,
    /// On whose behalf it writes.
    pub origin: Origin,
    /// The conversation and its counters.
    pub agent: turn::Agent,
    /// Names of the tools in the table.
    pub tools: Vec<String>,
    /// The tool table as it is sent.
    pub table: Vec<Segment>,
    /// The system prompt as it is sent.
    pub system: String,
    /// What follows it in every request and is not stored: what a child was told.
    pub brief: String,
    /// Its stable part, when known.
    pub static_prefix: Option<String>,
    /// The catalogue as its prompt shows it; `None` before the first prompt.
    pub catalogue: Option<Catalogue>,
    /// What it was told of the skills since its prompt was made.
    pub index_delta: IndexDelta,
    /// Directories whose context files it was given; `None` before the first prompt.
    pub hints: Option<SubdirHints>,
    /// What it may dispatch.
    pub permits: Permits,
    /// Where it was opened, from the workspace's root.
    pub directory: String,
    /// Where its answers go, `platform:chat`; to the screen before the user when there is none.
    pub deliver_to: Option<String>,
    /// Skills that were loaded in this turn, each with whether a command failed afterwards.
    pub followed: BTreeMap<String, bool>,
    /// Its view of memory.
    pub memory: MemoryStore,
    /// Its compressor.
    pub compressor: Compressor,
    /// What the store knows of the compressor's state.
    pub compressor_kept: CompressorNotes,
    /// Its todo list.
    pub todos: Vec<Todo>,
    /// What the last compaction left for the next message.
    pub carried: Carried,
    /// Files that this run has read.
    pub writer: Writer,
    /// The planned break that the next request is; empty for none.
    pub planned: Name,
    /// The conversation that this one was copied from.
    pub copied_from: Option<Conversation>,
    /// When it began.
    pub started_at: crate::world::Millis,
    /// When its last turn ended.
    pub rests_since: crate::world::Millis,
    /// Turns whose answer reached the user.
    pub delivered: u64,
    /// Model that answers it.
    pub model: String,
    /// Provider of that model.
    pub provider: String,
    /// Prompt tokens that its requests may add up to, if there is a limit.
    pub input_budget: Option<u64>,
    /// Prompt tokens of its requests so far.
    pub input_used: u64,
    /// Tokens of its replies so far.
    pub output_used: u64,
    /// Children that run when the turn is over.
    pub pending: Vec<super::delegating::Pending>,
    /// Children that the turn has spawned so far.
    pub spawned: u64,
    /// True when no review follows its turns.
    pub skip_review: bool,
    /// Its place for one review at a time.
    pub slot: crate::agent::review::Slot,
    /// Limit of iterations of its own, if it has one.
    pub iterations_max: Option<u64>,
    /// Text that the user gives while a tool of this turn runs.
    pub steer: Option<String>,
    /// Whether the last compaction attempt of this turn found nothing to do.
    pub attempts: u64,
}

impl Session {
    /// A session with the full tool table.
    pub fn new(
        name: Name,
        lane: Lane,
        policy: &Policy,
        memory: MemoryStore,
        now: crate::world::Millis,
    ) -> Self {
        let tools: Vec<String> = SPECS.iter().map(|spec| spec.name.to_owned()).collect();
        let model = ModelFacts {
            name: policy.prompt.model.clone(),
            provider: policy.prompt.provider.clone(),
            window: policy.compress.window,
            ..ModelFacts::default()
        };
        Self {
            approved_as: name.clone(),
            name,
            lane,
            instance: 0,
            depth: 0,
            persisted: true,
            origin: Origin::Foreground,
            agent: turn::Agent {
                counts_iterations: policy.review.skill_interval > 0,
                ..turn::Agent::default()
            },
            table: tools::table(&tools, policy.memory.edit),
            tools,
            system: String::new(),
            brief: String::new(),
            static_prefix: None,
            catalogue: None,
            index_delta: IndexDelta::default(),
            hints: None,
            permits: Permits::default(),
            directory: String::new(),
            deliver_to: None,
            followed: BTreeMap::new(),
            memory,
            compressor: Compressor::new(&policy.compress, model, State::default()),
            compressor_kept: CompressorNotes::default(),
            todos: Vec::new(),
            carried: Carried::default(),
            writer: Writer::new(WriterOrigin::Foreground),
            planned: Name::from(""),
            copied_from: None,
            started_at: now,
            rests_since: now,
            delivered: 0,
            model: policy.prompt.model.clone(),
            provider: policy.prompt.provider.clone(),
            input_budget: None,
            input_used: 0,
            output_used: 0,
            pending: Vec::new(),
            spawned: 0,
            skip_review: false,
            slot: crate::agent::review::Slot::new(),
            iterations_max: None,
            steer: None,
            attempts: 0,
        }
    }

    /// What it speaks through; `user` is the platform of the user.
    pub fn platform<'a>(&self, user: &'a str) -> &'a str {
        self.origin.platform().unwrap_or(user)
    }

    /// A prompt as it is sent, from how it is stored.
    pub fn with_brief(&self, stored: &str) -> String {
        match self.brief.as_str() {
            "" => stored.to_owned(),
            brief => format!("{stored}\n\n{brief}"),
        }
    }

    /// The system prompt as it is stored.
    pub fn own_prompt(&self) -> &str {
        let told = self.with_brief("");
        self.system.strip_suffix(told.as_str()).unwrap_or(&self.system)
    }

    /// True when the tool is in the table.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    /// Leaves only these tools in the table.
    pub fn keep_tools(&mut self, keep: impl Fn(&str) -> bool) {
        (self.tools, self.table) = std::mem::take(&mut self.tools)
            .into_iter()
            .zip(std::mem::take(&mut self.table))
            .filter(|(tool, _)| keep(tool))
            .unzip();
        self.agent.counts_iterations &= self.has_tool("skill_manage");
    }

    /// The tool server lists its tools in another order.
    pub fn rotate_tools(&mut self) {
        if !self.tools.is_empty() {
            self.tools.rotate_left(1);
            self.table.rotate_left(1);
        }
    }

    /// How the recorder knows this conversation.
    pub fn conversation(&self) -> Conversation {
        (self.name.clone(), self.lane, self.instance)
    }
}

//! What a scenario is made of.
//!
//! An act is written under the key that names it: `[[act]]` with `turn.say = "…"` or `wait.days = 1`.

use serde::Deserialize;

use super::reply::ReplySpec;

/// Declares tables of a scenario file: unknown keys are refused.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$attr])* pub $field: $kind,)* }
    )*};
}
pub(super) use tables;

tables! {
    /// A skill that is there at the start.
    SkillSpec {
        /// Name of its directory and in its front matter.
        name: String,
        /// What the catalogue shows.
        description: String,
        /// The text below the front matter.
        #[serde(default)]
        body: String,
        /// Category directory; empty for none.
        #[serde(default)]
        category: String,
        /// `user` or `agent`.
        #[serde(default = "user")]
        created_by: String,
        /// Day of the run on which it was made.
        #[serde(default)]
        created_day: i64,
        /// How often it was used.
        #[serde(default)]
        uses: u64,
        /// Day of its last use.
        used_day: Option<i64>,
        /// True when the user pinned it.
        #[serde(default)]
        pinned: bool,
    }

    /// A memory entry that is there at the start.
    MemorySpec {
        /// `memory` or `user`.
        target: String,
        /// The entry.
        text: String,
    }

    /// A file of the workspace.
    FileSpec {
        /// Path from the workspace's root; with a leading slash it lies elsewhere on the machine.
        path: String,
        /// Content; repeated `times` times.
        text: String,
        /// How often the text is repeated.
        #[serde(default = "one")]
        times: u64,
        /// How many such files there are; `{i}` in path and text counts from 0.
        #[serde(default = "one")]
        count: u64,
    }

    /// A command that the terminal knows.
    CommandSpec {
        /// The command, with `*` for any text.
        run: String,
        /// What it prints.
        #[serde(default)]
        prints: String,
        /// How often the print is repeated.
        #[serde(default = "one")]
        times: u64,
        /// Its exit code.
        #[serde(default)]
        exit: i64,
        /// A file of the workspace that it writes, with what it printed.
        writes: Option<String>,
        /// A file of the workspace to which it adds what it printed.
        appends: Option<String>,
        /// A file of the workspace whose content it prints after its own text.
        shows: Option<String>,
        /// True when the answer never arrives, though the command took effect.
        #[serde(default)]
        times_out: bool,
        /// True when it never ends and has no effect.
        #[serde(default)]
        endless: bool,
    }

    /// A scheduled job at the start.
    JobSpec {
        /// Name.
        name: String,
        /// When it runs, as a person would say it.
        schedule: String,
        /// What the agent is told.
        prompt: String,
        /// Skills that it is given with the prompt.
        #[serde(default)]
        skills: Vec<String>,
        /// Where its text goes: `platform:chat`; nowhere but into its file when absent.
        deliver: Option<String>,
    }

    /// What the model does when a request shows something.
    RuleSpec {
        /// The lane that it plays in; `main` when absent.
        #[serde(default = "main_lane")]
        lane: String,
        /// All conditions that are given must hold.
        #[serde(default)]
        when: WhenSpec,
        /// The reply.
        reply: Option<ReplySpec>,
        /// View this skill once, then do the steps that its body lists as `1. \`command\``.
        follow_skill: Option<String>,
        /// Find a skill by its catalogue line, which must share so many words with the user's text; then follow it.
        pick_skill: Option<u64>,
        /// What a model tries that knows no way: commands in order, each once, until all were tried.
        #[serde(default)]
        attempts: Vec<AttemptSpec>,
        /// Write a skill from the commands of this session that worked.
        distil: Option<DistilSpec>,
        /// A skill that comes with a warning about its own record is not followed.
        #[serde(default)]
        heeds_notes: bool,
        /// How often the rule may answer; without limit when absent.
        times: Option<u64>,
    }

    /// A command that is tried.
    AttemptSpec {
        /// The command.
        run: String,
        /// Not tried where the system prompt contains this.
        unless: Option<String>,
    }

    /// A skill that a review writes from what worked.
    DistilSpec {
        /// Name of the skill.
        name: String,
        /// Its description, the one line by which it is found.
        description: String,
        /// Only the newest turn whose user text contains this is looked at.
        #[serde(default)]
        cue: String,
        /// Commands that are no step, with `*` for any text.
        #[serde(default)]
        drops: Vec<String>,
    }

    /// A session begins, or is opened again.
    OpenAct {
        /// Name of the session.
        name: String,
        /// True when it is taken up from the store by a new process.
        #[serde(default)]
        resume: bool,
        /// The session that it continues.
        parent: Option<String>,
        /// Where it is opened, from the workspace's root.
        #[serde(default)]
        directory: String,
        /// The tools that it gets; all when absent.
        tools: Option<Vec<String>>,
    }

    /// A user turn.
    TurnAct {
        /// The session; the open one when absent.
        session: Option<String>,
        /// What the user says.
        #[serde(default)]
        say: String,
        /// What the user says in turns one after the other, instead of `say`.
        #[serde(default)]
        say_each: Vec<String>,
        /// How often the turn is played, `{i}` in texts counting from 0.
        #[serde(default = "one")]
        times: u64,
        /// What the model says in the main lane, in order.
        #[serde(default)]
        replies: Vec<ReplySpec>,
        /// What it says in the background review that follows.
        #[serde(default)]
        review: Vec<ReplySpec>,
        /// What it says when a compaction asks for a summary.
        #[serde(default)]
        summary: Vec<ReplySpec>,
        /// What a delegated child says.
        #[serde(default)]
        child: Vec<ReplySpec>,
        /// What the reviewer of commands says.
        #[serde(default)]
        approver: Vec<ReplySpec>,
        /// What it says when an agent outside the lab asks for a title; the runtime asks for none.
        #[serde(default)]
        title: Vec<ReplySpec>,
        /// The provider of tools reconnects before the turn, and lists its tools in another order.
        #[serde(default)]
        reconnect: bool,
        /// Where the process is killed: after so many ledger events of this turn.
        crash_after: Option<u64>,
        /// Text that the user gives while the n-th tool of the turn runs.
        steer: Option<String>,
    }

    /// Time passes.
    WaitAct {
        /// Days.
        #[serde(default)]
        days: i64,
        /// Hours.
        #[serde(default)]
        hours: i64,
        /// Minutes.
        #[serde(default)]
        minutes: i64,
        /// Seconds.
        #[serde(default)]
        seconds: i64,
    }

    /// Memory is written outside the conversation.
    RememberAct {
        /// `memory` or `user`.
        target: String,
        /// The entry; `{i}` counts from 0.
        add: String,
        /// Pads the entry with dots to exactly so many characters.
        chars: Option<u64>,
        /// How often, each in a session of its own.
        #[serde(default = "one")]
        times: u64,
        /// A fresh, empty home is used from here on.
        #[serde(default)]
        fresh_home: bool,
    }

    /// The sessions are searched.
    SearchAct {
        /// The query.
        query: String,
        /// How many conversations.
        #[serde(default = "three")]
        limit: u64,
        /// The session that asks; none when absent.
        session: Option<String>,
    }

    /// The curator makes a pass.
    CuratorAct {
        /// Day of the run to jump to first.
        day: Option<i64>,
        /// What the agent says that merges narrow skills, where `curator.consolidate` is on.
        #[serde(default)]
        curator: Vec<ReplySpec>,
        /// Skills to restore afterwards.
        #[serde(default)]
        restore: Vec<String>,
    }

    /// A skill appears from outside.
    AddSkillAct {
        /// The skill.
        skill: SkillSpec,
    }

    /// The user loads a skill by hand, outside a turn.
    ViewSkillAct {
        /// Its name.
        name: String,
    }

    /// A child is asked for, outside a turn.
    DelegateAct {
        /// Depth of the asking agent.
        #[serde(default)]
        depth: u64,
        /// What the child is to do.
        goal: String,
        /// Tools that it asks for.
        #[serde(default)]
        tools: Vec<String>,
        /// What the child says.
        #[serde(default)]
        child: Vec<ReplySpec>,
    }

    /// The scheduler ticks.
    TickAct {
        /// Schedulers that tick at once.
        #[serde(default = "one")]
        schedulers: u64,
        /// How long they keep ticking, one tick every `cron.tick_seconds`; 0 for a single tick.
        #[serde(default)]
        minutes: u64,
        /// What the model says in the scheduled run.
        #[serde(default)]
        cron: Vec<ReplySpec>,
    }

    /// A session ends.
    EndAct {
        /// The session; the open one when absent.
        session: Option<String>,
        /// The reason that is stored.
        #[serde(default = "new_session")]
        reason: String,
    }
}

impl TurnAct {
    /// What the user says, in turns one after the other, each with its number from 0.
    pub fn said(&self) -> Vec<(u64, String)> {
        let filled = |index: u64, say: &str| (index, say.replace("{i}", &index.to_string()));
        if self.say_each.is_empty() {
            return (0..self.times).map(|index| filled(index, &self.say)).collect();
        }
        (0u64..).zip(&self.say_each).map(|(index, say)| filled(index, say)).collect()
    }
}

/// Conditions on a request.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhenSpec {
    /// The system prompt contains this.
    pub system_has: Option<String>,
    /// The system prompt does not contain this.
    pub system_lacks: Option<String>,
    /// The newest user row contains this.
    pub user_has: Option<String>,
    /// The newest row contains this.
    pub last_has: Option<String>,
    /// The newest row is of this role.
    pub last_role: Option<String>,
    /// Some row contains this, in its text or in its calls.
    pub history_has: Option<String>,
    /// No row contains this, neither in its text nor in its calls.
    pub history_lacks: Option<String>,
    /// A tool of this name is in the table.
    pub tool: Option<String>,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// A session begins, or is opened again.
    Open(OpenAct),
    /// A user turn.
    Turn(TurnAct),
    /// Time passes.
    Wait(WaitAct),
    /// Memory is written outside the conversation.
    Remember(RememberAct),
    /// The sessions are searched.
    Search(SearchAct),
    /// The curator makes a pass.
    Curator(CuratorAct),
    /// A skill appears from outside.
    AddSkill(AddSkillAct),
    /// The user loads a skill by hand.
    ViewSkill(ViewSkillAct),
    /// A child is asked for, outside a turn.
    Delegate(DelegateAct),
    /// The scheduler ticks.
    Tick(TickAct),
    /// A session ends.
    End(EndAct),
}

fn user() -> String {
    "user".to_owned()
}

fn main_lane() -> String {
    "main".to_owned()
}

fn new_session() -> String {
    "new_session".to_owned()
}

fn one() -> u64 {
    1
}

fn three() -> u64 {
    3
}

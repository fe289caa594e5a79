//! The whole runtime: sessions, prompt, tools, learning, compaction, delegation, schedules, over one world.
//!
//! A [`Harness`] owns everything that a harness process owns, and records what happens in one ledger. It is driven
//! by acts: open a session, let the user speak, let time pass, search, let the curator look. Who drives it (a
//! scenario, an exploration, a live provider) is not its business.
//!
//! Never: a second path to a tool beside `dispatch`, a row that is sent before it is stored, a change of a prompt
//! that is not declared.

mod booking;
mod compacting;
mod cron_run;
mod curating;
mod delegating;
mod delivering;
mod dispatch;
mod host;
mod judging;
mod learning;
mod lifecycle;
mod maintaining;
mod prompting;
mod remembering;
mod run_tool;
mod searching;
mod sending;
mod session;
mod skill_answers;

use std::collections::BTreeMap;

use crate::agent::breakpoints::Placer;
use crate::agent::compress::{estimate, handoff};
use crate::agent::cron::Scheduler;
use crate::agent::guard::Guard;
use crate::agent::memory::{MemoryStore, Target};
use crate::agent::prompt::Catalogue;
use crate::agent::review::IdleQueue;
use crate::agent::transcript::Measure;
use crate::cache::PrefixCache;
use crate::ledger::{Fault, Header, Ledger, MemoryState, Name, Recorder, TimePassed, What};
use crate::model::{Model, ModelError};
use crate::policy::{Policy, SizeUnit};
use crate::store::retry::{self, WriteKind};
use crate::store::{Store, StoreError};
use crate::world::faults::FaultyFiles;
use crate::world::streams::Stream;
use crate::world::{Clock, Faults, Files, MemFiles, Millis, Streams, Terminal};

pub use lifecycle::Opening;
pub use session::{Origin, Permits, Session};

/// Why an act could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The scenario's script does not fit.
    #[error("{0}")]
    Script(String),
    /// There is no such session.
    #[error("unknown session `{0}`")]
    UnknownSession(String),
    /// The store failed where no fault was scheduled.
    #[error("the session store failed: {0}")]
    Store(#[from] StoreError),
    /// A file of the home could not be read or written.
    #[error("the home failed: {0}")]
    Files(#[from] crate::world::FileError),
    /// The run was cut off at the ledger event that the scenario names.
    #[error("the process was killed")]
    Killed,
}

impl From<ModelError> for HarnessError {
    fn from(error: ModelError) -> Self {
        Self::Script(error.to_string())
    }
}

/// What a harness is made of.
pub struct Parts {
    /// Knobs.
    pub policy: Policy,
    /// Virtual time.
    pub clock: Clock,
    /// Randomness.
    pub streams: Streams,
    /// The home: memories, skills, jobs.
    pub home: Box<dyn Files>,
    /// The session store.
    pub store: Store,
    /// The provider's cache.
    pub cache: Box<dyn PrefixCache>,
    /// The shell.
    pub terminal: Terminal,
    /// First line of the ledger.
    pub header: Header,
    /// What goes wrong, and when.
    pub faults: Faults,
}

/// A running harness.
pub struct Harness<M> {
    policy: Policy,
    clock: Clock,
    /// Draws how long replies take.
    reply_times: Stream,
    /// Draws how long a writer sleeps that meets a lock.
    lock_sleeps: Stream,
    home: Box<dyn Files>,
    workspace: MemFiles,
    /// Files of the machine outside the workspace.
    machine: MemFiles,
    terminal: Terminal,
    store: Store,
    cache: Box<dyn PrefixCache>,
    recorder: Recorder,
    /// Says where requests carry cache markers.
    placer: Placer,
    /// Who answers.
    pub model: M,
    sessions: BTreeMap<Name, Session>,
    open: Option<Name>,
    /// Names that come up again and again.
    world: Name,
    reviews: u64,
    children: u64,
    /// Processes that scan for due jobs.
    schedulers: Vec<Scheduler>,
    cron_runs: u64,
    consolidations: u64,
    /// Order in which the tool server lists its tools.
    tool_order_seed: u64,
    faults: Faults,
    /// Tasks of a delegation that have not begun, innermost delegation last.
    waiting_children: Vec<delegating::Batch>,
    /// Reviews that wait for a local model server.
    waiting_reviews: IdleQueue<learning::Waiting>,
    /// A skill changed since the last prompt was built.
    skills_changed: bool,
    guard: Guard,
    /// What requests used and the store does not know yet.
    unbooked: booking::Unbooked,
    /// The catalogue that this process built first.
    first_catalogue: Option<Catalogue>,
}

impl<M: Model> Harness<M> {
    /// A harness over these parts; nothing has happened yet.
    pub fn new(parts: Parts, model: M) -> Self {
        let mut recorder = Recorder::new(parts.header);
        recorder.set_now(parts.clock.now());
        let guard = Guard::new(&parts.policy.guard);
        let waiting_reviews = IdleQueue::new(learning::max_age(&parts.policy.review));
        Self {
            policy: parts.policy,
            clock: parts.clock,
            reply_times: parts.streams.named("reply-times"),
            lock_sleeps: parts.streams.named("lock-sleeps"),
            home: Box::new(FaultyFiles::new(parts.home, parts.faults.clone())),
            workspace: MemFiles::new(),
            machine: MemFiles::new(),
            first_catalogue: None,
            terminal: parts.terminal,
            // Only the compressor knows how a handoff is told from what a person wrote beside it.
            store: parts.store.with_handoff_split(handoff::split).with_faults(parts.faults.clone()),
            cache: parts.cache,
            recorder,
            placer: Placer::default(),
            model,
            sessions: BTreeMap::new(),
            open: None,
            world: Name::from(""),
            reviews: 0,
            children: 0,
            schedulers: Vec::new(),
            cron_runs: 0,
            consolidations: 0,
            tool_order_seed: 0,
            faults: parts.faults,
            waiting_children: Vec::new(),
            skills_changed: false,
            waiting_reviews,
            guard,
            unbooked: booking::Unbooked::default(),
        }
    }

    /// The knobs.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The present instant.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The home.
    pub fn home(&mut self) -> &mut dyn Files {
        &mut *self.home
    }

    /// The workspace.
    pub fn workspace(&mut self) -> &mut MemFiles {
        &mut self.workspace
    }

    /// What lies on the machine outside the workspace, from its root.
    pub fn machine(&mut self) -> &mut MemFiles {
        &mut self.machine
    }

    /// The session store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The ledger so far.
    pub fn ledger(&self) -> &Ledger {
        self.recorder.ledger()
    }

    /// The session that acts without a name go to.
    pub fn open_session(&self) -> Option<&Name> {
        self.open.as_ref()
    }

    /// How sizes are measured.
    pub fn measure(&self) -> Measure {
        match self.policy.compress.unit {
            SizeUnit::Tokens => estimate::text_tokens,
            SizeUnit::Characters => estimate::chars,
        }
    }

    /// A session, while its agent object exists.
    pub fn session(&self, name: &str) -> Option<&Session> {
        self.sessions.get(name)
    }

    /// The same, to change what it offers before it speaks.
    pub fn session_mut(&mut self, name: &str) -> Option<&mut Session> {
        self.sessions.get_mut(name)
    }

    /// Lets time pass, or sets the clock back; a review that waits begins when its moment comes.
    ///
    /// # Errors
    /// When the script has no answer for such a review.
    pub fn wait(&mut self, by: Millis) -> Result<(), HarnessError> {
        let end = self.clock.now().saturating_add(by);
        while let Some(due) = self.waiting_reviews.due().filter(|due| *due <= end) {
            self.advance_to(due.max(self.clock.now()));
            self.run_waiting_reviews()?;
        }
        // A review takes time of its own; only a clock that is set back goes back.
        self.advance_to(if by < 0 { end } else { end.max(self.clock.now()) });
        let world = self.world.clone();
        self.event(&world, What::TimePassed(TimePassed { by_ms: by }));
        Ok(())
    }

    fn advance_to(&mut self, moment: Millis) {
        self.clock.set(moment);
        self.recorder.set_now(self.clock.now());
    }

    /// True when a review waits for a quiet moment.
    pub fn has_waiting_reviews(&self) -> bool {
        !self.waiting_reviews.is_empty()
    }

    /// True when one of this session does.
    pub fn review_waits(&self, session: &str) -> bool {
        self.waiting_reviews.holds(session)
    }

    /// Kills the process after so many more ledger events.
    pub fn kill_after(&mut self, events: u64) {
        self.faults.kill_after(events);
    }

    /// The schedule of faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The clock jumps, forwards or back, without the harness being told.
    pub fn clock_jumps(&mut self, by: Millis) {
        self.clock.advance(by);
        self.recorder.set_now(self.clock.now());
        self.faults.clock_jumped(by);
    }

    /// The tool server reconnects and lists its tools in another order.
    pub fn reconnect_tools(&mut self) {
        self.tool_order_seed += 1;
        for session in self.sessions.values_mut() {
            if self.policy.prompt.sort_tools {
                continue;
            }
            session.rotate_tools();
        }
    }

    /// The model takes its time.
    fn reply_takes_time(&mut self) {
        self.reply_within(Millis::MAX);
    }

    /// The model takes its time, as long as the caller waits; false when it would have taken longer.
    fn reply_within(&mut self, patience: Millis) -> bool {
        let (low, high) = (self.policy.turn.reply_ms_min, self.policy.turn.reply_ms_max);
        if high == 0 {
            return true;
        }
        let drawn = self.reply_times.between(low.min(high), high);
        let takes = Millis::try_from(drawn).unwrap_or(Millis::MAX);
        self.clock.advance(takes.min(patience));
        self.recorder.set_now(self.clock.now());
        takes <= patience
    }

    fn event(&mut self, session: &Name, what: What) {
        // A dead process writes nothing.
        if self.is_killed() {
            return;
        }
        self.record_faults();
        self.recorder.event(session, what);
        self.faults.after_event();
    }

    /// Faults that took effect go into the ledger before what they led to.
    pub fn record_faults(&mut self) {
        for fired in self.faults.take_fired() {
            let what = What::Fault(Fault { kind: fired.kind.into(), detail: fired.detail.as_str().into() });
            self.recorder.event(&self.world, what);
            self.faults.after_event();
        }
    }

    fn is_killed(&self) -> bool {
        self.faults.is_dead()
    }

    /// One write to the store, tried again while it is locked, for as long as its kind has patience.
    fn stored<T>(
        &mut self,
        kind: WriteKind,
        mut write: impl FnMut(&Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (store, clock, sleeps) = (&self.store, &mut self.clock, &mut self.lock_sleeps);
        let done = retry::run(store.knobs(), kind, clock, sleeps, StoreError::is_lock, || write(store));
        self.recorder.set_now(self.clock.now());
        done
    }

    /// A fresh memory store over the home.
    fn fresh_memory(&self) -> MemoryStore {
        let mut memory = MemoryStore::new(&self.policy.memory, &self.policy.threats);
        memory.load(&*self.home);
        memory
    }

    /// Records what the memory files hold now.
    pub fn record_memory(&mut self) {
        let memory = self.fresh_memory();
        let world = self.world.clone();
        let caps = crate::policy::Memory::default();
        for (target, chars_max) in [(Target::Memory, caps.chars_max), (Target::User, caps.user_chars_max)] {
            let entries: Vec<Name> =
                memory.live(target).iter().map(|entry| Name::from(entry.as_str())).collect();
            let state =
                MemoryState { target: target.word().into(), chars: memory.size(target), chars_max, entries };
            self.event(&world, What::MemoryState(state));
        }
    }

    /// Ends the run: the state of memory and store goes into the ledger, which is given back.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn finish(mut self) -> Result<Ledger, HarnessError> {
        self.book();
        // What is looked at now is what is left, whether or not a process is.
        self.faults.retire();
        self.record_faults();
        self.record_memory();
        self.record_store()?;
        Ok(self.recorder.finish())
    }
}

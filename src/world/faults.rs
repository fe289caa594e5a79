//! Faults on schedule: what goes wrong in the world, by ordinal and never by chance.
//!
//! One handle is shared by the home, the store and the runtime of a run. A scenario arms it before each act; from
//! then on it counts events, writes and requests, and answers each with what is to happen to it. A process that
//! died stays dead until somebody restarts it: until then nothing is written any more.
//!
//! Never: a fault that nobody scheduled, a decision about what the runtime does with one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::world::{EntryKind, FileError, FileMeta, Files, Millis};

/// How the ledger begins to tell of a clock that is set back; ages say nothing afterwards.
pub const CLOCK_BACK: &str = "jumps back by";

/// Ways in which a provider fails a request. The first five are worth another attempt.
pub const PROVIDER_FAULTS: [&str; 8] =
    ["overloaded", "rate_limited", "server_error", "timeout", "dropped", OVERFLOW, "refused", "unauthorized"];

/// The fault of a provider that calls a request too long.
pub const OVERFLOW: &str = "context_length";

/// True when the provider was not reached at all.
pub fn is_unreachable(kind: &str) -> bool {
    matches!(kind, "dropped" | "timeout")
}

/// True when another attempt can help against a provider's fault.
pub fn worth_retrying(kind: &str) -> bool {
    !matches!(kind, OVERFLOW | "refused" | "unauthorized")
}

/// What is to go wrong in one act. Ordinals count from 1 within the act.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Armed {
    /// The process dies after so many ledger events.
    pub crash_after_event: Option<u64>,
    /// The process dies instead of this write to home or store.
    pub crash_before_write: Option<u64>,
    /// Requests that fail.
    pub provider: Vec<ProviderFault>,
    /// Writes to the store that find the database locked: the first, and how many in a row.
    pub busy: Option<(u64, u64)>,
    /// Writes to home or store that find the disk full: the first, and how many in a row.
    pub disk_full: Option<(u64, u64)>,
    /// A new turn arrives when the reviews have sent so many requests.
    pub cancel_review: Option<u64>,
    /// The scheduler ticks while this summary is written.
    pub tick_in_compaction: Option<u64>,
    /// At this request of a child, the child that waits next goes first.
    pub interleave: Option<u64>,
}

/// Requests of one lane that a provider fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFault {
    /// One of [`PROVIDER_FAULTS`].
    pub kind: String,
    /// The lane's word.
    pub lane: String,
    /// The first request of the lane that fails.
    pub request: u64,
    /// How many in a row.
    pub times: u64,
}

/// Where a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A file of the home.
    Home,
    /// A transaction of the store.
    Store,
}

/// Why a write does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// The process is gone.
    Dead,
    /// Another connection holds the database.
    Busy,
    /// There is no room.
    Full,
}

/// A fault that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// Kind, as the scenario names it.
    pub kind: &'static str,
    /// On what.
    pub detail: String,
}

#[derive(Debug, Default)]
struct State {
    armed: Armed,
    dead: bool,
    events: u64,
    writes: u64,
    store_writes: u64,
    requests: Vec<(String, u64)>,
    summaries: u64,
    cancelled: bool,
    fired: Vec<Fired>,
    fired_in_run: bool,
    /// Events of the run.
    total: u64,
    /// The process dies after so many events of the run.
    crash_at: Option<u64>,
}

impl State {
    fn fire(&mut self, kind: &'static str, detail: impl Into<String>) {
        self.fired.push(Fired { kind, detail: detail.into() });
        self.fired_in_run = true;
    }
}

/// The handle of one run. Clones share one schedule.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

fn within(at: u64, span: Option<(u64, u64)>) -> bool {
    span.is_some_and(|(first, times)| at >= first && at - first < times)
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves counters, which stay true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules the faults of the next act; every ordinal counts anew.
    pub fn arm(&self, armed: Armed) {
        let mut state = self.state();
        let fired = std::mem::take(&mut state.fired);
        *state = State {
            armed,
            dead: state.dead,
            fired,
            fired_in_run: state.fired_in_run,
            total: state.total,
            crash_at: state.crash_at,
            ..State::default()
        };
    }

    /// Kills the process after so many ledger events from now on.
    pub fn kill_after(&self, events: u64) {
        let mut state = self.state();
        state.armed.crash_after_event = Some(state.events + events);
        if events == 0 {
            state.dead = true;
        }
    }

    /// Kills the process once, after this event of the whole run.
    pub fn crash_at(&self, event: u64) {
        self.state().crash_at = Some(event);
    }

    /// True when the process is gone.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// A new process stands where the dead one was.
    pub fn restart(&self) {
        let mut state = self.state();
        state.dead = false;
        state.armed = Armed::default();
    }

    /// The run is over: nothing goes wrong any more.
    pub fn retire(&self) {
        let mut state = self.state();
        (state.dead, state.crash_at, state.armed) = (false, None, Armed::default());
    }

    /// Nothing more is scheduled.
    pub fn disarm(&self) {
        self.state().armed = Armed::default();
    }

    /// True when a fault took effect since the run began.
    pub fn fired_in_run(&self) -> bool {
        self.state().fired_in_run
    }

    /// Notes that an act came to nothing because of what had gone wrong.
    pub fn act_failed(&self, why: String) {
        self.state().fire("act_failed", why);
    }

    /// What took effect since the last call, in order.
    pub fn take_fired(&self) -> Vec<Fired> {
        let mut state = self.state();
        if state.fired.is_empty() { Vec::new() } else { std::mem::take(&mut state.fired) }
    }

    /// Counts a ledger event that was written.
    pub fn after_event(&self) {
        let mut state = self.state();
        state.events += 1;
        state.total += 1;
        if state.crash_at == Some(state.total) {
            state.dead = true;
            let detail = format!("after event {} of the run", state.total);
            state.fire("crash", detail);
        }
        if state.armed.crash_after_event.is_some_and(|at| state.events >= at) && !state.dead {
            state.dead = true;
            let detail = format!("after event {} of the act", state.events);
            state.fire("crash", detail);
        }
    }

    /// Asked before each write.
    ///
    /// # Errors
    /// What happens to the write instead.
    pub fn before_write(&self, place: Place, what: &str) -> Result<(), WriteFault> {
        let mut state = self.state();
        if state.dead {
            return Err(WriteFault::Dead);
        }
        state.writes += 1;
        let at = state.writes;
        if state.armed.crash_before_write == Some(at) {
            state.dead = true;
            state.fire("crash", format!("before write {at} of the act: {what}"));
            return Err(WriteFault::Dead);
        }
        if place == Place::Store {
            state.store_writes += 1;
            if within(state.store_writes, state.armed.busy) {
                state.fire("busy", what);
                return Err(WriteFault::Busy);
            }
        }
        if within(at, state.armed.disk_full) {
            state.fire("disk_full", what);
            return Err(WriteFault::Full);
        }
        Ok(())
    }

    /// Asked before each request of a lane; the fault that it meets, if any.
    pub fn on_request(&self, lane: &str) -> Option<String> {
        let mut state = self.state();
        if state.armed.provider.is_empty() && lane != "review" && lane != "child" {
            return None;
        }
        let at = if let Some((_, count)) = state.requests.iter_mut().find(|(known, _)| known == lane) {
            *count += 1;
            *count
        } else {
            state.requests.push((lane.to_owned(), 1));
            1
        };
        if lane == "review" && state.armed.cancel_review == Some(at) {
            state.cancelled = true;
            state.fire("cancel_review", format!("a new turn arrives at request {at} of the review"));
        }
        let fault = state
            .armed
            .provider
            .iter()
            .find(|fault| fault.lane == lane && within(at, Some((fault.request, fault.times))))?;
        let kind = fault.kind.clone();
        state.fire("provider", format!("{kind}: request {at} of lane {lane}"));
        Some(kind)
    }

    /// True when a new turn arrived beside a review of this act; asked once for each.
    pub fn take_cancelled(&self) -> bool {
        std::mem::take(&mut self.state().cancelled)
    }

    /// True when a review of this act is to stop now.
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Counts a summary that is asked for; true when the scheduler ticks meanwhile.
    pub fn on_summary(&self) -> bool {
        let mut state = self.state();
        state.summaries += 1;
        let due = state.armed.tick_in_compaction == Some(state.summaries);
        if due {
            state.fire("tick", "the scheduler ticks while the summary is written");
        }
        due
    }

    /// True when the child that waits next goes before the request that a child has just counted.
    pub fn interleaves(&self) -> bool {
        let mut state = self.state();
        let at = state.requests.iter().find(|(lane, _)| lane == "child").map_or(0, |(_, count)| *count);
        let due = at > 0 && state.armed.interleave == Some(at);
        if due {
            state.armed.interleave = None;
            state.fire("interleave", format!("the next child goes first at child request {at}"));
        }
        due
    }

    /// The clock jumps.
    pub fn clock_jumped(&self, by: Millis) {
        let way = if by < 0 { CLOCK_BACK } else { "jumps ahead by" };
        self.state().fire("clock", format!("{way} {} ms", by.unsigned_abs()));
    }
}

/// A home whose writes meet faults.
pub struct FaultyFiles {
    inner: Box<dyn Files>,
    faults: Faults,
}

impl FaultyFiles {
    /// The home `inner` under this schedule.
    pub fn new(inner: Box<dyn Files>, faults: Faults) -> Self {
        Self { inner, faults }
    }

    fn ask(&self, path: &str) -> Result<(), FileError> {
        self.faults.before_write(Place::Home, path).map_err(|fault| {
            let message = match fault {
                WriteFault::Dead => "the process is gone",
                WriteFault::Busy => "the file is locked",
                WriteFault::Full => "no space left on device",
            };
            FileError::Io { path: path.to_owned(), message: message.to_owned() }
        })
    }
}

impl Files for FaultyFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.inner.read(path)
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.ask(path)?;
        self.inner.write(path, bytes)
    }

    fn remove_file(&mut self, path: &str) -> Result<(), FileError> {
        self.ask(path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), FileError> {
        self.ask(path)?;
        self.inner.remove_dir(path)
    }

    fn create_dir(&mut self, path: &str) -> Result<(), FileError> {
        self.ask(path)?;
        self.inner.create_dir(path)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        self.ask(from)?;
        self.inner.rename(from, to)
    }

    fn meta(&self, path: &str) -> Option<FileMeta> {
        self.inner.meta(path)
    }

    fn list(&self, path: &str) -> Vec<(String, EntryKind)> {
        self.inner.list(path)
    }

    fn touch(&mut self, path: &str, at: Millis) {
        if !self.faults.is_dead() {
            self.inner.touch(path, at);
        }
    }

    fn resolve(&self, path: &str) -> Option<String> {
        self.inner.resolve(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn a_dead_process_writes_nothing_until_it_is_restarted() {
        let faults = Faults::default();
        let mut home = FaultyFiles::new(Box::new(MemFiles::new()), faults.clone());
        faults.arm(Armed { crash_before_write: Some(2), ..Armed::default() });
        home.write("a", b"1").unwrap();
        assert!(home.write("b", b"2").is_err() && home.write("c", b"3").is_err());
        faults.restart();
        home.write("d", b"4").unwrap();
        assert_eq!(home.walk(""), ["a", "d"]);
    }

    #[test]
    fn a_fault_lasts_as_many_writes_as_it_says() {
        let faults = Faults::default();
        faults.arm(Armed { disk_full: Some((2, 2)), busy: Some((1, 1)), ..Armed::default() });
        let asked: Vec<bool> = (0..4).map(|_| faults.before_write(Place::Home, "x").is_ok()).collect();
        assert_eq!(asked, [true, false, false, true]);
        assert_eq!(faults.before_write(Place::Store, "x"), Err(WriteFault::Busy));
        assert_eq!(faults.before_write(Place::Store, "x"), Ok(()));
    }
}

//! Plays a scenario on the runtime and gives back its ledger.
//!
//! The one way from a scenario to a ledger. Same scenario, seed and policy give the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::agent::harness::{Harness, HarnessError, Opening, Parts};
use crate::cache;
use crate::ledger::{Event, Header, Lane, Ledger, hex};
use crate::model::{Player, ScriptedModel};
use crate::policy::{KnobError, Overlay, Policy};
use crate::scenario::{Act, Scenario, TurnAct, WaitAct, fault};
use crate::store::Store;
use crate::world::faults::Armed;
use crate::world::terminal::Declared;
use crate::world::{Clock, Faults, Files, MemFiles, Millis, Streams, Terminal, clock};

/// How a scenario is played.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Overlays beneath the scenario's own: a preset.
    pub beneath: Overlay,
    /// Overlays above it: breaks and the command line, in order.
    pub above: Vec<Overlay>,
    /// Seed, if not the scenario's.
    pub seed: Option<u64>,
    /// The process dies once, after this event of the ledger, and another takes its place.
    pub crash_at: Option<u64>,
}

/// Why a scenario could not be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A knob that was to be turned does not fit.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Knobs(Vec<KnobError>),
    /// An act failed.
    #[error("act {act}: {error}")]
    Act {
        /// Place of the act, from 1.
        act: usize,
        /// What went wrong.
        error: HarnessError,
    },
    /// The run could not be set up or closed.
    #[error("{0}")]
    Setup(HarnessError),
}

/// The policy that a plan gives for a scenario.
///
/// # Errors
/// Every knob that does not fit.
pub fn policy_of(scenario: &Scenario, plan: &Plan) -> Result<Policy, PlayError> {
    let mut policy = Policy::default();
    let mut errors = Vec::new();
    for overlay in [&plan.beneath, &scenario.policy].into_iter().chain(&plan.above) {
        if let Err(more) = overlay.apply(&mut policy) {
            errors.extend(more);
        }
    }
    if errors.is_empty() { Ok(policy) } else { Err(PlayError::Knobs(errors)) }
}

/// SHA-256 over every knob and its value.
pub fn policy_digest(policy: &Policy) -> String {
    let mut hasher = Sha256::new();
    for (name, value) in policy.values() {
        hasher.update(format!("{name}={value}\n"));
    }
    hex(&hasher.finalize())
}

/// A run with what it left behind.
#[derive(Debug, Clone)]
pub struct Played {
    /// What happened.
    pub ledger: Ledger,
    /// What is there afterwards.
    pub end: EndState,
}

/// Files and rows when a run is over: evidence that no ledger event stands between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndState {
    /// The workspace before the first act.
    pub before: BTreeMap<String, Vec<u8>>,
    /// The workspace.
    pub workspace: BTreeMap<String, Vec<u8>>,
    /// The home: memories, skills, jobs.
    pub home: BTreeMap<String, Vec<u8>>,
    /// Rows that the store holds of each session, as texts with their role.
    pub stored: BTreeMap<String, Vec<String>>,
}

impl EndState {
    /// Paths of the workspace that were made, changed or removed.
    pub fn changed(&self) -> Vec<&str> {
        let paths: BTreeSet<&String> = self.before.keys().chain(self.workspace.keys()).collect();
        paths
            .into_iter()
            .filter(|path| self.before.get(*path) != self.workspace.get(*path))
            .map(String::as_str)
            .collect()
    }
}

fn texts(files: &dyn Files) -> BTreeMap<String, Vec<u8>> {
    files.walk("").into_iter().filter_map(|path| files.read(&path).ok().map(|bytes| (path, bytes))).collect()
}

/// Plays a scenario in memory.
///
/// # Errors
/// When a knob does not fit, the script does not fit the run, or an act is impossible.
pub fn play(scenario: &Scenario, plan: &Plan) -> Result<Ledger, PlayError> {
    let model = ScriptedModel::new(&scenario.rules);
    let mut harness = staged(scenario, plan, Box::new(MemFiles::new()), Place::Memory, model)?;
    perform_all(&mut harness, scenario, plan, &mut |_, _| {})?;
    harness.finish().map_err(PlayError::Setup)
}

/// Plays a scenario in memory and gives back what it left behind, too.
///
/// # Errors
/// As [`play`].
pub fn play_to_end(scenario: &Scenario, plan: &Plan) -> Result<Played, PlayError> {
    play_in(scenario, plan, Box::new(MemFiles::new()), None)
}

/// Plays a scenario over a home of the caller's; `store` is the place of its database, in memory when absent.
///
/// # Errors
/// As [`play`].
pub fn play_in(
    scenario: &Scenario,
    plan: &Plan,
    home: Box<dyn Files>,
    store: Option<&std::path::Path>,
) -> Result<Played, PlayError> {
    let model = ScriptedModel::new(&scenario.rules);
    let place = store.map_or(Place::Memory, Place::File);
    to_end(staged(scenario, plan, home, place, model)?, scenario, plan)
}

/// Plays a scenario in memory with a model of the caller's; what users say and what tools do is the scenario's.
///
/// # Errors
/// As [`play`], and when the model will not answer any more.
pub fn play_with(scenario: &Scenario, plan: &Plan, model: impl Player) -> Result<Played, PlayError> {
    let harness = staged(scenario, plan, Box::new(MemFiles::new()), Place::Memory, model)?;
    to_end(harness, scenario, plan)
}

/// Plays a scenario and hands every event over as it comes, so that a long run needs no room for its ledger. Sessions
/// that end are let go, and the store lies in a temporary file: a year needs no more memory than a month. What the
/// store holds in the end is not told.
///
/// # Errors
/// As [`play`].
pub fn play_watched(
    scenario: &Scenario,
    plan: &Plan,
    watch: &mut dyn FnMut(&Event),
) -> Result<(), PlayError> {
    let model = ScriptedModel::new(&scenario.rules);
    let mut harness = staged(scenario, plan, Box::new(MemFiles::new()), Place::Temporary, model)?;
    perform_all(&mut harness, scenario, plan, &mut |harness, act| {
        harness.take_events().iter().for_each(&mut *watch);
        harness.forget_expired();
        if let Act::End(end) = act
            && let Some(name) = &end.session
        {
            harness.let_go(name);
        }
    })?;
    harness.let_go_of_all();
    let rest = harness.finish().map_err(PlayError::Setup)?;
    rest.events.iter().for_each(watch);
    Ok(())
}

/// Where the store of a run lies.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// In memory.
    Memory,
    /// In a file of the caller's.
    File(&'a std::path::Path),
    /// In a file that is gone when the run is over.
    Temporary,
}

/// A harness before the first act of a scenario.
fn staged<P: Player>(
    scenario: &Scenario,
    plan: &Plan,
    home: Box<dyn Files>,
    place: Place<'_>,
    model: P,
) -> Result<Harness<P>, PlayError> {
    let policy = policy_of(scenario, plan)?;
    let setup = |error: crate::store::StoreError| PlayError::Setup(error.into());
    let store = match place {
        Place::File(path) => Store::open_file(path, &policy.store),
        Place::Memory => Store::open_in_memory(&policy.store),
        Place::Temporary => Store::open_temporary(&policy.store),
    };
    let store = store.map_err(setup)?;
    let seed = plan.seed.unwrap_or(scenario.seed);
    let header = Header {
        scenario: scenario.name.clone(),
        scenario_digest: scenario.digest.clone(),
        policy_digest: policy_digest(&policy),
        seed,
        unit: policy.compress.unit.word().to_owned(),
        ..Header::default()
    };
    let parts = Parts {
        clock: Clock::at(scenario.start),
        streams: Streams::new(seed),
        home,
        store,
        cache: cache::for_policy(&policy),
        terminal: Terminal::new(declared(scenario)),
        header,
        faults: Faults::default(),
        policy,
    };
    let mut harness = Harness::new(parts, model);
    if let Some(event) = plan.crash_at {
        harness.faults().crash_at(event);
    }
    set_the_stage(&mut harness, scenario).map_err(PlayError::Setup)?;
    Ok(harness)
}

/// Performs the acts of a scenario; `after` looks at the harness after each of them.
fn perform_all<P: Player>(
    harness: &mut Harness<P>,
    scenario: &Scenario,
    plan: &Plan,
    after: &mut dyn FnMut(&mut Harness<P>, &Act),
) -> Result<(), PlayError> {
    for (index, act) in scenario.acts.iter().enumerate() {
        let done = if scenario.faults.is_empty() && plan.crash_at.is_none() {
            harness.faults().arm(Armed::default());
            perform(harness, scenario, act)
        } else {
            perform_under_faults(harness, scenario, act, index as u64 + 1)
        };
        done.map_err(|error| PlayError::Act { act: index + 1, error })?;
        after(harness, act);
    }
    Ok(())
}

/// Performs the acts and gathers what is there afterwards.
fn to_end<P: Player>(mut harness: Harness<P>, scenario: &Scenario, plan: &Plan) -> Result<Played, PlayError> {
    let mut end = EndState { before: texts(harness.workspace()), ..EndState::default() };
    perform_all(&mut harness, scenario, plan, &mut |_, _| {})?;
    end.workspace = texts(harness.workspace());
    end.home = texts(harness.home());
    end.stored = harness.stored_texts().map_err(PlayError::Setup)?;
    let ledger = harness.finish().map_err(PlayError::Setup)?;
    Ok(Played { ledger, end })
}

fn declared(scenario: &Scenario) -> Vec<Declared> {
    scenario
        .commands
        .iter()
        .map(|command| Declared {
            pattern: command.run.clone(),
            output: command.prints.repeat(usize::try_from(command.times).unwrap_or(1)),
            exit: command.exit,
            writes: command.writes.clone(),
            appends: command.appends.clone(),
            shows: command.shows.clone(),
            times_out: command.times_out,
            endless: command.endless,
        })
        .collect()
}

fn set_the_stage<P: Player>(harness: &mut Harness<P>, scenario: &Scenario) -> Result<(), HarnessError> {
    for skill in &scenario.skills {
        harness.add_skill(skill, scenario.start)?;
    }
    for memory in &scenario.memories {
        harness.remember(&memory.target, &memory.text);
    }
    for file in &scenario.files {
        let text = file.text.repeat(usize::try_from(file.times).unwrap_or(1));
        for index in 0..file.count {
            let fill = |text: &str| text.replace("{i}", &index.to_string());
            let (path, text) = (fill(&file.path), fill(&text));
            match path.strip_prefix('/') {
                Some(path) => harness.machine().write(path, text.as_bytes())?,
                None => harness.workspace().write(&path, text.as_bytes())?,
            }
        }
    }
    for job in &scenario.jobs {
        harness.add_job(job)?;
    }
    Ok(())
}

/// Carries out an act in which something may go wrong. What a scheduled fault makes impossible is no mistake of the
/// scenario: the user sees an error, or a new process, and goes on with the next act.
fn perform_under_faults<P: Player>(
    harness: &mut Harness<P>,
    scenario: &Scenario,
    act: &Act,
    place: u64,
) -> Result<(), HarnessError> {
    if harness.faults().is_dead() {
        // It died while the stage was set.
        harness.restart();
    }
    let (armed, jump) = fault::of_act(&scenario.faults, place);
    harness.faults().arm(armed);
    if jump != 0 {
        harness.clock_jumps(jump);
    }
    let done = take_up(harness, act).and_then(|()| perform(harness, scenario, act));
    if let (Act::Open(open), true) = (act, done.is_err() || harness.faults().is_dead()) {
        harness.reopen_later(&open.name);
    }
    if harness.faults().is_dead() {
        let open = harness.restart();
        harness.model.clear_all();
        // Whoever sat at the session that was open takes it up again.
        if let Some(open) = open {
            harness.reopen_later(&open);
        }
        return Ok(());
    }
    harness.faults().disarm();
    harness.record_faults();
    let Err(error) = done else { return Ok(()) };
    if !harness.faults().fired_in_run() {
        return Err(error);
    }
    harness.model.clear_all();
    harness.faults().act_failed(error.to_string());
    harness.record_faults();
    Ok(())
}

/// A session that an act needs and no process holds is taken up, as its user would.
fn take_up<P: Player>(harness: &mut Harness<P>, act: &Act) -> Result<(), HarnessError> {
    let Act::Turn(turn) = act else { return Ok(()) };
    let name = session_of(harness, turn.session.as_deref())?;
    harness.take_up(&name)
}

fn perform<P: Player>(harness: &mut Harness<P>, scenario: &Scenario, act: &Act) -> Result<(), HarnessError> {
    match act {
        Act::Open(open) => {
            let opening = Opening { directory: open.directory.clone(), tools: open.tools.clone() };
            if open.resume {
                harness.resume_with(&open.name, &opening)
            } else {
                harness.begin_with(&open.name, open.parent.as_deref(), &opening)
            }
        }
        Act::Turn(turn) => {
            turn.said().into_iter().try_for_each(|(index, say)| play_turn(harness, turn, index, &say))
        }
        Act::Wait(wait) => harness.wait(span(wait)),
        Act::Remember(act) => {
            if act.fresh_home {
                harness.clear_memory()?;
            }
            for index in 0..act.times {
                let text = act.add.replace("{i}", &index.to_string());
                harness.remember(&act.target, &padded(&text, act.chars));
            }
            harness.record_memory();
            Ok(())
        }
        Act::Search(search) => {
            let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
            harness.search(&search.query, limit, search.session.as_deref())
        }
        Act::Curator(curator) => {
            if let Some(day) = curator.day {
                let target = scenario.start + day * clock::DAY;
                harness.wait(target - harness.now())?;
            }
            harness.model.load(Lane::Curator, &curator.curator, 0);
            let done = harness.curate();
            harness.model.clear(Lane::Curator);
            done?;
            curator.restore.iter().for_each(|skill| harness.restore_skill(skill));
            Ok(())
        }
        Act::AddSkill(act) => harness.add_skill(&act.skill, scenario.start),
        Act::ViewSkill(act) => harness.view_skill(&act.name),
        Act::Delegate(act) => {
            harness.model.load(Lane::Child, &act.child, 0);
            let done = harness.delegate_outside(act.depth, &act.goal, &act.tools);
            harness.model.clear(Lane::Child);
            done
        }
        Act::Tick(tick) => {
            harness.model.load(Lane::Cron, &tick.cron, 0);
            let done = harness.tick_for(tick.schedulers, tick.minutes);
            harness.model.clear(Lane::Cron);
            done
        }
        Act::End(end) => {
            let name = session_of(harness, end.session.as_deref())?;
            harness.end(&name, &end.reason)
        }
    }
}

fn session_of<P: Player>(harness: &Harness<P>, named: Option<&str>) -> Result<String, HarnessError> {
    named
        .map(str::to_owned)
        .or_else(|| harness.open_session().map(ToString::to_string))
        .ok_or_else(|| HarnessError::UnknownSession("(none is open)".to_owned()))
}

fn play_turn<P: Player>(
    harness: &mut Harness<P>,
    turn: &TurnAct,
    index: u64,
    say: &str,
) -> Result<(), HarnessError> {
    let name = session_of(harness, turn.session.as_deref())?;
    if turn.reconnect {
        harness.reconnect_tools();
    }
    if !turn.review.is_empty() && harness.review_waits(&name) {
        // A newer look at the session takes the place of the one that waits.
        harness.model.clear(Lane::Review);
    }
    harness.model.load_turn(turn, index);
    if let Some(events) = turn.crash_after {
        harness.kill_after(events);
    }
    let ended_early = match harness.user_turn_with(&name, say, turn.steer.as_deref()) {
        // A turn whose iterations were used up leaves the rest of its script unsaid.
        Ok(report) => {
            report.partial
                || report.failed
                || report.exit.is_some_and(|exit| exit == "max_iterations_reached")
        }
        // A kill that the scenario asked for: the process is gone, home and store stay.
        Err(HarnessError::Killed) if turn.crash_after.is_some() => {
            harness.restart();
            true
        }
        Err(error) => return Err(error),
    };
    for lane in [Lane::Summary, Lane::Child, Lane::Approver] {
        harness.model.clear(lane);
    }
    // What a review that waits is to say is kept for it.
    if !harness.has_waiting_reviews() {
        harness.model.clear(Lane::Review);
    }
    let left = harness.model.left_over(Lane::Main);
    if left > 0 && !ended_early {
        let message = format!("session `{name}`: {left} replies of the main lane were never asked for");
        return Err(HarnessError::Script(message));
    }
    harness.model.clear(Lane::Main);
    Ok(())
}

fn span(wait: &WaitAct) -> Millis {
    wait.days * clock::DAY
        + wait.hours * clock::HOUR
        + wait.minutes * clock::MINUTE
        + wait.seconds * clock::SECOND
}

fn padded(text: &str, chars: Option<u64>) -> String {
    let mut text = text.to_owned();
    if let Some(chars) = chars {
        let missing = usize::try_from(chars).unwrap_or(0).saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('.', missing));
    }
    text
}

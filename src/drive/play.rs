//! The turns of a scenario on a real agent, and what is seen beside them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::guard::{Homes, classify};
use crate::laws;
use crate::ledger::{Effect, Event, Lane, Name, What};
use crate::policy;
use crate::scenario::{Act, CallSpec, Scenario, TurnAct};
use crate::serve::{ClockKind, Options, Outcome, Running, Server, StartError};
use crate::world::FileError;
use crate::world::process::pause;

use super::agent::{Agent, AgentError};
use super::driver::Driver;
use super::place::{Place, changes};

/// Time between two looks at the provider.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time that background work may go on, in looks: two minutes.
const LOOKS_MAX: u64 = 2_400;

/// What is driven, and where.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The agent.
    pub driver: &'a Driver,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Where the agent is installed.
    pub install: &'a Path,
    /// An empty directory for its home and its working folder.
    pub root: &'a Path,
    /// How the mock provider is set up.
    pub options: Options,
}

/// A turn as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSeen {
    /// Session of the scenario.
    pub session: String,
    /// Turn of the session, from 1.
    pub turn: u64,
    /// What the user said.
    pub said: String,
    /// What came back.
    pub answer: String,
    /// Files that changed before the answer came.
    pub changed: Vec<String>,
    /// Files that changed after it.
    pub changed_behind: Vec<String>,
}

/// An act that a real agent cannot be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Place of the act, from 1.
    pub act: usize,
    /// Its kind, as in the file.
    pub kind: &'static str,
}

/// What a drive saw.
#[derive(Debug)]
pub struct Driven {
    /// What the mock provider saw, effects that were found outside included.
    pub outcome: Outcome,
    /// The turns.
    pub turns: Vec<TurnSeen>,
    /// Acts that were left out.
    pub left: Vec<Left>,
    /// The agent's home.
    pub home: PathBuf,
    /// Last lines that it printed beside its answers.
    pub printed: String,
    /// Why the play ended early, if it did; what was seen before is kept.
    pub broken_off: Option<AgentError>,
}

/// Why an agent could not be driven at all.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The mock provider did not start.
    #[error(transparent)]
    Serve(#[from] StartError),
    /// Home or working folder could not be made.
    #[error(transparent)]
    Files(#[from] FileError),
    /// The agent did not start.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// Commands of a scenario's scripts that are dangerous when a real agent runs them: they are its own, on this machine.
pub fn risky_calls(scenario: &Scenario) -> Vec<String> {
    let homes = Homes { user: "/home/user".to_owned(), agent: "/home/user/.hermes".to_owned() };
    let knobs = policy::Guard { hardened: true, ..policy::Guard::default() };
    let scripts = scenario.acts.iter().filter_map(|act| match act {
        Act::Turn(turn) => Some(lists(turn)),
        _ => None,
    });
    let replies = scripts.flatten().chain(scenario.rules.iter().filter_map(|rule| rule.reply.as_ref()));
    let calls = replies.flat_map(crate::scenario::ReplySpec::all_calls);
    let commands = calls.filter_map(|call| call.args.get("command")?.as_str().map(str::to_owned));
    let dangerous = |command: &String| {
        let found = classify(command, &homes, &knobs);
        found.hardline.is_some() || found.rule.is_some()
    };
    let mut risky: Vec<String> = commands.filter(dangerous).collect();
    risky.sort();
    risky.dedup();
    risky
}

fn lists(turn: &TurnAct) -> impl Iterator<Item = &crate::scenario::ReplySpec> {
    [&turn.replies, &turn.review, &turn.summary, &turn.child, &turn.approver].into_iter().flatten()
}

/// Drives an agent through a scenario.
///
/// An agent that fails half way through is no error: what was seen until then is judged, and the failure is told.
///
/// # Errors
/// When nothing could be driven: no provider, no home, no agent.
pub fn drive(plan: &Plan<'_>) -> Result<Driven, DriveError> {
    let translated = plan.driver.translate(plan.scenario);
    let options = Options { clock: ClockKind::Real, keep_events: true, ..plan.options.clone() };
    let window = options.context_length;
    let running = Server::start(&translated, options)?;
    let host = format!("http://{}", running.address());
    let place = Place::make(plan.root, plan.driver, plan.scenario, plan.install, &host, window)?;
    let mut agent = Agent::start(plan.driver, &place)?;
    let mut seen = Seen { turns: Vec::new(), left: Vec::new(), effects: Vec::new(), open: String::new() };
    let broken_off = seen.play(plan, &running, &place, &mut agent).err();
    let printed = agent.printed();
    // The agent goes before the provider does, or it would try again and again.
    drop(agent);
    let mut outcome = running.stop();
    note_effects(&mut outcome, plan.scenario, &seen.effects);
    Ok(Driven { outcome, turns: seen.turns, left: seen.left, home: place.home, printed, broken_off })
}

/// A file that changed while nobody waited for an answer.
struct Behind {
    session: String,
    turn: u64,
    path: String,
    what: &'static str,
}

struct Seen {
    turns: Vec<TurnSeen>,
    left: Vec<Left>,
    effects: Vec<Behind>,
    open: String,
}

impl Seen {
    fn play(
        &mut self,
        plan: &Plan<'_>,
        running: &Running,
        place: &Place,
        agent: &mut Agent<'_>,
    ) -> Result<(), AgentError> {
        for (index, act) in plan.scenario.acts.iter().enumerate() {
            let act_number = index + 1;
            match act {
                Act::Open(open) => {
                    self.open.clone_from(&open.name);
                    if open.resume { agent.reopen(&open.name)? } else { agent.open(&open.name)? }
                }
                Act::Turn(turn) => {
                    let session = turn.session.clone().unwrap_or_else(|| self.open.clone());
                    for (_, said) in turn.said() {
                        self.turn(plan, running, place, agent, &session, said)?;
                    }
                }
                // A session of a real agent ends when the next one begins.
                Act::End(_) => {}
                other => self.left.push(Left { act: act_number, kind: kind(other) }),
            }
        }
        Ok(())
    }

    fn turn(
        &mut self,
        plan: &Plan<'_>,
        running: &Running,
        place: &Place,
        agent: &mut Agent<'_>,
        session: &str,
        said: String,
    ) -> Result<(), AgentError> {
        let before = place.files();
        let answer = agent.prompt(session, &said)?;
        let delivered = place.files();
        wait_for_quiet(running, plan.driver.quiet_ms);
        let after = place.files();
        let number = self.turns.iter().filter(|turn| turn.session == session).count() as u64 + 1;
        let behind = changes(&delivered, &after);
        self.turns.push(TurnSeen {
            session: session.to_owned(),
            turn: number,
            said,
            answer,
            changed: changes(&before, &delivered).into_iter().map(|(path, _)| path).collect(),
            changed_behind: behind.iter().map(|(path, _)| path.clone()).collect(),
        });
        self.effects.extend(behind.into_iter().map(|(path, what)| Behind {
            session: session.to_owned(),
            turn: number,
            path,
            what,
        }));
        Ok(())
    }
}

/// Waits until no request came for a while.
fn wait_for_quiet(running: &Running, quiet_ms: u64) {
    let look_ms = u64::try_from(LOOK.as_millis()).unwrap_or(1);
    let wanted = quiet_ms.div_ceil(look_ms);
    let (mut quiet, mut known) = (0, running.activity());
    for _ in 0..LOOKS_MAX {
        if quiet >= wanted {
            return;
        }
        pause(LOOK);
        let now = running.activity();
        quiet = if now.in_flight > 0 || now.requests != known.requests { 0 } else { quiet + 1 };
        known = now;
    }
}

fn kind(act: &Act) -> &'static str {
    match act {
        Act::Open(_) => "open",
        Act::Turn(_) => "turn",
        Act::Wait(_) => "wait",
        Act::Remember(_) => "remember",
        Act::Search(_) => "search",
        Act::Curator(_) => "curator",
        Act::AddSkill(_) => "add_skill",
        Act::ViewSkill(_) => "view_skill",
        Act::Delegate(_) => "delegate",
        Act::Tick(_) => "tick",
        Act::End(_) => "end",
    }
}

/// Writes what was found outside into the ledger, and has the laws judge it again.
fn note_effects(outcome: &mut Outcome, scenario: &Scenario, effects: &[Behind]) {
    if effects.is_empty() {
        return;
    }
    let at = outcome.ledger.events.last().map_or(0, |event| event.at);
    for effect in effects {
        let lane = lane_of(scenario, outcome, effect);
        let n = outcome.ledger.events.last().map_or(0, |event| event.n) + 1;
        let session: Name = effect.session.as_str().into();
        let what =
            What::Effect(Effect { lane, kind: effect.what.into(), detail: effect.path.as_str().into() });
        outcome.ledger.events.push(Event { n, at, session, what });
    }
    outcome.verdict = laws::judge(&outcome.ledger);
    outcome.digest = outcome.ledger.digest();
    outcome.events = outcome.ledger.events.len() as u64;
}

/// Who changed the file. Children work on while nobody waits, and may; a review may not. What neither of them did is
/// the main agent's own, late.
fn lane_of(scenario: &Scenario, outcome: &Outcome, effect: &Behind) -> Lane {
    let name = effect.path.rsplit('/').next().unwrap_or(&effect.path);
    let names = |call: &CallSpec| toml::Value::Table(call.args.clone()).to_string().contains(name);
    let by_child = scenario.acts.iter().any(|act| match act {
        Act::Turn(turn) => {
            turn.child.iter().flat_map(crate::scenario::ReplySpec::all_calls).any(|call| names(&call))
        }
        _ => false,
    });
    if by_child {
        return Lane::Child;
    }
    let reviewed = outcome.ledger.events.iter().any(|event| match &event.what {
        What::Request(request) => {
            request.lane == Lane::Review && request.turn == effect.turn && *event.session == *effect.session
        }
        _ => false,
    });
    if reviewed { Lane::Review } else { Lane::Main }
}

impl Driven {
    /// True when every act was played and nothing was found.
    pub fn holds(&self) -> bool {
        self.outcome.holds() && self.broken_off.is_none()
    }
}

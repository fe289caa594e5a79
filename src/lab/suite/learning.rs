//! The learning loop from end to end: task, nudge, review, skill, new session, found, loaded, followed.
//!
//! The same tasks are played in arms that differ in one knob. The first arm has every link, the others lack one; what
//! the later tasks then cost more is what that link is worth. A wrong and a poisoned skill are played the same way, to
//! see what catches them.

use serde::Serialize;

use crate::lab::expect::{self, Judged};
use crate::lab::play::{Plan, PlayError, play_to_end};
use crate::laws;
use crate::ledger::{Lane, Ledger, What};
use crate::policy::{Overlay, Policy};
use crate::scenario::{ArmSpec, Scenario};

/// What one task took.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TaskCost {
    /// The session that it was done in.
    pub session: String,
    /// Iterations of its turns.
    pub iterations: u64,
    /// Prompt tokens of its main lane.
    pub prompt_tokens: u64,
    /// Tool calls that failed.
    pub failures: u64,
    /// Skills that were loaded.
    pub loaded: u64,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// What is different.
    pub says: String,
    /// Its tasks in order.
    pub tasks: Vec<TaskCost>,
    /// Sums over all tasks but the first, which nothing was learned before.
    pub later: TaskCost,
    /// Cost of the whole arm, reviews included, in millionths of a dollar.
    pub cost_microdollars: Option<u64>,
    /// Expectations, each with whether it holds.
    pub verdicts: Vec<Judged>,
    /// Checks of laws that fail.
    pub findings: Vec<String>,
    /// What is not as the scenario says of this arm.
    pub problems: Vec<String>,
}

/// One scenario in all its arms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arms {
    /// The scenario.
    pub scenario: String,
    /// One line.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// The arms, the reference first.
    pub arms: Vec<Arm>,
}

/// The whole measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learning {
    /// Version of the shape.
    pub schema: u64,
    /// True when every arm is as its scenario says.
    pub holds: bool,
    /// The loop with and without each link.
    pub links: Arms,
    /// What catches bad skills.
    pub hazards: Vec<Arms>,
}

/// Measures everything.
///
/// # Errors
/// When an arm cannot be played.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn measure() -> Result<Learning, PlayError> {
    let mut all = Vec::new();
    for (name, _) in crate::scenario::learning() {
        all.push(arms(&super::task(name).expect("a shipped scenario"))?);
    }
    let holds = all.iter().flat_map(|arms| &arms.arms).all(|arm| arm.problems.is_empty());
    let links = all.remove(0);
    Ok(Learning { schema: super::SCHEMA, holds, links, hazards: all })
}

/// Plays every arm of a scenario.
///
/// # Errors
/// When one cannot be played.
pub fn arms(scenario: &Scenario) -> Result<Arms, PlayError> {
    let mut arms: Vec<Arm> = Vec::new();
    for spec in &scenario.arms {
        let arm = play_arm(scenario, spec, arms.first())?;
        arms.push(arm);
    }
    Ok(Arms {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        about: scenario.about.trim().to_owned(),
        arms,
    })
}

fn play_arm(scenario: &Scenario, spec: &ArmSpec, reference: Option<&Arm>) -> Result<Arm, PlayError> {
    let plan = Plan { above: vec![Overlay::from_table(&spec.turn)], ..Plan::default() };
    let played = play_to_end(scenario, &plan)?;
    let tasks = tasks(&played.ledger);
    let later = tasks.iter().skip(1).fold(
        TaskCost { session: "later".to_owned(), ..TaskCost::default() },
        |sum, task| TaskCost {
            session: sum.session,
            iterations: sum.iterations + task.iterations,
            prompt_tokens: sum.prompt_tokens + task.prompt_tokens,
            failures: sum.failures + task.failures,
            loaded: sum.loaded + task.loaded,
        },
    );
    let verdicts = expect::judge(scenario, &played);
    let mut problems = Vec::new();
    for judged in &verdicts {
        if judged.holds == spec.fails.contains(&judged.name) {
            let state = if judged.holds { "holds, and was to fail" } else { "fails, and was to hold" };
            problems.push(format!(
                "{} {state}: expected {}, found {}",
                judged.name, judged.expected, judged.found
            ));
        }
    }
    if let Some(reference) = reference.filter(|_| spec.loses) {
        let worse = later.iterations > reference.later.iterations
            && later.prompt_tokens > reference.later.prompt_tokens
            && later.failures > reference.later.failures;
        if !worse {
            let (is, was) = (&later, &reference.later);
            problems.push(format!(
                "the later tasks are not worse: {} iterations, {} tokens, {} failures, against {}, {}, {}",
                is.iterations, is.prompt_tokens, is.failures, was.iterations, was.prompt_tokens, was.failures
            ));
        }
    }
    let findings = laws::judge(&played.ledger).caught_by().iter().map(ToString::to_string).collect();
    Ok(Arm {
        name: spec.name.clone(),
        says: spec.says.clone(),
        tasks,
        later,
        cost_microdollars: super::record::cost(&played.ledger, &Policy::default().prompt.model),
        verdicts,
        findings,
        problems,
    })
}

/// What each session of the main lane took, in the order in which they began.
pub(crate) fn tasks(ledger: &Ledger) -> Vec<TaskCost> {
    let mut tasks: Vec<TaskCost> = Vec::new();
    let mut main = std::collections::BTreeMap::new();
    for event in &ledger.events {
        if let What::SessionStarted(started) = &event.what
            && &*started.why == "fresh"
        {
            tasks.push(TaskCost { session: event.session.to_string(), ..TaskCost::default() });
        }
        if let What::Request(request) = &event.what
            && request.lane == Lane::Main
        {
            main.insert(request.id, event.session.to_string());
        }
        let Some(task) = tasks.iter_mut().find(|task| *task.session == *event.session) else { continue };
        match &event.what {
            What::TurnEnded(ended) => task.iterations += ended.iterations,
            What::Response(response) if main.contains_key(&response.request) => {
                task.prompt_tokens += response.usage.prompt();
            }
            What::ToolRan(ran) if ran.lane == Lane::Main && !ran.ok => task.failures += 1,
            What::SkillViewed(viewed) if viewed.lane == Lane::Main => task.loaded += 1,
            _ => {}
        }
    }
    tasks
}

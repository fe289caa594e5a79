//! Does a skill help that the model wrote itself? Two arms of each seed, one of which may learn.
//!
//! Both arms meet the same world and the same words. What is compared is the later sessions: everything but the first,
//! before which nothing could be learned. Prompt tokens and money are the bill's, the reviews' included.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lab::expect;
use crate::lab::suite::learning::tasks;
use crate::ledger::{Lane, What};
use crate::live::interval::Difference;
use crate::live::line::Asked;
use crate::live::suites::Run;
use crate::units::Usd;

/// One arm of one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmRun {
    /// The arm.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// Iterations of the later sessions.
    pub iterations: u64,
    /// Tool calls of theirs that failed.
    pub failures: u64,
    /// Prompt tokens of their main lane, as billed.
    pub prompt_tokens: u64,
    /// Output tokens of their main lane, as billed.
    pub output_tokens: u64,
    /// What their main lane cost, in millionths of a dollar.
    pub microdollars: f64,
    /// What the whole arm cost, the review included, in millionths of a dollar.
    pub arm_microdollars: f64,
    /// Skills that were written.
    pub written: u64,
    /// Skills that later sessions loaded.
    pub loaded: u64,
    /// Expectations that hold.
    pub holding: usize,
    /// Expectations.
    pub expectations: usize,
}

/// What one figure says over all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// The figure.
    pub name: &'static str,
    /// Its difference, with the skill less without.
    pub difference: Difference,
    /// What that shows.
    pub says: &'static str,
}

/// The worth of a skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learned {
    /// How the interval is computed.
    pub method: &'static str,
    /// Every finished arm.
    pub arms: Vec<ArmRun>,
    /// Pairs whose first arm wrote a skill.
    pub pairs_with_skill: usize,
    /// The figures over complete pairs.
    pub measures: Vec<Measure>,
}

/// A figure, and how it is read off an arm.
type Figure = (&'static str, fn(&ArmRun) -> f64);

/// Every figure.
const FIGURES: [Figure; 6] = [
    ("iterations", |arm| arm.iterations as f64),
    ("failed calls", |arm| arm.failures as f64),
    ("prompt tokens", |arm| arm.prompt_tokens as f64),
    ("output tokens", |arm| arm.output_tokens as f64),
    ("cost of later sessions, millionths of $", |arm| arm.microdollars),
    ("cost of the whole arm, millionths of $", |arm| arm.arm_microdollars),
];

impl Learned {
    pub(super) fn of(runs: &[Run], asked: &[Asked]) -> Self {
        let arms: Vec<ArmRun> = runs.iter().map(|run| arm_run(run, asked)).collect();
        let mut seeds: BTreeMap<u64, Vec<&ArmRun>> = BTreeMap::new();
        for arm in &arms {
            seeds.entry(arm.seed).or_default().push(arm);
        }
        let pairs: Vec<(&ArmRun, &ArmRun)> = seeds
            .values()
            .filter_map(|arms| match arms.as_slice() {
                [with, without] => Some((*with, *without)),
                _ => None,
            })
            .collect();
        let measures = FIGURES.iter().filter_map(|(name, figure)| {
            let values: Vec<(f64, f64)> =
                pairs.iter().map(|(with, without)| (figure(with), figure(without))).collect();
            let difference = Difference::of(&values)?;
            Some(Measure { name, says: difference.says(), difference })
        });
        let measures = measures.collect();
        let pairs_with_skill = pairs.iter().filter(|(with, _)| with.written > 0).count();
        Self {
            method: "paired t, 95 %, two-sided; pairs are the two arms of a seed",
            pairs_with_skill,
            measures,
            arms,
        }
    }

    /// True when there are pairs, a skill was written in some, and later work did not get longer for it.
    pub fn holds(&self) -> bool {
        let worse =
            self.measures.iter().any(|measure| measure.name == "iterations" && measure.says == "more");
        self.pairs_with_skill > 0 && !worse
    }
}

fn arm_run(run: &Run, asked: &[Asked]) -> ArmRun {
    let ledger = &run.played.ledger;
    let all = tasks(ledger);
    let first = all.first().map(|task| task.session.clone()).unwrap_or_default();
    let later = || all.iter().skip(1);
    let own = || asked.iter().filter(|asked| asked.run == run.name);
    let later_asked = || own().filter(|asked| asked.session != first && asked.lane == Lane::Main);
    let micro = |cost: Usd| cost.dollars() * 1e6;
    let created = |what: &What| matches!(what, What::SkillChanged(changed) if changed.ok && &*changed.action == "create");
    let verdicts = expect::judge(&run.scenario, &run.played);
    ArmRun {
        arm: run.arm.clone(),
        seed: run.seed,
        iterations: later().map(|task| task.iterations).sum(),
        failures: later().map(|task| task.failures).sum(),
        prompt_tokens: later_asked().filter_map(|asked| asked.billed).map(|parts| parts.prompt()).sum(),
        output_tokens: later_asked().filter_map(|asked| asked.billed).map(|parts| parts.output).sum(),
        microdollars: micro(later_asked().map(|asked| asked.cost).sum()),
        arm_microdollars: micro(own().map(|asked| asked.cost).sum()),
        written: ledger.events.iter().filter(|event| created(&event.what)).count() as u64,
        loaded: later().map(|task| task.loaded).sum(),
        holding: verdicts.iter().filter(|judged| judged.holds).count(),
        expectations: verdicts.len(),
    }
}

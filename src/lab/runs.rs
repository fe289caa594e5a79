//! Intact and broken runs of many breaks, played once each and side by side.
//!
//! Breaks that share a scenario and the knobs beside it share their intact run. Threads take one run after another,
//! which are put back in order, so any number of threads gives the same result.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::breaks::{Break, shipped_scenario};
use crate::lab::play::{Plan, PlayError, play};
use crate::laws::{self, Verdict};
use crate::ledger::Ledger;
use crate::policy::Overlay;
use crate::scenario::Scenario;

/// A ledger and what the laws say of it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The ledger.
    pub ledger: Ledger,
    /// The verdict.
    pub verdict: Verdict,
}

/// The two runs of one break.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The break.
    pub of: &'a Break,
    /// The run without it; shared by its index into [`Runs::intact`].
    pub intact: usize,
    /// The run with it.
    pub broken: Judged,
}

/// All runs of a list of breaks.
#[derive(Debug)]
pub struct Runs<'a> {
    /// Intact runs, each for one scenario and the knobs beside it.
    pub intact: Vec<Judged>,
    /// One pair a break, in order.
    pub pairs: Vec<Pair<'a>>,
}

/// Plays every break of the list, each with the scenario beside it.
///
/// # Errors
/// The first run, in order, that cannot be played.
pub fn play_all<'a>(breaks: &[(&'a Break, Scenario)], threads: NonZeroUsize) -> Result<Runs<'a>, PlayError> {
    let mut keys: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut jobs: Vec<(&Scenario, Plan)> = Vec::new();
    let mut place = Vec::new();
    for (found, scenario) in breaks {
        let with = Overlay::from_table(&found.with);
        let key = (scenario.digest.clone(), found.with.to_string());
        let at = *keys.entry(key).or_insert_with(|| {
            jobs.push((scenario, Plan { above: vec![with.clone()], ..Plan::default() }));
            jobs.len() - 1
        });
        place.push(at);
    }
    let intact_count = jobs.len();
    for (found, scenario) in breaks {
        let above = vec![Overlay::from_table(&found.with), found.overlay()];
        jobs.push((scenario, Plan { above, ..Plan::default() }));
    }
    let mut done = in_order(&jobs, threads)?;
    let broken = done.split_off(intact_count);
    let pairs = breaks
        .iter()
        .zip(place)
        .zip(broken)
        .map(|(((found, _), intact), broken)| Pair { of: found, intact, broken })
        .collect();
    Ok(Runs { intact: done, pairs })
}

fn in_order(jobs: &[(&Scenario, Plan)], threads: NonZeroUsize) -> Result<Vec<Judged>, PlayError> {
    let run = |(scenario, plan): &(&Scenario, Plan)| {
        let ledger = play(scenario, plan)?;
        let verdict = laws::judge(&ledger);
        Ok(Judged { ledger, verdict })
    };
    each_on(jobs, threads, run).into_iter().collect()
}

/// What `run` makes of every job, in their order, on as many threads as the machine offers.
pub fn each<J: Sync, R: Send>(jobs: &[J], run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    each_on(jobs, threads(), run)
}

/// The same on so many threads.
pub fn each_on<J: Sync, R: Send>(jobs: &[J], threads: NonZeroUsize, run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let threads = threads.get().min(jobs.len().max(1));
    let (run, next) = (&run, &AtomicUsize::new(0));
    let mut slots: Vec<Option<R>> = Vec::new();
    slots.resize_with(jobs.len(), || None);
    std::thread::scope(|scope| {
        // Whoever is free takes the next job.
        let take = move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < jobs.len());
        let work =
            move || std::iter::from_fn(take).map(|index| (index, run(&jobs[index]))).collect::<Vec<_>>();
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            for (index, result) in worker.join().expect("a run does not panic") {
                slots[index] = Some(result);
            }
        }
    });
    slots.into_iter().map(|slot| slot.expect("every job was done")).collect()
}

/// As many threads as the machine offers.
pub fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Every shipped break with its scenario, in order.
///
/// # Panics
/// When a shipped file is broken, which a test forbids.
pub fn shipped() -> Vec<(Break, Scenario)> {
    crate::lab::breaks::SHIPPED
        .iter()
        .map(|(id, _)| {
            let found = crate::lab::breaks::shipped_break(id).expect("a shipped break");
            let scenario = shipped_scenario(&found.scenario).expect("a break names a shipped scenario");
            (found, scenario)
        })
        .collect()
}

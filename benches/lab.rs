//! Times of the runtime in process.
//!
//! `seed`: the seed scenario intact, store and ledger included, nothing judged. `laws`: all laws over its ledger.
//! `ledger-write`, `ledger-read`: its JSON Lines form. `session-10000`: one session of 10,000 requests with the store in
//! memory; divide by 10,000 for one request. `steady-1-day`: 1,600 requests watched, with nothing kept of them.
//! `explore-40-seeds`: drawn, played and judged on every core. Setup is outside the timed part.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hermes_lab::lab::breaks::shipped_scenario;
use hermes_lab::lab::explore::{self, Search};
use hermes_lab::lab::play::{Plan, play};
use hermes_lab::lab::{life, runs};
use hermes_lab::{laws, ledger, scenario};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A session of `turns` turns of eight requests each.
fn long_session(turns: u64) -> scenario::Scenario {
    let text = format!(
        "format = 1\nname = \"long\"\n[policy.review]\nskill_interval = 0\nmemory_interval = 0\n[policy.compress]\n\
         enabled = false\n[policy.store]\nindex_when = \"search\"\n[[command]]\nrun = \"step *\"\nprints = \"a line of output that says what was done\"\n\
         [[act]]\nopen.name = \"s\"\n[[act]]\n[act.turn]\nsay = \"turn {{i}}\"\ntimes = {turns}\n\
         replies = [{}, {{ say = \"Turn {{i}} is done.\" }}]\n",
        (0..7)
            .map(|n| format!("{{ call = \"terminal\", args = {{ command = \"step {{i}} {n}\" }} }}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    scenario::load("long.toml", &text).expect("a valid scenario")
}

fn benches(c: &mut Criterion) {
    let seed = shipped_scenario("seed").expect("the seed");
    c.bench_function("seed", |b| b.iter(|| play(black_box(&seed), &Plan::default()).expect("it plays")));
    let ledger = play(&seed, &Plan::default()).expect("it plays");
    c.bench_function("laws", |b| b.iter(|| laws::judge(black_box(&ledger))));
    c.bench_function("ledger-write", |b| b.iter(|| black_box(&ledger).to_jsonl()));
    let text = ledger.to_jsonl();
    c.bench_function("ledger-read", |b| b.iter(|| ledger::read("seed", black_box(&text)).expect("it reads")));
    let long = long_session(1_250);
    let mut group = c.benchmark_group("session");
    group.sample_size(10);
    group.bench_function("10000", |b| b.iter(|| play(black_box(&long), &Plan::default()).expect("it plays")));
    let ledger = play(&long, &Plan::default()).expect("it plays");
    group.bench_function("laws-10000", |b| b.iter(|| laws::judge(black_box(&ledger))));
    group.bench_function("steady-1-day", |b| {
        b.iter(|| life::whole(life::Kind::Steady, 1, 1, &Plan::default()).expect("it lives"));
    });
    group.bench_function("explore-40-seeds", |b| {
        let search =
            Search { first: 1, seeds: 40, twice: false, threads: runs::threads(), hidden: Vec::new() };
        b.iter(|| explore::search(black_box(&search), &|| true));
    });
    group.finish();
}

criterion_group!(lab, benches);
criterion_main!(lab);

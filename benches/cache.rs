//! Times of the cache models.
//!
//! `sweep`: one pass over stack distances of the conversation trace, 288,500 block visits, answering every capacity.
//! `engine-lru-10000`: the same visits through a cache of 10,000 blocks. `clairvoyant-10000`: the bound at that
//! capacity. `anthropic-growing`: one request of a conversation of 2,000 messages, four markers. `vllm-growing`: the
//! same through full blocks. Reading the file is outside the timed part.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hermes_lab::cache::{Observed, Ttl};
use hermes_lab::lab::bench::distances::Sweep;
use hermes_lab::lab::bench::policies::{self, Policy};
use hermes_lab::lab::bench::trace::{self, Trace};
use hermes_lab::policy::{Cache, CacheModel};
use hermes_lab::wire::{Chain, Level, Segment};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn traces(c: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/mooncake-conversation.jsonl");
    #[expect(clippy::disallowed_methods, reason = "a bench reads its own data file")]
    let text = std::fs::read_to_string(path).expect("the trace");
    let Ok(Trace::Blocks(blocks)) = trace::read("conversation", &text) else { return };
    let mut group = c.benchmark_group("trace");
    group.sample_size(20).throughput(Throughput::Elements(blocks.visits.len() as u64));
    group.bench_function("sweep", |b| b.iter(|| Sweep::of(black_box(&blocks), false).rates(Some(10_000))));
    group.bench_function("engine-lru-10000", |b| {
        b.iter(|| policies::rates(black_box(&blocks), Policy::Lru, 10_000, false));
    });
    group.bench_function("clairvoyant-10000", |b| {
        b.iter(|| policies::clairvoyant(black_box(&blocks), 10_000));
    });
    group.finish();
}

fn models(c: &mut Criterion) {
    let (mut chain, mut chains, mut sizes) = (Chain::EMPTY, Vec::new(), Vec::new());
    for message in 0..2_000_u64 {
        chain = chain.then(&Segment::new(Level::Messages, message.to_string()));
        chains.push(chain);
        sizes.push((message + 1) * 100);
    }
    let knobs = Cache::default();
    for (name, model) in [("anthropic-growing", CacheModel::Anthropic), ("vllm-growing", CacheModel::Vllm)] {
        let mut cache = hermes_lab::cache::model(model, &knobs);
        let (mut at, mut length) = (0, 1_000);
        c.bench_function(name, |b| {
            b.iter(|| {
                at += 1_000;
                length = if length == chains.len() { 1_000 } else { length + 1 };
                let marks = [0, length - 3, length - 2, length - 1].map(|position| (position, Ttl::Minutes5));
                let request = Observed {
                    chains: &chains[..length],
                    sizes: &sizes[..length],
                    marks: &marks,
                    ..Observed::default()
                };
                cache.observe(at, black_box(&request))
            });
        });
    }
}

criterion_group!(cache, traces, models);
criterion_main!(cache);

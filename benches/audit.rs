//! How fast an audit reads: a log of about 88 MB with 2,000 requests, and the same with a clock in every system prompt.
//!
//! `cargo bench --bench audit`. Throughput is bytes of log a second on one core, from bytes to verdicts; making the log
//! is not timed. The second log is the worst of the common ones: every request breaks and is compared.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hermes_lab::audit::read;
use hermes_lab::audit::{Audit, Auditor, Options};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REQUESTS: usize = 2_000;
const TURNS: usize = 50;
const WORDS: [&str; 16] = [
    "harbour", "lantern", "quartz", "meadow", "timber", "saffron", "glacier", "orchard", "ripple", "velvet",
    "compass", "willow", "beacon", "copper", "granite", "thicket",
];

/// A plain sequence of numbers: the same log on every machine.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Lines of eight words, with escaped line ends, as tool results have them.
    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for at in 0..words {
            let gap = if at % 8 == 7 { "\\n" } else { " " };
            let _ = write!(text, "{}{gap}", WORDS[usize::try_from(self.next() % 16).unwrap_or(0)]);
        }
        text
    }
}

fn message(role: &str, block: &str, marked: bool) -> String {
    let mark = if marked { ", \"cache_control\": {\"type\": \"ephemeral\"}" } else { "" };
    format!("{{\"role\": \"{role}\", \"content\": [{{{block}{mark}}}]}}")
}

/// Sessions of fifty turns, each request repeating all before it; with `clock`, the system prompt tells the time.
fn log(clock: bool) -> Vec<u8> {
    let mut sequence = Sequence(1);
    let mut out = String::new();
    for request in 0..REQUESTS {
        if request % TURNS != 0 {
            continue;
        }
        let tools: Vec<String> = (0..18)
            .map(|at| {
                format!(
                    "{{\"name\": \"tool_{at}\", \"description\": \"{}\", \"input_schema\": {{\"type\": \"object\", \
                     \"properties\": {{\"path\": {{\"type\": \"string\"}}}}}}}}",
                    sequence.text(56)
                )
            })
            .collect();
        let system = sequence.text(900);
        let mut blocks = vec![("user", format!("\"type\": \"text\", \"text\": \"{}\"", sequence.text(30)))];
        for turn in 0..TURNS {
            if turn > 0 {
                let id = format!("toolu_{}", request + turn);
                blocks.push((
                    "assistant",
                    format!("\"type\": \"tool_use\", \"id\": \"{id}\", \"name\": \"tool_1\", \"input\": {{\"path\": \"a.rs\"}}"),
                ));
                blocks.push((
                    "user",
                    format!(
                        "\"type\": \"tool_result\", \"tool_use_id\": \"{id}\", \"content\": \"{}\"",
                        sequence.text(100)
                    ),
                ));
            }
            let last = blocks.len() - 1;
            let messages: Vec<String> = blocks
                .iter()
                .enumerate()
                .map(|(at, (role, block))| message(role, block, at == last))
                .collect();
            let at = 1_780_000_000 + (request + turn) * 20;
            let time =
                if clock { format!("It is {:02}:{:02}. ", turn / 60, turn % 60) } else { String::new() };
            let _ = writeln!(
                out,
                "{{\"timestamp\": {at}, \"session_id\": \"s{request}\", \"request\": {{\"model\": \"claude-sonnet-4-5\", \
                 \"max_tokens\": 4096, \"system\": [{{\"type\": \"text\", \"text\": \"{time}{system}\", \"cache_control\": \
                 {{\"type\": \"ephemeral\"}}}}], \"tools\": [{}], \"messages\": [{}]}}}}",
                tools.join(", "),
                messages.join(", ")
            );
        }
    }
    out.into_bytes()
}

fn audit(bytes: &[u8]) -> Audit {
    let mut auditor = Auditor::new(Options::default());
    // The copy into an owned source is a part of what a file would cost, too.
    let read = read::read("bench", Box::new(Cursor::new(bytes.to_vec())), None, &mut auditor);
    black_box(read.is_ok());
    auditor.finish()
}

fn audits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("audit");
    group.sample_size(10);
    for (name, clock) in [("growing sessions", false), ("a clock in every request", true)] {
        let bytes = log(clock);
        let found = audit(&bytes);
        assert_eq!(found.requests.len(), REQUESTS);
        let breaks = found.requests.iter().filter(|judged| judged.broken).count();
        assert_eq!(breaks, if clock { REQUESTS - REQUESTS / TURNS } else { 0 });
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| audit(&bytes).requests.len()));
    }
    group.finish();
}

criterion_group!(benches, audits);
criterion_main!(benches);

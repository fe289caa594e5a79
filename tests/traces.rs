//! Recorded traces come out as two independent parties computed them, to four digits.

use hermes_lab::lab::bench::distances::Sweep;
use hermes_lab::lab::bench::policies::{Policy, rates};
use hermes_lab::lab::bench::published;
use hermes_lab::lab::bench::replay::{Plan, replay};
use hermes_lab::lab::bench::trace::{self, Blocks, Trace};

fn read(name: &str) -> Trace {
    let path = format!("{}/tests/traces/{name}", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a test reads its own data files")]
    let text = std::fs::read_to_string(&path).expect("a trace of this folder");
    trace::read(name, &text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn blocks(name: &str) -> Blocks {
    match read(name) {
        Trace::Blocks(blocks) => blocks,
        other => panic!("{}", other.format()),
    }
}

/// Every printed figure that can be reached is reached.
fn reached(name: &str) {
    let rows = published::of_blocks(&blocks(name));
    let unreached: Vec<_> = rows.iter().filter(|row| !row.reached && row.note.is_empty()).collect();
    assert!(rows.len() > 30 && unreached.is_empty(), "{unreached:#?}");
}

#[test]
fn the_conversation_trace_comes_out_under_every_policy_and_capacity() {
    reached("mooncake-conversation.jsonl");
}

#[test]
fn the_synthetic_trace_comes_out_under_every_policy_and_capacity() {
    reached("mooncake-synthetic.jsonl");
}

#[test]
fn visiting_last_to_first_lets_tails_leave_and_reads_a_little_more() {
    for (name, printed) in
        [("mooncake-conversation.jsonl", [0.2116, 0.0445]), ("mooncake-synthetic.jsonl", [0.4239, 0.0841])]
    {
        let trace = blocks(name);
        let sweep = Sweep::of(&trace, true);
        let ours = [10_000, 1_000].map(|capacity| sweep.rates(Some(capacity)).block);
        assert_eq!(ours.map(|rate| format!("{rate:.4}")), printed.map(|rate| format!("{rate:.4}")), "{name}");
        assert_eq!(rates(&trace, Policy::Lru, 1_000, true).block.to_bits(), ours[1].to_bits());
    }
}

#[test]
fn capacities_in_tokens_come_out_too() {
    for (name, printed) in [
        ("mooncake-conversation.jsonl", ["0.1355", "0.3635"]),
        ("mooncake-synthetic.jsonl", ["0.3094", "0.6396"]),
    ] {
        let sweep = Sweep::of(&blocks(name), false);
        let ours =
            [3_000_000, 50_000_000].map(|tokens| format!("{:.4}", sweep.rates(Some(tokens / 512)).block));
        assert_eq!(ours, printed);
    }
}

#[test]
fn agent_sessions_read_the_four_printed_shares() {
    let replay = replay(&read("agent-sessions-packed.jsonl"), &Plan::default(), true);
    assert_eq!((replay.requests, replay.tokens), (48_658, 6_006_837_305));
    assert!(
        replay.published.len() == 4 && replay.published.iter().all(|row| row.reached),
        "{:#?}",
        replay.published
    );
}

#[test]
fn a_session_in_its_original_form_equals_its_packed_form() {
    let (Trace::Sessions(original), Trace::Sessions(packed)) =
        (read("agent-session-0504.json"), read("agent-sessions-packed.jsonl"))
    else {
        panic!("both are sessions")
    };
    let same = packed.iter().find(|session| session.id == original[0].id).unwrap();
    assert_eq!(original[0].read(), same.read());
}

#[test]
fn each_round_reads_what_the_round_before_read_and_wrote() {
    let replay = replay(&read("tracelab-rounds.jsonl"), &Plan::default(), true);
    assert_eq!(replay.identities.iter().map(|(_, held, of)| (*held, *of)).collect::<Vec<_>>(), [(9, 9)]);
    assert!(replay.published.iter().all(|row| row.reached));
}

//! The same scenario, seed and policy give the same bytes, on any number of threads.

use hermes_lab::lab::breaks::{SHIPPED, shipped_break};
use hermes_lab::ledger::{self, first_difference};
use hermes_lab::scenario::shipped;

use crate::support::Lab;

#[test]
fn every_scenario_gives_the_same_bytes_twice() {
    for (name, _) in shipped() {
        let (first, second) = (Lab::scenario(name).run(), Lab::scenario(name).run());
        assert_eq!(first_difference(&first, &second), None, "{name}");
    }
}

#[test]
fn one_thread_and_eight_give_the_same_digests() {
    let digest = |id: &str| {
        let scenario = shipped_break(id).unwrap().scenario;
        Lab::scenario(&scenario).break_(id).run().digest()
    };
    let ids: Vec<&str> = SHIPPED.iter().map(|(id, _)| *id).take(8).collect();
    let alone: Vec<String> = ids.iter().map(|id| digest(id)).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = ids.iter().map(|id| scope.spawn(move || digest(id))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn a_ledger_is_read_as_it_was_written() {
    for (name, _) in shipped() {
        let ledger = Lab::scenario(name).run();
        let read = ledger::read(name, &ledger.to_jsonl()).unwrap();
        assert_eq!(first_difference(&ledger, &read), None, "{name}");
    }
}

#[test]
fn another_seed_draws_other_times_and_the_same_seed_the_same() {
    let digest = |seed: u64| {
        let text = format!(
            "format = 1\nname = \"x\"\nseed = {seed}\n[policy.turn]\nreply_ms_min = 1\nreply_ms_max = 9000\n[[act]]\n\
             open.name = \"s\"\n[[act]]\nturn = {{ say = \"go\", replies = [{{ call = \"skills_list\" }}, {{ say = \"done\" }}] }}\n"
        );
        let ledger = Lab::text(&text).run();
        ledger.events.iter().map(|event| event.at).collect::<Vec<_>>()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

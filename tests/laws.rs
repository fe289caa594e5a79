//! Checks that guard the lab itself are tripped by forged ledgers.

use hermes_lab::laws::judge;
use hermes_lab::ledger::{Ledger, What};
use hermes_lab::wire::{Level, Segment};

use crate::support::Lab;

fn forged(change: impl Fn(&mut What) -> bool) -> Vec<&'static str> {
    let mut ledger: Ledger = Lab::scenario("workshop").run();
    let done = ledger.events.iter_mut().any(|event| change(&mut event.what));
    assert!(done, "nothing was forged");
    judge(&ledger).caught_by()
}

#[test]
fn a_recorder_that_lies_about_its_bytes_is_caught() {
    let caught = forged(|what| match what {
        What::Request(request) if request.id == 2 => {
            request.added[0] = Segment::new(Level::Messages, "forged");
            true
        }
        _ => false,
    });
    assert!(caught.contains(&"L1.honest"), "{caught:?}");
}

#[test]
fn a_counter_that_lies_is_caught() {
    let caught = forged(|what| match what {
        What::Response(response) => {
            response.usage.read += 1;
            true
        }
        _ => false,
    });
    assert_eq!(caught, ["L1.usage-adds-up"]);
}

#[test]
fn a_request_that_keeps_less_than_it_could_is_no_break() {
    let mut ledger: Ledger = Lab::scenario("workshop").run();
    let mut last: Option<Segment> = None;
    for event in &mut ledger.events {
        let What::Request(request) = &mut event.what else { continue };
        if request.id == 3 {
            let again = last.clone().expect("an earlier request");
            request.kept -= 1;
            request.added.insert(0, again);
        }
        last = request.added.last().cloned();
    }
    assert!(judge(&ledger).holds());
}

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

/// The first row of a session stored once more, as often as it takes, in front of its last state.
fn stored_again(times: usize) -> Vec<&'static str> {
    let mut ledger: Ledger = Lab::scenario("workshop").run();
    let mut first = None;
    for event in &mut ledger.events {
        match &mut event.what {
            What::Stored(stored) if first.is_none() => first = Some((event.session.clone(), stored.digest)),
            What::StoreState(state)
                if first.as_ref().is_some_and(|(session, _)| *session == event.session) =>
            {
                state.live.extend(std::iter::repeat_n(first.as_ref().unwrap().1, times));
            }
            _ => {}
        }
    }
    judge(&ledger).caught_by()
}

#[test]
fn a_message_that_is_held_once_more_than_it_was_said_is_caught() {
    assert!(stored_again(0).is_empty());
    assert!(stored_again(3).contains(&"L4.stored-once"));
}

//! A process that dies after any event loses nothing that it had accepted.

use hermes_lab::lab::breaks::{shipped_break, shipped_scenario};
use hermes_lab::lab::crash::{closed, crash_every_step};
use hermes_lab::lab::play::Plan;
use hermes_lab::lab::runs;

use crate::support::stdout;

fn plan() -> Plan {
    Plan { above: vec![closed()], ..Plan::default() }
}

#[test]
fn every_scenario_survives_a_crash_after_every_event() {
    // Long scenarios are killed after every n-th event here; `hermes-lab crash` does it after every one.
    // The 636th event of a runaway turn is the answer to its last request, which asks for a summary.
    for (name, step) in [
        ("reopen", 1),
        ("errands", 1),
        ("workshop", 3),
        ("schedule", 3),
        ("seed", 9),
        ("long-chat", 23),
        ("runaway", 53),
    ] {
        let scenario = shipped_scenario(name).unwrap();
        let crashes = crash_every_step(&scenario, &plan(), step, runs::threads()).unwrap();
        assert!(crashes.rows > 0, "{name}: nothing had been accepted");
        assert_eq!(crashes.problems, [], "{name}");
    }
}

#[test]
fn a_history_that_is_not_mended_after_a_crash_is_told() {
    let scenario = shipped_scenario("reopen").unwrap();
    let mut plan = plan();
    plan.above.push(shipped_break("D31").unwrap().overlay());
    let crashes = crash_every_step(&scenario, &plan, 1, runs::threads()).unwrap();
    assert!(
        crashes.problems.iter().any(|problem| problem.what == "L4.no-unanswered"),
        "{:#?}",
        crashes.problems
    );
}

#[test]
fn the_command_says_how_many_crashes_there_were() {
    let text = stdout(&["crash", "errands"], 0);
    assert!(text.contains("nothing accepted was lost"), "{text}");
}

//! What the lab claims of itself: breaks, matrix, expectations.

use hermes_lab::lab::breaks::{shipped_scenario, show_all};
use hermes_lab::lab::figures::figure;
use hermes_lab::lab::play::{Plan, play_to_end};
use hermes_lab::lab::{expect, matrix, runs, selftest};
use hermes_lab::laws;
use hermes_lab::scenario::shipped;

use crate::support::Lab;

#[test]
fn every_break_degrades_as_its_file_claims() {
    for shown in show_all(&runs::shipped()).unwrap() {
        assert!(shown.holds, "{shown:#?}");
    }
}

#[test]
fn every_break_is_caught_by_its_law_and_every_check_can_fail() {
    assert_eq!(matrix::build().unwrap().problems(), Vec::<String>::new());
}

#[test]
fn every_scenario_ends_as_it_says_and_breaks_no_law() {
    for (name, _) in shipped() {
        let scenario = shipped_scenario(name).unwrap();
        let played = play_to_end(&scenario, &Plan::default()).unwrap();
        let verdict = laws::judge(&played.ledger);
        assert!(verdict.holds(), "{name}: {:#?}", verdict.findings().collect::<Vec<_>>());
        for judged in expect::judge(&scenario, &played) {
            assert!(judged.holds, "{name}: {judged:#?}");
        }
    }
}

#[test]
fn the_self_test_holds() {
    let result = selftest::run().unwrap();
    assert!(result.holds(), "{result:#?}");
}

#[test]
fn the_published_figures_of_the_prototype_come_out() {
    let value = |id: Option<&str>, name: &str| {
        let lab = Lab::scenario("seed");
        let ledger = id.map_or_else(|| Lab::scenario("seed"), |id| lab.break_(id)).run();
        figure(name).unwrap().of(&ledger)
    };
    let growth = value(Some("D2"), "system_prompt_chars").as_u64().unwrap()
        - value(None, "system_prompt_chars").as_u64().unwrap();
    assert_eq!(growth, 3_457 - 2_073, "the system prompt grows by what memory grows");
    let full = (value(None, "prefix_breaks"), value(Some("D1"), "prefix_breaks"));
    assert_eq!(full, (5.into(), 8.into()), "the full figure beside D1's published one");
}

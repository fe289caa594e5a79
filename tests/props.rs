//! Properties of single mechanisms, held against a plain model; and mutated input files. Whole sessions are drawn by
//! the search in `explore`.

use proptest::prelude::*;

use hermes_lab::lab::figures::figure;
use hermes_lab::lab::play::{Plan, play};
use hermes_lab::laws::judge;
use hermes_lab::ledger::{self, What};
use hermes_lab::scenario::{self, shipped};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn memory_holds_what_a_plain_list_would_hold(entries in prop::collection::vec("[a-z ]{8,300}", 1..30)) {
        let mut plain: Vec<String> = Vec::new();
        let mut text = "format = 1\nname = \"generated\"\n".to_owned();
        for entry in &entries {
            text.push_str(&format!("[[act]]\nremember = {{ target = \"memory\", add = \"{entry}\" }}\n"));
            let entry = entry.trim().to_owned();
            let size: usize = plain.iter().map(|known| known.chars().count() + 3).sum();
            let fits = size + entry.chars().count() <= 2_200;
            if !entry.is_empty() && !plain.contains(&entry) && fits {
                plain.push(entry);
            }
        }
        let scenario = scenario::load("generated.toml", &text).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        let ledger = play(&scenario, &Plan::default()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let last = ledger.events.iter().rev().find_map(|event| match &event.what {
            What::MemoryState(state) if &*state.target == "memory" => Some(state.clone()),
            _ => None,
        });
        let held: Vec<String> = last.map(|state| state.entries.iter().map(ToString::to_string).collect()).unwrap_or_default();
        prop_assert_eq!(held, plain);
    }

    #[test]
    fn the_curator_moves_nothing_that_it_did_not_sign(days in prop::collection::vec((0i64..60, any::<bool>()), 1..8)) {
        let mut text = "format = 1\nname = \"generated\"\n".to_owned();
        for (n, (day, agent)) in days.iter().enumerate() {
            let by = if *agent { "agent" } else { "user" };
            text.push_str(&format!(
                "[[skill]]\nname = \"k{n}\"\ndescription = \"Use when {n}.\"\ncreated_by = \"{by}\"\ncreated_day = 0\nuses = 1\nused_day = {day}\n"
            ));
        }
        text.push_str("[[act]]\ncurator.day = 61\n");
        let scenario = scenario::load("generated.toml", &text).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        let ledger = play(&scenario, &Plan::default()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let expected: Vec<String> = days
            .iter()
            .enumerate()
            .filter(|(_, (day, agent))| *agent && 61 - day >= 30)
            .map(|(n, _)| format!("k{n}"))
            .collect();
        let mut expected = expected;
        expected.sort();
        prop_assert_eq!(figure("archived").unwrap().of(&ledger), serde_json::json!(expected));
    }

    #[test]
    fn mutated_scenarios_are_refused_or_played_but_never_panic(which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let (_, text) = shipped()[which % shipped().len()];
        let mut bytes = text.as_bytes().to_vec();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let mutated = String::from_utf8_lossy(&bytes).into_owned();
        if let Ok(scenario) = scenario::load("mutated.toml", &mutated) {
            let _ = play(&scenario, &Plan::default());
        }
    }

    #[test]
    fn mutated_ledgers_are_refused_or_judged_but_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let scenario = hermes_lab::lab::breaks::shipped_scenario("workshop").unwrap();
        let mut bytes = play(&scenario, &Plan::default()).unwrap().to_jsonl().into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(ledger) = ledger::read("mutated", &String::from_utf8_lossy(&bytes)) {
            let _ = judge(&ledger);
        }
    }
}

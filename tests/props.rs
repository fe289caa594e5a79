//! Properties over generated sessions, held against a plain model; and mutated input files.
//!
//! A generated session is a scenario file, so a shrunk failure prints what replays it.

use proptest::prelude::*;

use hermes_lab::lab::figures::figure;
use hermes_lab::lab::play::{Plan, play};
use hermes_lab::laws::judge;
use hermes_lab::ledger::{self, What};
use hermes_lab::scenario::{self, shipped};

/// One step of a generated session.
#[derive(Debug, Clone)]
enum Step {
    Turn { calls: Vec<u8>, parallel: bool },
    Remember(String),
    Skill(u8),
    Wait(u8),
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (prop::collection::vec(0u8..6, 0..6), any::<bool>())
            .prop_map(|(calls, parallel)| Step::Turn { calls, parallel }),
        2 => "[a-zA-Z字é ]{10,120}".prop_map(Step::Remember),
        1 => (0u8..4).prop_map(Step::Skill),
        1 => (1u8..30).prop_map(Step::Wait),
        1 => Just(Step::Resume),
    ];
    prop::collection::vec(step, 1..14)
}

fn call(kind: u8, n: usize) -> String {
    match kind {
        0 => format!("{{ tool = \"terminal\", args = {{ command = \"echo {n}\" }} }}"),
        1 => format!("{{ tool = \"write_file\", args = {{ path = \"f{n}\", content = \"x{n}\" }} }}"),
        2 => "{ tool = \"read_file\", args = { path = \"a.txt\" } }".to_owned(),
        3 => format!(
            "{{ tool = \"memory\", args = {{ action = \"add\", target = \"memory\", content = \"Noted number {n} for later\" }} }}"
        ),
        4 => "{ tool = \"skills_list\" }".to_owned(),
        _ => format!("{{ tool = \"no_such_{n}\" }}"),
    }
}

/// The scenario file of a generated session.
fn text(steps: &[Step], window: u32) -> String {
    let mut text = format!(
        "format = 1\nname = \"generated\"\n[policy.compress]\nunit = \"characters\"\nwindow = {window}\nthreshold_floor = 0\n\
         threshold_tokens = \"none\"\nsmall_window = 0\nthreshold = 0.5\n[[file]]\npath = \"a.txt\"\ntext = \"words in a file\"\n\
         [[rule]]\nlane = \"review\"\nreply.say = \"Nothing to save.\"\n[[rule]]\nlane = \"summary\"\nreply.say = \"Work went on.\"\n\
         [[act]]\nopen.name = \"s\"\n"
    );
    for (n, step) in steps.iter().enumerate() {
        text.push_str("[[act]]\n");
        match step {
            Step::Turn { calls, parallel } => {
                let each: Vec<String> = calls.iter().enumerate().map(|(m, kind)| call(*kind, n * 10 + m)).collect();
                let rounds = if *parallel && !each.is_empty() { vec![each.join(", ")] } else { each };
                let replies = rounds.iter().fold(String::new(), |mut text, calls| {
                    text.push_str(&format!("{{ calls = [{calls}] }}, "));
                    text
                });
                text.push_str(&format!(
                    "turn = {{ say = \"Do thing number {n}.\", replies = [{replies}{{ say = \"Thing {n} is done.\" }}] }}\n"
                ));
            }
            Step::Remember(entry) => {
                text.push_str(&format!("remember = {{ target = \"memory\", add = \"{}\" }}\n", entry.trim()));
            }
            Step::Skill(k) => text.push_str(&format!(
                "[act.add_skill.skill]\nname = \"skill-{n}-{k}\"\ndescription = \"Use when {n}.\"\ncreated_by = \"user\"\n"
            )),
            Step::Wait(minutes) => text.push_str(&format!("wait.minutes = {minutes}\n")),
            Step::Resume => text.push_str("open = { name = \"s\", resume = true }\n"),
        }
    }
    text.push_str("[[act]]\ncurator.day = 90\n");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_session_keeps_every_law(steps in steps(), window in 4_000u32..40_000) {
        let text = text(&steps, window);
        let scenario = scenario::load("generated.toml", &text).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        let ledger = play(&scenario, &Plan::default()).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let verdict = judge(&ledger);
        let findings: Vec<_> = verdict.findings().collect();
        prop_assert!(findings.is_empty(), "{findings:#?}\n{text}");
    }

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

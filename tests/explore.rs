//! Drawn runs with faults: an intact runtime holds, a hidden break is found, what is found replays.

use std::num::NonZeroUsize;

use hermes_lab::lab::breaks::shipped_break;
use hermes_lab::lab::explore::{self, Search, draft_of, generate::CLOSED, hidden, prove, run_text};
use hermes_lab::scenario;

use crate::support::{lab, refused, stdout};

fn search_for(seeds: u64, knobs: Vec<(String, String)>, threads: usize) -> explore::Report {
    let search =
        Search { first: 1, seeds, twice: false, threads: NonZeroUsize::new(threads).unwrap(), hidden: knobs };
    explore::search(&search, &|| true)
}

/// The first seed that shows a hidden fault.
fn first_seed(knobs: &[(String, String)], seeds: u64) -> Option<u64> {
    (1..=seeds).find(|seed| run_text(&draft_of(*seed, knobs).to_toml("drawn", ""), false).failure().is_some())
}

#[test]
fn the_first_drawn_runs_keep_every_law_whatever_goes_wrong() {
    let report = search_for(60, Vec::new(), 2);
    assert!(report.holds(), "{report:?}");
}

#[test]
fn every_one_of_the_first_twenty_breaks_is_found_by_a_check_that_its_file_promises() {
    // The seeds that `hermes-lab explore --prove` names; it plays all that come before, too.
    for (id, seed) in PROVING.into_iter().flat_map(|(seed, ids)| ids.iter().map(move |id| (*id, seed))) {
        let (caught, _) = prove::caught_by(&shipped_break(id).unwrap(), seed);
        assert!(!caught.is_empty(), "{id} is not found in seed {seed}");
    }
    let named: usize = PROVING.iter().map(|(_, ids)| ids.len()).sum();
    assert_eq!(named, prove::PROVED.len());
}

/// Seeds, and the breaks that a search from 1 on finds there first.
const PROVING: [(u64, &[&str]); 8] = [
    (1, &["D1", "D6", "D8", "D10", "D12", "D13", "D15", "D19"]),
    (2, &["D2", "D4", "D5", "D7", "D11"]),
    (3, &["D20"]),
    (10, &["D16"]),
    (11, &["D3", "D17"]),
    (22, &["D14"]),
    (23, &["D18"]),
    (25, &["D9"]),
];

#[test]
#[expect(clippy::disallowed_methods, reason = "files of the project")]
fn what_the_search_found_once_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let outcome = run_text(&std::fs::read_to_string(&file).unwrap(), true);
        assert_eq!(outcome.failures, [], "{}", file.display());
    }
}

#[test]
fn what_is_found_is_shrunk_to_a_file_that_replays_the_same_finding() {
    let report = search_for(2, hidden(&shipped_break("D10").unwrap()), 2);
    let found = report.found.first().expect("a clock with seconds is found");
    assert!(found.acts < found.acts_before, "{} acts of {}", found.acts, found.acts_before);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("found.toml");
    let path = path.to_str().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file for the command to read")]
    std::fs::write(path, &found.scenario).unwrap();
    assert!(stdout(&["run", path], 1).contains(&found.failure.check));
}

#[test]
fn one_thread_and_sixteen_give_the_same_report() {
    let knobs = hidden(&shipped_break("D1").unwrap());
    assert_eq!(search_for(3, knobs.clone(), 1), search_for(3, knobs, 16));
}

#[test]
fn the_canary_is_found_and_its_absence_would_be_told() {
    let report = search_for(1, Vec::new(), 1);
    assert!(report.canary && report.holds());
    let blind = explore::Report { canary: false, ..report };
    assert!(!blind.holds());
}

#[test]
fn a_gap_that_is_left_open_is_found() {
    for (knob, _) in CLOSED.iter().filter(|(knob, _)| *knob == "turn.close_failed") {
        let open = vec![((*knob).to_owned(), "false".to_owned())];
        assert!(first_seed(&open, 12).is_some(), "{knob}");
    }
}

#[test]
fn a_folder_of_findings_is_tried_first_and_grows() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let first = stdout(&["explore", "--seeds", "1", "--hidden", "D10", "--corpus", folder], 1);
    assert!(first.contains("reproduce: hermes-lab run "), "{first}");
    let again = stdout(&["explore", "--seeds", "1", "--corpus", folder], 1);
    assert!(again.starts_with("still fails: "), "{again}");
    let said = String::from_utf8(lab(&["explore", "--seeds", "1"]).stderr).unwrap();
    assert!(said.starts_with("seed 1, 1 seeds\n"), "{said}");
}

#[test]
fn a_fault_that_no_act_can_have_is_refused_with_the_nearest_name() {
    let faults = |text: &str| {
        let text = format!("format = 1\nname = \"x\"\n[[act]]\nopen.name = \"s\"\n[[fault]]\n{text}\n");
        let found = scenario::load("x.toml", &text).unwrap_err();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(
        [
            faults("act = 2\nbusy = {}"),
            faults("act = 1"),
            faults("act = 1\ncrsh.after_event = 1"),
            faults("act = 1\ncrash.after_event = 0"),
            faults("act = 1\nprovider.fault = \"overlode\""),
            faults("act = 1\nprovider = { fault = \"dropped\", lane = \"mian\" }"),
        ]
        .join("\n")
    );
    assert!(refused(&["explore", "--hidden", "D99"]).contains("unknown break `D99`"));
}

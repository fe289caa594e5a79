//! Rules of the house that no compiler keeps.
#![expect(clippy::disallowed_methods, reason = "the rules are about files")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Rooms from bottom to top; a room imports only what stands before it.
const ROOMS: [&str; 18] = [
    "world", "diag", "policy", "wire", "ledger", "scenario", "cache", "store", "model", "agent", "laws",
    "audit", "lab", "report", "serve", "drive", "live", "cli",
];

fn sources(dir: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_file_says_what_it_is_for_and_stays_within_a_readers_grasp() {
    for dir in ["src", "tests", "benches"] {
        for (path, text) in sources(dir) {
            assert!(text.starts_with("//!"), "{} has no head", path.display());
            assert!(text.lines().count() <= 1_000, "{} is too long", path.display());
            for (number, line) in text.lines().enumerate() {
                assert!(!line.ends_with(' '), "{}:{} ends in a blank", path.display(), number + 1);
            }
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let words = ["todo!(", "unimplemented!(", "FIX", "#[ignore", "#[should_panic"];
    for dir in ["src", "tests", "benches"] {
        for (path, text) in sources(dir) {
            if path.ends_with("tidy.rs") {
                continue;
            }
            for word in words {
                let word = if word == "FIX" { "FIXME" } else { word };
                assert!(!text.contains(word), "{} contains {word}", path.display());
            }
        }
    }
}

#[test]
fn a_room_imports_only_what_lies_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (path, text) in sources("src") {
        let relative = path.strip_prefix(&root).unwrap();
        let room = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let Some(height) = ROOMS.iter().position(|known| *known == room) else { continue };
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("use crate::")) {
            let other = line.split([':', ';', '{']).next().unwrap();
            let Some(other_height) = ROOMS.iter().position(|known| *known == other) else { continue };
            assert!(
                other_height <= height,
                "{} imports {other}, which lies above {room}",
                relative.display()
            );
        }
    }
}

#[test]
fn every_knob_is_read_by_what_a_run_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let not_a_run = [root.join("policy"), root.join("lab/conform")];
    let texts: Vec<String> = sources("src")
        .into_iter()
        .filter(|(path, _)| !not_a_run.iter().any(|dir| path.starts_with(dir)))
        .map(|(_, text)| text)
        .collect();
    for knob in hermes_lab::policy::Policy::knobs() {
        let (_, field) = knob.name.split_once('.').unwrap();
        let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
        let read = |text: &String| {
            let needle = format!(".{field}");
            text.match_indices(&needle).any(|(at, _)| ends(&text[at + needle.len()..]))
        };
        assert!(texts.iter().any(read), "nothing reads {}", knob.name);
    }
}

#[test]
fn every_dependency_says_why_it_is_here() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.contains("dependencies");
        } else if inside && line.contains('=') {
            assert!(line.contains("# "), "no reason: {line}");
        }
    }
}

#[test]
fn every_scenario_and_break_file_is_shipped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stems = |dir: &str| -> BTreeSet<String> {
        std::fs::read_dir(root.join(dir))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    let names = |list: &[(&str, &str)]| list.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    let scenarios: BTreeSet<String> = names(hermes_lab::scenario::shipped()).into_iter().collect();
    let suites = [hermes_lab::scenario::suite(), hermes_lab::scenario::learning()];
    let suites: BTreeSet<String> = suites.into_iter().flat_map(names).collect();
    assert_eq!(stems("scenarios/suite"), suites);
    assert_eq!(stems("scenarios"), scenarios);
    let breaks = hermes_lab::lab::breaks::SHIPPED.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(stems("breaks"), breaks);
}

//! The command, end to end: what people read, exit codes, bad input.
#![expect(clippy::disallowed_methods, reason = "files are written for the command to read")]

use hermes_lab::lab::breaks::shipped_scenario;

use crate::support::{refused, stdout};

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

/// A diagnostic with its temporary path shortened.
fn diagnostic(text: &str, path: &str) -> String {
    text.replace(path, "FILE")
}

#[test]
fn the_six_breaks_as_a_person_sees_them() {
    insta::assert_snapshot!(stdout(&["--break", "D1,D2,D3,D4,D5,D6"], 0));
}

#[test]
fn a_run_as_a_person_sees_it() {
    insta::assert_snapshot!(stdout(&["run", "workshop"], 0));
}

#[test]
fn a_broken_run_names_check_event_and_evidence() {
    insta::assert_snapshot!(stdout(&["run", "seed", "--break", "D3"], 1));
}

#[test]
fn a_timeline_as_a_person_sees_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.jsonl");
    let path = path.to_str().unwrap();
    stdout(&["run", "reopen", "--ledger", path], 0);
    insta::assert_snapshot!(stdout(&["show", path], 0));
    let only = stdout(&["show", path, "--kind", "resumed"], 0);
    assert_eq!(only.lines().filter(|line| line.contains("resumed with")).count(), 1);
}

#[test]
fn a_timeline_names_the_skills_that_a_full_disk_kept_from_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.jsonl");
    let path = path.to_str().unwrap();
    stdout(&["run", "tests/found/disk-full-in-a-long-curator-run.toml", "--ledger", path], 0);
    let shown = stdout(&["show", path, "--kind", "curator_ran"], 0);
    assert!(shown.contains("; not archived, the disk refused brought-19"), "{shown}");
}

#[test]
fn the_help_as_a_person_sees_it() {
    insta::assert_snapshot!(stdout(&["--help"], 0));
}

#[test]
fn json_has_the_shape_that_scripts_rely_on() {
    let breaks: serde_json::Value = serde_json::from_str(&stdout(&["breaks", "D4", "--json"], 0)).unwrap();
    assert_eq!(breaks["schema"], 1);
    let first = &breaks["breaks"][0];
    assert_eq!((&first["id"], &first["holds"]), (&"D4".into(), &true.into()));
    assert!(first["caught_by"].as_array().is_some_and(|list| !list.is_empty()));
    assert_eq!(first["figures"][0]["broken"][0], "rm -rf ./dist");
    let run: serde_json::Value = serde_json::from_str(&stdout(&["run", "seed", "--json"], 0)).unwrap();
    assert!(run["digest"].as_str().is_some_and(|digest| digest.len() == 64));
    assert!(run["findings"].as_array().is_some_and(Vec::is_empty));
    assert_eq!(run["figures"]["memory_chars"], 2073);
}

#[test]
fn a_run_played_twice_says_that_it_is_equal() {
    assert!(stdout(&["run", "seed", "--twice"], 0).contains("equal byte for byte"));
}

#[test]
fn a_home_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    stdout(&["run", "workshop", "--home", home], 0);
    for path in ["skills/commit-notes/SKILL.md", "skills/.usage.json", "state.db"] {
        assert!(dir.path().join(path).exists(), "{path} is missing");
    }
    let (_keep, again) = file(
        "again.toml",
        b"format = 1\nname = \"again\"\n[[act]]\nopen = { name = \"s1\", resume = true }\n[[act]]\nturn = { say = \"Still there?\", replies = [{ say = \"Yes.\" }] }\n",
    );
    let text = stdout(&["run", &again, "--home", home, "--json"], 0);
    assert!(text.contains("\"answers\": 1"), "{text}");
}

#[test]
fn every_mistake_of_a_scenario_is_reported_at_once() {
    let text = b"format = 1\nnmae = \"x\"\nname = \"x\"\n[policy]\n\"memry.chars_max\" = 3\n\"memory.chars_max\" = \"many\"\n[[act]]\nopen.name = \"s\"\n[[act]]\n[act.turn]\nsay = \"go\"\nreplies = [{ call = \"terminl\" }, { call = \"terminal\", args = { comand = \"ls\", no_such_option = 1 } }, { call = \"memory\", args = { target = \"user\", operations = [{ action = \"add\", contnt = \"x\" }] } }]\n[[act]]\nturn = { session = \"t\", say = \"go\" }\n[[act]]\nwiat.days = 1\n";
    let (_dir, path) = file("bad.toml", text);
    insta::assert_snapshot!(diagnostic(&refused(&["scenario", "check", &path]), &path));
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let (_d1, binary) = file("binary.toml", b"format = 1\nname = \"\xff\xfe\"\n");
    let (_d2, newer) = file("newer.jsonl", b"{\"ledger\":99}\n");
    let ledger = {
        let scenario = shipped_scenario("workshop").unwrap();
        hermes_lab::lab::play::play(&scenario, &hermes_lab::lab::play::Plan::default()).unwrap().to_jsonl()
    };
    let (_d3, cut) = file("cut.jsonl", &ledger.as_bytes()[..ledger.len() / 2]);
    let (_d4, endless) = file(
        "endless.toml",
        b"format = 1\nname = \"x\"\n[[act]]\nopen.name = \"s\"\n[[act]]\nturn = { say = \"x\", times = 99999999999 }\n",
    );
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["run", "sed"], "did you mean `seed`?"),
        (vec!["run", "missing.toml"], "there is no such file"),
        (vec!["run", "seed", "--set", "memory.chars_mx=3"], "did you mean `memory.chars_max`?"),
        (vec!["run", "seed", "--set", "memory.chars_max=-1"], "expected an integer"),
        (vec!["run", "seed", "--set", "memory.chars_max=9e99"], "expected"),
        (vec!["run", "seed", "--set", "nothing"], "expected `knob=value`"),
        (vec!["run", "seed", "--break", "D99"], "unknown break"),
        (vec!["run", "seed", "--policy", "hermes-0.2"], "unknown policy"),
        (vec!["run", &binary], "not UTF-8"),
        (vec!["run", &endless], "`times` is 99999999999"),
        (vec!["show", &newer], "ledger format 99 is not known"),
        (vec!["show", &cut], "not an event"),
        (vec!["show", "missing.jsonl"], "there is no such file"),
        (vec!["conform", "missing"], "there is no such file"),
        (vec!["conform", "tests/vectors", "--mechanism", "gard"], "did you mean `guard`?"),
        (vec!["frobnicate"], "unrecognized subcommand"),
    ];
    for (arguments, expected) in cases {
        let error = refused(&arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_not_read_for_ever() {
    let mut text = b"{\"ledger\":1,\"lab\":\"x\",\"source\":\"x\",\"scenario\":\"\",\"scenario_digest\":\"\",\"policy_digest\":\"\",\"seed\":0,\"unit\":\"tokens\"}\n".to_vec();
    text.extend(std::iter::repeat_n(b'x', 100 << 20));
    let (_dir, path) = file("long.jsonl", &text);
    assert!(refused(&["show", &path]).contains("the longest allowed is"));
}

#[test]
fn nothing_is_written_when_the_input_is_bad() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.jsonl");
    refused(&["run", "seed", "--set", "memory.chars_mx=3", "--ledger", path.to_str().unwrap()]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&["completions", shell], 0).contains("hermes-lab"));
    }
}

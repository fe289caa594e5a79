//! Agents outside the lab are driven through the command: the turns are played, what happens beside them is seen.
//!
//! The agent is `examples/tiny_agent.rs`, a program of its own. Real agents are driven by `tests/real/run`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{lab, stdout};

/// Where the example lies beside the test binary.
fn install() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_hermes-lab"));
    binary.parent().unwrap().join("examples")
}

const ACP: &str = "way.acp.command = [\"{install}/tiny_agent\", \"acp\"]\n";
const ONCE: &str = "[way.once]\nfirst = [\"{install}/tiny_agent\", \"once\", \"{prompt}\"]\n\
                    next = [\"{install}/tiny_agent\", \"next\", \"{session}\", \"{prompt}\"]\nsession = 'session: (\\S+)'\n";

struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    #[expect(clippy::disallowed_methods, reason = "the driver under test is a file")]
    fn driver(&self, way: &str, environment: &str) -> String {
        let path = self.dir.path().join("tiny.toml");
        let text = format!(
            "format = 1\nname = \"tiny\"\ntitle = \"a tiny agent\"\ninstall = \"cargo build --examples\"\n\
             quiet_ms = 400\n{way}\n[env]\nPROVIDER = \"{{host}}\"\n{environment}"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn drive(&self, driver: &str, scenario: &str, code: i32) -> Value {
        let install = install().display().to_string();
        let keep = self.dir.path().join("kept").display().to_string();
        let text =
            stdout(&["drive", driver, scenario, "--install", &install, "--keep", &keep, "--json"], code);
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer["runs"][0].take()
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("kept/work")
    }
}

fn checks(run: &Value) -> Vec<&str> {
    let findings = run["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["check"].as_str().unwrap()).collect()
}

#[test]
fn an_agent_over_stdio_plays_every_turn_and_its_prefix_holds() {
    let stage = Stage::new();
    let run = stage.drive(&stage.driver(ACP, ""), "real-shell", 0);
    assert_eq!(run["broken_off"], Value::Null);
    let answers: Vec<&str> =
        run["turns"].as_array().unwrap().iter().map(|turn| turn["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["It is greeted.", "Greeted as well.", "All three are greeted."]);
    assert_eq!((&run["figures"]["requests: main"], &run["figures"]["prefix_breaks"]), (&7.into(), &1.into()));
}

#[test]
fn an_agent_that_is_one_process_a_turn_goes_on_with_its_session() {
    let stage = Stage::new();
    let run = stage.drive(&stage.driver(ONCE, ""), "real-resume", 0);
    assert_eq!(run["broken_off"], Value::Null, "{run}");
    assert_eq!((&run["figures"]["requests: main"], &run["figures"]["prefix_breaks"]), (&6.into(), &1.into()));
}

#[test]
fn a_session_over_stdio_is_loaded_again_by_a_new_process() {
    let stage = Stage::new();
    let run = stage.drive(&stage.driver(ACP, ""), "real-resume", 0);
    assert_eq!(run["figures"]["prefix_breaks"], 1, "{run}");
}

#[test]
fn what_a_review_does_to_the_working_folder_is_found_by_the_third_law() {
    let stage = Stage::new();
    let run = stage.drive(&stage.driver(ACP, "REVIEW = \"on\"\n"), "real-loop", 1);
    assert!(checks(&run).contains(&"L3.review-no-effect"), "{run}");
    assert!(stage.work().join("probe-terminal").exists());
    assert_eq!(run["turns"][0]["changed_behind"], serde_json::json!(["probe-terminal"]));
    // The same agent without reviews is clean.
    let stage = Stage::new();
    let run = stage.drive(&stage.driver(ACP, ""), "real-loop", 0);
    assert!(checks(&run).is_empty() && !stage.work().join("probe-terminal").exists());
}

#[test]
fn an_agent_sees_nothing_of_the_environment_that_it_was_started_from() {
    let stage = Stage::new();
    let driver = stage.driver(ACP, "HOME = \"{home}\"\n");
    let scenario = stage.dir.path().join("env.toml");
    let text = "format = 1\nname = \"env\"\n[[act]]\nopen.name = \"s\"\n[[act]]\n[act.turn]\nsay = \"Look around.\"\n\
                replies = [{ call = \"terminal\", args = { command = \"env > seen\" } }, { say = \"Done.\" }]\n";
    write(&scenario, text);
    stage.drive(&driver, &scenario.display().to_string(), 0);
    let seen = read(&stage.work().join("seen"));
    let mut names: Vec<&str> =
        seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["HERMES_LAB_PROCESS", "HOME", "LANG", "PATH", "PROVIDER", "TERM"]);
}

#[test]
fn dangerous_scripts_are_played_on_a_real_machine_only_when_asked_for() {
    let stage = Stage::new();
    let driver = stage.driver(ACP, "");
    let install = install().display().to_string();
    let output = lab(&["drive", &driver, "seed", "--install", &install]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("rm -rf ./dist") && error.contains("--allow-dangerous"), "{error}");
}

#[test]
fn an_agent_that_cannot_start_is_bad_input_and_says_how_to_install_it() {
    let stage = Stage::new();
    let driver = stage.driver(ACP, "");
    let nowhere = stage.dir.path().display().to_string();
    let output = lab(&["drive", &driver, "real-shell", "--install", &nowhere]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("cannot be started") && error.contains("cargo build --examples"), "{error}");
    let output = lab(&["drive", "hermes-apc", "real-shell", "--install", &nowhere]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `hermes-acp`?"));
}

#[expect(clippy::disallowed_methods, reason = "tests write their inputs")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "tests read what an agent left behind")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn words_that_are_said_one_after_the_other_are_turns_of_their_own() {
    let stage = Stage::new();
    let path = stage.dir.path().join("each.toml");
    let text = "format = 1\nname = \"each\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n[act.turn]\n\
                say_each = [\"Look at the lamp {i}.\", \"Listen for the bell {i}.\"]\n\
                replies = [{ say = \"Number {i} is done.\" }]\n";
    write(&path, text);
    let run = stage.drive(&stage.driver(ACP, ""), path.to_str().unwrap(), 0);
    let turns: Vec<(&str, &str)> = run["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| (turn["said"].as_str().unwrap(), turn["answer"].as_str().unwrap()))
        .collect();
    let expected =
        [("Look at the lamp 0.", "Number 0 is done."), ("Listen for the bell 1.", "Number 1 is done.")];
    assert_eq!(turns, expected);
    assert_eq!(run["left_out"].as_array().map_or(0, Vec::len), 0, "{run}");
}

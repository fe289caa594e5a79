//! Live runs against the mock provider: the same requests, the same protocols, on loopback, with a budget that is real
//! arithmetic over money that nobody pays.
#![expect(
    clippy::disallowed_methods,
    reason = "an end-to-end test starts the binary and reads what it wrote"
)]

use std::path::Path;
use std::process::{Command, Output};

use hermes_lab::lab::breaks::shipped_scenario;
use hermes_lab::scenario::{self, Act};
use serde_json::{Value, json};

use crate::serve::support::{Mock, TWO_TURNS};

const KEY: &str = "sk-live-secret-123456";

/// A scenario of the suites with its seed put in; for several seeds what happens stands there for each.
fn served(name: &str, seeds: u64) -> String {
    let (_, text) = scenario::live().iter().find(|(known, _)| *known == name).unwrap();
    let (head, rest) = text.split_once("[[act]]").unwrap();
    let (acts, tail) = rest.split_once("[[expect]]").map_or((rest, ""), |(acts, tail)| (acts, tail));
    let of_seed = |seed: u64| {
        let named = acts.replace("open.name = \"", &format!("open.name = \"seed-{seed}-"));
        format!("[[act]]{}", named.replace("{seed}", &seed.to_string()))
    };
    let acts: String = (0..seeds).map(of_seed).collect();
    let tail = if tail.is_empty() { String::new() } else { format!("[[expect]]{tail}") };
    format!("{head}{acts}{tail}")
}

fn mock(name: &str, seeds: u64) -> Mock {
    // In real time, as the bill of a real provider is.
    let fixed = ["serve", "./scenario.toml", "--ledger", "ledger.jsonl"];
    Mock::command("scenario.toml", &served(name, seeds), &fixed)
}

/// The command in a folder of its own.
struct Live {
    dir: tempfile::TempDir,
    base: String,
    provider: &'static str,
}

impl Live {
    fn at(mock: &Mock, provider: &'static str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), base: format!("http://{}", mock.address), provider }
    }

    fn command(&self, suite: &str, arguments: &[&str]) -> Command {
        let model = if self.provider == "anthropic" { "claude-sonnet-4-6" } else { "gpt-4o" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermes-lab"));
        command
            .args(["live", suite, "--provider", self.provider, "--model", model, "--base-url", &self.base])
            .args(["--out", "run", "--json"])
            .args(arguments)
            .env_clear()
            .env("ANTHROPIC_API_KEY", KEY)
            .env("OPENAI_API_KEY", KEY)
            .current_dir(self.dir.path());
        command
    }

    fn run(&self, suite: &str, arguments: &[&str]) -> Output {
        self.command(suite, &[&["--live"], arguments].concat()).output().unwrap()
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("run").join(name)).unwrap()
    }
}

fn json_of(output: &Output, code: i32) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}\n{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"))
}

#[test]
fn the_cache_model_is_held_against_the_bill_in_every_protocol() {
    for provider in ["anthropic", "openai", "openai-responses", "compatible"] {
        let mock = mock("live-conversation", 1);
        let live = Live::at(&mock, provider);
        let found = json_of(&live.run("cache", &["--max-usd", "1"]), 0);
        let rows = found["cache"]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 12, "{provider}");
        assert!(
            rows.iter().all(|row| row["predicted"] == row["billed"]),
            "{provider}: the same model counts"
        );
        assert!(rows[11]["billed"]["read"].as_u64().unwrap() > 6_000, "{provider}: {}", rows[11]);
        let end = mock.stop();
        assert_eq!(end.code, 0, "{provider}: {}", end.stdout);
        assert!(end.stdout.contains("12 requests"), "{}", end.stdout);
    }
}

#[test]
fn a_bill_that_differs_from_the_prediction_is_found() {
    let mock = mock("live-conversation", 1);
    let live = Live::at(&mock, "openai");
    let found = json_of(&live.run("cache", &["--max-usd", "1", "--cache-model", "off"]), 1);
    assert_eq!(
        (&found["holds"], &found["cache"]["agreed"]),
        (&json!(false), &json!(1)),
        "the first reads nothing"
    );
}

#[test]
fn the_laws_hold_and_every_request_extends_the_one_before() {
    let mock = mock("live-conversation", 2);
    let live = Live::at(&mock, "anthropic");
    let found = json_of(&live.run("prefix", &["--max-usd", "1", "--seeds", "2"]), 0);
    let prefix = &found["prefix"];
    assert_eq!((&prefix["runs"], &prefix["pairs"], &prefix["extend"]), (&json!(2), &json!(22), &json!(22)));
    assert!(prefix["read_share"].as_f64().unwrap() > 0.8, "{prefix}");
}

#[test]
fn a_summary_that_forgets_a_fact_is_found() {
    let mock = mock("live-compaction", 1);
    let live = Live::at(&mock, "anthropic");
    let found = json_of(&live.run("compaction", &["--max-usd", "2"]), 1);
    let found = &found["compaction"];
    assert!(found["by_model"].as_u64().unwrap() >= 2, "{found}");
    let lost: Vec<(&str, bool)> = found["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| (fact["essence"][0].as_str().unwrap(), fact["lost_at"].is_null()))
        .collect();
    let expected =
        [("14:30", true), ("8443", true), ("Tuesday", true), ("legacy-2019", true), ("Ms Okonkwo", false)];
    assert_eq!(lost, expected);
}

#[test]
fn a_skill_that_was_written_makes_the_second_session_shorter() {
    let mock = mock("live-learning", 2);
    let live = Live::at(&mock, "anthropic");
    let found = json_of(&live.run("learning", &["--max-usd", "2", "--seeds", "2"]), 0);
    let learned = &found["learning"];
    assert_eq!(learned["pairs_with_skill"], 2);
    let measure = &learned["measures"][0];
    assert_eq!((&measure["name"], &measure["says"]), (&json!("iterations"), &json!("less")));
    assert!(learned["arms"].as_array().unwrap().iter().all(|arm| arm["holding"] == 2), "{learned}");
    assert!(measure["difference"]["interval"].is_array(), "{measure}");
}

#[test]
fn a_run_stops_before_its_budget_and_goes_on_without_paying_twice() {
    let mock = mock("live-conversation", 1);
    let live = Live::at(&mock, "anthropic");
    let output = live.run("cache", &["--max-usd", "0.2"]);
    let first = json_of(&output, 1);
    assert!(first["stopped"].as_str().unwrap().starts_with("stopped before the budget"), "{first}");
    let spent = first["usd"].as_f64().unwrap();
    assert!(spent > 0.0 && spent <= 0.2, "{spent}");
    let answered = first["requests"].as_array().unwrap().len();
    assert!((1..12).contains(&answered), "{answered}");
    // Without a word about it an earlier run is not touched, and another run is not mixed with it.
    let again = live.run("cache", &["--max-usd", "0.2"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume goes on with it"));
    let other = live.run("prefix", &["--max-usd", "0.2", "--resume"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("has suite `cache`, this one `prefix`"));
    assert_eq!((again.status.code(), other.status.code()), (Some(2), Some(2)));
    let whole = json_of(&live.run("cache", &["--max-usd", "1", "--resume"]), 0);
    let requests = whole["requests"].as_array().unwrap();
    let replayed = requests.iter().filter(|asked| asked["replayed"] == true).count();
    assert_eq!((requests.len(), replayed), (12, answered));
    let cost: f64 = requests.iter().map(|asked| asked["cost"].as_f64().unwrap()).sum();
    assert!((whole["usd"].as_f64().unwrap() - cost).abs() < 1e-5, "every request is paid for once");
    let end = mock.stop();
    assert!(end.stdout.contains("12 requests"), "none was sent twice: {}", end.stdout);
    // And once more, with nobody there to ask.
    let offline = json_of(&live.run("cache", &["--max-usd", "1", "--resume"]), 0);
    assert_eq!(offline["cache"], whole["cache"]);
}

#[test]
fn a_busy_provider_is_asked_again_when_it_says_so() {
    let faults = "replies = [\n  { fault = \"rate_limited\", retry_after = 1 }, { fault = \"overloaded\" },";
    let text = served("live-conversation", 1).replacen("replies = [", faults, 1);
    let mock =
        Mock::command("scenario.toml", &text, &["serve", "./scenario.toml", "--ledger", "ledger.jsonl"]);
    let live = Live::at(&mock, "anthropic");
    let output = live.run("cache", &["--max-usd", "1"]);
    let found = json_of(&output, 0);
    assert_eq!(found["requests"].as_array().unwrap().len(), 12);
    assert_eq!(found["usd_uncertain"], 0.0);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("answers 429") && told.contains("again in 1.0 s"), "{told}");
    assert!(told.contains("answers 529"), "{told}");
}

#[test]
fn the_journal_is_a_cassette_that_serves_and_can_be_audited() {
    let upstream = mock("live-conversation", 1);
    let live = Live::at(&upstream, "anthropic");
    let whole = json_of(&live.run("cache", &["--max-usd", "1"]), 0);
    upstream.stop();
    let replay =
        Mock::command("cassette.jsonl", &live.file("cassette.jsonl"), &["serve", "./cassette.jsonl"]);
    let second = Live::at(&replay, "anthropic");
    let found = json_of(&second.run("cache", &["--max-usd", "1"]), 0);
    assert_eq!(found["cache"]["billed"], whole["cache"]["billed"]);
    replay.stop();
}

#[test]
fn the_key_is_sent_and_written_nowhere() {
    let mock = mock("live-conversation", 1);
    let live = Live::at(&mock, "openai");
    let output = live.run("cache", &["--max-usd", "1"]);
    json_of(&output, 0);
    let end = mock.stop();
    let mut texts = vec![end.ledger, end.stdout, end.stderr];
    texts.extend([&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()));
    for entry in std::fs::read_dir(live.dir.path().join("run")).unwrap() {
        texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    assert!(texts.len() >= 9, "journal, accounts, settings, result");
    assert!(texts.iter().all(|text| !text.contains(KEY)));
}

#[test]
fn what_is_missing_is_said_before_anything_is_sent() {
    let mock = Mock::start(TWO_TURNS, &[]);
    let live = Live::at(&mock, "anthropic");
    let refused = |mut command: Command, words: &str| {
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words), "{words:?} in {error}");
    };
    refused(live.command("cache", &["--max-usd", "1"]), "give --live");
    refused(live.command("cache", &["--live"]), "--max-usd DOLLARS");
    refused(live.command("cache", &["--live", "--max-usd", "0"]), "an amount above zero");
    refused(live.command("cache", &["--live", "--max-usd", "1", "--model", "no-such"]), "cannot be used");
    refused(live.command("cache", &["--live", "--max-usd", "1", "--key-env", "NONE"]), "NONE is not set");
    refused(live.command("cache", &["--live", "--max-usd", "1", "--price", "1,2"]), "four prices");
    refused(live.command("learn", &["--live", "--max-usd", "1"]), "learning");
    assert!(!Path::new(&live.dir.path().join("run")).exists(), "no directory is made for a mistake");
    assert!(mock.stop().stdout.contains("0 requests"));
}

#[test]
fn a_wrong_key_is_bad_input_and_stops_at_once() {
    let text = served("live-conversation", 1).replacen(
        "replies = [",
        "replies = [\n  { fault = \"unauthorized\" },",
        1,
    );
    let mock = Mock::command("scenario.toml", &text, &["serve", "./scenario.toml"]);
    let live = Live::at(&mock, "openai");
    let output = live.run("cache", &["--max-usd", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("answers 401"));
    assert!(mock.stop().stdout.contains("1 requests"));
}

#[test]
fn a_shipped_live_scenario_is_served_as_its_first_seed_asks() {
    for (name, _) in scenario::live() {
        let scenario = shipped_scenario(name).unwrap();
        for act in &scenario.acts {
            if let Act::Turn(turn) = act {
                assert!(!turn.say.contains("{seed}"), "{name}: {}", turn.say);
            }
        }
    }
}

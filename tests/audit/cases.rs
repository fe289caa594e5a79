//! Every folder of `tests/cases` that an audit answers, through the command.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Kinds that an audit answers.
const KINDS: &[&str] = &["cache", "cost", "history", "replay"];

#[expect(clippy::disallowed_methods, reason = "a test runs the command on its own data")]
#[test]
fn every_case_is_answered_as_expected() {
    let root = format!("{}/tests/cases", env!("CARGO_MANIFEST_DIR"));
    let mut answered = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&root).unwrap().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path().join("case.json")) else { continue };
        let case: Value = serde_json::from_str(&text).unwrap();
        let kind = case["kind"].as_str().unwrap_or_default().split('.').next().unwrap_or_default();
        if !KINDS.contains(&kind) {
            continue;
        }
        answered += 1;
        let got = json_of(&entry.path());
        for (name, value) in case["expected"].as_object().unwrap() {
            if got["case"].get(name) != Some(value) {
                wrong.push(format!(
                    "{}: {name}: expected {value}, found {:?}",
                    case["id"],
                    got["case"].get(name)
                ));
            }
        }
    }
    assert!(answered >= 18, "only {answered} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test runs the command on its own data")]
fn json_of(path: &Path) -> Value {
    let out =
        Command::new(env!("CARGO_BIN_EXE_hermes-lab")).arg("audit").arg(path).arg("--json").output().unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|_| panic!("{}: {}", path.display(), String::from_utf8_lossy(&out.stderr)))
}

#[expect(clippy::disallowed_methods, reason = "a test runs the command on its own data")]
#[test]
fn a_case_without_expectations_is_answered_with_every_fact() {
    let folder = tempfile::tempdir().unwrap();
    let from = format!("{}/tests/cases/cache-clock-in-system", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(format!("{from}/requests.jsonl"), folder.path().join("requests.jsonl")).unwrap();
    std::fs::write(folder.path().join("case.json"), "{\"kind\": \"cache.prefix\"}").unwrap();
    let got = json_of(folder.path());
    assert_eq!(got["case"]["cause"], "volatile_time");
    assert_eq!(got["case"]["hit_segments"], serde_json::json!([0, 4, 0, 8]));
    assert_eq!(got["case"]["orphan_results"], serde_json::json!([]));
}

//! Every log of `tests/logs`, in each format that it is given in, against its truth.

use std::process::Command;

use serde_json::{Value, json};

fn truth_word(cause: &str) -> &str {
    match cause {
        "volatile_time" => "system_timestamp",
        "tool_reorder" => "tool_order",
        "history_rewritten" => "history_edit",
        "planned_compaction" => "compaction",
        "lookback_exceeded" => "lookback_window",
        other => other,
    }
}

#[expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test runs the command on its own data")]
fn judged(path: &str) -> Value {
    let out =
        Command::new(env!("CARGO_BIN_EXE_hermes-lab")).args(["audit", path, "--json"]).output().unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|_| panic!("{path}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// What an answer says in the words of the truth.
#[expect(clippy::unwrap_used, reason = "an answer of another form fails the test")]
fn found(answer: &Value) -> Value {
    let requests = answer["requests"].as_array().unwrap();
    let turns = requests.iter().filter_map(|request| {
        let causes = std::iter::once(&request["cause"]).chain(request["latent"].as_array().unwrap());
        let words: Vec<&str> = causes
            .filter_map(Value::as_str)
            .filter(|word| !matches!(*word, "none" | "cold_start"))
            .map(truth_word)
            .collect();
        assert_eq!(request["history"], json!([]), "a fault of the history in {request}");
        (!words.is_empty()).then(|| json!([request["index"], words.join("+")]))
    });
    turns.collect()
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own data files")]
#[test]
fn every_log_is_judged_as_its_truth_says_in_every_format() {
    let root = format!("{}/tests/logs", env!("CARGO_MANIFEST_DIR"));
    let truth: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{root}/truth.json")).unwrap()).unwrap();
    let mut logs = 0;
    for (name, expected) in truth.as_object().unwrap() {
        for file in ["requests.jsonl", "claude-code-transcript.jsonl"] {
            let path = format!("{root}/{name}/{file}");
            if !std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) {
                continue;
            }
            logs += 1;
            assert_eq!(found(&judged(&path)), *expected, "{name}/{file}");
        }
    }
    assert_eq!(logs, 27);
}

#[test]
fn what_a_transcript_cannot_show_is_said_and_graded() {
    let path = format!(
        "{}/tests/logs/anthropic/tool_shuffle/claude-code-transcript.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let answer = judged(&path);
    assert!(answer["summary"]["sources"][0]["not_judged"].as_str().unwrap().contains("transcript"));
    assert_eq!(answer["requests"][5]["evidence"], "inferred");
    assert!(answer["requests"][5]["candidates"].as_array().unwrap().contains(&json!("unexplained")));
}

#[expect(clippy::disallowed_methods, reason = "a test runs the command on its own data")]
#[test]
fn the_exit_code_says_whether_anything_was_unplanned() {
    let root = format!("{}/tests/logs/anthropic", env!("CARGO_MANIFEST_DIR"));
    let code = |path: &str| {
        Command::new(env!("CARGO_BIN_EXE_hermes-lab"))
            .args(["audit", path])
            .output()
            .unwrap()
            .status
            .code()
            .unwrap()
    };
    assert_eq!(code(&format!("{root}/clean/requests.jsonl")), 0);
    assert_eq!(code(&format!("{root}/compaction/requests.jsonl")), 0);
    assert_eq!(code(&format!("{root}/double/requests.jsonl")), 1);
    assert_eq!(code(&format!("{root}/nowhere.jsonl")), 2);
    assert_eq!(code(&format!("{root}/../truth.json")), 3);
}

#[expect(clippy::disallowed_methods, reason = "a test runs the command on its own data")]
#[test]
fn redacted_answers_and_pages_hold_no_text_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let path = format!("{}/tests/logs/anthropic/double/requests.jsonl", env!("CARGO_MANIFEST_DIR"));
    let out = Command::new(env!("CARGO_BIN_EXE_hermes-lab"))
        .args(["audit", &path, "--json", "--redact", "--html", page.to_str().unwrap()])
        .output()
        .unwrap();
    let answer = String::from_utf8(out.stdout).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    for word in ["marble", "read_file", "session_search", "double-anthropic"] {
        assert!(!answer.contains(word), "{word} in the answer");
        assert!(!page.contains(word), "{word} in the page");
    }
}

//! Real clients against the mock provider. Behind the feature `real-clients`: it installs packages and needs Python.
//!
//! ```text
//! cargo test --features real-clients --test main real::
//! ```
#![expect(clippy::disallowed_methods, reason = "a real client is a process of its own")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::serve::support::{Mock, TWO_TURNS};

/// The releases whose behaviour is held to.
const SDKS: [&str; 2] = ["openai==2.24.0", "anthropic==0.87.0"];

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {arguments:?}: {error}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_vendors_sdks_see_what_the_report_says() {
    let dir = tempfile::tempdir().unwrap();
    let venv = dir.path().join("venv");
    run(Path::new("python3"), &["-m", "venv", venv.to_str().unwrap()]);
    let pip = venv.join("bin/pip");
    run(&pip, &[&["install", "--quiet"][..], &SDKS[..]].concat());
    let mock = Mock::start(TWO_TURNS, &[]);
    let script = format!("{}/tests/real/sdk.py", env!("CARGO_MANIFEST_DIR"));
    let seen = run(&venv.join("bin/python"), &[&script, &format!("http://{}", mock.address)]);
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let report = mock.get("/_lab/report").json();
    let words = json!(["Two files: a.txt and b.txt.", "You are welcome."]);
    let answers = seen["answers"].as_object().unwrap();
    assert_eq!(answers.len(), 6);
    assert!(answers.values().all(|said| *said == words), "{answers:?}");
    let tokens = |name: &str| report["tokens"][name].as_u64().unwrap();
    assert_eq!(seen["read"], tokens("read"));
    assert_eq!(seen["written"], tokens("write_5m") + tokens("write_1h"));
    assert_eq!(seen["output"], tokens("output"));
    assert_eq!(seen["prompt"], tokens("fresh") + tokens("read") + tokens("write_5m") + tokens("write_1h"));
    assert!(tokens("read") > tokens("fresh"), "the long system prompt is read again and again");
    let refused = json!(["BadRequestError", "invalid_request_error"]);
    assert_eq!(seen["errors"], json!([refused, refused]));
    assert_eq!(report["refused"]["count"], 2);
    mock.stop();
}

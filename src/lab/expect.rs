//! Whether a scenario ended as it says: every expectation against outside evidence.
//!
//! The one place where expectations are judged; the command line, the self-test and the suites call it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::diag::{Diagnostic, nearest};
use crate::lab::figures::{FIGURES, figure};
use crate::lab::play::{EndState, Played};
use crate::laws;
use crate::ledger::{Lane, Ledger, What};
use crate::scenario::{ExpectSpec, Scenario};
use crate::world::terminal::matches;

/// What was expected, what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Name of the expectation.
    pub name: String,
    /// The sentence that holds, if it was given one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was asked, in words.
    pub expected: String,
    /// What was found; long texts are cut.
    pub found: String,
}

/// Longest text of a subject that a report shows, in characters.
const SHOWN_CHARS: usize = 160;

/// Judges every expectation of a scenario.
pub fn judge(scenario: &Scenario, played: &Played) -> Vec<Judged> {
    scenario.expects.iter().map(|expect| one(expect, &played.ledger, &played.end)).collect()
}

/// Figures and checks that expectations name and that do not exist, each with what would have been near.
pub fn unknown(scenario: &Scenario) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut look = |what: &str, name: &Option<String>, known: Vec<&str>| {
        let Some(name) = name.as_ref().filter(|name| !known.contains(&name.as_str())) else { return };
        let fault =
            Diagnostic::of_file(&scenario.name, format!("an expectation names the unknown {what} `{name}`"));
        faults.push(match nearest(name, known) {
            Some(near) => fault.with_help(format!("did you mean `{near}`?")),
            None => fault,
        });
    };
    for expect in &scenario.expects {
        look("figure", &expect.figure, FIGURES.iter().map(|figure| figure.name).collect());
        look("check", &expect.law, laws::checks().iter().map(|check| check.id).collect());
    }
    faults
}

fn one(expect: &ExpectSpec, ledger: &Ledger, end: &EndState) -> Judged {
    let found = subject(expect, ledger, end);
    let (expected, holds) = asked(expect, &found);
    Judged {
        name: expect.title(),
        says: expect.says.clone(),
        holds,
        expected: expected.join(", "),
        found: shown(&found),
    }
}

/// The subject's value; null when nothing is there.
fn subject(expect: &ExpectSpec, ledger: &Ledger, end: &EndState) -> Value {
    if let Some(name) = &expect.figure {
        return figure(name).map_or(Value::Null, |figure| figure.of(ledger));
    }
    if let Some(check) = &expect.law {
        let verdict = laws::judge(ledger);
        let result = verdict.results.iter().find(|result| result.check == check);
        return result.map_or(Value::Null, |result| {
            let state = match (result.findings.is_empty(), result.examined) {
                (false, _) => "fails",
                (true, 0) => "saw nothing",
                (true, _) => "holds",
            };
            state.into()
        });
    }
    if let Some(path) = &expect.file {
        return file(&end.workspace, path);
    }
    if let Some(path) = &expect.home {
        return file(&end.home, path);
    }
    if expect.changed {
        return json!(end.changed());
    }
    if let Some(session) = &expect.sent {
        return sent(ledger, session, expect.lane.as_deref().unwrap_or("main"));
    }
    if let Some(session) = &expect.stored {
        return end.stored.get(session).map_or(Value::Null, |rows| rows.join("\n").into());
    }
    let calls = calls(expect, ledger);
    if let Some(form) = &expect.ran {
        return json!(calls.iter().filter(|call| matches(form, call)).count());
    }
    in_order(&expect.order, &calls)
}

/// The text of a file; a `*` in its path stands for any text, and the first such file is read.
fn file(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Value {
    let found = files.iter().find(|(known, _)| matches(path, known));
    found.map_or(Value::Null, |(_, bytes)| String::from_utf8_lossy(bytes).into())
}

/// Everything that a session's lane sent, in order; null when it sent nothing.
fn sent(ledger: &Ledger, session: &str, lane: &str) -> Value {
    let mut text = String::new();
    for event in ledger.events.iter().filter(|event| &*event.session == session) {
        if let What::Request(request) = &event.what
            && request.lane.word() == lane
        {
            for segment in &request.added {
                text.push_str(&segment.text);
                text.push('\n');
            }
        }
    }
    if text.is_empty() { Value::Null } else { text.into() }
}

/// Dispatched calls as `tool argument`.
fn calls(expect: &ExpectSpec, ledger: &Ledger) -> Vec<String> {
    let wanted = |session: &str, lane: Lane| {
        expect.session.as_ref().is_none_or(|name| name == session)
            && expect.lane.as_ref().is_none_or(|name| name == lane.word())
    };
    let ran = ledger.events.iter().filter_map(|event| match &event.what {
        What::ToolRan(ran) if wanted(&event.session, ran.lane) => Some(call_line(&ran.tool, &ran.arguments)),
        _ => None,
    });
    ran.collect()
}

/// A call as people name it: the tool, and what it was mainly about.
pub fn call_line(tool: &str, arguments: &str) -> String {
    /// Arguments that say what a call is about, the most telling first.
    const MAIN: [&str; 9] = ["command", "path", "query", "to", "url", "code", "goal", "pattern", "name"];
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    let main = MAIN.iter().find_map(|key| value.get(key).and_then(Value::as_str));
    let urls = || value.get("urls").and_then(|urls| urls.get(0)).and_then(Value::as_str);
    match main.or_else(urls) {
        Some(text) => format!("{tool} {text}"),
        None => tool.to_owned(),
    }
}

/// True when the calls contain these forms in this order; else which form is missing after the ones before it.
fn in_order(forms: &[String], calls: &[String]) -> Value {
    let mut rest = calls.iter();
    for form in forms {
        if !rest.any(|call| matches(form, call)) {
            return json!(format!("no `{form}` in its place among: {}", calls.join(" | ")));
        }
    }
    json!(true)
}

/// What is asked of the subject, in words, and whether all of it holds.
fn asked(expect: &ExpectSpec, found: &Value) -> (Vec<String>, bool) {
    let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    let mut asked: Vec<(String, bool)> = Vec::new();
    if let Some(is) = &expect.is {
        let wanted = serde_json::to_value(is).unwrap_or_default();
        asked.push((shown(&wanted), wanted == *found));
    }
    if !expect.order.is_empty() {
        asked.push((expect.order.join(", then "), *found == json!(true)));
    }
    // Nothing at all neither contains nor lacks a text: a subject that is missing proves nothing.
    let there = !found.is_null();
    for part in expect.has.iter() {
        asked.push((format!("has `{part}`"), there && text.contains(part.as_str())));
    }
    for part in expect.lacks.iter() {
        asked.push((format!("lacks `{part}`"), there && !text.contains(part.as_str())));
    }
    if let Some(most) = expect.at_most {
        asked.push((format!("at most {most}"), found.as_i64().is_some_and(|number| number <= most)));
    }
    if let Some(least) = expect.at_least {
        asked.push((format!("at least {least}"), found.as_i64().is_some_and(|number| number >= least)));
    }
    if expect.absent {
        asked.push(("absent".to_owned(), found.is_null()));
    }
    let holds = asked.iter().all(|(_, holds)| *holds);
    (asked.into_iter().map(|(words, _)| words).collect(), holds)
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => return "nothing".to_owned(),
        // On one line, as tables and lists want it.
        Value::String(text) => text.replace('\n', "\\n"),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_subject_proves_nothing() {
        let expect = |text: &str| toml::from_str::<ExpectSpec>(text).unwrap();
        assert!(!asked(&expect("sent = 'x'\nlacks = 'secret'"), &Value::Null).1);
        assert!(asked(&expect("file = 'x'\nabsent = true"), &Value::Null).1);
        assert!(!asked(&expect("file = 'x'\nlacks = ['a', 'b']"), &json!("b")).1);
        assert!(asked(&expect("figure = 'x'\nat_most = 2\nat_least = 2"), &json!(2)).1);
        assert!(!asked(&expect("figure = 'x'\nat_most = 2"), &json!("2")).1);
    }

    #[test]
    fn calls_come_in_order_with_others_between_them() {
        let calls = ["terminal git push", "terminal git ls-remote origin", "terminal ls"].map(str::to_owned);
        let order =
            |forms: &[&str]| in_order(&forms.iter().map(ToString::to_string).collect::<Vec<_>>(), &calls);
        assert_eq!(order(&["terminal git push*", "terminal ls"]), json!(true));
        assert_ne!(order(&["terminal ls", "terminal git push*"]), json!(true));
        assert_eq!(
            call_line("web_extract", r#"{"urls":["https://a.example"]}"#),
            "web_extract https://a.example"
        );
    }
}

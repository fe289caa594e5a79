//! A model that reads: it knows nothing but what its prompt shows.
//!
//! It finds a skill only if the catalogue of its prompt lists it with words that fit the task, does only the steps that
//! the loaded body contains, tries its way through where it knows none, and writes down what worked. So whatever the
//! runtime keeps from the prompt is really missing, and costs what it costs. Called by the scripted model's rules.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::{Ask, Reply};
use crate::scenario::{AttemptSpec, DistilSpec};
use crate::wire::{Row, ToolCall};
use crate::world::terminal::matches;

/// Words that say nothing about a task.
const EMPTY_WORDS: [&str; 22] = [
    "about", "after", "also", "been", "before", "could", "from", "have", "into", "need", "please", "should",
    "some", "that", "them", "then", "this", "used", "when", "will", "with", "would",
];
/// Shortest word that counts, in letters.
const WORD_CHARS_MIN: usize = 4;
/// Where a tool result says that a skill has a bad record.
pub const NOTE: &str = "\"note\":";

/// The skill whose catalogue line shares most words with the user's newest text, at least `least`; ties go to the first.
pub fn pick(ask: &Ask<'_>, least: u64) -> Option<String> {
    let user = ask.rows.iter().rev().find(|row| row.is_user())?;
    let wanted = words(&user.content.flat());
    let mut best: Option<(usize, &str)> = None;
    for line in ask.system.lines() {
        let Some(row) = line.strip_prefix("    - ") else { continue };
        let (name, description) = row.split_once(": ").unwrap_or((row, ""));
        let shared = words(&format!("{} {description}", name.replace(['-', '_', '.'], " ")));
        let score = shared.intersection(&wanted).count();
        if score as u64 >= least && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}

/// Content words of a text, without their commonest endings; Chinese as pairs of characters.
fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = word.chars().collect();
        if chars.iter().any(|c| *c as u32 >= 0x2E80) {
            found.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if chars.len() >= WORD_CHARS_MIN && !EMPTY_WORDS.contains(&word) {
            let stem = ["ing", "ed", "es", "s"].into_iter().find_map(|ending| word.strip_suffix(ending));
            found
                .insert(stem.filter(|stem| stem.len() >= 3).unwrap_or(word).trim_end_matches('e').to_owned());
        }
    }
    found
}

/// Rows of the present turn.
fn turn<'a>(ask: &Ask<'a>) -> &'a [Row] {
    let since = ask.rows.iter().rposition(Row::is_user).unwrap_or(0);
    &ask.rows[since..]
}

/// Commands that a stretch of rows ran in the terminal, each with whether it worked.
fn commands(rows: &[Row]) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for row in rows {
        for call in row.call_list().iter().filter(|call| call.name == "terminal") {
            let result = rows.iter().find(|row| row.tool_call_id.as_deref() == Some(call.id.as_str()));
            let worked = result.is_some_and(|row| row.content.flat().contains("\"exit_code\":0"));
            let arguments = call.parsed_arguments().unwrap_or_default();
            found.push((arguments["command"].as_str().unwrap_or_default().to_owned(), worked));
        }
    }
    found
}

fn terminal(command: &str, id: &str) -> Reply {
    Reply::call(vec![ToolCall::new(id, "terminal", json!({ "command": command }).to_string())])
}

/// Loads a skill once, then does the steps that its body lists, one a reply; `None` when it gives the skill up.
///
/// A step is a numbered line with a command in back quotes. The model knows nothing of the skill but what the tool
/// result shows. It gives up when the skill could not be loaded; with `heeds` also after a step that failed, and
/// where the result carries a note about the skill's record.
pub fn follow(skill: &str, ask: &Ask<'_>, id: &str, heeds: bool) -> Option<Reply> {
    let rows = turn(ask);
    let viewed = rows.iter().position(|row| {
        row.call_list().iter().any(|call| call.name == "skill_view" && call.arguments.contains(skill))
    });
    let Some(viewed) = viewed else {
        let arguments = json!({ "name": skill }).to_string();
        return Some(Reply::call(vec![ToolCall::new(id, "skill_view", arguments)]));
    };
    let result = rows.get(viewed + 1).map(|row| row.content.flat()).unwrap_or_default();
    let ran = commands(&rows[viewed..]);
    if heeds && (result.contains(NOTE) || ran.iter().any(|(_, worked)| !worked)) {
        return None;
    }
    let body = serde_json::from_str::<Value>(&result)
        .ok()
        .and_then(|value| value.get("content").and_then(Value::as_str).map(str::to_owned))
        .unwrap_or(result);
    let steps: Vec<&str> = body.lines().filter_map(step_of).collect();
    Some(match steps.get(ran.len()) {
        Some(command) => terminal(command, id),
        None => Reply::say(format!("Done: {} steps of {skill}.", steps.len())),
    })
}

fn step_of(line: &str) -> Option<&str> {
    let (number, rest) = line.trim().split_once('.')?;
    number.parse::<u32>().ok()?;
    let (_, rest) = rest.split_once('`')?;
    rest.split_once('`').map(|(command, _)| command)
}

/// The next of the commands that somebody without knowledge tries; what the prompt warns of is left out.
///
/// A command that stands in the list twice is tried twice: what fails at first may work later.
pub fn attempt(attempts: &[AttemptSpec], ask: &Ask<'_>, id: &str) -> Reply {
    let ran = commands(turn(ask));
    let known = |attempt: &&AttemptSpec| {
        attempt.unless.as_ref().is_none_or(|fact| !ask.system.contains(fact.as_str()))
    };
    let tried: Vec<&AttemptSpec> = attempts.iter().filter(known).collect();
    let next = tried.iter().enumerate().find(|(place, attempt)| {
        let due = tried[..=*place].iter().filter(|other| other.run == attempt.run).count();
        ran.iter().filter(|(command, _)| *command == attempt.run).count() < due
    });
    match next {
        Some((_, attempt)) => terminal(&attempt.run, id),
        None => Reply::say("Done, after some tries."),
    }
}

/// Writes a skill from the commands that worked; mends one that was followed and failed.
pub fn distil(spec: &DistilSpec, ask: &Ask<'_>, id: &str) -> Reply {
    let asked = ask.rows.iter().rposition(Row::is_user).unwrap_or(0);
    let (before, since) = ask.rows.split_at(asked);
    let cue =
        before.iter().rposition(|row| row.is_user() && row.content.flat().contains(&spec.cue)).unwrap_or(0);
    let end = before.iter().skip(cue + 1).position(Row::is_user).map_or(before.len(), |next| cue + 1 + next);
    let ran = commands(&before[cue..end]);
    let mut steps: Vec<&str> = Vec::new();
    for (command, worked) in &ran {
        let step = *worked && !spec.drops.iter().any(|form| matches(form, command));
        if step && !steps.contains(&command.as_str()) {
            steps.push(command);
        }
    }
    let wrote = since.iter().any(|row| row.call_list().iter().any(|call| call.name == "skill_manage"));
    let listed = ask.system.lines().any(|line| {
        line.strip_prefix("    - ").is_some_and(|row| row.split(':').next() == Some(spec.name.as_str()))
    });
    let failed = ran.iter().any(|(_, worked)| !worked);
    if wrote || steps.is_empty() || (listed && !failed) {
        return Reply::say(if wrote { "Saved what was learned." } else { "Nothing to save." });
    }
    let call =
        |tool: &str, arguments: Value| Reply::call(vec![ToolCall::new(id, tool, arguments.to_string())]);
    let read = since.iter().any(|row| row.call_list().iter().any(|call| call.name == "skill_view"));
    if listed && !read {
        return call("skill_view", json!({ "name": spec.name }));
    }
    let mut numbered = String::new();
    for (place, step) in steps.iter().enumerate() {
        numbered.push_str(&format!("{}. `{step}`\n", place + 1));
    }
    let content =
        format!("---\nname: {}\ndescription: {}\n---\n\n{numbered}", spec.name, json!(spec.description));
    let action = if listed { "edit" } else { "create" };
    call("skill_manage", json!({ "action": action, "name": spec.name, "content": content }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Lane;

    fn ask<'a>(rows: &'a [Row], system: &'a str) -> Ask<'a> {
        Ask {
            lane: Lane::Main,
            session: "s1",
            turn: 1,
            tools: &[],
            system,
            rows,
            sent: crate::model::Sent::default(),
        }
    }

    #[test]
    fn a_skill_is_found_by_the_words_that_its_line_shows() {
        let rows = [Row::user("Please write an article about our new lamps.")];
        let listed = "    - site: Deploy the site.\n    - articles: Writing a full article for the press\n";
        assert_eq!(pick(&ask(&rows, listed), 2).as_deref(), Some("articles"));
        let cut = "    - site: Deploy the site.\n    - articles: Writi...\n";
        assert_eq!(pick(&ask(&rows, cut), 2), None);
        let chinese = [Row::user("请写一篇文章")];
        assert_eq!(pick(&ask(&chinese, "    - x: 写一篇完整的文章\n"), 2).as_deref(), Some("x"));
    }

    #[test]
    fn what_failed_at_first_is_tried_again_in_its_place() {
        let attempts: Vec<AttemptSpec> = ["build", "install", "build"]
            .map(|run| AttemptSpec { run: run.to_owned(), unless: None })
            .to_vec();
        let mut rows = vec![Row::user("go")];
        let mut done = Vec::new();
        for index in 0..4 {
            let reply = attempt(&attempts, &ask(&rows, ""), &format!("c{index}"));
            let Some(call) = reply.calls.first().cloned() else { break };
            done.push(call.parsed_arguments().unwrap()["command"].as_str().unwrap().to_owned());
            rows.push(Row::calls("", vec![call]));
        }
        assert_eq!(done, ["build", "install", "build"]);
    }

    #[test]
    fn only_what_worked_becomes_a_step() {
        let mut rows = vec![Row::user("deploy the site")];
        for (index, (command, exit)) in
            [("ls", 0), ("push", 1), ("build", 0), ("push", 0)].into_iter().enumerate()
        {
            let id = format!("c{index}");
            rows.push(Row::calls(
                "",
                vec![ToolCall::new(&id, "terminal", json!({ "command": command }).to_string())],
            ));
            let result = json!({ "output": "", "exit_code": exit }).to_string();
            rows.push(Row::result(&id, "terminal", result));
        }
        rows.push(Row::user("what was learned?"));
        let spec = DistilSpec {
            name: "site".to_owned(),
            description: "Deploy".to_owned(),
            cue: "deploy".to_owned(),
            drops: vec!["ls*".to_owned()],
        };
        let reply = distil(&spec, &ask(&rows, ""), "r");
        let content = reply.calls[0].parsed_arguments().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(content.ends_with("---\n\n1. `build`\n2. `push`\n"), "{content}");
    }
}

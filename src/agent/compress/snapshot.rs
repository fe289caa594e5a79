//! What is done to a summary after the model wrote it: its newest request set from the rows themselves, and in lean
//! mode the verbatim parts that no model may paraphrase.
//!
//! Never asks a model.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use crate::agent::compress::summary::{SKILLS, SNAPSHOT};
use crate::agent::compress::{history, redact};
use crate::wire::Row;

/// Longest request in the snapshot.
const SNAPSHOT_CHARS: usize = 1_400;
/// Longest quoted request.
const QUOTE_CHARS: usize = 4_000;
/// Quoted requests together.
const QUOTES_CHARS: usize = 24_000;
/// Index of identifiers.
const IDENTIFIERS_CHARS: usize = 7_000;
const QUOTES: &str = "User Messages, Verbatim";
const IDENTIFIERS: &str = "Exact Identifiers";
const RECALL: &str = "Where The Rest Is";

fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        text.to_owned()
    } else {
        format!("{}...", text.chars().take(limit.saturating_sub(3)).collect::<String>())
    }
}

fn has_section(summary: &str, title: &str) -> bool {
    summary.lines().any(|line| line.trim_end() == format!("## {title}"))
}

/// Puts the newest human request into the task snapshot and removes later duplicates of that section
/// (Hermes agent/context_compressor.py:4504).
pub fn set_snapshot(summary: &str, request: Option<&str>) -> String {
    let Some(request) = request else { return summary.to_owned() };
    let heading = format!("## {SNAPSHOT}");
    let mut out = format!("{heading}\n{}\n", cut(request.trim(), SNAPSHOT_CHARS));
    let mut inside = false;
    for line in summary.lines() {
        if line.trim_end() == heading {
            inside = true;
        } else if line.starts_with("## ") {
            if inside {
                out.push('\n');
            }
            inside = false;
        }
        if !inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

/// The newest request among rows, without secrets.
pub fn newest_request(rows: &[Row]) -> Option<String> {
    history::last_human(rows, 0).map(|index| redact::secrets(&rows[index].content.flat()))
}

/// The human rows that are quoted word for word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotes {
    /// The section, newest request first; empty when nobody spoke.
    pub text: String,
    /// Indices of the quoted rows, ascending.
    pub rows: Vec<usize>,
}

/// Quotes the human rows, newest first, as far as there is room.
pub fn quotes(rows: &[Row]) -> Quotes {
    let mut out = Quotes::default();
    let mut room = QUOTES_CHARS;
    for (index, row) in rows.iter().enumerate().rev().filter(|(_, row)| history::is_human(row)) {
        let text = cut(redact::secrets(row.content.flat().trim()).as_str(), QUOTE_CHARS.min(room));
        let size = text.chars().count();
        if text.is_empty() || size > room {
            break;
        }
        room -= size;
        let _ = writeln!(out.text, "- {}", text.replace('\n', "\n  "));
        out.rows.push(index);
    }
    out.rows.reverse();
    if !out.text.is_empty() {
        out.text = format!("## {QUOTES}\n{}", out.text.trim_end());
    }
    out
}

static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"https?://[^\s"'<>)\]]+|(?:[\w.\-]+/)+[\w.\-]+|\b[0-9a-f]{7,40}\b|\b[A-Z]{2,10}-\d+\b|\b[\w\-]+\.(?:rs|py|ts|js|go|md|toml|json|yaml|yml|sh|sql|txt)\b"#,
    )
    .expect("the pattern is a constant and is tested")
});

/// Exact identifiers in rows, in order of appearance: addresses, paths, hashes, ticket numbers, file names.
pub fn identifiers(rows: &[Row]) -> String {
    let mut seen = BTreeSet::new();
    let mut out = String::new();
    let mut room = IDENTIFIERS_CHARS;
    for row in rows {
        let texts = std::iter::once(row.content.flat())
            .chain(row.call_list().iter().map(|call| call.arguments.clone()));
        for text in texts {
            let text = redact::secrets(&text);
            for found in IDENTIFIER.find_iter(&text) {
                let found = found.as_str();
                let size = found.chars().count() + 3;
                if size > room || !seen.insert(found.to_owned()) {
                    continue;
                }
                room -= size;
                let _ = writeln!(out, "- {found}");
            }
        }
    }
    out.trim_end().to_owned()
}

/// Appends the verbatim sections of a lean summary that it does not have yet.
pub fn append_lean(summary: &str, rows: &[Row], session: &str) -> String {
    let mut out = summary.trim_end().to_owned();
    if !has_section(&out, IDENTIFIERS) {
        let found = identifiers(rows);
        if !found.is_empty() {
            let _ = write!(out, "\n\n## {IDENTIFIERS}\n{found}");
        }
    }
    if !has_section(&out, QUOTES) {
        let quoted = quotes(rows);
        if !quoted.text.is_empty() {
            let _ = write!(out, "\n\n{}", quoted.text);
        }
    }
    if !has_section(&out, RECALL) {
        let _ = write!(
            out,
            "\n\n## {RECALL}\n{} rows of session `{session}` are summarised here; session_search finds their words.",
            rows.len()
        );
    }
    out
}

/// Puts back the skills whose text is gone and which the model forgot to name.
pub fn restore_skills(summary: &str, skills: &[String]) -> String {
    let missing: Vec<&String> = skills.iter().filter(|name| !summary.contains(name.as_str())).collect();
    if missing.is_empty() {
        return summary.to_owned();
    }
    let lines: String =
        missing.iter().flat_map(|name| ["- ", name.as_str(), ": reload with skill_view\n"]).collect();
    let heading = format!("## {SKILLS}");
    match summary.find(&heading) {
        Some(at) => {
            let end = at + heading.len();
            format!("{}\n{}{}", &summary[..end], lines.trim_end(), &summary[end..])
        }
        None => format!("{}\n\n{heading}\n{}", summary.trim_end(), lines.trim_end()),
    }
}

/// True when a summary speaks of a user although none spoke.
pub fn invents_user(summary: &str) -> bool {
    let text = summary.to_lowercase();
    ["the user asked", "user asked", "the user wants", "user requested", "the user requested"]
        .iter()
        .any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_is_set_once() {
        let text = "## Historical Task Snapshot\nwrong\n\n## Goal\ng\n\n## Historical Task Snapshot\nagain\n\n## Blocked\nb";
        let set = set_snapshot(text, Some("right"));
        assert_eq!(set.matches(SNAPSHOT).count(), 1);
        assert!(set.starts_with("## Historical Task Snapshot\nright\n"), "{set}");
        assert!(!set.contains("wrong") && !set.contains("again") && set.contains("## Blocked\nb"));
    }

    #[test]
    fn identifiers_are_listed_once() {
        let rows = [Row::user("see src/main.rs and https://a.b/c, src/main.rs again, ABC-12")];
        assert_eq!(identifiers(&rows), "- src/main.rs\n- https://a.b/c,\n- ABC-12");
    }

    #[test]
    fn forgotten_skills_come_back() {
        let skills = ["deploy".to_owned()];
        assert!(restore_skills("## Goal\nx", &skills).contains("- deploy: reload"));
        assert_eq!(restore_skills("mentions deploy", &skills), "mentions deploy");
    }
}

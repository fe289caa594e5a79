//! Advice about a skill's text; it never blocks a write.
//!
//! Attached to the answers of creates and patches. Rules that need to know the skill's directory are silent without
//! it. Differs: `platforms-gating` of the reference is left out; what it asks for could not be established.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::frontmatter;
use super::paths::SUPPORT_DIRS;
use crate::agent::text::chars;
use crate::agent::yaml;
use crate::policy;
use crate::world::Files;
use crate::world::files::file_name;

/// Words that advertise instead of saying when to use a skill.
const MARKETING: [&str; 8] = [
    "powerful",
    "comprehensive",
    "seamless",
    "advanced",
    "cutting-edge",
    "state-of-the-art",
    "revolutionary",
    "robust",
];
/// Values that `platforms` may have.
const PLATFORMS: [&str; 3] = ["linux", "macos", "windows"];
/// Files that do not belong into a skill.
const FORBIDDEN: [&str; 4] = ["README.md", "CHANGELOG.md", ".DS_Store", "Thumbs.db"];

static UTILITY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"`(?:grep|rg|cat|head|tail|sed|awk|find|ls)(?:`|[ \t][^`\n]*`)").expect("a fixed pattern")
});
static WHEN_TO_USE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?im)^#{1,6}[ \t]+when to use\b").expect("a fixed pattern"));
static INCIDENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:#|\b(?:pr|pull request|issue|mr|bug|ticket|change)s?[ \t]*#?)([0-9]{3,6})\b")
        .expect("a fixed pattern")
});
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:references|templates|scripts|assets)/[A-Za-z0-9._/-]*[A-Za-z0-9]")
        .expect("a fixed pattern")
});
static NAME_FORM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9][a-z0-9_-]*$").expect("a fixed pattern"));

/// One piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// True for errors, false for warnings.
    pub error: bool,
}

impl Finding {
    /// True for a rule about the skill's files instead of its text.
    pub fn is_about_files(self) -> bool {
        matches!(self.rule, "dangling-reference" | "forbidden-file" | "references-sprawl")
    }
}

/// What is known about the skill's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Name of the directory.
    pub dir_name: String,
    /// Files, relative to it.
    pub files: Vec<String>,
}

impl Facts {
    /// The facts of a directory.
    pub fn of(files: &dyn Files, dir: &str) -> Self {
        let prefix = format!("{dir}/");
        let all = files.walk(dir);
        Self {
            dir_name: file_name(dir).to_owned(),
            files: all.iter().filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect(),
        }
    }
}

/// The advice about a SKILL.md, each rule at most once (Hermes tools/skill_linter.py).
pub fn lint(content: &str, facts: Option<&Facts>, knobs: &policy::Skills) -> Vec<Finding> {
    let (fields, body) = frontmatter::parse(content);
    let text =
        |key: &str| fields.get(key).filter(|value| !value.is_null()).map(yaml::show).unwrap_or_default();
    let prose = without_fences(&body);
    let (name, description, author) = (text("name"), text("description"), text("author"));
    let lower = description.to_lowercase();
    let mut found = Vec::new();
    let mut check = |broken: bool, rule: &'static str, error: bool| {
        if broken {
            found.push(Finding { rule, error });
        }
    };
    check(!NAME_FORM.is_match(&name), "name-format", true);
    check(facts.is_some_and(|facts| facts.dir_name != name), "name-dir-mismatch", true);
    check(chars(&description) > knobs.catalogue_chars_max, "description-length", false);
    check(MARKETING.iter().any(|word| lower.contains(word)), "description-marketing", false);
    check(lacks_metadata(&fields), "missing-metadata", false);
    check(author.chars().next().is_some_and(char::is_lowercase), "author-caps", false);
    check(fields.get("platforms").is_some_and(|value| !known_platforms(value)), "platforms-value", false);
    check(chars(&body) > knobs.lint_body_chars, "oversized-body", false);
    check(UTILITY.is_match(&prose), "shell-utility-reference", false);
    check(!WHEN_TO_USE.is_match(&prose), "missing-section", false);
    check(is_incident_log(&prose), "incident-log-shape", false);
    if let Some(facts) = facts {
        let dangling = REFERENCE
            .find_iter(&prose)
            .any(|link| link.as_str().contains('.') && !facts.files.iter().any(|file| file == link.as_str()));
        check(dangling, "dangling-reference", false);
        check(facts.files.iter().any(|file| FORBIDDEN.contains(&file_name(file))), "forbidden-file", false);
        let references = facts.files.iter().filter(|file| {
            file.starts_with(&format!("{}/", SUPPORT_DIRS[0])) && file.to_lowercase().ends_with(".md")
        });
        check(references.count() as u64 > knobs.lint_references_max, "references-sprawl", false);
    }
    found
}

fn lacks_metadata(fields: &serde_json::Map<String, Value>) -> bool {
    let has = |value: Option<&Value>| match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let hermes = fields.get("metadata").and_then(|metadata| metadata.get("hermes"));
    !["version", "author", "license"].into_iter().all(|key| has(fields.get(key)))
        || !has(hermes.and_then(|hermes| hermes.get("tags")))
}

fn known_platforms(value: &Value) -> bool {
    value.as_array().is_some_and(|items| {
        items.iter().all(|item| item.as_str().is_some_and(|item| PLATFORMS.contains(&item)))
    })
}

/// The text without fenced code.
fn without_fences(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            inside = !inside;
        } else if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Many change or issue numbers for its length: a story of what happened instead of a procedure.
fn is_incident_log(prose: &str) -> bool {
    let numbers = INCIDENT.find_iter(prose).count();
    numbers >= 4 && numbers as f64 * 1_000.0 >= 0.5 * chars(prose).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_the_directory_need_the_directory() {
        let content = "---\nname: a.b\ndescription: d\n---\n## When to Use\nsee references/x.md\n";
        let knobs = policy::Skills::default();
        let rules =
            |facts| lint(content, facts, &knobs).into_iter().map(|finding| finding.rule).collect::<Vec<_>>();
        let facts = Facts { dir_name: "c".to_owned(), files: vec!["README.md".to_owned()] };
        assert_eq!(rules(None), ["name-format", "missing-metadata"]);
        assert_eq!(
            rules(Some(&facts)),
            ["name-format", "name-dir-mismatch", "missing-metadata", "dangling-reference", "forbidden-file"]
        );
    }
}

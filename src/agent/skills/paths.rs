//! Names, categories and paths: what a skill may be called and where its files may lie.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::refusal::{Reason, Refusal};
use crate::agent::text::{chars, strip};
use crate::policy;

/// Directories of a skill that hold its support files (Hermes tools/skill_manager_tool.py:113).
pub const SUPPORT_DIRS: [&str; 4] = ["references", "templates", "scripts", "assets"];

/// Directories that discovery never enters (Hermes agent/skill_utils.py:23-54).
pub const EXCLUDED_DIRS: [&str; 16] = [
    ".git",
    ".github",
    ".hub",
    ".archive",
    ".curator_backups",
    ".locks",
    ".venv",
    "venv",
    "node_modules",
    "site-packages",
    "__pycache__",
    ".tox",
    ".nox",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
];

static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9][a-z0-9._-]*$").expect("a fixed pattern"));

/// Checks the name of a skill.
///
/// # Errors
/// `name_required`, `name_too_long`, `name_invalid`.
pub fn validate_name(name: &str, knobs: &policy::Skills) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(Reason::NameRequired, "a skill needs a name"));
    }
    if chars(name) > knobs.name_chars_max {
        return Err(Refusal::new(Reason::NameTooLong, "the name is too long"));
    }
    let core = if knobs.trailing_newline_in_names { name.strip_suffix('\n').unwrap_or(name) } else { name };
    if !NAME.is_match(core) {
        return Err(Refusal::new(
            Reason::NameInvalid,
            "a name has lower-case letters, digits, dots, underscores and hyphens",
        ));
    }
    Ok(())
}

/// The category that a value names; `None` for null and blank.
///
/// # Errors
/// `category_type`, `category_invalid`, `category_too_long`.
pub fn validate_category(
    category: Option<&Value>,
    knobs: &policy::Skills,
) -> Result<Option<String>, Refusal> {
    let text = match category {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => strip(text),
        Some(_) => return Err(Refusal::new(Reason::CategoryType, "a category is a text")),
    };
    if text.is_empty() {
        return Ok(None);
    }
    if text.contains(['/', '\\']) {
        return Err(Refusal::new(Reason::CategoryInvalid, "a category is one directory"));
    }
    if chars(text) > knobs.name_chars_max {
        return Err(Refusal::new(Reason::CategoryTooLong, "the category is too long"));
    }
    if !NAME.is_match(text) {
        return Err(Refusal::new(Reason::CategoryInvalid, "a category is written like a name"));
    }
    Ok(Some(text.to_owned()))
}

/// The components of a path; a leading slash is one of its own, dots for the same directory vanish.
fn components(path: &str) -> Vec<&str> {
    let rooted = path.starts_with('/').then_some("/");
    rooted.into_iter().chain(path.split('/').filter(|part| !part.is_empty() && *part != ".")).collect()
}

/// Checks the path of a support file and answers it in clean form, relative to the skill.
///
/// # Errors
/// `path_required`, `path_traversal`, `path_dir_not_allowed`, `path_is_directory`, `path_escape`.
pub fn validate_file_path(path: &str) -> Result<String, Refusal> {
    if path.is_empty() {
        return Err(Refusal::new(Reason::PathRequired, "which file?"));
    }
    let parts = components(path);
    if parts.contains(&"..") {
        return Err(Refusal::new(Reason::PathTraversal, "the path must not climb"));
    }
    let skill_file = parts.last() == Some(&"SKILL.md") && parts.len() <= 2;
    if skill_file && parts[0] != "/" {
        return Ok(parts.join("/"));
    }
    if skill_file {
        return Err(Refusal::new(Reason::PathEscape, "the path leaves the skill"));
    }
    let Some(first) = parts.first().filter(|first| SUPPORT_DIRS.contains(first)) else {
        return Err(Refusal::new(
            Reason::PathDirNotAllowed,
            format!("files belong into one of {}", SUPPORT_DIRS.join(", ")),
        ));
    };
    if parts.len() < 2 {
        return Err(Refusal::new(Reason::PathIsDirectory, format!("`{first}` is a directory")));
    }
    Ok(parts.join("/"))
}

/// True for a directory name that discovery does not enter.
pub fn is_excluded_dir(name: &str) -> bool {
    EXCLUDED_DIRS.contains(&name)
}

/// True when discovery leaves a SKILL.md out: it lies below an excluded directory, or below a support directory of
/// another skill. `has_skill` says whether a directory holds a SKILL.md.
pub fn is_excluded(path: &str, has_skill: &dyn Fn(&str) -> bool) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| is_excluded_dir(part)) {
        return true;
    }
    let dirs = parts.len().saturating_sub(1);
    (0..dirs).any(|at| SUPPORT_DIRS.contains(&parts[at]) && has_skill(&parts[..at].join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_support_directory_hides_skills_only_inside_a_skill() {
        assert!(is_excluded("skills/a/scripts/x/SKILL.md", &|dir| dir == "skills/a"));
        assert!(!is_excluded("skills/scripts/x/SKILL.md", &|_| false));
    }

    #[test]
    fn a_name_may_have_sixty_four_characters_and_no_more() {
        let knobs = policy::Skills::default();
        assert!(validate_name(&"a".repeat(64), &knobs).is_ok());
        assert_eq!(validate_name(&"a".repeat(65), &knobs).unwrap_err().reason, Reason::NameTooLong);
        assert_eq!(validate_name("技", &knobs).unwrap_err().reason, Reason::NameInvalid);
    }

    #[test]
    fn an_absolute_path_never_reaches_a_skill() {
        assert_eq!(validate_file_path("/SKILL.md").unwrap_err().reason, Reason::PathEscape);
        assert_eq!(validate_file_path("/references/a").unwrap_err().reason, Reason::PathDirNotAllowed);
    }
}

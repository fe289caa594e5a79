//! The dangerous rules: data in `rules.toml`, each compiled once when a command first needs it, searched in list order.
//!
//! Patterns are linear, without look-around; what needs context is checked in code after a match.
//!
//! Never: a rule without an example and a near miss.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::checks;
use super::hardened::Reading;
use super::payload::Inspection;
use crate::agent::sieve::{Pattern, Sieve};

/// One rule of `rules.toml`.
#[derive(Debug)]
pub struct Rule {
    /// `category/rule`.
    pub id: String,
    search: Search,
    late: bool,
    hardened: Hardened,
    only_hardened: bool,
    /// A command that the rule must match.
    pub example: String,
    /// A command that it must not.
    pub near_miss: String,
}

/// What becomes of a rule in the hardened reading.
#[derive(Debug)]
enum Hardened {
    /// It is searched as it is.
    Same,
    /// Another pattern takes its place.
    Instead(Pattern),
    /// It is a matter of text and searched with quoted prose blanked.
    Text,
}

#[derive(Debug)]
enum Search {
    Pattern { pattern: Pattern, check: Option<checks::Check> },
    Structure(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    parts: toml::Table,
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    pattern: Option<String>,
    structure: Option<String>,
    #[serde(default)]
    late: bool,
    #[serde(default)]
    line: bool,
    check: Option<String>,
    /// The pattern of the hardened reading.
    hardened: Option<String>,
    /// Only the hardened reading knows the rule.
    #[serde(default)]
    only_hardened: bool,
    /// The hardened reading searches text, not words.
    #[serde(default)]
    hardened_text: bool,
    example: String,
    near_miss: String,
}

/// Every rule, in the order in which they are reported.
pub static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| load(include_str!("rules.toml")).expect("the embedded rules are written correctly"));

/// Which rules a reading of a command may match.
static SIEVE: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(RULES.iter().map(Rule::source)));

fn load(text: &str) -> Result<Vec<Rule>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let parts = file.parts.iter().filter_map(|(name, part)| Some((name.clone(), part.as_str()?.to_owned())));
    let parts: BTreeMap<String, String> = parts.collect();
    file.rule.into_iter().map(|entry| compile(entry, &parts)).collect()
}

fn compile(entry: Entry, parts: &BTreeMap<String, String>) -> Result<Rule, String> {
    let search = match (&entry.pattern, entry.structure) {
        (Some(pattern), None) => {
            let pattern =
                build(pattern, parts, entry.line).map_err(|error| format!("{}: {error}", entry.id))?;
            let check = match entry.check.as_deref() {
                None => None,
                Some(name) => {
                    Some(checks::named(name).ok_or_else(|| format!("{}: no check `{name}`", entry.id))?)
                }
            };
            Search::Pattern { pattern, check }
        }
        (None, Some(structure)) => Search::Structure(structure),
        _ => return Err(format!("{}: either a pattern or a structure", entry.id)),
    };
    let hardened = match &entry.hardened {
        Some(pattern) => {
            Hardened::Instead(build(pattern, parts, true).map_err(|error| format!("{}: {error}", entry.id))?)
        }
        None if entry.hardened_text => Hardened::Text,
        None => Hardened::Same,
    };
    Ok(Rule {
        only_hardened: entry.only_hardened,
        hardened,
        id: entry.id,
        search,
        late: entry.late,
        example: entry.example,
        near_miss: entry.near_miss,
    })
}

fn build(pattern: &str, parts: &BTreeMap<String, String>, line: bool) -> Result<Pattern, String> {
    Ok(Pattern::new(expand(pattern, parts)?, !line))
}

/// Writes the parts into a pattern until no `%NAME%` is left.
fn expand(pattern: &str, parts: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = pattern.to_owned();
    // Parts refer to parts, but never to themselves.
    for _ in 0..8 {
        let mut rounds = text.split('%');
        let mut next = rounds.next().unwrap_or_default().to_owned();
        let mut replaced = false;
        while let (Some(name), Some(behind)) = (rounds.next(), rounds.next()) {
            next.push_str(parts.get(name).ok_or_else(|| format!("no part `{name}`"))?);
            next.push_str(behind);
            replaced = true;
        }
        if !replaced {
            return Ok(text);
        }
        text = next;
    }
    Err(format!("parts refer to each other without end: {pattern}"))
}

impl Rule {
    fn source(&self) -> Option<&str> {
        match &self.search {
            Search::Pattern { pattern, .. } => Some(pattern.source()),
            Search::Structure(_) => None,
        }
    }

    /// True when the rule matches this reading of a command; structures belong to the command as a whole.
    pub fn matches(&self, variant: &str) -> bool {
        match &self.search {
            Search::Pattern { pattern, check: None } => pattern.is_match(variant),
            Search::Pattern { pattern, check: Some(check) } => check(pattern.whole(), variant),
            Search::Structure(_) => false,
        }
    }

    /// True when the rule is the structure that was found.
    pub fn is_found_in(&self, inspection: &Inspection) -> bool {
        matches!(&self.search, Search::Structure(structure) if inspection.has(structure))
    }

    /// The part of the id before the slash.
    pub fn category(&self) -> &str {
        self.id.split_once('/').map_or(&self.id, |(category, _)| category)
    }
}

/// The rule that is reported: of the first variant that matches anything, the first in list order.
///
/// Structures count as found in the plain reading, at their place in the list; the late ones come when no reading
/// matched anything.
pub fn find(variants: &[String], inspection: &Inspection) -> Option<&'static Rule> {
    let early = |at: usize, rule: &Rule| at == 0 && !rule.late && rule.is_found_in(inspection);
    variants
        .iter()
        .enumerate()
        .find_map(|(at, variant)| {
            let known = RULES.iter().zip(SIEVE.candidates(variant.as_bytes()));
            known
                .filter(|(rule, _)| !rule.only_hardened)
                .find(|(rule, candidate)| early(at, rule) || (*candidate && rule.matches(variant)))
                .map(|(rule, _)| rule)
        })
        .or_else(|| RULES.iter().find(|rule| rule.is_found_in(inspection)))
}

/// The rule that the hardened reading reports: of the first line that matches anything, the first in list order.
///
/// `raw` is the command as it was written, for what no reading shows.
pub(super) fn find_in_words(reading: &Reading, raw: &str) -> Option<&'static Rule> {
    let in_line = |line: &String| {
        let mut known = RULES.iter().zip(SIEVE.candidates(line.as_bytes()));
        let found = known.find(|(rule, candidate)| match &rule.hardened {
            Hardened::Same => *candidate && rule.matches(line),
            Hardened::Instead(pattern) => pattern.is_match(line),
            Hardened::Text => false,
        });
        found.map(|(rule, _)| rule)
    };
    let early = |rule: &&Rule| !rule.late && rule.is_found_in(&reading.inspection);
    reading
        .lines
        .iter()
        .find_map(in_line)
        .or_else(|| RULES.iter().find(early))
        .or_else(|| {
            let text = |rule: &&Rule| {
                matches!(rule.hardened, Hardened::Text)
                    && (reading.masked.iter().any(|text| rule.matches(text))
                        || (rule.id == "obfuscation/invisible_unicode" && rule.matches(raw)))
            };
            RULES.iter().find(text)
        })
        .or_else(|| RULES.iter().find(|rule| rule.is_found_in(&reading.inspection)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::guard::variants::Budget;
    use crate::agent::guard::{Homes, classify};
    use crate::policy;

    fn rule_of(command: &str) -> Option<String> {
        let homes = Homes { user: "/home/ada".to_owned(), agent: "/home/ada/.hermes".to_owned() };
        classify(command, &homes, &policy::Guard::default()).rule
    }

    #[test]
    fn every_rule_finds_its_example_and_leaves_its_near_miss() {
        let homes = Homes { user: "/home/ada".to_owned(), agent: "/home/ada/.hermes".to_owned() };
        for rule in RULES.iter() {
            let hit = |command: &str| {
                let unfolded = crate::agent::guard::variants::unfold(
                    command,
                    &homes,
                    Budget { bytes: 100_000, payloads: 8 },
                );
                let mut inspection = unfolded.inspection.clone();
                crate::agent::guard::note_spliced(command, &mut inspection);
                unfolded.variants.iter().any(|variant| rule.matches(variant)) || rule.is_found_in(&inspection)
            };
            assert!(hit(&rule.example), "{} must match {:?}", rule.id, rule.example);
            assert!(!hit(&rule.near_miss), "{} must not match {:?}", rule.id, rule.near_miss);
        }
    }

    #[test]
    fn every_rule_compiles_and_judges_ascii_alike_in_both_its_forms() {
        let texts: Vec<&str> = RULES
            .iter()
            .flat_map(|rule| [&*rule.example, &*rule.near_miss])
            .filter(|text| text.is_ascii())
            .collect();
        for rule in RULES.iter() {
            let Search::Pattern { pattern, .. } = &rule.search else { continue };
            for text in &texts {
                assert_eq!(pattern.is_match(text), pattern.whole().is_match(text), "{}: {text}", rule.id);
            }
        }
    }

    #[test]
    fn the_list_has_the_observed_length() {
        let known: Vec<&Rule> = RULES.iter().filter(|rule| !rule.only_hardened).collect();
        let ids: std::collections::BTreeSet<&str> = known.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!((known.len(), ids.len()), (116, 110));
    }

    #[test]
    fn the_first_rule_in_list_order_is_reported() {
        assert_eq!(rule_of("chmod 777 f; rm -r d").as_deref(), Some("delete/recursive"));
    }
}

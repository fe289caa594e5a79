//! What must hold when a scenario is over, how it can be made to fail, and which arms it is played in.
//!
//! An expectation reads outside evidence alone: files, stored rows, requests as they were sent, tools that were really
//! dispatched, figures of the ledger. What a model says of itself is no subject.

use serde::Deserialize;

/// One text or several.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    /// None.
    #[default]
    None,
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Texts {
    /// Every text.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        let (one, many): (Option<&String>, &[String]) = match self {
            Self::None => (None, &[]),
            Self::One(text) => (Some(text), &[]),
            Self::Many(texts) => (None, texts),
        };
        one.into_iter().chain(many)
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What must hold afterwards: one subject, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectSpec {
    /// Name for reports; the subject's when absent.
    pub name: Option<String>,
    /// The sentence that holds.
    #[serde(default)]
    pub says: String,

    /// Subject: a figure of the ledger.
    pub figure: Option<String>,
    /// Subject: a check of a law: `holds`, `fails`, or `saw nothing`.
    pub law: Option<String>,
    /// Subject: the text of a file of the workspace.
    pub file: Option<String>,
    /// Subject: the text of a file of the home.
    pub home: Option<String>,
    /// Subject: the paths of the workspace that were made, changed or removed.
    #[serde(default)]
    pub changed: bool,
    /// Subject: everything that was sent to the model in this session.
    pub sent: Option<String>,
    /// Subject: the rows that the store holds of this session, as texts.
    pub stored: Option<String>,
    /// Subject: how many dispatched calls have this form, `tool argument` with `*` for any text.
    pub ran: Option<String>,
    /// Subject: dispatched calls of these forms come in this order.
    #[serde(default)]
    pub order: Vec<String>,

    /// Only this session's calls count.
    pub session: Option<String>,
    /// Only this lane counts; for `sent` it is `main` when absent.
    pub lane: Option<String>,

    /// The subject's value.
    pub is: Option<toml::Value>,
    /// The subject's text contains all of these.
    #[serde(default)]
    pub has: Texts,
    /// The subject's text contains none of these.
    #[serde(default)]
    pub lacks: Texts,
    /// The subject's number is at most this.
    pub at_most: Option<i64>,
    /// The subject's number is at least this.
    pub at_least: Option<i64>,
    /// Nothing is there.
    #[serde(default)]
    pub absent: bool,
}

impl ExpectSpec {
    /// Words for the subjects that are given.
    pub fn subjects(&self) -> Vec<String> {
        let word = |kind: &str, name: &Option<String>| name.as_ref().map(|name| format!("{kind} {name}"));
        let figure = self.figure.clone();
        let named = [
            figure,
            word("law", &self.law),
            word("file", &self.file),
            word("home", &self.home),
            self.changed.then(|| "changed".to_owned()),
            word("sent", &self.sent),
            word("stored", &self.stored),
            word("ran", &self.ran),
            (!self.order.is_empty()).then(|| format!("order {}", self.order.join(", "))),
        ];
        named.into_iter().flatten().collect()
    }

    /// The name for reports.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.subjects().join(", "))
    }

    /// True when something is asked of the subject.
    pub fn asks(&self) -> bool {
        self.is.is_some()
            || !self.has.is_empty()
            || !self.lacks.is_empty()
            || self.at_most.is_some()
            || self.at_least.is_some()
            || self.absent
            || !self.order.is_empty()
    }
}

/// A change of the scenario or of the policy that must make expectations fail: the proof that they can.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TamperSpec {
    /// What is done, in a few words.
    pub name: String,
    /// A text of the scenario file.
    pub find: Option<String>,
    /// What stands in its place; every occurrence is replaced.
    pub put: Option<String>,
    /// Knobs that are turned.
    #[serde(default)]
    pub turn: toml::Table,
    /// Expectations that must fail, by name.
    pub fails: Vec<String>,
}

/// One way in which a scenario is played, beside others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmSpec {
    /// Name for tables.
    pub name: String,
    /// What is different, in a sentence.
    #[serde(default)]
    pub says: String,
    /// Knobs that are turned.
    #[serde(default)]
    pub turn: toml::Table,
    /// True for an arm whose later work must be worse than that of the first.
    #[serde(default)]
    pub loses: bool,
    /// Expectations that do not hold in this arm, by name; all others do.
    #[serde(default)]
    pub fails: Vec<String>,
}

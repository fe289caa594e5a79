//! Command approval: what may run, what is asked about, what never runs.
//!
//! Detection looks at text only; nothing is run or expanded by a shell. [`classify`] says what a command is,
//! [`Guard::decide`] who may let it pass: the floor first, then the user's lists, then the reviewer, then the human.
//!
//! Who calls it: the terminal tool before every command, the scheduler through its unattended context, reviews through
//! their own gate. Never: a decision by anything but the policy and the people given to it.
//!
//! The real agent looks for spellings: a command is normalised and held against a floor and against rules. Differs:
//! `guard.hardened` reads what the shell would run, across quotes, aliases and wrappers. The human at the prompt is the
//! knob `guard.user_answer`; who turns approval off in a running session ([`Guard::set_yolo`]) or reads a configuration
//! ([`mode_of`], [`unattended_of`], [`threshold_of`]) exists in the vectors, not in a scenario.

mod checks;
mod decide;
mod expand;
mod hardened;
pub mod hardline;
pub mod limits;
pub mod lists;
mod message;
pub mod normalize;
mod options;
mod own;
mod payload;
pub mod reviewer;
pub mod rules;
pub mod scan;
mod tally;
mod unattended;
pub mod variants;
pub mod words;

pub use decide::{Answer, Decision, Guard, Kind, Question, Request};
pub use normalize::Homes;
pub use reviewer::{ReviewRequest, ReviewerFailed, Verdict};
pub use tally::Tally;
pub use unattended::{Context, is_isolated, mode_of, threshold_of, unattended_of};

use crate::agent::cron::lifecycle_guard;
use crate::policy;

use payload::Inspection;

/// What a command is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classification {
    /// The entry of the floor that it hits.
    pub hardline: Option<String>,
    /// The dangerous rule that is reported, `category/rule`.
    pub rule: Option<String>,
}

impl Classification {
    /// The part of the rule before the slash.
    pub fn category(&self) -> Option<&str> {
        self.rule.as_deref()?.split_once('/').map(|(category, _)| category)
    }
}

/// Says what a command is, by text alone (Hermes tools/approval_detection.py).
pub fn classify(command: &str, homes: &Homes, knobs: &policy::Guard) -> Classification {
    let refused =
        || Classification { hardline: Some("limit".to_owned()), rule: Some("parser/limit".to_owned()) };
    if limits::exceeded(command, knobs) {
        return refused();
    }
    if knobs.hardened {
        return by_words(command, homes, knobs).unwrap_or_else(refused);
    }
    let mut unfolded = variants::unfold(command, homes, variants::Budget::of(knobs));
    if unfolded.over_budget {
        return refused();
    }
    let mut hardline = hardline::find(&unfolded.variants, &unfolded.programs).map(str::to_owned);
    if hardline.is_none() && unfolded.inspection.malformed_grep {
        hardline = Some("malformed".to_owned());
    }
    note_spliced(command, &mut unfolded.inspection);
    let rule = if is_own_cleanup(command) {
        None
    } else {
        rules::find(&unfolded.variants, &unfolded.inspection).map(|rule| rule.id.clone())
    };
    Classification { hardline, rule }
}

/// The hardened reading; `None` when the command needs more work than the budget allows.
fn by_words(command: &str, homes: &Homes, knobs: &policy::Guard) -> Option<Classification> {
    let mut reading = hardened::read(command, homes, variants::Budget::of(knobs));
    if reading.over_budget {
        return None;
    }
    if reading.lines.iter().any(|line| lifecycle_guard::blocks(line)) {
        reading.inspection.found.push("gateway_spliced");
    }
    let hardline = hardline::find_in_words(&reading.lines, &reading.masked).map(str::to_owned);
    let rule = rules::find_in_words(&reading, command).filter(|_| !is_own_cleanup(command));
    Some(Classification { hardline, rule: rule.map(|rule| rule.id.clone()) })
}

/// True when the command lets sudo read a password from its input.
fn sudo_reads_stdin(command: &str, homes: &Homes, knobs: &policy::Guard) -> bool {
    hardline::sudo_reads_stdin(&normalize::normalize(command, homes))
        || (knobs.hardened
            && hardened::sudo_reads_stdin(&hardened::read(command, homes, variants::Budget::of(knobs))))
}

/// Notes a command against the agent's own gateway whose words are spliced from quoted pieces.
fn note_spliced(command: &str, inspection: &mut Inspection) {
    if lifecycle_guard::blocks(command) {
        inspection.found.push("gateway_spliced");
    }
}

/// `rm -f` of exactly one of the agent's own check scripts in the temporary directory.
fn is_own_cleanup(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let (Some("rm"), Some("-f"), Some(path), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    path.strip_prefix("/tmp/").is_some_and(|name| {
        (name.starts_with("hermes-verify-") || name.starts_with("hermes-ad-hoc-"))
            && name.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.'))
    })
}

//! Two prompts of one conversation side by side: every reason why the later one does not extend the earlier one.
//!
//! The findings come in the order of the prefix, so the first one is the decisive one and the rest are latent: they
//! would break the prefix again once the first is mended.
//!
//! Never: a look at time, usage or prices. Equal prompts give no finding.

pub(crate) mod history;
mod pair;
pub(crate) mod system;
mod tools;

pub use history::{Compaction, looks_like_summary};
pub use pair::{changed_path, order_path};

use crate::audit::prompt::Prompt;
use crate::audit::text_kind::TextKind;
use crate::audit::words::{Cause, Evidence, Place};
use crate::wire::Level;

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// Where it lies.
    pub level: Place,
    /// JSON pointer of the first segment that it touches, in the later request.
    pub pointer: String,
    /// Every pointer that it touches, in order.
    pub pointers: Vec<String>,
    /// First differing byte inside the segment's text.
    pub byte: Option<u64>,
    /// What kind of text changed.
    pub kind: TextKind,
    /// One sentence for people.
    pub what: String,
    /// The text before.
    pub before: String,
    /// The text after.
    pub after: String,
    /// Ids, names or fields that it is about.
    pub names: Vec<String>,
    /// For a moved block: from where to where.
    pub moved: Option<(String, String)>,
    /// How it is known.
    pub evidence: Evidence,
    /// Place of the first touched segment, for ordering.
    pub at: usize,
}

impl Finding {
    fn new(cause: Cause, after: &Prompt, at: usize, what: impl Into<String>) -> Self {
        let level = after.segs.get(at).map_or(Place::Messages, |seg| seg.level.into());
        let pointer = after.pointer(at);
        Self {
            cause,
            level,
            pointers: vec![pointer.clone()],
            pointer,
            byte: None,
            kind: TextKind::Other,
            what: what.into(),
            before: String::new(),
            after: String::new(),
            names: Vec::new(),
            moved: None,
            evidence: Evidence::BytesSeen,
            at,
        }
    }

    /// A finding about the request as a whole.
    pub fn whole(cause: Cause, level: Place, what: impl Into<String>) -> Self {
        Self {
            cause,
            level,
            pointer: String::new(),
            pointers: Vec::new(),
            byte: None,
            kind: TextKind::Other,
            what: what.into(),
            before: String::new(),
            after: String::new(),
            names: Vec::new(),
            moved: None,
            evidence: Evidence::BytesSeen,
            at: 0,
        }
    }
}

/// What two prompts have and do not have in common.
#[derive(Debug, Clone, Default)]
pub struct Difference {
    /// Leading segments that they share.
    pub shared: usize,
    /// Leading segments of the earlier one that can have been cached.
    pub cacheable: usize,
    /// Reasons, in the order of the prefix; empty when the later one extends the earlier one.
    pub findings: Vec<Finding>,
    /// What a compaction did, where the history looks compacted.
    pub compaction: Option<Compaction>,
}

impl Difference {
    /// True when everything cacheable stands unchanged in front.
    pub fn extends(&self) -> bool {
        self.shared >= self.cacheable
    }
}

/// Compares two prompts.
pub fn compare(before: &Prompt, after: &Prompt) -> Difference {
    let mut difference =
        Difference { shared: before.shared(after), cacheable: before.cacheable(), ..Difference::default() };
    if difference.extends() {
        return difference;
    }
    if before.held() && after.held() {
        let limit = difference.cacheable;
        tools::compare(before, after, &mut difference.findings);
        system::compare(before, after, limit, &mut difference.findings);
        if limit > first_of(before, Level::Messages) {
            difference.compaction = history::compare(before, after, limit, &mut difference.findings);
        }
    }
    difference.findings.sort_by_key(|finding| finding.at);
    merge(&mut difference.findings);
    // The first differing segment is a fact; whatever the first reason is, it begins there.
    let at = difference.shared;
    if difference.findings.is_empty() {
        let what = "differs from here on; the earlier text is no longer held";
        difference.findings.push(Finding::new(fallback(after, at), after, at, what));
    }
    let first = &mut difference.findings[0];
    if first.at != at {
        first.at = at;
        let named = if at < after.segs.len() { after.pointer(at) } else { before.pointer(at) };
        let segs = if at < after.segs.len() { &after.segs } else { &before.segs };
        first.level = segs.get(at).map_or(first.level, |seg| seg.level.into());
        first.pointers.insert(0, named.clone());
        first.pointer = named;
    }
    difference
}

fn fallback(after: &Prompt, at: usize) -> Cause {
    match after.segs.get(at).map(|seg| seg.level) {
        Some(Level::Tools) => Cause::ToolSetChanged,
        Some(Level::System) => Cause::SystemChanged,
        _ => Cause::HistoryRewritten,
    }
}

/// Place of the first segment of a level or of a later one.
fn first_of(prompt: &Prompt, level: Level) -> usize {
    prompt.segs.partition_point(|seg| seg.level < level)
}

/// One finding a cause: later ones give their pointers and names to the first.
fn merge(findings: &mut Vec<Finding>) {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings.drain(..) {
        match kept.iter_mut().find(|seen| seen.cause == finding.cause && seen.level == finding.level) {
            Some(seen) => {
                for pointer in finding.pointers {
                    if !seen.pointers.contains(&pointer) {
                        seen.pointers.push(pointer);
                    }
                }
                for name in finding.names {
                    if !seen.names.contains(&name) {
                        seen.names.push(name);
                    }
                }
            }
            None => kept.push(finding),
        }
    }
    *findings = kept;
}

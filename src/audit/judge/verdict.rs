//! The prefix, or the key of its entry, broke: which causes, in which order, and whether it may.

use crate::audit::compare::{Difference, Finding};
use crate::audit::history;
use crate::audit::judge::{Auditor, Seen, TEXTS_MAX, declared, miss};
use crate::audit::prompt::Prompt;
use crate::audit::record::{Detail, Judged};
use crate::audit::text_kind::{self, TextKind};
use crate::audit::words::{Cause, Evidence, Place, Verdict};
use crate::wire::Level;
use crate::world::Millis;

impl Auditor {
    /// The prefix, or the key of its entry, broke.
    pub(super) fn broken(
        &mut self,
        judged: &mut Judged,
        seen: &Seen<'_>,
        thread: usize,
        difference: Difference,
        outer: Vec<Finding>,
        expected: u64,
    ) {
        let declared = declared(seen.record);
        let compaction = difference.compaction;
        let mut findings = outer;
        findings.extend(difference.findings);
        findings.sort_by_key(|finding| (rank(finding), finding.at));
        let mut planned = false;
        let dropped = findings.iter().position(|finding| finding.cause == Cause::SummaryFailureDropsHistory);
        if let Some(at) = dropped {
            findings = vec![findings.swap_remove(at)];
        } else if declared {
            planned = true;
            let mut finding = findings.remove(0);
            finding.cause = Cause::PlannedCompaction;
            finding.what = String::from("the history was compacted, as the log says");
            findings = vec![finding];
        } else if compaction.is_some() {
            // What was read again from disk at a compaction belongs to it.
            findings
                .retain(|finding| finding.cause != Cause::MemoryLiveRead && finding.kind != TextKind::Memory);
            planned = findings.first().is_some_and(|first| first.cause == Cause::PlannedCompaction);
        }
        if declared || compaction.is_some() {
            planned &= self.compaction_faults(seen, thread, &mut findings);
        }
        let last = &self.threads[thread];
        if let Some(idle) = idle_over(last.end.at, seen) {
            let mut finding = Finding::whole(Cause::TtlExpired, Place::All, idle);
            finding.at = usize::MAX;
            findings.push(finding);
        }
        if !judged.broken && self.proven_read(seen, expected) {
            // Only the key changed, and the provider read everything all the same.
            findings.clear();
            judged.tokens.lost = 0;
            judged.notes.push("a parameter changed and the provider read the prefix all the same".to_owned());
        }
        self.settle(judged, findings, planned);
    }

    fn proven_read(&self, seen: &Seen<'_>, expected: u64) -> bool {
        let _ = self;
        seen.record.usage.is_some_and(|usage| expected > 0 && usage.read + expected / 50 + 64 >= expected)
    }

    pub(super) fn settle(&mut self, judged: &mut Judged, findings: Vec<Finding>, planned: bool) {
        let Some(first) = findings.first() else {
            judged.verdict = Verdict::Extends;
            return;
        };
        judged.cause = first.cause;
        judged.level = Some(first.level);
        judged.pointer.clone_from(&first.pointer);
        judged.byte = first.byte;
        judged.evidence = first.evidence;
        judged.planned = planned;
        judged.verdict = match first.cause {
            _ if planned => Verdict::PlannedBreak,
            Cause::TtlExpired => Verdict::Expired,
            _ => Verdict::UnplannedBreak,
        };
        for finding in findings.iter().skip(1) {
            if finding.cause != judged.cause && !judged.latent.contains(&finding.cause) {
                judged.latent.push(finding.cause);
            }
        }
        for finding in findings {
            let detail = self.detail(finding);
            judged.details.push(detail);
        }
    }

    /// Compactions that do not help, and what they lose. False when it did not shrink.
    fn compaction_faults(&self, seen: &Seen<'_>, thread: usize, findings: &mut Vec<Finding>) -> bool {
        let last = &self.threads[thread];
        let (before, after) = (&last.last, &seen.prompt);
        let mut shrunk = true;
        let repeated = last.compacted.is_some_and(|(index, _)| seen.index - index <= 2);
        if after.size() >= before.size() || repeated && after.size() * 20 >= before.size() * 19 {
            shrunk = false;
            let what = "the compaction did not make the request smaller";
            let mut finding = Finding::whole(Cause::CompactionIneffective, Place::Messages, what);
            if let Some(first) = findings.first() {
                finding.level = first.level;
                finding.pointer.clone_from(&first.pointer);
            }
            findings.insert(0, finding);
        }
        if before.held() && after.held() {
            let text: String = (0..after.segs.len()).map(|at| after.text(at)).collect::<Vec<_>>().join("\n");
            for lost in history::standing_instructions(before) {
                if !history::survives(&lost, &text) {
                    let what = "a standing instruction of the user is gone";
                    let mut finding = Finding::whole(Cause::InstructionLost, Place::Messages, what);
                    finding.before = lost;
                    finding.evidence = Evidence::BytesSeen;
                    finding.at = usize::MAX - 1;
                    findings.push(finding);
                }
            }
        }
        shrunk
    }

    pub(super) fn detail(&mut self, finding: Finding) -> Detail {
        self.texts += 1;
        let (before, after) = if self.texts > TEXTS_MAX {
            (String::new(), String::new())
        } else {
            (around(&finding.before, &finding.after), around(&finding.after, &finding.before))
        };
        Detail {
            cause: finding.cause,
            level: Some(finding.level),
            pointer: finding.pointer,
            pointers: finding.pointers,
            byte: finding.byte,
            kind: finding.kind,
            what: finding.what,
            before,
            after,
            names: finding.names,
            moved: finding.moved,
            evidence: finding.evidence,
        }
    }
}

/// Changes outside the segments that belong to the key of an entry.
pub(super) fn outer_changes(
    before: &Prompt,
    route: Option<&str>,
    seen: &Seen<'_>,
    broken: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let after = &seen.prompt;
    if before.model != after.model {
        let mut finding = Finding::whole(
            Cause::ModelChanged,
            Place::All,
            format!("from {} to {}", shown(&before.model), shown(&after.model)),
        );
        (finding.before, finding.after) = (before.model.clone(), after.model.clone());
        found.push(finding);
    }
    let key = before.route_key != after.route_key;
    let moved = match (route, &seen.record.route) {
        (Some(old), Some(new)) if old != new => Some((old.to_owned(), new.clone())),
        _ => key.then(|| (before.route_key.clone(), after.route_key.clone())),
    };
    if let Some((old, new)) = moved {
        let what = format!("from {} to {}", shown(&old), shown(&new));
        let mut finding = Finding::whole(Cause::RouteChanged, Place::All, what);
        (finding.before, finding.after) = (old, new);
        found.push(finding);
    }
    let names = changed_params(before, after);
    if !names.is_empty() && before.shape == after.shape {
        let what = format!("changed: {}", names.join(", "));
        let mut finding = Finding::whole(Cause::ParamsChanged, Place::Messages, what);
        finding.names = names.iter().map(|name| (*name).to_owned()).collect();
        finding.before = params_text(before);
        finding.after = params_text(after);
        finding.at = after.segs.partition_point(|seg| seg.level < Level::Messages);
        // Parameters cost nothing where no message could have been cached.
        let messages = before.cacheable() > before.segs.partition_point(|seg| seg.level < Level::Messages);
        if messages || broken {
            found.push(finding);
        }
    }
    found
}

/// Names of parameters that differ between two prompts.
pub(crate) fn changed_params(before: &Prompt, after: &Prompt) -> Vec<&'static str> {
    let value = |prompt: &Prompt, name: &str| {
        prompt.params.iter().find(|param| param.name == name).map(|param| param.value.clone())
    };
    let mut names: Vec<&'static str> =
        before.params.iter().chain(&after.params).map(|param| param.name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| value(before, name) != value(after, name));
    names
}

fn params_text(prompt: &Prompt) -> String {
    let lines: Vec<String> =
        prompt.params.iter().map(|param| format!("{}: {}\n", param.name, param.value)).collect();
    lines.concat()
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "nothing" } else { name }
}

/// Order of the levels in the prefix; the model and the route stand before everything.
fn rank(finding: &Finding) -> u8 {
    match finding.level {
        Place::All if finding.cause == Cause::TtlExpired => 9,
        Place::All | Place::Request => 0,
        Place::Tools => 1,
        Place::System => 2,
        Place::Messages if finding.cause == Cause::ParamsChanged => 3,
        Place::Messages => 4,
    }
}

/// The entries of the request before had outlived their lifetime as well.
fn idle_over(last: Option<Millis>, seen: &Seen<'_>) -> Option<String> {
    let idle = seen.record.at?.checked_sub(last?)?;
    let lifetime = miss::lifetime_of(&seen.prompt, seen.record);
    (idle > lifetime)
        .then(|| format!("{} s since the request before, more than the entry lives", idle / 1000))
}

/// A text cut to a window around its first difference from another.
fn around(text: &str, other: &str) -> String {
    const WINDOW: usize = 1200;
    if text.len() <= 2 * WINDOW {
        return text.to_owned();
    }
    let at = text_kind::common_head(text, other);
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(at.saturating_sub(WINDOW)), floor(at + WINDOW));
    let lead = if start > 0 { "…" } else { "" };
    let trail = if end < text.len() { "…" } else { "" };
    format!("{lead}{}{trail}", &text[start..end])
}

//! The prefix stands and was not read: too old, too far, not ready, or nobody knows.
//!
//! A provider's miss on a stable prefix is never blamed on the prompt, and what the bill shows to have been read was
//! read, whatever the prediction says.

use crate::audit::compare::Finding;
use crate::audit::conversations::End;
use crate::audit::judge::Seen;
use crate::audit::predict::Missed;
use crate::audit::prompt::{Prompt, Shape};
use crate::audit::record::{Detail, Judged, Record};
use crate::audit::text_kind::TextKind;
use crate::audit::words::{Cause, Evidence, Place, Verdict};
use crate::cache::minimum::{Minimum, UNKNOWN};
use crate::cache::{GEMINI_MIN, Ttl};
use crate::world::Millis;

/// Positions that a marker looks back over.
const LOOKBACK: usize = 20;

/// How long the entries of a request live without use, at least as far as documented.
pub(super) fn lifetime_of(prompt: &Prompt, record: &Record) -> Millis {
    const MINUTE: Millis = 60_000;
    if prompt.shape == Shape::Anthropic {
        let hour = prompt.marks.iter().any(|(_, ttl)| *ttl == Ttl::Hour1)
            || record.usage.is_some_and(|usage| usage.write_1h > 0);
        return if hour { 60 * MINUTE } else { 5 * MINUTE };
    }
    let model = prompt.model.to_ascii_lowercase();
    let newest = ["gpt-5.6", "gpt-5-6", "gpt-6"].iter().any(|name| model.contains(name));
    let kept = ["gpt-5.5", "gpt-5-5"].iter().any(|name| model.contains(name));
    match (newest, kept, record.usage.is_some()) {
        (true, ..) => 30 * MINUTE,
        (_, true, _) => 24 * 60 * MINUTE,
        // The bill decides; five minutes are the shortest documented life.
        (.., true) => 5 * MINUTE,
        _ => 10 * MINUTE,
    }
}

/// Shortest prefix that is cached, in tokens.
fn minimum(prompt: &Prompt) -> u64 {
    match prompt.shape {
        Shape::Anthropic => Minimum::FirstParty.of(&prompt.model),
        // The shortest that Google documents for some models is less; a miss below this is none of the prompt's doing.
        Shape::Gemini if prompt.model.contains("2.5-flash") => GEMINI_MIN,
        Shape::Gemini => 2 * GEMINI_MIN,
        _ => UNKNOWN,
    }
}

/// Judges a request whose prefix stands. `expected` tokens could have been read.
pub(super) fn judge(judged: &mut Judged, seen: &Seen<'_>, base: End, expected: u64) {
    judged.tokens.lost = 0;
    if seen.record.failed {
        judged.notes.push("the answer was an error; nothing was cached".to_owned());
        return;
    }
    match seen.prompt.shape {
        Shape::Anthropic => explicit(judged, seen, base, expected),
        _ => automatic(judged, seen, base, expected),
    }
}

fn explicit(judged: &mut Judged, seen: &Seen<'_>, base: End, expected: u64) {
    if seen.prompt.marks.is_empty() && !judged.tokens.billed {
        judged.notes.push("no marker: nothing is cached".to_owned());
        return;
    }
    let billed = seen.record.usage.filter(|usage| usage.prompt() > 0);
    let read = billed.map_or(0, |usage| usage.read);
    let enough = billed.is_some() && read + expected / 50 + 64 >= expected;
    if enough || billed.is_some() && expected < minimum(&seen.prompt) {
        return;
    }
    let lost = expected.saturating_sub(judged.tokens.read).min(judged.tokens.prompt);
    let Some((place, missed)) =
        seen.walk.missed.filter(|(place, _)| *place >= base.len.min(seen.prompt.segs.len()))
    else {
        if billed.is_some() && expected > 0 && seen.walk.hit >= base.len {
            unexplained(judged, lost);
        }
        return;
    };
    let pointer = seen.prompt.pointer(place - 1);
    let (verdict, cause, what) = match missed {
        Missed::Expired(idle) => {
            let what = format!("idle for {} s, longer than the entry lives", idle / 1000);
            (Verdict::Expired, Cause::TtlExpired, what)
        }
        Missed::NotReady => {
            let what = "sent before the request that writes the prefix had begun to answer".to_owned();
            (Verdict::UnplannedBreak, Cause::EntryNotReady, what)
        }
        Missed::Lookback(needed) => {
            let what = format!(
                "the entry ends at {pointer}, {needed} positions from the nearest marker; a marker looks back {LOOKBACK}"
            );
            (Verdict::UnplannedBreak, Cause::LookbackExceeded, what)
        }
        Missed::NoMarker => {
            let what = format!("the entry ends at {pointer} and no marker stands there or behind");
            (Verdict::UnplannedBreak, Cause::BreakpointStatic, what)
        }
    };
    let evidence = if billed.is_some() { Evidence::BytesSeen } else { Evidence::Inferred };
    tell(judged, verdict, cause, what, evidence);
    judged.tokens.lost = lost;
}

fn automatic(judged: &mut Judged, seen: &Seen<'_>, base: End, expected: u64) {
    let step = 128;
    let idle = seen.record.at.zip(base.at).map(|(now, then)| now.saturating_sub(then));
    let lifetime = lifetime_of(&seen.prompt, seen.record);
    let over = idle.is_some_and(|idle| idle > lifetime);
    if expected < minimum(&seen.prompt) {
        return;
    }
    let readable = expected / step * step;
    match seen.record.usage.filter(|usage| usage.prompt() > 0) {
        Some(usage) if usage.read + 2 * step + readable / 20 >= readable => {}
        Some(usage) => {
            let lost = readable - usage.read;
            if over {
                let what = format!("idle for {} s", idle.unwrap_or(0) / 1000);
                tell(judged, Verdict::Expired, Cause::TtlExpired, what, Evidence::UsageOnly);
                judged.tokens.lost = lost;
            } else {
                unexplained(judged, lost);
            }
        }
        None if over => {
            let what = format!("idle for {} s; the log has no token counts", idle.unwrap_or(0) / 1000);
            tell(judged, Verdict::Expired, Cause::TtlExpired, what, Evidence::Inferred);
            judged.tokens.lost = readable;
        }
        None => {}
    }
}

fn unexplained(judged: &mut Judged, lost: u64) {
    let what = "the prefix is the same, byte for byte, and young enough; the provider read less".to_owned();
    tell(judged, Verdict::EvictedOrUnexplained, Cause::Unexplained, what, Evidence::UsageOnly);
    judged.tokens.lost = lost;
}

fn tell(judged: &mut Judged, verdict: Verdict, cause: Cause, what: String, evidence: Evidence) {
    judged.verdict = verdict;
    judged.cause = cause;
    judged.level = Some(Place::All);
    judged.evidence = evidence;
    let finding = Finding::whole(cause, Place::All, what);
    judged.details.push(Detail {
        cause,
        level: Some(Place::All),
        pointer: String::new(),
        pointers: Vec::new(),
        byte: None,
        kind: TextKind::Other,
        what: finding.what,
        before: String::new(),
        after: String::new(),
        names: Vec::new(),
        moved: None,
        evidence,
    });
}

/// One step that adds more messages than a marker looks back over, on a wire without markers.
///
/// The automatic cache behind such a wire may well read it. A route that sets markers on the caller's behalf would
/// not, so the step is named where it happens, with nothing lost unless the bill says so.
pub(super) fn step(judged: &mut Judged, seen: &Seen<'_>, before: &Prompt) {
    if seen.prompt.shape == Shape::Anthropic || judged.cause != Cause::None {
        return;
    }
    let added = seen.prompt.segs.len().saturating_sub(before.segs.len());
    // The new end, and every place back to the old one, its own included.
    if added < LOOKBACK {
        return;
    }
    let what = format!("one step added {added} messages; a route that sets markers looks back {LOOKBACK}");
    tell(judged, Verdict::Extends, Cause::LookbackExceeded, what, Evidence::Inferred);
}

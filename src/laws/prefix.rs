//! L1, cache-first invariance.
//!
//! Inside a session every request extends the one before it byte for byte. The only planned break is a compaction or
//! a declared rebuild, and each breaks exactly once.

use std::collections::BTreeMap;

use crate::ledger::rebuild::Rebuilt;
use crate::ledger::{Event, Lane, Name, Request, What};
use crate::wire::{Level, Segment};
use crate::world::faults::OVERFLOW;

use super::{Bench, Check, Finding, Scene, excerpt, finding};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "L1.prefix-extends",
        says: "a request begins with every byte of the request before it (tools, system, messages; markers aside)",
        mend: "keep what was sent; put what changes behind the last message, or wait for the next compaction",
    },
    Check {
        id: "L1.breaks-once",
        says: "a break that is announced as planned follows its declaration, and uses it up",
        mend: "store the rebuilt prompt and history before the next request, so that it is sent unchanged from then on",
    },
    Check {
        id: "L1.breaks-rare",
        says: "planned breaks pay: between two of them the session sends several requests",
        mend: "compact less often and deeper; a rewrite on every turn pays for the whole prefix every turn",
    },
    Check {
        id: "L1.prompt-kept",
        says: "the system prompt changes only where a change was declared",
        mend: "build the prompt once per session, store it, and send the stored bytes",
    },
    Check {
        id: "L1.tools-kept",
        says: "the tool table stays as it is, in content and in order, while a session runs",
        mend: "sort tools by name and freeze the table for the session",
    },
    Check {
        id: "L1.review-extends",
        says: "a background review on the same model begins with its parent's last request, tools included",
        mend: "send the review the parent's prompt and tool table unchanged, and limit it where tools are dispatched",
    },
    Check {
        id: "L1.usage-adds-up",
        says: "read, written and uncached tokens add up to the bytes sent",
        mend: "this is a fault of the counter, not of the prompt",
    },
    Check {
        id: "L1.honest",
        says: "the recorded segments give the digest that each request claims",
        mend: "this is a fault of the recorder, not of the harness",
    },
];

/// Requests that must lie between two planned breaks of a session; a break every turn costs more than it saves.
const REQUESTS_BETWEEN_BREAKS: u64 = 3;

#[derive(Debug, Default)]
struct Session {
    /// Declared breaks that no request has used yet.
    declared: u64,
    /// Requests since the last planned break; `None` before the first.
    since_break: Option<u64>,
    /// The provider called a request too long, or the stored prompt is lost: what follows is not the harness's choice.
    forced: bool,
}

/// What this law remembers between events.
#[derive(Debug, Default)]
pub(super) struct State {
    sessions: BTreeMap<Name, Session>,
    sizes: BTreeMap<u64, u64>,
}

impl State {
    pub(super) fn take(&mut self, event: &Event, scene: &Scene<'_>, bench: &mut Bench) {
        match &event.what {
            What::Compaction(compaction) if compaction.committed => {
                self.sessions.entry(event.session.clone()).or_default().declared += 1;
            }
            // A rotation gives the conversation a new session; what was declared goes along. Where the process died
            // before it could say so, the next one opens the new session: that is how the rotation is told.
            What::SessionStarted(started) if ["compression", "resume"].contains(&&*started.why) => {
                if !self.sessions.contains_key(&event.session)
                    && let Some(mut state) = self.sessions.remove(&started.parent)
                {
                    if &*started.why == "resume" {
                        state.declared = state.declared.max(1);
                    }
                    self.sessions.insert(event.session.clone(), state);
                }
            }
            // The prompt that a compaction rebuilds is part of that one break.
            What::PromptReady(prompt)
                if prompt.declared && !["first", "stored", "compaction"].contains(&&*prompt.why) =>
            {
                let session = self.sessions.entry(event.session.clone()).or_default();
                session.declared += 1;
                session.forced |= &*prompt.why == "lost_row";
            }
            What::Response(response) => {
                let size = self.sizes.remove(&response.request);
                if &*response.refused == OVERFLOW {
                    self.sessions.entry(event.session.clone()).or_default().forced = true;
                }
                if !response.refused.is_empty() {
                    return;
                }
                let wrong = size.filter(|size| *size != response.usage.prompt());
                let wrong = wrong.map(|size| {
                    let sum = response.usage.prompt();
                    (
                        format!("request {}", response.request),
                        format!("the parts add up to {sum}, {size} were sent"),
                    )
                });
                bench.subject("L1.usage-adds-up", event, wrong);
            }
            What::Request(request) => {
                self.sizes.insert(request.id, request.size);
                let Some(seen) = scene.seen else { return };
                let wrong = (!seen.honest).then(|| {
                    (format!("request {}", request.id), "the digest differs from the segments".to_owned())
                });
                bench.subject("L1.honest", event, wrong);
                let added = scene.rebuild.conversation(&seen.key).map(|state| &state.segments);
                let new = added.and_then(|segments| segments.get(seen.common)).cloned();
                if request.lane == Lane::Review && seen.first {
                    // A compaction at the end of the turn is a planned break that the review is the first to send.
                    let planned =
                        self.sessions.get(&event.session).is_some_and(|session| session.declared > 0);
                    if request.base != 0 && !planned {
                        review(seen, event, new.as_ref(), bench);
                    }
                    return;
                }
                if seen.first {
                    return;
                }
                // A review between a compaction and the next turn does not use up what was declared for that turn.
                let mut own = Session::default();
                let session = match request.lane {
                    Lane::Review => &mut own,
                    _ => self.sessions.entry(event.session.clone()).or_default(),
                };
                extends(seen, event, request, new.as_ref(), session, bench);
            }
            _ => {}
        }
    }
}

fn extends(
    seen: &Rebuilt,
    event: &Event,
    request: &Request,
    new: Option<&Segment>,
    session: &mut Session,
    bench: &mut Bench,
) {
    let (size, announced) = (request.size, !request.planned.is_empty());
    for check in ["L1.prefix-extends", "L1.breaks-once", "L1.breaks-rare", "L1.prompt-kept", "L1.tools-kept"]
    {
        bench.examine(check);
    }
    let broken = seen.common < seen.before;
    if !broken {
        // What was declared and changed nothing is no break; it is spent all the same.
        (session.declared, session.forced) = (0, false);
        session.since_break = session.since_break.map(|count| count + 1);
        return;
    }
    let level = seen.old.as_ref().map_or(Level::Messages, |segment| segment.level);
    let place =
        format!("{} segment {}, byte {}", level.word(), seen.common, first_byte(seen.old.as_ref(), new));
    let evidence = change(seen.old.as_ref(), new);
    let report = |check| Finding { cost: size, ..finding(check, event, place.clone(), evidence.clone()) };
    if session.declared == 0 {
        bench.find(report("L1.prefix-extends"));
        if announced {
            let alone = "announced as a planned break, but nothing declared one".to_owned();
            bench.find(Finding { evidence: alone, ..report("L1.breaks-once") });
        }
        match level {
            Level::Tools => bench.find(report("L1.tools-kept")),
            Level::System => bench.find(report("L1.prompt-kept")),
            Level::Messages => {}
        }
        return;
    }
    session.declared = 0;
    if std::mem::take(&mut session.forced) {
        session.since_break = session.since_break.map(|count| count + 1);
        return;
    }
    if let Some(count) = session.since_break.filter(|count| *count < REQUESTS_BETWEEN_BREAKS) {
        let soon = format!("the planned break before was {} requests ago", count + 1);
        bench.find(Finding { evidence: soon, ..report("L1.breaks-rare") });
    }
    session.since_break = Some(0);
}

fn review(seen: &Rebuilt, event: &Event, new: Option<&Segment>, bench: &mut Bench) {
    let wrong = (seen.common < seen.before).then(|| {
        let level = seen.old.as_ref().map_or("messages", |segment| segment.level.word());
        let place = format!("{level} segment {}, byte {}", seen.common, first_byte(seen.old.as_ref(), new));
        (place, change(seen.old.as_ref(), new))
    });
    bench.subject("L1.review-extends", event, wrong);
}

/// Byte of the first difference inside the first differing segment.
fn first_byte(old: Option<&Segment>, new: Option<&Segment>) -> usize {
    match (old, new) {
        (Some(old), Some(new)) => old.text.bytes().zip(new.text.bytes()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    }
}

/// Before and after around the first difference.
fn change(old: Option<&Segment>, new: Option<&Segment>) -> String {
    let from = first_byte(old, new);
    let around = |segment: Option<&Segment>| match segment {
        None => "nothing".to_owned(),
        Some(segment) => {
            let mut start = from.min(segment.text.len()).saturating_sub(20);
            while !segment.text.is_char_boundary(start) {
                start -= 1;
            }
            format!("`{}`", excerpt(segment.text[start..].lines().next().unwrap_or_default()))
        }
    };
    format!("was {}, is {}", around(old), around(new))
}

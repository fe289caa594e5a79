//! L3, out-of-band and knowledge-only write-back.
//!
//! Learning happens after the answer was delivered, beside the user's turn, and can only write knowledge.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::threats::{Scanner, Scope};
use crate::ledger::{Event, Lane, Name, What};

use super::{Bench, Check, Scene, excerpt};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "L3.review-tools",
        says: "a review or a merging of skills dispatches only tools that read, and tools that write knowledge",
        mend: "check the review's tool list where tools are dispatched, by run and not by thread",
    },
    Check {
        id: "L3.review-no-effect",
        says: "a review or a merging of skills leaves no trace outside memory and skills",
        mend: "check the review's tool list where tools are dispatched, by run and not by thread",
    },
    Check {
        id: "L3.review-after-delivery",
        says: "a review begins after the answer was delivered, and never beside the turn that it reviews",
        mend: "start the review from the end of the turn; cancel it when a new turn begins",
    },
    Check {
        id: "L3.review-bounded",
        says: "a review stays within its iterations",
        mend: "give the fork a budget of its own",
    },
    Check {
        id: "L3.read-before-write",
        says: "a review or a merging of skills changes an existing skill only after reading it",
        mend: "refuse the write until the exact file was loaded in this review",
    },
    Check {
        id: "L3.write-stays-out-of-prompt",
        says: "what is learned in mid-session reaches that session's prompt only at a declared rebuild",
        mend: "render the prompt from a snapshot taken when the session began",
    },
    Check {
        id: "L3.skill-stays-out-of-prompt",
        says: "a skill made in mid-session reaches that session's catalogue only at a declared rebuild",
        mend: "freeze the catalogue with the prompt; announce changes on the user's message",
    },
    Check {
        id: "L3.memory-clean",
        says: "no text that tells the model to disobey or to leak enters memory",
        mend: "scan every text before it is written",
    },
];

/// True for agents that learn on their own: the review, and the merging of skills.
fn learns(lane: Lane) -> bool {
    matches!(lane, Lane::Review | Lane::Curator)
}

/// Tools that a review may run.
const KNOWLEDGE: [&str; 6] =
    ["skills_list", "skill_view", "skill_manage", "read_file", "search_files", "memory"];
/// Effects that are knowledge.
const KNOWLEDGE_EFFECTS: [&str; 3] = ["memory", "skill", "spilled"];
/// A shorter entry is found in any prompt by chance.
const ENTRY_CHARS_MIN: usize = 8;

#[derive(Debug, Default)]
struct Session {
    /// Memory texts written since the prompt was last ready.
    written: Vec<Name>,
    /// Skills made since then.
    made: BTreeSet<Name>,
    /// True between a prompt that was declared and the next write.
    turn: u64,
    delivered: u64,
}

/// What this law remembers between events.
#[derive(Debug, Default)]
pub(super) struct State {
    sessions: BTreeMap<Name, Session>,
}

impl State {
    pub(super) fn take(&mut self, event: &Event, scene: &Scene<'_>, bench: &mut Bench) {
        match &event.what {
            What::ToolRan(ran) if learns(ran.lane) => {
                let wrong = (!KNOWLEDGE.contains(&&*ran.tool)).then(|| {
                    (
                        ran.tool.to_string(),
                        format!("the {} ran {} {}", ran.lane.word(), ran.tool, excerpt(&ran.arguments)),
                    )
                });
                bench.subject("L3.review-tools", event, wrong);
            }
            What::ToolRefused(refused) if learns(refused.lane) => bench.examine("L3.review-tools"),
            What::Effect(effect) if learns(effect.lane) => {
                let wrong = (!KNOWLEDGE_EFFECTS.contains(&&*effect.kind)).then(|| {
                    (effect.kind.to_string(), format!("{}: `{}`", effect.kind, excerpt(&effect.detail)))
                });
                bench.subject("L3.review-no-effect", event, wrong);
            }
            What::Delivered(delivered) => {
                self.sessions.entry(event.session.clone()).or_default().delivered = delivered.turn;
            }
            // It was tried; what is learned afterwards is no longer beside the turn.
            What::DeliveryFailed(failed) => {
                self.sessions.entry(event.session.clone()).or_default().delivered = failed.turn;
            }
            What::ReviewStarted(started) => {
                let session = self.sessions.entry(event.session.clone()).or_default();
                let wrong = (started.beside_turn != 0 || session.delivered < session.turn).then(|| {
                    let evidence = format!("turn {} was not delivered when the review began", session.turn);
                    ("review".to_owned(), evidence)
                });
                bench.subject("L3.review-after-delivery", event, wrong);
            }
            What::ReviewEnded(ended) => {
                let wrong = (ended.iterations > ended.iterations_max).then(|| {
                    (
                        "review".to_owned(),
                        format!("{} of {} iterations", ended.iterations, ended.iterations_max),
                    )
                });
                bench.subject("L3.review-bounded", event, wrong);
                bench.examine("L3.review-no-effect");
            }
            What::SkillChanged(changed) => {
                let rewrites = ["patch", "edit", "write_file", "remove_file"].contains(&&*changed.action);
                if matches!(&*changed.origin, "review" | "curator")
                    && changed.ok
                    && rewrites
                    && changed.existed
                {
                    let wrong = (!changed.read_before).then(|| {
                        (changed.skill.to_string(), format!("{} without reading it", changed.action))
                    });
                    bench.subject("L3.read-before-write", event, wrong);
                }
                if changed.ok && &*changed.action == "create" {
                    for session in self.sessions.values_mut() {
                        session.made.insert(changed.skill.clone());
                    }
                }
            }
            What::MemoryWrite(write) => {
                let ids = scanned(&write.content);
                let wrong = (write.ok && !ids.is_empty()).then(|| {
                    (write.target.to_string(), format!("{}: `{}`", ids.join(", "), excerpt(&write.content)))
                });
                bench.subject("L3.memory-clean", event, wrong);
                let long = write.content.trim().chars().count() >= ENTRY_CHARS_MIN;
                if write.ok && long && &*write.action != "remove" {
                    for session in self.sessions.values_mut() {
                        session.written.push(write.content.clone());
                    }
                }
            }
            What::PromptReady(prompt) if prompt.declared => {
                let session = self.sessions.entry(event.session.clone()).or_default();
                session.written.clear();
                session.made.clear();
            }
            What::Request(request) => {
                let seen = scene.seen;
                if request.lane != Lane::Main {
                    return;
                }
                let session = self.sessions.entry(event.session.clone()).or_default();
                session.turn = request.turn;
                if session.written.is_empty() && session.made.is_empty() {
                    return;
                }
                let state = seen.as_ref().and_then(|seen| scene.rebuild.conversation(&seen.key));
                let system = state.map(crate::ledger::rebuild::Conversation::system).unwrap_or_default();
                prompt_is_frozen(session, &system, event, bench);
            }
            _ => {}
        }
    }
}

fn prompt_is_frozen(session: &mut Session, system: &str, event: &Event, bench: &mut Bench) {
    if !session.written.is_empty() {
        let seen = session.written.iter().position(|text| system.contains(text.trim()));
        let wrong = seen.map(|at| ("system prompt".to_owned(), excerpt(&session.written[at])));
        if let Some(at) = seen {
            // Reported once per fact.
            session.written.swap_remove(at);
        }
        bench.subject("L3.write-stays-out-of-prompt", event, wrong);
    }
    if !session.made.is_empty() {
        let line = |skill: &Name| {
            system.contains(&format!("- {skill}:")) || system.contains(&format!("- {skill}\n"))
        };
        let seen = session.made.iter().find(|skill| line(skill)).cloned();
        let wrong = seen.as_ref().map(|skill| ("catalogue".to_owned(), skill.to_string()));
        if let Some(skill) = seen {
            session.made.remove(&skill);
        }
        bench.subject("L3.skill-stays-out-of-prompt", event, wrong);
    }
}

/// Ids of what the scanner sees in a text that is to enter memory.
fn scanned(text: &str) -> Vec<&'static str> {
    let scanner = Scanner::new(&crate::policy::Threats::default());
    scanner.scan(text, Scope::Strict).into_iter().map(crate::agent::threats::Finding::id).collect()
}

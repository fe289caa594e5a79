//! Figures: named quantities read from a ledger.
//!
//! Breaks claim how figures move, scenarios state what they must be, reports show them. A figure is read from outside
//! evidence (requests sent, rows stored, tools dispatched), never from what a model says.

mod outcomes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::ledger::rebuild::Rebuild;
use crate::ledger::{Lane, Ledger, What};

/// A figure: its name, what it tells, and how it is read.
pub struct Figure {
    /// Name in breaks, scenarios and reports.
    pub name: &'static str,
    /// What it tells, with its unit.
    pub says: &'static str,
    read: fn(&Ledger) -> Value,
}

impl Figure {
    /// Reads the figure.
    pub fn of(&self, ledger: &Ledger) -> Value {
        (self.read)(ledger)
    }
}

/// Every figure, sorted by name.
pub const FIGURES: &[Figure] = &[
    Figure { name: "archived", says: "skills that the curator archived, sorted", read: archived },
    Figure { name: "answers", says: "answers that reached the user", read: answers },
    Figure {
        name: "cold_requests",
        says: "requests of the main lane that read nothing from the cache",
        read: cold,
    },
    Figure { name: "compactions", says: "committed compactions", read: compactions },
    Figure { name: "cron_runs", says: "scheduled runs that ran", read: cron_runs },
    Figure { name: "delegation_granted", says: "tools that the last child got", read: granted },
    Figure { name: "delegation_refused", says: "delegations that were refused", read: delegation_refused },
    Figure {
        name: "dropped_results",
        says: "recent tool results that the cleaning after a compaction dropped",
        read: dropped,
    },
    Figure {
        name: "effects",
        says: "what tools changed outside the conversation, as kind: detail",
        read: effects,
    },
    Figure {
        name: "false_trigger_rate",
        says: "share of turns of a session `load:none` that loaded a skill, in thousandths",
        read: outcomes::false_trigger_rate,
    },
    Figure {
        name: "hit_rate",
        says: "share of prompt tokens of the main lane read from the cache, in thousandths",
        read: hit_rate,
    },
    Figure { name: "jobs_by_runs", says: "jobs that scheduled runs created", read: outcomes::jobs_by_runs },
    Figure {
        name: "longest_result_chars",
        says: "longest tool result in the context of the main lane, in characters of the wire",
        read: outcomes::longest_result_chars,
    },
    Figure { name: "main_requests", says: "requests of the main lane", read: main_requests },
    Figure {
        name: "main_requests_by_session",
        says: "requests of the main lane, by session",
        read: by_session,
    },
    Figure {
        name: "memory_chars",
        says: "largest size of MEMORY.md at a recorded moment, in characters",
        read: memory_chars,
    },
    Figure { name: "memory_refused", says: "memory writes that were refused", read: memory_refused },
    Figure {
        name: "missed_trigger_rate",
        says: "share of turns of sessions `load:NAME` that did not load the skill NAME, in thousandths",
        read: outcomes::missed_trigger_rate,
    },
    Figure {
        name: "occurrences_repeated",
        says: "runs of an occurrence that had run before",
        read: outcomes::occurrences_repeated,
    },
    Figure {
        name: "orphan_results",
        says: "tool results without their call after a compaction",
        read: orphans,
    },
    Figure { name: "output_tokens", says: "tokens produced in the main lane", read: output_tokens },
    Figure {
        name: "prefix_breaks",
        says: "requests of the main lane that do not extend the one before, tools, system or messages, first ones included",
        read: prefix_breaks,
    },
    Figure { name: "prompt_tokens", says: "prompt tokens of the main lane", read: prompt_tokens },
    Figure {
        name: "repeated_actions",
        says: "tool calls that ran with the same arguments as an earlier one of the session and changed something",
        read: repeated,
    },
    Figure {
        name: "returned_chars",
        says: "characters that delegated work gave back to its parents",
        read: outcomes::returned_chars,
    },
    Figure {
        name: "review_effects",
        says: "what the first review changed outside memory and skills",
        read: review_effects,
    },
    Figure { name: "review_requests", says: "requests of the review lane", read: review_requests },
    Figure {
        name: "scheduled_skills_gone",
        says: "skills that scheduled jobs name and that the last curator pass left nowhere",
        read: scheduled_skills_gone,
    },
    Figure {
        name: "search_answers",
        says: "sessions that every search answered with, by query",
        read: outcomes::search_answers,
    },
    Figure {
        name: "search_sessions",
        says: "sessions that the last search answered with",
        read: search_sessions,
    },
    Figure {
        name: "searches_verbatim",
        says: "whether every text that a search showed stands in the store as it is",
        read: outcomes::searches_verbatim,
    },
    Figure { name: "skills_created", says: "skills created, sorted", read: skills_created },
    Figure {
        name: "skills_present",
        says: "skills present after the last curator pass",
        read: skills_present,
    },
    Figure {
        name: "skills_skipped",
        says: "skills that the last curator pass left alone because nobody signed them",
        read: skills_skipped,
    },
    Figure {
        name: "skills_merged",
        says: "skills whose content the last curator pass had put into another, as from → into",
        read: skills_merged,
    },
    Figure {
        name: "skills_stale",
        says: "skills that the last curator pass marked stale",
        read: skills_stale,
    },
    Figure {
        name: "skills_viewed",
        says: "skills whose body was loaded in the main lane",
        read: skills_viewed,
    },
    Figure {
        name: "slowest_tool_seconds",
        says: "longest wait for a tool, in seconds of the virtual clock",
        read: outcomes::slowest_tool_seconds,
    },
    Figure { name: "system_prompt_chars", says: "longest system prompt, in characters", read: system_chars },
    Figure {
        name: "system_prompt_changes",
        says: "requests of the main lane whose system prompt differs from the one before, first ones included, sessions s1 and s2",
        read: system_changes,
    },
    Figure {
        name: "tool_failures",
        says: "tool calls of the main lane that ran and failed",
        read: outcomes::tool_failures,
    },
    Figure {
        name: "tools_refused",
        says: "tool calls that were refused where tools are dispatched",
        read: refused,
    },
    Figure { name: "tools_ran", says: "tool calls that really ran", read: ran },
    Figure {
        name: "trigger_prompts",
        says: "turns of sessions `load:NAME`, by the skill that they should load",
        read: outcomes::trigger_prompts,
    },
    Figure { name: "turn_exits", says: "how turns ended", read: exits },
    Figure {
        name: "undelivered",
        says: "answers that did not reach their reader",
        read: outcomes::undelivered,
    },
    Figure { name: "unknown_outcomes", says: "steps whose outcome is unknown", read: unknown },
    Figure {
        name: "write_visible",
        says: "whether a memory write of session s1 shows in a later prompt of s1",
        read: write_visible,
    },
];

/// The figure of this name.
pub fn figure(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// Every figure of a ledger.
pub fn all(ledger: &Ledger) -> BTreeMap<&'static str, Value> {
    FIGURES.iter().map(|figure| (figure.name, figure.of(ledger))).collect()
}

fn count(ledger: &Ledger, wanted: impl Fn(&What) -> bool) -> Value {
    json!(ledger.events.iter().filter(|event| wanted(&event.what)).count())
}

fn sum(ledger: &Ledger, part: impl Fn(&What) -> u64) -> Value {
    json!(ledger.events.iter().map(|event| part(&event.what)).sum::<u64>())
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    json!(names.into_iter().collect::<BTreeSet<_>>())
}

fn archived(ledger: &Ledger) -> Value {
    sorted(ledger.events.iter().flat_map(|event| match &event.what {
        What::CuratorRan(ran) => ran.archived.iter().map(|name| &**name).collect::<Vec<_>>(),
        _ => Vec::new(),
    }))
}

fn answers(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::Delivered(_)))
}

/// Usage of every answered request of the main lane.
fn main_usage(ledger: &Ledger) -> Vec<crate::ledger::Usage> {
    let mut main = BTreeSet::new();
    let mut found = Vec::new();
    for event in &ledger.events {
        match &event.what {
            What::Request(request) if request.lane == Lane::Main => {
                main.insert(request.id);
            }
            What::Response(response) if main.contains(&response.request) => {
                found.push(response.usage.clone());
            }
            _ => {}
        }
    }
    found
}

fn cold(ledger: &Ledger) -> Value {
    json!(main_usage(ledger).iter().filter(|usage| usage.read == 0).count())
}

fn hit_rate(ledger: &Ledger) -> Value {
    let usage = main_usage(ledger);
    let prompt: u64 = usage.iter().map(crate::ledger::Usage::prompt).sum();
    let read: u64 = usage.iter().map(|usage| usage.read).sum();
    json!((read * 1_000).checked_div(prompt).unwrap_or(0))
}

fn prompt_tokens(ledger: &Ledger) -> Value {
    json!(main_usage(ledger).iter().map(crate::ledger::Usage::prompt).sum::<u64>())
}

fn output_tokens(ledger: &Ledger) -> Value {
    json!(main_usage(ledger).iter().map(|usage| usage.output).sum::<u64>())
}

fn compactions(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::Compaction(compaction) if compaction.committed))
}

fn cron_runs(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::CronFired(run) if &*run.outcome == "ran"))
}

fn granted(ledger: &Ledger) -> Value {
    let last = ledger.events.iter().rev().find_map(|event| match &event.what {
        What::Delegation(asked) if asked.accepted => Some(asked),
        _ => None,
    });
    sorted(last.map(|asked| asked.granted.iter().map(|tool| &**tool).collect::<Vec<_>>()).unwrap_or_default())
}

fn delegation_refused(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::Delegation(asked) if !asked.accepted))
}

fn dropped(ledger: &Ledger) -> Value {
    sum(ledger, |what| match what {
        What::Compaction(compaction) if compaction.committed => compaction.dropped_results,
        _ => 0,
    })
}

fn orphans(ledger: &Ledger) -> Value {
    sum(ledger, |what| match what {
        What::Compaction(compaction) if compaction.committed => compaction.orphans,
        _ => 0,
    })
}

fn effects(ledger: &Ledger) -> Value {
    json!(
        ledger
            .events
            .iter()
            .filter_map(|event| match &event.what {
                What::Effect(effect) => Some(format!("{}: {}", effect.kind, effect.detail)),
                _ => None,
            })
            .collect::<Vec<_>>()
    )
}

fn main_requests(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::Request(request) if request.lane == Lane::Main))
}

fn review_requests(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::Request(request) if request.lane == Lane::Review))
}

fn by_session(ledger: &Ledger) -> Value {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &ledger.events {
        if matches!(&event.what, What::Request(request) if request.lane == Lane::Main) {
            *counts.entry(&event.session).or_insert(0) += 1;
        }
    }
    json!(counts)
}

fn memory_chars(ledger: &Ledger) -> Value {
    let sizes = ledger.events.iter().filter_map(|event| match &event.what {
        What::MemoryState(state) if &*state.target == "memory" => Some(state.chars),
        _ => None,
    });
    json!(sizes.max().unwrap_or(0))
}

fn memory_refused(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::MemoryWrite(write) if write.is_refused()))
}

fn prefix_breaks(ledger: &Ledger) -> Value {
    let mut rebuild = Rebuild::default();
    let mut breaks = 0u64;
    for event in &ledger.events {
        if let (What::Request(request), Some(seen)) = (&event.what, rebuild.apply(event)) {
            breaks += u64::from(request.lane == Lane::Main && (seen.first || seen.common < seen.before));
        }
    }
    json!(breaks)
}

fn repeated(ledger: &Ledger) -> Value {
    let mut seen = BTreeSet::new();
    let changing = ["terminal", "write_file", "patch", "send_message"];
    let again = ledger.events.iter().filter(|event| match &event.what {
        What::ToolRan(ran) if changing.contains(&&*ran.tool) => {
            !seen.insert((event.session.clone(), ran.tool.clone(), ran.arguments.clone()))
        }
        _ => false,
    });
    json!(again.count())
}

fn review_effects(ledger: &Ledger) -> Value {
    let mut found = Vec::new();
    let mut inside = false;
    for event in &ledger.events {
        match &event.what {
            What::ReviewStarted(_) => inside = true,
            What::ReviewEnded(_) => break,
            What::Effect(effect)
                if inside
                    && effect.lane == Lane::Review
                    && !["memory", "skill", "spilled"].contains(&&*effect.kind) =>
            {
                found.push(effect.detail.to_string());
            }
            _ => {}
        }
    }
    json!(found)
}

fn search_sessions(ledger: &Ledger) -> Value {
    let last = ledger.events.iter().rev().find_map(|event| match &event.what {
        What::Searched(search) => Some(search),
        _ => None,
    });
    json!(
        last.map(|search| search.hits.iter().map(|(session, _, _)| session.to_string()).collect::<Vec<_>>())
    )
}

fn skills_created(ledger: &Ledger) -> Value {
    sorted(ledger.events.iter().filter_map(|event| match &event.what {
        What::SkillChanged(changed) if changed.ok && &*changed.action == "create" => Some(&*changed.skill),
        _ => None,
    }))
}

fn last_curator(ledger: &Ledger) -> Option<&crate::ledger::CuratorRan> {
    ledger.events.iter().rev().find_map(|event| match &event.what {
        What::CuratorRan(ran) => Some(ran),
        _ => None,
    })
}

fn scheduled_skills_gone(ledger: &Ledger) -> Value {
    let gone = |ran: &crate::ledger::CuratorRan| {
        ran.scheduled.iter().filter(|skill| !ran.present.contains(skill)).count()
    };
    json!(last_curator(ledger).map_or(0, gone))
}

fn skills_merged(ledger: &Ledger) -> Value {
    sorted(last_curator(ledger).map_or(&[][..], |ran| &ran.merged).iter().map(|name| &**name))
}

fn skills_present(ledger: &Ledger) -> Value {
    sorted(last_curator(ledger).map_or(&[][..], |ran| &ran.present).iter().map(|name| &**name))
}

fn skills_skipped(ledger: &Ledger) -> Value {
    sorted(last_curator(ledger).map_or(&[][..], |ran| &ran.skipped).iter().map(|name| &**name))
}

fn skills_stale(ledger: &Ledger) -> Value {
    sorted(last_curator(ledger).map_or(&[][..], |ran| &ran.stale).iter().map(|name| &**name))
}

fn skills_viewed(ledger: &Ledger) -> Value {
    sorted(ledger.events.iter().filter_map(|event| match &event.what {
        What::SkillViewed(viewed) if viewed.lane == Lane::Main => Some(&*viewed.skill),
        _ => None,
    }))
}

fn system_chars(ledger: &Ledger) -> Value {
    let sizes = ledger.events.iter().filter_map(|event| match &event.what {
        What::PromptReady(prompt) => Some(prompt.chars),
        _ => None,
    });
    json!(sizes.max().unwrap_or(0))
}

fn system_changes(ledger: &Ledger) -> Value {
    let mut rebuild = Rebuild::default();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut changes = 0u64;
    for event in &ledger.events {
        let (What::Request(request), Some(seen)) = (&event.what, rebuild.apply(event)) else { continue };
        if request.lane != Lane::Main || !["s1", "s2"].contains(&&*event.session) {
            continue;
        }
        let system = rebuild
            .conversation(&seen.key)
            .map(crate::ledger::rebuild::Conversation::system)
            .unwrap_or_default();
        let before = last.insert(event.session.to_string(), system.clone());
        changes += u64::from(before.is_none_or(|before| before != system));
    }
    json!(changes)
}

fn write_visible(ledger: &Ledger) -> Value {
    let mut rebuild = Rebuild::default();
    let mut inside = false;
    let mut written: Vec<String> = Vec::new();
    let mut visible = false;
    for event in &ledger.events {
        match &event.what {
            What::SessionStarted(_) if &*event.session == "s1" => inside = true,
            What::SessionEnded(_) if &*event.session == "s1" => inside = false,
            What::MemoryWrite(write) if inside && write.ok => written.push(write.content.to_string()),
            What::Request(request) => {
                let seen = rebuild.apply(event);
                if request.lane == Lane::Main && &*event.session == "s1" {
                    let state = seen.and_then(|seen| rebuild.conversation(&seen.key));
                    let system = state.map(crate::ledger::rebuild::Conversation::system).unwrap_or_default();
                    visible |= written.iter().any(|text| system.contains(text.as_str()));
                }
            }
            _ => {}
        }
    }
    json!(visible)
}

fn refused(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::ToolRefused(_)))
}

fn ran(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::ToolRan(_)))
}

fn unknown(ledger: &Ledger) -> Value {
    count(ledger, |what| matches!(what, What::ToolRan(ran) if ran.outcome_unknown))
}

fn exits(ledger: &Ledger) -> Value {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &ledger.events {
        if let What::TurnEnded(ended) = &event.what {
            *counts.entry(&ended.exit).or_insert(0) += 1;
        }
    }
    json!(counts)
}

//! A ledger as a timeline that a person can read.

use crate::laws::Verdict;
use crate::ledger::{Event, Ledger, What};
use crate::world::clock;

/// Which events are shown.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// Only this session.
    pub session: Option<&'a str>,
    /// Only these kinds; all when empty.
    pub kinds: &'a [String],
    /// Only events with findings of checks that begin so.
    pub law: Option<&'a str>,
}

/// Longest text shown of anything, in characters.
const CHARS_MAX: usize = 90;

/// One line per event: number, time since the start, session, what happened; findings below their event.
pub fn text(ledger: &Ledger, verdict: &Verdict, filter: &Filter<'_>) -> String {
    let start = ledger.events.first().map_or(0, |event| event.at);
    let mut text = format!(
        "{} · seed {} · {} events · lab {}\n\n",
        if ledger.header.scenario.is_empty() { &ledger.header.source } else { &ledger.header.scenario },
        ledger.header.seed,
        ledger.events.len(),
        ledger.header.lab
    );
    for event in &ledger.events {
        let findings: Vec<_> = verdict
            .findings()
            .filter(|finding| finding.event == event.n)
            .filter(|finding| filter.law.is_none_or(|law| finding.check.starts_with(law)))
            .collect();
        let by_law = filter.law.is_none() || !findings.is_empty();
        let by_kind = filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind == event.what.kind());
        if !by_law || !by_kind || filter.session.is_some_and(|session| session != &*event.session) {
            continue;
        }
        text.push_str(&format!(
            "{:>5}  {:>13}  {:<8}  {}\n",
            event.n,
            since(event.at - start),
            event.session,
            describe(event)
        ));
        for finding in findings {
            text.push_str(&format!("       ⚑ {}: {} — {}\n", finding.check, finding.place, finding.evidence));
        }
    }
    text
}

fn since(span: i64) -> String {
    let (days, rest) = (span.div_euclid(clock::DAY), span.rem_euclid(clock::DAY));
    let (hours, rest) = (rest / clock::HOUR, rest % clock::HOUR);
    let (minutes, rest) = (rest / clock::MINUTE, rest % clock::MINUTE);
    format!("{days}d {hours:02}:{minutes:02}:{:02}", rest / clock::SECOND)
}

fn short(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    if line.chars().count() <= CHARS_MAX {
        line
    } else {
        line.chars().take(CHARS_MAX - 1).chain(['…']).collect()
    }
}

fn list(names: &[crate::ledger::Name]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[expect(clippy::too_many_lines, reason = "one line for each kind of event")]
fn describe(event: &Event) -> String {
    match &event.what {
        What::SessionStarted(e) if e.parent.is_empty() => format!("session starts ({})", e.why),
        What::SessionStarted(e) => format!("session starts ({}), child of {}", e.why, e.parent),
        What::SessionEnded(e) => format!("session ends: {}", e.reason),
        What::PromptReady(e) => format!(
            "system prompt ready ({}): {} characters, memory {}, catalogue {}",
            e.why, e.chars, e.memory_chars, e.catalogue_chars
        ),
        What::Request(e) => {
            let planned =
                if e.planned.is_empty() { String::new() } else { format!(", planned break: {}", e.planned) };
            format!(
                "request {} ({}, turn {}.{}): keeps {}, adds {}, size {}{planned}",
                e.id,
                e.lane.word(),
                e.turn,
                e.iteration,
                e.kept,
                e.added.len(),
                e.size
            )
        }
        What::Response(e) if !e.refused.is_empty() => format!("request {} refused: {}", e.request, e.refused),
        What::Response(e) => {
            let calls: Vec<&str> = e.calls.iter().map(|(_, name)| &**name).collect();
            let said = if calls.is_empty() { short(&e.text) } else { format!("calls {}", calls.join(", ")) };
            let usage = &e.usage;
            format!(
                "response {}: read {}, written {}, uncached {} · {said}",
                e.request,
                usage.read,
                usage.write_5m + usage.write_1h,
                usage.uncached
            )
        }
        What::ToolRan(e) => format!("{} runs {} {}", e.lane.word(), e.tool, short(&e.arguments)),
        What::ToolRefused(e) => {
            format!("{} is refused {} by {}: {}", e.lane.word(), e.tool, e.by, short(&e.reason))
        }
        What::Effect(e) => format!("effect of {}: {} {}", e.lane.word(), e.kind, short(&e.detail)),
        What::DeliveryFailed(e) => {
            format!(
                "answer of turn {} not delivered to {} after {} tries: {}",
                e.turn, e.to, e.attempts, e.reason
            )
        }
        What::Delivered(e) => format!("answer of turn {} delivered, {} characters", e.turn, e.chars),
        What::TurnEnded(e) => format!("turn {} ends: {} after {} iterations", e.turn, e.exit, e.iterations),
        What::Stored(e) => format!("row {} stored: {}", e.row, e.role),
        What::NudgeDue(e) => format!("nudge is due: {}", e.kind),
        What::ReviewStarted(e) => format!("review starts, may dispatch {}", list(&e.allowed)),
        What::ReviewEnded(e) => {
            format!("review ends after {} of {} iterations: {}", e.iterations, e.iterations_max, e.learned)
        }
        What::MemoryWrite(e) if e.ok => {
            format!("memory ({}) {} to {}: {}", e.origin, e.action, e.target, short(&e.content))
        }
        What::MemoryWrite(e) if e.is_refused() => {
            format!("memory ({}) {} to {} refused: {}", e.origin, e.action, e.target, e.refusal)
        }
        What::MemoryWrite(e) => format!("memory ({}) {} to {}: there already", e.origin, e.action, e.target),
        What::MemoryState(e) => format!(
            "{} holds {} entries, {} of {} characters",
            e.target,
            e.entries.len(),
            e.chars,
            e.chars_max
        ),
        What::SkillChanged(e) if e.ok => format!("skill {} ({}): {}", e.skill, e.origin, e.action),
        What::SkillChanged(e) => {
            format!("skill {} ({}): {} refused: {}", e.skill, e.origin, e.action, e.refusal)
        }
        What::SkillViewed(e) => format!("{} loads skill {}", e.lane.word(), e.skill),
        What::Catalogue(e) => format!("catalogue of {} skills, {} characters", e.lines, e.chars),
        What::CuratorRan(e) => {
            let rarely = [
                ("active again", &e.reactivated),
                ("not archived, the disk refused", &e.refused),
                ("merged", &e.merged),
                ("given up", &e.given_up),
            ];
            let always = [("stale", &e.stale), ("archived", &e.archived), ("skipped", &e.skipped)];
            let told = always.into_iter().chain(rarely.into_iter().filter(|(_, names)| !names.is_empty()));
            let told: Vec<String> = told.map(|(what, names)| format!("{what} {}", list(names))).collect();
            format!("curator: {}", told.join("; "))
        }
        What::Compaction(e) if e.committed => format!(
            "compaction ({}): rows {} → {}, size {} → {}, dropped {} results",
            e.mode, e.rows_before, e.rows_after, e.size_before, e.size_after, e.dropped_results
        ),
        What::Compaction(e) => format!("no compaction: {}", e.why_not),
        What::StoreState(e) => format!(
            "store holds {} live, {} archived, {} hidden rows",
            e.live.len(),
            e.kept.len(),
            e.hidden.len()
        ),
        What::Resumed(e) => format!(
            "resumed with {} rows, prompt {}",
            e.rows.len(),
            if e.prompt_kept { "kept" } else { "rebuilt" }
        ),
        What::Searched(e) => {
            let hits: Vec<&str> = e.hits.iter().map(|(session, _, _)| &**session).collect();
            format!("search \"{}\", limit {}: {}", e.query, e.limit, hits.join(", "))
        }
        What::Delegation(e) if e.accepted => {
            format!("child spawned at depth {} with {}", e.depth + 1, list(&e.granted))
        }
        What::Delegation(e) => format!("delegation at depth {} refused: {}", e.depth, e.refusal),
        What::CronFired(e) => format!("job {} {}", e.job, e.outcome),
        What::CronJob(e) => format!(
            "{} asks to {} job {}: {}",
            e.lane.word(),
            e.action,
            e.job,
            if e.ok { "done" } else { &e.refusal }
        ),
        What::GuardDecision(e) => format!(
            "guard: {} {} {}",
            if e.approved { "allows" } else { "refuses" },
            short(&e.command),
            e.rule
        ),
        What::ThreatFound(e) => format!("scanner ({}): {}", e.place, list(&e.ids)),
        What::TimePassed(e) => format!("time passes: {}", since(e.by_ms)),
        What::Fault(e) => format!("fault: {} {}", e.kind, e.detail),
    }
}

//! Facts about a list of requests.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::audit::case::{CaseFault, Facts, lines};
use crate::audit::compare::history::answer_id;
use crate::audit::compare::system::memory_writes;
use crate::audit::compare::{Difference, Finding, compare};
use crate::audit::history;
use crate::audit::judge::changed_params;
use crate::audit::predict::{Entries, Illegal, Missed, Rules, Walk};
use crate::audit::prompt::{Kind, Parser, Prompt, Shape};
use crate::audit::read::time_of;
use crate::audit::text_kind;
use crate::audit::words::{Cause, Place};
use crate::wire::Level;
use crate::world::Millis;

/// One request, and what holds between it and the one before.
struct Step {
    prompt: Rc<Prompt>,
    at: Option<Millis>,
    conversation: String,
    event: String,
    role: String,
    route: String,
    walk: Walk,
    illegal: Option<Illegal>,
    before: Option<usize>,
    difference: Difference,
    params: Vec<&'static str>,
}

impl Step {
    fn planned(&self) -> bool {
        self.event == "after_compaction"
    }
}

/// Everything that the requests show.
pub(super) fn facts(bytes: &[u8], rules: &Rules) -> Result<Facts, CaseFault> {
    let steps = steps(bytes, rules)?;
    let mut facts = Facts::new();
    let broken = places(&steps, |step| step.before.is_some() && !step.difference.extends());
    let planned: Vec<usize> = broken.iter().copied().filter(|at| steps[*at].planned()).collect();
    let unplanned: Vec<usize> = broken.iter().copied().filter(|at| !steps[*at].planned()).collect();
    let text_broken = places(&steps, |step| {
        step.before.is_some_and(|before| step.difference.shared < steps[before].prompt.segs.len())
    });
    facts.insert("n_requests".into(), steps.len().into());
    facts.insert("broken".into(), json!(broken));
    facts.insert("cached_prefix_broken".into(), json!(broken));
    facts.insert("text_broken".into(), json!(text_broken));
    facts.insert("planned".into(), json!(planned));
    facts.insert("unplanned".into(), json!(unplanned));
    facts.insert("hit_segments".into(), json!(steps.iter().map(|step| step.walk.hit).collect::<Vec<_>>()));
    facts.insert(
        "total_segments".into(),
        json!(steps.iter().map(|step| step.prompt.segs.len()).collect::<Vec<_>>()),
    );
    times(&steps, &mut facts);
    markers(&steps, &mut facts);
    compactions(&steps, &broken, &mut facts);
    memory(&steps, &mut facts);
    histories(&steps, &mut facts);
    canonical(bytes, &steps, &mut facts)?;
    let decisive = decide(&steps, &unplanned, &planned);
    details(&steps, &broken, &decisive, &mut facts);
    Ok(facts)
}

fn places(steps: &[Step], mut which: impl FnMut(&Step) -> bool) -> Vec<usize> {
    (0..steps.len()).filter(|at| which(&steps[*at])).collect()
}

fn steps(bytes: &[u8], rules: &Rules) -> Result<Vec<Step>, CaseFault> {
    let mut parser = Parser::new(false);
    let mut entries = Entries::new(rules.clone());
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in lines("requests.jsonl", bytes)?.iter().enumerate() {
        let fault =
            |reason: String| CaseFault::Input { file: "requests.jsonl".into(), line: index + 1, reason };
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let provider = word("provider");
        let body = serde_json::to_vec(line.get("request").unwrap_or(line))
            .map_err(|error| fault(error.to_string()))?;
        let prompt = parser
            .parse(&body, Shape::of_name(&provider))
            .map_err(|error| fault(error.to_string()))?
            .ok_or_else(|| fault("no request of a known shape".into()))?;
        let prompt = Rc::new(prompt);
        let conversation = line.get("conversation").and_then(Value::as_str).unwrap_or("main").to_owned();
        let at = time_of(&word("at"));
        let illegal = (prompt.shape == Shape::Anthropic).then(|| entries.illegal(&prompt)).flatten();
        // A refused request leaves no trace.
        let walk = match illegal {
            Some(_) => Walk::default(),
            None => entries.observe(&prompt, at, time_of(&word("done_at"))),
        };
        let before = newest.get(&conversation).copied();
        let difference =
            before.map_or_else(Difference::default, |before| compare(&steps[before].prompt, &prompt));
        let params = before.map_or_else(Vec::new, |before| changed_params(&steps[before].prompt, &prompt));
        let role = word("role");
        let route =
            ["route", "base_url", "endpoint", "deployment", "region"].iter().map(|name| word(name)).collect();
        // A call beside the conversation is not what the next request goes on from.
        if !aside(&role) {
            newest.insert(conversation.clone(), index);
        }
        steps.push(Step {
            prompt,
            at,
            conversation,
            event: word("event"),
            role,
            route,
            walk,
            illegal,
            before,
            difference,
            params,
        });
    }
    Ok(steps)
}

fn aside(role: &str) -> bool {
    ["summar", "compact", "title", "review", "side"].iter().any(|word| role.contains(word))
}

fn times(steps: &[Step], facts: &mut Facts) {
    let mut newest: BTreeMap<&str, Option<Millis>> = BTreeMap::new();
    let gaps: Vec<Option<Millis>> = steps
        .iter()
        .map(|step| {
            let before = newest.insert(&step.conversation, step.at).flatten();
            Some((step.at? - before?) / 1000)
        })
        .collect();
    let expired = places(steps, |step| {
        step.before.is_some()
            && matches!(step.walk.missed, Some((_, Missed::Expired(_))))
            && step.difference.extends()
    });
    let not_ready = places(steps, |step| matches!(step.walk.missed, Some((_, Missed::NotReady))));
    facts.insert("gap_seconds".into(), json!(gaps));
    facts.insert("ttl_expired".into(), json!(expired));
    facts.insert("not_ready".into(), json!(not_ready));
    let lookback = places(steps, |step| lookback(step).is_some());
    facts.insert("missed_at".into(), json!(lookback));
    facts.insert("lookback".into(), json!(20));
    if let Some((step, (place, needed))) =
        lookback.first().and_then(|at| Some((&steps[*at], lookback_of(&steps[*at])?)))
    {
        facts.insert("entry_segment_missed".into(), json!(place));
        facts.insert("positions_needed".into(), json!(needed));
        facts.insert("hit_with_extra_marker_within_window".into(), json!(step.prompt.marks.len() < 4));
    }
}

fn lookback(step: &Step) -> Option<usize> {
    step.before?;
    lookback_of(step).filter(|_| step.difference.extends()).map(|(_, needed)| needed)
}

fn lookback_of(step: &Step) -> Option<(usize, usize)> {
    match step.walk.missed {
        Some((place, Missed::Lookback(needed))) => Some((place, needed)),
        _ => None,
    }
}

fn markers(steps: &[Step], facts: &mut Facts) {
    let counts: Vec<Value> = steps
        .iter()
        .map(|step| {
            let [tools, system, messages] = step.prompt.mark_counts();
            json!({"tools": tools, "system": system, "messages": messages})
        })
        .collect();
    facts.insert("marker_counts".into(), json!(counts));
    facts.insert("limit".into(), json!(4));
    facts.insert("rejected".into(), json!(places(steps, |step| step.illegal.is_some())));
    let pointers: Vec<Vec<String>> = steps
        .iter()
        .map(|step| step.prompt.marks.iter().map(|(at, _)| step.prompt.pointer(*at)).collect())
        .collect();
    facts.insert("marker_pointers".into(), json!(pointers));
    let params = places(steps, |step| !step.params.is_empty());
    let mut names: Vec<&str> = steps.iter().flat_map(|step| step.params.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    facts.insert("params_changed".into(), json!(params));
    facts.insert("changed_params".into(), json!(names));
    let models = places(steps, |step| {
        step.before.is_some_and(|before| steps[before].prompt.model != step.prompt.model)
    });
    facts.insert("model_changed".into(), json!(models));
    let routes = places(steps, |step| route_changed(steps, step));
    facts.insert("route_changed".into(), json!(routes));
}

fn route_changed(steps: &[Step], step: &Step) -> bool {
    step.before.is_some_and(|before| {
        let before = &steps[before];
        before.route != step.route || before.prompt.route_key != step.prompt.route_key
    })
}

fn compactions(steps: &[Step], broken: &[usize], facts: &mut Facts) {
    let starts = places(steps, Step::planned);
    let counts: Facts = starts
        .iter()
        .enumerate()
        .map(|(place, start)| {
            let end = starts.get(place + 1).copied().unwrap_or(steps.len());
            let count = broken.iter().filter(|at| (*start..end).contains(at)).count();
            (start.to_string(), count.into())
        })
        .collect();
    facts.insert("breaks_per_compaction".into(), Value::Object(counts));
    let lost: Vec<String> = starts.iter().flat_map(|at| lost_instructions(steps, *at)).collect();
    facts.insert("lost_instructions".into(), json!(lost));
}

/// The first fact that a memory call wrote, and when the system prompt shows it.
fn memory(steps: &[Step], facts: &mut Facts) {
    let written = steps.iter().find_map(|step| memory_writes(&step.prompt).into_iter().next());
    let Some((id, text)) = written else { return };
    let shown = steps.iter().position(|step| {
        (0..step.prompt.segs.len())
            .any(|at| step.prompt.segs[at].level == Level::System && step.prompt.text(at).contains(&text))
    });
    facts.insert("fact_written_by".into(), id.into());
    facts.insert("fact_first_in_system_at".into(), json!(shown));
}

fn histories(steps: &[Step], facts: &mut Facts) {
    let (mut results, mut uses) = (Vec::new(), Vec::new());
    for step in steps {
        for fault in history::faults(&step.prompt, 0) {
            let id = history::told(&step.prompt, &fault).id;
            let list = match fault.kind {
                "orphan_result" => &mut results,
                "orphan_use" => &mut uses,
                _ => continue,
            };
            if !list.contains(&id) {
                list.push(id);
            }
        }
    }
    facts.insert("orphan_results".into(), json!(results));
    facts.insert("orphan_uses".into(), json!(uses));
}

/// The same comparison with keys sorted and a string equal to one text block.
fn canonical(bytes: &[u8], steps: &[Step], facts: &mut Facts) -> Result<(), CaseFault> {
    let mut parser = Parser::new(true);
    let mut prompts: Vec<Option<Prompt>> = Vec::new();
    for line in lines("requests.jsonl", bytes)? {
        let provider = line.get("provider").and_then(Value::as_str).unwrap_or_default();
        let body = sorted(line.get("request").unwrap_or(&line)).to_string();
        prompts.push(parser.parse(body.as_bytes(), Shape::of_name(provider)).ok().flatten());
    }
    let broken = |at: &usize| {
        let step = &steps[*at];
        let pair = step.before.and_then(|before| prompts[before].as_ref()).zip(prompts[*at].as_ref());
        pair.is_some_and(|(before, after)| before.shared(after) < before.cacheable())
    };
    let found: Vec<usize> = (0..steps.len()).filter(broken).collect();
    facts.insert("semantically_equal".into(), json!(found.is_empty()));
    facts.insert("canonical_broken".into(), json!(found));
    Ok(())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&object[key]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// The cause that the whole folder stands for.
struct Decisive {
    cause: Cause,
    level: Option<Place>,
    first: Option<usize>,
    verdict: &'static str,
}

fn decide(steps: &[Step], unplanned: &[usize], planned: &[usize]) -> Decisive {
    let at =
        |cause, level, first, verdict| Decisive { cause, level: Some(level), first: Some(first), verdict };
    if let Some(first) = steps.iter().position(|step| step.illegal.is_some()) {
        let cause = match steps[first].illegal {
            Some(Illegal::Target(_)) => Cause::BreakpointIllegalTarget,
            Some(Illegal::Order(_)) => Cause::TtlOrderIllegal,
            _ => Cause::BreakpointOverflow,
        };
        return at(cause, Place::Request, first, "rejected");
    }
    if let Some(first) = steps.iter().position(|step| is_summariser(&step.role) && !step.difference.extends())
    {
        let level = steps[first].difference.findings.first().map_or(Place::All, |finding| finding.level);
        return at(Cause::UnalignedSummarizer, level, first, "violation");
    }
    if let Some(first) =
        steps.iter().position(|step| step.before.is_some_and(|b| steps[b].prompt.model != step.prompt.model))
    {
        return at(Cause::ModelChanged, Place::All, first, "violation");
    }
    if let Some(&first) = unplanned.first() {
        let finding = &steps[first].difference.findings[0];
        return at(finding.cause, finding.level, first, "violation");
    }
    if let Some(first) = steps.iter().position(|step| route_changed(steps, step)) {
        return at(Cause::RouteChanged, Place::All, first, "violation");
    }
    if let Some(first) = steps.iter().position(|step| !step.params.is_empty()) {
        return at(Cause::ParamsChanged, Place::Messages, first, "violation");
    }
    lost(steps, planned)
}

/// No segment differs where it may not: the loss lies in markers, time or readiness.
fn lost(steps: &[Step], planned: &[usize]) -> Decisive {
    let at =
        |cause, level, first, verdict| Decisive { cause, level: Some(level), first: Some(first), verdict };
    let missed = |which: fn(Missed) -> bool| {
        steps.iter().position(|step| step.walk.missed.is_some_and(|(_, missed)| which(missed)))
    };
    if let Some(first) = steps.iter().position(|step| lookback(step).is_some()) {
        return at(Cause::LookbackExceeded, Place::All, first, "violation");
    }
    if let Some(first) = missed(|missed| missed == Missed::NotReady) {
        return at(Cause::EntryNotReady, Place::All, first, "violation");
    }
    if let Some(first) = static_since(steps) {
        return at(Cause::BreakpointStatic, Place::Messages, first, "violation");
    }
    if let Some(first) = missed(|missed| matches!(missed, Missed::Expired(_))) {
        return at(Cause::TtlExpired, Place::All, first, "ok");
    }
    if let Some((first, cause)) = planned.iter().find_map(|at| Some((*at, compaction_fault(steps, *at)?))) {
        return at(cause, Place::Messages, first, "violation");
    }
    if let Some(&first) = planned.first() {
        let level = steps[first].difference.findings.first().map_or(Place::All, |finding| finding.level);
        return at(Cause::PlannedCompaction, level, first, "ok");
    }
    Decisive { cause: Cause::None, level: None, first: None, verdict: "ok" }
}

/// What a compaction did wrong.
fn compaction_fault(steps: &[Step], at: usize) -> Option<Cause> {
    let step = &steps[at];
    let dropped = Cause::SummaryFailureDropsHistory;
    if step.difference.findings.iter().any(|finding| finding.cause == dropped) {
        return Some(dropped);
    }
    (!lost_instructions(steps, at).is_empty()).then_some(Cause::InstructionLost)
}

/// Standing instructions of the user that a compaction lost.
fn lost_instructions(steps: &[Step], at: usize) -> Vec<String> {
    let step = &steps[at];
    let Some(before) = step.before.map(|before| &steps[before].prompt) else { return Vec::new() };
    let text: Vec<String> = (0..step.prompt.segs.len()).map(|at| step.prompt.text(at)).collect();
    let text = text.join("\n");
    history::standing_instructions(before).into_iter().filter(|one| !history::survives(one, &text)).collect()
}

fn is_summariser(role: &str) -> bool {
    role.contains("summar") || role.contains("compact")
}

/// The request from which on the last marker no longer moves although the conversation grows by whole messages.
fn static_since(steps: &[Step]) -> Option<usize> {
    let stays = |step: &Step| {
        let before = &steps[step.before?];
        let (old, new) = (before.prompt.marks.last()?, step.prompt.marks.last()?);
        let (turns, earlier) = (step.prompt.turns.len(), before.prompt.turns.len());
        Some(old.0 == new.0 && turns > earlier && step.walk.hit > 0)
    };
    let stayed: Vec<usize> = (0..steps.len()).filter(|at| stays(&steps[*at]) == Some(true)).collect();
    // Once may be a pause; from the second time on nothing new is ever cached.
    (stayed.len() >= 2).then(|| stayed[0])
}

fn details(steps: &[Step], broken: &[usize], decisive: &Decisive, facts: &mut Facts) {
    facts.insert("cause".into(), json!(decisive.cause));
    facts.insert("level".into(), json!(decisive.level.map(Place::word)));
    facts.insert("verdict".into(), decisive.verdict.into());
    facts.insert("first_broken_request".into(), json!(decisive.first));
    let latent: Vec<Cause> = decisive
        .first
        .map(|first| steps[first].difference.findings.iter().skip(1).map(|finding| finding.cause).collect())
        .unwrap_or_default();
    facts.insert("latent".into(), json!(latent));
    let mut pointers: Vec<String> = Vec::new();
    for at in broken {
        let pointer = pointer(&steps[*at]);
        if !pointers.contains(&pointer) {
            pointers.push(pointer);
        }
    }
    facts.insert("pointers".into(), json!(pointers));
    let Some(first) = decisive.first else {
        facts.insert("pointer".into(), Value::Null);
        return;
    };
    let step = &steps[first];
    facts.insert(
        "pointer".into(),
        match step.illegal {
            Some(Illegal::Target(at) | Illegal::Order(at)) => step.prompt.pointer(at).into(),
            Some(Illegal::Overflow(_)) => step.prompt.pointer(step.prompt.marks[4].0).into(),
            None if step.difference.extends() => Value::Null,
            None => pointer(step).into(),
        },
    );
    facts.insert("reusable_segments_before_break".into(), json!(step.difference.shared));
    let Some(before) = step.before.map(|before| &steps[before].prompt) else { return };
    let shared = step.difference.shared;
    if shared < before.segs.len() && shared < step.prompt.segs.len() {
        let (old, new) = (before.text(shared), step.prompt.text(shared));
        let head = text_kind::common_head(&old, &new);
        facts.insert("common_chars_in_segment".into(), json!(old[..head].chars().count()));
    }
    findings(steps, broken, step, before, facts);
}

fn pointer(step: &Step) -> String {
    step.difference.findings.first().map_or_else(String::new, |finding| finding.pointer.clone())
}

/// Facts that belong to single kinds of fault.
fn findings(steps: &[Step], broken: &[usize], step: &Step, before: &Prompt, facts: &mut Facts) {
    let every = |cause: Cause| -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for at in broken {
            let found = steps[*at].difference.findings.iter().filter(|finding| finding.cause == cause);
            for name in found.flat_map(|finding| &finding.names) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    };
    facts.insert("explained_by".into(), json!(every(Cause::MemoryLiveRead)));
    facts.insert("rewritten_ids".into(), json!(every(Cause::HistoryRewritten)));
    let own = |cause: Cause| step.difference.findings.iter().find(|finding| finding.cause == cause);
    if let Some((from, to)) = own(Cause::BlockMigrated).and_then(|finding| finding.moved.clone()) {
        facts.insert("moved_from".into(), from.into());
        facts.insert("moved_to".into(), to.into());
    }
    if let Some(finding) = own(Cause::ResultReorder) {
        facts.insert("order_sent".into(), json!(split(&finding.before)));
        facts.insert("order_rebuilt".into(), json!(split(&finding.after)));
    }
    facts.insert("same_result_set".into(), json!(results(before) == results_among(&step.prompt, before)));
    let set = own(Cause::ToolSetChanged).is_none();
    facts.insert("same_tool_set".into(), json!(set));
    if let Some(finding) = own(Cause::ToolReorder).or_else(|| own(Cause::ToolSetChanged)) {
        facts.insert("order_before".into(), json!(split(&finding.before)));
        facts.insert("order_after".into(), json!(split(&finding.after)));
        let (old, new) = (split(&finding.before), split(&finding.after));
        let only = |a: &[String], b: &[String]| {
            a.iter().filter(|name| !b.contains(name)).cloned().collect::<Vec<_>>()
        };
        facts.insert("added".into(), json!(only(&new, &old)));
        facts.insert("removed".into(), json!(only(&old, &new)));
        facts.insert("tools_added".into(), json!(only(&new, &old)));
        facts.insert("tools_removed".into(), json!(only(&old, &new)));
    }
    let path = step
        .difference
        .findings
        .first()
        .filter(|finding| has_path(finding))
        .and_then(|finding| finding.names.first());
    facts.insert("differing_path".into(), json!(path));
    if let Some(first) = step.difference.findings.first() {
        facts.insert("text_before".into(), json!(first.before));
        facts.insert("text_after".into(), json!(first.after));
        facts.insert("kind_of_text".into(), json!(first.kind.word()));
    }
}

fn has_path(finding: &Finding) -> bool {
    finding.names.first().is_some_and(|name| name.starts_with('/'))
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn results(prompt: &Prompt) -> Vec<String> {
    let mut ids: Vec<String> = (0..prompt.segs.len())
        .filter(|at| prompt.segs[*at].kind == Kind::Answer)
        .map(|at| answer_id(prompt, at))
        .collect();
    ids.sort_unstable();
    ids
}

/// Results of the later prompt that the earlier one has, too.
fn results_among(after: &Prompt, before: &Prompt) -> Vec<String> {
    let known = results(before);
    results(after).into_iter().filter(|id| known.contains(id)).collect()
}

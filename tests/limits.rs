//! Limits that only a whole run meets: of rows, of waiting, of workers, of iterations, of the pace of ticks.

use hermes_lab::ledger::rebuild::Rebuild;
use hermes_lab::ledger::{Lane, Ledger, What};

use crate::support::{Lab, played, small_window};

/// How the compactions of a run got their summaries.
fn summaries(ledger: &Ledger) -> Vec<&str> {
    let all = ledger.events.iter().filter_map(|event| match &event.what {
        What::Compaction(compaction) if compaction.committed => Some(&*compaction.summary),
        _ => None,
    });
    all.collect()
}

const CHAT: &str = r#"
[[rule]]
lane = "summary"
reply.say = "They spoke of rooms."

[[rule]]
lane = "review"
reply.say = "Nothing to save."

[[act]]
open.name = "s"

[[act]]
[act.turn]
say = "Tell me about room {i}."
times = 12
replies = [{ say = "Room {i} has a door, two windows, a bed, a chair, a table, a lamp, and a rug that somebody brought home from a long journey, years ago, as they say; nobody has asked about it since. The ceiling was painted twice, the floor once, and the door sticks when it rains; the heating is old but works, the light switch is behind the shelf, and the key hangs on a nail beside the mirror that was left by those who lived here before. The window looks to the yard, where a chestnut stands, and in the evening one hears the trams; the neighbours are quiet people, the walls are thick, and the post comes at ten." }]
"#;

#[test]
fn a_gateway_compacts_a_conversation_of_too_many_rows_and_a_terminal_does_not() {
    let knobs = |platform: &str, limit: u64| {
        format!(
            "[policy.turn]\nplatform = \"{platform}\"\n{}hygiene_hard_message_limit = {limit}\n",
            small_window(100_000)
        )
    };
    let compacted =
        |platform: &str, limit: u64| !summaries(&played(&knobs(platform, limit), CHAT)).is_empty();
    assert!(compacted("discord", 16));
    assert!(!compacted("discord", 5_000));
    assert!(!compacted("discord", 0));
    assert!(!compacted("cli", 16));
}

#[test]
fn a_summary_that_takes_too_long_is_written_by_rule() {
    let knobs = |timeout: u64, ceiling: u64| {
        format!(
            "[policy.turn]\nreply_ms_min = 60_000\nreply_ms_max = 60_000\n{}context_timeout_seconds = {timeout}\n\
             context_total_ceiling_seconds = {ceiling}\n",
            small_window(12_000)
        )
    };
    let first = |timeout, ceiling| {
        summaries(&played(&knobs(timeout, ceiling), CHAT)).first().map(ToString::to_string)
    };
    assert_eq!(first(120, 600).as_deref(), Some("model"));
    assert_eq!(first(30, 600).as_deref(), Some("fallback"));
    assert_eq!(first(120, 30).as_deref(), Some("fallback"));
}

#[test]
fn results_that_are_kept_as_they_finish_depend_on_how_many_calls_run_at_once() {
    let acts = r#"
[[skill]]
name = "long"
description = "Use when it takes long. Waits."
body = "A body that is much longer than that of the others, and so is read last.\n"

[[skill]]
name = "mid"
description = "Use in between. Waits less."
body = "A body of some length.\n"

[[skill]]
name = "short"
description = "Use at once. Waits not."
body = "Short.\n"

[[act]]
open.name = "s"

[[act]]
[act.turn]
say = "Look at all three."
replies = [
  { calls = [
    { tool = "skill_view", args = { name = "long" } },
    { tool = "skill_view", args = { name = "mid" } },
    { tool = "skill_view", args = { name = "short" } },
  ] },
  { say = "Seen." },
]
"#;
    let order = |workers: u64| {
        let knobs = format!("[policy.turn]\nresult_order = \"finish\"\nworkers_max = {workers}\n");
        let ledger = played(&knobs, acts);
        let mut rebuild = Rebuild::default();
        let mut texts: Vec<String> = Vec::new();
        for event in &ledger.events {
            let Some(seen) = rebuild.apply(event) else { continue };
            let state = rebuild.conversation(&seen.key).unwrap();
            texts = state.segments.iter().map(|segment| segment.text.to_string()).collect();
        }
        let named = |text: &String| {
            ["long", "mid", "short"]
                .into_iter()
                .find(|name| text.contains(&format!(r#"\"name\":\"{name}\""#)))
        };
        texts.iter().filter(|text| text.contains("\"role\":\"tool\"")).filter_map(named).collect::<Vec<_>>()
    };
    assert_eq!(order(8), ["short", "mid", "long"]);
    assert_eq!(order(1), ["long", "mid", "short"]);
    // The short one waits for the worker that had the one of middle length.
    assert_eq!(order(2), ["mid", "long", "short"]);
}

#[test]
fn schedulers_that_keep_ticking_find_as_many_occurrences_as_their_pace_lets_them() {
    let acts = r#"
[[job]]
name = "look"
schedule = "every 10m"
prompt = "Look."

[[rule]]
lane = "cron"
reply.say = "Nothing new."

[[act]]
tick = { schedulers = 2, minutes = 60 }
"#;
    let ran = |seconds: u64| {
        let ledger = played(&format!("[policy.cron]\ntick_seconds = {seconds}\n"), acts);
        let fired = |what: &What| matches!(what, What::CronFired(fired) if fired.claimed);
        ledger.events.iter().filter(|event| fired(&event.what)).count()
    };
    assert_eq!(ran(60), 6);
    // Whoever looks only every half hour finds one that is due, and the others missed.
    assert_eq!(ran(1_800), 2);
}

#[test]
fn the_agent_that_merges_skills_stays_within_its_iterations_and_merges_nothing_beyond_them() {
    let scenario = Lab::scenario("merging");
    let requests = |ledger: &Ledger| {
        let of_curator =
            |what: &What| matches!(what, What::Request(request) if request.lane == Lane::Curator);
        ledger.events.iter().filter(|event| of_curator(&event.what)).count()
    };
    let merged = |ledger: &Ledger| {
        ledger
            .events
            .iter()
            .any(|event| matches!(&event.what, What::CuratorRan(ran) if !ran.merged.is_empty()))
    };
    let whole = scenario.run();
    assert!(requests(&whole) == 10 && merged(&whole));
    let cut = scenario.set("curator.consolidation_iterations_max", 2).run();
    assert!(requests(&cut) < requests(&whole) && !merged(&cut), "{}", requests(&cut));
}

//! Runs beside the user's own: children and scheduled runs, and what each of them is told.

use hermes_lab::ledger::{Lane, Ledger, What};

use crate::support::{played, sent};

/// The system prompts that a lane was sent, one for each session, in order.
fn prompts(ledger: &Ledger, lane: Lane) -> Vec<String> {
    let mut requests = sent(ledger, lane);
    requests.dedup_by(|next, kept| next.session == kept.session);
    requests.into_iter().map(|request| request.system).collect()
}

const HOME: &str = r#"
[[memory]]
target = "memory"
text = "The lighthouse keeper is called Odile."

[[file]]
path = "AGENTS.md"
text = "Dates are written year first."
"#;

#[test]
fn a_child_is_told_its_context_its_schema_and_the_rules_of_the_project_and_no_memory() {
    let acts = HOME.to_owned()
        + r#"
[[act]]
open = { name = "s" }

[[act]]
[act.turn]
say = "Have two things looked up."
replies = [
  { call = "delegate_task", args = { tasks = [
    { goal = "Find the port of the server.", context = "The server is the one in Brest." },
    { goal = "Count the lamps of the tower.", output_schema = { type = "object", required = ["lamps"] } },
  ] } },
  { say = "They are on it." },
  { say = "Both are back." },
]

[[rule]]
lane = "child"
when.system_has = "the one in Brest"
reply.say = "Port 8443."

[[rule]]
lane = "child"
reply.say = '{"lamps": 12}'
"#;
    let ledger = played("", &acts);
    let [brest, tower] = &prompts(&ledger, Lane::Child)[..] else { panic!("two children") };
    assert!(brest.contains("the one in Brest") && !brest.contains("lamps"), "{brest}");
    assert!(tower.contains("\"lamps\"") && !tower.contains("Brest"), "{tower}");
    for told in [brest, tower] {
        assert!(told.contains("Platform: subagent") && told.contains("year first"), "{told}");
        assert!(!told.contains("Odile"), "{told}");
    }
    let main = prompts(&ledger, Lane::Main);
    assert!(main[0].contains("Odile") && main[0].contains("Platform: cli"), "{}", main[0]);
}

#[test]
fn a_scheduled_run_knows_memory_and_not_the_rules_of_the_project() {
    let acts = HOME.to_owned()
        + r#"
[[job]]
name = "inbox"
schedule = "every 30m"
prompt = "Look through the inbox."

[[act]]
open = { name = "s" }

[[act]]
wait.minutes = 31

[[act]]
tick.schedulers = 1

[[rule]]
lane = "cron"
reply.say = "Nothing new."
"#;
    let ledger = played("", &acts);
    let [told] = &prompts(&ledger, Lane::Cron)[..] else { panic!("one run") };
    assert!(told.contains("Odile") && told.contains("Platform: cron"), "{told}");
    assert!(!told.contains("year first"), "{told}");
}

#[test]
fn a_review_that_waits_for_a_quiet_moment_comes_in_the_middle_of_a_wait_and_says_what_its_turn_had_it_say() {
    let acts = r#"
[[act]]
open = { name = "s" }

[[act]]
turn = { say = "One.", replies = [{ say = "Done." }], review = [{ say = "Replaced by the next." }] }

[[act]]
turn = { say = "Two.", replies = [{ say = "Done." }], review = [
  { call = "memory", args = { action = "add", target = "memory", content = "Two came after one." } },
  { say = "Kept." },
] }

[[act]]
wait.days = 20
"#;
    let ledger = played("[policy.review]\nlocal_server = true\nmemory_interval = 1\n", acts);
    let at = |wanted: fn(&What) -> bool| {
        let found = ledger.events.iter().filter(|event| wanted(&event.what));
        found.map(|event| event.at).collect::<Vec<_>>()
    };
    let turns = at(|what| matches!(what, What::TurnEnded(_)));
    let reviews = at(|what| matches!(what, What::ReviewStarted(_)));
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0] - turns[1], hermes_lab::agent::review::IDLE_AFTER);
    assert_eq!(at(|what| matches!(what, What::MemoryWrite(write) if write.ok)).len(), 1);
    let passed = at(|what| matches!(what, What::TimePassed(_)));
    assert_eq!(passed[0] - turns[1], 20 * 86_400_000);
}

#[test]
fn a_review_that_takes_longer_than_the_wait_does_not_set_the_clock_back() {
    let acts = r#"
[[act]]
open = { name = "s" }

[[act]]
turn = { say = "Go.", replies = [{ say = "Gone." }], review = [{ say = "Nothing." }] }

[[act]]
wait.seconds = 16

[[act]]
turn = { say = "And?", replies = [{ say = "Here." }] }
"#;
    let knobs = "[policy]\n\"review.local_server\" = true\n\"review.memory_interval\" = 1\n\"turn.reply_ms_min\" = 5000\n\"turn.reply_ms_max\" = 5000\n";
    let ledger = played(knobs, acts);
    let at = |wanted: fn(&What) -> bool| {
        ledger.events.iter().find(|event| wanted(&event.what)).map(|event| event.at).unwrap()
    };
    let reviewed = at(|what| matches!(what, What::ReviewEnded(_)));
    // Fifteen seconds of quiet and five of thought: four more than the wait.
    assert_eq!(reviewed - at(|what| matches!(what, What::TurnEnded(_))), 20_000);
    assert_eq!(at(|what| matches!(what, What::TimePassed(_))), reviewed);
    assert!(ledger.events.is_sorted_by_key(|event| event.at));
}

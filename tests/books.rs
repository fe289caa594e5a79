//! Requests beside the conversation are requests too, and what every request used is in the books of the store.

use std::collections::BTreeMap;

use hermes_lab::lab::breaks::shipped_scenario;
use hermes_lab::lab::play::{Plan, play_in};
use hermes_lab::ledger::{Lane, Ledger, Usage, What};
use hermes_lab::policy::Policy;
use hermes_lab::store::Store;
use hermes_lab::world::MemFiles;

use crate::support::{played, sent, small_window};

/// What was used by session and lane, in the order of the requests.
fn used(ledger: &Ledger) -> BTreeMap<(String, Lane), Vec<Usage>> {
    let mut asked = BTreeMap::new();
    let mut used: BTreeMap<(String, Lane), Vec<Usage>> = BTreeMap::new();
    for event in &ledger.events {
        match &event.what {
            What::Request(request) => {
                asked.insert(request.id, (event.session.to_string(), request.lane));
            }
            What::Response(response) if response.refused.is_empty() => {
                used.entry(asked[&response.request].clone()).or_default().push(response.usage.clone());
            }
            _ => {}
        }
    }
    used
}

fn sum(usages: &[Usage], part: fn(&Usage) -> u64) -> i64 {
    i64::try_from(usages.iter().map(part).sum::<u64>()).unwrap()
}

#[test]
fn the_books_of_the_store_agree_with_the_ledger() {
    let home = tempfile::tempdir().unwrap();
    let mut side_tasks = 0;
    for name in ["seed", "long-chat", "workshop"] {
        let file = home.path().join(format!("{name}.db"));
        let scenario = shipped_scenario(name).unwrap();
        let played = play_in(&scenario, &Plan::default(), Box::new(MemFiles::new()), Some(&file)).unwrap();
        let store = Store::open_file(&file, &Policy::default().store).unwrap();
        for ((session, lane), usages) in used(&played.ledger) {
            let routes = store.usage_by_model(&session).unwrap();
            let task = match lane {
                Lane::Main | Lane::Child | Lane::Cron => "",
                Lane::Review => "background_review",
                Lane::Summary => "compression",
                Lane::Approver => "approval",
                Lane::Curator | Lane::Title => continue,
            };
            let route = routes.iter().find(|route| route.task == task).unwrap_or_else(|| {
                panic!("{name}: {session} has no route for `{task}`: {routes:?}");
            });
            let calls = i64::try_from(usages.len()).unwrap();
            assert_eq!(
                (route.api_calls, route.input_tokens, route.output_tokens),
                (calls, sum(&usages, |used| used.uncached), sum(&usages, |used| used.output)),
                "{name}: {session}, task `{task}`"
            );
            if !task.is_empty() {
                side_tasks += 1;
                continue;
            }
            let counters = store.usage_of(&session).unwrap().unwrap();
            assert_eq!(
                (counters.api_calls, counters.cache_read_tokens, counters.cache_write_tokens),
                (calls, sum(&usages, |used| used.read), sum(&usages, |used| used.write_5m + used.write_1h)),
                "{name}: {session}"
            );
        }
    }
    assert!(side_tasks > 2);
}

#[test]
fn a_summary_is_a_request_that_takes_time_and_is_paid_for() {
    let turn = |n: u32| {
        format!(
            "[[act]]\nturn = {{ say = \"Part {n}: {}\", replies = [{{ say = \"{}\" }}], summary = [{{ say = \"Parts were read.\" }}] }}\n\n",
            "words ".repeat(60),
            "more words ".repeat(40)
        )
    };
    let acts: String = (0..6).map(turn).collect();
    let knobs = small_window(4_000) + "[policy.turn]\nreply_ms_min = 700\nreply_ms_max = 700\n";
    let ledger = played(&knobs, &format!("[[act]]\nopen.name = \"s\"\n\n{acts}"));
    let compacted = ledger
        .events
        .iter()
        .filter(|event| matches!(&event.what, What::Compaction(done) if &*done.summary == "model"));
    let compacted: Vec<_> = compacted.collect();
    assert!(!compacted.is_empty());
    let summaries = sent(&ledger, Lane::Summary);
    assert_eq!(summaries.len(), compacted.len());
    assert!(summaries.iter().all(|summary| summary.messages.len() == 1 && summary.system.is_empty()));
    let usages = &used(&ledger)[&("s".to_owned(), Lane::Summary)];
    assert!(usages.iter().all(|used| used.prompt() > 500 && used.read == 0 && used.output > 0), "{usages:?}");
    let asked = ledger
        .events
        .iter()
        .find(|event| matches!(&event.what, What::Request(request) if request.lane == Lane::Summary));
    assert_eq!(compacted[0].at - asked.unwrap().at, 700);
}

#[test]
fn a_reviewer_who_is_down_is_asked_and_leaves_the_question_to_the_user() {
    let acts = |fault: &str| {
        format!(
            "[[act]]\nopen.name = \"s\"\n\n[[act]]\nturn = {{ say = \"Clean up.\", replies = [{{ call = \"terminal\", args = {{ command = \"rm -r build\" }} }}, {{ say = \"Done.\" }}], approver = [{{ say = \"approve\" }}] }}\n\n{fault}"
        )
    };
    let decided = |fault: &str| {
        let ledger = played("[policy]\n\"guard.mode\" = \"smart\"\n", &acts(fault));
        let decision = ledger.events.iter().find_map(|event| match &event.what {
            What::GuardDecision(decision) => Some(decision.kind.to_string()),
            _ => None,
        });
        (sent(&ledger, Lane::Approver).len(), decision.unwrap())
    };
    assert_eq!(decided(""), (1, "smart_approved".to_owned()));
    let down = "[[fault]]\nact = 2\nprovider = { fault = \"server_error\", lane = \"approver\", request = 1, times = 1 }\n";
    assert_eq!(decided(down), (1, "user_approved".to_owned()));
}

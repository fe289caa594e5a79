//! A bot in a group that is on call: a session a day, alerts that come back, a weekly timer.
//!
//! The first alert of a class is worked through step by step. The review that follows writes a runbook; with a runbook
//! in its catalogue the agent loads it and needs less. Classes of alerts come and go, so that runbooks grow stale. The
//! variants differ in whether the curator looks at the library every week.

use std::fmt::Write as _;

use super::{Fact, Variant, Where};
use crate::world::Streams;

/// Alerts a day.
const ALERTS: u64 = 4;
/// Classes of alerts that are about at the same time.
const CLASSES: u64 = 8;
/// Days after which one class makes place for another.
const DRIFT_DAYS: u64 = 5;
/// Steps by which an unknown alert is worked through.
const STEPS: u64 = 6;
/// People of the group.
const PEOPLE: [&str; 5] = ["ana", "bo", "chen", "dede", "eva"];

/// The variants.
pub fn variants(days: u64, seed: u64) -> Vec<Variant> {
    vec![variant("curator", days, seed, true), variant("no curator", days, seed, false)]
}

fn head(days: u64, seed: u64) -> String {
    let classes = CLASSES + days / DRIFT_DAYS;
    let mut text = format!(
        "format = 1\nname = \"on-call\"\ntitle = \"a bot on call in a group, for {days} days\"\nseed = {seed}\n\
         start = \"2026-09-01T06:00:00Z\"\n\n[policy]\n\"turn.platform\" = \"discord\"\n\"store.index_when\" = \"search\"\n\n\
         [[command]]\nrun = \"fix *\"\nprints = \"fixed\\n\"\n\n\
         [[job]]\nname = \"week\"\nschedule = \"0 7 * * 1\"\nprompt = \"Sum up the alerts of the week for the group.\"\n\n\
         [[rule]]\nlane = \"cron\"\nreply.say = \"A quiet week: every alert was answered.\"\n\n\
         [[rule]]\nlane = \"summary\"\nreply.say = \"Alerts came and were answered.\"\n"
    );
    for class in 0..classes {
        let class = numbered(class);
        let _ = write!(
            text,
            "\n[[rule]]\nfollow_skill = \"runbook-{class}\"\nwhen.user_has = \"alert-{class}:\"\n"
        );
        for step in 0..STEPS {
            let seen = if step == 0 {
                "last_role = \"user\"".to_owned()
            } else {
                format!("last_has = \"step {class}-{}.\"", step - 1)
            };
            let _ = write!(
                text,
                "\n[[command]]\nrun = \"probe {class}-{step}\"\nprints = \"step {class}-{step}. what the probe shows, in a line or two\\n\"\ntimes = 12\n\
                 \n[[rule]]\nwhen = {{ user_has = \"alert-{class}:\", {seen} }}\nreply = {{ call = \"terminal\", args = {{ command = \"probe {class}-{step}\" }} }}\n"
            );
        }
        let _ = write!(
            text,
            "\n[[rule]]\nwhen.user_has = \"alert-{class}:\"\nreply.say = \"The alert is answered: the cause is found and mended.\"\n\
             \n[[rule]]\nlane = \"review\"\nwhen = {{ history_has = \"alert-{class}:\", last_role = \"user\", system_lacks = \"runbook-{class}\" }}\ntimes = 1\n\
             reply = {{ call = \"skill_manage\", args = {{ action = \"create\", name = \"runbook-{class}\", content = \"---\\nname: runbook-{class}\\ndescription: Use when alert-{class} fires again.\\n---\\n\\n1. `probe {class}-{}`\\n2. `fix {class}`\\n\" }} }}\n",
            STEPS - 1
        );
    }
    text.push_str("\n[[rule]]\nlane = \"review\"\nreply.say = \"Nothing more to save.\"\n");
    text
}

/// Numbers of one width, so that no name is the beginning of another.
fn numbered(class: u64) -> String {
    format!("{class:03}")
}

fn variant(name: &'static str, days: u64, seed: u64, curated: bool) -> Variant {
    let mut stream = Streams::new(seed).named("life.on-call");
    let mut text = head(days, seed);
    let mut facts = Vec::new();
    for day in 0..days {
        let _ = write!(text, "\n[[act]]\nopen.name = \"day-{day}\"\n");
        if day % 4 == 0 {
            let number = day / 4;
            let fact = Fact {
                place: Where::Memory,
                day,
                text: format!("fact-memory-{number}-{}", 1_000 + stream.below(9_000)),
            };
            let _ = write!(
                text,
                "\n[[act]]\nremember = {{ target = \"memory\", add = \"Service {number} belongs to team {}.\" }}\n",
                fact.text
            );
            facts.push(fact);
        }
        let mut minutes = 24 * 60;
        for _ in 0..ALERTS {
            // Small numbers come up more often, as the usual suspects do.
            let rank = stream.below(CLASSES).min(stream.below(CLASSES));
            let class = numbered(day / DRIFT_DAYS + rank);
            let who = stream.pick(&PEOPLE);
            let wait = stream.between(20, 150);
            minutes -= wait;
            let _ = write!(
                text,
                "\n[[act]]\nturn.say = \"[{who}] alert-{class}: it fires again, please have a look.\"\n\n[[act]]\nwait.minutes = {wait}\n"
            );
        }
        let _ = write!(text, "\n[[act]]\nend = {{ session = \"day-{day}\", reason = \"daily\" }}\n");
        if day % 7 == 6 {
            text.push_str("\n[[act]]\ntick.schedulers = 1\n");
            if curated {
                text.push_str("\n[[act]]\ncurator = {}\n");
            }
        }
        let _ = write!(text, "\n[[act]]\nwait.minutes = {minutes}\n");
    }
    Variant { name, text, facts }
}

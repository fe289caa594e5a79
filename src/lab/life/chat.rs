//! One chat that is never reset: long tool output day after day, compaction upon compaction.
//!
//! Twenty-four facts of each kind are planted over the first three quarters: some are said, some go into memory, some
//! become skills; some are said and put into memory by the review that comes next. The variants differ in who writes the summaries; the model's says that work went on and nothing else,
//! which is the least that a summary can keep.

use std::fmt::Write as _;

use super::{Fact, Variant, Where};
use crate::world::Streams;

/// Facts of each kind.
const FACTS: u64 = 24;
/// Turns a day.
const TURNS: u64 = 24;

/// The variants.
pub fn variants(days: u64, seed: u64) -> Vec<Variant> {
    let model = "[[rule]]\nlane = \"summary\"\nreply.say = \"Work went on; the newest wishes are in the rows below.\"\n";
    vec![variant("model summary", days, seed, model), variant("summary by rule", days, seed, "")]
}

fn variant(name: &'static str, days: u64, seed: u64, summary: &str) -> Variant {
    let mut stream = Streams::new(seed).named("life.chat");
    let mut facts = Vec::new();
    let mut text = format!(
        "format = 1\nname = \"chat\"\ntitle = \"one chat that is never reset, for {days} days\"\nseed = {seed}\n\
         start = \"2026-09-01T07:00:00Z\"\n\n[policy.store]\nindex_when = \"search\"\n\n\
         [[command]]\nrun = \"look *\"\nprints = \"what was seen, line by line, as it stood there\\n\"\ntimes = 220\n\n\
         {summary}"
    );
    let mut acts = String::from("\n[[act]]\nopen.name = \"chat\"\n");
    let every = (days * 3 / 4 / FACTS).max(1);
    for day in 0..days {
        let number = day / every;
        if day % every == 0 && number < FACTS {
            let code = 1_000 + stream.below(9_000);
            let fact =
                |place: Where| Fact { place, day, text: format!("fact-{}-{number}-{code}", place.word()) };
            let (said, kept, skill) = (fact(Where::History), fact(Where::Memory), fact(Where::Skill));
            let learned = fact(Where::Learned);
            // What a review finds in the history and not in memory yet, it writes down, one fact a request.
            let _ = write!(
                text,
                "\n[[rule]]\nlane = \"review\"\nwhen.history_has = \"{0}\"\ntimes = 1\nreply = {{ call = \"memory\", \
                 args = {{ action = \"add\", target = \"memory\", content = \"The key of desk {number} is {0}.\" }} }}\n",
                learned.text
            );
            let _ = write!(
                acts,
                "\n[[act]]\nremember = {{ target = \"memory\", add = \"The code of door {number} is {}.\" }}\n\
                 \n[[act]]\n[act.add_skill.skill]\nname = \"{}\"\ndescription = \"Use when door {number} sticks.\"\n\
                 \n[[act]]\n[act.turn]\nsay = \"By the way, the number of room {number} is {}.\"\nreplies = [{{ say = \"Noted.\" }}]\n\
                 \n[[act]]\n[act.turn]\nsay = \"And the key of desk {number} is {}.\"\nreplies = [{{ say = \"I see.\" }}]\n",
                kept.text, skill.text, said.text, learned.text
            );
            facts.extend([said, kept, learned, skill]);
        }
        let _ = write!(
            acts,
            "\n[[act]]\n[act.turn]\nsay = \"Day {day}, errand {{i}}: please look at it and tell me what has changed.\"\ntimes = {TURNS}\n\
             replies = [\n  {{ call = \"terminal\", args = {{ command = \"look {day} {{i}} first\" }} }},\n  \
             {{ call = \"terminal\", args = {{ command = \"look {day} {{i}} again\" }} }},\n  \
             {{ say = \"Errand {{i}} of day {day}: nothing has changed since the last look, and all is as it should be.\" }},\n]\n\
             \n[[act]]\nwait.hours = 24\n"
        );
    }
    text.push_str("\n[[rule]]\nlane = \"review\"\nreply.say = \"Nothing to save.\"\n");
    text.push_str(&acts);
    Variant { name, text, facts }
}

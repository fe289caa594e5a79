//! Nothing but load: two hundred turns a day of eight requests each, a session a day. For measuring the lab itself.

use std::fmt::Write as _;

use super::Variant;

/// Turns a day.
pub const TURNS: u64 = 200;
/// Requests of a turn.
pub const REQUESTS: u64 = 8;

/// The one variant.
pub fn variants(days: u64, seed: u64) -> Vec<Variant> {
    let mut text = format!(
        "format = 1\nname = \"steady\"\ntitle = \"{TURNS} turns a day of {REQUESTS} requests, for {days} days\"\nseed = {seed}\n\
         start = \"2026-01-01T00:00:00Z\"\n\n[policy]\n\"store.index_when\" = \"search\"\n\"compress.enabled\" = false\n\
         \"review.skill_interval\" = 0\n\"review.memory_interval\" = 0\n\n\
         [[command]]\nrun = \"step *\"\nprints = \"a line of output that says what was done\"\n"
    );
    let steps: Vec<String> = (1..REQUESTS)
        .map(|step| format!("{{ call = \"terminal\", args = {{ command = \"step {{i}} {step}\" }} }}"))
        .collect();
    for day in 0..days {
        let _ = write!(
            text,
            "\n[[act]]\nopen.name = \"day-{day}\"\n\n[[act]]\n[act.turn]\nsay = \"turn {{i}} of day {day}\"\ntimes = {TURNS}\n\
             replies = [{}, {{ say = \"Turn {{i}} is done.\" }}]\n\n[[act]]\nend = {{ session = \"day-{day}\", reason = \"daily\" }}\n\
             \n[[act]]\nwait.days = 1\n",
            steps.join(", ")
        );
    }
    vec![Variant { name: "steady", text, facts: Vec::new() }]
}

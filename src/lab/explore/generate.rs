//! Draws a run from a seed: first the policy, then the world, the acts and the faults, each from its own stream.
//!
//! A *swarm*: every run first draws which features and kinds of fault it has at all, since a run that has a little of
//! everything seldom has enough of anything. Knobs are turned only within what the laws allow, so that an intact
//! runtime must hold whatever is drawn.

mod acts;

use super::draft::{Draft, quoted};
use crate::world::Streams;
use crate::world::faults::PROVIDER_FAULTS;
use crate::world::streams::Stream;
use acts::{Acts, call};

/// Knobs that close gaps of the real mechanism which this search has found already; without them it finds little
/// else. A message that failed is merged into the next one, which changes a row that was sent; a restart protects the
/// head of a compacted history again when a long tool group hides the summary; results that are put aside to fit the
/// budget of their round stand in the store in full; a message that could not be
/// stored is sent all the same; a summary beside a calling row is joined with it only by the next process; a summary that
/// no model wrote keeps the newest request and forgets what was asked for to last; and a failed
/// job is re-armed while another scheduler has it in hand, which runs an occurrence twice.
pub const CLOSED: [(&str, &str); 8] = [
    ("turn.close_failed", "true"),
    ("turn.fit_before_store", "true"),
    ("turn.store_before_send", "true"),
    ("compress.find_any_handoff", "true"),
    ("compress.mend_result", "true"),
    ("compress.rule_keeps_wishes", "true"),
    ("cron.rearm_unclaimed_only", "true"),
    ("delegate.spawns_per_turn_max", "10"),
];

/// What a user says who wants something to last.
const WISH: &str = "Always answer in metres.";

/// Steps of a run, at least and at most.
const STEPS: (u64, u64) = (6, 28);

/// Draws the run of a seed.
pub fn draw(seed: u64) -> Draft {
    let streams = Streams::new(seed);
    let base = CLOSED.map(|(knob, value)| (knob.to_owned(), value.to_owned())).to_vec();
    let mut draft = Draft { seed, base, ..Draft::default() };
    policy(&mut streams.named("explore.policy"), &mut draft);
    world(&mut streams.named("explore.world"), &mut draft);
    rules(&mut streams.named("explore.rules"), &mut draft);
    let surveys = window_of(&draft).is_some();
    Acts::new(&mut streams.named("explore.acts"), surveys).draw(&mut draft);
    faults(&mut streams.named("explore.faults"), &mut draft);
    draft
}

/// Characters of one long output of a run: a twentieth of a small window, so that no compaction is undone at once.
fn output_max(draft: &Draft) -> u64 {
    let chars = draft.base.iter().any(|(knob, _)| knob == "compress.unit");
    match window_of(draft) {
        Some(window) if chars => window / 80,
        Some(window) => window / 8,
        None => 150_000,
    }
}

/// The window, when it is a small one.
fn window_of(draft: &Draft) -> Option<u64> {
    draft.base.iter().find(|(knob, _)| knob == "compress.window")?.1.parse().ok()
}

/// A knob that gives the run its scale, which a shrunk run keeps.
fn base(draft: &mut Draft, knob: &str, value: impl std::fmt::Display) {
    draft.base.push((knob.to_owned(), format!("{value}")));
}

fn turn(draft: &mut Draft, knob: &str, value: impl std::fmt::Display) {
    draft.knobs.push((knob.to_owned(), format!("{value}")));
}

fn policy(stream: &mut Stream, draft: &mut Draft) {
    match stream.below(5) {
        0 | 1 => {
            base(draft, "compress.unit", "\"characters\"");
            // A search alone may show some thousand characters.
            base(draft, "compress.window", stream.between(60_000, 120_000));
            base(draft, "compress.tail_min", stream.between(500, 2_000));
            small_window(stream, draft);
        }
        2 => {
            base(draft, "compress.window", stream.between(32_000, 80_000));
            base(draft, "compress.tail_min", stream.between(500, 4_000));
            small_window(stream, draft);
        }
        _ => {}
    }
    if stream.chance(3, 4) {
        turn(draft, "review.skill_interval", stream.between(1, 8));
    }
    if stream.chance(3, 4) {
        turn(draft, "review.memory_interval", stream.between(1, 6));
    }
    let numbers: [(&str, u64, u64); 15] = [
        ("memory.chars_max", 300, 2_200),
        ("memory.user_chars_max", 200, 1_375),
        ("compress.protect_first_n", 0, 4),
        ("compress.protect_last_n", 2, 20),
        ("compress.min_tail_user_messages", 1, 3),
        ("turn.iterations_max", 3, 90),
        ("turn.attempts_max", 1, 4),
        ("turn.workers_max", 1, 8),
        ("turn.result_chars_max", 2_000, 100_000),
        ("turn.round_chars_max", 2_000, 200_000),
        ("curator.archive_after_days", 15, 30),
        ("delegate.max_concurrent_children", 1, 4),
        ("review.iterations_max", 2, 16),
        ("turn.reply_ms_max", 1, 90_000),
        ("delegate.max_summary_chars", 100, 24_000),
    ];
    for (knob, low, high) in numbers {
        if stream.chance(1, 5) {
            turn(draft, knob, stream.between(low, high));
        }
    }
    let words: [(&str, &[&str]); 21] = [
        ("turn.parallel", &["\"current\"", "\"older\"", "\"never\""]),
        ("turn.platform", &["\"cli\"", "\"discord\""]),
        ("compress.check_at", &["\"each_request\"", "\"turn_end\""]),
        ("store.index_when", &["\"append\"", "\"search\""]),
        ("delegate.independent_completions", &["true", "false"]),
        ("compress.abort_on_summary_failure", &["true", "false"]),
        ("memory.approval", &["true", "false"]),
        ("guard.user_answer", &["\"once\"", "\"session\"", "\"deny\""]),
        ("curator.backup_enabled", &["true", "false"]),
        ("review.notify", &["\"on\"", "\"off\"", "\"verbose\""]),
        ("compress.store", &["\"rotation\""]),
        ("compress.carry_todos", &["false"]),
        ("compress.anchor_request", &["false"]),
        ("cron.catch_up_missed", &["false"]),
        ("curator.at_start", &["true"]),
        ("curator.consolidate", &["true"]),
        ("prompt.index_notes", &["true"]),
        ("prompt.reread_memory_on_compaction", &["true", "false"]),
        ("prompt.subdir_hints", &["true", "false"]),
        ("review.stage_after_web", &["true"]),
        ("turn.close_open_calls", &["true"]),
    ];
    for (knob, values) in words {
        if stream.chance(1, 6) {
            turn(draft, knob, stream.pick(values));
        }
    }
}

fn small_window(stream: &mut Stream, draft: &mut Draft) {
    base(draft, "compress.threshold", format!("0.{}", stream.between(5, 8)));
    base(draft, "compress.threshold_floor", 0);
    base(draft, "compress.small_window", 0);
    base(draft, "compress.threshold_tokens", "\"none\"");
    if stream.chance(1, 2) {
        base(draft, "compress.tail_mode", "\"legacy\"");
        base(draft, "compress.tail_rows", stream.between(4, 6));
    }
}

fn world(stream: &mut Stream, draft: &mut Draft) {
    for n in 0..stream.below(5) {
        let by = stream.pick(&["user", "agent"]);
        let age = if stream.chance(1, 2) { stream.between(3, 12) } else { stream.below(60) };
        let (day, uses) = (-age.cast_signed(), stream.below(4));
        let used = if uses > 0 {
            format!("used_day = {}\n", day + stream.below(40).cast_signed())
        } else {
            String::new()
        };
        let pinned = if stream.chance(1, 8) { "pinned = true\n" } else { "" };
        draft.things.push(format!(
            "[[skill]]\nname = \"skill-{n}\"\ndescription = \"Use when matter {n} comes up.\"\nbody = \"1. `echo {n}`\"\n\
             created_by = \"{by}\"\ncreated_day = {day}\nuses = {uses}\n{used}{pinned}"
        ));
    }
    for n in 0..stream.below(3) {
        let target = stream.pick(&["memory", "user"]);
        draft.things.push(format!(
            "[[memory]]\ntarget = \"{target}\"\ntext = \"Known from the start: number {n}.\"\n"
        ));
    }
    draft.things.push("[[file]]\npath = \"a.txt\"\ntext = \"words in a file\"\n".to_owned());
    let room = output_max(draft);
    if let Some(window) = window_of(draft) {
        let chars =
            if draft.base.iter().any(|(knob, _)| knob == "compress.unit") { window } else { window * 4 };
        // A tenth of the window for each survey: a session of a dozen turns is compacted more than once.
        draft.things.push(format!(
            "[[command]]\nrun = \"survey *\"\nprints = \"0123456789 abcdefgh\\n\"\ntimes = {}\n",
            chars / 10 / 20
        ));
    }
    let lines = stream.between(1, (room / 30).min(900));
    draft.things.push(format!(
        "[[file]]\npath = \"long.txt\"\ntext = \"one more line of a long file\\n\"\ntimes = {lines}\n"
    ));
    let lines = (stream.between(1, 60) * if stream.chance(1, 6) { 60 } else { 1 }).min(room / 20).max(1);
    draft.things.push(format!(
        "[[command]]\nrun = \"measure *\"\nprints = \"0123456789 abcdefgh\\n\"\ntimes = {lines}\n"
    ));
    draft.things.push("[[command]]\nrun = \"flaky *\"\nprints = \"no such luck\\n\"\nexit = 1\n".to_owned());
    draft.things.push("[[command]]\nrun = \"push *\"\ntimes_out = true\n".to_owned());
    if stream.chance(1, 2) {
        let minutes = stream.pick(&[15, 60, 1_440]);
        let skills = if stream.chance(1, 2) {
            format!("skills = [\"skill-{}\"]\n", stream.below(4))
        } else {
            String::new()
        };
        draft.things.push(format!(
            "[[job]]\nname = \"inbox\"\nschedule = \"every {minutes}m\"\nprompt = \"Look through the inbox.\"\n{skills}"
        ));
    }
}

/// What a lane other than the user's does: one round of calls when it is asked, then words.
fn lane(draft: &mut Draft, lane: &str, calls: &[String], words: &str) {
    if !calls.is_empty() {
        draft.rules.push(format!(
            "[[rule]]\nlane = \"{lane}\"\nwhen.last_role = \"user\"\nreply.calls = [{}]\n",
            calls.join(", ")
        ));
    }
    draft.rules.push(format!("[[rule]]\nlane = \"{lane}\"\nreply.say = {}\n", quoted(words)));
}

fn rules(stream: &mut Stream, draft: &mut Draft) {
    // Reviews differ from one to the next: the first few each have a rule of their own.
    for n in 0..stream.below(4) {
        let calls: Vec<String> = (0..stream.between(1, 3)).map(|m| review_call(stream, n * 10 + m)).collect();
        draft.rules.push(format!(
            "[[rule]]\nlane = \"review\"\nwhen.last_role = \"user\"\ntimes = 1\nreply.calls = [{}]\n",
            calls.join(", ")
        ));
    }
    lane(draft, "review", &[], "Nothing to save.");
    let words = "What was said so far, in short. ".repeat(usize::try_from(stream.between(1, 6)).unwrap_or(1));
    // A model that is shown a lasting wish writes it into the summary; the runtime has to show it.
    draft.manners.push(format!(
        "[[rule]]\nlane = \"summary\"\nwhen.last_has = {}\nreply.say = {}\n",
        quoted(WISH),
        quoted(&format!("{words}\n{WISH}"))
    ));
    lane(draft, "summary", &[], &words);
    let calls: Vec<String> = (0..stream.below(3)).map(|n| call(stream, 900 + n)).collect();
    lane(draft, "child", &calls, "The errand is done.");
    let calls: Vec<String> = match stream.below(3) {
        0 => vec!["{ tool = \"cronjob_manage\", args = { action = \"create\", name = \"again\", schedule = \"every 1m\", prompt = \"Look again.\" } }".to_owned()],
        // The same run comes again and again, so it writes nothing that is there already.
        1 => {
            let command = stream.pick(&["echo inbox", "measure inbox", "flaky inbox"]);
            vec![format!("{{ tool = \"terminal\", args = {{ command = \"{command}\" }} }}")]
        }
        _ => Vec::new(),
    };
    let words = stream.pick(&["Two new letters.", "[SILENT]"]);
    lane(draft, "cron", &calls, words);
    merging(stream, draft);
    let says = if stream.chance(1, 2) { "approve" } else { "deny" };
    lane(draft, "approver", &[], says);
    // A request that a fault sent round again finds an answer.
    lane(draft, "main", &[], "Let us leave it there.");
}

/// What the model of a curator does that has skills merged: it lets narrow ones go into a wider one, whoever they belong
/// to, and tells of it in the form that is asked for or does not.
fn merging(stream: &mut Stream, draft: &mut Draft) {
    let heir = stream.pick(&["merged", "skill-0"]);
    let mut calls = vec![skill_create("merged", 700)];
    for n in 0..stream.below(4) {
        let gone = match stream.below(3) {
            0 => String::new(),
            _ => format!(", absorbed_into = \"{heir}\""),
        };
        calls.push(format!("{{ tool = \"skill_view\", args = {{ name = \"skill-{n}\" }} }}"));
        calls.push(format!(
            "{{ tool = \"skill_manage\", args = {{ action = \"delete\", name = \"skill-{n}\"{gone} }} }}"
        ));
    }
    draft.rules.push(format!(
        "[[rule]]\nlane = \"curator\"\nwhen.last_role = \"user\"\ntimes = 1\nreply.calls = [{}]\n",
        calls.join(", ")
    ));
    let told = format!(
        "```yaml\nconsolidations:\n  - from: skill-1\n    into: {heir}\n    reason: alike\nprunings: []\n```\n"
    );
    let words = if stream.chance(1, 2) { &*told } else { "Some went into others." };
    lane(draft, "curator", &[], words);
}

fn review_call(stream: &mut Stream, n: u64) -> String {
    match stream.below(8) {
        0 => format!("{{ tool = \"terminal\", args = {{ command = \"echo review {n}\" }} }}"),
        1 => "{ tool = \"terminal\", args = { command = \"rm -rf ./dist\" } }".to_owned(),
        2 | 3 => format!(
            "{{ tool = \"memory\", args = {{ action = \"add\", target = \"{}\", content = \"Learned in review: {}\" }} }}",
            stream.pick(&["memory", "user"]),
            phrase(stream, n)
        ),
        4 => skill_create(&format!("learned-{n}"), n),
        5 => skill_patch(&format!("skill-{}", stream.below(4)), n),
        6 => format!("{{ tool = \"skill_view\", args = {{ name = \"skill-{}\" }} }}", stream.below(4)),
        _ => "{ tool = \"skills_list\" }".to_owned(),
    }
}

fn skill_create(name: &str, n: u64) -> String {
    format!(
        "{{ tool = \"skill_manage\", args = {{ action = \"create\", name = \"{name}\", content = \"---\\nname: {name}\\n\
         description: Use when errand {n} comes up.\\n---\\n\\n1. `echo {n}`\\n\" }} }}"
    )
}

fn skill_patch(name: &str, n: u64) -> String {
    format!(
        "{{ tool = \"skill_manage\", args = {{ action = \"patch\", name = \"{name}\", old_string = \"echo\", \
         new_string = \"echo {n}\" }} }}"
    )
}

/// Words that differ with `n`, in more than one script.
fn phrase(stream: &mut Stream, n: u64) -> String {
    let words =
        ["harbour", "lamp", "字典", "rivière", "seven", "Übung", "copper", "🌊 tide", "ledger", "north"];
    let count = stream.between(2, 24);
    let mut text = format!("point {n}");
    for _ in 0..count {
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!(" {}", stream.pick(&words)));
    }
    text
}

/// Kinds of fault, of which a run draws some.
const FAULT_KINDS: u64 = 9;

fn faults(stream: &mut Stream, draft: &mut Draft) {
    let on: Vec<u64> = (0..FAULT_KINDS).filter(|_| stream.chance(1, 4)).collect();
    if on.is_empty() {
        return;
    }
    let often = stream.pick(&[2, 4, 4, 8]);
    for step in &mut draft.steps {
        if !stream.chance(1, *often) {
            continue;
        }
        let count = if stream.chance(1, 4) { 2 } else { 1 };
        for _ in 0..count {
            let kind = stream.pick(&on);
            step.faults.push(fault(stream, *kind));
        }
    }
}

/// One fault of a kind. Small ordinals come up more often; large ones reach the last event and write of a long turn.
fn fault(stream: &mut Stream, kind: u64) -> String {
    let ordinal = |stream: &mut Stream, most: u64| {
        let most = if stream.chance(1, 3) { most } else { most / 5 };
        stream.between(1, most.max(1))
    };
    match kind {
        0 => format!("crash.after_event = {}", ordinal(stream, 120)),
        1 => format!("crash.before_write = {}", ordinal(stream, 60)),
        2 => format!(
            "provider = {{ fault = \"{}\", lane = \"{}\", request = {}, times = {} }}",
            stream.pick(&PROVIDER_FAULTS),
            stream.pick(&["main", "main", "review", "summary", "child", "cron", "approver"]),
            stream.between(1, 6),
            stream.between(1, 4)
        ),
        3 => {
            format!("busy = {{ write = {}, times = {} }}", ordinal(stream, 30), stream.pick(&[1, 3, 20, 400]))
        }
        4 => {
            format!(
                "disk_full = {{ write = {}, times = {} }}",
                ordinal(stream, 40),
                stream.pick(&[1, 2, 4, 60])
            )
        }
        5 => {
            let most = if stream.chance(1, 6) { 60_000 } else { 3_000 };
            let by = stream.between(1, most).cast_signed();
            format!("clock.jump_minutes = {}", if stream.chance(1, 2) { by } else { -by })
        }
        6 => format!("cancel_review.request = {}", stream.between(1, 4)),
        7 => format!("tick.in_compaction = {}", stream.between(1, 2)),
        _ => format!("interleave.request = {}", stream.between(1, 6)),
    }
}

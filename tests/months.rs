//! Lives of months, and sweeps over them.

use std::num::NonZeroUsize;

use hermes_lab::lab::life::{self, Kind, Where};
use hermes_lab::lab::play::Plan;
use hermes_lab::lab::sweep::shipped::QUESTIONS;
use hermes_lab::lab::sweep::{Axis, Sweep, World, merge};

use crate::support::{lab, refused, stdout};

fn small(threads: usize, shard: (u64, u64)) -> hermes_lab::lab::sweep::Results {
    let sweep = Sweep {
        world: World::Life(Kind::OnCall, 4),
        axes: vec![Axis::parse("review.skill_interval=4..12:4").unwrap()],
        seeds: 2,
        plan: Plan::default(),
    };
    sweep.run(shard, NonZeroUsize::new(threads).unwrap()).unwrap()
}

#[test]
fn the_curator_keeps_the_catalogue_smaller_than_it_grows_without() {
    let life = life::whole(Kind::OnCall, 63, 1, &Plan::default()).unwrap();
    let (with, without) = (&life.variants[0], &life.variants[1]);
    let last = |lived: &life::Lived| lived.days.last().unwrap().catalogue_lines;
    assert!(with.days.iter().any(|day| day.skills_archived > 0));
    assert!(without.days.iter().all(|day| day.skills_archived == 0));
    assert!(last(with) < last(without), "{} and {}", last(with), last(without));
    assert!(with.days.iter().any(|day| day.skills_used > 0), "no runbook was ever used");
}

#[test]
fn facts_in_memory_and_skills_outlive_compactions_that_facts_in_the_history_do_not() {
    let life = life::whole(Kind::Chat, 16, 1, &Plan::default()).unwrap();
    let seen = |place: Where| {
        let rows = life.variants[0].survival.iter().filter(|row| row.place == place && row.compactions >= 2);
        rows.fold((0, 0), |(facts, seen), row| (facts + row.facts, seen + row.seen))
    };
    let (history, memory, skill) = (seen(Where::History), seen(Where::Memory), seen(Where::Skill));
    let learned = seen(Where::Learned);
    assert!(history.0 > 0 && history.1 < history.0, "{history:?}");
    assert!(memory.0 > 0 && memory.1 == memory.0, "{memory:?}");
    assert!(skill.0 > 0 && skill.1 == skill.0, "{skill:?}");
    assert!(learned.0 > 0 && learned.1 * history.0 > history.1 * learned.0, "{learned:?} and {history:?}");
}

#[test]
fn shards_put_together_are_the_sweep_on_any_number_of_threads() {
    let whole = small(1, (1, 1));
    assert_eq!(whole, small(16, (1, 1)));
    let parts: Vec<_> = (1..=3).rev().map(|i| (format!("{i}.json"), small(2, (i, 3)))).collect();
    assert_eq!(merge(parts.clone()).unwrap(), whole);
    assert!(merge(parts[..2].to_vec()).unwrap_err().contains("rows are there"));
    let twice = vec![parts[0].clone(), parts[0].clone()];
    assert!(merge(twice).unwrap_err().contains("twice"));
}

#[test]
fn a_part_of_another_sweep_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let save = |name: &str, range: &str| {
        stdout(&["sweep", "--scenario", "errands", "--set", range, "--save", &file(name)], 0);
    };
    save("a", "memory.chars_max=500..700:100");
    save("b", "memory.chars_max=500..800:100");
    assert!(refused(&["merge", &file("a"), &file("b")]).contains("another sweep"));
    assert!(stdout(&["merge", &file("a")], 0).starts_with("errands, 1 seeds a point"));
    assert!(refused(&["merge", "README.md"]).contains("not the results of a sweep"));
}

#[test]
fn a_range_is_read_exactly_and_a_wrong_one_is_explained() {
    let axis = Axis::parse("compress.threshold=0.3..0.6:0.1").unwrap();
    assert_eq!(serde_json::to_string(&axis.values).unwrap(), "[0.3,0.4,0.5,0.6]");
    let errors: Vec<String> = [
        "memory.chars_max",
        "memory.chars_mx=1..2",
        "memory.chars_max=9..2",
        "memory.chars_max=1..9:0",
        "memory.chars_max=a..9",
        "memory.chars_max=-5..5:5",
        "review.skill_interval=1..9000000",
    ]
    .iter()
    .map(|text| Axis::parse(text).unwrap_err())
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
    assert!(refused(&["sweep", "--set", "memory.chars_max=1..2", "--shard", "4/3"]).contains("i/n"));
}

#[test]
fn every_question_asks_about_a_knob_whose_default_lies_in_its_range() {
    for question in QUESTIONS {
        let axis = Axis::parse(question.range).unwrap();
        let Some(default) = question.default() else { continue };
        let ends = (axis.values[0].as_f64().unwrap(), axis.values.last().unwrap().as_f64().unwrap());
        assert!(ends.0 <= default && default <= ends.1, "{}: {default}", question.name);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the report is a file of the project")]
fn a_shipped_sweep_says_what_the_report_says() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/sweeps.md")).unwrap();
    let question = QUESTIONS.iter().find(|question| question.name == "skill-interval").unwrap();
    let results = question.sweep().run((1, 1), hermes_lab::lab::runs::threads()).unwrap();
    let table = hermes_lab::report::sweep::text(&results, &[question.cost, question.benefit]);
    assert!(
        page.contains(&table),
        "reports/sweeps.md is out of date: hermes-lab sweep --shipped reports\n{table}"
    );
}

#[test]
fn a_life_is_a_scenario_that_anybody_can_play() {
    let text = stdout(&["life", "on-call", "--days", "2", "--print"], 0);
    assert!(hermes_lab::scenario::load("on-call.toml", &text).is_ok());
    let code = lab(&["life", "on-call", "--days", "2", "--json"]).status.code();
    assert_eq!(code, Some(0));
}

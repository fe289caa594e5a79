//! The regression suite and the learning loop: everything holds, everything can fail, reports are what they say.
#![expect(clippy::disallowed_methods, reason = "baselines, pages and reports are files")]

use hermes_lab::lab::expect;
use hermes_lab::lab::play::Plan;
use hermes_lab::lab::suite::{self, compare, learning, prove};
use hermes_lab::policy::Overlay;
use hermes_lab::{report, scenario};

use crate::support::{refused, stdout};

fn root(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn turned(set: &str) -> suite::Suite {
    let plan = Plan { above: vec![Overlay::parse_turn(set).unwrap()], ..Plan::default() };
    suite::regression(&plan, &[format!("--set {set}")])
}

#[test]
fn every_task_of_the_set_holds() {
    let played = suite::regression(&Plan::default(), &[]);
    for task in &played.tasks {
        assert!(task.holds, "{}: {:?} {:#?} {:#?}", task.task, task.error, task.verdicts, task.findings);
        assert!(!task.verdicts.is_empty() && !task.inputs.is_empty() && task.ledger_digest.len() == 64);
    }
    assert!(played.holds);
    insta::assert_snapshot!(report::suite::regression(&played, None));
}

#[test]
fn every_expectation_is_made_to_fail_by_what_its_scenario_names() {
    let proofs = prove::prove();
    let problems: Vec<_> = proofs.iter().filter(|proof| proof.problem.is_some()).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn a_tamper_that_changes_nothing_would_be_reported() {
    let (name, text) = scenario::suite()[0];
    let scenario = suite::task(name).unwrap();
    let idle = scenario::TamperSpec {
        name: "nothing".to_owned(),
        find: None,
        put: None,
        turn: toml::from_str("'turn.iterations_max' = 90").unwrap(),
        fails: vec![scenario.expects[0].title()],
    };
    let problem = prove::carry_out(&scenario, text, &idle).unwrap_err();
    assert!(problem.starts_with("still holds"), "{problem}");
}

#[test]
fn a_record_fits_its_schema_and_a_changed_one_does_not() {
    let schema: serde_json::Value = serde_json::from_str(&stdout(&["suite", "schema"], 0)).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut record: serde_json::Value =
        serde_json::from_str(&stdout(&["suite", "regression", "--json"], 0)).unwrap();
    assert!(schema.is_valid(&record), "{:?}", schema.iter_errors(&record).next());
    record["tasks"][0]["tokens"]["main"]["read"] = (-1).into();
    assert!(!schema.is_valid(&record));
}

#[test]
fn a_baseline_is_compared_and_a_break_is_a_regression() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (baseline, page) = (at("base.json"), at("page.html"));
    stdout(&["suite", "regression", "--save", &baseline], 0);
    let same = stdout(&["suite", "regression", "--against", &baseline, "--html", &page], 0);
    assert!(same.ends_with("nothing moved against the baseline\n"), "{same}");
    let broken = stdout(&["suite", "regression", "--against", &baseline, "--break", "D6"], 1);
    assert!(broken.contains("found-once") && broken.contains("regression"), "{broken}");
    let page = std::fs::read_to_string(page).unwrap();
    for word in ["http://", "https://cdn", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn bad_input_is_told_and_nothing_is_played() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.json");
    let path = file.to_str().unwrap();
    for (text, said) in [
        ("{", "not JSON"),
        ("{}", "no saved suite"),
        ("{\"schema\": 9}", "schema 9 is not known"),
        ("{\"schema\": 1, \"tasks\": 3}", "no saved suite"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = refused(&["suite", "regression", "--against", path]);
        assert!(error.contains(said), "{error}");
    }
    assert!(refused(&["suite", "regression", "--break", "D999"]).contains("unknown break"));
    assert!(
        refused(&["suite", "regression", "--set", "terminal.confind=false"]).contains("terminal.confined")
    );
}

#[test]
fn an_expectation_that_names_no_figure_is_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml");
    std::fs::write(&file, "format = 1\nname = 'x'\n[[expect]]\nfigure = 'anwers'\nis = 0\n").unwrap();
    let error = refused(&["run", file.to_str().unwrap()]);
    assert!(error.contains("unknown figure `anwers`") && error.contains("`answers`"), "{error}");
    for (name, _) in scenario::suite().iter().chain(scenario::learning()) {
        assert_eq!(expect::unknown(&suite::task(name).unwrap()), [], "{name}");
    }
}

#[test]
fn a_scenario_says_which_expectation_it_does_not_know() {
    let faults = |more: &str| {
        let text = format!("format = 1\nname = 'x'\n[[expect]]\nfigure = 'answers'\nis = 0\n{more}");
        let faults = scenario::load("x.toml", &text).unwrap_err();
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let near = faults("[[tamper]]\nname = 't'\nturn = { 'turn.platform' = 'x' }\nfails = ['answer']");
    assert!(near.contains("unknown expectation `answer`, did you mean `answers`?"), "{near}");
    let two = faults("[[expect]]\nfigure = 'answers'\nfile = 'a'\nis = 0");
    assert!(two.contains("one subject, found answers and file a"), "{two}");
    assert!(faults("[[expect]]\nran = 'x'").contains("asks something"));
    assert!(faults("[[arm]]\nname = 'a'\nturn = { 'turn.platfrm' = 'x' }").contains("turn.platform"));
}

#[test]
fn a_break_of_a_mechanism_makes_the_task_fail_that_needs_it() {
    let fails = |set: &str| -> Vec<String> {
        turned(set).tasks.into_iter().filter(|task| !task.holds).map(|task| task.task).collect()
    };
    assert_eq!(fails("search.verbatim=false"), ["recall"]);
    assert_eq!(fails("terminal.confined=false"), ["isolation"]);
    // The endless loop is run again, too.
    assert_eq!(fails("turn.retry_unknown=true"), ["isolation", "unknown-write"]);
    assert_eq!(fails("cron.allow_agent_scheduling=true"), ["schedules"]);
}

#[test]
fn tokens_that_grow_beyond_the_tolerance_are_a_regression_and_fewer_are_none() {
    let before = suite::regression(&Plan::default(), &[]);
    let mut after = before.clone();
    let grow = |suite: &mut suite::Suite, by: u64| {
        suite.tasks[0].tokens.get_mut("main").unwrap().uncached += by;
    };
    grow(&mut after, 1);
    assert!(compare::compare(&before, &after).iter().all(|moved| !moved.worse));
    grow(&mut after, 100_000);
    assert!(compare::compare(&before, &after).iter().any(|moved| moved.worse));
    assert!(compare::compare(&after, &before).iter().all(|moved| !moved.worse));
}

#[test]
fn every_missing_link_makes_the_later_tasks_worse_and_bad_skills_are_caught_where_it_is_said() {
    let measured = learning::measure().unwrap();
    let arms = measured.hazards.iter().chain([&measured.links]).flat_map(|arms| &arms.arms);
    for arm in arms {
        assert!(arm.problems.is_empty(), "{}: {:#?}", arm.name, arm.problems);
        assert!(
            !arm.findings.iter().any(|check| check.starts_with("L1")),
            "{}: {:?}",
            arm.name,
            arm.findings
        );
    }
    assert!(measured.links.arms.len() > 8 && measured.holds);
    insta::assert_snapshot!(report::learning::text(&measured));
    let readme = std::fs::read_to_string(root("README.md")).unwrap();
    assert!(
        readme.contains(&report::learning::links_markdown(&measured)),
        "the README's table of links is what `hermes-lab suite learning --markdown` prints"
    );
    for (name, text) in report::learning::files(&measured) {
        let kept = std::fs::read_to_string(root(&format!("reports/{name}"))).unwrap_or_default();
        assert!(kept == text, "reports/{name} is not what `hermes-lab suite learning --out reports` writes");
    }
}

#[test]
fn the_ablation_report_is_what_the_breaks_show() {
    let rows = suite::ablation::ablation().unwrap();
    assert!(rows.iter().all(|row| row.shown.holds && !row.shown.caught_by.is_empty()));
    for (name, text) in report::ablation::files(&rows) {
        let kept = std::fs::read_to_string(root(&format!("reports/{name}"))).unwrap_or_default();
        assert!(kept == text, "reports/{name} is not what `hermes-lab suite ablation --out reports` writes");
    }
}

//! Every observed outcome in `tests/vectors` is replayed. `LAB_VECTORS=guard` narrows to one file and prints more.

use hermes_lab::lab::conform::{Report, Vector, deliberate, replay_all};

#[expect(clippy::disallowed_methods, reason = "a test reads its own data files")]
fn load(only: Option<&str>) -> Vec<Vec<Vector>> {
    let folder = format!("{}/tests/vectors", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
        .into_iter()
        .filter(|path| only.is_none_or(|only| path.file_stem().is_some_and(|stem| stem == only)))
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| Vector::parse(line).unwrap()).collect()
        })
        .collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a person narrows the test by the environment")]
fn the_runtime_agrees_with_the_observed_outcomes() {
    let only = std::env::var("LAB_VECTORS").ok().filter(|only| !only.is_empty());
    let mut report = Report::default();
    for vectors in load(only.as_deref()) {
        report.extend(replay_all(&vectors, |_| true));
    }
    for replayed in report.undeclared().take(60) {
        println!("{} {} {}", replayed.vector.id, replayed.vector.mechanism, replayed.trouble());
    }
    let (mut all, mut agree) = (0, 0);
    for (family, tally) in report.by_family() {
        println!("{family:16} {:>5} of {:>5}, {} deliberate", tally.agree, tally.vectors, tally.deliberate);
        assert!(tally.agree * 100 >= tally.vectors * 98, "{family}: {} of {}", tally.agree, tally.vectors);
        all += tally.vectors;
        agree += tally.agree;
    }
    assert!(agree * 1_000 >= all * 990, "{agree} of {all}");
    assert_eq!(report.undeclared().count(), 0, "an undeclared difference");
}

#[test]
fn every_deliberate_difference_names_a_vector_that_differs() {
    let mut report = Report::default();
    for vectors in load(None) {
        report.extend(replay_all(&vectors, |_| true));
    }
    for (id, reason) in deliberate().vectors {
        let replayed = report.find(&id).unwrap_or_else(|| panic!("{id} is no vector"));
        assert!(!replayed.agrees(), "{id} agrees now; strike it from the list");
        assert!(reason.len() > 20, "{id} needs a reason");
    }
}

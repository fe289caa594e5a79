//! Every observed outcome in `tests/vectors` is replayed; `LAB_VECTORS=guard` narrows to one file and prints more.

use std::collections::BTreeMap;

use hermes_lab::lab::conform::{FAMILIES, Fixtures, Outcome, Vector};

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own data files")]
fn the_runtime_agrees_with_the_observed_outcomes() {
    let only = std::env::var("LAB_VECTORS").ok();
    let mut table: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut shown = 0;
    for (family, _) in FAMILIES {
        if only.as_deref().is_some_and(|only| only != *family) {
            continue;
        }
        let path = format!("{}/tests/vectors/{family}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let vectors: Vec<Vector> = text.lines().map(|line| Vector::parse(line).unwrap()).collect();
        let fixtures = Fixtures::of(&vectors);
        for vector in vectors {
            let row = table.entry(vector.mechanism.clone()).or_default();
            row.0 += 1;
            let trouble = match vector.run(&fixtures) {
                Ok(Outcome::Agrees) => {
                    row.1 += 1;
                    continue;
                }
                Ok(Outcome::Differs { first, .. }) => first,
                Err(error) => error.to_string(),
            };
            shown += 1;
            if shown <= 60 {
                println!("{} {} [{}] {trouble}", vector.id, vector.mechanism, vector.note);
            }
        }
    }
    for (mechanism, (all, agree)) in &table {
        println!("{mechanism:40} {agree:>5} of {all:>5}");
    }
    let (all, agree) = table.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    println!("{agree} of {all}");
    assert!(agree * 100 >= all * 98, "agreement below 98 %: {agree} of {all}");
}

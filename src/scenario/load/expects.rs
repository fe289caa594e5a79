//! Checks of what a scenario expects, of its tampers and of its arms.

use std::collections::BTreeSet;

use super::Reader;
use crate::scenario::{ArmSpec, ExpectSpec, TamperSpec};

impl Reader<'_> {
    /// One subject each, something asked of it, names told apart, and known where they are referred to.
    pub(super) fn check_expects(
        &mut self,
        expects: &[(usize, ExpectSpec)],
        tampers: &[(usize, TamperSpec)],
        arms: &[(usize, ArmSpec)],
    ) {
        let mut names = BTreeSet::new();
        for (at, expect) in expects {
            let subjects = expect.subjects();
            match subjects.as_slice() {
                [] => self.fault(
                    *at,
                    "an expectation needs a subject: figure, law, file, home, changed, sent, stored, ran or order",
                ),
                [_] => {}
                several => {
                    self.fault(*at, format!("an expectation has one subject, found {}", several.join(" and ")));
                }
            }
            if !expect.asks() {
                self.fault(*at, "an expectation asks something: is, has, lacks, at_most, at_least or absent");
            }
            if let Some(lane) = &expect.lane {
                self.check_lane(*at, lane);
            }
            // Figures that are looked at twice are told apart by a name where somebody refers to them.
            if !names.insert(expect.title()) && expect.name.is_some() {
                self.fault(*at, format!("the expectation `{}` is given twice", expect.title()));
            }
        }
        for (at, tamper) in tampers {
            if tamper.find.is_some() != tamper.put.is_some() {
                self.fault(*at, "`find` and `put` go together");
            }
            if tamper.find.is_none() && tamper.turn.is_empty() {
                self.fault(*at, "a tamper needs `find` and `put`, or `turn`");
            }
            if tamper.fails.is_empty() {
                self.fault(*at, "a tamper names the expectations that it makes fail");
            }
            self.known(*at, &tamper.fails, &names);
            self.overlay(*at, &tamper.turn);
        }
        self.check_names(arms, |arm: &ArmSpec| &arm.name, "arm");
        for (at, arm) in arms {
            self.known(*at, &arm.fails, &names);
            self.overlay(*at, &arm.turn);
        }
    }

    fn known(&mut self, at: usize, named: &[String], names: &BTreeSet<String>) {
        for name in named.iter().filter(|name| !names.contains(*name)) {
            self.unknown(at, "expectation", name, names.iter().map(String::as_str));
        }
    }
}

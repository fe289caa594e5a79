//! Which standing facts a real summary keeps.
//!
//! A standing fact is a line of the user, or of a file of the workspace, that begins with `Remember:` or another word of a
//! lasting instruction and holds what matters in back quotes: "Remember: the staging port is `8443`." It survives a
//! compaction when all that stood in back quotes still stands in the request that follows, wherever that is: summary,
//! carried instruction, untouched row. A fact that no request ever held was not told, and cannot be lost.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::ledger::{Lane, What, rebuild::Rebuild};
use crate::live::suites::Run;
use crate::scenario::{Act, Scenario};
use crate::wire::Level;

/// How lines begin that are meant to last.
const STANDING: [&str; 5] = ["remember:", "always ", "never ", "from now on", "请记住"];

/// One fact in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The run.
    pub run: String,
    /// The line.
    pub line: String,
    /// True when some request held it.
    pub told: bool,
    /// What of it must survive, word for word.
    pub essence: Vec<String>,
    /// The first compaction behind which some of it is missing, from 1; none when it survived all.
    pub lost_at: Option<u64>,
    /// True when the last answer of the run says it.
    pub answered: bool,
}

/// All facts of all runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The facts.
    pub facts: Vec<Fact>,
    /// Compactions that were carried out.
    pub compactions: u64,
    /// Those whose summary the model wrote.
    pub by_model: u64,
}

impl Facts {
    pub(super) fn of(runs: &[Run]) -> Self {
        let mut all = Self { facts: Vec::new(), compactions: 0, by_model: 0 };
        for run in runs {
            all.look(run);
        }
        all
    }

    fn look(&mut self, run: &Run) {
        let mut facts: Vec<Fact> = standing(&run.scenario)
            .into_iter()
            .map(|(line, essence)| Fact {
                run: run.name.clone(),
                line,
                essence,
                told: false,
                lost_at: None,
                answered: false,
            })
            .collect();
        let mut rebuild = Rebuild::default();
        let mut main = BTreeSet::new();
        let (mut count, mut due, mut last) = (0, false, "");
        for event in &run.played.ledger.events {
            match &event.what {
                What::Compaction(compaction) if compaction.committed => {
                    count += 1;
                    self.by_model += u64::from(&*compaction.summary == "model");
                    due = true;
                }
                What::Request(request) => {
                    let Some(rebuilt) = rebuild.apply(event) else { continue };
                    if request.lane != Lane::Main {
                        continue;
                    }
                    main.insert(request.id);
                    let Some(conversation) = rebuild.conversation(&rebuilt.key) else { continue };
                    let messages = conversation.segments.iter().filter(|seg| seg.level == Level::Messages);
                    let text: String = messages.map(|segment| &*segment.text).collect();
                    for fact in &mut facts {
                        let there = fact.essence.iter().all(|part| text.contains(part.as_str()));
                        if due && !there && fact.told && fact.lost_at.is_none() {
                            fact.lost_at = Some(count);
                        }
                        fact.told |= there;
                    }
                    due = false;
                }
                What::Response(response) if main.contains(&response.request) && !response.text.is_empty() => {
                    last = &response.text;
                }
                _ => {}
            }
        }
        for fact in &mut facts {
            fact.answered = fact.essence.iter().all(|part| last.contains(part.as_str()));
        }
        self.compactions += count;
        self.facts.extend(facts);
    }

    /// True when the model summarised at least once and every fact survived.
    pub fn holds(&self) -> bool {
        self.by_model > 0
            && self.facts.iter().any(|fact| fact.told)
            && self.facts.iter().all(|fact| fact.lost_at.is_none())
    }
}

/// The standing facts that a scenario's users and files tell, each with its essence.
fn standing(scenario: &Scenario) -> Vec<(String, Vec<String>)> {
    let turns = scenario.acts.iter().filter_map(|act| match act {
        Act::Turn(turn) => Some(turn.said()),
        _ => None,
    });
    let said: Vec<String> = turns.flatten().map(|(_, say)| say).collect();
    let files = scenario.files.iter().map(|file| &file.text);
    let lines = said.iter().chain(files).flat_map(|text| text.lines()).map(str::trim);
    let standing = lines.filter(|line| {
        let lower = line.to_lowercase();
        STANDING.iter().any(|start| lower.starts_with(start))
    });
    let facts = standing.map(|line| {
        let essence: Vec<String> = line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (line.to_owned(), essence)
    });
    facts.filter(|(_, essence)| !essence.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_fact_is_a_lasting_line_with_something_in_back_quotes() {
        let text = "format = 1\nname = \"t\"\n[[act]]\nopen.name = \"s\"\n[[act]]\nturn.say = \"\"\"\nHello.\nRemember: \
                    port `8443`, host `a.example`.\nRemember this, too: `no`.\nAlways be kind.\n\"\"\"\n";
        let scenario = crate::scenario::load("t", text).unwrap();
        let facts = standing(&scenario);
        assert_eq!(facts.len(), 1, "{facts:?}");
        assert_eq!(facts[0].1, ["8443", "a.example"]);
    }
}

//! The record of one task: what went in, what came out, what it took, and what outside evidence says of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cache::prices::Prices;
use crate::cache::usage::Parts;
use crate::lab::expect::{self, Judged};
use crate::lab::figures::figure;
use crate::lab::play::{Plan, PlayError, Played, policy_digest, policy_of};
use crate::laws;
use crate::ledger::{Ledger, What, hex};
use crate::scenario::{Act, Scenario};
use crate::units::Usd;

/// The record of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRun {
    /// Name of the task.
    pub task: String,
    /// One line for lists.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// SHA-256 of the scenario's text.
    pub scenario_digest: String,
    /// SHA-256 over every knob and its value.
    pub policy_digest: String,
    /// Seed of the run.
    pub seed: u64,
    /// Digest of the ledger; empty when the task could not be played.
    pub ledger_digest: String,
    /// What users and schedules said.
    pub inputs: Vec<String>,
    /// What is there afterwards.
    pub end: End,
    /// Every tool call that was dispatched or refused, in order.
    pub tool_trace: Vec<Call>,
    /// Tokens by lane and class.
    pub tokens: BTreeMap<String, Tokens>,
    /// What the tokens cost, in millionths of a dollar; none where the model has no price.
    pub cost_microdollars: Option<u64>,
    /// Calls that changed something and ran before with the same arguments.
    pub repeated_actions: u64,
    /// Calls that were refused.
    pub refusals: u64,
    /// Steps whose outcome is unknown.
    pub unknown_outcomes: u64,
    /// Rates that the task is about, in thousandths.
    pub rates: BTreeMap<String, u64>,
    /// Verdicts of outside evidence.
    pub verdicts: Vec<Judged>,
    /// What the laws found.
    pub findings: Vec<Found>,
    /// Why the task could not be played; none when it was.
    pub error: Option<String>,
    /// True when it was played, every verdict holds and no law was broken.
    pub holds: bool,
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct End {
    /// Files of the workspace.
    pub files: BTreeMap<String, FileEnd>,
    /// Those that were made, changed or removed.
    pub changed: Vec<String>,
    /// Files of the home.
    pub home: BTreeMap<String, FileEnd>,
    /// Stored rows by session.
    pub rows: BTreeMap<String, u64>,
    /// How turns ended.
    pub turn_exits: BTreeMap<String, u64>,
    /// Answers that reached their reader.
    pub delivered: u64,
    /// Answers that did not.
    pub undelivered: u64,
}

/// A file at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEnd {
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: String,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Session.
    pub session: String,
    /// Lane.
    pub lane: String,
    /// The tool and what the call was mainly about.
    pub call: String,
    /// `ok`, `failed`, `unknown`, or `refused by …`.
    pub outcome: String,
}

/// Tokens by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Requests that were answered.
    pub requests: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written for five minutes.
    pub write_5m: u64,
    /// Written for an hour.
    pub write_1h: u64,
    /// Neither read nor written.
    pub uncached: u64,
    /// Produced.
    pub output: u64,
}

impl Tokens {
    /// All input classes together.
    pub fn prompt(&self) -> u64 {
        self.read + self.write_5m + self.write_1h + self.uncached
    }
}

/// What a law found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The check.
    pub check: String,
    /// The event of the ledger.
    pub event: u64,
    /// What was seen.
    pub evidence: String,
}

impl TaskRun {
    /// The record of a run, or of the reason why there is none.
    pub fn of(scenario: &Scenario, plan: &Plan, played: Result<Played, PlayError>) -> Self {
        let policy = policy_of(scenario, plan);
        let mut run = Self {
            task: scenario.name.clone(),
            title: scenario.title.clone(),
            about: scenario.about.trim().to_owned(),
            scenario_digest: scenario.digest.clone(),
            policy_digest: policy.as_ref().map(policy_digest).unwrap_or_default(),
            seed: plan.seed.unwrap_or(scenario.seed),
            ledger_digest: String::new(),
            inputs: inputs(scenario),
            end: End::default(),
            tool_trace: Vec::new(),
            tokens: BTreeMap::new(),
            cost_microdollars: None,
            repeated_actions: 0,
            refusals: 0,
            unknown_outcomes: 0,
            rates: BTreeMap::new(),
            verdicts: Vec::new(),
            findings: Vec::new(),
            error: None,
            holds: false,
        };
        match played {
            Ok(played) => {
                let model = policy.map(|policy| policy.prompt.model).unwrap_or_default();
                run.take(scenario, &played, &model);
            }
            Err(error) => run.error = Some(error.to_string()),
        }
        run
    }

    fn take(&mut self, scenario: &Scenario, played: &Played, model: &str) {
        let ledger = &played.ledger;
        let count = |name: &str| figure(name).and_then(|figure| figure.of(ledger).as_u64()).unwrap_or(0);
        self.ledger_digest = ledger.digest();
        self.end = end_of(played, count("answers"), count("undelivered"));
        self.tool_trace = trace(ledger);
        self.tokens = tokens(ledger);
        self.cost_microdollars = cost(ledger, model);
        self.repeated_actions = count("repeated_actions");
        self.refusals = count("tools_refused");
        self.unknown_outcomes = count("unknown_outcomes");
        if figure("trigger_prompts")
            .is_some_and(|figure| figure.of(ledger).as_object().is_some_and(|m| !m.is_empty()))
        {
            for name in ["missed_trigger_rate", "false_trigger_rate"] {
                self.rates.insert(name.to_owned(), count(name));
            }
        }
        self.verdicts = expect::judge(scenario, played);
        let verdict = laws::judge(ledger);
        self.findings = verdict
            .findings()
            .map(|finding| Found {
                check: finding.check.to_owned(),
                event: finding.event,
                evidence: finding.evidence.clone(),
            })
            .collect();
        self.holds = self.findings.is_empty() && self.verdicts.iter().all(|judged| judged.holds);
    }

    /// Tokens of all lanes together.
    pub fn all_tokens(&self) -> Tokens {
        self.tokens.values().fold(Tokens::default(), |sum, lane| Tokens {
            requests: sum.requests + lane.requests,
            read: sum.read + lane.read,
            write_5m: sum.write_5m + lane.write_5m,
            write_1h: sum.write_1h + lane.write_1h,
            uncached: sum.uncached + lane.uncached,
            output: sum.output + lane.output,
        })
    }
}

fn inputs(scenario: &Scenario) -> Vec<String> {
    let mut all: Vec<String> = scenario.jobs.iter().map(|job| job.prompt.clone()).collect();
    for act in &scenario.acts {
        if let Act::Turn(turn) = act {
            all.extend((!turn.say.is_empty()).then(|| turn.say.clone()));
            all.extend(turn.say_each.iter().cloned());
        }
    }
    all
}

fn end_of(played: &Played, delivered: u64, undelivered: u64) -> End {
    let files = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, FileEnd> {
        let end =
            |bytes: &Vec<u8>| FileEnd { bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) };
        files.iter().map(|(path, bytes)| (path.clone(), end(bytes))).collect()
    };
    let mut turn_exits = BTreeMap::new();
    for event in &played.ledger.events {
        if let What::TurnEnded(ended) = &event.what {
            *turn_exits.entry(ended.exit.to_string()).or_insert(0) += 1;
        }
    }
    End {
        files: files(&played.end.workspace),
        changed: played.end.changed().into_iter().map(str::to_owned).collect(),
        home: files(&played.end.home),
        rows: played.end.stored.iter().map(|(session, rows)| (session.clone(), rows.len() as u64)).collect(),
        turn_exits,
        delivered,
        undelivered,
    }
}

fn trace(ledger: &Ledger) -> Vec<Call> {
    let calls = ledger.events.iter().filter_map(|event| {
        let (lane, call, outcome) = match &event.what {
            What::ToolRan(ran) => {
                let outcome = match (ran.outcome_unknown, ran.ok) {
                    (true, _) => "unknown".to_owned(),
                    (false, true) => "ok".to_owned(),
                    (false, false) => "failed".to_owned(),
                };
                (ran.lane, expect::call_line(&ran.tool, &ran.arguments), outcome)
            }
            What::ToolRefused(refused) => {
                (refused.lane, refused.tool.to_string(), format!("refused by {}", refused.by))
            }
            _ => return None,
        };
        Some(Call { session: event.session.to_string(), lane: lane.word().to_owned(), call, outcome })
    });
    calls.collect()
}

/// Lane of every request, to tell the classes of its answer apart.
fn answered(ledger: &Ledger) -> impl Iterator<Item = (&'static str, &crate::ledger::Usage)> {
    let lanes: BTreeMap<u64, &'static str> = ledger
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Request(request) => Some((request.id, request.lane.word())),
            _ => None,
        })
        .collect();
    ledger.events.iter().filter_map(move |event| match &event.what {
        What::Response(response) => Some((*lanes.get(&response.request)?, &response.usage)),
        _ => None,
    })
}

fn tokens(ledger: &Ledger) -> BTreeMap<String, Tokens> {
    let mut all: BTreeMap<String, Tokens> = BTreeMap::new();
    for (lane, usage) in answered(ledger) {
        let sum = all.entry(lane.to_owned()).or_default();
        sum.requests += 1;
        sum.read += usage.read;
        sum.write_5m += usage.write_5m;
        sum.write_1h += usage.write_1h;
        sum.uncached += usage.uncached;
        sum.output += usage.output;
    }
    all
}

/// What a run's tokens cost at this model's published price; none when it has none.
pub(super) fn cost(ledger: &Ledger, model: &str) -> Option<u64> {
    let prices = Prices::shipped();
    let price = prices.of(model, None).ok()?;
    let mut sum = Usd::ZERO;
    for (_, usage) in answered(ledger) {
        sum += price.cost(&Parts::from(usage));
    }
    u64::try_from(sum.pico() / 1_000_000).ok()
}

//! What a run has to say: as JSON while it goes on, as a page, as the summary at its end.

use serde::Serialize;
use serde_json::{Value, json};

use crate::audit::summary::summarise;
use crate::audit::{Audit, Judged};
use crate::cache::usage::Parts;
use crate::laws::Verdict;
use crate::ledger::Lane;
use crate::report::audit::View;
use crate::report::audit_html::{Part, page_of};
use crate::report::grouped;
use crate::serve::Outcome;

/// Version of the JSON answer.
pub const SCHEMA: &str = "hermes-lab.serve/1";

/// Refusals and faults that are told one by one; the rest is counted.
const TOLD: usize = 100;
/// Requests that a page shows; the rest is counted.
pub(super) const SHOWN: usize = 5_000;

/// Something that the provider did not answer with a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Number of the request among all that came.
    pub request: u64,
    /// Where: session of the ledger; empty where the request could not be read.
    pub session: String,
    /// The word: a code of the provider, or a fault of the script.
    pub kind: String,
    /// What was said to the client.
    pub message: String,
}

/// Sums of a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Requests by lane.
    pub lanes: [u64; Lane::ALL.len()],
    /// Requests by protocol: Messages, Chat Completions, Responses.
    pub shapes: [u64; 3],
    /// Tokens of what was answered.
    pub tokens: Parts,
    /// Requests that a provider would refuse; refused unless the run is lenient.
    pub refused: u64,
    /// The first of them.
    pub refusals: Vec<Trouble>,
    /// Faults that the scenario had the provider make.
    pub faults: u64,
    /// The first of them.
    pub faults_told: Vec<Trouble>,
    /// The first judgements of the audit, for the page.
    pub judged: Vec<Judged>,
}

impl Tally {
    pub(super) fn refusal(&mut self, trouble: Trouble) {
        self.refused += 1;
        if self.refusals.len() < TOLD {
            self.refusals.push(trouble);
        }
    }

    pub(super) fn fault(&mut self, trouble: Trouble) {
        self.faults += 1;
        if self.faults_told.len() < TOLD {
            self.faults_told.push(trouble);
        }
    }

    pub(super) fn judge(&mut self, judged: &Judged) {
        if self.judged.len() < SHOWN {
            self.judged.push(judged.clone());
        }
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> Value {
        let lanes: serde_json::Map<String, Value> = Lane::ALL
            .iter()
            .zip(self.lanes)
            .filter(|(_, count)| *count > 0)
            .map(|(lane, count)| (lane.word().to_owned(), count.into()))
            .collect();
        let [messages, chat, responses] = self.shapes;
        json!({
            "lanes": lanes,
            "protocols": {"messages": messages, "chat_completions": chat, "responses": responses},
            "tokens": self.tokens,
            "refused": {"count": self.refused, "first": self.refusals},
            "faults": {"count": self.faults, "first": self.faults_told},
        })
    }
}

/// The audit of a run as JSON: its summary, and where the prefix broke.
pub(super) fn audit(audit: &Audit) -> Value {
    let summary = summarise(audit);
    let name = |judged: &Judged| audit.name(judged.conversation);
    let findings: Vec<Value> = audit
        .samples
        .iter()
        .filter(|judged| judged.finding())
        .map(|judged| judged.to_json(&name(judged), &|text| Value::from(text)))
        .collect();
    json!({"summary": summary.to_json(&[]), "first_findings": findings})
}

/// The summary of a run, for people.
pub fn summary(outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let tokens = &tally.tokens;
    let mut text = format!(
        "{} requests, {} events, ledger {}\n",
        grouped(outcome.requests),
        grouped(outcome.events),
        &outcome.digest[..16]
    );
    let lanes: Vec<String> = Lane::ALL
        .iter()
        .zip(tally.lanes)
        .filter(|(_, count)| *count > 0)
        .map(|(lane, count)| format!("{} {}", grouped(count), lane.word()))
        .collect();
    if !lanes.is_empty() {
        text.push_str(&format!("lanes: {}\n", lanes.join(", ")));
    }
    text.push_str(&format!(
        "{} prompt tokens: {} read, {} written, {} neither; {} produced\n",
        grouped(tokens.prompt()),
        grouped(tokens.read),
        grouped(tokens.written()),
        grouped(tokens.fresh),
        grouped(tokens.output)
    ));
    if tally.faults > 0 {
        text.push_str(&format!("{} faults of the script\n", grouped(tally.faults)));
    }
    for trouble in &tally.refusals {
        text.push_str(&format!("refused: request {}: {}\n", trouble.request, trouble.message));
    }
    let untold = tally.refused - tally.refusals.len() as u64;
    if untold > 0 {
        text.push_str(&format!("and {} more refusals\n", grouped(untold)));
    }
    let breaks = outcome.audit.samples.iter().filter(|judged| judged.finding());
    for judged in breaks {
        text.push_str(&crate::report::audit::line(judged, &outcome.audit.name(judged.conversation), false));
    }
    text.push_str(&crate::report::run::findings(&outcome.verdict));
    text
}

/// The page of a run.
pub(super) fn page(scenario: &str, verdict: &Verdict, tally: &Tally, conversations: Vec<String>) -> String {
    let audit = Audit {
        requests: tally.judged.clone(),
        samples: Vec::new(),
        tally: crate::audit::summary::Tally::default(),
        conversations,
        pinned: Vec::new(),
    };
    let summary = summarise(&audit);
    let view = View { audit: &audit, readings: &[], summary: &summary, redact: false };
    let title = format!("Run of {scenario}");
    page_of(&view, Some((&title, &parts(verdict, tally))))
}

fn parts(verdict: &Verdict, tally: &Tally) -> [Part; 3] {
    let findings = verdict.findings().map(|finding| {
        vec![
            finding.check.to_owned(),
            finding.session.clone(),
            format!("event {}, {}", finding.event, finding.place),
            finding.evidence.clone(),
        ]
    });
    let troubles = |list: &[Trouble]| -> Vec<Vec<String>> {
        let row = |trouble: &Trouble| {
            let request = trouble.request.to_string();
            vec![request, trouble.session.clone(), trouble.kind.clone(), trouble.message.clone()]
        };
        list.iter().map(row).collect()
    };
    let columns = &["request", "session", "kind", "message"];
    [
        Part {
            head: "What the laws found",
            none: "Nothing.",
            columns: &["check", "session", "where", "evidence"],
            rows: findings.collect(),
        },
        Part {
            head: "What a provider refuses",
            none: "Nothing was refused.",
            columns,
            rows: troubles(&tally.refusals),
        },
        Part {
            head: "Faults of the script",
            none: "None so far.",
            columns,
            rows: troubles(&tally.faults_told),
        },
    ]
}

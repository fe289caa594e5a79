//! Loading a scenario: every fault of a file at once, each with its place.

mod calls;
mod expects;

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diag::{Diagnostic, did_you_mean};
use crate::ledger::{Lane, hex};
use crate::policy::{Overlay, Policy};
use crate::scenario::{Act, FaultSpec, ReplySpec, Scenario, fault};
use crate::world::faults::PROVIDER_FAULTS;

/// Version of the file format.
pub const FORMAT: i64 = 1;

/// Longest file that is read, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// Upper limit for repeated acts, so that no file runs for ever.
const TIMES_MAX: u64 = 1_000_000;

/// Loads a scenario; `file` names it in diagnostics.
///
/// # Errors
/// Every fault that can be found: bad TOML, unknown keys, wrong types, unknown knobs, tools, lanes and sessions,
/// duplicate names, values out of range.
pub fn load(file: &str, text: &str) -> Result<Scenario, Vec<Diagnostic>> {
    if text.len() > BYTES_MAX {
        let message = format!("{} bytes; the longest scenario is {BYTES_MAX}", text.len());
        return Err(vec![Diagnostic::of_file(file, message)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<Diagnostic> = errors.iter().map(|error| of_toml(file, text, error, None)).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut reader = Reader { file, text, faults: &mut faults, foreign: Vec::new() };
    let scenario = reader.scenario(table.into_inner());
    match scenario {
        Some(scenario) if faults.is_empty() => Ok(scenario),
        _ => Err(faults),
    }
}

fn of_toml(file: &str, text: &str, error: &toml::de::Error, fallback: Option<usize>) -> Diagnostic {
    let byte = error.span().map(|span| span.start).or(fallback);
    let message = error.message().trim().replace('\n', ", ");
    match byte {
        Some(byte) => Diagnostic::at_byte(file, text, byte, message),
        None => Diagnostic::of_file(file, message),
    }
}

/// Top-level keys that were not read yet.
type Fields<'t> = std::collections::BTreeMap<String, Spanned<DeValue<'t>>>;

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    faults: &'a mut Vec<Diagnostic>,
    /// Tools of other agents, as the file names them.
    foreign: Vec<String>,
}

impl Reader<'_> {
    fn fault(&mut self, byte: usize, message: impl Into<String>) {
        self.faults.push(Diagnostic::at_byte(self.file, self.text, byte, message));
    }

    /// Reads one value; a fault is noted and answers `None`.
    fn read<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> Option<T> {
        let start = value.span().start;
        match T::deserialize(toml::de::ValueDeserializer::from(value)) {
            Ok(read) => Some(read),
            Err(error) => {
                self.faults.push(of_toml(self.file, self.text, &error, Some(start)));
                None
            }
        }
    }

    /// Reads one top-level key, with its place.
    fn field<T: DeserializeOwned>(&mut self, fields: &mut Fields<'_>, key: &str) -> Option<(usize, T)> {
        let value = fields.remove(key)?;
        Some((value.span().start, self.read(value)?))
    }

    /// Reads a list of tables one by one, so that each faulty one is reported.
    fn list<T: DeserializeOwned>(&mut self, value: Option<Spanned<DeValue<'_>>>) -> Vec<(usize, T)> {
        let Some(value) = value else { return Vec::new() };
        let start = value.span().start;
        if let DeValue::Array(items) = value.into_inner() {
            items
                .into_iter()
                .filter_map(|item| {
                    let at = item.span().start;
                    Some((at, self.read(item)?))
                })
                .collect()
        } else {
            self.fault(start, "expected a list of tables, written as `[[…]]`");
            Vec::new()
        }
    }

    fn scenario(&mut self, table: DeTable<'_>) -> Option<Scenario> {
        /// The top-level keys.
        const KEYS: [&str; 19] = [
            "format", "name", "title", "about", "start", "seed", "policy", "skill", "memory", "file",
            "command", "job", "rule", "act", "tools", "expect", "tamper", "arm", "fault",
        ];
        let mut fields = Fields::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            if KEYS.contains(&name.as_str()) {
                fields.insert(name, value);
            } else {
                self.unknown(key.span().start, "key", &name, KEYS);
            }
        }
        match self.field::<i64>(&mut fields, "format").map(|(_, format)| format) {
            Some(FORMAT) => {}
            Some(other) => {
                self.fault(0, format!("format {other} is not known; this lab reads format {FORMAT}"));
            }
            None => self.fault(0, format!("missing `format = {FORMAT}`")),
        }
        let name = self.field::<String>(&mut fields, "name").map(|(_, name)| name);
        if name.is_none() {
            self.fault(0, "missing `name`");
        }
        let title = self.field::<String>(&mut fields, "title").map(|(_, title)| title);
        let about = self.field::<String>(&mut fields, "about").map(|(_, about)| about);
        let start = self.field::<String>(&mut fields, "start");
        let seed = self.field::<u64>(&mut fields, "seed").map(|(_, seed)| seed);
        let policy = self.field::<toml::Table>(&mut fields, "policy");
        let skills = self.list(fields.remove("skill"));
        let memories = self.list(fields.remove("memory"));
        let files = self.list(fields.remove("file"));
        let commands = self.list(fields.remove("command"));
        let jobs = self.list(fields.remove("job"));
        let rules: Vec<(usize, super::RuleSpec)> = self.list(fields.remove("rule"));
        let acts: Vec<(usize, Act)> = self.list(fields.remove("act"));
        let faults = self.faults(fields.remove("fault"), acts.len());
        let expects = self.list(fields.remove("expect"));
        let tampers = self.list(fields.remove("tamper"));
        let arms = self.list(fields.remove("arm"));

        let tools = self.field::<Vec<String>>(&mut fields, "tools").map_or_else(Vec::new, |(_, tools)| tools);
        self.foreign.clone_from(&tools);

        let start = match start {
            None => DEFAULT_START,
            Some((at, text)) => self.instant(at, &text),
        };
        let overlay = policy.map(|(at, table)| self.overlay(at, &table)).unwrap_or_default();
        for (at, rule) in &rules {
            self.check_lane(*at, &rule.lane);
            if let Some(reply) = &rule.reply {
                self.check_reply(*at, reply);
            }
        }
        self.check_names(&skills, |skill: &super::SkillSpec| &skill.name, "skill");
        self.check_acts(&acts);
        self.check_expects(&expects, &tampers, &arms);
        Some(Scenario {
            name: name?,
            title: title.unwrap_or_default(),
            about: about.unwrap_or_default(),
            start,
            seed: seed.unwrap_or(0),
            policy: overlay,
            skills: plain(skills),
            memories: plain(memories),
            files: plain(files),
            commands: plain(commands),
            jobs: plain(jobs),
            rules: plain(rules),
            acts: plain(acts),
            faults,
            expects: plain(expects),
            tools,
            tampers: plain(tampers),
            arms: plain(arms),
            digest: hex(&Sha256::digest(self.text.as_bytes())),
        })
    }

    fn instant(&mut self, at: usize, text: &str) -> i64 {
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            instant.as_millisecond()
        } else {
            self.fault(at, format!("expected an instant such as `2026-01-01T09:00:00Z`, found `{text}`"));
            DEFAULT_START
        }
    }

    fn overlay(&mut self, at: usize, table: &toml::Table) -> Overlay {
        let overlay = Overlay::from_table(table);
        if let Err(errors) = overlay.apply(&mut Policy::default()) {
            for error in errors {
                // A knob's own line is found by its name; the section's start serves where that fails.
                let place = match &error {
                    crate::policy::KnobError::Unknown { name, .. } => name,
                    crate::policy::KnobError::Value { knob, .. } => knob,
                };
                let short = place.rsplit('.').next().unwrap_or(place);
                let byte = self.text[at.min(self.text.len())..].find(short).map_or(at, |offset| at + offset);
                self.fault(byte, error.to_string());
            }
        }
        overlay
    }

    fn check_names<T>(&mut self, items: &[(usize, T)], name: impl Fn(&T) -> &String, what: &str) {
        let mut seen = std::collections::BTreeSet::new();
        for (at, item) in items {
            if !seen.insert(name(item).clone()) {
                self.fault(*at, format!("the {what} `{}` is given twice", name(item)));
            }
        }
    }

    fn check_lane(&mut self, at: usize, lane: &str) {
        let lanes = Lane::ALL.map(Lane::word);
        if !lanes.contains(&lane) {
            self.unknown(at, "lane", lane, lanes);
        }
    }

    fn unknown<'a>(&mut self, at: usize, what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) {
        self.fault(at, format!("unknown {what} `{name}`{}", did_you_mean(name, known)));
    }

    /// Reads the list of faults; each must name an act that is there and something that goes wrong.
    fn faults(&mut self, value: Option<Spanned<DeValue<'_>>>, acts: usize) -> Vec<FaultSpec> {
        if let Some(DeValue::Array(items)) = value.as_ref().map(Spanned::get_ref) {
            for (key, _) in items.iter().filter_map(|item| item.get_ref().as_table()).flatten() {
                if !fault::KEYS.contains(&key.get_ref().as_ref()) {
                    self.unknown(key.span().start, "kind of fault", key.get_ref(), fault::KEYS);
                }
            }
        }
        if !self.faults.is_empty() {
            return Vec::new();
        }
        let read: Vec<(usize, FaultSpec)> = self.list(value);
        for (at, fault) in &read {
            if fault.act == 0 || fault.act > acts as u64 {
                self.fault(*at, format!("act {} is not in the file, which has {acts}", fault.act));
            }
            if fault.is_empty() {
                self.fault(
                    *at,
                    format!("nothing goes wrong; expected one of {}", fault::KEYS[1..].join(", ")),
                );
            }
            if fault.ordinals().contains(&0) {
                self.fault(*at, "ordinals count from 1");
            }
            if let Some(provider) = &fault.provider {
                self.check_lane(*at, &provider.lane);
                if !PROVIDER_FAULTS.contains(&provider.fault.as_str()) {
                    self.unknown(*at, "fault", &provider.fault, PROVIDER_FAULTS);
                }
            }
        }
        plain(read)
    }

    fn check_reply(&mut self, at: usize, reply: &ReplySpec) {
        for call in reply.all_calls() {
            self.check_call(at, &call);
        }
        if let Some(finish) = &reply.finish
            && !["stop", "tool_calls", "length"].contains(&finish.as_str())
        {
            self.fault(at, format!("unknown finish `{finish}`; expected stop, tool_calls or length"));
        }
        if let Some(fault) = &reply.fault
            && !PROVIDER_FAULTS.contains(&fault.as_str())
        {
            self.unknown(at, "fault", fault, PROVIDER_FAULTS);
        }
        self.check_details(at, reply);
        if reply.say.is_none()
            && reply.fault.is_none()
            && reply.reasoning.is_none()
            && reply.all_calls().is_empty()
        {
            self.fault(at, "a reply needs `say`, `call`, `calls`, `reasoning` or `fault`");
        }
    }

    /// What belongs to one kind of fault stands with no other.
    fn check_details(&mut self, at: usize, reply: &ReplySpec) {
        let fault = reply.fault.as_deref();
        let details: [(&str, bool, &[&str]); 3] = [
            ("retry_after", reply.retry_after.is_some(), &["rate_limited", "overloaded"]),
            ("after_chars", reply.after_chars.is_some(), &["dropped"]),
            ("hold_seconds", reply.hold_seconds.is_some(), &["timeout"]),
        ];
        for (name, given, faults) in details {
            if given && !fault.is_some_and(|fault| faults.contains(&fault)) {
                let faults = faults.join("` or `");
                self.fault(at, format!("`{name}` goes with the fault `{faults}` only"));
            }
        }
        if reply.pause_ms.is_some_and(|pause| pause > PAUSE_MS_MAX) {
            self.fault(at, format!("`pause_ms` is above {PAUSE_MS_MAX}"));
        }
    }

    fn check_acts(&mut self, acts: &[(usize, Act)]) {
        let mut open: Option<String> = None;
        let mut known = std::collections::BTreeSet::new();
        for (at, act) in acts {
            match act {
                Act::Open(act) => {
                    if !known.insert(act.name.clone()) && !act.resume {
                        self.fault(
                            *at,
                            format!("the session `{}` is opened twice; say `resume = true`", act.name),
                        );
                    }
                    open = Some(act.name.clone());
                }
                Act::Turn(turn) => {
                    self.check_session(*at, turn.session.as_ref(), open.as_ref(), &known);
                    self.check_times(*at, turn.times);
                    if turn.say.is_empty() == turn.say_each.is_empty() {
                        self.fault(*at, "a turn needs `say` or `say_each`, and not both");
                    }
                    let lists = [
                        &turn.replies,
                        &turn.review,
                        &turn.summary,
                        &turn.child,
                        &turn.approver,
                        &turn.title,
                    ];
                    for reply in lists.into_iter().flatten() {
                        self.check_reply(*at, reply);
                        self.check_times(*at, reply.times.unwrap_or(1));
                    }
                }
                Act::Remember(act) => {
                    self.check_times(*at, act.times);
                    if !["memory", "user"].contains(&act.target.as_str()) {
                        self.fault(*at, format!("unknown target `{}`; expected memory or user", act.target));
                    }
                }
                Act::End(act) => self.check_session(*at, act.session.as_ref(), open.as_ref(), &known),
                Act::Search(act) if act.limit == 0 => {
                    self.fault(*at, "a search needs a `limit` of at least 1");
                }
                _ => {}
            }
        }
    }

    fn check_session(
        &mut self,
        at: usize,
        named: Option<&String>,
        open: Option<&String>,
        known: &std::collections::BTreeSet<String>,
    ) {
        match named.or(open) {
            None => self.fault(at, "no session is open; put an `open` act before"),
            Some(name) if !known.contains(name) => {
                self.unknown(at, "session", name, known.iter().map(String::as_str));
            }
            Some(_) => {}
        }
    }

    fn check_times(&mut self, at: usize, times: u64) {
        if times == 0 || times > TIMES_MAX {
            self.fault(at, format!("`times` is {times}; expected 1 to {TIMES_MAX}"));
        }
    }
}

/// 1 January 2026, 09:00 UTC.
const DEFAULT_START: i64 = 1_767_258_000_000;

/// Longest pause between two pieces of a stream, in milliseconds.
const PAUSE_MS_MAX: u64 = 600_000;

fn plain<T>(items: Vec<(usize, T)>) -> Vec<T> {
    items.into_iter().map(|(_, item)| item).collect()
}

//! The usage record: who made a skill, how often it was used, in which state of life it is.
//!
//! One JSON file maps names to records. Records are kept as they are found; only what is touched is written, so that
//! a damaged or foreign field survives. Called after every successful operation, by views, and by the curator.
//! Never: a count that is read as anything but a non-negative whole number.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::agent::stamp;
use crate::world::{FileError, Files, Millis};

/// Path of the file below the skills directory.
pub(super) const FILE: &str = ".usage.json";

/// A state of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In use.
    Active,
    /// Unused for a while.
    Stale,
    /// Moved away.
    Archived,
}

impl State {
    /// The word in the record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stale => "stale",
            Self::Archived => "archived",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Active, Self::Stale, Self::Archived].into_iter().find(|state| state.word() == word)
    }
}

/// Something worth an event happened to a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// It was made.
    Created,
    /// It was installed from a hub.
    Installed,
    /// It was loaded for use.
    Loaded {
        /// It had been used before.
        reused: bool,
        /// It had been changed since it was last used.
        after_patch: bool,
    },
    /// It was changed.
    Patched,
    /// It became stale.
    Stale,
    /// It was archived.
    Archived,
    /// It came back from the archive.
    Restored,
}

/// The record of one skill.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record(BTreeMap<String, Value>);

impl Record {
    /// A record with every field at its start.
    pub fn fresh(now: Millis) -> Self {
        let fields = json!({
            "created_by": null, "use_count": 0, "view_count": 0, "patch_count": 0, "patch_generation": 0,
            "last_reused_patch_generation": 0, "last_used_at": null, "last_viewed_at": null,
            "last_patched_at": null, "created_at": stamp::show(now), "state": "active", "pinned": false,
            "archived_at": null, "first_seen_at": null,
        });
        match fields {
            Value::Object(fields) => Self::of(fields),
            _ => Self::default(),
        }
    }

    /// A record as it stands in a file.
    pub fn of(fields: Map<String, Value>) -> Self {
        Self(fields.into_iter().collect())
    }

    /// What is no object is no record.
    fn read(fields: &RawValue) -> Option<Self> {
        serde_json::from_str(fields.get()).ok().map(Self)
    }

    /// The raw fields.
    pub fn fields(&self) -> &BTreeMap<String, Value> {
        &self.0
    }

    /// A count; anything that is no non-negative integer is 0.
    pub fn count(&self, field: &str) -> u64 {
        self.0.get(field).and_then(Value::as_u64).unwrap_or(0)
    }

    /// An instant; `None` when it is absent or unreadable.
    pub fn instant(&self, field: &str) -> Option<Millis> {
        stamp::parse(self.0.get(field)?.as_str()?)
    }

    /// Who made the skill.
    pub fn created_by(&self) -> Option<&str> {
        self.0.get("created_by").and_then(Value::as_str)
    }

    /// True when the agent made it by itself (or the user gave it away).
    pub fn is_managed(&self) -> bool {
        self.created_by() == Some("agent") || self.0.get("agent_created") == Some(&Value::Bool(true))
    }

    /// True when the user pinned it.
    pub fn is_pinned(&self) -> bool {
        match self.0.get("pinned") {
            Some(Value::Bool(pinned)) => *pinned,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::String(text)) => !text.is_empty(),
            _ => false,
        }
    }

    /// The state as written; active when there is none.
    pub fn state(&self) -> &str {
        self.0.get("state").and_then(Value::as_str).unwrap_or("active")
    }

    /// The newest of last use, view and change; `None` when there was none.
    pub fn last_activity(&self) -> Option<Millis> {
        ["last_used_at", "last_viewed_at", "last_patched_at"]
            .into_iter()
            .filter_map(|field| self.instant(field))
            .max()
    }

    /// Uses, views and changes together.
    pub fn activity_count(&self) -> u64 {
        ["use_count", "view_count", "patch_count"].into_iter().map(|field| self.count(field)).sum()
    }

    /// Sets a raw field.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    fn bump(&mut self, field: &str) {
        let next = self.count(field).saturating_add(1);
        self.set(field, next);
    }
}

/// The records of a file, not yet looked into.
fn raw_records(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// All records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    records: BTreeMap<String, Record>,
    readable: bool,
}

impl Usage {
    /// Reads the file; one that is absent or unreadable is empty.
    pub fn load(files: &dyn Files, root: &str) -> Self {
        let text = match files.read_text(&format!("{root}/{FILE}")) {
            Ok(text) => text,
            Err(FileError::NotFound(_)) => return Self { records: BTreeMap::new(), readable: true },
            Err(_) => return Self::default(),
        };
        let Some(map) = raw_records(&text) else { return Self::default() };
        let records = map.into_iter().filter_map(|(name, fields)| Some((name, Record::read(fields)?)));
        Self { records: records.collect(), readable: true }
    }

    /// The record of one skill, without those of the others.
    pub fn record_of(files: &dyn Files, root: &str, name: &str) -> Option<Record> {
        let text = files.read_text(&format!("{root}/{FILE}")).ok()?;
        Record::read(raw_records(&text)?.get(name)?)
    }

    /// Writes the file, names sorted.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn save(&self, files: &mut dyn Files, root: &str) -> Result<(), FileError> {
        let map: BTreeMap<&String, &BTreeMap<String, Value>> =
            self.records.iter().map(|(name, record)| (name, &record.0)).collect();
        let text = serde_json::to_string_pretty(&map).unwrap_or_else(|_| "{}".to_owned());
        files.write(&format!("{root}/{FILE}"), text.as_bytes())
    }

    /// False when the file is there but cannot be read.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// The record of a skill.
    pub fn get(&self, name: &str) -> Option<&Record> {
        self.records.get(name)
    }

    /// Every record, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Record)> {
        self.records.iter()
    }

    /// Puts a record as it is.
    pub fn put(&mut self, name: &str, record: Record) {
        self.records.insert(name.to_owned(), record);
    }

    fn entry(&mut self, name: &str, now: Millis) -> &mut Record {
        self.records.entry(name.to_owned()).or_insert_with(|| Record::fresh(now))
    }

    /// A skill was made; its record starts anew.
    pub fn created(&mut self, name: &str, by: &str, now: Millis) -> Lifecycle {
        let mut record = Record::fresh(now);
        record.set("created_by", by);
        self.records.insert(name.to_owned(), record);
        Lifecycle::Created
    }

    /// A skill was installed from a hub.
    pub fn installed(&mut self, name: &str, now: Millis) -> Lifecycle {
        self.entry(name, now).set("created_by", "installed");
        Lifecycle::Installed
    }

    /// A skill was shown.
    pub fn viewed(&mut self, name: &str, now: Millis) {
        let record = self.entry(name, now);
        record.bump("view_count");
        record.set("last_viewed_at", stamp::show(now));
    }

    /// A skill was loaded for use.
    pub fn used(&mut self, name: &str, now: Millis) -> Lifecycle {
        let record = self.entry(name, now);
        let reused = record.count("use_count") > 0;
        let generation = record.count("patch_generation");
        let mut last = record.count("last_reused_patch_generation").min(generation);
        let after_patch = reused && generation > last;
        if after_patch {
            last = generation;
        }
        record.bump("use_count");
        record.set("patch_generation", generation);
        record.set("last_reused_patch_generation", last);
        record.set("last_used_at", stamp::show(now));
        Lifecycle::Loaded { reused, after_patch }
    }

    /// A file of a skill was changed.
    pub fn patched(&mut self, name: &str, now: Millis) -> Lifecycle {
        let record = self.entry(name, now);
        record.bump("patch_count");
        record.bump("patch_generation");
        record.set("last_patched_at", stamp::show(now));
        Lifecycle::Patched
    }

    /// Gives a skill to the agent.
    pub fn adopt(&mut self, name: &str, now: Millis) {
        self.entry(name, now).set("created_by", "agent");
    }

    /// Pins or unpins a skill.
    pub fn pin(&mut self, name: &str, pinned: bool, now: Millis) {
        self.entry(name, now).set("pinned", pinned);
    }

    /// Sets the state; only a real change worth telling answers an event.
    pub fn set_state(&mut self, name: &str, state: State, now: Millis) -> Option<Lifecycle> {
        let record = self.entry(name, now);
        let before = record.state().to_owned();
        record.set("state", state.word());
        if state == State::Archived {
            record.set("archived_at", stamp::show(now));
        } else if state == State::Active {
            record.set("archived_at", Value::Null);
        }
        match state {
            _ if before == state.word() => None,
            State::Archived => Some(Lifecycle::Archived),
            State::Stale => Some(Lifecycle::Stale),
            State::Active if before == State::Archived.word() => Some(Lifecycle::Restored),
            State::Active => None,
        }
    }

    /// Forgets a skill.
    pub fn forget(&mut self, name: &str) {
        self.records.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn a_broken_file_is_empty_and_says_so() {
        let mut files = MemFiles::new();
        files.write("skills/.usage.json", b"[1]").unwrap();
        let usage = Usage::load(&files, "skills");
        assert!(!usage.is_readable() && usage.iter().count() == 0);
    }

    #[test]
    fn the_file_lists_names_and_fields_sorted_and_reads_back() {
        let mut files = MemFiles::new();
        let mut usage = Usage::load(&files, "skills");
        usage.created("b", "agent", 0);
        usage.viewed("a", 0);
        usage.save(&mut files, "skills").unwrap();
        assert!(Usage::load(&files, "skills").get("b").unwrap().is_managed());
        assert_eq!(Usage::record_of(&files, "skills", "b").as_ref(), Usage::load(&files, "skills").get("b"));
        assert_eq!(Usage::record_of(&files, "skills", "c"), None);
        let text = files.read_text("skills/.usage.json").unwrap();
        assert!(text.find("\"a\"") < text.find("\"b\""));
    }
}

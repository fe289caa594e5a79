//! The writes: add, replace, remove, patch and batches of them.
//!
//! Each write scans new content, reads the file afresh (so that a foreign write is taken in, not lost), checks that
//! nobody else laid it out, and writes the whole file in one step or not at all. Called by the tool's front and by
//! whoever approves a staged write.
//!
//! Differs: there is no lock file. The lab is the only writer within one operation; foreign writes come between.

use super::answer::{Answer, Change, Receipt, Refusal, RefusalKind, Taken, Target};
use super::entries;
use super::locate::{Located, Search};
use super::snapshot::percent;
use super::{MemoryStore, Operation, OperationKind};
use crate::agent::text::strip;
use crate::agent::threats::Scope;
use crate::world::{Files, Millis};

impl MemoryStore {
    /// Appends an entry; one that is there already is a success without a write.
    ///
    /// # Errors
    /// `missing_content`, `scan_blocked`, `read_failed`, `over_budget`, `retry_cap`.
    pub fn add(&mut self, files: &mut dyn Files, target: Target, content: &str) -> Answer {
        let content = strip(content);
        if content.is_empty() {
            return Err(Refusal::new(RefusalKind::MissingContent, "add needs the text of the entry"));
        }
        self.check_content(content)?;
        self.reread(files, target)?;
        if self.live(target).iter().any(|entry| entry == content) {
            return Ok(Receipt { changed: false, ..self.succeed(target, Vec::new()) });
        }
        let mut next = self.live(target).to_vec();
        next.push(content.to_owned());
        self.check_budget(target, &next, true)?;
        self.commit(files, target, next, Vec::new())
    }

    /// Writes the entry that an old text means anew.
    ///
    /// # Errors
    /// `missing_old_text`, `missing_content`, `scan_blocked`, `read_failed`, `drift`, `ambiguous`, `no_match`,
    /// `over_budget`, `retry_cap`, and with a pin `stale_entry`.
    pub fn replace(
        &mut self,
        files: &mut dyn Files,
        now: Millis,
        target: Target,
        old: &str,
        content: &str,
    ) -> Answer {
        self.single(files, now, target, &Operation::new(OperationKind::Replace, old, content))
    }

    /// Deletes the entry that an old text means; works in a store over its limit.
    ///
    /// # Errors
    /// As [`MemoryStore::replace`], without those about content and size.
    pub fn remove(&mut self, files: &mut dyn Files, now: Millis, target: Target, old: &str) -> Answer {
        self.single(files, now, target, &Operation::new(OperationKind::Remove, old, ""))
    }

    /// Writes one span of the entry that an old text means anew. The span must occur exactly once.
    ///
    /// # Errors
    /// As [`MemoryStore::replace`]; `ambiguous` also for a repeated span, `invalid_args` when nothing would change.
    pub fn patch(
        &mut self,
        files: &mut dyn Files,
        now: Millis,
        target: Target,
        old: &str,
        new: &str,
    ) -> Answer {
        self.single(files, now, target, &Operation::new(OperationKind::Patch, old, new))
    }

    pub(super) fn single(
        &mut self,
        files: &mut dyn Files,
        now: Millis,
        target: Target,
        op: &Operation,
    ) -> Answer {
        if op.kind == OperationKind::Add {
            return self.add(files, target, &op.content);
        }
        check_fields(op)?;
        if op.kind == OperationKind::Replace {
            self.check_content(strip(&op.content))?;
        }
        self.reread_guarded(files, now, target)?;
        let mut next = self.live(target).to_vec();
        match self.apply(&mut next, op, 1) {
            Ok(taken) => {
                if op.kind != OperationKind::Remove {
                    self.check_budget(target, &next, true)?;
                }
                self.commit(files, target, next, taken.into_iter().collect())
            }
            Err(mut refusal) if refusal.kind == RefusalKind::NoMatch => {
                refusal.details.entries = Some(self.live(target).to_vec());
                Err(self.count_failure(refusal))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Applies all operations or none. Each sees the effect of those before it; only the final size counts.
    ///
    /// # Errors
    /// The first refusal of the scan or of an operation, `would_empty`, `over_budget`.
    pub fn batch(&mut self, files: &mut dyn Files, now: Millis, target: Target, ops: &[Operation]) -> Answer {
        if ops.is_empty() {
            return Err(Refusal::new(RefusalKind::InvalidArgs, "a batch needs at least one operation"));
        }
        if ops.iter().any(|op| op.target.as_deref().is_some_and(|named| named != target.word())) {
            return Err(Refusal::new(
                RefusalKind::InvalidArgs,
                "a batch writes one store; call once for each",
            ));
        }
        for op in ops.iter().filter(|op| matches!(op.kind, OperationKind::Add | OperationKind::Replace)) {
            self.check_content(strip(&op.content))?;
        }
        self.reread_guarded(files, now, target)?;
        let mut next = self.live(target).to_vec();
        match self.apply_all(target, &mut next, ops) {
            Ok(taken) => self.commit(files, target, next, taken),
            Err(mut refusal) => {
                refusal.details.usage = Some((self.size(target), self.limit(target)));
                if self.knobs.batch_lists_entries {
                    refusal.details.entries = Some(self.live(target).to_vec());
                }
                if matches!(refusal.kind, RefusalKind::StaleEntry | RefusalKind::Unpinned) {
                    return Err(refusal);
                }
                Err(self.count_failure(refusal))
            }
        }
    }

    fn apply_all(
        &self,
        target: Target,
        next: &mut Vec<String>,
        ops: &[Operation],
    ) -> Result<Vec<Taken>, Refusal> {
        let had_entries = !next.is_empty();
        let mut taken = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            check_fields(op)?;
            if op.kind == OperationKind::Add {
                let content = strip(&op.content);
                if !next.iter().any(|entry| entry == content) {
                    next.push(content.to_owned());
                }
            } else {
                taken.extend(self.apply(next, op, at + 1)?);
            }
        }
        if had_entries && next.is_empty() && !self.knobs.batch_may_empty {
            return Err(Refusal::new(RefusalKind::WouldEmpty, "the batch would leave the store empty"));
        }
        if self.over_budget(target, next) {
            return Err(self.too_long(target, next));
        }
        Ok(taken)
    }

    /// Applies one replace, remove or patch to a copy of the entries.
    fn apply(&self, next: &mut Vec<String>, op: &Operation, number: usize) -> Result<Option<Taken>, Refusal> {
        let at = self.find(next, op)?;
        let before = next[at].clone();
        let (change, after) = match op.kind {
            OperationKind::Replace => {
                strip(&op.content).clone_into(&mut next[at]);
                (Change::Replaced, String::new())
            }
            OperationKind::Remove => {
                next.remove(at);
                (Change::Removed, String::new())
            }
            OperationKind::Patch => {
                let after = patched(&before, &op.old_text, &op.content)?;
                self.check_content(&after)?;
                next[at].clone_from(&after);
                (Change::Patched, after)
            }
            OperationKind::Add | OperationKind::Unknown => return Ok(None),
        };
        Ok(Some(Taken { operation: number, change, before, after }))
    }

    fn find(&self, entries: &[String], op: &Operation) -> Result<usize, Refusal> {
        if let Some(pin) = &op.pin {
            let at = entries.iter().position(|entry| entry == pin);
            return at.ok_or_else(|| Refusal::new(RefusalKind::StaleEntry, "the entry has changed since"));
        }
        let old = if op.kind == OperationKind::Patch { op.old_text.as_str() } else { strip(&op.old_text) };
        match self.search().locate(entries, old) {
            Located::At(at) => Ok(at),
            Located::Ambiguous(previews) => {
                let mut refusal = Refusal::new(
                    RefusalKind::Ambiguous,
                    format!("{} entries match; give more of the text", previews.len()),
                );
                refusal.details.candidates = previews;
                Err(refusal)
            }
            Located::Nothing(closest) => {
                let mut refusal = Refusal::new(RefusalKind::NoMatch, format!("no entry matches {old:?}"));
                refusal.details.closest = closest;
                Err(refusal)
            }
        }
    }

    pub(super) fn search(&self) -> Search {
        Search { equality_first: self.knobs.equality_first, tolerant: self.knobs.tolerant_match }
    }

    /// Refuses content that is an attack, or that would not come back as one entry.
    fn check_content(&self, content: &str) -> Result<(), Refusal> {
        if self.knobs.refuse_delimiter && !entries::comes_back(content) {
            return Err(Refusal::new(
                RefusalKind::Delimiter,
                "a line that is only the entry mark separates entries",
            ));
        }
        let Some(scanner) = &self.scanner else { return Ok(()) };
        match scanner.scan(content, Scope::Strict).first() {
            Some(finding) => Err(Refusal::new(
                RefusalKind::ScanBlocked,
                format!("the text looks like an attack: {finding}"),
            )),
            None => Ok(()),
        }
    }

    /// Takes in what is on disk now and returns the raw text.
    fn reread(&mut self, files: &dyn Files, target: Target) -> Result<String, Refusal> {
        let text =
            entries::read(files, target.path(), self.knobs.drops_byte_order_mark).map_err(|error| {
                Refusal::new(
                    RefusalKind::ReadFailed,
                    format!("{} cannot be read: {error}", target.file_name()),
                )
            })?;
        *self.live_mut(target) = entries::distinct(entries::split(&text));
        Ok(text)
    }

    /// Also refuses a file that somebody else wrote, after keeping a copy.
    fn reread_guarded(&mut self, files: &mut dyn Files, now: Millis, target: Target) -> Result<(), Refusal> {
        let text = self.reread(files, target)?;
        let parsed = entries::split(&text);
        let longest = parsed.iter().map(|entry| crate::agent::text::chars(entry)).max().unwrap_or(0);
        let too_long = self.knobs.cap_enforced && longest > self.limit(target);
        let relaid = self.knobs.drift_by_layout && strip(&text) != entries::join(&parsed);
        if !too_long && !relaid {
            return Ok(());
        }
        let backup = format!("{}.bak.{}", target.path(), now.div_euclid(crate::world::clock::SECOND));
        let copied = files.read(target.path()).and_then(|bytes| files.write(&backup, &bytes));
        let mut refusal = Refusal::new(
            RefusalKind::Drift,
            match &copied {
                Ok(()) => format!("{} was edited by somebody else; a copy is kept", target.file_name()),
                Err(error) => format!("{} was edited by somebody else; no copy: {error}", target.file_name()),
            },
        );
        refusal.details.backup = copied.is_ok().then_some(backup);
        Err(refusal)
    }

    fn over_budget(&self, target: Target, next: &[String]) -> bool {
        self.knobs.cap_enforced && entries::size(next) > self.limit(target)
    }

    fn too_long(&self, target: Target, next: &[String]) -> Refusal {
        Refusal::new(
            RefusalKind::OverBudget,
            format!("{} of {} characters; make room first", entries::size(next), self.limit(target)),
        )
    }

    fn check_budget(&mut self, target: Target, next: &[String], lists: bool) -> Result<(), Refusal> {
        if !self.over_budget(target, next) {
            return Ok(());
        }
        let mut refusal = self.too_long(target, next);
        refusal.details.usage = Some((self.size(target), self.limit(target)));
        refusal.details.entries = lists.then(|| self.live(target).to_vec());
        Err(self.count_failure(refusal))
    }

    /// Counts a failure of the turn; past the cap the answer becomes a terminal one.
    fn count_failure(&mut self, refusal: Refusal) -> Refusal {
        self.failures += 1;
        if self.failures <= self.knobs.failures_per_turn_max {
            return refusal;
        }
        Refusal::new(RefusalKind::RetryCap, "memory was not saved; go on with the task without saving")
    }

    fn commit(
        &mut self,
        files: &mut dyn Files,
        target: Target,
        next: Vec<String>,
        taken: Vec<Taken>,
    ) -> Answer {
        files.write(target.path(), entries::join(&next).as_bytes()).map_err(|error| {
            Refusal::new(
                RefusalKind::WriteFailed,
                format!("{} cannot be written: {error}", target.file_name()),
            )
        })?;
        let changed = *self.live(target) != next;
        *self.live_mut(target) = next;
        Ok(Receipt { changed, ..self.succeed(target, taken) })
    }

    fn succeed(&mut self, target: Target, taken: Vec<Taken>) -> Receipt {
        self.failures = 0;
        let (size, limit) = (self.size(target), self.limit(target));
        Receipt {
            target,
            percent: percent(size, limit),
            size,
            limit,
            entry_count: self.live(target).len(),
            changed: true,
            taken: if self.knobs.reports_removed { taken } else { Vec::new() },
        }
    }
}

/// Checks that an operation has the fields that its kind needs.
fn check_fields(op: &Operation) -> Result<(), Refusal> {
    let blank = |text: &str| strip(text).is_empty();
    match op.kind {
        OperationKind::Unknown => Err(Refusal::new(RefusalKind::InvalidArgs, "unknown or missing action")),
        OperationKind::Add if blank(&op.content) => {
            Err(Refusal::new(RefusalKind::MissingContent, "add needs the text of the entry"))
        }
        OperationKind::Replace | OperationKind::Remove | OperationKind::Patch if blank(&op.old_text) => {
            Err(Refusal::new(RefusalKind::MissingOldText, "which entry? give a part of its text as old_text"))
        }
        OperationKind::Replace | OperationKind::Patch if blank(&op.content) => {
            Err(Refusal::new(RefusalKind::MissingContent, "the new text is missing"))
        }
        _ => Ok(()),
    }
}

/// The entry with its one occurrence of a span written anew.
fn patched(entry: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let Some(first) = entry.find(old) else {
        return Err(Refusal::new(RefusalKind::InvalidArgs, "the exact span does not occur in the entry"));
    };
    // One more occurrence may begin inside the first, so the search goes on one character later.
    let later = first + old.chars().next().map_or(1, char::len_utf8);
    if entry[later..].contains(old) {
        return Err(Refusal::new(RefusalKind::Ambiguous, "the span occurs more than once in the entry"));
    }
    let after = format!("{}{new}{}", &entry[..first], &entry[first + old.len()..]);
    if after == entry {
        return Err(Refusal::new(RefusalKind::InvalidArgs, "the entry would not change"));
    }
    Ok(after)
}

//! Several operations that succeed or fail together.
//!
//! Everything that can be seen beforehand is checked before the first write; then copies of the touched skills are
//! kept and put back if an operation fails. Usage counters are not put back, as in the reference.

use std::collections::{BTreeMap, BTreeSet};

use super::Library;
use super::guard::Writer;
use super::manage::{Applied, Done};
use super::operation::{Action, Operation};
use super::paths::validate_category;
use super::refusal::{Reason, Refusal};
use crate::world::files::{file_name, join, parent};
use crate::world::{Files, Millis, normalize};

/// A skill directory as it was before the batch.
enum Kept {
    /// Its files.
    Files(Vec<(String, Vec<u8>)>),
    /// It was there and empty.
    Empty,
    /// It was not there.
    Absent,
}

impl Library {
    pub(super) fn batch(
        &self,
        files: &mut dyn Files,
        now: Millis,
        writer: &Writer,
        default_name: &str,
        operations: &[Operation],
    ) -> Result<Done, Refusal> {
        let named: Vec<Operation> = operations.iter().map(|op| with_name(op, default_name)).collect();
        if let [only] = named.as_slice()
            && only.action == Some(Action::Delete)
        {
            return self.single(files, now, writer, only);
        }
        self.check_batch(&named)?;
        if self.knobs.approval {
            return Ok(Done::Staged);
        }
        let kept = self.keep(files, &named);
        let mut done: Vec<Applied> = Vec::new();
        for (index, op) in named.iter().enumerate() {
            match self.run(files, now, writer, op) {
                Ok(applied) => done.push(applied),
                Err(refusal) => {
                    self.put_back(files, &kept);
                    let mut aborted = Refusal::new(
                        Reason::BatchAborted,
                        format!("operation {index} failed, nothing was changed: {refusal}"),
                    );
                    aborted.cause = Some(refusal.reason);
                    aborted.failed_index = Some(index);
                    aborted.available_files = refusal.available_files;
                    aborted.preview = refusal.preview;
                    return Err(aborted);
                }
            }
        }
        for applied in &done {
            self.note(files, now, writer, applied);
        }
        Ok(Done::Batch(done))
    }

    fn check_batch(&self, operations: &[Operation]) -> Result<(), Refusal> {
        let refuse = |reason: Reason, message: String| Err(Refusal::new(reason, message));
        if operations.is_empty() {
            return refuse(Reason::BatchEmpty, "`operations` must be a list that is not empty".to_owned());
        }
        if operations.len() as u64 > self.knobs.batch_operations_max {
            return refuse(
                Reason::BatchTooMany,
                format!("at most {} operations", self.knobs.batch_operations_max),
            );
        }
        if operations.iter().any(|op| op.action == Some(Action::Delete)) {
            return refuse(Reason::BatchDeleteNotSole, "a delete stands alone".to_owned());
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (index, op) in operations.iter().enumerate() {
            match &op.action {
                None => return refuse(Reason::BatchOpNoAction, format!("operation {index} has no action")),
                Some(Action::Unknown(word)) => {
                    return refuse(
                        Reason::BatchOpAction,
                        format!("operation {index}: unknown action `{word}`"),
                    );
                }
                Some(_) => {}
            }
            if op.name.is_empty() {
                return refuse(Reason::BatchOpNoName, format!("operation {index} names no skill"));
            }
            let in_batch = |mut refusal: Refusal| {
                refusal.in_batch = true;
                refusal.failed_index = Some(index);
                refusal
            };
            op.check_shape().map_err(in_batch)?;
            if op.action == Some(Action::Create) {
                validate_category(op.category.as_ref(), &self.knobs).map_err(in_batch)?;
                if seen.contains(skill_of(op)) {
                    return refuse(Reason::BatchCreateOrder, format!("operation {index} creates too late"));
                }
            }
            seen.insert(skill_of(op));
        }
        let mut touched: BTreeSet<(&str, String)> = BTreeSet::new();
        for (index, op) in operations.iter().enumerate() {
            let overwrites = op.is_rewrite()
                || matches!(op.action, Some(Action::Create | Action::WriteFile | Action::RemoveFile));
            let file = (skill_of(op), file_of(op));
            if overwrites && touched.contains(&file) {
                return refuse(
                    Reason::BatchClobber,
                    format!("operation {index} would overwrite `{}`, which an earlier one wrote", file.1),
                );
            }
            touched.insert(file);
        }
        Ok(())
    }

    fn keep(&self, files: &dyn Files, operations: &[Operation]) -> BTreeMap<String, Kept> {
        let mut kept = BTreeMap::new();
        for op in operations {
            if let Some(dir) = self.find(files, &op.name) {
                let all = files.walk(&dir.path).into_iter();
                let copies =
                    all.filter_map(|path| files.read(&path).ok().map(|bytes| (path, bytes))).collect();
                kept.insert(dir.path, Kept::Files(copies));
            } else if op.action == Some(Action::Create) {
                let category = validate_category(op.category.as_ref(), &self.knobs).ok().flatten();
                let dir = join(&join(&self.root, category.as_deref().unwrap_or_default()), &op.name);
                let occupied = !files.list(&dir).is_empty();
                if !occupied {
                    let state = if files.is_dir(&dir) { Kept::Empty } else { Kept::Absent };
                    kept.insert(dir, state);
                }
            }
        }
        kept
    }

    /// Puts every touched skill back. What the disk refuses stays as it is; there is nobody left to tell.
    fn put_back(&self, files: &mut dyn Files, kept: &BTreeMap<String, Kept>) {
        for (dir, state) in kept {
            match state {
                Kept::Files(copies) => {
                    let old: BTreeSet<&String> = copies.iter().map(|(path, _)| path).collect();
                    for path in files.walk(dir) {
                        if !old.contains(&path) {
                            let _ = files.remove_file(&path);
                            remove_empty_above(files, dir, &path);
                        }
                    }
                    for (path, bytes) in copies {
                        if files.read(path).ok().as_ref() != Some(bytes) {
                            let _ = files.write(path, bytes);
                        }
                    }
                }
                Kept::Empty | Kept::Absent => {
                    let _ = files.remove_dir(dir);
                    if matches!(state, Kept::Empty) {
                        let _ = files.create_dir(dir);
                    } else {
                        self.prune_empty(files, parent(dir));
                    }
                }
            }
        }
    }
}

fn remove_empty_above(files: &mut dyn Files, dir: &str, path: &str) {
    let mut above = parent(path);
    while above.len() > dir.len() && files.list(above).is_empty() {
        let _ = files.remove_dir(above);
        above = parent(above);
    }
}

fn with_name(op: &Operation, default_name: &str) -> Operation {
    let mut op = op.clone();
    if op.name.is_empty() {
        default_name.clone_into(&mut op.name);
    }
    op
}

fn skill_of(op: &Operation) -> &str {
    file_name(&op.name)
}

/// The file that an operation touches, in clean form.
fn file_of(op: &Operation) -> String {
    match (&op.action, &op.file_path) {
        (Some(Action::WriteFile | Action::RemoveFile), Some(path)) => {
            normalize(path).unwrap_or_else(|| path.clone())
        }
        (Some(Action::Patch), Some(path)) if !path.is_empty() && !op.is_rewrite() => {
            normalize(path).unwrap_or_else(|| path.clone())
        }
        _ => "SKILL.md".to_owned(),
    }
}

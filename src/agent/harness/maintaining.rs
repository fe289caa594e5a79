//! Skills: the tools that use them, and what the user does by hand.

use serde_json::{Value, json};

use crate::agent::curator;
use crate::agent::skills::{Action, Done, Library, Operation, Record, Request, Usage};
use crate::agent::turn::Agent;
use crate::ledger::{Lane, SkillChanged, SkillViewed, What};
use crate::model::Model;
use crate::scenario::SkillSpec;
use crate::wire::Row;
use crate::world::{Millis, clock};

use super::dispatch::ToolResult;
use super::host::Run;
use super::{Harness, HarnessError, Session, skill_answers};

/// What is known of a skill before it changes.
pub(super) struct Before {
    pub(super) created_by: String,
    pub(super) uses: u64,
    pub(super) age_days: u64,
    pub(super) existed: bool,
}

impl<M: Model> Run<'_, M> {
    pub(super) fn skills_list(&mut self) -> ToolResult {
        let library = self.harness.library();
        let rows: Vec<Value> = library
            .catalogue(&*self.harness.home)
            .into_iter()
            .map(|entry| json!({ "name": entry.name, "category": entry.category, "description": entry.description }))
            .collect();
        ToolResult::done(json!({ "skills": rows }).to_string())
    }

    pub(super) fn skill_view(&mut self, arguments: &Value) -> ToolResult {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        let library = self.harness.library();
        let now = self.harness.clock.now();
        let writer = &mut self.session.writer;
        match library.view(&mut *self.harness.home, now, writer, name, text("file_path")) {
            Ok((view, _)) => {
                let viewed = SkillViewed { skill: name.into(), lane: self.session.lane };
                self.event(What::SkillViewed(viewed));
                self.session.followed.insert(name.to_owned(), false);
                let mut shown = json!({ "name": name, "content": view.text, "files": view.support_files });
                if let Some(note) = self.harness.outcome_note(name) {
                    shown["note"] = note.into();
                }
                ToolResult::done(shown.to_string())
            }
            Err(refusal) => ToolResult::failed(refusal.to_string()),
        }
    }

    /// Reading a skill's file by path counts as reading it.
    pub(super) fn read_skill_file(&mut self, path: &str) -> ToolResult {
        match self.harness.home.read_text(path) {
            Ok(content) => {
                self.session.writer.mark_read(&*self.harness.home, path);
                ToolResult::done(json!({ "content": content }).to_string())
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }

    pub(super) fn skill_manage(&mut self, agent: &Agent, arguments: &Value) -> ToolResult {
        let request = Request::read(arguments);
        let library = self.library_for_writes(agent);
        let now = self.harness.clock.now();
        let operations = request.operations();
        let before: Vec<Before> =
            operations.iter().map(|operation| self.harness.known(&operation.name, now)).collect();
        let read: Vec<bool> = operations
            .iter()
            .map(|operation| {
                let file = library.skill_file(&*self.harness.home, &operation.name);
                file.is_some_and(|file| self.session.writer.has_read(&*self.harness.home, &file))
            })
            .collect();
        let result = library.manage(&mut *self.harness.home, now, &self.session.writer, &request);
        for ((operation, before), read_before) in operations.iter().zip(before).zip(read) {
            let changed = SkillChanged {
                skill: operation.name.as_str().into(),
                action: operation.action.as_ref().map_or("", Action::word).into(),
                origin: self.session.origin.word().into(),
                created_by: before.created_by.as_str().into(),
                ok: result.as_ref().is_ok_and(|done| *done != Done::Staged),
                refusal: match &result {
                    Ok(Done::Staged) => "staged".into(),
                    Ok(_) => "".into(),
                    Err(refusal) => refusal.reason.id().into(),
                },
                read_before,
                existed: before.existed,
                uses: before.uses,
                age_days: before.age_days,
            };
            self.event(What::SkillChanged(changed));
        }
        match result {
            Ok(done) => {
                self.harness.forgive(&operations);
                self.hot_load();
                skill_answers::done(&operations, &done)
            }
            Err(refusal) => skill_answers::refused(&refusal),
        }
    }
}

impl<M: Model> Run<'_, M> {
    /// The library as this run may write to it: what a review learned among pages from the web can be held back.
    fn library_for_writes(&self, agent: &Agent) -> Library {
        let policy = &self.harness.policy;
        let from_web = |row: &Row| row.name.as_deref().is_some_and(|tool| tool.starts_with("web_"));
        let held_back = policy.review.stage_after_web
            && self.session.lane == Lane::Review
            && agent.transcript.rows().iter().any(from_web);
        let mut policy = policy.clone();
        policy.skills.approval |= held_back;
        Library::new(&policy, &[])
    }
}

/// Uses in a row that ended with a failing command; a field of the usage record.
const FAILING_STREAK: &str = "failing_streak";

impl<M: Model> Harness<M> {
    /// Keeps how the uses of this turn's skills ended, where that is on.
    pub(super) fn note_outcomes(&mut self, session: &mut Session) {
        if self.policy.skills.outcome_note_from == 0 || session.followed.is_empty() {
            return;
        }
        let library = self.library();
        let mut usage = Usage::load(&*self.home, library.root());
        for (name, failed) in std::mem::take(&mut session.followed) {
            let Some(mut record) = usage.get(&name).cloned() else { continue };
            let before = record.count(FAILING_STREAK);
            // Work that went well after a warning says nothing for the skill: it was done another way.
            let warned = before >= self.policy.skills.outcome_note_from;
            let streak = match (failed, warned) {
                (true, _) => before + 1,
                (false, true) => before,
                (false, false) => 0,
            };
            record.set(FAILING_STREAK, streak);
            usage.put(&name, record);
        }
        // A counter that cannot be kept is no reason to fail the turn.
        let _ = usage.save(&mut *self.home, library.root());
    }

    /// A skill that was changed begins its record anew.
    fn forgive(&mut self, operations: &[Operation]) {
        if self.policy.skills.outcome_note_from == 0 {
            return;
        }
        let library = self.library();
        let mut usage = Usage::load(&*self.home, library.root());
        for operation in operations {
            let Some(mut record) = usage.get(&operation.name).cloned() else { continue };
            record.set(FAILING_STREAK, 0);
            usage.put(&operation.name, record);
        }
        // As above.
        let _ = usage.save(&mut *self.home, library.root());
    }

    /// What is said of a skill whose last uses all ended with a failing command.
    fn outcome_note(&self, name: &str) -> Option<String> {
        let from = self.policy.skills.outcome_note_from;
        if from == 0 {
            return None;
        }
        let streak = Usage::record_of(&*self.home, self.library().root(), name)?.count(FAILING_STREAK);
        (streak >= from).then(|| {
            format!(
                "The last {streak} uses of this skill ended with a failing command. Check its steps first."
            )
        })
    }

    pub(super) fn library(&self) -> Library {
        Library::new(&self.policy, &[])
    }

    pub(super) fn known(&self, name: &str, now: Millis) -> Before {
        let library = self.library();
        let record = Usage::record_of(&*self.home, library.root(), name);
        let record = record.as_ref();
        let created = record.and_then(|record| record.instant("created_at")).unwrap_or(now);
        Before {
            created_by: record.and_then(Record::created_by).unwrap_or("user").to_owned(),
            uses: record.map_or(0, |record| record.count("use_count")),
            age_days: u64::try_from((now - created) / clock::DAY).unwrap_or(0),
            existed: library.skill_file(&*self.home, name).is_some(),
        }
    }

    /// Puts a skill into the home, with the history that its description gives.
    ///
    /// # Errors
    /// When the home cannot be written.
    pub fn add_skill(&mut self, spec: &SkillSpec, start: Millis) -> Result<(), HarnessError> {
        let library = self.library();
        let dir = match spec.category.as_str() {
            "" => format!("{}/{}", library.root(), spec.name),
            category => format!("{}/{category}/{}", library.root(), spec.name),
        };
        let text = format!(
            "---\nname: {}\ndescription: {}\n---\n\n{}\n",
            spec.name,
            json!(spec.description),
            if spec.body.is_empty() { "Steps come with use." } else { &spec.body }
        );
        self.home.write(&format!("{dir}/SKILL.md"), text.as_bytes())?;
        let created = start + spec.created_day * clock::DAY;
        let mut record = Record::fresh(created);
        if spec.created_by == "agent" {
            record.set("created_by", "agent");
        }
        record.set("pinned", spec.pinned);
        record.set("use_count", spec.uses);
        record.set("view_count", spec.uses);
        if let Some(day) = spec.used_day {
            let used = crate::agent::stamp::show(start + day * clock::DAY);
            record.set("last_used_at", used.as_str());
            record.set("last_viewed_at", used);
        }
        let mut usage = Usage::load(&*self.home, library.root());
        usage.put(&spec.name, record);
        usage.save(&mut *self.home, library.root())?;
        Ok(())
    }

    /// The user loads a skill by hand: a use, and no view.
    ///
    /// # Errors
    /// When there is no such skill.
    pub fn view_skill(&mut self, name: &str) -> Result<(), HarnessError> {
        let library = self.library();
        let now = self.clock.now();
        library
            .take_up(&mut *self.home, now, name)
            .map_err(|refusal| HarnessError::Script(refusal.to_string()))?;
        let session = self.open.clone().unwrap_or_else(|| self.world.clone());
        self.event(&session, What::SkillViewed(SkillViewed { skill: name.into(), lane: Lane::Main }));
        Ok(())
    }

    /// Brings a skill back from the archive; what stands in the way is recorded.
    pub fn restore_skill(&mut self, name: &str) {
        let library = self.library();
        let now = self.clock.now();
        let created_by = self.known(name, now).created_by;
        let restored = curator::restore(&library, &mut *self.home, now, name);
        let world = self.world.clone();
        let changed = SkillChanged {
            skill: name.into(),
            action: "restore".into(),
            origin: "user".into(),
            created_by: created_by.as_str().into(),
            ok: restored.is_ok(),
            refusal: restored.err().map_or_else(String::new, |error| error.to_string()).into(),
            read_before: false,
            existed: true,
            uses: 0,
            age_days: 0,
        };
        self.event(&world, What::SkillChanged(changed));
    }

    /// Empties memory, as a fresh home has it.
    ///
    /// # Errors
    /// When the home cannot be written.
    pub fn clear_memory(&mut self) -> Result<(), HarnessError> {
        for target in crate::agent::memory::Target::BOTH {
            if self.home.exists(target.path()) {
                self.home.remove_file(target.path())?;
            }
        }
        Ok(())
    }
}

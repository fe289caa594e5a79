//! The system prompt of a session: built once, stored, kept, and rebuilt only where that is declared.

use serde_json::Value;

use crate::agent::memory::Target;
use crate::agent::prompt::catalogue::Rows;
use crate::agent::prompt::context_files::ProjectContext;
use crate::agent::prompt::index_delta::IndexDelta;
use crate::agent::prompt::subdir_hints::SubdirHints;
use crate::agent::prompt::{self, DateInputs, Environment, Offer, PromptInputs, Root, Runtime};
use crate::agent::skills;
use crate::agent::threats::{Scanner, Scope};
use crate::ledger::{Catalogue, Lane, Name, PromptReady, ThreatFound, What};
use crate::model::Model;
use crate::policy::PromptClock;
use crate::store::retry::WriteKind;
use crate::wire::tools::SPECS;
use crate::wire::{Chain, Level, Row, Segment, ToolCall};
use crate::world::terminal::WORKSPACE;

use super::host::Run;
use super::{Harness, HarnessError, Origin};

/// A rendered prompt with what the ledger wants to know of it.
struct Rendered {
    text: String,
    stable: String,
    memory_chars: u64,
    catalogue_chars: u64,
    /// Name and length of the shown description of each skill.
    rows: Vec<(String, u64)>,
    catalogue: prompt::Catalogue,
    /// What the scanner objected to in each context file that it kept out.
    objections: Vec<Vec<String>>,
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

impl<M: Model> Run<'_, M> {
    /// The catalogue as the home would give it now.
    fn present_catalogue(&self) -> prompt::Catalogue {
        let offered = SPECS.iter().filter(|spec| self.session.has_tool(spec.name));
        let toolsets: Vec<String> = offered.map(|spec| spec.toolset.to_owned()).collect();
        let platform = &self.harness.policy.turn.platform;
        let offer = Offer {
            tools: Some(&self.session.tools),
            toolsets: Some(&toolsets),
            channel: Some(self.session.platform(platform)),
            ..Offer::default()
        };
        let roots = [Root::home(skills::ROOT)];
        prompt::catalogue::build(&*self.harness.home, &roots, &[], &offer, &self.harness.policy.prompt)
    }

    /// The user's message with a note of what became of the skills since the prompt was made, where that is told.
    pub(super) fn with_index_note(&mut self, message: Row) -> Row {
        if !self.harness.policy.prompt.index_notes {
            return message;
        }
        let names = self.present_catalogue().names();
        let Some(note) = self.session.index_delta.turn(names.iter().map(String::as_str)) else {
            return message;
        };
        // What the user said stays as it is; the note is in what is sent.
        let sent = format!("{}\n\n{}", message.content.flat(), note.text());
        message.with("api_content", sent)
    }

    /// Renders the prompt from the session's memory snapshot and the home as it is now.
    fn render(&self) -> Rendered {
        let policy = &self.harness.policy;
        // The catalogue is part of what a session keeps; only a rebuild looks at the skills again.
        let kept = if policy.prompt.catalogue_checked { None } else { self.harness.first_catalogue.clone() };
        let catalogue = self.session.catalogue.clone().or(kept).unwrap_or_else(|| self.present_catalogue());
        let listed = catalogue.text();
        let block = |target| self.session.memory.snapshot(target).map(|block| block.render());
        let (memory, user) = (block(Target::Memory), block(Target::User));
        let context = (self.session.origin.reads_project()).then(|| {
            self.harness.project_context(&self.session.directory, self.session.compressor.model().window)
        });
        let built = prompt::build(
            &PromptInputs {
                tools: &self.session.tools,
                context_files: context.as_ref().map(|context| context.text.as_str()),
                catalogue: Some(&listed),
                memory: memory.as_deref(),
                user_profile: user.as_deref(),
                memory_enabled: self.session.memory.enabled(Target::Memory),
                user_enabled: self.session.memory.enabled(Target::User),
                date: DateInputs {
                    now: self.harness.clock.now(),
                    zone: None,
                    session_id: &self.session.name,
                    session_start: Some(self.session.started_at),
                    lineage_root: None,
                    model: &self.session.model,
                    provider: &self.session.provider,
                    platform: self.session.platform(&policy.turn.platform),
                    timeless: false,
                },
                environment: Some(environment(&self.session.directory)),
                ..PromptInputs::default()
            },
            &policy.prompt,
        );
        let rows = catalogue.categories.iter().flat_map(|category| match &category.rows {
            Rows::Full(rows) => {
                rows.iter().map(|(name, shown)| (name.clone(), chars(shown))).collect::<Vec<_>>()
            }
            Rows::Names(rows) => rows.iter().map(|name| (name.clone(), 0)).collect(),
        });
        Rendered {
            text: built.text,
            stable: built.stable.text,
            memory_chars: memory.as_deref().map_or(0, chars) + user.as_deref().map_or(0, chars),
            catalogue_chars: chars(&listed),
            rows: rows.collect(),
            catalogue,
            objections: objections(context.as_ref()),
        }
    }

    /// Takes a rendered prompt into use and records it.
    fn adopt(&mut self, prompt: Rendered, why: &str, declared: bool) {
        let sent = self.session.with_brief(&prompt.text);
        let ready = PromptReady {
            why: why.into(),
            declared,
            chars: chars(&sent),
            memory_chars: prompt.memory_chars,
            catalogue_chars: prompt.catalogue_chars,
            digest: Chain::EMPTY.then(&Segment::new(Level::System, sent.as_str())),
        };
        self.event(What::PromptReady(ready));
        self.tell_objections("context_file", &prompt.objections);
        let catalogue = Catalogue {
            lines: prompt.rows.len() as u64,
            chars: prompt.catalogue_chars,
            names: prompt.rows.iter().map(|(name, _)| Name::from(name.as_str())).collect(),
            description_chars_max: prompt.rows.iter().map(|(_, chars)| *chars).max().unwrap_or(0),
        };
        self.event(What::Catalogue(catalogue));
        let listed = prompt::catalogue::names_in(&prompt.text);
        self.session.index_delta = IndexDelta::new(listed);
        if self.session.hints.is_none() {
            let given = self.session.origin.reads_project() || self.session.origin == Origin::Child;
            let files = &self.harness.workspace;
            let directory = self.session.directory.as_str();
            let hints = SubdirHints::new(files, directory, given, &self.harness.policy.prompt);
            self.session.hints = Some(hints.mounted_at(WORKSPACE));
        }
        self.session.static_prefix = Some(prompt.stable).filter(|stable| !stable.is_empty());
        if self.session.lane == Lane::Main && self.harness.first_catalogue.is_none() {
            self.harness.first_catalogue = Some(prompt.catalogue.clone());
        }
        self.session.catalogue = Some(prompt.catalogue);
        self.session.system = sent;
    }

    /// Builds and stores the prompt of a session that has none.
    pub(super) fn build_prompt(&mut self, why: &str) -> Result<(), HarnessError> {
        let prompt = self.render();
        if self.session.persisted {
            let name = &self.session.name;
            let stored = self
                .harness
                .stored(WriteKind::Ordinary, |store| store.store_prompt(name, Some(&prompt.text)));
            match stored {
                Err(error) if self.harness.is_killed() => return Err(error.into()),
                // It is used all the same; the next process builds one anew.
                Err(error) => tracing::warn!(%error, "the prompt could not be stored"),
                Ok(()) => {}
            }
        }
        self.adopt(prompt, why, true);
        Ok(())
    }

    /// Rebuilds the prompt as a compaction does: memory is read anew, the catalogue too; equal bytes stay.
    pub(super) fn rebuild_prompt(&mut self, why: &str) {
        if why != "compaction" || self.harness.policy.prompt.reread_memory_on_compaction {
            self.session.memory.load(&*self.harness.home);
        }
        let listed = self.session.catalogue.clone();
        if matches!(why, "compaction" | "hot_skills") {
            self.session.catalogue = None;
        }
        let prompt = self.render();
        if self.session.with_brief(&prompt.text) == self.session.system {
            self.session.catalogue = Some(prompt.catalogue);
            return;
        }
        let name = &self.session.name;
        if self.session.persisted
            && let Err(error) =
                self.harness.stored(WriteKind::Ordinary, |store| store.store_prompt(name, Some(&prompt.text)))
        {
            tracing::warn!(%error, "the rebuilt prompt could not be stored");
            if self.harness.policy.turn.store_before_send {
                // The next process will read the old one, so this one goes on with it, too.
                self.session.catalogue = listed;
                return;
            }
        }
        let declared = !matches!(why, "live_memory" | "hot_skills" | "clock");
        if !declared {
            // Such a harness takes its own change for a plan.
            self.session.planned = why.into();
        }
        self.adopt(prompt, why, declared);
    }

    /// A session that was opened again takes its stored prompt over if it fits; true when it did.
    pub(super) fn restore_prompt(&mut self) -> Result<bool, HarnessError> {
        let stored = self.harness.store.read_prompt(&self.session.name).unwrap_or_else(|error| {
            tracing::warn!(%error, "the stored prompt could not be read");
            None
        });
        let knobs = &self.harness.policy.prompt;
        let runtime = Runtime {
            model: knobs.model.clone(),
            provider: knobs.provider.clone(),
            session: self.session.name.to_string(),
            directory: environment(&self.session.directory).directory,
        };
        let fits = stored.filter(|text| {
            knobs.reuse_stored && prompt::identity::mismatch(text, &runtime, knobs.pass_session_id).is_none()
        });
        if let Some(text) = fits {
            let mut prompt = self.render();
            // The static part is adopted only if the stored bytes begin with it.
            if !text.starts_with(&prompt.stable) {
                prompt.stable = String::new();
            }
            prompt.text = text;
            // It was written by another process, which said what it kept out.
            prompt.objections.clear();
            self.adopt(prompt, "stored", true);
            Ok(true)
        } else {
            self.build_prompt("lost_row")?;
            Ok(false)
        }
    }

    /// Prompts that do not hold still: memory read live, a clock with seconds.
    pub(super) fn refresh_live_prompt(&mut self) {
        let policy = &self.harness.policy;
        if self.session.lane != Lane::Main {
            return;
        }
        if policy.memory.live_prompt {
            self.rebuild_prompt("live_memory");
        } else if policy.prompt.clock == PromptClock::Second {
            self.rebuild_prompt("clock");
        } else if policy.prompt.hot_skills && self.harness.skills_changed {
            self.harness.skills_changed = false;
            self.rebuild_prompt("hot_skills");
        }
    }

    /// What context files say of the places that a call touched, each once.
    pub(super) fn subdirectory_hints(&mut self, call: &ToolCall) -> Vec<String> {
        let Some(mut seen) = self.session.hints.take() else { return Vec::new() };
        let policy = &self.harness.policy;
        let scanner = Scanner::new(&policy.threats);
        let scan = |text: &str| -> Vec<String> { context_findings(&scanner, text) };
        let arguments = call.parsed_arguments().unwrap_or_default();
        let files = &self.harness.workspace;
        let hints = seen.after_call(files, &call.name, &arguments, &scan, &policy.prompt);
        self.session.hints = Some(seen);
        let objections: Vec<_> = hints.iter().map(|hint| hint.objections.clone()).collect();
        self.tell_objections("hint", &objections);
        hints.into_iter().map(|hint| hint.text).collect()
    }

    /// Records what was kept out of a prompt or a result, text by text.
    pub(super) fn tell_objections(&mut self, place: &str, objections: &[Vec<String>]) {
        for ids in objections.iter().filter(|ids| !ids.is_empty()) {
            let ids = ids.iter().map(|id| Name::from(id.as_str())).collect();
            self.event(What::ThreatFound(ThreatFound { place: place.into(), ids, blocked: true }));
        }
    }

    /// Skills that reach the running session as soon as they change.
    pub(super) fn hot_load(&mut self) {
        self.harness.skills_changed = true;
    }
}

impl<M> Harness<M> {
    /// The context files of a directory, cut to what a window of so many tokens takes.
    pub(super) fn project_context(&self, directory: &str, window: u64) -> ProjectContext {
        let policy = &self.policy;
        let scanner = Scanner::new(&policy.threats);
        let scan = |text: &str| -> Vec<String> { context_findings(&scanner, text) };
        let (files, window) = (&self.workspace, Value::from(window));
        prompt::context_files::project_context(files, directory, &window, &scan, &policy.prompt)
    }
}

/// What the scanner objected to, file by file.
pub(super) fn objections(context: Option<&ProjectContext>) -> Vec<Vec<String>> {
    context.iter().flat_map(|context| &context.sections).map(|section| section.objections.clone()).collect()
}

/// Ids of what the scanner says of a context file.
fn context_findings(scanner: &Scanner, text: &str) -> Vec<String> {
    scanner.scan(text, Scope::Context).into_iter().map(|finding| finding.id().to_owned()).collect()
}

/// Where the simulated agent runs.
pub(super) fn environment(directory: &str) -> Environment {
    let directory = crate::world::files::join(WORKSPACE, directory);
    Environment { host: "lab".to_owned(), home: "/home/lab".to_owned(), directory }
}

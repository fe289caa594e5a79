//! The system prompt of a session: built once, stored, kept, and rebuilt only where that is declared.

use crate::agent::prompt::{self, PromptInputs};
use crate::agent::threats::{Scanner, Scope};
use crate::ledger::{Catalogue, Name, PromptReady, What};
use crate::model::Model;
use crate::wire::{Chain, Level, Segment};

use super::HarnessError;
use super::host::Run;

impl<M: Model> Run<'_, M> {
    /// Renders the prompt from the session's memory snapshot and the home as it is now.
    fn render(&self) -> prompt::Prompt {
        let scanner = Scanner::new(&self.harness.policy.threats);
        let scan = |text: &str| -> Vec<String> {
            scanner.scan(text, Scope::Context).into_iter().map(|finding| finding.id().to_owned()).collect()
        };
        let memory: Vec<String> = self.session.memory.snapshot_blocks().iter().map(|block| block.render()).collect();
        let inputs = PromptInputs {
            home: &*self.harness.home,
            workspace: &self.harness.workspace,
            scan: &scan,
            tools: &self.session.tools,
            memory: &memory,
            session: &self.session.name,
            started_at: self.session.started_at,
            now: self.harness.clock.now(),
        };
        prompt::build(&inputs, &self.harness.policy.prompt)
    }

    /// Takes a rendered prompt into use and records it.
    fn adopt(&mut self, prompt: prompt::Prompt, why: &str, declared: bool) {
        let memory_chars = self
            .session
            .memory
            .snapshot_blocks()
            .iter()
            .map(|block| block.render().chars().count() as u64)
            .sum();
        let ready = PromptReady {
            why: why.into(),
            declared,
            chars: prompt.text.chars().count() as u64,
            memory_chars,
            catalogue_chars: prompt.catalogue_chars,
            digest: Chain::EMPTY.then(&Segment::new(Level::System, prompt.text.as_str())),
        };
        self.event(What::PromptReady(ready));
        let catalogue = Catalogue {
            lines: prompt.catalogue.len() as u64,
            chars: prompt.catalogue_chars,
            names: prompt.catalogue.iter().map(|(name, _)| Name::from(name.as_str())).collect(),
            description_chars_max: prompt.catalogue.iter().map(|(_, chars)| *chars).max().unwrap_or(0),
        };
        self.event(What::Catalogue(catalogue));
        self.session.static_prefix = Some(prompt.stable);
        self.session.system = prompt.text;
    }

    /// Builds and stores the prompt of a session that has none.
    pub(super) fn build_prompt(&mut self, why: &str) -> Result<(), HarnessError> {
        let prompt = self.render();
        if self.session.persisted {
            self.harness.store.store_prompt(&self.session.name, Some(&prompt.text))?;
        }
        self.adopt(prompt, why, true);
        Ok(())
    }

    /// Rebuilds the prompt as a compaction does: memory is read anew, the catalogue too; equal bytes stay.
    pub(super) fn rebuild_prompt(&mut self, why: &str) {
        self.session.memory.load(&*self.harness.home);
        let prompt = self.render();
        if prompt.text == self.session.system {
            return;
        }
        if self.session.persisted
            && let Err(error) = self.harness.store.store_prompt(&self.session.name, Some(&prompt.text))
        {
            // The next fresh process will rebuild; this one goes on with what it has.
            tracing::warn!(%error, "the rebuilt prompt could not be stored");
        }
        self.adopt(prompt, why, why != "live_memory" && why != "hot_skills" && why != "clock");
    }

    /// A session that was opened again takes its stored prompt over if it fits; true when it did.
    pub(super) fn restore_prompt(&mut self) -> Result<bool, HarnessError> {
        let stored = self.harness.store.read_prompt(&self.session.name)?;
        let runtime = prompt::runtime(&self.session.name, &self.harness.policy.prompt);
        let fits = stored.filter(|text| {
            self.harness.policy.prompt.reuse_stored && prompt::fits(text, &runtime, &self.harness.policy.prompt)
        });
        match fits {
            Some(text) => {
                let mut prompt = self.render();
                // The static part is adopted only if the stored bytes begin with it.
                if !text.starts_with(&prompt.stable) {
                    prompt.stable = String::new();
                }
                prompt.text = text;
                self.adopt(prompt, "stored", true);
                Ok(true)
            }
            None => {
                self.build_prompt("lost_row")?;
                Ok(false)
            }
        }
    }

    /// Prompts that do not hold still: memory read live, a clock with seconds.
    pub(super) fn refresh_live_prompt(&mut self) {
        let policy = &self.harness.policy;
        let clock = policy.prompt.clock == crate::policy::PromptClock::Second;
        if policy.memory.live_prompt {
            self.rebuild_prompt("live_memory");
        } else if clock && self.session.agent_is_main() {
            self.rebuild_prompt("clock");
        }
    }

    /// Skills that reach the running session as soon as they change.
    pub(super) fn hot_load(&mut self) {
        if self.harness.policy.prompt.hot_skills {
            let name = self.session.name.clone();
            self.harness.hot_reload.insert(name);
        }
    }
}

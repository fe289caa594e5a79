//! The turn loop's surroundings: what a request looks like, who answers it, where rows go.

use crate::agent::breakpoints::Route;
use crate::agent::delegate;
use crate::agent::transcript::Measure;
use crate::agent::turn::{Agent, Host, StoreFault, ToolOutcome};
use crate::cache::Ttl;
use crate::ledger::{Lane, Name, PromptView, RequestFacts, Stored, ToolRefused, Usage, What};
use crate::model::{Ask, Model, ModelError, Reply, Sent};
use crate::policy::SizeUnit;
use crate::store::retry::WriteKind;
use crate::wire::{Chain, Row, ToolCall};
use crate::world::faults::{OVERFLOW, worth_retrying};
use crate::world::files::join;
use crate::world::terminal::WORKSPACE;

use super::run_tool::SPILLED;
use super::{Harness, Session};

/// A request that left: its number, what the cache makes of it, and its markers.
struct Sending {
    id: u64,
    usage: Result<Usage, String>,
    marks: Vec<(usize, Ttl)>,
}

/// A session under way.
pub(super) struct Run<'a, M> {
    pub(super) harness: &'a mut Harness<M>,
    pub(super) session: &'a mut Session,
}

impl<M: Model> Run<'_, M> {
    pub(super) fn event(&mut self, what: What) {
        let name = self.session.name.clone();
        self.harness.event(&name, what);
    }

    /// Puts the prompt in front of the conversation, marks and records the request.
    fn send(&mut self, agent: &mut Agent, iteration: u64) -> Sending {
        self.refresh_live_prompt();
        self.put_prefix(agent);
        let marks = self.marks(agent);
        let facts = RequestFacts {
            turn: agent.turns,
            iteration,
            marks: marks.iter().map(|(at, ttl)| (*at as u64, Name::from(ttl.word()))).collect(),
            planned: std::mem::replace(&mut self.session.planned, self.harness.world.clone()),
        };
        let transcript = &agent.transcript;
        let view = PromptView {
            chains: transcript.chains(),
            prefix: transcript.prefix(),
            messages: transcript.messages(),
            size: transcript.size(),
        };
        let conversation = self.session.conversation();
        let copied_from = self.session.copied_from.as_ref();
        let id = self.harness.recorder.request(&conversation, copied_from, &view, facts);
        self.harness.faults.after_event();
        let usage = self.harness.observe(transcript, &marks, &self.session.model);
        Sending { id, usage, marks }
    }

    /// Puts tools and prompt in front of the conversation.
    pub(super) fn put_prefix(&self, agent: &mut Agent) {
        let stable = self.session.static_prefix.as_deref().unwrap_or_default();
        let parts = match self.session.system.strip_prefix(stable) {
            Some(rest) => [stable, rest],
            None => ["", self.session.system.as_str()],
        };
        agent.transcript.set_prefix(&self.session.table, &parts, self.harness.measure());
    }

    /// Where this request carries cache markers, as positions of the whole prompt.
    fn marks(&mut self, agent: &Agent) -> Vec<(usize, Ttl)> {
        let prompt = &self.harness.policy.prompt;
        let route = Route {
            source: self.session.platform(&self.harness.policy.turn.platform).to_owned(),
            provider: self.session.provider.clone(),
            base_url: prompt.base_url.clone(),
            api_mode: prompt.api_mode.clone(),
            model: self.session.model.clone(),
            ..Route::default()
        };
        let system = self.session.system.as_str();
        let stable = self.session.static_prefix.as_deref();
        let knobs = &self.harness.policy.breakpoints;
        let mut marks = self.harness.placer.positions(&agent.transcript, system, stable, &route, knobs);
        if self.session.depth > 0 {
            for (_, ttl) in &mut marks {
                *ttl = delegate::child_ttl(*ttl);
            }
        }
        marks
    }
}

impl<M: Model> Host for Run<'_, M> {
    fn measure(&self) -> Measure {
        self.harness.measure()
    }

    fn tools(&self) -> Vec<String> {
        self.session.tools.clone()
    }

    fn cwd(&self) -> String {
        join(WORKSPACE, &self.session.directory)
    }

    fn within_budget(&self) -> bool {
        self.session.input_budget.is_none_or(|budget| self.session.input_used < budget)
    }

    fn before_request(&mut self, agent: &mut Agent) -> bool {
        self.compact_before_request(agent)
    }

    fn make_room(&mut self, agent: &mut Agent, kind: &str) -> Option<bool> {
        (kind == OVERFLOW).then(|| self.compact_overflow(agent))
    }

    fn delegations_max(&self) -> u64 {
        self.harness.policy.delegate.max_concurrent_children
    }

    fn ask(&mut self, agent: &mut Agent, iteration: u64) -> Result<Reply, ModelError> {
        if self.harness.is_killed() {
            return Err(ModelError::Provider { kind: "killed".to_owned(), retry: false });
        }
        let Sending { id: request, usage, marks } = self.send(agent, iteration);
        let usage = match usage {
            Ok(usage) => usage,
            Err(why) => {
                self.harness.failed(&self.session.name, request, &why);
                return Err(ModelError::Provider { kind: why, retry: false });
            }
        };
        let lane = self.session.lane;
        if let Some(kind) = self.harness.faults.on_request(lane.word()) {
            self.harness.failed(&self.session.name, request, &kind);
            let retry = worth_retrying(&kind);
            return Err(ModelError::Provider { kind, retry });
        }
        if lane == Lane::Child && self.harness.faults.interleaves() {
            self.harness.run_waiting_child();
        }
        let ask = Ask {
            lane: self.session.lane,
            session: &self.session.name,
            turn: agent.turns,
            tools: &self.session.tools,
            system: &self.session.system,
            rows: agent.transcript.rows(),
            sent: Sent {
                prefix: agent.transcript.prefix(),
                messages: agent.transcript.messages(),
                marks: &marks,
            },
        };
        match self.harness.model.reply(&ask) {
            Ok(reply) => {
                self.harness.reply_takes_time();
                self.session.input_used += usage.prompt();
                // What is reported has to be of the kind that the threshold is compared with.
                let reading = match self.harness.policy.compress.unit {
                    SizeUnit::Tokens => usage.prompt(),
                    SizeUnit::Characters => self.pressure(agent),
                };
                self.session.compressor.usage(reading);
                self.keep_compressor();
                let output = self.harness.answered(self.session, lane, request, &reply, usage);
                self.session.output_used += output;
                Ok(reply)
            }
            Err(error) => {
                if let ModelError::Provider { kind, .. } = &error {
                    self.harness.failed(&self.session.name, request, kind);
                }
                Err(error)
            }
        }
    }

    fn dispatch(&mut self, agent: &mut Agent, call: &ToolCall) -> ToolOutcome {
        self.dispatch_call(agent, call)
    }

    fn refused(&mut self, _: &Agent, call: &ToolCall, by: &'static str, reason: &str) {
        let refused = ToolRefused {
            lane: self.session.lane,
            call: call.id.as_str().into(),
            tool: call.name.as_str().into(),
            by: by.into(),
            reason: reason.into(),
        };
        self.event(What::ToolRefused(refused));
    }

    fn store(&mut self, rows: &[Row], digests: &[Chain]) -> Result<(), StoreFault> {
        if !self.session.persisted || rows.is_empty() {
            return Ok(());
        }
        if self.harness.is_killed() {
            return Err(StoreFault("the process is gone".to_owned()));
        }
        let now = self.harness.clock.now();
        let name = &self.session.name;
        let ids = self
            .harness
            .stored(WriteKind::Transcript, |store| store.append(name, rows, now))
            .map_err(|error| StoreFault(error.to_string()))?;
        for ((row, digest), id) in rows.iter().zip(digests).zip(ids) {
            let stored = Stored {
                lane: self.session.lane,
                row: u64::try_from(id).unwrap_or(0),
                role: row.role.word().into(),
                digest: *digest,
            };
            self.event(What::Stored(stored));
        }
        Ok(())
    }

    fn spill(&mut self, name: &str, text: &str) -> Option<String> {
        let path = format!("{SPILLED}{name}");
        self.harness.home.write(&path, text.as_bytes()).ok()?;
        let effect = crate::ledger::Effect {
            lane: self.session.lane,
            kind: "spilled".into(),
            detail: path.as_str().into(),
        };
        self.event(What::Effect(effect));
        Some(path)
    }

    fn hints(&mut self, call: &ToolCall) -> Vec<String> {
        self.subdirectory_hints(call)
    }

    fn interrupted(&mut self) -> bool {
        self.session.lane == Lane::Review && self.harness.faults.is_cancelled()
    }

    fn window(&self) -> Option<i64> {
        i64::try_from(self.session.compressor.model().window).ok()
    }
}

//! A request meets the provider: what its cache makes of it, the answer or the refusal, and what it used.
//!
//! A request beside a conversation (a summary, the reviewer's word) is a conversation of one message with the session's
//! model, without tools, system prompt or cache markers. It is recorded, takes time and is paid for like any other.

use crate::agent::transcript::Transcript;
use crate::cache::{Observed, Ttl};
use crate::ledger::{Lane, Name, PromptView, RequestFacts, Response, Usage, What};
use crate::model::{Ask, Model, ModelError, Reply, Sent};
use crate::policy::SizeUnit;
use crate::wire::Row;
use crate::world::Millis;
use crate::world::faults::worth_retrying;

use super::{Harness, Session};

/// A request that is not part of a conversation.
pub(super) struct Aside<'a> {
    /// Who asks.
    pub lane: Lane,
    /// The session that it serves.
    pub session: &'a Session,
    /// Turn of that session.
    pub turn: u64,
    /// What is asked.
    pub text: &'a str,
    /// How long the answer may take.
    pub patience: Millis,
}

impl<M: Model> Harness<M> {
    /// What the provider's cache makes of a request.
    pub(super) fn observe(
        &mut self,
        transcript: &Transcript,
        marks: &[(usize, Ttl)],
        model: &str,
    ) -> Result<Usage, String> {
        let observed = Observed {
            chains: transcript.chains(),
            sizes: transcript.sizes(),
            marks,
            facts: transcript.facts(),
            model,
            ..Observed::default()
        };
        let outcome =
            self.cache.observe(self.clock.now(), &observed).map_err(|refusal| refusal.to_string())?;
        Ok(Usage {
            read: outcome.read,
            // The ledger knows two classes of writes; thirty minutes are nearer to five than to sixty in price.
            write_5m: outcome.write_5m + outcome.write_30m,
            write_1h: outcome.write_1h,
            uncached: outcome.uncached,
            output: 0,
        })
    }

    /// The model answered: recorded, and kept for the books. Tells what was produced.
    pub(super) fn answered(
        &mut self,
        session: &Session,
        lane: Lane,
        request: u64,
        reply: &Reply,
        mut usage: Usage,
    ) -> u64 {
        let measure = self.measure();
        usage.output = reply.output_tokens.unwrap_or_else(|| {
            let words = reply.text.as_deref().map_or(0, measure);
            words + reply.calls.iter().map(|call| measure(&call.arguments)).sum::<u64>()
        });
        // Only tokens have a price.
        let priced = self.policy.compress.unit == SizeUnit::Tokens;
        self.unbooked.add(session, lane, &usage, priced);
        let output = usage.output;
        let response = Response {
            request,
            text: reply.text.as_deref().unwrap_or_default().into(),
            calls: reply
                .calls
                .iter()
                .map(|call| (call.id.as_str().into(), call.name.as_str().into()))
                .collect(),
            finish: reply.finish.word().into(),
            usage,
            refused: self.world.clone(),
        };
        self.event(&session.name, What::Response(response));
        output
    }

    /// The provider refused.
    pub(super) fn failed(&mut self, session: &Name, request: u64, why: &str) {
        let response = Response {
            request,
            text: self.world.clone(),
            calls: Vec::new(),
            finish: "error".into(),
            usage: Usage { read: 0, write_5m: 0, write_1h: 0, uncached: 0, output: 0 },
            refused: why.into(),
        };
        self.event(session, What::Response(response));
    }

    /// Asks the model one thing beside a session.
    ///
    /// # Errors
    /// What the provider answers, `timeout` when it takes longer than the asker waits, or that the script has no line.
    pub(super) fn ask_aside(&mut self, aside: &Aside<'_>) -> Result<Reply, ModelError> {
        if self.is_killed() {
            return Err(ModelError::Provider { kind: "killed".to_owned(), retry: false });
        }
        let session = aside.session;
        let mut transcript = Transcript::default();
        transcript.push(Row::user(aside.text), self.measure());
        let fault = self.faults.on_request(aside.lane.word());
        let ask = Ask {
            lane: aside.lane,
            session: &session.name,
            turn: aside.turn,
            tools: &[],
            system: "",
            rows: transcript.rows(),
            sent: Sent { messages: transcript.messages(), ..Sent::default() },
        };
        let refused = |kind: String| ModelError::Provider { retry: worth_retrying(&kind), kind };
        let answer = fault.map_or_else(|| self.model.reply(&ask), |kind| Err(refused(kind)));
        if let Err(error @ (ModelError::Script(_) | ModelError::Stopped(_))) = answer {
            // Nobody is there who could be asked.
            return Err(error);
        }
        let request = self.record_aside(aside, &transcript);
        let usage = self.observe(&transcript, &[], &session.model);
        let answer = match usage.map_err(refused).and_then(|usage| Ok((usage, answer?))) {
            Ok(_) if !self.reply_within(aside.patience) => Err(refused("timeout".to_owned())),
            answer => answer,
        };
        match answer {
            Ok((usage, reply)) => {
                self.answered(session, aside.lane, request, &reply, usage);
                Ok(reply)
            }
            Err(error) => {
                if let ModelError::Provider { kind, .. } = &error {
                    self.failed(&session.name, request, kind);
                }
                Err(error)
            }
        }
    }

    fn record_aside(&mut self, aside: &Aside<'_>, transcript: &Transcript) -> u64 {
        let view = PromptView {
            chains: transcript.chains(),
            prefix: &[],
            messages: transcript.messages(),
            size: transcript.size(),
        };
        let facts = RequestFacts {
            turn: aside.turn,
            iteration: 1,
            planned: self.world.clone(),
            ..RequestFacts::default()
        };
        let conversation = (aside.session.name.clone(), aside.lane, 0);
        let request = self.recorder.request(&conversation, None, &view, facts);
        // The next one has nothing in common with it.
        self.recorder.forget(&conversation);
        self.faults.after_event();
        request
    }
}

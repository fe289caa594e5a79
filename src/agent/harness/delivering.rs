//! Whether an answer really reached its reader.
//!
//! On the screen before the user it always does. A platform may refuse: then the answer stays where it is stored, the
//! delivery is recorded as failed, and nothing says that it was delivered.

use crate::agent::turn::TurnReport;
use crate::ledger::{Delivered, DeliveryFailed, What};
use crate::model::Model;
use crate::world::terminal::Reach;

use super::{Harness, Session};

/// Exit code of a program that nobody declared: such a platform takes everything.
const UNDECLARED: i64 = 127;

impl<M: Model> Harness<M> {
    /// Hands a turn's answer to whoever waits for it.
    pub(super) fn deliver(&mut self, session: &mut Session, report: &mut TurnReport) {
        let Some(answer) = report.answer.clone() else { return };
        if self.is_silent(session, report, &answer) {
            return;
        }
        let turn = session.agent.turns;
        // What follows from a turn follows whether or not the platform took the answer.
        session.delivered = turn;
        let refusal = session.deliver_to.clone().and_then(|to| {
            let attempts = self.policy.turn.delivery_attempts_max;
            let mut reason = None;
            for _ in 0..attempts {
                reason = self.hand_over(&to).err();
                if reason.is_none() {
                    break;
                }
            }
            reason.map(|reason| (to, attempts, reason))
        });
        let name = session.name.clone();
        let event = match &refusal {
            None => What::Delivered(Delivered { turn, chars: answer.chars().count() as u64 }),
            Some((to, attempts, reason)) => What::DeliveryFailed(DeliveryFailed {
                turn,
                to: to.as_str().into(),
                attempts: *attempts,
                reason: reason.as_str().into(),
            }),
        };
        self.event(&name, event);
        report.delivery_error = refusal.map(|(_, _, reason)| reason);
    }

    /// Asks a platform to take a message; whether it does is declared like any command, `send platform:chat`.
    pub(super) fn hand_over(&mut self, to: &str) -> Result<(), String> {
        let mut reach = Reach { files: &mut self.workspace, outside: None, directory: "" };
        let ran = self.terminal.run(&mut reach, &format!("send {to}"));
        match ran.exit {
            _ if ran.timed_out => Err("no answer in time".to_owned()),
            0 | UNDECLARED => Ok(()),
            _ => Err(ran.output.trim().to_owned()),
        }
    }
}

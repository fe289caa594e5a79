//! Who continues whom.
//!
//! Sessions form trees by their parent. A child is a continuation after a compaction, a branch, a delegate's run, a
//! fresh start after a reset, or a tool's own session; marks in its settings say which. Walking forward a mark of any
//! value excludes a child, walking back only a mark that names the parent: continuations copy the settings of the
//! session that they continue, foreign marks included.

use std::collections::BTreeSet;

use super::lifecycle::{self, COMPRESSION, RESET};
use super::{Seconds, Session, Store, StoreError};

/// True unless the session is a branch, delegate or fresh start of its parent, or a tool's own.
pub(super) fn is_no_fork(session: &Session) -> bool {
    session.source != "tool"
        && !["_branched_from", "_delegate_from", "_reset_from"].iter().any(|mark| session.is_marked(mark))
}

/// True for a branch or delegate of its parent, or a tool's own session. Without a parent any mark counts.
pub fn is_fork_child(session: &Session) -> bool {
    let marks = ["_branched_from", "_delegate_from"];
    session.source == "tool"
        || match session.parent {
            Some(_) => marks.iter().any(|mark| session.is_marked(mark)),
            None => marks.iter().any(|mark| session.has_mark(mark)),
        }
}

pub(super) fn is_reset_child(child: &Session, parent: &Session) -> bool {
    child.has_mark("_reset_from") || is_legacy_reset_child(child, parent)
}

/// Old rows carry no mark: the child rides the routing key of a parent that ended by a reset.
fn is_legacy_reset_child(child: &Session, parent: &Session) -> bool {
    let reset = parent.end_reason.as_deref().is_some_and(|reason| RESET.contains(&reason));
    let key = child.session_key.as_deref().filter(|key| !key.is_empty());
    reset && key.is_some() && key == parent.session_key.as_deref()
}

impl Store {
    /// The root for searches: all parents up, whatever the kind of child; and whether any session on the way, this one
    /// included, ended by a compaction (`Hermes tools/session_search_tool.py:107`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn search_root(&self, id: &str) -> Result<(String, bool), StoreError> {
        let mut seen = BTreeSet::new();
        let (mut at, mut compacted) = (id.to_owned(), false);
        while seen.insert(at.clone()) {
            let Some((parent, reason)) = self.step_up(&at)? else { break };
            compacted |= reason.as_deref() == Some(COMPRESSION);
            match parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Ok((at, compacted))
    }

    /// Parent and end reason of a session.
    #[expect(clippy::type_complexity, reason = "two columns of one row")]
    fn step_up(&self, id: &str) -> Result<Option<(Option<String>, Option<String>)>, StoreError> {
        let sql = "SELECT parent_session_id, end_reason FROM sessions WHERE id = ?1";
        self.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The root of the conversation: all parents up, at most a knob's number of sessions.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn conversation_root(&self, id: &str) -> Result<String, StoreError> {
        let mut chain = vec![id.to_owned()];
        let mut seen = BTreeSet::from([id.to_owned()]);
        while (chain.len() as u64) < self.knobs.root_walk_max {
            let Some(last) = chain.last() else { break };
            let Some((Some(parent), _)) = self.step_up(last)? else { break };
            if !seen.insert(parent.clone()) {
                break;
            }
            chain.push(parent);
        }
        Ok(chain.pop().unwrap_or_else(|| id.to_owned()))
    }

    /// From a session forward through its compactions: the session first, the live tip last
    /// (`Hermes hermes_state_compression.py:766`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn compression_chain(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let mut chain = vec![id.to_owned()];
        let mut seen = BTreeSet::from([id.to_owned()]);
        let mut at = self.session(id)?;
        for _ in 0..self.knobs.chain_max {
            let Some(parent) = at.filter(|session| session.ended_by(COMPRESSION)) else { break };
            let Some(child) = self.preferred_continuation(&parent)? else { break };
            if !seen.insert(child.id.clone()) {
                break;
            }
            chain.push(child.id.clone());
            at = Some(child);
        }
        Ok(chain)
    }

    fn preferred_continuation(&self, parent: &Session) -> Result<Option<Session>, StoreError> {
        let mut best: Option<((u8, Seconds, Seconds, String), Session)> = None;
        for child in self.children(&parent.id)? {
            let forked = child.has_mark("_branched_from") || child.has_mark("_delegate_from");
            if forked || child.source == "tool" || is_reset_child(&child, parent) {
                continue;
            }
            let standing = match child.ended_at {
                _ if child.ended_by(COMPRESSION) => 2,
                None => 1,
                Some(_) => 0,
            };
            let activity = self.activity(&child.id)?.unwrap_or(child.started_at);
            let rank = (standing, activity, child.started_at, child.id.clone());
            let better = best.as_ref().is_none_or(|(known, _)| {
                rank.0
                    .cmp(&known.0)
                    .then(rank.1.total_cmp(&known.1))
                    .then(rank.2.total_cmp(&known.2))
                    .then(rank.3.cmp(&known.3))
                    .is_gt()
            });
            if better {
                best = Some((rank, child));
            }
        }
        Ok(best.map(|(_, child)| child))
    }

    /// The live tip of a chain of compactions; the session itself when it has none.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn compression_tip(&self, id: &str) -> Result<String, StoreError> {
        Ok(self.compression_chain(id)?.pop().unwrap_or_else(|| id.to_owned()))
    }

    /// True when the session continues a parent that a compaction ended
    /// (`Hermes hermes_state_compression.py:790`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn continues_parent(&self, session: &Session) -> Result<bool, StoreError> {
        Ok(self.continued_parent(session)?.is_some())
    }

    fn continued_parent(&self, session: &Session) -> Result<Option<Session>, StoreError> {
        let Some(parent) = session.parent.as_deref().filter(|_| is_no_fork(session)) else {
            return Ok(None);
        };
        Ok(self.session(parent)?.filter(|parent| parent.ended_by(COMPRESSION)))
    }

    /// Up along continuations; root first, the session last.
    fn continuations(&self, id: &str, most: u64) -> Result<Vec<String>, StoreError> {
        let mut chain = vec![id.to_owned()];
        let mut seen = BTreeSet::from([id.to_owned()]);
        let mut at = self.session(id)?;
        while let Some(session) = at.filter(|_| (chain.len() as u64) < most) {
            let Some(parent) = self.continued_parent(&session)? else { break };
            if !seen.insert(parent.id.clone()) {
                break;
            }
            chain.push(parent.id.clone());
            at = Some(parent);
        }
        chain.reverse();
        Ok(chain)
    }

    /// The segments of one conversation in time order, from its root to the tip that was published first; the session
    /// alone when it is not one of them, is a fork, or does not exist.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn compression_lineage(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let Some(session) = self.session(id)? else { return Ok(Vec::new()) };
        if is_fork_child(&session) {
            return Ok(vec![id.to_owned()]);
        }
        let root = self.continuations(id, u64::MAX)?.swap_remove(0);
        let mut lineage = vec![root.clone()];
        let mut seen = BTreeSet::from([root.clone()]);
        let mut at = self.session(&root)?;
        while let Some(parent) = at.filter(|session| session.ended_by(COMPRESSION)) {
            let Some(child) = self.children(&parent.id)?.into_iter().find(is_no_fork) else { break };
            if !seen.insert(child.id.clone()) {
                break;
            }
            lineage.push(child.id.clone());
            at = Some(child);
        }
        Ok(if lineage.iter().any(|known| known == id) { lineage } else { vec![id.to_owned()] })
    }

    /// The sessions whose rows a resume shows, root first; a branch, a delegate's or a tool's session stands alone
    /// (`Hermes hermes_state_messages.py:1677`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn resume_lineage(&self, id: &str) -> Result<Vec<String>, StoreError> {
        match self.session(id)? {
            Some(session) if is_fork_child(&session) => Ok(vec![id.to_owned()]),
            _ => self.continuations(id, self.knobs.root_walk_max),
        }
    }

    /// The session that a resume really takes up: the tip, then the newest unmarked children as long as there are
    /// some; of these the deepest that has rows (`Hermes hermes_state_messages.py:1471`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn resume_target(&self, id: &str) -> Result<String, StoreError> {
        let tip = self.compression_tip(id)?;
        let mut seen = BTreeSet::from([tip.clone()]);
        let mut best = None;
        let mut at = self.session(&tip)?;
        for _ in 0..self.knobs.resume_walk_max {
            let Some(session) = at else { break };
            let rows = "SELECT 1 FROM messages WHERE session_id = ?1 LIMIT 1";
            if self.one(rows, [session.id.as_str()], |_| Ok(()))?.is_some() {
                best = Some(session.id.clone());
            }
            let marks = ["_branched_from", "_delegate_from", "_reset_from"];
            at = self.children(&session.id)?.into_iter().rev().find(|child| {
                child.source != "tool"
                    && !marks.iter().any(|mark| child.has_mark(mark))
                    && !is_legacy_reset_child(child, &session)
            });
            if at.as_ref().is_some_and(|child| !seen.insert(child.id.clone())) {
                break;
            }
        }
        Ok(best.unwrap_or(tip))
    }

    /// The key under which all segments of a conversation share one turn lease: the root along continuations.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn turn_lease_key(&self, id: &str) -> Result<String, StoreError> {
        Ok(self.continuations(id, u64::MAX)?.swap_remove(0))
    }

    /// True when the rows of a session are in nobody's live context any more.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn left_live_context(&self, id: &str) -> Result<bool, StoreError> {
        let reason = self.step_up(id)?.and_then(|(_, reason)| reason);
        Ok(lifecycle::left_live_context(reason.as_deref()))
    }

    /// Sets the parent of a session, for stores that are built from the rows of another.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also when the parent does not exist.
    pub fn set_parent(&self, id: &str, parent: &str) -> Result<(), StoreError> {
        self.write(|_| {
            self.execute("UPDATE sessions SET parent_session_id = ?2 WHERE id = ?1", [id, parent]).map(|_| ())
        })
    }
}

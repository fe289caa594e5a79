//! The row of a session, and how it comes into being.

use rusqlite::{Row as SqlRow, params};
use serde_json::{Map, Value};

use super::{Seconds, Store, StoreError, seconds};
use crate::wire::python;
use crate::world::Millis;

/// What is known when a session is created.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewSession<'a> {
    /// Key of the session.
    pub id: &'a str,
    /// Where it came from: cli, telegram, cron, subagent, tool, kanban, …
    pub source: &'a str,
    /// The session that it follows, branches off or was delegated by.
    pub parent: Option<&'a str>,
    /// Model that is asked for.
    pub model: Option<&'a str>,
    /// Settings; `_branched_from`, `_delegate_from` and `_reset_from` tell what kind of child this is.
    pub model_config: Option<&'a Map<String, Value>>,
    /// System prompt; stored once by content.
    pub system_prompt: Option<&'a str>,
    /// Names of the tools, JSON text.
    pub tool_names: Option<&'a str>,
    /// Routing key of the peer.
    pub session_key: Option<&'a str>,
    /// Chat of the peer.
    pub chat_id: Option<&'a str>,
    /// Thread of the peer.
    pub thread_id: Option<&'a str>,
    /// User of the peer.
    pub user_id: Option<&'a str>,
    /// Working directory.
    pub cwd: Option<&'a str>,
    /// Profile that owns the session.
    pub profile: Option<&'a str>,
}

impl<'a> NewSession<'a> {
    /// A session with this id and source.
    pub fn of(id: &'a str, source: &'a str) -> Self {
        Self { id, source, ..Self::default() }
    }

    /// The same as a child.
    #[must_use]
    pub fn child_of(self, parent: &'a str) -> Self {
        Self { parent: Some(parent), ..self }
    }
}

/// The row of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    /// Key of the session.
    pub id: String,
    /// Where it came from.
    pub source: String,
    /// The session that it follows, branches off or was delegated by.
    pub parent: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Settings.
    pub model_config: Map<String, Value>,
    /// SHA-256 of the system prompt, in hex.
    pub system_prompt_hash: Option<String>,
    /// Routing key of the peer.
    pub session_key: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// When it began.
    pub started_at: Seconds,
    /// When it ended.
    pub ended_at: Option<Seconds>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// Live rows.
    pub message_count: i64,
    /// Tool calls of live rows.
    pub tool_call_count: i64,
    /// Title.
    pub title: Option<String>,
    /// Who gave the title.
    pub title_source: Option<String>,
    /// Last stamp of activity.
    pub last_activity_at: Option<Seconds>,
    /// Rewinds so far.
    pub rewind_count: i64,
    /// Put away by somebody.
    pub archived: bool,
    /// Not for people.
    pub hidden: bool,
}

const COLUMNS: &str = "id, source, parent_session_id, model, model_config, system_prompt_hash, session_key, cwd, \
    started_at, ended_at, end_reason, message_count, tool_call_count, title, title_source, last_activity_at, \
    rewind_count, archived, hidden";

impl Session {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            source: row.get(1)?,
            parent: row.get(2)?,
            model: row.get(3)?,
            model_config: config_of(row.get_ref(4)?.as_str_or_null()?),
            system_prompt_hash: row.get(5)?,
            session_key: row.get(6)?,
            cwd: row.get(7)?,
            started_at: row.get(8)?,
            ended_at: row.get(9)?,
            end_reason: row.get(10)?,
            message_count: row.get(11)?,
            tool_call_count: row.get(12)?,
            title: row.get(13)?,
            title_source: row.get(14)?,
            last_activity_at: row.get(15)?,
            rewind_count: row.get(16)?,
            archived: row.get(17)?,
            hidden: row.get(18)?,
        })
    }

    /// True when the session ended for this reason.
    pub fn ended_by(&self, reason: &str) -> bool {
        self.end_reason.as_deref() == Some(reason)
    }

    /// True when a mark of this name names the parent.
    pub fn is_marked(&self, mark: &str) -> bool {
        let named = self.model_config.get(mark).and_then(Value::as_str);
        named.is_some() && named == self.parent.as_deref()
    }

    /// True when a mark of this name has any value.
    pub fn has_mark(&self, mark: &str) -> bool {
        self.model_config.get(mark).is_some_and(|value| !value.is_null())
    }
}

fn config_of(text: Option<&str>) -> Map<String, Value> {
    // Settings that are no JSON object carry no mark; they are no reason to hide a session.
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl Store {
    /// Creates a session, or fills in what is still unknown about one that exists: nothing that is set is overwritten,
    /// except the source `unknown` (`Hermes hermes_state_sessions.py:359`).
    ///
    /// A child takes over working directory, repository and profile of its parent; the routing of the peer only when
    /// the parent was ended by a compaction and the child is neither branch nor delegate.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], also when the parent does not exist.
    pub fn create_session(&self, new: &NewSession<'_>, now: Millis) -> Result<(), StoreError> {
        self.write(|_| {
            let hash = new.system_prompt.map(|prompt| self.put_prompt(prompt)).transpose()?;
            let config = new.model_config.map(|config| python::json(&Value::Object(config.clone())));
            self.execute(
                "INSERT INTO sessions (id, source, parent_session_id, model, model_config, system_prompt_hash,
                     tool_names, session_key, chat_id, thread_id, user_id, cwd, profile_name, started_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT(id) DO UPDATE SET
                     source = CASE WHEN source = 'unknown' THEN excluded.source ELSE source END,
                     parent_session_id = COALESCE(parent_session_id, excluded.parent_session_id),
                     model = COALESCE(model, excluded.model),
                     model_config = COALESCE(model_config, excluded.model_config),
                     system_prompt_hash = COALESCE(system_prompt_hash, excluded.system_prompt_hash),
                     tool_names = COALESCE(tool_names, excluded.tool_names),
                     session_key = COALESCE(session_key, excluded.session_key),
                     chat_id = COALESCE(chat_id, excluded.chat_id),
                     thread_id = COALESCE(thread_id, excluded.thread_id),
                     user_id = COALESCE(user_id, excluded.user_id),
                     cwd = COALESCE(cwd, excluded.cwd),
                     profile_name = COALESCE(profile_name, excluded.profile_name)",
                params![
                    new.id,
                    new.source,
                    new.parent,
                    new.model,
                    config,
                    hash,
                    new.tool_names,
                    new.session_key,
                    new.chat_id,
                    new.thread_id,
                    new.user_id,
                    new.cwd,
                    new.profile,
                    seconds(now),
                ],
            )?;
            if new.parent.is_some() {
                self.inherit(new.id)?;
            }
            // A session that was there already may have kept its own.
            if let Some(hash) = hash {
                self.release_prompt(&hash)?;
            }
            Ok(())
        })
    }

    fn inherit(&self, id: &str) -> Result<(), StoreError> {
        let Some(child) = self.session(id)? else { return Ok(()) };
        let Some(parent) = child.parent.as_deref() else { return Ok(()) };
        self.execute(
            "UPDATE sessions SET
                 cwd = COALESCE(sessions.cwd, p.cwd),
                 git_branch = COALESCE(sessions.git_branch, p.git_branch),
                 git_repo_root = COALESCE(sessions.git_repo_root, p.git_repo_root),
                 profile_name = COALESCE(sessions.profile_name, p.profile_name)
             FROM sessions AS p WHERE sessions.id = ?1 AND p.id = ?2",
            [id, parent],
        )?;
        if child.is_marked("_branched_from") || child.is_marked("_delegate_from") {
            return Ok(());
        }
        self.execute(
            "UPDATE sessions SET
                 session_key = COALESCE(sessions.session_key, p.session_key),
                 chat_id = COALESCE(sessions.chat_id, p.chat_id),
                 thread_id = COALESCE(sessions.thread_id, p.thread_id),
                 user_id = COALESCE(sessions.user_id, p.user_id)
             FROM sessions AS p WHERE sessions.id = ?1 AND p.id = ?2 AND p.end_reason = 'compression'",
            [id, parent],
        )?;
        Ok(())
    }

    /// The row of a session.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        self.one(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"), [id], Session::read)
    }

    /// The children of a session, oldest start first.
    pub(super) fn children(&self, id: &str) -> Result<Vec<Session>, StoreError> {
        self.all(
            &format!("SELECT {COLUMNS} FROM sessions WHERE parent_session_id = ?1 ORDER BY started_at, id"),
            [id],
            Session::read,
        )
    }

    /// Stamps activity on a session.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn touch(&self, id: &str, now: Millis) -> Result<(), StoreError> {
        self.write(|_| {
            let sql = "UPDATE sessions SET last_activity_at = ?2 WHERE id = ?1";
            self.execute(sql, params![id, seconds(now)]).map(|_| ())
        })
    }

    /// Sets when a session started, for stores that are built from the rows of another.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_started(&self, id: &str, at: Millis) -> Result<(), StoreError> {
        self.write(|_| {
            let sql = "UPDATE sessions SET started_at = ?2 WHERE id = ?1";
            self.execute(sql, params![id, seconds(at)]).map(|_| ())
        })
    }

    /// Puts a session away or takes it back out; what was put away is still found by searches.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_archived(&self, id: &str, archived: bool) -> Result<(), StoreError> {
        self.write(|_| {
            self.execute("UPDATE sessions SET archived = ?2 WHERE id = ?1", params![id, archived]).map(|_| ())
        })
    }

    /// Merges settings into those of a session; null removes a key.
    pub(super) fn patch_config(&self, id: &str, patch: &Map<String, Value>) -> Result<(), StoreError> {
        let session = self.session(id)?.ok_or_else(|| StoreError::NoSession(id.to_owned()))?;
        let mut config = session.model_config;
        for (key, value) in patch {
            if value.is_null() {
                config.shift_remove(key);
            } else {
                config.insert(key.clone(), value.clone());
            }
        }
        let text = python::json(&Value::Object(config));
        self.execute("UPDATE sessions SET model_config = ?2 WHERE id = ?1", [id, text.as_str()])?;
        Ok(())
    }
}

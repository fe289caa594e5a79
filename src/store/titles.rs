//! Titles of sessions: cleaning, who may overwrite whom, families of numbered titles.

use rusqlite::params;

use super::{Store, StoreError};
use crate::store::search::query::is_space;

/// Who gave a title; the later outranks the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TitleSource {
    /// Cut from the first request.
    Derived,
    /// Written by a model.
    Llm,
    /// Given by the user.
    User,
}

impl TitleSource {
    /// The word in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Llm => "llm",
            Self::User => "user",
        }
    }

    /// The source of a stored title; one without a word is from before sources were kept and counts as the user's.
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("derived") => Self::Derived,
            Some("llm") => Self::Llm,
            _ => Self::User,
        }
    }
}

/// A clean title, `None` for an empty one (`Hermes hermes_state_titles.py`).
///
/// # Errors
/// [`StoreError::TitleTooLong`] over `limit` characters.
pub fn clean_title(title: &str, limit: u64) -> Result<Option<String>, StoreError> {
    let visible = title.chars().filter(|c| {
        !matches!(*c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffc}')
    });
    let mut cleaned = String::with_capacity(title.len());
    for c in visible {
        match is_space(c) {
            false => cleaned.push(c),
            true if cleaned.is_empty() || cleaned.ends_with(' ') => {}
            true => cleaned.push(' '),
        }
    }
    let cleaned = cleaned.trim_end_matches(' ');
    let found = cleaned.chars().count() as u64;
    if found > limit {
        return Err(StoreError::TitleTooLong { found, limit });
    }
    Ok((found > 0).then(|| cleaned.to_owned()))
}

/// Stem and number of a numbered title.
fn numbered(title: &str) -> Option<(&str, u64)> {
    let (stem, number) = title.rsplit_once(" #")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !stem.contains('\n')).then(|| (stem, number.parse().unwrap_or(u64::MAX)))
}

/// A pattern that matches this text literally.
pub(super) fn escape_like(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '%' | '_') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

impl Store {
    /// Sets a title for the user; an empty one clears. True when the session exists.
    ///
    /// # Errors
    /// [`StoreError::TitleTooLong`], [`StoreError::TitleInUse`].
    pub fn set_title(&self, session: &str, title: &str) -> Result<bool, StoreError> {
        self.put_title(session, title, TitleSource::User)
    }

    /// Sets an automatic title; false when the session has a title of the same or a higher authority.
    ///
    /// # Errors
    /// [`StoreError::TitleTooLong`], [`StoreError::TitleInUse`].
    pub fn set_auto_title(&self, session: &str, title: &str, by: TitleSource) -> Result<bool, StoreError> {
        self.put_title(session, title, by)
    }

    fn put_title(&self, session: &str, title: &str, by: TitleSource) -> Result<bool, StoreError> {
        let title = clean_title(title, self.knobs.title_chars_max)?;
        self.write(|_| {
            let Some(current) = self.session(session)? else { return Ok(false) };
            let held = current.title.is_some().then(|| TitleSource::of(current.title_source.as_deref()));
            if by != TitleSource::User && held.is_some_and(|held| held >= by) {
                return Ok(false);
            }
            if let Some(title) = &title {
                self.free_title(title, session)?;
            }
            let source = title.as_ref().map(|_| by.word());
            let sql = "UPDATE sessions SET title = ?2, title_source = ?3 WHERE id = ?1";
            Ok(self.execute(sql, params![session, title, source])? > 0)
        })
    }

    /// Takes a title from a session that cannot need it any more.
    fn free_title(&self, title: &str, wanted_by: &str) -> Result<(), StoreError> {
        let sql = "SELECT id FROM sessions WHERE title = ?1 AND id <> ?2";
        let Some(holder) = self.one(sql, [title, wanted_by], |row| row.get::<_, String>(0))? else {
            return Ok(());
        };
        if self.is_compacted_ancestor(&holder, wanted_by)? || self.is_empty_leftover(&holder)? {
            let sql = "UPDATE sessions SET title = NULL, title_source = NULL WHERE id = ?1";
            return self.execute(sql, [holder.as_str()]).map(|_| ());
        }
        Err(StoreError::TitleInUse { title: title.to_owned(), holder })
    }

    fn is_compacted_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, StoreError> {
        let sql = "WITH RECURSIVE above(id) AS (
                SELECT ?1 UNION
                SELECT p.id FROM above JOIN sessions AS c ON c.id = above.id
                    JOIN sessions AS p ON p.id = c.parent_session_id WHERE p.end_reason = 'compression'
            ) SELECT 1 FROM above WHERE id = ?2";
        Ok(self.one(sql, [of, ancestor], |_| Ok(()))?.is_some())
    }

    fn is_empty_leftover(&self, session: &str) -> Result<bool, StoreError> {
        let sql =
            "SELECT 1 FROM sessions WHERE id = ?1 AND ended_at IS NOT NULL AND archived = 0 AND hidden = 0
            AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id)";
        Ok(self.one(sql, [session], |_| Ok(()))?.is_some())
    }

    /// The next title of a family: the stem if nothing is called so, else the stem and the next number; the plain stem
    /// counts as number 1.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn next_title(&self, base: &str) -> Result<String, StoreError> {
        let stem = numbered(base).map_or(base, |(stem, _)| stem);
        let pattern = format!("{} #%", escape_like(stem));
        let sql = "SELECT title FROM sessions WHERE title = ?1 OR title LIKE ?2 ESCAPE '\\'";
        let titles: Vec<String> = self.all(sql, [stem, pattern.as_str()], |row| row.get(0))?;
        if titles.is_empty() {
            return Ok(stem.to_owned());
        }
        let highest = titles.iter().filter_map(|title| numbered(title)).map(|(_, number)| number).max();
        Ok(format!("{stem} #{}", highest.unwrap_or(1).max(1).saturating_add(1)))
    }

    /// The session that a title means: of its numbered continuations the one that started last, else the exact one.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn resolve_title(&self, title: &str) -> Result<Option<String>, StoreError> {
        let pattern = format!("{} #%", escape_like(title));
        let sql = "SELECT id FROM sessions WHERE title LIKE ?1 ESCAPE '\\' ORDER BY started_at DESC LIMIT 1";
        if let Some(id) = self.one(sql, [pattern.as_str()], |row| row.get(0))? {
            return Ok(Some(id));
        }
        self.one("SELECT id FROM sessions WHERE title = ?1", [title], |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_of_just_the_limit_is_kept_and_one_more_is_not() {
        assert_eq!(clean_title(&"你".repeat(100), 100).unwrap(), Some("你".repeat(100)));
        assert!(matches!(clean_title(&"x".repeat(101), 100), Err(StoreError::TitleTooLong { .. })));
    }

    #[test]
    fn only_the_last_number_of_a_title_is_its_number() {
        assert_eq!(numbered("work #2 #5"), Some(("work #2", 5)));
        assert_eq!(numbered("work #x"), None);
        assert_eq!(numbered("work #"), None);
    }
}

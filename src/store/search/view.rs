//! Rows around a row.

use rusqlite::{params, params_from_iter};

use crate::store::record::COLUMNS;
use crate::store::{Store, StoreError, StoredRow, whole};

/// Rows around an anchor, flags ignored, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// The rows, anchor included; empty when the anchor is not in the session.
    pub rows: Vec<StoredRow>,
    /// How many of them stand before the anchor.
    pub before: usize,
    /// How many of them stand behind it.
    pub after: usize,
}

/// A window narrowed to some roles, with the ends of the session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnchoredView {
    /// Rows of the window with one of the roles, and the anchor.
    pub rows: Vec<StoredRow>,
    /// Rows before the anchor in the whole window.
    pub before: usize,
    /// Rows behind the anchor in the whole window.
    pub after: usize,
    /// First rows of the session that say something, outside the window.
    pub first: Vec<StoredRow>,
    /// Last rows of the session that say something, outside the window.
    pub last: Vec<StoredRow>,
}

impl Store {
    /// Up to `each_side` rows before and behind a row (`Hermes hermes_state_messages.py:1452`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn window(&self, session: &str, anchor: i64, each_side: u64) -> Result<Window, StoreError> {
        let own = "SELECT 1 FROM messages WHERE id = ?1 AND session_id = ?2";
        if self.one(own, params![anchor, session], |_| Ok(()))?.is_none() {
            return Ok(Window::default());
        }
        let most = whole(each_side);
        let side = |sign: &str, order: &str, most: i64| {
            let sql = format!(
                "SELECT {COLUMNS} FROM messages WHERE session_id = ?1 AND id {sign} ?2 ORDER BY id {order} LIMIT ?3"
            );
            self.all(&sql, params![session, anchor, most], StoredRow::read)
        };
        let mut rows = side("<=", "DESC", most.saturating_add(1))?;
        rows.reverse();
        let before = rows.len().saturating_sub(1);
        let behind = side(">", "ASC", most)?;
        let after = behind.len();
        rows.extend(behind);
        Ok(Window { rows, before, after })
    }

    /// A window and the ends of the session (`Hermes hermes_state_search.py:732`); no `roles` means all.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn anchored_view(
        &self,
        session: &str,
        anchor: i64,
        each_side: u64,
        ends: u64,
        roles: Option<&[&str]>,
    ) -> Result<AnchoredView, StoreError> {
        let window = self.window(session, anchor, each_side)?;
        let (Some(start), Some(stop)) =
            (window.rows.first().map(|row| row.id), window.rows.last().map(|row| row.id))
        else {
            return Ok(AnchoredView::default());
        };
        let first = self.end_rows(session, "<", start, "ASC", ends, roles)?;
        let mut last = self.end_rows(session, ">", stop, "DESC", ends, roles)?;
        last.reverse();
        let wanted = |row: &StoredRow| {
            row.id == anchor || roles.is_none_or(|roles| roles.contains(&row.role.as_str()))
        };
        let (before, after) = (window.before, window.after);
        let rows = window.rows.into_iter().filter(wanted).collect();
        Ok(AnchoredView { rows, before, after, first, last })
    }

    fn end_rows(
        &self,
        session: &str,
        sign: &str,
        border: i64,
        order: &str,
        most: u64,
        roles: Option<&[&str]>,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let filter = roles.map_or_else(String::new, |roles| {
            format!(" AND role IN ({})", vec!["?"; roles.len()].join(", "))
        });
        let sql = format!(
            "SELECT {COLUMNS} FROM messages WHERE session_id = ? AND id {sign} ?{filter} AND length(content) > 0
             ORDER BY id {order} LIMIT ?"
        );
        let mut values: Vec<rusqlite::types::Value> = vec![session.to_owned().into(), border.into()];
        values.extend(roles.into_iter().flatten().map(|role| (*role).to_owned().into()));
        values.push(whole(most).into());
        self.all(&sql, params_from_iter(values), StoredRow::read)
    }
}

//! The curator's own memory of its runs, `skills/.curator_state`.
//!
//! Read tolerantly: an unreadable file counts as none, unknown keys are dropped unless they begin with an underscore.

use serde_json::{Map, Value, json};

use crate::agent::stamp;
use crate::world::files::join;
use crate::world::{FileError, Files, Millis};

const FIELDS: [&str; 7] = [
    "last_run_at",
    "last_run_duration_seconds",
    "last_run_summary",
    "last_run_summary_shown_at",
    "last_report_path",
    "paused",
    "run_count",
];

/// What is known of earlier runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CuratorState(Map<String, Value>);

impl CuratorState {
    /// Reads the state; defaults when there is none that can be read.
    pub fn load(files: &dyn Files, root: &str) -> Self {
        let mut state = Self::default();
        let text = files.read_text(&path(root)).unwrap_or_default();
        if let Ok(Value::Object(found)) = serde_json::from_str(&text) {
            let known = |key: &str| FIELDS.contains(&key) || key.starts_with('_');
            state.0.extend(found.into_iter().filter(|(key, _)| known(key)));
        }
        state
    }

    /// Writes the state, keys sorted.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn save(&self, files: &mut dyn Files, root: &str) -> Result<(), FileError> {
        let mut fields = self.0.clone();
        fields.sort_keys();
        let text = serde_json::to_string_pretty(&fields).unwrap_or_else(|_| "{}".to_owned());
        files.write(&path(root), text.as_bytes())
    }

    /// Start of the last run; `None` when it is absent or unreadable.
    pub fn last_run_at(&self) -> Option<Millis> {
        stamp::parse(self.0.get("last_run_at")?.as_str()?)
    }

    /// True when the user paused the curator.
    pub fn is_paused(&self) -> bool {
        super::config::truthy(self.0.get("paused").unwrap_or(&Value::Null))
    }

    /// Number of runs.
    pub fn run_count(&self) -> u64 {
        self.0.get("run_count").and_then(Value::as_u64).unwrap_or(0)
    }

    /// A raw field.
    pub fn get(&self, field: &str) -> &Value {
        self.0.get(field).unwrap_or(&Value::Null)
    }

    pub(super) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }
}

impl Default for CuratorState {
    fn default() -> Self {
        let fields = json!({
            "last_run_at": null, "last_run_duration_seconds": null, "last_run_summary": null,
            "last_run_summary_shown_at": null, "last_report_path": null, "paused": false, "run_count": 0,
        });
        match fields {
            Value::Object(fields) => Self(fields),
            _ => Self(Map::new()),
        }
    }
}

/// Path of the state below a skills directory.
pub fn path(root: &str) -> String {
    join(root, ".curator_state")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemFiles;

    #[test]
    fn unknown_keys_are_dropped_unless_private() {
        let mut files = MemFiles::new();
        files.write("s/.curator_state", br#"{"x": 1, "_y": 2, "run_count": 3}"#).unwrap();
        let state = CuratorState::load(&files, "s");
        assert_eq!((state.get("x"), state.get("_y"), state.run_count()), (&Value::Null, &json!(2), 3));
    }
}

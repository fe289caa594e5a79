//! Scheduled runs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::Model;

use super::dispatch::ToolResult;
use super::host::Run;
use super::{Harness, HarnessError};

impl<M: Model> Run<'_, M> {
    pub(super) fn cronjob_manage(&mut self, _: &Value) -> ToolResult {
        ToolResult::failed("scheduling is off")
    }
}

impl<M: Model> Harness<M> {
    /// Names of skills that scheduled jobs use.
    pub(super) fn scheduled_skills(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Adds a job.
    pub fn add_job(&mut self, _: &str, _: &str, _: &str) {}

    /// A tick.
    ///
    /// # Errors
    /// Never yet.
    pub fn tick(&mut self, _: u64) -> Result<(), HarnessError> {
        Ok(())
    }
}

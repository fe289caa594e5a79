//! Every break in one table: what catches it, which tasks of the regression set it makes fail, what it costs.

use serde::Serialize;

use crate::lab::bench::tables::{self, BenchError};
use crate::lab::breaks::{self, Shown};
use crate::lab::play::{Plan, PlayError};
use crate::lab::runs;
use crate::policy::Overlay;

/// One break.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What playing it showed.
    pub shown: Shown,
    /// Tasks of the regression set that fail under it.
    pub tasks: Vec<String>,
    /// Prompt tokens that are paid anew on a session of a hundred turns.
    pub paid_tokens: i64,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum AblationError {
    /// A break cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The session of a hundred turns cannot be played.
    #[error(transparent)]
    Bench(#[from] BenchError),
}

/// Plays every shipped break: on its scenario, on the regression set, on a session of a hundred turns.
///
/// # Errors
/// When one of them cannot be played.
pub fn ablation() -> Result<Vec<Row>, AblationError> {
    let shipped = runs::shipped();
    let shown = breaks::show_all(&shipped)?;
    let costs = tables::mechanisms(&tables::shipped_breaks())?;
    let tasks = runs::each(&shipped, |(found, _)| {
        let plan = Plan { above: vec![Overlay::from_table(&found.with), found.overlay()], ..Plan::default() };
        let failing = super::regression(&plan, &[]).tasks.into_iter().filter(|task| !task.holds);
        failing.map(|task| task.task).collect::<Vec<String>>()
    });
    let rows = shown.into_iter().zip(tasks).map(|(shown, tasks)| {
        let cost = costs.iter().find(|cost| cost.id == shown.id);
        let paid_tokens = cost.and_then(|cost| cost.paid_tokens.first()).map_or(0, |(_, tokens)| *tokens);
        Row { shown, tasks, paid_tokens }
    });
    Ok(rows.collect())
}

//! Scheduled agent runs.

pub mod lifecycle_guard;
